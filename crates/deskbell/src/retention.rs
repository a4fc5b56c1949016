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

#[cfg(test)]
mod tests {
    use deskbell_core::{Context, Event, EventId, Level, Source, clock::ManualClock, event};
    use jiff::{SignedDuration, Timestamp};
    use uuid::Uuid;

    use super::*;
    use crate::journal::{Accept, EventQuery, memory::MemoryJournal};

    const DAY: Duration = Duration::from_hours(24);

    async fn accept(journal: &MemoryJournal, count: usize, at: Timestamp) {
        let event = |_| Event {
            id: EventId::from_uuid(Uuid::new_v4()),
            at,
            level: Level::Info,
            context: Context::default(),
            source: Source::default(),
            content: event::Content { text: "old news".to_owned(), ..event::Content::default() },
            kind: event::Kind::Notice,
            to: Vec::new(),
        };
        let accept = |event| Accept { event, key: None, deliveries: Vec::new(), run: None };
        let writes = (0..count).map(event).map(|event| Write::Accept(Box::new(accept(event))));
        journal.commit(writes.collect()).await.unwrap();
    }

    async fn kept(journal: &MemoryJournal) -> usize {
        journal.events(EventQuery::first(usize::MAX)).await.unwrap().len()
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_is_older_than_the_configuration_keeps_is_forgotten() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let journal = Arc::new(MemoryJournal::default());
        accept(&journal, 3 * CHUNK + 1, now - SignedDuration::from_hours(50)).await;
        accept(&journal, 5, now).await;
        let (sender, config) = watch::channel(Arc::new(Config::default()));
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let clock = Arc::new(ManualClock::at(now));
        start(journal.clone(), clock.clone(), config, &tasks, stop.clone());
        tokio::time::sleep(DAY).await;
        assert_eq!(kept(&journal).await, 3 * CHUNK + 6, "all is kept unless somebody says so");
        sender.send_replace(Arc::new(Config { keep_history: Some(2 * DAY), ..Config::default() }));
        tokio::time::sleep(2 * BETWEEN_LOOKS).await;
        assert_eq!(kept(&journal).await, 5);
        clock.advance(3 * DAY);
        tokio::time::sleep(2 * BETWEEN_LOOKS).await;
        assert_eq!(kept(&journal).await, 0);
        stop.cancel();
        tasks.close();
        tasks.wait().await;
    }
}
