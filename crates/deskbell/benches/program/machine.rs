//! What the system says: memory and CPU of a process, the disk's flush, the machine.

use std::{
    fs,
    io::Write as _,
    path::Path,
    time::{Duration, Instant},
};

use crate::table::{Measured, Times};

/// The unit of times in `/proc`, the same on every Linux that Rust runs on.
const TICKS_A_SECOND: u64 = 100;

/// Memory of a process.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// All that it has in memory, shared pages too.
    pub(crate) resident: Measured,
    /// The same with shared pages divided among those who share them.
    pub(crate) share: Measured,
}

pub(crate) fn memory(process: u32) -> Memory {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        let kibibytes = line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
        Measured::Bytes(kibibytes * 1024)
    };
    Memory { resident: field("Rss:"), share: field("Pss:") }
}

/// The CPU time that all threads of a process have used.
pub(crate) fn cpu_time(process: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name in parentheses may contain anything; the fields after it are numbers.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).unwrap().parse::<u64>().unwrap();
    Duration::from_millis((ticks(11) + ticks(12)) * 1000 / TICKS_A_SECOND)
}

/// How long an append of 512 bytes with its flush takes on the disk of the build.
pub(crate) fn flush_time() -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flush");
    let mut file = fs::File::create(&path).unwrap();
    let times = (0..300).map(|_| {
        let started = Instant::now();
        file.write_all(&[0x5a; 512]).unwrap();
        file.sync_data().unwrap();
        started.elapsed()
    });
    let times = Times::of(times);
    fs::remove_file(&path).unwrap();
    format!("p50 {}, p99 {}", times.p50(), times.p99())
}

pub(crate) fn description() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("?");
    let model = model.trim_start_matches([' ', '\t', ':']);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kibibytes = memory.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
    let gibibytes = kibibytes.unwrap_or_default() / (1 << 20);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cores} cores of {model}, {gibibytes} GiB, Linux {}", kernel.trim())
}

/// The load of the last minute: above the number of cores somebody else is busy too.
pub(crate) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("?").to_owned()
}
