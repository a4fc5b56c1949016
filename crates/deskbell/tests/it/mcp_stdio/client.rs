//! A bridge and the client behind it: numbered lines in, plain lines out.
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

use deskbell::{app::App, bridge::hello::Hello, mcp};
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

/// No answer takes this long.
pub(super) const DEADLINE: Duration = Duration::from_secs(20);

/// A bridge and the client behind it.
pub(super) struct Client {
    pub(super) lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    pub(super) writer: WriteHalf<DuplexStream>,
    pub(super) number: u64,
    /// What came and was no answer.
    pub(super) others: Vec<String>,
    pub(super) serving: JoinHandle<()>,
    pub(super) stop: CancellationToken,
}

impl Client {
    pub(super) fn connect(app: &Arc<App>, hello: Hello) -> Self {
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
    pub(super) async fn with_profile(app: &Arc<App>, profile: Option<&str>) -> Self {
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

    pub(super) async fn initialize(&mut self) -> Value {
        self.initialize_with(json!({})).await
    }

    pub(super) async fn initialize_with(&mut self, capabilities: Value) -> Value {
        let answer = self
            .request(
                "initialize",
                json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": capabilities,
                    "clientInfo": { "name": "test-client", "version": "1" }
                }),
            )
            .await;
        self.write("0", &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        answer
    }

    pub(super) async fn write(&mut self, number: &str, message: &Value) {
        self.write_raw(&format!("{number} {message}\n")).await;
    }

    pub(super) async fn write_raw(&mut self, line: &str) {
        self.writer.write_all(line.as_bytes()).await.unwrap();
    }

    pub(super) async fn next_line(&mut self) -> String {
        timeout(DEADLINE, self.lines.next_line()).await.unwrap().unwrap().unwrap()
    }

    /// The next answer; what comes before it is kept.
    pub(super) async fn answer(&mut self) -> Value {
        loop {
            let line = self.next_line().await;
            match serde_json::from_str::<Value>(&line) {
                Ok(message) if message.get("method").is_none() => return message,
                _ => self.others.push(line),
            }
        }
    }

    pub(super) async fn request(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let (id, number) = (self.number, self.number.to_string());
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.write(&number, &message).await;
        let answer = self.answer().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// The result of a tool call.
    pub(super) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer =
            self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// What came before the last answer and was a notification, and no longer is kept.
    pub(super) fn told(&mut self) -> Vec<Value> {
        let others = std::mem::take(&mut self.others);
        others.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The next notification.
    pub(super) async fn notified(&mut self) -> Value {
        loop {
            if let Ok(message) = serde_json::from_str(&self.next_line().await) {
                return message;
            }
        }
    }

    pub(super) async fn end(self) {
        drop(self.writer);
        drop(self.lines);
        timeout(DEADLINE, self.serving).await.unwrap().unwrap();
    }
}

pub(super) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

pub(super) fn json_text(result: &Value) -> Value {
    serde_json::from_str(text(result)).unwrap()
}
