//! Where the crash tests end the program: the boundaries between accept, claim, attempt and record.
//!
//! Only debug builds have them, and only `DESKBELL_CRASH_AT=NAME:COUNT` arms one: then the process ends as by
//! `kill -9` when it passes the named point for the COUNT-th time.

/// A boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// An event is durable, and its reporter is not answered yet.
    Accepted,
    /// A delivery is marked as in flight, and not tried yet.
    Claimed,
    /// The far end has answered, and the answer is not recorded yet.
    Attempted,
    /// The answer is recorded, and nothing else knows it.
    Recorded,
}

/// Ends the process here if the environment says so.
#[cfg(debug_assertions)]
pub fn pass(point: Point) {
    use std::sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    };
    static ARMED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let armed = ARMED.get_or_init(|| {
        let setting = std::env::var("DESKBELL_CRASH_AT").ok()?;
        let (name, count) = setting.split_once(':')?;
        Some((name.to_owned(), count.parse().ok()?))
    });
    let Some((name, count)) = armed else { return };
    if format!("{point:?}").eq_ignore_ascii_case(name)
        && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *count
    {
        // Nothing may run any more, as at a power cut: no destructors, no flushes.
        let this = rustix::process::getpid();
        let _refused = rustix::process::kill_process(this, rustix::process::Signal::KILL);
        loop {
            std::thread::park();
        }
    }
}

/// Does nothing: release builds have no crash points.
#[cfg(not(debug_assertions))]
pub const fn pass(_point: Point) {}
