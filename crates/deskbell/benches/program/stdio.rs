//! An MCP client over pipes.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    Effort,
    machine::{self, Memory},
    subject::{self, Running, Subject},
    table::{Measured, Times},
};

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// How long a process is left alone before its memory is read.
const SETTLE: Duration = Duration::from_secs(2);

/// Calls before the measured ones.
const WARM_UP: usize = 100;

/// A call of `notify_send` with `id`.
pub(crate) fn send_call(id: usize) -> String {
    call(id, "notify_send", r#"{"title":"Build 4711","content":"All 212 tests passed in 41 s."}"#)
}

pub(crate) fn call(id: usize, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// Fails unless `answer` is the result of a call that worked.
pub(crate) fn check(answer: &str) {
    let good = answer.contains(r#""result""#) && !answer.contains(r#""isError":true"#);
    assert!(good, "a call failed: {answer}");
}

/// A client and the process it launched.
struct Client {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
}

impl Client {
    fn launch(mut command: Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, input, output, line: String::new() }
    }

    /// Sends a line that nobody answers.
    fn tell(&mut self, message: &str) {
        self.input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Sends a request and waits for its answer, passing over notifications.
    fn ask(&mut self, request: &str) -> &str {
        self.tell(request);
        loop {
            self.line.clear();
            assert!(self.output.read_line(&mut self.line).unwrap() > 0, "the server ended");
            if !self.line.contains(r#""method""#) {
                return &self.line;
            }
        }
    }

    fn initialize(&mut self) {
        check(self.ask(INITIALIZE));
        self.tell(INITIALIZED);
    }

    fn end(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// From the launch to the answer of `initialize`, with nothing of the server running before.
pub(crate) fn cold_start(subject: &Subject, effort: Effort) -> Option<Measured> {
    let times = (0..effort.starts).map(|_| {
        let (command, folder) = subject.launch_cold();
        let started = Instant::now();
        let mut client = Client::launch(command);
        check(client.ask(INITIALIZE));
        let taken = started.elapsed();
        client.end();
        if let Some(folder) = folder {
            subject::end_daemon(folder.path());
        }
        taken
    });
    Some(Times::of(times).p50())
}

/// The same beside a running daemon.
pub(crate) fn start_beside_daemon(running: &Running<'_>, effort: Effort) -> Measured {
    let times = (0..effort.starts * 3).map(|_| {
        let started = Instant::now();
        let mut client = Client::launch(running.launch());
        check(client.ask(INITIALIZE));
        let taken = started.elapsed();
        client.end();
        taken
    });
    Times::of(times).p50()
}

/// What one client over pipes shows.
pub(crate) struct PipeFigures {
    pub(crate) server_memory: Memory,
    pub(crate) bridge_memory: Option<Memory>,
    pub(crate) times: Times,
    pub(crate) cpu_per_call: Measured,
}

/// Calls one after the other.
pub(crate) fn round_trips(running: &Running<'_>, effort: Effort) -> PipeFigures {
    let mut client = Client::launch(running.launch());
    client.initialize();
    thread::sleep(SETTLE);
    let process = client.process.id();
    let daemon = running.subject.is_deskbell().then(|| running.server.id());
    let memory = machine::memory(process);
    let (server_memory, bridge_memory) = match daemon {
        Some(daemon) => (machine::memory(daemon), Some(memory)),
        None => (memory, None),
    };

    for id in 1..=WARM_UP {
        check(client.ask(&send_call(id)));
    }
    let cpu = || machine::cpu_time(process) + daemon.map_or(Duration::ZERO, machine::cpu_time);
    let (cpu_before, started) = (cpu(), Instant::now());
    let mut times = Vec::new();
    while times.len() < effort.calls && started.elapsed() < effort.time {
        let request = send_call(WARM_UP + 1 + times.len());
        let asked = Instant::now();
        let answer = client.ask(&request);
        times.push(asked.elapsed());
        check(answer);
    }
    let cpu_per_call = (cpu() - cpu_before) / u32::try_from(times.len()).unwrap();
    client.end();
    PipeFigures {
        server_memory,
        bridge_memory,
        times: Times::of(times),
        cpu_per_call: Measured::Time(cpu_per_call),
    }
}
