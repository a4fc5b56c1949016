//! A client that writes and reads the lines themselves.

use std::time::Duration;

use deskbell_sdk::{Limits, Notifier};
use rmcp::{ServerHandler, ServiceExt as _, service::QuitReason};
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf,
        WriteHalf,
    },
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use crate::worker::Worker;

/// A client that writes and reads the lines themselves.
pub(crate) struct Client {
    write: WriteHalf<DuplexStream>,
    read: Lines<BufReader<ReadHalf<DuplexStream>>>,
    id: u64,
    server: JoinHandle<QuitReason>,
    pub(crate) stop: CancellationToken,
}

/// How much a pipe holds.
pub(crate) const PIPE: usize = 1 << 20;

impl Client {
    pub(crate) fn of(worker: impl ServerHandler, notifier: &Notifier, pipe: usize) -> Self {
        let (near, far) = tokio::io::duplex(pipe);
        let (server, stop) = (notifier.around(worker), CancellationToken::new());
        let token = stop.clone();
        let server = tokio::spawn(async move {
            server.serve_with_ct(far, token).await.unwrap().waiting().await.unwrap()
        });
        let (read, write) = tokio::io::split(near);
        Self { write, read: BufReader::new(read).lines(), id: 0, server, stop }
    }

    /// A client of 2026-07-28, which needs no handshake.
    pub(crate) fn stateless(limits: Limits) -> Self {
        Self::of(Worker::default(), &Notifier::new(limits), PIPE)
    }

    /// A client of 2025-11-25, which shakes hands first.
    pub(crate) async fn greeted(limits: Limits) -> Self {
        Self::sharing(&Notifier::new(limits)).await
    }

    /// One of several clients of the same server.
    pub(crate) async fn sharing(notifier: &Notifier) -> Self {
        Self::of(Worker::default(), notifier, PIPE).greet().await
    }

    pub(crate) async fn greet(mut self) -> Self {
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "lines", "version": "1" } });
        let (_, answer) = self.ask("initialize", hello).await;
        assert_eq!(answer["result"]["capabilities"]["logging"], json!({}));
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        self
    }

    /// Closes both pipes, and gives the server.
    pub(crate) fn go_away(self) -> JoinHandle<QuitReason> {
        self.server
    }

    pub(crate) async fn write(&mut self, message: &Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub(crate) async fn line(&mut self) -> Value {
        serde_json::from_str(&self.read.next_line().await.unwrap().unwrap()).unwrap()
    }

    /// The next line that comes within `time`.
    pub(crate) async fn line_within(&mut self, time: Duration) -> Option<Value> {
        tokio::time::timeout(time, self.line()).await.ok()
    }

    /// Nothing comes for ten minutes.
    pub(crate) async fn hears_nothing(&mut self) {
        let more = self.line_within(Duration::from_secs(600)).await;
        assert_eq!(more, None);
    }

    /// Asks without waiting for the answer.
    pub(crate) async fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.id += 1;
        let ask = json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params });
        self.write(&ask).await;
        self.id
    }

    /// What comes before the answer to `id`, and the answer.
    pub(crate) async fn answer(&mut self, id: u64) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let line = self.line().await;
            if line["id"] == id && line.get("method").is_none() {
                return (before, line);
            }
            before.push(line);
        }
    }

    /// What comes before the answer, and the answer.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> (Vec<Value>, Value) {
        let id = self.begin(method, &params).await;
        self.answer(id).await
    }

    pub(crate) async fn call(
        &mut self,
        tool: &str,
        arguments: Value,
        meta: Value,
    ) -> (Vec<Value>, Value) {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments, "_meta": meta })).await
    }
}

/// What a request of 2026-07-28 says of itself.
pub(crate) fn stateless(more: &[(&str, Value)]) -> Value {
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

/// Where a request of 2026-07-28 says the least severe level that it wants.
pub(crate) const LEVEL: &str = "io.modelcontextprotocol/logLevel";

pub(crate) fn token(token: impl Into<Value>) -> Value {
    json!({ "progressToken": token.into() })
}

/// The levels of the messages in `told`.
pub(crate) fn levels(told: &[Value]) -> Vec<&str> {
    let messages = told.iter().filter(|line| line["method"] == "notifications/message");
    messages.map(|line| line["params"]["level"].as_str().unwrap()).collect()
}

/// Value, total and text of the progress in `told`.
pub(crate) fn shown(told: &[Value]) -> Vec<(f64, Option<f64>, &str)> {
    let progress = told.iter().filter(|line| line["method"] == "notifications/progress");
    progress
        .map(|line| {
            let params = &line["params"];
            let text = params["message"].as_str().unwrap();
            (params["progress"].as_f64().unwrap(), params["total"].as_f64(), text)
        })
        .collect()
}
