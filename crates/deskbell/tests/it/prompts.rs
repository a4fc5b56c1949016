//! Prompts, over MCP and in the terminal.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use std::fs;

use serde_json::{Value, json};

use crate::support::{Desk, McpClient};

/// The example of seed S0, with its level and category.
const SEED: &str = "{% if complexity > 5 %}\n{{ notify \"Complex refactoring detected\" }}\n{% endif %}\n\
    {% notify \"back up first\", level: \"warn\", context: \"safety\" %}";

fn write(desk: &Desk, file: &str, text: &str) {
    let path = desk.folder().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn names(client: &mut McpClient) -> Vec<String> {
    let list = client.request("prompts/list", &json!({}));
    let prompts = list["result"]["prompts"].as_array().unwrap_or_else(|| panic!("{list}"));
    prompts.iter().map(|prompt| prompt["name"].as_str().unwrap().to_owned()).collect()
}

fn history(desk: &Desk) -> Vec<Value> {
    let (_, stdout, _) = desk.run(&["history", "--json"]);
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_prompt_notifies_once_as_its_client_and_leaves_no_text_rows_14_and_15() {
    let desk = Desk::new();
    write(&desk, "prompts/refactor.liquid", SEED);
    let mut client = desk.mcp(&[]);
    let server = client.initialize();
    assert_eq!(server["result"]["capabilities"]["prompts"], json!({}));
    assert_eq!(server["result"]["capabilities"]["completions"], json!({}));
    let params = json!({ "name": "refactor", "arguments": { "complexity": "7" } });
    let answer = client.request("prompts/get", &params);
    let message = &answer["result"]["messages"][0];
    assert_eq!(
        (&message["role"], &message["content"]["text"]),
        (&json!("user"), &json!("")),
        "{answer}"
    );
    let events = history(&desk);
    let said: Vec<_> = events
        .iter()
        .map(|event| (event["text"].clone(), event["level"].clone(), event["context"].clone()))
        .collect();
    assert_eq!(said[0].0, "Complex refactoring detected");
    assert_eq!(said[1], (json!("back up first"), json!("warning"), json!("safety")));
    assert_eq!(said.len(), 2);
    assert_eq!(events[0]["source"]["client"], "test-client");
    let folder = fs::canonicalize(desk.folder()).unwrap();
    assert_eq!(events[0]["source"]["project"], folder.to_str().unwrap());
    let params = json!({ "name": "refactor", "arguments": { "complexity": "3" } });
    assert!(client.request("prompts/get", &params)["result"].is_object());
    assert_eq!(history(&desk).len(), 3, "the condition does not hold");
}

#[test]
fn prompts_are_listed_with_their_arguments_and_completed_row_100() {
    let desk = Desk::new();
    let mut client = desk.mcp(&[]);
    client.initialize();
    assert_eq!(names(&mut client), ["notify", "notify-guidelines"]);
    let text = client.request("prompts/get", &json!({ "name": "notify" }));
    assert!(
        text["result"]["messages"][0]["content"]["text"]
            .as_str()
            .unwrap()
            .contains("wait_for_response")
    );
    let complete = |client: &mut McpClient, argument: &str, value: &str| {
        let params = json!({
            "ref": { "type": "ref/prompt", "name": "notify-guidelines" },
            "argument": { "name": argument, "value": value },
        });
        client.request("completion/complete", &params)
    };
    let completed = complete(&mut client, "language", "z");
    assert_eq!(completed["result"]["completion"]["values"], json!(["zh"]), "{completed}");
    assert_eq!(complete(&mut client, "tongue", "z")["error"]["code"], -32602);
    for wrong in [
        json!({ "name": "other" }),
        json!({ "name": "notify", "arguments": { "x": "y" } }),
        json!({ "name": "notify", "arguments": { "topic": ["y"] } }),
        json!({ "arguments": {} }),
    ] {
        assert_eq!(client.request("prompts/get", &wrong)["error"]["code"], -32602, "{wrong}");
    }
    let cursor = client.request("prompts/list", &json!({ "cursor": "nowhere" }));
    assert_eq!(cursor["error"]["code"], -32602, "{cursor}");
}

#[test]
fn many_prompts_come_page_by_page_each_once() {
    let desk = Desk::new();
    for number in 0..120 {
        write(&desk, &format!("prompts/p{number:03}.md"), "# One of many\n{{ who }}");
    }
    let mut client = desk.mcp(&[]);
    client.initialize();
    let (mut seen, mut params, mut pages) = (Vec::new(), json!({}), 0);
    loop {
        let page = client.request("prompts/list", &params)["result"].clone();
        let prompts = page["prompts"].as_array().unwrap();
        assert!(prompts.len() <= 50);
        seen.extend(prompts.iter().map(|prompt| prompt["name"].as_str().unwrap().to_owned()));
        pages += 1;
        match page["nextCursor"].as_str() {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    assert_eq!((pages, seen.len()), (3, 122));
    assert!(seen.is_sorted());
    let list = client.request("prompts/list", &json!({ "cursor": seen[100] }));
    let first = &list["result"]["prompts"][0];
    assert_eq!(first["arguments"], json!([{ "name": "who", "required": false }]), "{first}");
}

#[test]
fn a_projects_prompts_are_read_once_the_user_trusts_it() {
    let desk = Desk::new();
    write(&desk, ".deskbell.toml", "");
    write(&desk, ".deskbell/prompts/theirs.md", "{{ notify \"theirs\" }}");
    let mut client = desk.mcp(&[]);
    client.initialize();
    assert_eq!(names(&mut client), ["notify", "notify-guidelines"]);
    assert_eq!(desk.run(&["trust"]).0, 0);
    assert_eq!(names(&mut client), ["notify", "notify-guidelines", "theirs"]);
    fs::write(desk.folder().join(".deskbell.toml"), "[[routes]]\nchannels = []\n").unwrap();
    assert_eq!(names(&mut client), ["notify", "notify-guidelines"], "it is not as it was trusted");
}

#[test]
fn a_prompt_that_is_wrong_says_where_and_harms_nobody() {
    let desk = Desk::new();
    write(&desk, "prompts/broken.liquid", "fine\n{% if a %}");
    write(
        &desk,
        "prompts/endless.liquid",
        "{% for a in (1..9999) %}{% for b in (1..9999) %}{% endfor %}{% endfor %}",
    );
    let mut client = desk.mcp(&[]);
    client.initialize();
    for (name, said) in [("broken", "broken.liquid:2:"), ("endless", "more than 100000 steps")] {
        let error = client.request("prompts/get", &json!({ "name": name }))["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(said), "{error}");
        assert!(!message.contains(desk.folder().to_str().unwrap()), "{error}");
        let (code, stdout, stderr) = desk.run(&["prompt", "render", name]);
        assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
    assert_eq!(history(&desk).len(), 0);
    assert!(names(&mut client).contains(&"broken".to_owned()));
}

#[test]
fn prompts_are_listed_and_filled_in_in_the_terminal_row_14() {
    let desk = Desk::new();
    write(&desk, "prompts/refactor.md", SEED);
    let (code, stdout, _) = desk.run(&["prompt", "list"]);
    assert_eq!(code, 0);
    assert!(stdout.contains("refactor") && stdout.contains("[complexity=…]"), "{stdout}");
    let (_, stdout, _) = desk.run(&["prompt", "list", "--json"]);
    let listed: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(listed[2]["origin"], "user");
    let (code, stdout, stderr) = desk.run(&["prompt", "render", "refactor", "complexity=9"]);
    assert_eq!((code, stdout.as_str()), (0, ""), "{stderr}");
    assert!(stderr.contains("Complex refactoring detected"), "{stderr}");
    let (_, stdout, _) = desk.run(&["prompt", "render", "refactor", "--json"]);
    let told: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(told["notices"][0]["level"], "warning");
    let events = history(&desk);
    assert_eq!(events.len(), 3);
    assert_eq!(
        (&events[2]["id"], &events[2]["source"]["client"]),
        (&told["notices"][0]["event"], &json!("deskbell prompt"))
    );
    let (_, stdout, _) = desk.run(&["prompt", "render", "notify-guidelines", "language=zh"]);
    assert!(stdout.starts_with("当需要"), "{stdout}");
    for (arguments, said) in [
        (&["prompt", "render", "nothing"][..], "there are: notify"),
        (&["prompt", "render", "refactor", "x"], "expected NAME=VALUE"),
        (&["prompt", "render", "refactor", "x=1"], "one of the arguments `complexity`"),
        (&["prompt", "render", "refactor", "complexity=1", "complexity=2"], "given twice"),
    ] {
        let (code, _, stderr) = desk.run(arguments);
        assert_eq!(code, 2, "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
}
