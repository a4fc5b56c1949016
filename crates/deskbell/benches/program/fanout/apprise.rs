//! Apprise in a process of its own.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use super::{FAR_ENDS, Load, far_ends, far_ends::FarEnds};
use crate::{machine, table::Times};

pub(super) struct Apprise {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Apprise {
    /// Starts it with an address for each far end.
    pub(super) fn launch(far_ends: &[u16]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let python = root.join(".tools/apprise/bin/python");
        assert!(python.is_file(), "{} is missing: run scripts/bench", python.display());
        let mut process = Command::new(python)
            .arg(root.join("benches/peers/apprise/notify.py"))
            .args(far_ends.iter().map(|port| format!("json://127.0.0.1:{port}/")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut apprise = Self { process, input, output };
        assert_eq!(apprise.said(), "ready");
        apprise
    }

    /// Sends one message after the other: the times until all far ends have it.
    pub(super) fn spread(&mut self, far_ends: &FarEnds, messages: usize) -> Times {
        let mut times = Vec::new();
        for number in 0..=messages {
            let asked = Instant::now();
            self.send(number);
            times.push(far_ends.last_answer(number, FAR_ENDS) - asked);
        }
        Times::of(times.into_iter().skip(1))
    }

    /// Sends one message after the other for `time`.
    pub(super) fn load(&mut self, far_ends: &FarEnds, time: Duration) -> Load {
        self.send(0);
        let (count, begun) = (far_ends.count(), Instant::now());
        let cpu = machine::cpu_time(self.process.id());
        let mut number = 0;
        while begun.elapsed() < time {
            number += 1;
            self.send(number);
        }
        Load {
            deliveries: far_ends.count() - count,
            time: begun.elapsed(),
            cpu: machine::cpu_time(self.process.id()) - cpu,
        }
    }

    fn send(&mut self, number: usize) {
        writeln!(self.input, "{}", far_ends::text(number)).unwrap();
        assert_eq!(self.said(), "sent");
    }

    fn said(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Apprise {
    fn drop(&mut self) {
        // It may have ended by itself, and then the measurement has already said so.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
