//! MCP over stdin and stdout.
//!
//! The tests speak the daemon's side of the local socket as a bridge does: numbered lines in, plain lines out.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use deskbell::{app::App, bridge::hello::Hello, config::Config, journal::JournalError, mcp};
use deskbell_core::{Level, event::Kind};
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf,
        WriteHalf,
    },
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::mcp_app::Parts;

/// No answer takes this long.
const DEADLINE: Duration = Duration::from_secs(20);

/// A bridge and the client behind it.
struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    number: u64,
    /// What came and was no answer.
    others: Vec<String>,
    serving: JoinHandle<()>,
    stop: CancellationToken,
}

impl Client {
    fn connect(app: &Arc<App>, hello: Hello) -> Self {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (far_reader, far_writer) = tokio::io::split(far);
        let (near_reader, near_writer) = tokio::io::split(near);
        let stop = CancellationToken::new();
        let serving = tokio::spawn(mcp::local::serve(
            Arc::clone(app),
            BufReader::new(far_reader),
            far_writer,
            hello,
            stop.clone(),
        ));
        Self {
            lines: BufReader::new(near_reader).lines(),
            writer: near_writer,
            number: 0,
            others: Vec::new(),
            serving,
            stop,
        }
    }

    /// A client of the handshake era, past its handshake.
    async fn with_profile(app: &Arc<App>, profile: Option<&str>) -> Self {
        static BRIDGES: AtomicU64 = AtomicU64::new(0);
        let hello = Hello {
            key: format!("bridge-{}", BRIDGES.fetch_add(1, Ordering::Relaxed)),
            profile: profile.map(str::to_owned),
            folder: Some("/home/me/project".to_owned()),
            ..Hello::default()
        };
        let mut client = Self::connect(app, hello);
        client.initialize().await;
        client
    }

    async fn initialize(&mut self) -> Value {
        let answer = self
            .request(
                "initialize",
                json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": { "name": "test-client", "version": "1" }
                }),
            )
            .await;
        self.write("0", &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        answer
    }

    async fn write(&mut self, number: &str, message: &Value) {
        self.write_raw(&format!("{number} {message}\n")).await;
    }

    async fn write_raw(&mut self, line: &str) {
        self.writer.write_all(line.as_bytes()).await.unwrap();
    }

    async fn next_line(&mut self) -> String {
        timeout(DEADLINE, self.lines.next_line()).await.unwrap().unwrap().unwrap()
    }

    /// The next answer; what comes before it is kept.
    async fn answer(&mut self) -> Value {
        loop {
            let line = self.next_line().await;
            match serde_json::from_str::<Value>(&line) {
                Ok(message) if message.get("method").is_none() => return message,
                _ => self.others.push(line),
            }
        }
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let (id, number) = (self.number, self.number.to_string());
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.write(&number, &message).await;
        let answer = self.answer().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// The result of a tool call.
    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer =
            self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    async fn end(self) {
        drop(self.writer);
        drop(self.lines);
        timeout(DEADLINE, self.serving).await.unwrap().unwrap();
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn json_text(result: &Value) -> Value {
    serde_json::from_str(text(result)).unwrap()
}

#[tokio::test]
async fn notify_answers_as_its_seed_says_row_2() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    for message in ["a", "Grüße 🔔 \"quoted\" \\n", " padded ", "two\nlines"] {
        let result = client.call("notify", json!({ "message": message })).await;
        assert_eq!(text(&result), format!("Notification sent: {message}"));
        assert_eq!(result["isError"], false);
        assert_eq!(result["content"].as_array().unwrap().len(), 1);
    }
    assert_eq!(parts.events().await.len(), 4);
    client.end().await;
}

#[tokio::test]
async fn a_blank_message_is_refused_by_name_and_the_next_is_taken_row_3() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    for arguments in [
        json!({ "message": "" }),
        json!({ "message": " \n\t" }),
        json!({}),
        json!({ "message": 7 }),
        json!({ "message": null }),
    ] {
        let result = client.call("notify", arguments).await;
        assert_eq!(result["isError"], true);
        assert!(text(&result).starts_with("`message` is "), "{result}");
        assert!(text(&result).contains("expected a text"), "{result}");
    }
    assert!(parts.events().await.is_empty());
    let result = client.call("notify", json!({ "message": "a" })).await;
    assert_eq!(result["isError"], false);
}

