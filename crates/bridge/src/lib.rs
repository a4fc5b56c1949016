//! `deskbell mcp`: copies messages between an MCP client and the daemon, and survives the daemon.
//!
//! It is a crate of its own so that it stays small: no runtime, no HTTP, no configuration.
//!
//! Two threads and no runtime, because ten agents mean ten bridges. One thread reads the client's messages, keeps
//! each request until its answer has passed, and writes them to the daemon. The other copies the daemon's messages to
//! the client; when the daemon goes away it connects anew (starting one if need be), replays the handshake and sends
//! the unanswered requests again under their old numbers, by which the daemon sees each of them once.

pub mod paths;
pub mod program;
pub mod socket;
pub mod start;

mod client;
pub mod cut;
pub mod hello;
mod peek;
mod requests;
pub mod sink;

use std::{
    io::{self, BufRead as _, BufReader, Read, Write},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    client::{Client, Received},
    hello::{Hello, TERMINAL_MARK, Welcome},
    peek::{Message, Sort},
    requests::{Passed, Requests},
};

/// Most messages in a batch.
pub const BATCH_LIMIT: usize = 256;

/// The version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Longest message of a client, in bytes, on every transport. A longer one is skipped and answered with an error.
pub const MESSAGE_LIMIT: usize = 16 * 1024 * 1024;

/// How long the bridge waits for open answers after the client has closed its side.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

/// How often in a row a daemon may be asked for without an answer before the open requests are refused.
const CONNECT_LIMIT: u32 = 20;

/// The pause between two tries to reach a daemon.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);

/// Gives a connection to a daemon, starting one where that is possible.
pub type Connect = dyn Fn() -> io::Result<UnixStream> + Send + Sync;

/// A bridge between the client on `input` and `output` and whatever daemon `connect` gives.
struct Bridge {
    hello: Hello,
    connect: Box<Connect>,
    client: Client,
    requests: Requests,
    /// The writing half of the connection; `None` while there is no daemon.
    daemon: Mutex<Option<UnixStream>>,
}

/// Copies messages until the client closes `input`, and then until its open requests are answered.
///
/// # Errors
/// Fails when `input` cannot be read. A client that no longer reads ends the bridge without an error.
pub fn run(
    hello: Hello,
    connect: Box<Connect>,
    input: impl Read,
    output: impl Write + Send + 'static,
    terminal: impl Write + Send + 'static,
) -> io::Result<()> {
    let client = Client::new(Box::new(output), Box::new(terminal));
    let bridge = Arc::new(Bridge {
        hello,
        connect,
        client,
        requests: Requests::default(),
        daemon: Mutex::new(None),
    });
    let copying = Arc::clone(&bridge);
    std::thread::Builder::new()
        .name("from daemon".to_owned())
        .stack_size(256 * 1024)
        .spawn(move || copying.copy_to_client())?;
    bridge.copy_to_daemon(BufReader::new(input))?;
    bridge.requests.wait_until_answered(LAST_ANSWERS);
    bridge.client.flush();
    Ok(())
}

impl Bridge {
    fn daemon(&self) -> MutexGuard<'_, Option<UnixStream>> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the client's messages until it closes its side or no longer listens.
    fn copy_to_daemon(&self, mut input: BufReader<impl Read>) -> io::Result<()> {
        while self.client.is_open() {
            match self.client.receive(&mut input)? {
                Received::End => return Ok(()),
                Received::Nothing => {}
                Received::Refused(answer) => self.client.send(&answer),
                Received::Message(bytes) => match peek::read(&bytes) {
                    Ok(message) => self.forward(&bytes, message),
                    Err(answer) => self.client.send(&answer),
                },
                Received::Batch(items) => self.forward_batch(items),
            }
        }
        Ok(())
    }

    fn forward(&self, bytes: &[u8], message: Message) {
        if let Some(id) = message.sort.request_id() {
            self.requests.wait_for_turn(id, bytes.len());
        }
        let cancels = match &message.sort {
            Sort::Notification { cancels, .. } => cancels.clone(),
            Sort::Request { .. } | Sort::Response { .. } => None,
        };
        let mut daemon = self.daemon();
        let number = self.requests.remember(bytes, message);
        // While there is no daemon the request waits among the open ones; the next connection sends it.
        if let Some(stream) = daemon.as_mut()
            && write_line(stream, number, bytes).is_err()
        {
            *daemon = None;
        }
        drop(daemon);
        if let Some(answer) = cancels.and_then(|id| self.requests.cancelled(&id)) {
            self.client.send(&answer);
        }
    }

