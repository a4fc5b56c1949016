//! Far ends on ports of their own that take everything after some time, on bare sockets so that they cost little.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    runtime::{self, Runtime},
};

use super::PATIENCE;

/// What every text begins with; its number follows.
const WORD: &[u8] = b"fanout-";

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/// The text of a message.
pub(super) fn text(number: usize) -> String {
    format!("fanout-{number}.")
}

/// The far ends. They end with their value.
pub(super) struct FarEnds {
    pub(super) ports: Vec<u16>,
    seen: Arc<Seen>,
    _runtime: Runtime,
}

#[derive(Default)]
struct Seen {
    count: Arc<AtomicUsize>,
    /// How often each message was answered, and when last; kept only where far ends take their time.
    answers: Mutex<HashMap<usize, (usize, Option<Instant>)>>,
}

impl FarEnds {
    pub(super) fn start(count: usize, answer_time: Duration) -> Self {
        let runtime =
            runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let seen = Arc::<Seen>::default();
        let ports = (0..count).map(|_| {
            let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
            let port = listener.local_addr().unwrap().port();
            runtime.spawn(listen(listener, answer_time, Arc::clone(&seen)));
            port
        });
        Self { ports: ports.collect(), seen, _runtime: runtime }
    }

    /// How many messages were answered.
    pub(super) fn count(&self) -> usize {
        self.seen.count.load(Ordering::Relaxed)
    }

    pub(super) fn counter(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.seen.count)
    }

    /// When the last of `count` far ends answered message `number`.
    pub(super) fn last_answer(&self, number: usize, count: usize) -> Instant {
        let begun = Instant::now();
        loop {
            let answers = self.seen.answers.lock().unwrap().get(&number).copied();
            if let Some((answered, Some(last))) = answers
                && answered >= count
            {
                return last;
            }
            assert!(begun.elapsed() < PATIENCE, "message {number} does not reach all far ends");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

async fn listen(listener: TcpListener, answer_time: Duration, seen: Arc<Seen>) {
    while let Ok((stream, _)) = listener.accept().await {
        // Whoever is done closes its connection.
        tokio::spawn(serve(stream, answer_time, Arc::clone(&seen)));
    }
}

async fn serve(mut stream: TcpStream, answer_time: Duration, seen: Arc<Seen>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::with_capacity(4 * 1024);
    loop {
        let (end, number) = loop {
            if let Some(request) = request(&received) {
                break request;
            }
            if stream.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        };
        received.drain(..end);
        if !answer_time.is_zero() {
            tokio::time::sleep(answer_time).await;
        }
        stream.write_all(ANSWER).await?;
        seen.count.fetch_add(1, Ordering::Relaxed);
        if !answer_time.is_zero() {
            let mut answers = seen.answers.lock().unwrap();
            let (count, last) = answers.entry(number).or_default();
            (*count, *last) = (*count + 1, Some(Instant::now()));
        }
    }
}

/// The end of the first request in `received`, and the number of its message, if it is whole.
fn request(received: &[u8]) -> Option<(usize, usize)> {
    let head_end = find(received, b"\r\n\r\n")? + 4;
    let head = str::from_utf8(received.get(..head_end)?).unwrap();
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length")).unwrap().1;
    let end = head_end + length.trim().parse::<usize>().unwrap();
    let body = received.get(head_end..end)?;
    let digits = body.get(find(body, WORD)? + WORD.len()..)?.iter();
    let digits = digits.take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
    Some((end, number))
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}