#[tokio::test]
async fn levels_are_read_as_the_profile_says_rows_4_5_6_c4() {
    let parts = Parts::with_channels(&[]);
    let table = [
        (None, json!(null), Level::Info),
        (None, json!("bogus"), Level::Info),
        (None, json!("WARN"), Level::Warning),
        (None, json!("critical"), Level::Critical),
        (None, json!("Notice"), Level::Notice),
        (Some("swissarmyhammer"), json!("critical"), Level::Info),
        (Some("swissarmyhammer"), json!("bogus"), Level::Info),
        (Some("swissarmyhammer"), json!("Warning"), Level::Warning),
        (Some("swissarmyhammer"), json!("ERROR"), Level::Error),
    ];
    for (profile, level, expected) in table {
        let mut client = Client::with_profile(&parts.app, profile).await;
        let result = client.call("notify", json!({ "message": "m", "level": level })).await;
        assert_eq!(result["structuredContent"]["level"], expected.as_str());
        let events = parts.events().await;
        assert_eq!(events.last().unwrap().event.level, expected, "{profile:?} {level}");
        assert_eq!(events.last().unwrap().event.context.as_str(), "llm");
        client.end().await;
    }
}

#[tokio::test]
async fn a_context_is_a_category_or_details_row_7_c3() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    client.call("notify", json!({ "message": "m", "context": "safety" })).await;
    client.call("notify", json!({ "message": "m", "context": { "a": 1 } })).await;
    let both = json!({ "message": "m", "context": { "a": 1 }, "data": { "b": 2 } });
    client.call("notify", both).await;
    let refused = client.call("notify", json!({ "message": "m", "context": 7 })).await;
    assert_eq!(text(&refused), "`context` is 7; expected a category or an object with details");
    let events = parts.events().await;
    let kept: Vec<_> = events
        .iter()
        .map(|entry| (entry.event.context.as_str(), entry.event.content.data.clone()))
        .collect();
    assert_eq!(
        kept,
        [
            ("safety", None),
            ("llm", Some(json!({ "a": 1 }))),
            ("llm", Some(json!({ "b": 2, "context": { "a": 1 } }))),
        ]
    );
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
        for name in ["notify.send", "notify_send"] {
            let result = client.call(name, json!({ "title": "t", "content": "c" })).await;
            assert_eq!(json_text(&result)["success"], true, "{profile} {name}");
        }
        for (run, name) in [("a", "notify.event"), ("b", "notify_event")] {
            let step =
                json!({ "run_id": format!("{profile}-{run}"), "event": "start", "message": "m" });
            let result = client.call(name, step).await;
            assert_eq!(json_text(&result)["success"], true, "{profile} {name}");
        }
        client.end().await;
    }
}

#[tokio::test]
async fn a_call_for_a_window_sends_nothing_while_there_is_none_c1() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    for arguments in [
        json!({ "message": "m", "mode": "popup" }),
        json!({ "message": "m", "wait_for_response": false }),
        json!({ "message": "m", "title": "t", "level": "info" }),
        json!({ "message": "m", "timeout": 30 }),
    ] {
        let result = client.call("notify", arguments).await;
        assert_eq!(result["isError"], true);
        assert!(
            text(&result).contains("no popup yet") && text(&result).contains("nothing was sent")
        );
    }
    let wrong = client.call("notify", json!({ "message": "m", "mode": "window" })).await;
    assert_eq!(text(&wrong), "`mode` is \"window\"; expected log or popup");
    assert!(parts.events().await.is_empty());

    let log = json!({ "message": "m", "mode": "log", "title": "t" });
    assert_eq!(client.call("notify", log).await["isError"], false);
    let result = client.call("notify_log", json!({ "message": "m", "timeout": 30 })).await;
    assert_eq!(result["structuredContent"]["ignored"], json!(["timeout"]));
    let titles: Vec<_> =
        parts.events().await.into_iter().map(|entry| entry.event.content.title).collect();
    assert_eq!(titles, [Some("t".to_owned()), None]);

    // The profile of seed S0 knows no window, so none can be asked for there.
    let mut seed = Client::with_profile(&parts.app, Some("swissarmyhammer")).await;
    let result = seed.call("notify", json!({ "message": "m", "title": "t", "timeout": 5 })).await;
    assert_eq!(text(&result), "Notification sent: m");
    assert_eq!(result["structuredContent"]["ignored"], json!(["timeout", "title"]));
}

