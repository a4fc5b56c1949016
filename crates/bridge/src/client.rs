//! The client's side: messages on lines or in `Content-Length` frames, whichever the client uses.

use std::{
    io::{self, BufRead, Read as _, Write},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::value::RawValue;

use crate::{BATCH_LIMIT, MESSAGE_LIMIT, cut::Cut, peek::error_answer};

/// How much of a frame that is too long is looked at for the id of its request, in bytes.
const HEAD: u64 = 64 * 1024;

/// Longest line of a frame's header, in bytes.
const HEADER_LIMIT: u64 = 1024;

/// What came from the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// It closed its side.
    End,
    /// An empty line.
    Nothing,
    /// One message.
    Message(Vec<u8>),
    /// A JSON-RPC batch.
    Batch(Vec<Vec<u8>>),
    /// Not a message: the answer to it.
    Refused(Vec<u8>),
}

/// The client: where its messages are written, and how.
pub(crate) struct Client {
    output: Mutex<Box<dyn Write + Send>>,
    terminal: Mutex<Box<dyn Write + Send>>,
    /// Whether the client's latest message came in a frame; answers do as it does.
    framed: AtomicBool,
    closed: AtomicBool,
}

impl Client {
    pub(crate) fn new(output: Box<dyn Write + Send>, terminal: Box<dyn Write + Send>) -> Self {
        Self {
            output: Mutex::new(output),
            terminal: Mutex::new(terminal),
            framed: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    /// Whether the client still reads.
    pub(crate) fn is_open(&self) -> bool {
        !self.closed.load(Ordering::Relaxed)
    }

    /// Writes one message in the client's framing.
    pub(crate) fn send(&self, message: &[u8]) {
        let mut written = Vec::with_capacity(message.len() + 32);
        if self.framed.load(Ordering::Relaxed) {
            written.extend(format!("Content-Length: {}\r\n\r\n", message.len()).bytes());
            written.extend(message);
        } else {
            written.extend(message);
            written.push(b'\n');
        }
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if output.write_all(&written).and_then(|()| output.flush()).is_err() {
            self.closed.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until what is being written is written.
    pub(crate) fn flush(&self) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if output.flush().is_err() {
            self.closed.store(true, Ordering::Relaxed);
        }
    }

    /// Shows a line to the person at the terminal. A terminal that is gone is no reason to fail.
    pub(crate) fn show(&self, line: &[u8]) {
        let mut terminal = self.terminal.lock().unwrap_or_else(PoisonError::into_inner);
        let _gone = terminal
            .write_all(line)
            .and_then(|()| terminal.write_all(b"\n"))
            .and_then(|()| terminal.flush());
    }

    /// Reads the client's next message.
    pub(crate) fn receive(&self, input: &mut impl BufRead) -> io::Result<Received> {
        if input.fill_buf()?.is_empty() {
            return Ok(Received::End);
        }
        let first = match take_line(input, MESSAGE_LIMIT)? {
            Ok(line) => line,
            Err(cut) => return Ok(too_long(&cut)),
        };
        // The length may follow in a later line of the header.
        let is_type = header(&first, "content-type").is_some();
        match content_length(&first).or(is_type.then_some(Ok(0))) {
            Some(Ok(length)) => self.receive_frame(input, length),
            Some(Err(answer)) => Ok(Received::Refused(answer)),
            None => {
                let message = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&first).trim_ascii();
                if !message.is_empty() {
                    self.framed.store(false, Ordering::Relaxed);
                }
                Ok(sorted(message))
            }
        }
    }

    fn receive_frame(&self, input: &mut impl BufRead, mut length: usize) -> io::Result<Received> {
        self.framed.store(true, Ordering::Relaxed);
        loop {
            let mut header = Vec::new();
            input.by_ref().take(HEADER_LIMIT).read_until(b'\n', &mut header)?;
            if header.trim_ascii().is_empty() {
                break;
            }
            if let Some(Ok(again)) = content_length(&header) {
                length = again;
            }
        }
        if length > MESSAGE_LIMIT {
            let mut input = input.take(length as u64);
            let mut head = Vec::new();
            input.by_ref().take(HEAD).read_to_end(&mut head)?;
            let mut cut = Cut::new(&head);
            io::copy(&mut input, &mut cut)?;
            return Ok(too_long(&cut));
        }
        let mut body = vec![0; length];
        match input.read_exact(&mut body) {
            Ok(()) => Ok(sorted(body.trim_ascii())),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Received::Refused(
                error_answer(None, -32700, "Parse error: the frame ended early"),
            )),
            Err(error) => Err(error),
        }
    }
}

fn sorted(message: &[u8]) -> Received {
    match message.first() {
        None => Received::Nothing,
        Some(b'[') => batch(message),
        Some(_) => Received::Message(message.to_owned()),
    }
}

fn batch(message: &[u8]) -> Received {
    let items: Vec<Box<RawValue>> = match serde_json::from_slice(message) {
        Ok(items) => items,
        Err(error) => {
            return Received::Refused(error_answer(None, -32700, &format!("Parse error: {error}")));
        }
    };
    match items.len() {
        0 => Received::Refused(error_answer(None, -32600, "Invalid Request: an empty batch")),
        length if length > BATCH_LIMIT => {
            let text =
                format!("Invalid Request: a batch of {length}; at most {BATCH_LIMIT} are taken");
            Received::Refused(error_answer(None, -32600, &text))
        }
        _ => Received::Batch(items.iter().map(|item| item.get().as_bytes().to_owned()).collect()),
    }
}

/// The value of the header called `name`, if `line` is that header.
fn header<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (found, value) = line.split_at(colon);
    found
        .eq_ignore_ascii_case(name.as_bytes())
        .then(|| value.get(1..).unwrap_or_default().trim_ascii())
}

