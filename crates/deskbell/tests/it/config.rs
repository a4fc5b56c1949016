//! Configuration: layers, trust, secrets, what is said about what is wrong, and the documents that describe it.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

mod docs;
mod program;
mod robust;
mod routes;
mod secrets;

use std::{fs, path::PathBuf, time::Duration};

use deskbell::{
    config::{
        self, Config, Finding, Severity, Sources,
        load::{self, FileState},
        trust,
    },
    paths::Paths,
};
use deskbell_core::Level;

/// A folder with the files of machine, user and project, and no surroundings.
struct Trial {
    folder: tempfile::TempDir,
    sources: Sources,
}

impl Trial {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["state", "project/deep"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        let paths = Paths {
            state: at("state"),
            config_user: at("user.toml"),
            config_machine: at("machine.toml"),
        };
        let sources = Sources {
            paths,
            folder: Some(at("project/deep")),
            variables: [("HOME".to_owned(), folder.path().display().to_string())].into(),
            overrides: Vec::new(),
            config_sh: Some(at("project/deep/config.sh")),
        };
        Self { folder, sources }
    }

    fn user(text: &str) -> Self {
        Self::new().with("user.toml", text)
    }

    fn with(self, file: &str, text: &str) -> Self {
        let path = self.path(file);
        fs::write(&path, text).unwrap();
        // Others must not read secrets; there is a warning about it that most tests are not about.
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        self
    }

    fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.sources.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn config(&self) -> Config {
        Config::load(&self.sources).unwrap()
    }

    fn findings(&self) -> Vec<Finding> {
        config::check(&self.sources).findings
    }

    /// What is said, each with the name of its file instead of the whole path.
    fn said(&self) -> Vec<String> {
        let folder = format!("{}/", self.folder.path().display());
        self.findings().iter().map(|finding| finding.to_string().replace(&folder, "")).collect()
    }
}

#[track_caller]
fn check_said(text: &str, expected: &[&str]) {
    assert_eq!(Trial::user(text).said(), expected);
}

fn channel(config: &Config, name: &str) -> toml::Table {
    config.channels[&name.parse().unwrap()].options.clone()
}

#[test]
fn nothing_configured_is_what_the_program_starts_with() {
    let trial = Trial::new();
    let mut expected = Config::default();
    let config = trial.config();
    expected.tracing.file.clone_from(&config.tracing.file);
    assert_eq!(config, expected);
    assert_eq!(config.tracing.file.unwrap().path, trial.path("state").join("deskbell.log"));
}

#[test]
fn later_layers_go_before_earlier_ones() {
    let mut trial = Trial::new();
    let attempts = |trial: &Trial| trial.config().delivery.attempts;
    let file = |attempts: u32| format!("[delivery]\nattempts = {attempts}\ntimeout = \"7s\"\n");
    assert_eq!(attempts(&trial), 12);
    trial = trial.with("machine.toml", &file(1));
    assert_eq!(attempts(&trial), 1);
    trial = trial.with("user.toml", "[delivery]\nattempts = 2\n");
    assert_eq!(attempts(&trial), 2);
    assert_eq!(trial.config().delivery.timeout, Duration::from_secs(7), "tables are merged");
    let routes = |trial: &Trial| trial.config().routes.len();
    trial = trial.with("project/.deskbell.toml", "routes = [{ channels = [] }]\n");
    trust::trust(&trial.sources.paths, &trial.path("project/.deskbell.toml")).unwrap();
    assert_eq!(routes(&trial), 1);
    trial = trial.with_variable("DESKBELL_DELIVERY__ATTEMPTS", "4");
    assert_eq!(attempts(&trial), 4);
    trial.sources = trial.sources.with_override("--attempts", "delivery.attempts", "5");
    assert_eq!((attempts(&trial), routes(&trial)), (5, 1));
}