#[tokio::test]
async fn structured_content_tells_what_is_in_the_journal_rows_60_110_c6_c7() {
    let parts = Parts::with_channels(&["phone", "team"]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let result = client.call("notify", json!({ "message": "m", "level": "error" })).await;
    let entry = parts.events().await.remove(0);
    let id = entry.event.id.to_string();
    assert_eq!(
        result["structuredContent"],
        json!({
            "event_id": id,
            "accepted_at": entry.event.at.to_string(),
            "level": "error",
            "context": "llm",
            "result_type": "logged",
            "delivered": false,
            "channels": ["phone", "team"],
            "deliveries": format!("delivery://{id}"),
            "ignored": []
        })
    );
    assert_eq!(entry.event.source.client.as_deref(), Some("test-client"));
    assert_eq!(entry.event.source.project.as_deref(), Some("/home/me/project"));
    assert!(entry.event.source.session.unwrap().starts_with("bridge-"));
    assert_eq!(parts.deliveries().await.len(), 2);
}

#[tokio::test]
async fn notify_send_answers_as_its_seed_says_row_101() {
    let parts = Parts::with_channels(&["phone", "team"]);
    let mut client = Client::with_profile(&parts.app, Some("mcp-push")).await;
    let arguments =
        json!({ "title": "任务完成", "content": "数据\n分析", "ignore_default_config": true });
    let result = client.call("notify.send", arguments).await;
    assert!(
        text(&result).starts_with(r#"{"success":true,"message":"已向 2 个渠道发送通知","#),
        "{result}"
    );
    let answer = json_text(&result);
    assert_eq!(answer, result["structuredContent"], "row 60");
    assert_eq!(answer["status"], "queued");
    assert_eq!(answer["channels_count"], 2);
    assert_eq!(answer["errors"], json!({}));
    assert_eq!(answer["skipped"], false);
    assert_eq!(answer["ignored"], json!(["ignore_default_config"]));
    let event = parts.events().await.remove(0).event;
    assert_eq!(answer["delivery_id"], event.id.to_string());
    assert_eq!(event.kind, Kind::Push);
    assert_eq!(event.content.text, "数据\n分析");
}

#[tokio::test]
async fn wrong_arguments_of_a_push_are_named_and_nothing_is_sent() {
    let parts = Parts::with_channels(&["phone"]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let table = [
        (json!({ "content": "c" }), "`title` is missing; expected a text that is not blank"),
        (json!({ "title": "t" }), "`content` is missing; expected a text that is not blank"),
        (json!({ "title": "t", "content": " " }), "`content` is only white space"),
        (json!({ "title": "", "content": "c" }), "`title` is empty"),
        (json!({ "title": "t", "content": "c", "channels": ["pager"] }), "`to` is \"pager\""),
        (json!({ "title": "t", "content": "c", "channels": "phone" }), "`channels` is a text"),
        (json!({ "title": "t", "content": "c", "level": 3 }), "`level` is 3"),
    ];
    for (arguments, expected) in table {
        let result = client.call("notify_send", arguments).await;
        assert_eq!(result["isError"], true);
        let answer = json_text(&result);
        assert_eq!(answer["success"], false);
        assert!(answer["message"].as_str().unwrap().starts_with(expected), "{answer}");
    }
    assert!(parts.events().await.is_empty());
}

#[tokio::test]
async fn skipped_titles_and_missing_channels_are_told_row_118() {
    let parts = Parts::with_channels(&["phone"]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let result = client.call("notify_send", json!({ "title": "quiet", "content": "c" })).await;
    let answer = json_text(&result);
    assert_eq!(result["isError"], false);
    assert_eq!((&answer["success"], &answer["skipped"]), (&json!(true), &json!(true)));
    assert_eq!(answer["channels_count"], 0);

    let nowhere = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&nowhere.app, None).await;
    for (tool, arguments) in [
        ("notify_send", json!({ "title": "t", "content": "c" })),
        ("notify_event", json!({ "run_id": "r", "event": "start", "message": "m" })),
    ] {
        let result = client.call(tool, arguments).await;
        let answer = json_text(&result);
        assert_eq!(result["isError"], false);
        assert_eq!(answer["success"], false);
        assert_eq!(answer["status"], "no_channels");
        assert!(answer["hint"].as_str().unwrap().contains("no channel is configured"));
    }
    assert_eq!(nowhere.events().await.len(), 2, "not lost: still in the journal");
}

#[tokio::test]
async fn notify_event_answers_as_its_seed_says_rows_102_105() {
    let parts = Parts::with_channels(&["phone"]);
    let mut client = Client::with_profile(&parts.app, Some("mcp-push")).await;
    let run = "data-analysis-20240101-001";
    let steps = [
        (json!({ "run_id": run, "event": "start", "message": "开始" }), json!(null), "info"),
        (
            json!({
                "run_id": run, "event": "update", "message": "32%",
                "data": { "step": "data_parsing", "progress": 0.32, "rows": 7 }
            }),
            json!(0.32),
            "info",
        ),
        (json!({ "run_id": run, "event": "end", "message": "完成" }), json!(1.0), "notice"),
    ];
    for (step, progress, level) in steps {
        let result = client.call("notify.event", step.clone()).await;
        let start = r#"{"success":true,"message":"事件已推送","event_type":"#;
        assert!(text(&result).starts_with(start), "{result}");
        let answer = json_text(&result);
        assert_eq!(answer, result["structuredContent"]);
        assert_eq!(answer["event_type"], step["event"]);
        assert_eq!(answer["run_id"], run);
        assert_eq!(answer["progress"], progress);
        assert_eq!(answer["level"], level);
    }
    let events = parts.events().await;
    assert_eq!(
        events[1].event.content.data,
        Some(json!({ "step": "data_parsing", "progress": 0.32, "rows": 7 }))
    );
}

#[tokio::test]
async fn steps_out_of_order_are_refused_with_the_reason_row_104() {
    let parts = Parts::with_channels(&["phone"]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let step = |event: &str| json!({ "run_id": "r", "event": event, "message": "m" });
    let result = client.call("notify_event", step("update")).await;
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("was not started"), "{result}");
    for event in ["start", "end"] {
        assert_eq!(client.call("notify_event", step(event)).await["isError"], false);
    }
    for event in ["update", "end", "error", "start"] {
        let result = client.call("notify_event", step(event)).await;
        assert_eq!(result["isError"], true);
        assert!(text(&result).contains("already ended"), "{result}");
    }
    assert_eq!(parts.events().await.len(), 2);
}

#[tokio::test]
async fn wrong_arguments_of_a_step_are_named_rows_105_106() {
    let parts = Parts::with_channels(&["phone"]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let with = |extra: Value| {
        let mut step = json!({ "run_id": "r", "event": "start", "message": "m" });
        step.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        step
    };
    let table = [
        (with(json!({ "event": "begin" })), "`event` is \"begin\"; expected one of start"),
        (with(json!({ "event": null })), "`event` is missing; expected one of start"),
        (with(json!({ "run_id": "" })), "`run_id` is empty"),
        (with(json!({ "data": [] })), "`data` is a list; expected an object"),
        (with(json!({ "data": { "progress": 7 } })), "`data.progress` is 7; expected a number"),
        (with(json!({ "data": { "progress": "1" } })), "`data.progress` is a text"),
        (with(json!({ "data": { "step": 1 } })), "`data.step` is 1; expected a text"),
        (with(json!({ "timestamp": "soon" })), "`timestamp` is \"soon\"; expected a time"),
    ];
    for (arguments, expected) in table {
        let result = client.call("notify_event", arguments).await;
        assert_eq!(result["isError"], true);
        let message = json_text(&result)["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(expected), "{message}");
    }
    assert!(parts.events().await.is_empty());

    let before = parts.app.clock.now();
    client.call("notify_event", with(json!({}))).await;
    let given = with(json!({ "event": "update", "timestamp": "2024-01-01T08:00:00+08:00" }));
    let result = client.call("notify_event", given).await;
    assert_eq!(result["structuredContent"]["timestamp"], "2024-01-01T00:00:00Z");
    let Kind::Run(first) = &parts.events().await[0].event.kind.clone() else { panic!("a step") };
    let late = first.reported_at.duration_since(before).as_secs_f64();
    assert!((-0.001..1.0).contains(&late), "now is the default, and {late} s passed");
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
    assert!(client.others.iter().all(|line| line.starts_with('!')), "{:?}", client.others);
}

#[tokio::test]
async fn an_accepted_notice_is_shown_at_the_terminal_before_the_answer_row_16() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    client.call("notify", json!({ "message": "look\nhere", "level": "error" })).await;
    assert_eq!(client.others.len(), 1);
    let line = &client.others[0];
    assert!(line.starts_with('!') && line.contains("look") && line.contains("here"), "{line}");
    client.call("notify", json!({ "message": " " })).await;
    assert_eq!(client.others.len(), 1, "what was refused is not shown");
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
        ("logging/setLevel", json!({ "level": "info" }), -32601),
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
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "modern-client", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {}
    });
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
    config.mcp.tool_names = Some("underscore".to_owned());
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
