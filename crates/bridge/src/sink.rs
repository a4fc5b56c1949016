//! A queue of lines and the thread that writes them, so that a pipe nobody reads or a disk that hangs holds up nobody.

use std::{
    fmt::Write as _,
    io::{self, Write},
    iter, mem,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Duration,
};

/// How many bytes of lines wait at most. Further lines are dropped and counted.
pub const QUEUE_BYTES: usize = 4 * 1024 * 1024;

/// How many lines are written at once.
const BATCH: usize = 64;

/// Where lines go, without ever waiting for it.
///
/// When it is dropped, the thread writes what is queued and ends.
#[derive(Debug)]
pub struct Sink {
    sender: Sender<Job>,
    backlog: Arc<Backlog>,
}

#[derive(Debug)]
enum Job {
    Line(String),
    /// Dropped once everything before it was written.
    Flush(Sender<()>),
}

#[derive(Debug, Default)]
struct Backlog {
    bytes: AtomicUsize,
    dropped: AtomicU64,
}

impl Sink {
    /// A sink that writes to `output` from a thread of its own, and calls `complain` with the first failure of a
    /// series.
    ///
    /// # Errors
    /// Fails when no thread can be started.
    pub fn start(
        name: &str,
        output: impl Write + Send + 'static,
        complain: impl Fn(&io::Error) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let backlog = Arc::new(Backlog::default());
        let shared = Arc::clone(&backlog);
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || write_lines(&receiver, &shared, output, complain))?;
        Ok(Self { sender, backlog })
    }

    /// A sink that writes to this process's stderr. A process that cannot start one thread more will not live long;
    /// its lines go nowhere then.
    pub fn of_stderr() -> Self {
        Self::start("stderr", stderr(), |_| {})
            .unwrap_or_else(|_| Self { sender: mpsc::channel().0, backlog: Arc::default() })
    }

    /// Queues `line`, which ends with a line break, or drops and counts it when too much is waiting.
    pub fn push(&self, line: String) {
        let length = line.len();
        let waiting = self.backlog.bytes.fetch_add(length, Ordering::Relaxed);
        // The thread only ends with the program, so a line that cannot be sent is nobody's.
        let is_queued = waiting.saturating_add(length) <= QUEUE_BYTES
            && self.sender.send(Job::Line(line)).is_ok();
        if !is_queued {
            self.backlog.bytes.fetch_sub(length, Ordering::Relaxed);
            self.backlog.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until what is queued was written, or `patience` is over.
    pub fn flush(&self, patience: Duration) {
        let (done, written) = mpsc::channel();
        if self.sender.send(Job::Flush(done)).is_ok() {
            // Either way there is nothing more to do: it was written, or it takes too long.
            let _either = written.recv_timeout(patience);
        }
    }
}

/// A second handle of stderr, so that a thread that waits in it does not hold the lock of the standard library's.
fn stderr() -> Box<dyn io::Write + Send> {
    #[cfg(unix)]
    if let Ok(file) = std::os::fd::AsFd::as_fd(&io::stderr()).try_clone_to_owned() {
        return Box::new(std::fs::File::from(file));
    }
    Box::new(io::stderr())
}

fn write_lines(
    jobs: &Receiver<Job>,
    backlog: &Backlog,
    mut output: impl Write,
    complain: impl Fn(&io::Error),
) {
    let mut is_failing = false;
    while let Ok(first) = jobs.recv() {
        let (mut batch, mut flushes) = (String::new(), Vec::new());
        for job in iter::once(first).chain(jobs.try_iter().take(BATCH - 1)) {
            match job {
                Job::Line(line) => batch.push_str(&line),
                Job::Flush(done) => flushes.push(done),
            }
        }
        let length = batch.len();
        let dropped = backlog.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            // Writing to a string cannot fail.
            let _infallible =
                writeln!(batch, "({dropped} lines were dropped here, nobody took them in time)");
        }
        if !batch.is_empty() {
            match output.write_all(batch.as_bytes()).and_then(|()| output.flush()) {
                Ok(()) => is_failing = false,
                Err(error) if !mem::replace(&mut is_failing, true) => complain(&error),
                Err(_) => {}
            }
        }
        backlog.bytes.fetch_sub(length, Ordering::Relaxed);
        drop(flushes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex, PoisonError};

    use super::*;

    /// An output that blocks until it is opened, and shows what was written.
    #[derive(Clone, Default)]
    struct Gate(Arc<(Mutex<GateState>, Condvar)>);

    #[derive(Default)]
    struct GateState {
        is_open: bool,
        written: Vec<u8>,
    }

    impl Gate {
        fn open(&self) {
            self.0.0.lock().unwrap().is_open = true;
            self.0.1.notify_all();
        }

        fn text(&self) -> String {
            String::from_utf8(self.0.0.lock().unwrap().written.clone()).unwrap()
        }
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
            let mut state = self.0.1.wait_while(state, |state| !state.is_open).unwrap();
            state.written.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn a_blocked_output_blocks_nobody_and_what_was_dropped_is_counted_row_13() {
        let gate = Gate::default();
        let sink = Sink::start("test", gate.clone(), |_| {}).unwrap();
        // Whoever had to wait here would wait until the gate opens, which is after this loop.
        let line = format!("{}\n", "x".repeat(QUEUE_BYTES / 100));
        for _ in 0..1_000 {
            sink.push(line.clone());
        }
        gate.open();
        sink.flush(PATIENCE);
        sink.push("after\n".to_owned());
        sink.flush(PATIENCE);
        let text = gate.text();
        assert!(text.ends_with("after\n"), "it goes on once somebody reads");
        let kept = text.lines().filter(|line| line.starts_with('x')).count();
        let dropped: usize = text
            .lines()
            .filter_map(|line| line.strip_prefix('(')?.split(' ').next()?.parse::<usize>().ok())
            .sum();
        assert_eq!(kept + dropped, 1_000);
        assert!((50..=100).contains(&kept), "{kept}");
    }

    #[test]
    fn a_flush_of_a_blocked_output_gives_up() {
        let sink = Sink::start("test", Gate::default(), |_| {}).unwrap();
        sink.push("a\n".to_owned());
        sink.flush(Duration::from_millis(10));
    }

    #[test]
    fn a_series_of_failures_is_reported_once_row_11() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let complaints = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&complaints);
        let sink = Sink::start("test", Full, move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
        })
        .unwrap();
        for _ in 0..10 {
            sink.push("a\n".to_owned());
            sink.flush(PATIENCE);
        }
        assert_eq!(complaints.load(Ordering::SeqCst), 1);
    }
}
