//! Hostile and broken input at every door: a clear answer each, the process alive, nothing sent, nothing lost.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use serde_json::{Value, json};

use crate::support::{Desk, FarEnd, McpClient, until};

/// A desk whose only channel is a far end.
fn desk_with_far_end() -> (Desk, FarEnd) {
    let far_end = FarEnd::start();
    let desk = Desk::with_config(&format!(
        "[channels.far]\nkind = \"webhook_json\"\nurl = \"{}\"\n",
        far_end.url()
    ));
    (desk, far_end)
}

/// A door through which tools are called.
enum Door<'a> {
    Pipe(McpClient),
    Http(&'a Desk),
}

/// Every door, open.
fn doors(desk: &Desk) -> [Door<'_>; 2] {
    let mut client = desk.mcp(&[]);
    client.initialize();
    [Door::Pipe(client), Door::Http(desk)]
}

impl Door<'_> {
    /// Calls a tool and gives its result.
    #[track_caller]
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        match self {
            Self::Pipe(client) => client.call(tool, arguments),
            Self::Http(desk) => call_over_http(desk, tool, &arguments.to_string()),
        }
    }
}

/// Calls a tool with the text of its arguments in the era without sessions; gives its result, or the error.
#[track_caller]
fn call_over_http(desk: &Desk, tool: &str, arguments: &str) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"h","method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{meta}}}}}"#
    );
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
    ];
    let answer = desk.request("POST", "/mcp", &headers, Some(&body));
    let mut data = answer.body.lines().filter_map(|line| line.strip_prefix("data: "));
    let message = data.rfind(|data| !data.is_empty()).unwrap_or(&answer.body);
    let message: Value = serde_json::from_str(message)
        .unwrap_or_else(|error| panic!("{error} in {} {:.300}", answer.status, answer.body));
    message.get("result").unwrap_or(&message).clone()
}

/// A complete and valid call of each tool.
fn valid_calls() -> Vec<(&'static str, Value)> {
    vec![
        ("notify", json!({ "message": "m", "level": "info", "context": "safety" })),
        ("notify_send", json!({ "title": "t", "content": "c" })),
        (
            "notify_event",
            json!({ "run_id": "r", "event": "start", "message": "m", "data": {}, "timestamp": "2026-01-01T00:00:00Z" }),
        ),
    ]
}

/// The required arguments of each tool.
fn required(tool: &str) -> &'static [&'static str] {
    match tool {
        "notify" => &["message"],
        "notify_send" => &["title", "content"],
        _ => &["run_id", "event", "message"],
    }
}

fn with(arguments: &Value, name: &str, value: Value) -> Value {
    let mut arguments = arguments.clone();
    arguments[name] = value;
    arguments
}

fn without(arguments: &Value, name: &str) -> Value {
    let mut arguments = arguments.clone();
    arguments.as_object_mut().unwrap().remove(name);
    arguments
}

/// The tool refuses the call, and its text names what is wrong.
#[track_caller]
fn check_refused(door: &mut Door<'_>, tool: &str, arguments: &Value, named: &str) {
    let result = door.call(tool, arguments);
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result:.300}"));
    assert_eq!(result["isError"], true, "{tool} took {named}: {text:.300}");
    assert!(text.contains(named), "{tool}: {text:.300} does not name `{named}`");
    assert!(text.len() < 1_000, "{tool}: {} bytes about {named}", text.len());
    let odd = |character: char| character.is_control() && character != '\n';
    assert!(!text.contains(odd) && !text.contains('\u{202e}'), "{tool}: {text:?}");
}

/// Of all that was refused nothing is kept; the next valid call works, and its text is the first to be sent.
#[track_caller]
fn check_nothing_came_of_it(desk: &Desk, door: &mut Door<'_>, far_end: &FarEnd) {
    for list in ["events", "deliveries"] {
        assert_eq!(desk.get(&format!("/v1/{list}")).json()[list], json!([]));
    }
    let result = door.call("notify_send", &json!({ "title": "t", "content": "still here" }));
    assert_eq!(result["structuredContent"]["channels_count"], 1, "{result}");
    let [first] = &far_end.wait_for(1)[..] else { panic!("more than one request") };
    assert!(first.body.contains("still here"), "{first:?}");
}