#[test]
fn variables_become_what_their_option_takes() {
    let config = Trial::new()
        .with_variable("DESKBELL_SERVE__LISTEN", "127.0.0.1:1234")
        .with_variable("DESKBELL_SERVE__ANONYMOUS_LOOPBACK", "true")
        .with_variable("DESKBELL_SERVE__ALLOWED_HOSTS", "a.example, b.example")
        .with_variable("DESKBELL_SERVE__TOKENS__CI", "12345")
        .with_variable("DESKBELL_KEEP_HISTORY", "1d")
        .with_variable("DESKBELL_SKIP_TITLES", "[\"a, b\"]")
        .with_variable("DESKBELL_CHANNELS__PHONE__KIND", "ntfy")
        .with_variable("DESKBELL_CHANNELS__PHONE__TOPIC", "4711")
        .with_variable("DESKBELL_DELIVERY__ATTEMPTS", "")
        .with_variable("DESKBELL_STATE_DIR", "/elsewhere")
        .with_variable("DESKBELL_SOMETHING", "else")
        .config();
    assert_eq!(config.serve.listen.unwrap().port(), 1234);
    assert!(config.serve.anonymous_loopback);
    assert_eq!(config.serve.allowed_hosts, ["a.example", "b.example"]);
    assert_eq!(config.serve.tokens["ci"], "12345");
    assert_eq!(config.keep_history, Some(Duration::from_hours(24)));
    assert_eq!(config.skip_titles, ["a, b"]);
    assert_eq!(channel(&config, "phone")["topic"].as_str(), Some("4711"));
    assert_eq!(config.delivery.attempts, 12, "an empty variable says nothing");
    assert_eq!(config.problems, []);
}

#[test]
fn a_channel_of_another_kind_takes_nothing_over() {
    let text = "[channels.a]\nkind = \"ntfy\"\ntopic = \"t\"\nserver = \"https://n.example\"\n";
    let trial = Trial::user(text).with("machine.toml", "[channels.a]\nkind = \"console\"\n");
    assert_eq!(channel(&trial.config(), "a").len(), 2);
    let same = trial.with_variable("DESKBELL_CHANNELS__A__TOPIC", "u").config();
    assert_eq!(channel(&same, "a")["topic"].as_str(), Some("u"));
    assert_eq!(channel(&same, "a")["server"].as_str(), Some("https://n.example"));
}

