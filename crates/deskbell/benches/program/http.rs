//! An HTTP client on bare sockets, and the load that many of them make.

use std::time::{Duration, Instant};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    runtime,
    task::JoinSet,
};

use crate::{
    Effort,
    stdio::{INITIALIZE, INITIALIZED, call, check, send_call},
    subject::Running,
    table::{Measured, Times},
};

const EVENT: &str = r#"{"text":"All 212 tests passed in 41 s.","title":"Build 4711","level":"info","context":"workflow"}"#;
const NOTICE: &str = r#"{"message":"Build 4711: all 212 tests passed in 41 s.","level":"info","context":"workflow"}"#;

/// What each connection of a load does again and again.
#[derive(Clone, Copy)]
pub(crate) enum Load {
    /// Calls `notify_send`.
    Send,
    /// Calls `notify`.
    Notify,
    /// Posts an event.
    Events,
}

/// A connection that is kept open, with the session of an MCP client if it has one.
struct Connection {
    port: u16,
    stream: TcpStream,
    session: Option<String>,
    received: Vec<u8>,
}

/// An answer's status, head and body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Connection {
    async fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { port, stream, session: None, received: Vec::with_capacity(8 * 1024) }
    }

    /// Opens a connection and begins an MCP session on it.
    async fn open_session(port: u16) -> Self {
        let mut connection = Self::open(port).await;
        let answer = connection.post("/mcp", INITIALIZE).await;
        assert_eq!(answer.status, 200, "initialize: {}", answer.body);
        connection.session = header(&answer.head, "mcp-session-id").map(str::to_owned);
        let answer = connection.post("/mcp", INITIALIZED).await;
        assert_eq!(answer.status, 202, "initialized: {}", answer.body);
        connection
    }

    async fn post(&mut self, path: &str, body: &str) -> Answer {
        let session = self.session.as_ref().map_or_else(String::new, |session| {
            format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n")
        });
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
        self.answer().await
    }

    async fn answer(&mut self) -> Answer {
        let head_end = loop {
            if let Some(end) = find(&self.received, b"\r\n\r\n") {
                break end + 4;
            }
            self.read().await;
        };
        let head: Vec<u8> = self.received.drain(..head_end).collect();
        let head = String::from_utf8(head).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = if header(&head, "transfer-encoding").is_some() {
            self.chunked_body().await
        } else {
            let length =
                header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
            self.take(length).await
        };
        Answer { status, head, body: String::from_utf8(body).unwrap() }
    }

    async fn chunked_body(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let line_end = loop {
                match find(&self.received, b"\r\n") {
                    Some(end) => break end,
                    None => self.read().await,
                }
            };
            let line = self.take(line_end + 2).await;
            let length = usize::from_str_radix(str::from_utf8(&line).unwrap().trim(), 16).unwrap();
            let mut chunk = self.take(length + 2).await;
            chunk.truncate(length);
            if chunk.is_empty() {
                return body;
            }
            body.append(&mut chunk);
        }
    }

    async fn take(&mut self, length: usize) -> Vec<u8> {
        while self.received.len() < length {
            self.read().await;
        }
        self.received.drain(..length).collect()
    }

    async fn read(&mut self) {
        let read = self.stream.read_buf(&mut self.received).await.unwrap();
        assert!(read > 0, "the server closed the connection");
    }

    async fn act(&mut self, load: Load, id: usize) {
        let (path, body) = match load {
            Load::Send => ("/mcp", send_call(id)),
            Load::Notify => ("/mcp", call(id, "notify", NOTICE)),
            Load::Events => ("/v1/events", EVENT.to_owned()),
        };
        let answer = self.post(path, &body).await;
        assert!((200..300).contains(&answer.status), "{path}: {} {}", answer.status, answer.body);
        if !matches!(load, Load::Events) {
            check(&answer.body);
        }
    }
}

/// Calls one after the other on one connection.
pub(crate) fn round_trips(running: &Running<'_>, effort: Effort) -> Times {
    block_on(async {
        let mut connection = Connection::open_session(running.port).await;
        let started = Instant::now();
        let mut times = Vec::new();
        while times.len() < effort.calls && started.elapsed() < effort.time {
            let asked = Instant::now();
            connection.act(Load::Send, times.len() + 1).await;
            times.push(asked.elapsed());
        }
        Times::of(times)
    })
}

/// How many requests a second `connections` at once get answered.
pub(crate) fn rate(
    running: &Running<'_>,
    load: Load,
    connections: usize,
    effort: Effort,
) -> Measured {
    let port = running.port;
    block_on(async move {
        let mut opened = Vec::new();
        for _ in 0..connections {
            opened.push(match load {
                Load::Events => Connection::open(port).await,
                Load::Send | Load::Notify => Connection::open_session(port).await,
            });
        }
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for mut connection in opened {
            tasks.spawn(async move {
                let mut answered = 0_usize;
                while started.elapsed() < effort.time {
                    answered += 1;
                    connection.act(load, answered).await;
                }
                answered
            });
        }
        let answered: usize = tasks.join_all().await.into_iter().sum();
        Measured::rate(answered, started.elapsed())
    })
}

/// One thread makes all the load, so that the server keeps a core.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, work).await.expect("a measurement ends within a minute")
    })
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}
