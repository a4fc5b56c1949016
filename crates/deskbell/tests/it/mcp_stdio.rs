//! MCP over stdin and stdout.
//!
//! The tests speak the daemon's side of the local socket as a bridge does: numbered lines in, plain lines out.

mod client;
mod notify;
mod push;
mod resources;
mod told;

use std::time::Duration;

use deskbell::{bridge::hello::Hello, config::Config, journal::JournalError};
use serde_json::{Value, json};
use tokio::time::timeout;

use self::client::{Client, DEADLINE, text};
use crate::mcp_app::Parts;

/// What every request of the era without sessions carries.
fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "modern-client", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {}
    })
}

/// A result of a push without the ids of event and run, both in its text and in its structured content.
fn but_for_its_ids(mut result: Value) -> Value {
    for name in ["delivery_id", "run_id"] {
        let id = result.pointer_mut(&format!("/structuredContent/{name}")).map(Value::take);
        if let (Some(Value::String(id)), Some(Value::String(text))) =
            (id, result.pointer_mut("/content/0/text"))
        {
            *text = text.replace(&id, name);
        }
    }
    result
}

#[tokio::test]
async fn every_spelling_of_a_name_is_taken_in_every_profile_row_103_c1() {
    let parts = Parts::with_channels(&["phone"]);
    for profile in ["unified", "swissarmyhammer", "mcp-push"] {
        let mut client = Client::with_profile(&parts.app, Some(profile)).await;
        for name in ["notify", "notify_log", "notify_create"] {
            let result = client.call(name, json!({ "message": "m" })).await;
            assert_eq!(text(&result), "Notification sent: m", "{profile} {name}");
        }
        let push = json!({ "title": "t", "content": "c" });
        let step = json!({
            "run_id": profile, "event": "start", "message": "m", "timestamp": "2026-01-01T00:00:00Z"
        });
        for (seed, alias, arguments) in
            [("notify.send", "notify_send", push), ("notify.event", "notify_event", step)]
        {
            let result = but_for_its_ids(client.call(seed, arguments.clone()).await);
            assert_eq!(result["structuredContent"]["success"], true, "{profile} {seed}: {result}");
            // A run starts once, so the same step is one of another run.
            let mut again = arguments;
            if again["run_id"].is_string() {
                again["run_id"] = json!(format!("{profile}-2"));
            }
            assert_eq!(but_for_its_ids(client.call(alias, again).await), result, "{profile}");
        }
        client.end().await;
    }
}

#[tokio::test]
async fn a_call_that_is_sent_again_is_accepted_once_and_gets_the_same_answer() {
    let parts = Parts::with_channels(&["team", "phone"]);
    let hello = Hello { key: "bridge-again".to_owned(), ..Hello::default() };
    let calls = [
        json!({ "name": "notify", "arguments": { "message": "m", "level": "error" } }),
        json!({ "name": "notify_send", "arguments": { "title": "quiet", "content": "c" } }),
        json!({ "name": "notify_send", "arguments": { "title": "t", "content": "c" } }),
        json!({ "name": "notify_event", "arguments": { "run_id": "r", "event": "start", "message": "m" } }),
        json!({ "name": "notify_event", "arguments": { "run_id": "r", "event": "end", "message": "m" } }),
    ];
    let mut answers = Vec::new();
    for _connection in 0..2 {
        let mut client = Client::connect(&parts.app, hello.clone());
        client.initialize().await;
        for call in &calls {
            answers.push(client.request("tools/call", call.clone()).await);
        }
        client.end().await;
    }
    let (first, again) = answers.split_at(calls.len());
    assert_eq!(first, again);
    assert_eq!(parts.events().await.len(), calls.len());
}

#[tokio::test]
async fn a_busy_journal_is_an_answer_with_advice() {
    let parts = Parts::with_channels(&["phone"]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let busy = JournalError::Busy { retry_after: Duration::from_millis(250) };
    parts.journal.fail_with(Some(busy));
    let result = client.call("notify", json!({ "message": "m" })).await;
    assert_eq!(result["isError"], true);
    assert_eq!(text(&result), "the journal is busy; try again after 250 ms");
    parts.journal.fail_with(None);
    let result = client.call("notify", json!({ "message": "m" })).await;
    assert_eq!(result["isError"], false);
}

#[tokio::test]
async fn calls_side_by_side_are_each_answered_on_a_line_row_53() {
    let parts = Parts::with_channels(&["phone"]);
    let mut client = Client::with_profile(&parts.app, None).await;
    for id in 100..164 {
        let call = json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "notify", "arguments": { "message": format!("m{id}") } }
        });
        client.write(&id.to_string(), &call).await;
    }
    let mut ids = Vec::new();
    for _ in 100..164 {
        let answer = client.answer().await;
        let id = answer["id"].as_i64().unwrap();
        assert_eq!(text(&answer["result"]), format!("Notification sent: m{id}"));
        ids.push(id);
    }
    ids.sort_unstable();
    assert_eq!(ids, (100..164).collect::<Vec<_>>());
    // Each was told its client too, as far as a minute has room.
    let told = client.told();
    assert_eq!(told.len(), 60);
    assert!(told.iter().all(|told| told["method"] == "notifications/message"), "{told:?}");
}

