//! Prompts in a folder, within their bounds.

use std::fs;

use super::*;

fn prompt(source: &str) -> Prompt {
    front::read("sample", Origin::User("sample.liquid".into()), source)
        .unwrap_or_else(|flaw| panic!("{flaw}"))
}

fn given(arguments: &[(&str, &str)]) -> BTreeMap<String, String> {
    arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[track_caller]
fn rendered(source: &str, arguments: &[(&str, &str)]) -> Rendered {
    prompt(source).render(&given(arguments)).unwrap_or_else(|error| panic!("{error}"))
}

/// What is said of a template that cannot be rendered.
#[track_caller]
fn refused(source: &str, arguments: &[(&str, &str)]) -> String {
    let read = front::read("sample", Origin::User("sample.liquid".into()), source);
    match read.map(|prompt| prompt.render(&given(arguments))) {
        Err(flaw) => flaw.to_string(),
        Ok(Err(error)) => error.to_string(),
        Ok(Ok(rendered)) => panic!("it is rendered: {:.200}", rendered.text),
    }
}

/// The example of seed S0.
const SEED: &str = "{% if complexity > 5 %}\n{{ notify \"Complex refactoring detected - breaking into smaller steps for safety\" }}\n{% endif %}\n";

#[test]
fn the_seeds_example_notifies_once_under_its_condition_and_leaves_no_text_row_14() {
    let told = rendered(SEED, &[("complexity", "7")]);
    assert_eq!(told.text, "");
    let messages: Vec<_> = told.notices.iter().map(|notice| notice.message.as_str()).collect();
    assert_eq!(messages, ["Complex refactoring detected - breaking into smaller steps for safety"]);
    assert_eq!(told.notices[0].level, Level::Info);
    assert_eq!(told.notices[0].context, Context::default());
    for quiet in ["5", "0", "no"] {
        assert_eq!(rendered(SEED, &[("complexity", quiet)]).notices, []);
    }
    assert_eq!(prompt(SEED).arguments[0].name, "complexity");
    let steps =
        "1. Analyze\n2. {{ notify \"Found 3\" }}\n3. Prioritize\n4. {{ notify \"Starting\" }}\n";
    let told = rendered(steps, &[]);
    assert_eq!((told.text.as_str(), told.notices.len()), ("1. Analyze\n2. \n3. Prioritize\n4.", 2));
}

#[test]
fn a_notice_may_have_level_and_context_row_15() {
    let source = "{% notify \"m\", level: \"warn\", context: \"safety\" %}\
        {{ notify who | append: \"!\" | upcase title: \"T\" level: how link: \"https://a.example\" }}";
    let told = rendered(source, &[("who", "ada"), ("how", "error")]);
    assert_eq!(told.text, "");
    let safety = Notice {
        message: "m".to_owned(),
        level: Level::Warning,
        context: "safety".parse().unwrap(),
        title: None,
        link: None,
    };
    assert_eq!(told.notices[0], safety);
    assert_eq!((told.notices[1].message.as_str(), told.notices[1].level), ("ADA!", Level::Error));
    assert_eq!(told.notices[1].title.as_deref(), Some("T"));
}

#[test]
fn the_head_describes_the_prompt_and_its_arguments() {
    let source = "---\ntitle: Review\ndescription: Looks at a file\narguments:\n  - name: file\n    required: true\n    \
        description: which file\n  - name: depth\n    default: 2\n    values: [1, 2, 10]\n  - name: zip\n    type: string\n---\n\
        {{ file }} {{ depth | plus: 1 }} {{ zip }}{% if zip == \"01234\" %}!{% endif %}";
    let review = prompt(source);
    assert_eq!(review.title.as_deref(), Some("Review"));
    assert_eq!(review.complete("depth", "1"), Some(vec!["1", "10"]));
    assert_eq!(review.complete("other", ""), None);
    let told = rendered(source, &[("file", "a.rs"), ("zip", "01234")]);
    assert_eq!(told.text, "a.rs 3 01234!");
    assert_eq!(refused(source, &[]), "`file` is missing; expected which file");
    let unknown = refused(source, &[("file", "a"), ("flie", "b")]);
    assert_eq!(unknown, "`flie` is \"b\"; expected no such argument; did you mean `file`?");
    assert_eq!(
        rendered("{{ a }} {{ b }} {{ c }}", &[("a", "007"), ("b", "1.50"), ("c", "true")]).text,
        "007 1.50 true"
    );
}

#[test]
fn what_is_wrong_is_told_with_file_line_and_column() {
    let differing: Vec<_> = [
        ("a\nb {{ c", "sample.liquid:2:3: `{{` is never closed with `}}`"),
        ("a\n{% if a %}\n", "sample.liquid:3:1: "),
        ("---\ntitle: t\n---\na\n  {% nonsense %}", "sample.liquid:5:"),
        ("{% assign a = 1 %}\n任 {{ a.b }}", "sample.liquid:2:8: there is no `b` in `a`"),
        ("x\n{{ \"a\" | shout }}", "sample.liquid:2:10: there is no filter `shout`"),
        (
            "x\n {% notify \"m\", loud: 1 %}",
            "sample.liquid:2:17: expected `level`, `context`, `title` or `link`",
        ),
        (
            "x\n {% notify \"m\", level: \"loud\" %}",
            "sample.liquid:2:11: notify: `level` is \"loud\"",
        ),
        ("x\n {{ notify \"  \" }}", "sample.liquid:2:11: notify: the message is empty"),
        (
            "x\n {% notify \"m\", link: \"file:///etc/passwd\" %}",
            "sample.liquid:2:11: notify: `link` is \"file:///etc/passwd\"",
        ),
        (
            "x\n {% notify \"m\", title: \" \" %}",
            "sample.liquid:2:11: notify: `title` is only white space",
        ),
        ("---\ntitle: [\n---\n", "sample.liquid:"),
        ("---\ntitle: a\n", "sample.liquid:1:1: the head that begins here is never closed"),
        (
            "---\narguments:\n  - name: a\n  - name: a b\n---\n",
            "sample.liquid:4:1: the name of an argument",
        ),
    ]
    .into_iter()
    .map(|(source, expected)| (refused(source, &[]), expected))
    .filter(|(said, expected)| !said.contains(expected))
    .collect();
    assert_eq!(differing, []);
}

#[test]
fn a_hostile_template_ends_in_an_error() {
    #[track_caller]
    fn check(source: &str, arguments: &[(&str, &str)], expected: &str) {
        let said = refused(source, arguments);
        assert!(said.contains(expected), "{said:.300}");
    }
    check("{% for i in (1..1000000000) %}x{% endfor %}", &[], "from -10000 to 10000");
    check("{% for i in (1..n) %}x{% endfor %}", &[("n", "1000000000")], "from -10000 to 10000");
    check(
        "{% assign n = 90000 | times: 100 %}{% for i in (1..n) %}{% endfor %}",
        &[],
        "from -10000",
    );
    let nested = "{% for a in (1..9999) %}{% for b in (1..9999) %}{% endfor %}{% endfor %}";
    check(nested, &[], "more than 100000 steps");
    let doubling =
        "{% assign x = \"ab\" %}{% for i in (1..60) %}{% assign x = x | append: x %}{% endfor %}";
    check(doubling, &[], "a value has more than");
    let replaced = "{% assign x = \"aaaaaaaaaa\" %}{% for i in (1..9) %}{% assign x = x | replace: \"a\", x %}{% endfor %}";
    check(replaced, &[], "a value has more than");
    let captured = format!(
        "{{% capture x %}}{{% for i in (1..9999) %}}{}{{% endfor %}}{{% endcapture %}}",
        "y".repeat(999)
    );
    check(&captured, &[], "a value has more than");
    let long = format!("{{% for i in (1..9999) %}}{}{{% endfor %}}", "y".repeat(999));
    check(&long, &[], "its text has more than");
    check("{% for i in (1..99) %}{{ notify \"x\" }}{% endfor %}", &[], "more than 50 times");
    check("{{ \"now\" | date: \"%999999999d\" }}", &[], "a width of at most 99");
    check("{% include \"/etc/passwd\" %}", &[], "sample.liquid:1:");
    check("{{ 99999999999999999999999 }}", &[], "sample.liquid:");
    check("{{ 1 | divided_by: 0 }}", &[], "sample.liquid:");
    check(&"{% if a %}".repeat(5_000), &[], "more than 32 deep");
}

#[test]
fn no_template_fills_the_stack() {
    let nested = format!("a{}{}b", "{% comment %}".repeat(2_200), "{% endcomment %}".repeat(2_200));
    assert_eq!(rendered(&nested, &[]).text, "ab");
    let blocks = format!("a{{% comment %}}{}{{% endcomment %}}b", "{% if a %}".repeat(6_000));
    assert_eq!(rendered(&blocks, &[]).text, "ab");
    let indexes = format!("a{{% raw %}}{{{{ a{} }}}}{{% endraw %}}b", "[b".repeat(30_000));
    assert!(rendered(&indexes, &[]).text.starts_with("a{{ a[b[b"));
    let branches = format!("{{% if true %}}x{}{{% endif %}}", "{% elsif true %}".repeat(3_900));
    assert!(refused(&branches, &[]).contains("more than 200 branches"));
    // As deep as the bounds allow, and a tag that the parser takes for something else than the scan does.
    let deepest = [
        "{% if false %}{% else %}".repeat(31),
        "{% if false %}".to_owned(),
        "{% elsif false %}".repeat(168),
        "x{% endif %}".to_owned(),
        "{% endif %}".repeat(31),
    ]
    .concat();
    assert_eq!(rendered(&deepest, &[]).text, "");
    refused(&format!("{{{{ x 'a {{{{ b{} ' }}}}", "[b".repeat(2_000)), &[]);
    let long = format!("{{% if {}a %}}x{{% endif %}}", "a or ".repeat(800));
    assert_eq!(rendered(&long, &[("a", "true")]).text, "x");
}

#[test]
fn the_parser_sees_no_tag_that_nobody_looked_at() {
    let unclosed = "{% raw %}{{ \"{% endraw %}\" }}{% comment %}{% endraw %}{% for i in (1..20000) %}x\
        {% endfor %}{% comment %}{% endcomment %}";
    assert!(refused(unclosed, &[]).starts_with("sample.liquid:1:"));
    let quoted = "{% raw %}{{ \"{% endraw %}\" }}{% comment %}{% endraw %}{% for i in (1..20000) %}x\
        {% endfor %}{% comment %}{% endcomment %}{% endcomment %}";
    assert_eq!(rendered(quoted, &[]).text, "{{ \"\" }}");
    let notice = "{{ notify a %}{% for i in (1..20000) %}x{% endfor %}{% notify b }}";
    assert!(
        refused(notice, &[]).contains("sample.liquid:1:13: a notice has no `%` outside quotes")
    );
    let kept =
        "{% capture a %}{% raw -%}  {{ x }}{% if %} {{- 1 }} {%- endraw %}{% endcapture %}{{ a }}";
    assert_eq!(rendered(kept, &[]).text, "{{ x }}{% if %} {{- 1 }}");
}

#[test]
fn a_folder_of_wrong_files_tells_of_some_and_counts_the_rest() {
    let home = tempfile::tempdir().unwrap();
    for number in 0..1_000 {
        fs::write(home.path().join(format!("{number:04}.md")), "{{").unwrap();
    }
    let (prompts, flaws) = folder::read(home.path(), None, Origin::User);
    assert_eq!((prompts.len(), flaws.len()), (0, 201));
    assert_eq!(flaws[200].message, "and 800 more files are left out");
}

#[test]
fn the_users_prompts_go_first_and_a_projects_need_trust() {
    let home = tempfile::tempdir().unwrap();
    let at = |path: &str| home.path().join(path);
    for folder in ["prompts", "project/.deskbell/prompts", "project/src", "state"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    let write = |path: &str, text: &str| fs::write(at(path), text).unwrap();
    write("prompts/mine.md", "# Mine\nhello");
    write("prompts/both.liquid", "the user's");
    write("prompts/a b.md", "no name");
    write("prompts/large.md", &"x".repeat(70_000));
    write("prompts/notes.txt", "no prompt");
    write("project/.deskbell.toml", "");
    write("project/.deskbell/prompts/both.md", "the project's");
    write("project/.deskbell/prompts/theirs.md", "{{ notify \"theirs\" }}");
    write("project/.deskbell/prompts/notify.md", "no window");
    write("secret.md", "a secret");
    #[cfg(unix)]
    std::os::unix::fs::symlink(at("secret.md"), at("project/.deskbell/prompts/leak.md")).unwrap();
    let paths = crate::paths::Paths {
        state: at("state"),
        config_user: at("config.toml"),
        config_machine: at("none.toml"),
    };
    let prompts = Prompts::new(Sources {
        variables: [].into(),
        config_sh: None,
        ..Sources::of_the_daemon(&paths)
    });
    let names = |found: &Found| found.prompts.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    let folder = at("project/src");
    let untrusted = prompts.of(Some(&folder));
    assert_eq!(names(&untrusted), ["both", "mine", "notify", "notify-guidelines"]);
    assert_eq!(untrusted.find("mine").unwrap().description.as_deref(), Some("Mine"));
    let flaws: Vec<_> = untrusted.flaws.iter().map(ToString::to_string).collect();
    assert_eq!(flaws.len(), 2, "{flaws:?}");

    crate::config::trust::trust(&paths, &at("project/.deskbell.toml")).unwrap();
    let trusted = prompts.of(Some(&folder));
    assert_eq!(names(&trusted), ["both", "mine", "notify", "notify-guidelines", "theirs"]);
    assert!(matches!(trusted.find("both").unwrap().origin, Origin::User(_)));
    assert_eq!(trusted.find("notify").unwrap().origin, Origin::BuiltIn);
    let said: String = trusted.flaws.iter().map(|flaw| format!("{flaw}\n")).collect();
    assert!(said.contains("leads out of the project"), "{said}");
    assert!(said.contains("`both` is the name of"), "{said}");
    assert!(said.contains("`notify` is the name of one that is built in"), "{said}");
    assert_eq!(names(&prompts.of(Some(home.path()))).len(), 4);
}

#[test]
fn the_built_in_prompts_are_read_and_are_what_the_server_says_of_itself_row_100() {
    let built_in: Vec<_> = built_in::prompts().collect();
    assert_eq!(built_in.len(), built_in::COUNT);
    let notify = built_in.iter().find(|prompt| prompt.name == "notify").unwrap();
    let text = notify.render(&given(&[("topic", "the plan")])).unwrap().text;
    assert!(
        text.contains("wait_for_response") && text.contains("speaks about this: the plan"),
        "{text}"
    );
    let guidelines = built_in.iter().find(|prompt| prompt.name == "notify-guidelines").unwrap();
    let text = |language: &[(&str, &str)]| guidelines.render(&given(language)).unwrap().text;
    assert!(text(&[]).starts_with(INSTRUCTIONS));
    assert!(text(&[("language", "zh")]).starts_with(INSTRUCTIONS_ZH));
    assert!(text(&[]).contains("delivery://{id}") && text(&[]).contains("`backup-20260117-001`"));
    assert_eq!(guidelines.complete("language", "Z"), Some(vec!["zh"]));
}
