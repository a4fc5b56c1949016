//! One message to many far ends, beside Apprise: how soon all have it, and how many deliveries a second go through.

mod apprise;
mod far_ends;

use std::{
    fmt::Write as _,
    fs,
    process::{Child, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::runtime;

use self::{apprise::Apprise, far_ends::FarEnds};
use crate::{
    Effort,
    connection::Connection,
    machine,
    subject::{await_port, deskbell, empty_folder, fixed_port},
    table::{Better, Measured, Table, Times},
};

/// How many far ends there are.
const FAR_ENDS: usize = 20;

/// How long each of them takes to answer.
const ANSWER_TIME: Duration = Duration::from_millis(50);

/// How many callers report at the same time where the rate is measured.
const CALLERS: usize = 8;

/// How many deliveries may be open where the rate is measured: callers that are faster wait.
const OPEN_LIMIT: usize = 10_000;

/// How long the load goes on before it is measured.
const WARM_UP: Duration = Duration::from_secs(1);

/// The longest that a message may take to reach all.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the project wants: all far ends have the message so soon after it was accepted, at the median.
const SOON: Duration = Duration::from_millis(60);

/// Measures both and prints the table.
pub(crate) fn run(effort: Effort) {
    let mut table = Table::default();
    measure_deskbell(effort, &mut table);
    measure_apprise(effort, &mut table);
    println!("{table}");
    println!(
        "(Goals: {} ms from acceptance, a quarter of Apprise's time, 9000/s, 100 µs of CPU each.)",
        SOON.as_millis()
    );
}

fn measure_deskbell(effort: Effort, table: &mut Table) {
    let name = "Deskbell";
    let slow = FarEnds::start(FAR_ENDS, ANSWER_TIME);
    let daemon = Daemon::start(&slow.ports);
    let (from_report, from_acceptance) = daemon.spread(&slow, effort.messages);
    put_times(table, name, &from_report);
    let row = "the same from acceptance, p50";
    table.put(name, row, Better::Less, Some(from_acceptance.p50()));
    drop(daemon);

    let quick = FarEnds::start(FAR_ENDS, Duration::ZERO);
    let daemon = Daemon::start(&quick.ports);
    let load = daemon.load(&quick, effort.time);
    put_load(table, name, &load);
}

fn measure_apprise(effort: Effort, table: &mut Table) {
    let name = "Apprise 2.2.0";
    let slow = FarEnds::start(FAR_ENDS, ANSWER_TIME);
    let mut apprise = Apprise::launch(&slow.ports);
    put_times(table, name, &apprise.spread(&slow, effort.messages));
    drop(apprise);

    let quick = FarEnds::start(FAR_ENDS, Duration::ZERO);
    let mut apprise = Apprise::launch(&quick.ports);
    let load = apprise.load(&quick, effort.time);
    put_load(table, name, &load);
}

fn put_times(table: &mut Table, column: &str, times: &Times) {
    let row =
        format!("a report until {FAR_ENDS} far ends of {} ms have it", ANSWER_TIME.as_millis());
    table.put(column, &format!("{row}, p50"), Better::Less, Some(times.p50()));
    table.put(column, &format!("{row}, p99"), Better::Less, Some(times.p99()));
}

fn put_load(table: &mut Table, column: &str, load: &Load) {
    let Load { deliveries, time, cpu } = *load;
    let each = cpu / u32::try_from(deliveries.max(1)).unwrap();
    table.put(column, "deliveries", Better::More, Some(Measured::rate(deliveries, time)));
    table.put(
        column,
        "CPU of the sender for each delivery",
        Better::Less,
        Some(Measured::Time(each)),
    );
}

/// What went through in some time.
struct Load {
    deliveries: usize,
    time: Duration,
    /// The CPU time that it took the sender.
    cpu: Duration,
}

impl Load {
    /// Looks at the far ends and at `process` for `time`, from now on.
    fn of(far_ends: &FarEnds, process: u32, time: Duration) -> Self {
        let (count, cpu, begun) = (far_ends.count(), machine::cpu_time(process), Instant::now());
        thread::sleep(time);
        Self {
            deliveries: far_ends.count() - count,
            time: begun.elapsed(),
            cpu: machine::cpu_time(process) - cpu,
        }
    }
}

/// A daemon with a channel for each far end.
struct Daemon {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Daemon {
    fn start(far_ends: &[u16]) -> Self {
        let folder = empty_folder();
        let mut config = String::new();
        for (number, port) in far_ends.iter().enumerate() {
            let url = format!("http://127.0.0.1:{port}/");
            writeln!(config, "[channels.far-{number}]\nkind = \"webhook_json\"\nurl = \"{url}\"")
                .unwrap();
        }
        fs::write(folder.path().join("config.toml"), config).unwrap();
        let port = fixed_port();
        let mut command = deskbell(folder.path(), "serve");
        command.args(["--anonymous-loopback", "--listen", &format!("127.0.0.1:{port}")]);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        await_port(port);
        Self { process, port, _folder: folder }
    }

    /// Reports one message after the other: the times until all far ends have it, from the report and from the answer
    /// to it.
    fn spread(&self, far_ends: &FarEnds, messages: usize) -> (Times, Times) {
        let mut times = Vec::new();
        block_on(async {
            let mut connection = Connection::open(self.port).await.unwrap();
            // The first one opens the connections to the far ends.
            for number in 0..=messages {
                let asked = Instant::now();
                report(&mut connection, number).await;
                let accepted = Instant::now();
                let last = far_ends.last_answer(number, FAR_ENDS);
                times.push((last - asked, last.saturating_duration_since(accepted)));
            }
        });
        let times = times.into_iter().skip(1);
        let (from_report, from_acceptance): (Vec<_>, Vec<_>) = times.unzip();
        (Times::of(from_report), Times::of(from_acceptance))
    }

    /// Keeps the daemon busy, and measures it meanwhile.
    fn load(&self, far_ends: &FarEnds, time: Duration) -> Load {
        let callers =
            runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let reported = Arc::<AtomicUsize>::default();
        for _ in 0..CALLERS {
            callers.spawn(call(self.port, Arc::clone(&reported), far_ends.counter()));
        }
        thread::sleep(WARM_UP);
        let load = Load::of(far_ends, self.process.id(), time);
        callers.shutdown_background();
        load
    }
}

/// Reports one message after the other until it is dropped, but waits where too many deliveries are open.
async fn call(port: u16, reported: Arc<AtomicUsize>, arrived: Arc<AtomicUsize>) {
    let mut connection = Connection::open(port).await.unwrap();
    loop {
        let number = reported.fetch_add(1, Ordering::Relaxed);
        report(&mut connection, number).await;
        while (number * FAR_ENDS).saturating_sub(arrived.load(Ordering::Relaxed)) > OPEN_LIMIT {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself, and then the measurement has already said so.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

async fn report(connection: &mut Connection, number: usize) {
    let body = json!({ "kind": "push", "text": far_ends::text(number) }).to_string();
    let answer = connection.post("/v1/events", &body).await.unwrap();
    assert_eq!(answer.status, 201, "{}", answer.body);
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}
