//! The built program beside the same tool written with the official SDKs, in one run: one table, with ratios.
//!
//! After that, its deliveries stand beside those of Apprise, see [`fanout`], and it is killed under load and must lose
//! nothing, see [`crash`].
//! `scripts/bench` installs the others and runs this. The client is the same for all: pipes and sockets of its own,
//! kept open, without Nagle's delay. The others accept in memory, Deskbell on disk; one column shows Deskbell with its
//! journal in memory as well.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should say where")]
#![expect(clippy::print_stdout, reason = "the table is the result")]
#![expect(clippy::disallowed_methods, reason = "it measures, and it waits for processes")]

mod connection;
mod crash;
mod fanout;
mod http;
mod machine;
mod stdio;
mod subject;
mod table;

use std::{process::ExitCode, time::Duration};

use crate::{
    subject::Subject,
    table::{Better, Measured, Table},
};

/// How many connections and sessions the load has.
const CONNECTIONS: usize = 64;

/// What `--only` calls the kills.
const CRASH: &str = "crash";

/// What `--only` calls the deliveries beside Apprise.
const FANOUT: &str = "fanout";

/// How much is measured.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    /// How long one measurement of round trips or of load goes on at most.
    pub(crate) time: Duration,
    /// The most round trips in one measurement.
    pub(crate) calls: usize,
    /// How often a start is repeated.
    pub(crate) starts: usize,
    /// How many messages go to many far ends, one after the other.
    pub(crate) messages: usize,
    /// How often the daemon is killed.
    kills: usize,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let only = arguments.iter().skip_while(|argument| *argument != "--only").nth(1);
    let effort = match quick {
        true => {
            Effort { time: Duration::from_secs(1), calls: 300, starts: 3, messages: 10, kills: 10 }
        }
        false => Effort {
            time: Duration::from_secs(4),
            calls: 3_000,
            starts: 9,
            messages: 100,
            kills: 100,
        },
    };
    println!("{}", machine::description());
    println!("append and fdatasync of 512 bytes, one caller: {}\n", machine::flush_time());

    let mut table = Table::default();
    let wanted = |subject: &Subject| only.is_none_or(|name| subject.name().contains(name));
    for subject in Subject::all().into_iter().filter(wanted) {
        tell_progress(subject.name());
        measure(&subject, effort, &mut table);
    }
    if !table.is_empty() {
        println!("{table}\n");
    }
    if only.is_none_or(|name| name == FANOUT) {
        tell_progress(FANOUT);
        fanout::run(effort);
        println!();
    }
    let mut nothing_lost = true;
    if only.is_none_or(|name| name == CRASH) {
        tell_progress(CRASH);
        nothing_lost = crash::run(effort.kills);
        println!();
    }
    println!("load before: {}; after: {}", table.load_before, machine::load());
    if nothing_lost { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tells on stderr how far the run is.
#[expect(clippy::print_stderr, reason = "the table alone belongs to stdout")]
fn tell_progress(name: &str) {
    eprintln!("measuring {name}");
}

fn measure(subject: &Subject, effort: Effort, table: &mut Table) {
    let name = subject.name();
    let mut put = |row: &str, better: Better, measured: Option<Measured>| {
        table.put(name, row, better, measured);
    };
    let less = Better::Less;

    put("start to the answer of initialize, median", less, stdio::cold_start(subject, effort));
    let running = subject.start();
    if subject.is_deskbell() {
        let warm = stdio::start_beside_daemon(&running, effort);
        put("the same with a running daemon", less, Some(warm));
    }
    let stdio = stdio::round_trips(&running, effort);
    put("idle server or daemon, resident (RSS)", less, Some(stdio.server_memory.resident));
    put("idle server or daemon, its share (PSS)", less, Some(stdio.server_memory.share));
    put("idle bridge, resident (RSS)", less, stdio.bridge_memory.map(|memory| memory.resident));
    put("idle bridge, its share (PSS)", less, stdio.bridge_memory.map(|memory| memory.share));
    put("notify.send over stdio, p50", less, Some(stdio.times.p50()));
    put("notify.send over stdio, p99", less, Some(stdio.times.p99()));
    put("notify.send over stdio, CPU of the server", less, Some(stdio.cpu_per_call));

    let times = http::round_trips(&running, effort);
    put("notify.send over HTTP, p50", less, Some(times.p50()));
    put("notify.send over HTTP, p99", less, Some(times.p99()));
    let rate = |load: http::Load| Some(http::rate(&running, load, CONNECTIONS, effort));
    let more = Better::More;
    put("tools/call notify.send, 64 sessions", more, rate(http::Load::Send));
    if subject.is_deskbell() {
        put("tools/call notify, 64 sessions", more, rate(http::Load::Notify));
        put("POST /v1/events, 64 connections", more, rate(http::Load::Events));
    }
}
