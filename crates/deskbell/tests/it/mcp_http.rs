//! MCP over Streamable HTTP.
//!
//! The tests speak to the door itself; the guard with its tokens stands before it and has its own tests.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

mod told;

use axum::{
    Router,
    body::{Body, to_bytes},
};
use deskbell::{config::Config, mcp};
use http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::mcp_app::Parts;

const BOTH: &str = "application/json, text/event-stream";

/// An HTTP client of one door.
struct Client {
    router: Router,
    path: &'static str,
    session: Option<String>,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    /// The messages in the body, which is JSON or a stream of events.
    fn messages(&self) -> Vec<Value> {
        if self.body.starts_with('{') {
            return vec![serde_json::from_str(&self.body).unwrap()];
        }
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| !data.is_empty())
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    /// The answer itself.
    fn message(&self) -> Value {
        let mut messages = self.messages();
        messages.retain(|message| message.get("method").is_none());
        assert_eq!(messages.len(), 1, "{} {}", self.status, self.body);
        messages.remove(0)
    }

    /// What came before the answer.
    fn told(&self) -> Vec<Value> {
        let mut messages = self.messages();
        assert!(messages.pop().unwrap().get("method").is_none(), "{}", self.body);
        messages
    }

    #[track_caller]
    fn check_error(&self, status: u16, code: i32) {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        assert_eq!(self.message()["error"]["code"], code, "{}", self.body);
        assert_eq!(self.headers["content-type"], "application/json");
    }
}

fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "modern-client", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {}
    })
}

impl Client {
    fn new(parts: &Parts) -> Self {
        Self::at("/mcp", parts)
    }

    fn at(path: &'static str, parts: &Parts) -> Self {
        let router = mcp::http::router(std::sync::Arc::clone(&parts.app), CancellationToken::new());
        Self { router, path, session: None }
    }

    /// A client of the handshake era, past its handshake.
    async fn open(path: &'static str, parts: &Parts) -> Self {
        Self::open_with(path, parts, json!({})).await
    }

    async fn open_with(path: &'static str, parts: &Parts, capabilities: Value) -> Self {
        let mut client = Self::at(path, parts);
        let answer = client.initialize_with(capabilities).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        client.session = Some(answer.headers["mcp-session-id"].to_str().unwrap().to_owned());
        client
    }

    async fn initialize(&self) -> Answer {
        self.initialize_with(json!({})).await
    }

    async fn initialize_with(&self, capabilities: Value) -> Answer {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": { "name": "test-client", "version": "1" }
        });
        self.request("initialize", params).await
    }

    async fn request(&self, method: &str, params: Value) -> Answer {
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        self.post(&message.to_string(), &[]).await
    }

    async fn modern(&self, method: &str, name: Option<&str>, mut params: Value) -> Answer {
        for (name, value) in modern_meta().as_object().unwrap() {
            params["_meta"][name] = value.clone();
        }
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        headers.extend(name.map(|name| ("mcp-name", name)));
        self.post(&message.to_string(), &headers).await
    }

    async fn post(&self, body: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(Method::POST, body.to_owned(), headers).await
    }

    async fn send(&self, method: Method, body: String, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::builder().method(method).uri(self.path);
        let usual = [("host", "localhost"), ("accept", BOTH), ("content-type", "application/json")];
        let given = |name: &str| headers.iter().any(|(given, _)| *given == name);
        for (name, value) in usual.iter().filter(|(name, _)| !given(name)).chain(headers) {
            request = request.header(*name, *value);
        }
        if let Some(session) = self.session.as_ref().filter(|_| !given("mcp-session-id")) {
            request = request.header("mcp-session-id", session);
        }
        let request = request.body(Body::from(body)).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        Answer { status: parts.status, headers: parts.headers, body }
    }
}

