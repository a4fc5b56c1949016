//! Whatever a client writes to `deskbell mcp`, what it reads is JSON-RPC and nothing else, and the bridge ends with it.
#![no_main]

use std::{
    io::{self, BufRead as _, BufReader, Write},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex},
    thread,
};

use deskbell::bridge::{
    self,
    hello::{Hello, Welcome},
};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A daemon that greets and answers every request with nothing.
fn daemon() -> io::Result<UnixStream> {
    let (bridge, daemon) = UnixStream::pair()?;
    thread::spawn(move || {
        let mut answers = daemon.try_clone().unwrap();
        let welcome = Welcome { version: env!("CARGO_PKG_VERSION").to_owned(), hands_over: false };
        for (index, line) in BufReader::new(daemon).split(b'\n').map_while(Result::ok).enumerate() {
            let answer = match index {
                0 => serde_json::to_value(&welcome).unwrap(),
                _ => match answer(&line) {
                    Some(answer) => answer,
                    None => continue,
                },
            };
            if writeln!(answers, "{answer}").is_err() {
                return;
            }
        }
    });
    Ok(bridge)
}

fn answer(line: &[u8]) -> Option<Value> {
    let space = line.iter().position(|byte| *byte == b' ').expect("a number and a space before each message");
    let (number, message) = line.split_at(space);
    let number: u64 = std::str::from_utf8(number).unwrap().parse().expect("each line starts with a number");
    let message: Value = serde_json::from_slice(message).ok()?;
    (number > 0).then(|| json!({"jsonrpc": "2.0", "id": message.get("id"), "result": {}}))
}

/// The messages in `written`, in lines or in frames.
fn check(mut written: &[u8]) {
    while !written.is_empty() {
        let end = written.iter().position(|byte| *byte == b'\n').expect("each line ends");
        let (line, rest) = written.split_at(end);
        written = &rest[1..];
        let line = std::str::from_utf8(line).expect("UTF-8");
        let message = match line.strip_prefix("Content-Length: ") {
            None => line.as_bytes(),
            Some(length) => {
                let (body, rest) = written[2..].split_at(length.trim().parse().unwrap());
                written = rest;
                body
            }
        };
        let message: Value = serde_json::from_slice(message).expect("JSON");
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
    }
}

fuzz_target!(|input: &[u8]| {
    let written = Written::default();
    bridge::run(Hello::default(), Box::new(daemon), input, written.clone(), io::sink()).unwrap();
    check(&written.0.lock().unwrap());
});