#[test]
fn everything_wrong_is_told_at_once_by_place_and_key_and_never_by_value_row_116() {
    let text = r#"
skip_titles = "hunter2"
[serve]
lisen = "hunter2"
listen = "hunter2"
anonymous_loopback = "hunter2"
[delivery]
attempts = -5
timeout = "hunter2"
[tracing]
targets = [{ name = "llm_notify", level = "hunter2" }, { name = "llm_notify" }]
[[routes]]
level = "hunter2"
channels = []
[[routes]]
kind = ["hunter2"]
context = 5
[mcp]
profile = "hunter2"
"#;
    let mut expected = vec![
        "user.toml:9:1: `delivery.timeout`: expected a length of time such as 15s, 5m or 30d",
        "user.toml:8:1: `delivery.attempts`: expected a whole number that is not negative",
        "user.toml:19:1: `mcp.profile`: expected one of unified, swissarmyhammer, mcp-push",
        "user.toml:13:1: `routes[0].level`: expected a level or a range of levels such as `error..`, `..info` or `notice..error`",
        "user.toml:17:1: `routes[1].context`: expected a text or a list of texts",
        "user.toml:16:9: `routes[1].kind[0]`: expected one of notice, push, run",
        "user.toml:15:1: `routes[1]`: `channels` is missing",
        "user.toml:6:1: `serve.anonymous_loopback`: expected true or false",
        "user.toml:4:1: `serve.lisen`: there is no such key",
        "user.toml:5:1: `serve.listen`: expected an address with a port such as 127.0.0.1:8377",
        "user.toml:2:1: `skip_titles`: expected a list",
        "user.toml:11:35: `tracing.targets[0].level`: expected one of debug, info, notice, warning, error, critical, alert, emergency, or off",
        "user.toml:11:56: `tracing.targets[1]`: `level` is missing",
    ];
    let trial = Trial::user(text);
    let mut said = trial.said();
    said.sort();
    expected.sort_unstable();
    assert_eq!(said, expected);
    let error = Config::load(&trial.sources).unwrap_err().to_string();
    assert!(error.contains("did you mean `listen`?"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn bounds_are_named() {
    check_said(
        "[delivery]\nattempts = 0\n",
        &["user.toml:2:1: `delivery.attempts`: expected 1 to 100"],
    );
    check_said(
        "[delivery]\ntimeout = \"1h\"\n",
        &["user.toml:2:1: `delivery.timeout`: expected more than nothing and at most 10m"],
    );
    check_said(
        "[tracing.file]\nmax_bytes = 10\nkeep = 101\n",
        &[
            "user.toml:2:1: `tracing.file.max_bytes`: expected at least 1024",
            "user.toml:3:1: `tracing.file.keep`: expected at most 100",
        ],
    );
    check_said(
        "[tracing]\ntargets = [{ name = \"llm_notify::loud\", level = \"info\" }]\n",
        &[
            "user.toml:2:14: `tracing.targets[0].name`: expected `llm_notify`, or a level behind it such as `llm_notify::warn`",
        ],
    );
}

#[test]
fn what_would_keep_the_door_shut_is_told() {
    let text = r#"[serve]
listen = "0.0.0.0:0"
allowed_hosts = ["desk.example", "http://x"]
allowed_origins = ["*"]
"#;
    let trial = Trial::user(text);
    let said = trial.said();
    assert_eq!(said.len(), 3, "{said:?}");
    for (said, start) in said.iter().zip([
        "user.toml:2:1: `serve.listen`: others can reach this address",
        "user.toml:3:34: `serve.allowed_hosts[1]`: expected the name of one host",
        "user.toml:4:20: `serve.allowed_origins[0]`: expected one origin",
    ]) {
        assert!(said.starts_with(start), "{said}");
    }
    assert_eq!(trial.config().serve.allowed_hosts, ["desk.example"]);
    check_said(
        &format!(
            "{}[serve.tokens]\nme = \"0123456789abcdef\"\n",
            "[serve]\nlisten = \"0.0.0.0:0\"\n"
        ),
        &[],
    );
}

#[test]
fn only_profiles_that_are_served_can_be_chosen() {
    for name in deskbell::mcp::profiles::names() {
        check_said(&format!("[mcp]\nprofile = \"{name}\"\n"), &[]);
    }
    let known: Vec<_> = deskbell::mcp::profiles::names().collect();
    let said = format!("user.toml:2:1: `mcp.profile`: expected one of {}", known.join(", "));
    check_said("[mcp]\nprofile = \"lambda\"\n", &[&said]);
}

#[test]
fn a_broken_channel_is_left_out_and_the_rest_works() {
    let text = r#"
[channels.good]
kind = "ntfy"
topic = "a"
[channels.typo]
kind = "ntfi"
[channels.nothing]
[channels."not a name"]
kind = "console"
[channels.no_secret]
kind = "ntfy"
topic = "env:NOT_THERE"
[channels.many]
kind = "console"
per_minute = "hunter2"
[channels.off]
kind = "hunter2"
enabled = false
[channels.apprise]
url = "ntfi://hunter2"
[channels.option]
kind = "ntfy"
topic = "a"
tokn = "hunter2"
[[routes]]
channels = ["good", "gone", "off"]
"#;
    let trial = Trial::user(text);
    let config = trial.config();
    let names: Vec<_> = config.channels.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["good", "option"], "what a kind says of its options comes when it is built");
    assert_eq!(config.routes[0].channels.len(), 3);
    let mut said = trial.said();
    let mut expected = [
        "user.toml:5:11: `channels.typo`: there is no such `kind` of channel",
        "user.toml:7:11: `channels.nothing`: `kind` is missing",
        "user.toml:8:11: `channels.not a name`: the name is not right; expected a name of 1 to 64 letters, digits, `-` and `_`",
        "user.toml:12:1: `channels.no_secret.topic`: the variable NOT_THERE is not set",
        "user.toml:15:1: `channels.many.per_minute`: expected a whole number that is not negative",
        "user.toml:19:11: `channels.apprise`: `url`: no kind of channel takes such an address; did you mean `ntfy://`?",
        "user.toml:24:1: `channels.option`: unknown option `tokn`; did you mean `token`?",
        "user.toml:26:21: `routes[0].channels[1]`: there is no such channel",
    ];
    said.sort();
    expected.sort_unstable();
    assert_eq!(said, expected);
    assert!(!said.concat().contains("hunter2"));
    assert!(!config::check(&trial.sources).is_right());
    assert!(config.problems.len() >= 6, "{:?}", config.problems);
}

#[test]
fn a_project_adds_routes_and_nothing_else_until_it_is_trusted() {
    let user = "[channels.a]\nkind = \"console\"\n";
    let project = r#"
keep_history = "1d"
[[routes]]
channels = ["a"]
[channels.evil]
kind = "webhook_json"
url = "https://evil.example"
[serve.tokens]
evil = "env:HOME"
"#;
    let trial = Trial::user(user).with("project/.deskbell.toml", project);
    let file = trial.path("project/.deskbell.toml");
    let config = trial.config();
    let chosen = || load::project(&trial.sources).unwrap().unwrap();
    assert_eq!(config.routes.len(), 0, "they take no place of the user's");
    assert_eq!((chosen().routes.map(|routes| routes.len()), chosen().is_trusted), (Some(1), false));
    assert_eq!(config.channels.len(), 1);
    assert!(config.serve.tokens.is_empty());
    let keys = |findings: &[Finding]| {
        findings.iter().map(|finding| finding.key.clone()).collect::<Vec<_>>()
    };
    let findings = trial.findings();
    assert_eq!(keys(&findings), ["channels", "keep_history", "serve"]);
    let hint = findings[0].hint.as_deref().unwrap();
    assert!(hint.contains("deskbell trust") && hint.contains(".deskbell.toml"), "{hint}");

    trust::trust(&trial.sources.paths, &file).unwrap();
    let config = trial.config();
    assert_eq!((config.channels.len(), config.routes.len()), (2, 1));
    assert!(chosen().is_trusted);
    assert!(config.serve.tokens.is_empty(), "one daemon serves all projects");
    assert_eq!(keys(&trial.findings()), ["keep_history", "serve"]);

    // The trust is in what was looked at, not in the name of the file.
    fs::write(&file, project.replace("evil.example", "worse.example")).unwrap();
    assert_eq!(trial.config().channels.len(), 1);
    trust::trust(&trial.sources.paths, &file).unwrap();
    assert_eq!(trial.config().channels.len(), 2);
    assert!(trust::revoke(&trial.sources.paths, &file).unwrap());
    assert!(!trust::revoke(&trial.sources.paths, &file).unwrap());
    assert_eq!(trial.config().channels.len(), 1);
}

#[test]
fn trust_in_one_folder_is_none_in_another() {
    let text = "[channels.x]\nkind = \"console\"\n";
    let mut trial = Trial::new().with("project/.deskbell.toml", text);
    trust::trust(&trial.sources.paths, &trial.path("project/.deskbell.toml")).unwrap();
    assert_eq!(trial.config().channels.len(), 1);
    let other = trial.path("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join(".deskbell.toml"), text).unwrap();
    trial.sources.folder = Some(other);
    assert_eq!(trial.config().channels.len(), 0);
}

#[test]
fn the_daemon_has_the_channels_of_all_trusted_projects() {
    let text = "[channels.a]\nkind = \"console\"\n[channels.b]\nkind = \"console\"\n";
    let mut trial = Trial::user("[channels.a]\nkind = \"console\"\n")
        .with("project/.deskbell.toml", text)
        .with_variable("NTFY_TOPIC", "t");
    let file = trial.path("project/.deskbell.toml").canonicalize().unwrap();
    trial.sources.folder = None;
    assert_eq!(trial.config().channels.len(), 1);
    trust::trust(&trial.sources.paths, &file).unwrap();
    let config = trial.config();
    assert_eq!(config.channels.len(), 2);
    assert_eq!(config.project_channels, [("b".parse().unwrap(), file)].into());
    assert_eq!(config.problems.len(), 1, "a name that the user has stays the user's");
}

#[test]
fn a_broken_project_file_stops_nothing() {
    for text in ["[[routes]", "[[routes]]\nlevel = \"hunter2\"\nchannels = []\n", "routes = 5\n"] {
        let trial = Trial::user("[delivery]\nattempts = 3\n[mcp]\nprofile = \"swissarmyhammer\"\n")
            .with("project/.deskbell.toml", text);
        let config = trial.config();
        assert_eq!(config.delivery.attempts, 3, "{text}");
        assert_eq!(config.mcp.profile.as_deref(), Some("swissarmyhammer"), "{text}");
        assert_eq!(config.problems.len(), 1, "{text}");
        assert!(!config.problems[0].text.contains("hunter2"));
    }
}

#[cfg(unix)]
#[test]
fn a_project_file_of_another_user_is_not_read() {
    // Only root can give files away.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let routes = "[[routes]]\nchannels = []\n";
    let trial = Trial::new().with("project/.deskbell.toml", routes);
    let file = trial.path("project/.deskbell.toml");
    let state = || config::check(&trial.sources).files.last().unwrap().state;
    assert_eq!(state(), FileState::Limited);
    std::os::unix::fs::chown(&file, Some(12_345), None).unwrap();
    assert_eq!(state(), FileState::LeftOut);
    trust::trust(&trial.sources.paths, &file).unwrap();
    assert_eq!(trial.config().routes.len(), 1);
}

#[test]
fn the_seeds_own_example_is_taken_as_it_stands_row_9() {
    let text = r#"
[tracing]
targets = [
  { name = "llm_notify", level = "info" },
  { name = "llm_notify::warn", level = "warn" }
]
"#;
    let tracing = Trial::user(text).config().tracing;
    let rules: Vec<_> =
        tracing.targets.iter().map(|rule| (rule.name.as_str(), rule.level)).collect();
    assert_eq!(
        rules,
        [("llm_notify", Some(Level::Info)), ("llm_notify::warn", Some(Level::Warning))]
    );
}

#[test]
fn routes_take_one_or_a_list() {
    let text = r#"
[channels.a]
kind = "console"
[[routes]]
level = "error.."
context = "safety"
kind = ["notice", "run"]
client = "claude-code"
channels = ["a"]
continue = true
[[routes]]
channels = []
"#;
    let config = Trial::user(text).config();
    let [one, two] = &config.routes[..] else { panic!("{:?}", config.routes) };
    assert_eq!(one.levels.to_string(), "error..");
    assert_eq!(one.contexts, ["safety".parse().unwrap()]);
    assert_eq!((one.kinds.len(), one.clients.len(), one.continues), (2, 1, true));
    assert!(two.channels.is_empty() && !two.continues && two.contexts.is_empty());
}

#[test]
fn an_address_says_kind_and_options_with_its_secrets() {
    let text = r#"
[channels.a]
url = "ntfy://env:TOPIC"
[channels.b]
url = "tgram://env:TOKEN/42"
per_minute = 5
[channels.c]
url = "mailto://me:env:PASSWORD@example.com"
"#;
    let config = Trial::user(text)
        .with_variable("TOPIC", "builds")
        .with_variable("TOKEN", "123:Abc")
        .with_variable("PASSWORD", "p@ss/:?")
        .config();
    assert_eq!(config.problems, []);
    let kinds: Vec<_> = config.channels.values().map(|channel| channel.kind.as_str()).collect();
    assert_eq!(kinds, ["ntfy", "telegram", "smtp"]);
    assert_eq!(channel(&config, "a")["topic"].as_str(), Some("builds"));
    assert_eq!(channel(&config, "b")["token"].as_str(), Some("123:Abc"));
    assert_eq!(config.channels[&"b".parse().unwrap()].per_minute, Some(5));
    assert_eq!(channel(&config, "c")["password"].as_str(), Some("p@ss/:?"));
}

#[test]
fn mcp_pushs_variables_make_channels_where_none_is_configured_row_111() {
    let trial = Trial::new()
        .with_variable("NTFY_TOPIC", "t")
        .with_variable("SKIP_PUSH_TITLE", "quiet")
        .with_variable("TG_BOT_TOKEN", "hunter2");
    let config = trial.config();
    assert_eq!(channel(&config, "ntfy")["topic"].as_str(), Some("t"));
    assert_eq!(config.skip_titles, ["quiet"]);
    assert_eq!(config.problems.len(), 1);
    assert!(config.problems[0].text.contains("TG_USER_ID"), "{:?}", config.problems);
    let shown = config::show(&trial.sources).unwrap();
    assert!(shown.contains("[channels.ntfy]") && !shown.contains("hunter2"), "{shown}");
    let configured = trial.with("user.toml", "[channels.a]\nkind = \"console\"\n").config();
    assert_eq!(configured.channels.len(), 1, "who configures channels has chosen");
}

#[test]
fn config_sh_is_read_where_it_is_asked_for_or_trusted_row_111() {
    let script = "export NTFY_TOPIC=\"from file\"\nexport NTFY_TOKEN='tk'\n";
    let trial = Trial::new().with("project/deep/config.sh", script);
    assert!(trial.config().channels.is_empty(), "a strange folder's file sends nothing anywhere");
    let asked = Trial { sources: trial.sources.clone().with_profile(Some("mcp-push")), ..trial };
    let asked = asked.with_variable("NTFY_TOPIC", "from env");
    let options = channel(&asked.config(), "ntfy");
    assert_eq!(options["topic"].as_str(), Some("from env"), "the environment goes first");
    assert_eq!(options["token"].as_str(), Some("tk"));

    let trusted = Trial::new().with("project/deep/config.sh", script);
    trust::trust(&trusted.sources.paths, &trusted.path("project/deep/config.sh")).unwrap();
    assert_eq!(channel(&trusted.config(), "ntfy")["topic"].as_str(), Some("from file"));
}

#[test]
fn a_file_that_was_named_and_is_not_there_is_told() {
    let trial = Trial::new();
    let path = trial.path("user.toml").display().to_string();
    let said = trial.with_variable("DESKBELL_CONFIG", &path).said();
    assert_eq!(said, ["variable DESKBELL_CONFIG: the file that it names is not there"]);
}

#[test]
fn what_is_not_a_file_or_too_large_is_refused() {
    let trial = Trial::new();
    fs::create_dir(trial.path("user.toml")).unwrap();
    assert_eq!(trial.said(), ["user.toml: this file cannot be read: it is not a file"]);
    let large = format!("#{}\n", "x".repeat(1024 * 1024));
    check_said(&large, &["user.toml: this file cannot be read: it is larger than 1048576 bytes"]);
}

#[test]
fn a_report_is_readable_by_people_and_programs() {
    let trial = Trial::user("[channels.a]\nkind = \"console\"\n[serve]\nlisen = 1\n");
    let report = config::check(&trial.sources);
    let json = report.to_json();
    assert_eq!(json["is_right"], false);
    assert_eq!(json["channels"][0]["kind"], "console");
    assert_eq!(json["findings"][0]["line"], 4);
    assert_eq!(json["findings"][0]["hint"], "did you mean `listen`?");
    let text = report.to_string();
    assert!(text.contains("user.toml: read\n") && text.contains("machine.toml: not there\n"));
    assert!(text.contains("  hint: did you mean `listen`?\n"), "{text}");
}

/// What a page of `deskbell config show` says can be read again and comes to the same.
#[test]
fn what_is_shown_is_toml_that_comes_to_the_same() {
    let text = r#"
keep_history = "forever"
[channels.a]
kind = "ntfy"
topic = "t"
[[routes]]
level = "error.."
channels = ["a"]
[tracing]
targets = [{ name = "llm_notify", level = "off" }]
hide_contexts = ["performance"]
[serve]
listen = "127.0.0.1:9"
"#;
    let trial = Trial::user(text);
    let (config, shown) = (trial.config(), config::show(&trial.sources).unwrap());
    assert!(shown.lines().any(|line| line.starts_with("attempts") && line.ends_with("# built in")));
    let again = trial.with("user.toml", &shown).config();
    assert_eq!(again, Config { mcp: again.mcp.clone(), ..config });
}
