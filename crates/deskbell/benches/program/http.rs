//! The load that many connections make.

use std::time::{Duration, Instant};

use tokio::{runtime, task::JoinSet};

use crate::{
    Effort,
    connection::Connection,
    stdio::{call, check, send_call},
    subject::Running,
    table::{Measured, Times},
};

const EVENT: &str = r#"{"text":"All 212 tests passed in 41 s.","title":"Build 4711","level":"info","context":"workflow"}"#;
const NOTICE: &str = r#"{"message":"Build 4711: all 212 tests passed in 41 s.","level":"info","context":"workflow"}"#;

/// What each connection of a load does again and again.
#[derive(Clone, Copy)]
pub(crate) enum Load {
    /// Calls `notify_send`.
    Send,
    /// Calls `notify`.
    Notify,
    /// Posts an event.
    Events,
}

/// Calls one after the other on one connection.
pub(crate) fn round_trips(running: &Running<'_>, effort: Effort) -> Times {
    block_on(async {
        let mut connection = Connection::open_session(running.port).await.unwrap();
        let started = Instant::now();
        let mut times = Vec::new();
        while times.len() < effort.calls && started.elapsed() < effort.time {
            let asked = Instant::now();
            act(&mut connection, Load::Send, times.len() + 1).await;
            times.push(asked.elapsed());
        }
        Times::of(times)
    })
}

/// How many requests a second `connections` at once get answered.
pub(crate) fn rate(
    running: &Running<'_>,
    load: Load,
    connections: usize,
    effort: Effort,
) -> Measured {
    let port = running.port;
    block_on(async move {
        let mut opened = Vec::new();
        for _ in 0..connections {
            opened.push(match load {
                Load::Events => Connection::open(port).await.unwrap(),
                Load::Send | Load::Notify => Connection::open_session(port).await.unwrap(),
            });
        }
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for mut connection in opened {
            tasks.spawn(async move {
                let mut answered = 0_usize;
                while started.elapsed() < effort.time {
                    answered += 1;
                    act(&mut connection, load, answered).await;
                }
                answered
            });
        }
        let answered: usize = tasks.join_all().await.into_iter().sum();
        Measured::rate(answered, started.elapsed())
    })
}

/// One thread makes all the load, so that the server keeps a core.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, work).await.expect("a measurement ends within a minute")
    })
}

/// What one connection does once.
async fn act(connection: &mut Connection, load: Load, id: usize) {
    let (path, body) = match load {
        Load::Send => ("/mcp", send_call(id)),
        Load::Notify => ("/mcp", call(id, "notify", NOTICE)),
        Load::Events => ("/v1/events", EVENT.to_owned()),
    };
    let answer = connection.post(path, &body).await.unwrap();
    assert!((200..300).contains(&answer.status), "{path}: {} {}", answer.status, answer.body);
    if !matches!(load, Load::Events) {
        check(&answer.body);
    }
}
