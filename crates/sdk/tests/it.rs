//! A server with the SDK around it, and a client that writes and reads the lines themselves, in both eras.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use std::time::Duration;

use deskbell_sdk::{Limits, Notifying, ToolContext};
use rmcp::{
    ErrorData, ServerHandler, ServiceExt as _,
    handler::server::wrapper::Parameters,
    model::{CallToolResult, ContentBlock, ServerCapabilities, ServerConfig},
    tool, tool_handler, tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

/// A server that knows nothing of Deskbell's own.
struct Worker;

#[derive(Deserialize, JsonSchema)]
struct Steps {
    /// How far the work gets, of four.
    steps: u32,
    /// How it ends: "ok", "error", "refusal", "complete", "fail".
    end: String,
}

#[tool_router]
impl Worker {
    #[tool(description = "Says one message at each level")]
    async fn say(&self, cx: ToolContext) -> String {
        let log = cx.log.data(json!({ "n": 1 }));
        log.debug("a debug");
        log.info("an info");
        log.notice("a notice");
        log.warning("a warning");
        log.error("an error");
        log.critical("a critical");
        log.alert("an alert");
        log.emergency("an emergency");
        format!("log {} progress {}", cx.log.is_noop(), cx.notify.is_noop())
    }

    #[tool(description = "Works in four steps")]
    async fn work(
        &self,
        Parameters(Steps { steps, end }): Parameters<Steps>,
        cx: ToolContext,
    ) -> Result<CallToolResult, ErrorData> {
        let mut progress = cx.notify.progress("working", 4.0);
        for step in 1..=steps {
            tokio::time::sleep(Duration::from_millis(200)).await;
            progress.increment_with(1.0, format!("step {step}"));
        }
        // Somebody who keeps the context and goes on when the call has its answer.
        let late = cx.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            late.log.emergency("late");
            late.notify.progress("late", 100.0).update(50.0);
        });
        match end.as_str() {
            "error" => return Err(ErrorData::internal_error("the disk is full", None)),
            "refusal" => {
                return Ok(CallToolResult::error(vec![ContentBlock::text("the disk is full")]));
            }
            "complete" => progress.complete("all done"),
            "fail" => progress.fail("gave up"),
            _ => {}
        }
        Ok(CallToolResult::success(vec![ContentBlock::text("done")]))
    }

    #[tool(description = "Works in two phases, without knowing how long the second one takes")]
    async fn phases(&self, cx: ToolContext) -> String {
        let mut first = cx.notify.progress("loading", 2.0);
        first.update(1.0);
        first.update(0.5);
        first.update(f64::NAN);
        drop(first);
        let mut second = cx.notify.progress("training", None);
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            second.increment(1.0);
        }
        "done".to_owned()
    }

    #[tool(description = "Tells that a resource and the lists have changed")]
    async fn change(&self, cx: ToolContext) -> String {
        for _ in 0..3 {
            cx.notify.resource_updated("file:///data/output.json");
            cx.notify.resource_updated("file:///other");
            cx.notify.tool_list_changed();
        }
        "done".to_owned()
    }

    #[tool(description = "Works in a thread of its own")]
    async fn thread(&self, cx: ToolContext) -> String {
        std::thread::spawn(move || cx.log.info("from a thread")).join().unwrap();
        "done".to_owned()
    }

    #[tool(description = "Says a hundred things")]
    async fn chatter(&self, cx: ToolContext) -> String {
        (0..100).for_each(|n| cx.log.info(format!("thing {n}")));
        "done".to_owned()
    }
}

#[tool_handler]
impl ServerHandler for Worker {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(Default::default());
        capabilities.resources = Some(Default::default());
        ServerConfig::new(capabilities)
    }
}

/// A client that writes and reads the lines themselves.
struct Client {
    write: WriteHalf<DuplexStream>,
    read: Lines<BufReader<ReadHalf<DuplexStream>>>,
    id: u64,
}

