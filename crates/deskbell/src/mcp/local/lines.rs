//! The transport of the local socket: a line from the bridge is a number and a message, a line to it is a message.

use std::{borrow::Cow, io, sync::Arc, time::Duration};

use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, ClientRequest, GetExtensions as _, ServerJsonRpcMessage},
    transport::Transport,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::outgoing::{Line, Outgoing, Sort};
use crate::{
    bridge::{MESSAGE_LIMIT, cut::Cut},
    mcp::{caller::RequestKey, told},
};

/// Longest line from a bridge, in bytes: a message after its number. A longer one is skipped and answered with an error.
const LINE_LIMIT: usize = MESSAGE_LIMIT + 32;

/// How long the last lines may take to be written when the connection ends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The connection to one bridge.
pub(super) struct Lines<R> {
    reader: R,
    /// The start of a line whose end has not come yet. Kept here, because a read may be given up half-way.
    partial: Vec<u8>,
    /// What is left of the line that is being read, if it is too long and only skipped.
    skipping: Option<Cut>,
    bridge: Arc<str>,
    /// Whether a request has come. What comes before says nothing, and rmcp would end the connection over it.
    opened: bool,
    outgoing: Outgoing,
    writing: Option<JoinHandle<()>>,
    gone: CancellationToken,
}

impl<R: AsyncBufRead + Send + Unpin> Lines<R> {
    /// The connection of the bridge with the key `bridge`; it ends when `gone` is cancelled.
    pub(super) fn new(
        reader: R,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        bridge: &str,
        gone: CancellationToken,
    ) -> Self {
        let (outgoing, writing) = Outgoing::start(writer, gone.clone());
        Self {
            reader,
            partial: Vec::new(),
            skipping: None,
            bridge: bridge.into(),
            opened: false,
            outgoing,
            writing: Some(writing),
            gone,
        }
    }

    pub(super) fn outgoing(&self) -> Outgoing {
        self.outgoing.clone()
    }

    /// Tells the person and the client why nothing is served here, until the bridge goes away.
    pub(super) async fn refuse(mut self, reason: &str) {
        self.outgoing.show(&format!("deskbell: {reason}"));
        while let Some(line) = self.next_line().await {
            if let Ok((_, ClientJsonRpcMessage::Request(request))) = parse(&line) {
                let id = serde_json::to_value(request.id).unwrap_or_default();
                self.answer_error(&id, -32602, reason);
            }
        }
        self.finish().await;
    }

    /// The next line, without its end; `None` when the connection ended. May be given up and called again.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let read = tokio::select! {
                () = self.gone.cancelled() => return None,
                read = async {
                    self.outgoing.room().await;
                    self.reader.fill_buf().await
                } => read,
            };
            let bytes = match read {
                Ok(bytes) if !bytes.is_empty() => bytes,
                _ => return None,
            };
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let taken = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            if self.skipping.is_none() && self.partial.len() + taken.len() > LINE_LIMIT {
                let line = std::mem::take(&mut self.partial);
                self.skipping = Some(Cut::new(numbered(&line).1));
            }
            match &mut self.skipping {
                Some(cut) => cut.skip(taken),
                None => self.partial.extend_from_slice(taken),
            }
            let consumed = taken.len() + usize::from(end.is_some());
            self.reader.consume(consumed);
            if end.is_none() {
                continue;
            }
            let line = std::mem::take(&mut self.partial);
            if let Some(cut) = self.skipping.take() {
                let text = format!("Invalid Request: a message longer than {LINE_LIMIT} bytes");
                self.answer_error(&cut.id(), -32600, &text);
            } else if !line.trim_ascii().is_empty() {
                return Some(line);
            }
        }
    }

    fn answer_error(&self, id: &Value, code: i32, message: &str) {
        let answer =
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } });
        let line = Line { sort: Sort::Answer, bytes: answer.to_string().into_bytes() };
        // A bridge that is gone needs no answer; the next read ends the connection.
        let _gone = self.outgoing.send(line);
    }

    async fn finish(&mut self) {
        let _gone = self.outgoing.send(Line { sort: Sort::End, bytes: Vec::new() });
        if let Some(writing) = self.writing.take()
            && timeout(CLOSE_TIMEOUT, writing).await.is_err()
        {
            warn!("a bridge did not take the last lines in time");
        }
    }
}

impl<R: AsyncBufRead + Send + Unpin> Transport<RoleServer> for Lines<R> {
    type Error = io::Error;

    fn name() -> Cow<'static, str> {
        "local socket".into()
    }

    /// Sends at the call and not when the future runs: rmcp runs these futures side by side, so a response could
    /// overtake the notifications before it.
    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let sort = match &message {
            ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_) => Sort::Answer,
            ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => {
                Sort::Notification
            }
        };
        let sent = serde_json::to_vec(&message)
            .map_err(io::Error::from)
            .and_then(|bytes| self.outgoing.send(Line { sort, bytes }));
        let outgoing = self.outgoing.clone();
        async move {
            sent?;
            outgoing.room().await;
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let line = self.next_line().await?;
            match parse(&line) {
                Ok((number, ClientJsonRpcMessage::Request(mut request))) => {
                    self.opened = true;
                    if let ClientRequest::InitializeRequest(_) = &request.request {
                        let declared = told::declared(numbered(&line).1);
                        request.request.extensions_mut().insert(declared);
                    }
                    if number > 0 {
                        let bridge = Arc::clone(&self.bridge);
                        request.request.extensions_mut().insert(RequestKey { bridge, number });
                    }
                    return Some(ClientJsonRpcMessage::Request(request));
                }
                Ok((_, message)) if self.opened => return Some(message),
                Ok(_) => {}
                Err((id, code, text)) => self.answer_error(&id, code, &text),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.finish().await;
        Ok(())
    }
}

