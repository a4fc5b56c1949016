//! What the journal costs over the disk: `cargo bench -p deskbell --bench engine`.
//!
//! Durable accepts are measured against the plainest thing that can be called durable: a thread that appends all
//! records that wait to a file, calls `fdatasync` once, and answers all. Both take turns on the same disk in the same
//! run, because the speed of a shared disk changes from minute to minute while the ratio of the two hardly does.
//! `docs/benchmarks.md` has the figures.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should say where")]

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use deskbell::journal::{
    Accept, Ack, Claim, Due, IdempotencyKey, Journal as _, Write, sqlite::SqliteJournal,
};
use deskbell_core::{
    ChannelName, Event, EventId, Level, Source,
    delivery::{Arrived, Outcome, Planned, Receipt, Replaces},
    event::{Content, Kind},
};
use jiff::Timestamp;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::Instant,
};
use uuid::Uuid;

/// How long each measurement of one engine with one number of callers takes.
const TURN: Duration = Duration::from_millis(1_500);

/// How often the engines take turns.
const ROUNDS: usize = 3;

const CALLERS: [usize; 3] = [1, 16, 256];

/// The size of an event's body, and of a raw record: the body with its id and a number.
const BODY: usize = 510;
const RECORD: usize = BODY + 22;

const CHANNELS: [&str; 5] = ["phone", "team-slack", "mail", "desk", "log"];

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    runtime.block_on(measure(folder.path()));
}

async fn measure(folder: &Path) {
    let raw = Arc::new(Raw::open(&folder.join("raw.log")));
    let path = folder.join("journal.db");
    let journal = Arc::new(SqliteJournal::open(&path).unwrap());
    let mut accepted = 0;

    println!("callers  engine   per second     p50 ms     p99 ms  writer CPU µs  written B");
    for callers in CALLERS {
        let (mut raws, mut journals) = (Turn::default(), Turn::default());
        for _ in 0..ROUNDS {
            raws.add(turn(callers, "raw-writer", append(&raw)).await);
            journals.add(turn(callers, "journal-writer", accept(&journal, Uuid::now_v7)).await);
        }
        accepted += journals.latencies.len();
        let raw = raws.row(callers, "raw");
        let journal = journals.row(callers, "journal");
        let ratio = [journal.0 / raw.0, journal.1 / raw.1, journal.2 / raw.2];
        let [rate, p50, p99] = ratio;
        println!("{callers:>7}  ratio    {rate:>10.2} {p50:>10.2} {p99:>10.2}");
    }
    // Keys in no order cost a page of the index each.
    let mut random = turn(256, "journal-writer", accept(&journal, Uuid::new_v4)).await;
    accepted += random.latencies.len();
    random.row(256, "v4 keys");
    drop(journal);
    sizes(&path, accepted);
    pipeline(&Arc::new(SqliteJournal::open(&folder.join("pipeline.db")).unwrap())).await;
}

/// Prints what the journal takes on the disk, and how long it takes to open it again.
fn sizes(path: &Path, events: usize) {
    let bytes = fs::metadata(path).unwrap().len();
    #[expect(clippy::cast_precision_loss, reason = "a file of a benchmark is small")]
    let each = bytes as f64 / events as f64;
    println!("{each:.0} bytes an event ({events} events with {} deliveries each)", CHANNELS.len());
    let start = Instant::now();
    let journal = SqliteJournal::open(path).unwrap();
    println!("opened again in {:.1} ms", millis(start.elapsed()));
    drop(journal);
}

/// What one engine did.
#[derive(Default)]
struct Turn {
    latencies: Vec<Duration>,
    elapsed: Duration,
    cpu: Duration,
    written: u64,
}

impl Turn {
    fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.elapsed += other.elapsed;
        self.cpu += other.cpu;
        self.written += other.written;
    }

    /// Prints one row, and gives rate, p50 and p99.
    fn row(&mut self, callers: usize, engine: &str) -> (f64, f64, f64) {
        self.latencies.sort_unstable();
        let count = self.latencies.len();
        let at = |part: usize| millis(*self.latencies.get(count * part / 100).unwrap());
        #[expect(clippy::cast_precision_loss, reason = "a few seconds' worth of events")]
        let (rate, cpu, written) = (
            count as f64 / self.elapsed.as_secs_f64(),
            self.cpu.as_secs_f64() * 1e6 / count as f64,
            self.written as f64 / count as f64,
        );
        let (p50, p99) = (at(50), at(99));
        println!(
            "{callers:>7}  {engine:<8} {rate:>10.0} {p50:>10.3} {p99:>10.3} {cpu:>14.1} {written:>10.0}"
        );
        (rate, p50, p99)
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Lets `callers` call `once` for the time of a turn, each waiting for its answer before it calls again.
async fn turn<C, F>(callers: usize, writer: &str, once: C) -> Turn
where
    C: Fn() -> F + Clone + Send + 'static,
    F: Future<Output = ()> + Send,
{
    let (cpu, written) = (cpu_of(writer), written());
    let start = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..callers {
        let once = once.clone();
        running.spawn(async move {
            let mut latencies = Vec::new();
            while start.elapsed() < TURN {
                let asked = Instant::now();
                once().await;
                latencies.push(asked.elapsed());
            }
            latencies
        });
    }
    let latencies = running.join_all().await.into_iter().flatten().collect();
    let (cpu, written) = (cpu_of(writer).saturating_sub(cpu), self::written() - written);
    Turn { latencies, elapsed: start.elapsed(), cpu, written }
}

/// The bytes that this process has written; nothing where the system does not say.
fn written() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let wchar = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    wchar.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// The CPU time that the thread called `name` has used; nothing where the system does not say.
fn cpu_of(name: &str) -> Duration {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanos = tasks.filter_map(|task| {
        let comm = fs::read_to_string(task.path().join("comm")).ok()?;
        let used = fs::read_to_string(task.path().join("schedstat")).ok()?;
        let used: u64 = used.split_whitespace().next()?.parse().ok()?;
        (comm.trim() == name).then_some(used)
    });
    Duration::from_nanos(nanos.sum())
}

type Record = (Vec<u8>, oneshot::Sender<()>);

/// The plainest durable log.
struct Raw {
    queue: Option<mpsc::Sender<Record>>,
    writer: Option<JoinHandle<()>>,
}

impl Raw {
    fn open(path: &Path) -> Self {
        let (queue, mut records) = mpsc::channel::<Record>(8_192);
        let mut file = File::create(path).unwrap();
        let run = move || {
            let (mut batch, mut bytes) = (Vec::new(), Vec::new());
            while records.blocking_recv_many(&mut batch, 1_024) > 0 {
                bytes.clear();
                batch.iter().for_each(|(record, _)| bytes.extend_from_slice(record));
                file.write_all(&bytes).unwrap();
                file.sync_data().unwrap();
                batch.drain(..).for_each(|(_, answer)| answer.send(()).unwrap());
            }
        };
        let writer = thread::Builder::new().name("raw-writer".to_owned()).spawn(run).unwrap();
        Self { queue: Some(queue), writer: Some(writer) }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        drop(self.queue.take());
        self.writer.take().unwrap().join().unwrap();
    }
}

fn append(raw: &Arc<Raw>) -> impl Fn() -> Appending + Clone + Send + 'static {
    let raw = Arc::clone(raw);
    move || {
        let raw = Arc::clone(&raw);
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            raw.queue.as_ref().unwrap().send((vec![b'x'; RECORD], answer)).await.unwrap();
            answered.await.unwrap();
        })
    }
}

