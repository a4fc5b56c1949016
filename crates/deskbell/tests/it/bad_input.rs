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
fn check_refused(client: &mut McpClient, tool: &str, arguments: &Value, named: &str) {
    let result = client.call(tool, arguments);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(result["isError"], true, "{tool} took {named}: {text:.300}");
    assert!(text.contains(named), "{tool}: {text:.300} does not name `{named}`");
    assert!(text.len() < 1_000, "{tool}: {} bytes about {named}", text.len());
    let odd = |character: char| character.is_control() && character != '\n';
    assert!(!text.contains(odd) && !text.contains('\u{202e}'), "{tool}: {text:?}");
}

/// Of all that was refused nothing is kept; the next valid call works, and its text is the first to be sent.
#[track_caller]
fn check_nothing_came_of_it(desk: &Desk, client: &mut McpClient, far_end: &FarEnd) {
    for list in ["events", "deliveries"] {
        assert_eq!(desk.get(&format!("/v1/{list}")).json()[list], json!([]));
    }
    let result = client.call("notify_send", &json!({ "title": "t", "content": "still here" }));
    assert_eq!(result["structuredContent"]["channels_count"], 1, "{result}");
    let [first] = &far_end.wait_for(1)[..] else { panic!("more than one request") };
    assert!(first.body.contains("still here"), "{first:?}");
}

#[test]
fn each_tool_refuses_what_is_missing_blank_or_of_another_type_row_3() {
    let (desk, far_end) = desk_with_far_end();
    let mut client = desk.mcp(&[]);
    client.initialize();
    for (tool, valid) in valid_calls() {
        for name in required(tool) {
            check_refused(&mut client, tool, &without(&valid, name), name);
            for wrong in [
                json!(null),
                json!(7),
                json!(true),
                json!(["a"]),
                json!({ "a": 1 }),
                json!(""),
                json!(" \n\t"),
            ] {
                check_refused(&mut client, tool, &with(&valid, name, wrong), name);
            }
        }
    }
    check_nothing_came_of_it(&desk, &mut client, &far_end);
}

#[test]
fn each_tool_refuses_wrong_optional_arguments() {
    let (desk, far_end) = desk_with_far_end();
    let mut client = desk.mcp(&[]);
    client.initialize();
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
        check_refused(&mut client, "notify_event", &with(event, name, wrong), name);
    }
    for wrong in [json!(7), json!(-0.5), json!("half"), json!([0.5])] {
        check_refused(
            &mut client,
            "notify_event",
            &with(event, "data", json!({ "progress": wrong })),
            "progress",
        );
    }
    check_nothing_came_of_it(&desk, &mut client, &far_end);
}

#[test]
fn huge_and_deep_values_are_refused_and_named() {
    let (desk, far_end) = desk_with_far_end();
    let mut client = desk.mcp(&[]);
    client.initialize();
    let huge = "x".repeat(10 * 1024 * 1024);
    check_refused(&mut client, "notify", &json!({ "message": huge }), "message");
    check_refused(&mut client, "notify_send", &json!({ "title": "t", "content": huge }), "content");
    check_refused(&mut client, "notify_send", &json!({ "title": huge, "content": "c" }), "title");
    let deep = (0..100).fold(json!(1), |inner, _| json!({ "a": inner }));
    let event = json!({ "run_id": "r", "event": "start", "message": "m", "data": deep });
    check_refused(&mut client, "notify_event", &event, "data");
    let wide = json!({ "run_id": "r", "event": "start", "message": "m", "data": { "blob": "y".repeat(1024 * 1024) } });
    check_refused(&mut client, "notify_event", &wide, "data");
    // Deeper than a reader of JSON follows: still an answer with the request's id.
    let nested = format!("{}1{}", "[".repeat(50_000), "]".repeat(50_000));
    client.send_raw(
        format!(r#"{{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{{"name":"notify","arguments":{{"message":{nested}}}}}}}"#)
            .as_bytes(),
    );
    client.send_raw(b"\n");
    let answer = client.answer(&json!("deep"));
    assert!(answer["error"].is_object() || answer["result"]["isError"] == true, "{answer}");
    check_nothing_came_of_it(&desk, &mut client, &far_end);
}

#[test]
fn odd_characters_are_taken_and_defused_row_12() {
    let desk = Desk::new();
    let mut client = desk.mcp(&[]);
    client.initialize();
    for odd in [
        "nul \u{0} byte",
        "esc \u{1b}[31m red",
        "bidi \u{202e}gnp",
        "tag \u{e0041}",
        "line\r\nINFO forged",
    ] {
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