/// Reads `NUMBER JSON`.
///
/// # Errors
/// The id, code and text of the answer to what is not a message.
fn parse(line: &[u8]) -> Result<(u64, ClientJsonRpcMessage), (Value, i32, String)> {
    let (number, message) = numbered(line);
    let number = str::from_utf8(number).ok().and_then(|number| number.parse().ok());
    let number = number.ok_or_else(|| {
        (Value::Null, -32600, "Invalid Request: a line without its number".to_owned())
    })?;
    let parsed = serde_json::from_slice(message);
    parsed.map(|message| (number, message)).map_err(|_| match serde_json::from_slice(message) {
        Ok::<Value, _>(value) => {
            let id = value.get("id").filter(|id| id.is_string() || id.is_i64() || id.is_u64());
            let text = "Invalid Request: not a JSON-RPC 2.0 message".to_owned();
            (id.cloned().unwrap_or_default(), -32600, text)
        }
        // The text of the error names line and column, and never shows the message itself.
        Err(error) => (id_of(message), -32700, format!("Parse error: {error}")),
    })
}

/// A line's number and its message.
fn numbered(line: &[u8]) -> (&[u8], &[u8]) {
    line.split_at(line.iter().position(|byte| *byte == b' ').unwrap_or(line.len()))
}

/// The id of a message that is too deeply nested to be read whole; the bridge waits for an answer to it.
fn id_of(message: &[u8]) -> Value {
    #[derive(serde::Deserialize)]
    struct Head {
        id: Option<Value>,
    }
    let head: Option<Head> = serde_json::from_slice(message).ok();
    head.and_then(|head| head.id).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt as _, BufReader};

    use super::*;

    /// A connection whose bridge writes `input` in pieces of `size` bytes and then goes away.
    fn connection(input: Vec<u8>, size: usize) -> Lines<impl AsyncBufRead + Send + Unpin> {
        let (mut near, far) = tokio::io::duplex(size);
        tokio::spawn(async move { near.write_all(&input).await });
        Lines::new(BufReader::new(far), tokio::io::sink(), "b", CancellationToken::new())
    }

    fn ping(id: usize) -> String {
        format!("{id} {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n")
    }

    #[tokio::test]
    async fn a_read_that_was_given_up_loses_nothing() {
        let input: String = (1..=20).map(ping).collect();
        let mut lines = connection(input.into_bytes(), 7);
        let mut ids = Vec::new();
        loop {
            // The shortest patience: nearly every read is given up half-way.
            let Ok(line) = timeout(Duration::ZERO, lines.next_line()).await else {
                tokio::task::yield_now().await;
                continue;
            };
            let Some(line) = line else { break };
            ids.push(parse(&line).map(|(number, _)| number).unwrap());
        }
        assert_eq!(ids, (1..=20).collect::<Vec<u64>>());
    }

    #[tokio::test]
    async fn an_endless_line_is_skipped_and_the_next_is_read() {
        let mut input = vec![b'x'; LINE_LIMIT + 1];
        input.extend(format!("\n{}", ping(1)).bytes());
        let mut lines = connection(input, 1024 * 1024);
        let line = lines.next_line().await.unwrap();
        assert_eq!(parse(&line).map(|(number, _)| number), Ok(1));
        assert!(lines.next_line().await.is_none());
    }

    #[tokio::test]
    async fn a_request_that_is_too_long_is_refused_under_its_id() {
        let text = "x".repeat(LINE_LIMIT);
        let input = format!("1 {{\"id\":7,\"method\":\"m\",\"params\":\"{text}\"}}\n");
        let (mut near, far) = tokio::io::duplex(1024 * 1024);
        let (answers, writer) = tokio::io::duplex(1024);
        tokio::spawn(async move { near.write_all(input.as_bytes()).await });
        let mut lines = Lines::new(BufReader::new(far), writer, "b", CancellationToken::new());
        assert!(lines.next_line().await.is_none());
        lines.finish().await;
        let mut answer = String::new();
        BufReader::new(answers).read_line(&mut answer).await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32600)));
    }

    #[tokio::test]
    async fn requests_carry_the_number_of_their_bridge_unless_it_is_0() {
        let input = format!("{}{}", ping(3), ping(0));
        let mut lines = connection(input.into_bytes(), 1024);
        let mut keys = Vec::new();
        while let Some(ClientJsonRpcMessage::Request(request)) = lines.receive().await {
            keys.push(request.request.extensions().get::<RequestKey>().cloned());
        }
        assert_eq!(keys, [Some(RequestKey { bridge: "b".into(), number: 3 }), None]);
    }
}