    fn forward_batch(&self, items: Vec<Vec<u8>>) {
        let (mut messages, mut refused) = (Vec::new(), Vec::new());
        for bytes in items {
            match peek::read(&bytes) {
                Ok(message) => messages.push((bytes, message)),
                Err(answer) => refused.push(answer),
            }
        }
        let ids = messages
            .iter()
            .filter_map(|(_, message)| message.sort.request_id())
            .map(str::to_owned)
            .collect();
        if let Some(answer) = self.requests.open_batch(ids, refused) {
            self.client.send(&answer);
        }
        for (bytes, message) in messages {
            self.forward(&bytes, message);
        }
    }

    /// Copies the daemon's messages, from one daemon after the other, until the client no longer listens.
    fn copy_to_client(&self) {
        let mut failures = 0;
        while self.client.is_open() {
            match (self.connect)().and_then(|stream| self.attach(stream)) {
                Ok(Some(daemon)) => {
                    failures = 0;
                    self.copy_from(daemon);
                    *self.daemon() = None;
                }
                // An older daemon is on its way out.
                Ok(None) => self.requests.pause(CONNECT_PAUSE),
                Err(error) => {
                    failures += 1;
                    if failures % CONNECT_LIMIT == 0 {
                        self.refuse_open_requests(&error);
                    }
                    self.requests.pause(CONNECT_PAUSE);
                }
            }
        }
    }

    /// Greets the daemon, replays the handshake and the open requests; `None` means that the daemon hands over.
    fn attach(&self, stream: UnixStream) -> io::Result<Option<BufReader<UnixStream>>> {
        let mut writer = stream.try_clone()?;
        let mut reader = BufReader::new(stream);
        serde_json::to_writer(&mut writer, &self.hello)?;
        writer.write_all(b"\n")?;
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let welcome: Welcome = serde_json::from_str(&line).map_err(|_| {
            let what = if line.is_empty() {
                "it ended before it greeted"
            } else {
                "its greeting is not understood"
            };
            io::Error::new(io::ErrorKind::InvalidData, what)
        })?;
        if welcome.hands_over {
            return Ok(None);
        }
        // New requests wait here until the old ones are on their way, so that the order is kept.
        let mut daemon = self.daemon();
        for (number, bytes) in self.requests.to_replay() {
            write_line(&mut writer, number, &bytes)?;
        }
        *daemon = Some(writer);
        Ok(Some(reader))
    }

    fn copy_from(&self, mut daemon: BufReader<UnixStream>) {
        let mut line = Vec::new();
        while self.client.is_open() {
            line.clear();
            match daemon.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.last() != Some(&b'\n') => return,
                Ok(_) => self.pass(&line),
            }
        }
    }

    fn pass(&self, line: &[u8]) {
        let text = line.trim_ascii();
        if let Some(shown) = text.strip_prefix(&[TERMINAL_MARK as u8]) {
            self.client.show(shown);
            return;
        }
        // What this bridge cannot read is not its business: it is the daemon's message to the client.
        match peek::read(text).map(|message| message.sort) {
            Ok(Sort::Response { id }) => {
                match self.requests.answered(&id, text) {
                    Passed::On => self.client.send(text),
                    Passed::Instead(batch) => self.client.send(&batch),
                    Passed::Held => {}
                }
                self.requests.passed();
            }
            _ => self.client.send(text),
        }
    }

    fn refuse_open_requests(&self, error: &io::Error) {
        let reason =
            format!("the Deskbell daemon cannot be reached: {error}; `deskbell doctor` tells more");
        for answer in self.requests.refuse_all(&reason) {
            self.client.send(&answer);
        }
        self.requests.passed();
    }
}

fn write_line(stream: &mut UnixStream, number: u64, bytes: &[u8]) -> io::Result<()> {
    let mut line = Vec::with_capacity(bytes.len() + 24);
    write!(line, "{number} ")?;
    // A message on a line of its own: framed messages may be spread over several.
    line.extend(bytes.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    line.push(b'\n');
    stream.write_all(&line)
}
