//! Forgets old history, slowly: in small transactions, so that reports never wait long behind one.

use std::{sync::Arc, time::Duration};

use deskbell_core::clock::Clock;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{info, warn};

use crate::{
    config::Config,
    journal::{Ack, Journal, JournalError, Write},
};

/// How many events are forgotten in one transaction. Deleting 6,000 at once was measured to take 139 ms.
const CHUNK: usize = 500;

/// The pause between two transactions, in which others write.
const BETWEEN_CHUNKS: Duration = Duration::from_millis(250);

/// How often history is looked at.
const BETWEEN_LOOKS: Duration = Duration::from_mins(10);

/// Forgets what is older than `keep_history` of the newest configuration, now and then until `stop`.
pub fn start(
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    config: watch::Receiver<Arc<Config>>,
    tasks: &TaskTracker,
    stop: CancellationToken,
) {
    tasks.spawn(async move {
        stop.run_until_cancelled(async {
            loop {
                let keep = config.borrow().keep_history;
                if let Some(keep) = keep {
                    match forget(&*journal, &*clock, keep).await {
                        Ok(0) => {}
                        Ok(count) => info!("forgot {count} events that were too old to keep"),
                        Err(error) => warn!("failed to forget old events: {error}"),
                    }
                }
                tokio::time::sleep(BETWEEN_LOOKS).await;
            }
        })
        .await;
    });
}

/// Forgets everything that is older than `keep`, chunk by chunk; returns how many rows went.
async fn forget(
    journal: &dyn Journal,
    clock: &dyn Clock,
    keep: Duration,
) -> Result<u64, JournalError> {
    let Ok(before) = clock.now().checked_sub(keep) else {
        return Ok(0);
    };
    let mut forgotten = 0;
    loop {
        let acks = journal.commit(vec![Write::Prune { before, limit: CHUNK }]).await?;
        let Some(Ack::Done(count @ 1..)) = acks.first() else {
            return Ok(forgotten);
        };
        forgotten += count;
        tokio::time::sleep(BETWEEN_CHUNKS).await;
    }
}