impl Client {
    fn start(limits: Limits) -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        tokio::spawn(async move {
            let server = Notifying::with_limits(Worker, limits).serve(far).await.unwrap();
            server.waiting().await.unwrap();
        });
        let (read, write) = tokio::io::split(near);
        Self { write, read: BufReader::new(read).lines(), id: 0 }
    }

    /// A client of 2025-11-25, which shakes hands first.
    async fn greeted(limits: Limits) -> Self {
        let mut client = Self::start(limits);
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "lines", "version": "1" } });
        let (_, answer) = client.ask("initialize", hello).await;
        assert_eq!(answer["result"]["capabilities"]["logging"], json!({}));
        client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    async fn write(&mut self, message: &Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn line(&mut self) -> Value {
        serde_json::from_str(&self.read.next_line().await.unwrap().unwrap()).unwrap()
    }

    /// What came before the answer, and the answer.
    async fn ask(&mut self, method: &str, params: Value) -> (Vec<Value>, Value) {
        self.id += 1;
        let id = self.id;
        let ask = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.write(&ask).await;
        let mut before = Vec::new();
        loop {
            let line = self.line().await;
            if line["id"] == id {
                return (before, line);
            }
            before.push(line);
        }
    }

    async fn call(&mut self, tool: &str, arguments: Value, meta: Value) -> (Vec<Value>, Value) {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments, "_meta": meta })).await
    }
}

/// What a request of 2026-07-28 says of itself.
fn stateless(more: &[(&str, Value)]) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "lines", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (name, value) in more {
        meta[*name] = value.clone();
    }
    meta
}

fn token(token: impl Into<Value>) -> Value {
    json!({ "progressToken": token.into() })
}

/// The levels of the messages in `told`.
fn levels(told: &[Value]) -> Vec<&str> {
    let messages = told.iter().filter(|line| line["method"] == "notifications/message");
    messages.map(|line| line["params"]["level"].as_str().unwrap()).collect()
}

/// Value, total and text of the progress in `told`.
fn shown(told: &[Value]) -> Vec<(f64, Option<f64>, &str)> {
    let progress = told.iter().filter(|line| line["method"] == "notifications/progress");
    progress
        .map(|line| {
            let params = &line["params"];
            let text = params["message"].as_str().unwrap();
            (params["progress"].as_f64().unwrap(), params["total"].as_f64(), text)
        })
        .collect()
}

const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

#[tokio::test(start_paused = true)]
async fn a_session_hears_what_it_asked_for_row_22_24() {
    let (mut a, mut b) =
        (Client::greeted(Limits::default()).await, Client::greeted(Limits::default()).await);
    let (told, answer) = a.call("say", json!({}), json!({})).await;
    assert_eq!(levels(&told), LEVELS[1..]);
    assert_eq!(told[0]["params"]["logger"], "say");
    assert_eq!(told[0]["params"]["data"]["message"], "an info");
    assert_eq!(told[0]["params"]["data"]["n"], 1);
    assert_eq!(answer["result"]["content"][0]["text"], "log false progress true");

    assert_eq!(a.ask("logging/setLevel", json!({ "level": "error" })).await.1["result"], json!({}));
    assert_eq!(b.ask("logging/setLevel", json!({ "level": "debug" })).await.1["result"], json!({}));
    assert_eq!(levels(&a.call("say", json!({}), json!({})).await.0), LEVELS[4..]);
    assert_eq!(levels(&b.call("say", json!({}), json!({})).await.0), LEVELS);

    let refused = a.ask("logging/setLevel", json!({ "level": "loud" })).await.1;
    assert_eq!(refused["error"]["code"], -32602);
    assert!(refused["error"]["message"].as_str().unwrap().starts_with("level \"loud\" is none of"));
    assert_eq!(levels(&a.call("say", json!({}), json!({})).await.0), LEVELS[4..]);
}

#[tokio::test(start_paused = true)]
async fn a_stateless_request_hears_what_it_asks_for_itself() {
    const LEVEL: &str = "io.modelcontextprotocol/logLevel";
    let mut client = Client::start(Limits::default());
    let (told, answer) = client.call("say", json!({}), stateless(&[])).await;
    assert_eq!(told, [Value::Null; 0]);
    assert_eq!(answer["result"]["content"][0]["text"], "log true progress true");
    let (told, _) = client.call("say", json!({}), stateless(&[(LEVEL, "alert".into())])).await;
    assert_eq!(levels(&told), LEVELS[6..]);
    let (_, answer) = client.call("say", json!({}), stateless(&[(LEVEL, "loud".into())])).await;
    assert_eq!(answer["error"]["code"], -32602);
    // A client that says it takes no messages gets none.
    let deaf = json!({ "notifications": { "notifications/message": false } });
    let meta = stateless(&[
        (LEVEL, "debug".into()),
        ("progressToken", 0.into()),
        ("io.modelcontextprotocol/clientCapabilities", deaf),
    ]);
    let (told, _) = client.call("work", json!({ "steps": 1, "end": "ok" }), meta).await;
    assert_eq!(levels(&told), [""; 0]);
    assert_eq!(shown(&told).last().unwrap().0, 4.0);
}