#[tokio::test]
async fn both_eras_answer_on_one_endpoint() {
    let parts = Parts::with_channels(&["phone"]);
    let client = Client::open("/mcp", &parts).await;
    let call = json!({ "name": "notify", "arguments": { "message": "m" } });
    let old = client.request("tools/call", call.clone()).await;
    let new = Client::new(&parts).modern("tools/call", Some("notify"), call).await;
    assert_eq!(old.message()["result"]["content"], new.message()["result"]["content"]);
    assert_eq!(new.message()["result"]["resultType"], "complete");
    let identity = &new.message()["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(identity["name"], "deskbell");
    let events = parts.events().await;
    let sources: Vec<_> = events.iter().map(|entry| entry.event.source.clone()).collect();
    assert_eq!(sources[0].client.as_deref(), Some("test-client"));
    assert_eq!(sources[0].session, client.session);
    assert_eq!(sources[1].client.as_deref(), Some("modern-client"));
    assert_eq!(sources[1].session, None);
}

#[tokio::test]
async fn a_profile_is_a_path() {
    let parts = Parts::with_channels(&[]);
    let names = async |path| {
        let client = Client::open(path, &parts).await;
        let answer = client.request("tools/list", json!({})).await.message();
        let tools = answer["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("/mcp").await, ["notify", "notify_send", "notify_event"]);
    assert_eq!(names("/mcp/swissarmyhammer").await, ["notify"]);
    assert_eq!(names("/mcp/mcp-push").await, ["notify.send", "notify.event"]);

    let answer = Client::at("/mcp/loud", &parts).initialize().await;
    answer.check_error(404, -32600);
    assert!(answer.body.contains("one of unified, swissarmyhammer, mcp-push"));
}

#[tokio::test]
async fn bodies_that_are_no_message_get_the_answer_of_json_rpc() {
    let parts = Parts::with_channels(&[]);
    let client = Client::open("/mcp", &parts).await;
    for body in ["", "{", "hello", "{\"jsonrpc\":\"2.0\",\"id\":1,", "[1,"] {
        client.post(body, &[]).await.check_error(400, -32700);
    }
    for body in ["{}", "42", "null", "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", "[]"] {
        client.post(body, &[]).await.check_error(400, -32600);
    }
    let large = "x".repeat(mcp::http::BODY_LIMIT + 1);
    client.post(&large, &[]).await.check_error(413, -32600);
    client.post("{}", &[("content-type", "text/plain")]).await.check_error(415, -32600);
    client.post("{}", &[("accept", "text/html")]).await.check_error(406, -32600);
    let answer = client.request("ping", json!({})).await;
    assert_eq!(answer.message()["result"], json!({}));
}

#[tokio::test]
async fn known_methods_with_wrong_parameters_are_no_unknown_methods() {
    let parts = Parts::with_channels(&[]);
    let client = Client::open("/mcp", &parts).await;
    let answer = client.request("tools/call", json!({ "arguments": {} })).await;
    assert_eq!(answer.message()["error"]["code"], -32602);
    let answer = client.request("no/such", json!({})).await;
    assert_eq!(answer.message()["error"]["code"], -32601);

    let modern = Client::new(&parts);
    modern.modern("no/such", None, json!({})).await.check_error(404, -32601);
    modern
        .modern("logging/setLevel", None, json!({ "level": "info" }))
        .await
        .check_error(404, -32601);
    modern.modern("initialize", None, json!({})).await.check_error(404, -32601);
    let answer = modern.modern("tools/call", Some("nope"), json!({ "name": "nope" })).await;
    assert_eq!(answer.message()["error"]["code"], -32602);
}

#[tokio::test]
async fn only_allowed_origins_and_hosts_are_answered() {
    let mut config = Config::default();
    config.serve.allowed_origins = vec!["https://desk.example".to_owned()];
    config.serve.allowed_hosts = vec!["desk.example".to_owned()];
    let parts = Parts::new(&[], Vec::new(), config);
    let client = Client::new(&parts);
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"server/discover","params":{}}"#;
    let status = async |header, value| client.post(ping, &[(header, value)]).await.status.as_u16();
    for origin in ["https://evil.example", "http://desk.example", "https://desk.example:81", "null"]
    {
        assert_eq!(status("origin", origin).await, 403, "{origin}");
    }
    for origin in
        ["https://desk.example", "http://localhost:5173", "http://127.0.0.1", "http://[::1]:3"]
    {
        assert_ne!(status("origin", origin).await, 403, "{origin}");
    }
    for host in ["evil.example", "desk.example.evil.example", "127.0.0.1.evil.example:80"] {
        assert_eq!(status("host", host).await, 403, "{host}");
    }
    for host in ["desk.example", "localhost:8377", "127.0.0.1:1", "[::1]:1", "192.168.1.4:8377"] {
        assert_ne!(status("host", host).await, 403, "{host}");
    }
}

#[tokio::test]
async fn a_deleted_session_is_gone() {
    let parts = Parts::with_channels(&[]);
    let client = Client::open("/mcp", &parts).await;
    let answer = client.send(Method::DELETE, String::new(), &[]).await;
    assert_eq!((answer.status, answer.body.as_str()), (StatusCode::NO_CONTENT, ""));
    client.request("ping", json!({})).await.check_error(404, -32600);
    let answer = client.post("{}", &[("mcp-session-id", "unknown")]).await;
    answer.check_error(400, -32600);
}

#[tokio::test]
async fn the_1001st_session_takes_the_place_of_the_oldest_row_58() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::new(&parts);
    let mut sessions = Vec::new();
    for _ in 0..=mcp::http::Limits::default().sessions {
        let answer = client.initialize().await;
        assert_eq!(answer.status, StatusCode::OK);
        sessions.push(answer.headers["mcp-session-id"].to_str().unwrap().to_owned());
    }
    assert_eq!(sessions.len(), 1001);
    for (session, status) in [(0, 404), (1, 200), (1000, 200)] {
        client.session = Some(sessions[session].clone());
        let answer = client.request("ping", json!({})).await;
        assert_eq!(answer.status.as_u16(), status, "session {session}");
    }
}

#[tokio::test]
async fn a_batch_of_its_revision_is_answered_on_one_stream() {
    let parts = Parts::with_channels(&[]);
    let client = Client::open("/mcp", &parts).await;
    let call = |id: i32, message: &str| {
        json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "notify", "arguments": { "message": message } }
        })
    };
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let unknown = json!({ "jsonrpc": "2.0", "id": 3, "method": "no/such" });
    let batch = json!([call(1, "a"), note, call(2, "b"), unknown, 7]);
    let answer = client.post(&batch.to_string(), &[]).await;
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let mut answers: Vec<_> = answer
        .messages()
        .iter()
        .filter(|message| message.get("method").is_none())
        .map(|message| {
            let text = &message["result"]["content"][0]["text"];
            (message["id"].clone(), text.clone(), message["error"]["code"].clone())
        })
        .collect();
    answers.sort_by_key(|(id, ..)| id.as_i64());
    assert_eq!(
        answers,
        [
            (json!(null), json!(null), json!(-32600)),
            (json!(1), json!("Notification sent: a"), json!(null)),
            (json!(2), json!("Notification sent: b"), json!(null)),
            (json!(3), json!(null), json!(-32601)),
        ]
    );

    let notes = client.post(&json!([note, note]).to_string(), &[]).await;
    assert_eq!((notes.status, notes.body.as_str()), (StatusCode::ACCEPTED, ""));
    let later = [("mcp-protocol-version", "2025-11-25")];
    client.post(&batch.to_string(), &later).await.check_error(400, -32600);
    let opening = json!([{ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} }]);
    client.post(&opening.to_string(), &[]).await.check_error(400, -32600);
}
