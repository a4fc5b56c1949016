//! Callers that report one event after the other and do not give one up before it is accepted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{runtime::Runtime, task::JoinSet};

use super::CALLERS;
use crate::connection::Connection;

/// The pause before a caller that found no daemon looks again: callers who do not pause take the starting daemon's core.
const PAUSE: Duration = Duration::from_millis(10);

/// How long one event may remain without an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// An event that a caller knows to be accepted.
pub(super) struct Accepted {
    /// Its text, which is its key as well and which no other event has.
    pub(super) text: String,
    /// The id in the answer.
    pub(super) id: String,
    pub(super) at: Instant,
    /// Whether an earlier report of it had been accepted, whose answer got lost.
    pub(super) duplicate: bool,
}

pub(super) struct Callers {
    running: JoinSet<Vec<Accepted>>,
    stop: Arc<AtomicBool>,
}

impl Callers {
    pub(super) fn start(runtime: &Runtime, port: u16) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let mut running = JoinSet::new();
        for caller in 0..CALLERS {
            running.spawn_on(call(port, caller, Arc::clone(&stop)), runtime.handle());
        }
        Self { running, stop }
    }

    /// Lets each caller see its last event accepted.
    pub(super) async fn stop(self) -> Vec<Accepted> {
        self.stop.store(true, Ordering::Relaxed);
        self.running.join_all().await.into_iter().flatten().collect()
    }
}

async fn call(port: u16, caller: usize, stop: Arc<AtomicBool>) -> Vec<Accepted> {
    let (mut accepted, mut connection) = (Vec::new(), None);
    while !stop.load(Ordering::Relaxed) {
        let text = format!("{caller}-{}", accepted.len());
        accepted.push(report(&mut connection, port, text).await);
    }
    accepted
}

/// Reports an event until its acceptance is heard, each time with the same key.
async fn report(connection: &mut Option<Connection>, port: u16, text: String) -> Accepted {
    let body = json!({ "kind": "push", "text": text, "key": text }).to_string();
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < PATIENCE, "event {text} gets no answer");
        if connection.is_none() {
            *connection = Connection::open(port).await.ok();
        }
        if let Some(open) = connection {
            match open.post("/v1/events", &body).await {
                Ok(answer) if matches!(answer.status, 200 | 201) => {
                    let at = Instant::now();
                    let answer: Value = serde_json::from_str(&answer.body).unwrap();
                    let id = answer.get("id").and_then(Value::as_str).unwrap().to_owned();
                    let duplicate = answer.get("duplicate").and_then(Value::as_bool).unwrap();
                    return Accepted { text, id, at, duplicate };
                }
                // The journal's queue is full.
                Ok(answer) if answer.status == 503 => {}
                Ok(answer) => panic!("event {text}: {} {}", answer.status, answer.body),
                Err(_killed) => *connection = None,
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