/// The length that a header line gives, if it is one; an error is the answer to a length that is no number.
fn content_length(line: &[u8]) -> Option<Result<usize, Vec<u8>>> {
    let value = header(line, "content-length")?;
    let length = str::from_utf8(value).ok().and_then(|value| value.parse().ok());
    Some(length.ok_or_else(|| {
        error_answer(None, -32700, "Parse error: `Content-Length` must be a number of bytes")
    }))
}

/// Takes a line without its end; an error is what is left of one longer than `limit`, which is skipped.
fn take_line(input: &mut impl BufRead, limit: usize) -> io::Result<Result<Vec<u8>, Cut>> {
    let mut line = Vec::new();
    input.by_ref().take(limit as u64 + 1).read_until(b'\n', &mut line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Ok(line));
    }
    if line.len() <= limit {
        return Ok(Ok(line));
    }
    let mut cut = Cut::new(&line);
    loop {
        let bytes = input.fill_buf()?;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let skipped = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        cut.skip(skipped);
        let (is_over, length) = (end.is_some() || bytes.is_empty(), skipped.len());
        input.consume(length + usize::from(end.is_some()));
        if is_over {
            return Ok(Err(cut));
        }
    }
}

fn too_long(cut: &Cut) -> Received {
    let text = format!("Invalid Request: a message longer than {MESSAGE_LIMIT} bytes");
    Received::Refused(error_answer(Some(&cut.id().to_string()), -32600, &text))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn receive_all(input: &[u8]) -> Vec<Received> {
        let client = Client::new(Box::new(io::sink()), Box::new(io::sink()));
        let mut input = input;
        let mut received = Vec::new();
        loop {
            match client.receive(&mut input).unwrap() {
                Received::End => return received,
                message => received.push(message),
            }
        }
    }

    #[test]
    fn lines_and_frames_are_both_read_row_57() {
        let input = b"{\"a\":1}\r\n\nContent-Length: 7\r\n\r\n{\"b\":2}Content-Type: x\r\nContent-Length: 7\r\n\r\n{\"c\":3}Content-Length: 7\r\nContent-Type: x\r\n\r\n{\"e\":5}{\"d\":4}\n";
        let message = |text: &str| Received::Message(text.as_bytes().to_owned());
        assert_eq!(
            receive_all(input),
            [
                message("{\"a\":1}"),
                Received::Nothing,
                message("{\"b\":2}"),
                message("{\"c\":3}"),
                message("{\"e\":5}"),
                message("{\"d\":4}")
            ]
        );
    }

    #[test]
    fn a_framed_request_gets_a_framed_answer_row_57() {
        let output = Sink::default();
        let client = Client::new(Box::new(output.clone()), Box::new(io::sink()));
        client.receive(&mut &b"Content-Length: 2\r\n\r\n{}"[..]).unwrap();
        client.send(b"{\"ok\":1}");
        assert_eq!(*output.0.lock().unwrap(), b"Content-Length: 8\r\n\r\n{\"ok\":1}");
    }

    #[test]
    fn broken_frames_and_batches_are_answered() {
        for input in
            [&b"Content-Length: x\r\n"[..], b"Content-Length: 9\r\n\r\n{}", b"[]\n", b"[1,\n"]
        {
            let received = receive_all(input);
            assert!(
                matches!(received.first(), Some(Received::Refused(_))),
                "{input:?}: {received:?}"
            );
        }
    }

    #[test]
    fn an_endless_line_is_skipped() {
        let mut input = vec![b'x'; MESSAGE_LIMIT + 10];
        input.extend(b"\n{}\n");
        let received = receive_all(&input);
        assert!(matches!(received[0], Received::Refused(_)));
        assert_eq!(received[1], Received::Message(b"{}".to_vec()));
    }

    #[test]
    fn a_request_that_is_too_long_is_refused_under_its_id() {
        let text = "x".repeat(MESSAGE_LIMIT);
        let first = format!(r#"{{"id":7,"method":"m","params":"{text}"}}"#);
        let last = format!(r#"{{"method":"m","params":"{text}","jsonrpc":"2.0","id":"k"}}"#);
        let framed = format!("Content-Length: {}\r\n\r\n{first}", first.len());
        let input = format!("{first}\n{last}\n{framed}");
        let ids: Vec<_> = receive_all(input.as_bytes())
            .into_iter()
            .map(|received| match received {
                Received::Refused(answer) => {
                    serde_json::from_slice::<serde_json::Value>(&answer).unwrap()["id"].clone()
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(ids, [7.into(), "k".into(), serde_json::Value::from(7)]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_their_end(input in prop::collection::vec(any::<u8>(), 0..300)) {
            receive_all(&input);
        }
    }
}