#[tokio::test(start_paused = true)]
async fn progress_grows_to_its_total_under_its_token_row_25_27() {
    let mut client = Client::greeted(Limits::default()).await;
    let arguments = json!({ "steps": 3, "end": "complete" });
    for id in [json!(0), json!(7), json!("p-9")] {
        let (told, _) = client.call("work", arguments.clone(), token(id.clone())).await;
        assert!(told.iter().all(|line| line["params"]["progressToken"] == id), "{told:?}");
        let expected = [
            (0.0, Some(4.0), "working"),
            (1.0, Some(4.0), "step 1"),
            (2.0, Some(4.0), "step 2"),
            (3.0, Some(4.0), "step 3"),
            (4.0, Some(4.0), "all done"),
        ];
        // The last step and the end come together, so the end alone is told.
        let expected: Vec<_> = expected.into_iter().filter(|(value, ..)| *value != 3.0).collect();
        assert_eq!(shown(&told), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_token_nothing_is_shown_row_26() {
    let mut client = Client::greeted(Limits::default()).await;
    let (told, _) = client.call("work", json!({ "steps": 2, "end": "ok" }), json!({})).await;
    assert_eq!(told, [Value::Null; 0]);
}

#[tokio::test(start_paused = true)]
async fn progress_that_is_dropped_ends_as_the_call_does_row_28_29() {
    for (end, is_done) in
        [("ok", true), ("complete", true), ("error", false), ("refusal", false), ("fail", false)]
    {
        let mut client = Client::greeted(Limits::default()).await;
        let (told, _) = client.call("work", json!({ "steps": 1, "end": end }), token("t")).await;
        let ends = shown(&told).iter().filter(|(value, total, _)| Some(*value) == *total).count();
        assert_eq!(ends, usize::from(is_done), "{end}: {told:?}");
        let errors = levels(&told);
        assert_eq!(errors, vec!["error"; usize::from(!is_done)], "{end}");
        if matches!(end, "error" | "refusal") {
            let told = told.last().unwrap();
            assert_eq!(told["params"]["data"]["message"], "the disk is full");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_answer_there_is_silence_row_31() {
    let mut client = Client::greeted(Limits::default()).await;
    client.call("work", json!({ "steps": 1, "end": "ok" }), token("t")).await;
    let late = tokio::time::timeout(Duration::from_secs(60), client.line()).await;
    assert!(late.is_err(), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn a_second_progress_goes_on_where_the_first_ended_row_30() {
    let mut client = Client::greeted(Limits::default()).await;
    let (told, _) = client.call("phases", json!({}), token("t")).await;
    let shown = shown(&told);
    let values: Vec<_> = shown.iter().map(|(value, ..)| *value).collect();
    assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
    assert_eq!(shown[0], (2.0, Some(2.0), "loading"));
    assert!(shown[1..].iter().all(|(_, total, text)| total.is_none() && *text == "training"));
    assert_eq!(values.last(), Some(&5.0));
    assert!(told.iter().skip(1).all(|line| line["params"].get("total").is_none()));
}

#[tokio::test(start_paused = true)]
async fn changes_are_told_to_who_subscribed_row_33_35() {
    let mut client = Client::greeted(Limits::default()).await;
    let uri = json!({ "uri": "file:///data" });
    assert_eq!(client.ask("resources/subscribe", uri.clone()).await.1["result"], json!({}));
    client.call("change", json!({}), json!({})).await;
    let (first, second) = (client.line().await, client.line().await);
    assert_eq!(first["method"], "notifications/resources/updated");
    assert_eq!(first["params"]["uri"], "file:///data/output.json");
    assert!(first["params"]["timestamp"].is_string());
    assert_eq!(second["method"], "notifications/tools/list_changed");
    assert_eq!(second["params"], json!({}));
    assert_eq!(client.ask("resources/unsubscribe", uri).await.1["result"], json!({}));
    client.call("change", json!({}), json!({})).await;
    assert_eq!(client.line().await["method"], "notifications/tools/list_changed");
    let more = tokio::time::timeout(Duration::from_secs(60), client.line()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test(start_paused = true)]
async fn a_thread_without_a_runtime_is_heard() {
    let mut client = Client::greeted(Limits::default()).await;
    let (told, _) = client.call("thread", json!({}), json!({})).await;
    assert_eq!(told[0]["params"]["data"]["message"], "from a thread");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_cancelled_is_silent() {
    let mut client = Client::greeted(Limits::default()).await;
    let call = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {
        "name": "work", "arguments": { "steps": 4, "end": "ok" }, "_meta": token("t") } });
    client.write(&call).await;
    assert_eq!(client.line().await["params"]["progress"], 0.0);
    let cancelled = json!({ "requestId": 9 });
    client
        .write(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }),
        )
        .await;
    let more = tokio::time::timeout(Duration::from_secs(60), client.line()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_was_told_too_much_still_gets_its_answers_at_once() {
    let mut client = Client::greeted(Limits::default()).await;
    client.call("chatter", json!({}), json!({})).await;
    let before = tokio::time::Instant::now();
    client.call("say", json!({}), json!({})).await;
    assert!(before.elapsed() < Duration::from_millis(100), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_was_too_much_is_told_in_one_warning_row_43_44_45() {
    let (mut a, mut b) =
        (Client::greeted(Limits::default()).await, Client::greeted(Limits::default()).await);
    assert_eq!(levels(&a.call("chatter", json!({}), json!({})).await.0).len(), 60);
    assert_eq!(levels(&b.call("say", json!({}), json!({})).await.0).len(), 7);
    let warning = a.line().await;
    assert_eq!(warning["params"]["level"], "warning");
    assert_eq!(warning["params"]["data"]["dropped"], 40);
    let more = tokio::time::timeout(Duration::from_secs(600), a.line()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stateless_request_is_warned_on_its_own_stream_row_45() {
    let mut client = Client::start(Limits::default());
    let meta = stateless(&[("io.modelcontextprotocol/logLevel", "info".into())]);
    let (told, _) = client.call("chatter", json!({}), meta).await;
    assert_eq!(told.len(), 61);
    assert_eq!(told[60]["params"]["data"]["dropped"], 40);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_holds_no_tool_row_13_49() {
    let limits = Limits { per_minute: 0, queue: 10, ..Limits::default() };
    let (near, far) = tokio::io::duplex(64);
    tokio::spawn(async move {
        let server = Notifying::with_limits(Worker, limits).serve(far).await.unwrap();
        server.waiting().await.unwrap();
    });
    let (read, write) = tokio::io::split(near);
    let mut client = Client { write, read: BufReader::new(read).lines(), id: 0 };
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "lines", "version": "1" } });
    client.ask("initialize", hello).await;
    client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    let call = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call",
        "params": { "name": "chatter", "arguments": {} } });
    client.write(&call).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    // The answer was waiting for room behind what had been told, most of which was dropped.
    let mut told = 0;
    while client.line().await["id"] != 9 {
        told += 1;
    }
    assert!(told < 20, "{told}");
}

#[tokio::test]
async fn a_tool_runs_without_a_session_row_51() {
    let cx = ToolContext::silent();
    assert!(cx.log.is_noop() && cx.notify.is_noop());
    assert_eq!(Worker.say(cx.clone()).await, "log true progress true");
    assert_eq!(Worker.phases(cx).await, "done");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_ends_no_tool_row_52() {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(near);
    let (ended, end) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let server = Notifying::new(Worker).serve(far).await.unwrap();
        ended.send(server.waiting().await.is_ok()).unwrap();
    });
    let mut client = Client { write, read: BufReader::new(read).lines(), id: 0 };
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "lines", "version": "1" } });
    client.ask("initialize", hello).await;
    client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    let call = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call",
        "params": { "name": "work", "arguments": { "steps": 4, "end": "ok" } } });
    client.write(&call).await;
    drop(client);
    assert!(tokio::time::timeout(Duration::from_secs(60), end).await.unwrap().unwrap());
}