/// Runs `check` on a desk of its own for each door; nothing may come of what it does.
#[track_caller]
fn at_every_door(check: impl Fn(&mut Door<'_>)) {
    for place in 0..2 {
        let (mut desk, far_end) = desk_with_far_end();
        desk.serve();
        let door = &mut doors(&desk)[place];
        check(door);
        check_nothing_came_of_it(&desk, door, &far_end);
    }
}

#[test]
fn each_tool_refuses_what_is_missing_blank_or_of_another_type_row_3() {
    at_every_door(|door| {
        for (tool, valid) in valid_calls() {
            for name in required(tool) {
                check_refused(door, tool, &without(&valid, name), name);
                for wrong in [
                    json!(null),
                    json!(7),
                    json!(true),
                    json!(["a"]),
                    json!({ "a": 1 }),
                    json!(""),
                    json!(" \n\t"),
                ] {
                    check_refused(door, tool, &with(&valid, name, wrong), name);
                }
            }
        }
    });
}

#[test]
fn each_tool_refuses_wrong_optional_arguments() {
    at_every_door(|door| {
        let event = &valid_calls()[2].1;
        for (name, wrong) in [
            ("event", json!("stop")),
            ("data", json!("text")),
            ("data", json!([1])),
            ("timestamp", json!("yesterday")),
            ("timestamp", json!(7)),
            ("run_id", json!("a\nb")),
            ("run_id", json!("x".repeat(10_000))),
        ] {
            check_refused(door, "notify_event", &with(event, name, wrong), name);
        }
        for wrong in [json!(7), json!(-0.5), json!("half"), json!([0.5])] {
            let data = json!({ "progress": wrong });
            check_refused(door, "notify_event", &with(event, "data", data), "progress");
        }
    });
}

#[test]
fn huge_and_deep_values_are_refused_and_named_rows_12_and_56() {
    at_every_door(|door| {
        let huge = "x".repeat(10 * 1024 * 1024);
        for (tool, valid) in valid_calls() {
            for name in texts_of(&valid).iter().filter(|name| !is_lenient(name)) {
                check_refused(door, tool, &with(&valid, name, json!(huge)), name);
            }
        }
        let event = &valid_calls()[2].1;
        let deep = (0..100).fold(json!(1), |inner, _| json!({ "a": inner }));
        check_refused(door, "notify_event", &with(event, "data", deep), "data");
        let wide = json!({ "blob": huge });
        check_refused(door, "notify_event", &with(event, "data", wide), "data");
        // Deeper than a reader of JSON follows: still an answer, on a pipe with the request's id.
        let nested = format!("{}1{}", "[".repeat(50_000), "]".repeat(50_000));
        let nested = format!(r#"{{"message":{nested}}}"#);
        let answer = match door {
            Door::Http(desk) => call_over_http(desk, "notify", &nested),
            Door::Pipe(client) => {
                client.send_raw(
                    format!(r#"{{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{{"name":"notify","arguments":{nested}}}}}"#)
                        .as_bytes(),
                );
                client.send_raw(b"\n");
                client.answer(&json!("deep"))
            }
        };
        assert!(answer["error"].is_object() || answer["result"]["isError"] == true, "{answer}");
    });
}

/// Whether a wrong value of the argument costs no message: seed S0 takes it as if it were not there.
fn is_lenient(name: &str) -> bool {
    ["level", "context"].contains(&name)
}

#[test]
fn of_a_huge_level_or_category_little_is_kept() {
    let mut desk = Desk::new();
    desk.serve();
    for mut door in doors(&desk) {
        for name in ["level", "context"] {
            let huge = json!("x".repeat(10 * 1024 * 1024));
            let result = door.call("notify", &with(&json!({ "message": "m" }), name, huge));
            let length = result.to_string().len();
            assert!(length < 2_000, "{length} bytes about {name}");
            let newest = desk.get("/v1/events?limit=1").body;
            assert!(newest.len() < 2_000, "{} bytes kept of {name}", newest.len());
        }
    }
}

/// The names of the arguments that are texts.
fn texts_of(arguments: &Value) -> Vec<String> {
    let arguments = arguments.as_object().unwrap().iter();
    arguments.filter(|(_, value)| value.is_string()).map(|(name, _)| name.clone()).collect()
}

const ODD: [&str; 5] = [
    "nul \u{0} byte",
    "esc \u{1b}[31m red",
    "bidi \u{202e}gnp",
    "tag \u{e0041}",
    "line\r\nINFO forged",
];

#[test]
fn odd_characters_in_any_argument_are_taken_whole_or_refused_by_name() {
    let mut desk = Desk::new();
    desk.serve();
    let mut run = 0;
    for mut door in doors(&desk) {
        for (tool, valid) in valid_calls() {
            for name in texts_of(&valid) {
                for odd in ODD {
                    run += 1;
                    let mut arguments = with(&valid, &name, json!(odd));
                    if tool == "notify_event" && name != "run_id" {
                        arguments["run_id"] = json!(format!("run-{run}"));
                    }
                    if !["message", "title", "content"].contains(&name.as_str()) {
                        check_refused_or_defused(&mut door, tool, &arguments, &name);
                        continue;
                    }
                    let result = door.call(tool, &arguments);
                    assert_eq!(result["isError"], false, "{tool} {name} {odd:?}: {result}");
                    let newest = desk.get("/v1/events?limit=1").json();
                    let field = if name == "title" { "title" } else { "text" };
                    assert_eq!(newest["events"][0][field], odd, "{tool} {name}");
                }
            }
        }
    }
}

/// Of an argument that says what a message is, either nothing is taken or nothing odd is shown.
#[track_caller]
fn check_refused_or_defused(door: &mut Door<'_>, tool: &str, arguments: &Value, name: &str) {
    let result = door.call(tool, arguments);
    if result["isError"] == true {
        check_refused(door, tool, arguments, name);
        return;
    }
    let shown = result["structuredContent"].as_object().unwrap();
    let shown = shown.values().filter_map(Value::as_str).collect::<String>();
    let odd = |character: char| character.is_control() || character == '\u{202e}';
    assert!(!shown.contains(odd), "{tool} took {name}: {result}");
}

#[test]
fn odd_characters_are_shown_as_one_clean_line_row_12() {
    let desk = Desk::new();
    let mut client = desk.mcp(&[]);
    client.initialize();
    for odd in ODD {
        let result = client.call("notify", &json!({ "message": odd }));
        // The answer repeats the message unmodified (row 2); what a person sees is one clean line.
        assert_eq!(result["content"][0]["text"], format!("Notification sent: {odd}"));
    }
    until("five lines on stderr", || (client.stderr().lines().count() >= 5).then_some(()));
    let stderr = client.stderr();
    assert!(!stderr.contains(['\u{1b}', '\u{202e}', '\u{0}', '\r']), "{stderr:?}");
    assert!(!stderr.lines().any(|line| line.starts_with("INFO forged")), "{stderr:?}");
}

#[test]
fn what_is_no_message_gets_an_error_and_the_next_one_works() {
    let desk = Desk::new();
    let mut client = desk.mcp(&[]);
    client.initialize();
    for (bytes, code) in [
        (&b"this is no JSON\n"[..], -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"meth\n", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}\n", -32700),
        (b"{}\n", -32600),
        (b"42\n", -32600),
        (b"\"text\"\n", -32600),
        (b"[]\n", -32600),
        (b"Content-Length: many\r\n\r\n", -32700),
    ] {
        client.send_raw(bytes);
        let answer = client.receive();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&Value::Null, &json!(code)),
            "{answer}"
        );
    }
    client.send_raw(b"\n\r\n  \n");
    let answer = client.request("no/such/method", &json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let answer = client.request("tools/call", &json!({ "name": "no_such_tool", "arguments": {} }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let answer = client.request("tools/call", &json!({ "arguments": {} }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let answer = client.request("tools/call", &json!([1, 2]));
    assert!(answer["error"].is_object(), "{answer}");
    let result = client.call("notify", &json!({ "message": "after all that" }));
    assert_eq!(result["isError"], json!(false));
}

#[test]
fn unknown_arguments_are_reported_and_do_no_harm() {
    let desk = Desk::new();
    let mut client = desk.mcp(&[]);
    client.initialize();
    for (tool, valid) in valid_calls() {
        let result = client.call(tool, &with(&valid, "surprise", json!({ "a": [1, 2] })));
        assert_ne!(result["isError"], true, "{tool}: {result}");
        assert_eq!(result["structuredContent"]["ignored"], json!(["surprise"]), "{tool}: {result}");
    }
}

#[test]
fn a_message_that_ends_in_the_middle_does_no_harm() {
    let desk = Desk::new();
    let mut client = desk.mcp(&[]);
    client.initialize();
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{\"name\":\"notify\",\"argum");
    let (code, lines) = client.close();
    assert_eq!(code, Some(0));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("-32700"));
    // The daemon goes on for the next client.
    let mut next = desk.mcp(&[]);
    next.initialize();
    next.call("notify", &json!({ "message": "next" }));
}

#[test]
fn what_nobody_would_see_is_told_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let (keys, bus) = (folder.path().join("push.json"), folder.path().join("bus"));
    let config = format!(
        "[channels.browser]\nkind = 'web_push'\nsubject = 'mailto:ada@example.com'\n\
         key_file = '{0}'\nsubscription_file = '{0}'\n\
         [channels.toast]\nkind = 'desktop'\nbus = 'unix:path={1}'\n",
        keys.display(),
        bus.display()
    );
    let mut desk = Desk::with_config(&config);
    desk.serve();
    let unreadable = "`key_file` cannot be read: ";
    let no_bus = format!("the bus at `{}` is missing", bus.display());
    let (code, found, _) = desk.run(&["config", "check"]);
    assert!(code == 0 && found.contains(unreadable) && found.contains(&no_bus), "{found}");
    let (_, found, _) = desk.run(&["doctor"]);
    assert!(found.contains(unreadable) && found.contains(&no_bus), "{found}");
    let (code, shown, told) = desk.run(&["channel", "preview", "browser", "--body", "b"]);
    assert!(code == 1 && shown.is_empty() && told.contains(unreadable), "{shown} {told}");
    let preview = json!({ "channel": "browser", "body": "b" });
    let answer = desk.post("/v1/channels/preview", &preview).json();
    assert!(answer["failure"].as_str().unwrap().contains(unreadable), "{answer}");
    let (code, shown, told) = desk.run(&["channel", "preview", "toast", "--body", "b"]);
    assert!(code == 0 && shown.contains("desktop") && told.contains(&no_bus), "{shown} {told}");
}

#[test]
fn an_address_is_previewed_whatever_is_wrong_with_the_configuration() {
    let desk = Desk::with_config("this is = no TOML\n[[[");
    let (code, shown, told) = desk.run(&["channel", "preview", "ntfy://builds", "--body", "b"]);
    assert!(code == 0 && shown.contains("https://ntfy.sh/"), "{shown} {told}");
    let (code, _, told) = desk.run(&["channel", "preview", "ntfyy://builds", "--body", "b"]);
    assert!(code != 0 && told.contains("did you mean `ntfy://`?"), "{told}");
    let (code, _, _) = desk.run(&["channel", "preview", "phone", "--body", "b"]);
    assert_ne!(code, 0);
}
