//! An HTTP client on bare sockets.

use std::io;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::stdio::{INITIALIZE, INITIALIZED};

/// A connection that is kept open, with the session of an MCP client if it has one.
pub(crate) struct Connection {
    port: u16,
    stream: TcpStream,
    session: Option<String>,
    received: Vec<u8>,
}

/// An answer's status, head and body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Connection {
    pub(crate) async fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { port, stream, session: None, received: Vec::with_capacity(8 * 1024) })
    }

    /// Opens a connection and begins an MCP session on it.
    pub(crate) async fn open_session(port: u16) -> io::Result<Self> {
        let mut connection = Self::open(port).await?;
        let answer = connection.post("/mcp", INITIALIZE).await?;
        assert_eq!(answer.status, 200, "initialize: {}", answer.body);
        connection.session = header(&answer.head, "mcp-session-id").map(str::to_owned);
        let answer = connection.post("/mcp", INITIALIZED).await?;
        assert_eq!(answer.status, 202, "initialized: {}", answer.body);
        Ok(connection)
    }

    pub(crate) async fn get(&mut self, path: &str) -> io::Result<Answer> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", self.port);
        self.stream.write_all(request.as_bytes()).await?;
        self.answer().await
    }

    pub(crate) async fn post(&mut self, path: &str, body: &str) -> io::Result<Answer> {
        let session = self.session.as_ref().map_or_else(String::new, |session| {
            format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n")
        });
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.answer().await
    }

    async fn answer(&mut self) -> io::Result<Answer> {
        let head_end = loop {
            if let Some(end) = find(&self.received, b"\r\n\r\n") {
                break end + 4;
            }
            self.read().await?;
        };
        let head: Vec<u8> = self.received.drain(..head_end).collect();
        let head = String::from_utf8(head).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = if header(&head, "transfer-encoding").is_some() {
            self.chunked_body().await?
        } else {
            let length =
                header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
            self.take(length).await?
        };
        Ok(Answer { status, head, body: String::from_utf8(body).unwrap() })
    }

    async fn chunked_body(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line_end = loop {
                match find(&self.received, b"\r\n") {
                    Some(end) => break end,
                    None => self.read().await?,
                }
            };
            let line = self.take(line_end + 2).await?;
            let length = usize::from_str_radix(str::from_utf8(&line).unwrap().trim(), 16).unwrap();
            let mut chunk = self.take(length + 2).await?;
            chunk.truncate(length);
            if chunk.is_empty() {
                return Ok(body);
            }
            body.append(&mut chunk);
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.received.len() < length {
            self.read().await?;
        }
        Ok(self.received.drain(..length).collect())
    }

    async fn read(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}