#[tokio::test]
async fn malformed_requests_are_answered_with_their_code() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let table = [
        ("tools/call", json!({ "arguments": {} }), -32602),
        ("tools/call", json!({ "name": "notify", "arguments": [] }), -32602),
        ("tools/call", json!({ "name": "no_such_tool" }), -32602),
        ("tools/list", json!(7), -32600),
        ("no/such/method", json!({}), -32601),
        ("logging/setLevel", json!({ "level": "loud" }), -32602),
    ];
    for (method, params, code) in table {
        let answer = client.request(method, params).await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    for (line, id, code) in [
        ("0 {\"jsonrpc\":\"2.0\",\"id\":3,", json!(null), -32700),
        ("0 {\"jsonrpc\":\"1.0\",\"id\":3,\"method\":\"ping\"}", json!(3), -32600),
        ("0 {\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", json!(null), -32600),
        ("0 42", json!(null), -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}", json!(null), -32600),
        ("0 \u{fffd}", json!(null), -32700),
    ] {
        client.write_raw(&format!("{line}\n")).await;
        let answer = client.answer().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{line}");
    }
    assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn what_comes_before_the_handshake_does_not_end_the_connection() {
    let parts = Parts::with_channels(&[]);
    let hello = Hello { key: "early".to_owned(), ..Hello::default() };
    let mut client = Client::connect(&parts.app, hello);
    client.write("0", &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    let answer = client.request("tools/list", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602, "a request of neither era");
    let answer = client.initialize().await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(answer["result"]["serverInfo"]["name"], "deskbell");
    let instructions = answer["result"]["instructions"].as_str().unwrap();
    assert!(instructions.chars().count() <= 600);
    assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn the_era_without_sessions_is_served_on_the_same_socket() {
    let parts = Parts::with_channels(&["phone"]);
    let hello = Hello { key: "modern".to_owned(), ..Hello::default() };
    let mut client = Client::connect(&parts.app, hello);
    let meta = modern_meta();
    let discovered = client.request("server/discover", json!({ "_meta": meta })).await;
    assert_eq!(discovered["result"]["resultType"], "complete");
    let params = json!({ "name": "notify", "arguments": { "message": "m" }, "_meta": meta });
    for (method, params) in [("tools/list", json!({ "_meta": meta })), ("tools/call", params)] {
        let answer = client.request(method, params).await;
        let result = &answer["result"];
        assert_eq!(result["resultType"], "complete", "{answer}");
        let identity = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(identity["name"], "deskbell", "{answer}");
    }
    let source = parts.events().await.remove(0).event.source;
    assert_eq!(source.client.as_deref(), Some("modern-client"));
    let answer =
        client.request("logging/setLevel", json!({ "level": "info", "_meta": meta })).await;
    assert_eq!(answer["error"]["code"], -32601);
}

#[tokio::test]
async fn an_unknown_profile_is_told_to_the_person_and_to_the_client() {
    let parts = Parts::new(&[], Vec::new(), Config::default());
    let hello = Hello { profile: Some("loud".to_owned()), ..Hello::default() };
    let mut client = Client::connect(&parts.app, hello);
    let answer = client.initialize().await;
    let expected = "`profile` is \"loud\"; expected one of unified, swissarmyhammer, mcp-push";
    assert_eq!(answer["error"]["message"], expected);
    assert_eq!(client.others, [format!("!deskbell: {expected}")]);
    client.end().await;
}

#[tokio::test]
async fn the_configuration_chooses_profile_and_names_and_the_hello_goes_before_it() {
    let mut config = Config::default();
    config.mcp.profile = Some("mcp-push".to_owned());
    config.mcp.tool_names = Some(deskbell::mcp::profiles::ToolNames::Underscore);
    let parts = Parts::new(&[], Vec::new(), config);
    let names = async |hello: Hello| {
        let mut client = Client::connect(&parts.app, hello);
        client.initialize().await;
        let answer = client.request("tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(Hello::default()).await, ["notify_send", "notify_event"]);
    let dotted = Hello {
        profile: Some("unified".to_owned()),
        tool_names: Some("dot".to_owned()),
        ..Hello::default()
    };
    assert_eq!(names(dotted).await, ["notify", "notify.send", "notify.event"]);
}

#[tokio::test]
async fn stopping_ends_the_connection_after_the_answers() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
    client.stop.cancel();
    let end = timeout(DEADLINE, client.lines.next_line()).await.unwrap().unwrap();
    assert_eq!(end, None);
    timeout(DEADLINE, client.serving).await.unwrap().unwrap();
}
