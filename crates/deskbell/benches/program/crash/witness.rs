//! Somebody who looks all the time at what the journal knows to be sent.
//!
//! Whatever it has seen with a receipt must not arrive again, whatever happens later.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{runtime::Runtime, task::JoinHandle};

use crate::connection::Connection;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// When each delivery was first seen to be sent, by its id.
pub(super) type Witnessed = HashMap<String, Instant>;

pub(super) struct Witness {
    watching: JoinHandle<Witnessed>,
    stop: Arc<AtomicBool>,
}

impl Witness {
    pub(super) fn start(runtime: &Runtime, port: u16) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let watching = runtime.spawn(watch(port, Arc::clone(&stop)));
        Self { watching, stop }
    }

    pub(super) async fn stop(self) -> Witnessed {
        self.stop.store(true, Ordering::Relaxed);
        self.watching.await.unwrap()
    }
}

async fn watch(port: u16, stop: Arc<AtomicBool>) -> Witnessed {
    let mut witnessed = Witnessed::new();
    while !stop.load(Ordering::Relaxed) {
        // A kill ends the connection; the next daemon is watched then.
        let _killed = look_until_killed(port, &stop, &mut witnessed).await;
        tokio::time::sleep(PAUSE).await;
    }
    witnessed
}

async fn look_until_killed(
    port: u16,
    stop: &AtomicBool,
    witnessed: &mut Witnessed,
) -> io::Result<()> {
    let mut connection = Connection::open(port).await?;
    while !stop.load(Ordering::Relaxed) {
        let answer = connection.get("/v1/deliveries?state=sent&limit=100").await?;
        // Only what arrives after this moment certainly arrived after the record.
        let seen = Instant::now();
        assert_eq!(answer.status, 200, "{}", answer.body);
        let page: Value = serde_json::from_str(&answer.body).unwrap();
        for delivery in page.get("deliveries").unwrap().as_array().unwrap() {
            let id = delivery.get("id").and_then(Value::as_str).unwrap();
            witnessed.entry(id.to_owned()).or_insert(seen);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}
