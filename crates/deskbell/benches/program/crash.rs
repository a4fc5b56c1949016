//! The daemon killed again and again under load: what is lost, what is doubled, how soon it answers again.
//!
//! Callers report events, each under a key of its own, and ask again after an answer that did not come. One channel
//! carries the events to a far end that keeps what it gets. When all kills are over and everything is delivered, the
//! callers' list, the history, the deliveries and the far end are compared.

mod books;
mod callers;
mod far_end;
mod witness;

use std::{
    fs,
    io::{self, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::runtime;
use uuid::Uuid;

use self::{
    books::Books,
    callers::{Accepted, Callers},
    far_end::FarEnd,
    witness::Witness,
};
use crate::{
    connection::Connection,
    subject::{READY_LIMIT, deskbell, empty_folder, fixed_port},
    table::Times,
};

/// How many callers report at the same time.
const CALLERS: usize = 64;

/// The name of the channel, which ends each delivery's id.
const CHANNEL: &str = "counter";

/// The longest time between an answer of the daemon and its kill; the shortest is none.
const LONGEST_LIFE: Duration = Duration::from_millis(250);

/// How long the last deliveries may make no progress.
const STALL_LIMIT: Duration = Duration::from_secs(60);

/// What the project wants to stay below, at the worst of all kills.
const READY_GOAL: Duration = Duration::from_millis(100);

/// Kills the daemon `rounds` times and prints what came of it; whether nothing was lost and nothing doubled.
pub(crate) fn run(rounds: usize) -> bool {
    let runtime =
        runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let far_end = FarEnd::start(&runtime);
    let folder = empty_folder();
    let channel = format!(
        "[channels.{CHANNEL}]\nkind = \"webhook_json\"\nurl = \"http://127.0.0.1:{}/\"\n",
        far_end.port
    );
    fs::write(folder.path().join("config.toml"), channel).unwrap();
    let port = fixed_port();
    let mut daemon = Daemon::start(folder.path(), port);
    daemon.await_answer();
    let callers = Callers::start(&runtime, port);
    let witness = Witness::start(&runtime, port);

    let mut lives = Vec::new();
    for _ in 0..rounds {
        thread::sleep(random(LONGEST_LIFE));
        daemon.kill();
        daemon = Daemon::start(folder.path(), port);
        let ready = daemon.await_answer();
        lives.push(Life { started: daemon.started, ready });
    }
    let accepted = runtime.block_on(callers.stop());
    let witnessed = runtime.block_on(witness.stop());
    runtime.block_on(settle(port, &far_end));
    let mut books = runtime.block_on(Books::read(port, accepted, witnessed, far_end.arrivals()));
    books.compare_kills(rounds);
    print(&lives, &books);
    books.faults.is_empty()
}

/// A daemon that was started after a kill.
struct Life {
    started: Instant,
    /// The time to its first answer.
    ready: Duration,
}

/// The running daemon.
struct Daemon {
    process: Child,
    started: Instant,
    port: u16,
}

impl Daemon {
    fn start(folder: &Path, port: u16) -> Self {
        let mut command = deskbell(folder, "serve");
        command.args(["--anonymous-loopback", "--listen", &format!("127.0.0.1:{port}")]);
        let started = Instant::now();
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        Self { process, started, port }
    }

    /// Waits until the daemon says that it takes reports; gives the time since its start.
    fn await_answer(&mut self) -> Duration {
        while self.ask().is_err() {
            let ended = self.process.try_wait().unwrap();
            assert!(ended.is_none(), "the daemon ended by itself: {ended:?}");
            assert!(self.started.elapsed() < READY_LIMIT, "the daemon does not get ready");
            thread::sleep(Duration::from_millis(1));
        }
        self.started.elapsed()
    }

    /// Asks for `/readyz`, whose answer has been through the journal's writer.
    fn ask(&self) -> io::Result<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.write_all(
            b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".as_slice(),
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        match answer.starts_with("HTTP/1.1 200 ") {
            true => Ok(()),
            false => Err(io::Error::other(answer)),
        }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It was killed already, unless it is the last one.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A moment from none to `longest`, each as likely as the other.
fn random(longest: Duration) -> Duration {
    let micros = Uuid::new_v4().as_u128() % (longest.as_micros() + 1);
    Duration::from_micros(u64::try_from(micros).unwrap())
}

/// Waits until nothing is left to deliver.
async fn settle(port: u16, far_end: &FarEnd) {
    let mut connection = Connection::open(port).await.unwrap();
    let (mut arrived, mut last_progress) = (0, Instant::now());
    loop {
        let mut is_settled = true;
        for state in ["pending", "in_flight"] {
            let path = format!("/v1/deliveries?state={state}&limit=1");
            let page: Value = json(&mut connection, &path).await;
            is_settled &= page.get("deliveries").unwrap().as_array().unwrap().is_empty();
        }
        if is_settled {
            return;
        }
        let now_arrived = far_end.count();
        if now_arrived > arrived {
            (arrived, last_progress) = (now_arrived, Instant::now());
        }
        assert!(last_progress.elapsed() < STALL_LIMIT, "some deliveries do not settle");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What the daemon answers to a request for `path`.
async fn json(connection: &mut Connection, path: &str) -> Value {
    let answer = connection.get(path).await.unwrap();
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

/// The time from each start to the first report that was accepted after it, where it lived long enough for one.
fn first_accepts(lives: &[Life], accepted: &[Accepted]) -> Vec<Duration> {
    let mut moments: Vec<Instant> = accepted.iter().map(|accepted| accepted.at).collect();
    moments.sort_unstable();
    let ends = lives.iter().skip(1).map(|next| Some(next.started)).chain([None]);
    let first = |(life, end): (&Life, Option<Instant>)| {
        let moment = *moments.get(moments.partition_point(|at| *at < life.started))?;
        end.is_none_or(|end| moment < end).then(|| moment - life.started)
    };
    lives.iter().zip(ends).filter_map(first).collect()
}

fn print(lives: &[Life], books: &Books) {
    let times = |times: Vec<Duration>| {
        let count = times.len();
        let times = Times::of(times);
        format!("p50 {}, p99 {}, worst {} of {count}", times.p50(), times.p99(), times.worst())
    };
    println!("| kill -9 under {CALLERS} callers | {} times |", lives.len());
    println!("|---|---|");
    println!("| events accepted | {} |", books.accepted.len());
    println!(
        "| the same key reported again, because the answer was lost | {} |",
        books.asked_again
    );
    println!("| accepted and not in the history (lost) | {} |", books.lost);
    println!("| more than once in the history (doubled) | {} |", books.doubled);
    println!("| accepted and never at the far end | {} |", books.never_arrived);
    println!("| attempts under way at a kill | {} |", books.cut_off);
    println!(
        "| messages that the far end got again, each from such an attempt | {} |",
        books.repeats
    );
    println!(
        "| receipts seen in the journal between kills, and messages sent after that | {}, {} |",
        books.witnessed, books.sent_after_receipt
    );
    let goal = READY_GOAL.as_millis();
    let ready = |lives: &[Life]| lives.iter().map(|life| life.ready).collect::<Vec<_>>();
    println!(
        "| start to the first answer of /readyz (goal: {goal} ms) | {} |",
        times(ready(lives))
    );
    let (early, late) = lives.split_at(lives.len() / 2);
    println!(
        "| the same in the first and in the second half of the kills, p50 | {}, {} |",
        Times::of(ready(early)).p50(),
        Times::of(ready(late)).p50()
    );
    let accepts = first_accepts(lives, &books.accepted);
    println!("| start to the first report accepted | {} |", times(accepts));
    for fault in books.faults.iter().take(books::FAULTS_SHOWN) {
        println!("FAULT: {fault}");
    }
    let hidden = books.faults.len().saturating_sub(books::FAULTS_SHOWN);
    if hidden > 0 {
        println!("FAULT: and {hidden} more");
    }
}