type Appending = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

fn accept(
    journal: &Arc<SqliteJournal>,
    key: fn() -> Uuid,
) -> impl Fn() -> Appending + Clone + Send + 'static {
    let journal = Arc::clone(journal);
    move || {
        let journal = Arc::clone(&journal);
        Box::pin(async move {
            let acks = journal.commit(vec![event(key())]).await.unwrap();
            assert!(matches!(acks[..], [Ack::Accepted(_)]), "{acks:?}");
        })
    }
}

/// An event with five deliveries and a key that nobody else has.
fn event(key: Uuid) -> Write {
    let now = now();
    let overhead = r#"{"text":"","title":"Nightly build","session":"0199f3a2-7c11","project":"/home/a/project","host":"desk"}"#.len();
    let event = Event {
        id: EventId::from_uuid(Uuid::now_v7()),
        at: now,
        level: Level::Info,
        context: "workflow".parse().unwrap(),
        source: Source {
            client: Some("claude-code".to_owned()),
            session: Some("0199f3a2-7c11".to_owned()),
            project: Some("/home/a/project".to_owned()),
            host: Some("desk".to_owned()),
        },
        content: Content {
            title: Some("Nightly build".to_owned()),
            text: "x".repeat(BODY - overhead),
            ..Content::default()
        },
        kind: Kind::Push,
        to: Vec::new(),
    };
    let deliveries = CHANNELS.iter().map(|name| Planned {
        channel: name.parse().unwrap(),
        due_at: now,
        reason: "route 1".to_owned(),
        replaces: Replaces::Nothing,
        grouped: None,
    });
    let key = IdempotencyKey { scope: "api:someone".to_owned(), key: key.to_string() };
    let accept = Accept { event, key: Some(key), deliveries: deliveries.collect(), run: None };
    Write::Accept(Box::new(accept))
}

#[expect(clippy::disallowed_methods, reason = "a benchmark runs on the machine's clock")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// How many events go the whole way, and how many callers report them.
const PIPELINE: usize = 20_480;
const REPORTERS: usize = 64;

/// Accepts events and meanwhile claims and records all their deliveries, as dispatch does.
async fn pipeline(journal: &Arc<SqliteJournal>) {
    let (start, cpu) = (Instant::now(), cpu_of("journal-writer"));
    let mut running = JoinSet::new();
    for _ in 0..REPORTERS {
        let journal = Arc::clone(journal);
        running.spawn(async move {
            for _ in 0..PIPELINE / REPORTERS {
                journal.commit(vec![event(Uuid::now_v7())]).await.unwrap();
            }
        });
    }
    let mut taken = 0;
    while taken < PIPELINE * CHANNELS.len() {
        let room = CHANNELS.iter().map(|name| (name.parse::<ChannelName>().unwrap(), 256));
        let claim = Claim { now: now(), room: room.collect() };
        let due = journal.claim(claim).await.unwrap().due;
        taken += due.len();
        let outcomes = due.into_iter().map(sent).collect();
        let journal = Arc::clone(journal);
        running.spawn(async move {
            journal.commit(outcomes).await.unwrap();
        });
    }
    running.join_all().await;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand events")]
    let count = PIPELINE as f64;
    let rate = count / start.elapsed().as_secs_f64();
    let cpu = cpu_of("journal-writer").saturating_sub(cpu).as_secs_f64() * 1e6 / count;
    let channels = CHANNELS.len();
    println!(
        "{rate:.0} events a second accepted, claimed and recorded with {channels} deliveries each; \
         {cpu:.1} µs of the writer each"
    );
}

fn sent(due: Due) -> Write {
    let receipt = Receipt { message_id: Some("1790000000.123456".to_owned()) };
    let arrived = vec![Arrived { receipt, ..Arrived::default() }];
    let outcome = Outcome::Sent { arrived, without: None };
    Write::Outcome { delivery: due.id, attempt: due.attempt, at: now(), outcome }
}
