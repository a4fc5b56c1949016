//! The live stream: tells viewers of events once they are in the journal.
//!
//! One reader follows the journal for all viewers and keeps the newest events in a ring. A viewer is a cursor and
//! nothing more: it takes what comes after it from the ring or, where the ring no longer reaches back that far, from
//! the journal. So it sees every event once and in order, whether it replays, is live, or was too slow for the ring;
//! and what it costs does not depend on how far behind it is. When nobody watches, nothing is read and nothing kept.

mod filter;
mod ring;
mod viewer;

#[cfg(test)]
mod tests;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::Stream;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::warn;

pub use filter::Filter;

use crate::{
    journal::{Cursor, Entry, EventQuery, Journal},
    live::{ring::Ring, viewer::Viewer},
};

/// How many viewers there may be; more are refused.
pub const VIEWERS_LIMIT: usize = 16_384;

/// How many events are read from the journal at once.
const PAGE: usize = 128;

/// How long the reader or a viewer waits before it asks a journal that failed again.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);

/// What a viewer gets.
#[derive(Debug, Clone, PartialEq)]
pub enum LiveItem {
    /// The next event that fits the filter.
    Event(Arc<Entry>),
    /// The viewer was too slow for the ring. Nothing is lost: the events follow, read from the journal.
    Lagged {
        /// How many events had left the ring before the viewer came for them, whether or not they fit its filter.
        skipped: u64,
    },
}

/// There are [`VIEWERS_LIMIT`] viewers already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{VIEWERS_LIMIT} viewers watch already; try again when one has left")]
pub struct TooManyViewers;

/// The live stream. Its clones are the same stream.
#[derive(Clone)]
pub struct Live(Arc<Shared>);

struct Shared {
    journal: Arc<dyn Journal>,
    bell: watch::Receiver<Cursor>,
    stop: CancellationToken,
    ring: Mutex<Ring>,
    /// The newest event in the ring, to wake viewers.
    newest: watch::Sender<Cursor>,
    /// Whether anybody watches, to wake the reader.
    watched: watch::Sender<bool>,
    viewers_limit: usize,
}

impl Live {
    /// The live stream of `journal`, until `stop`.
    pub fn new(journal: Arc<dyn Journal>, tasks: &TaskTracker, stop: CancellationToken) -> Self {
        Self::with_limits(journal, tasks, stop, VIEWERS_LIMIT, Ring::default())
    }

    fn with_limits(
        journal: Arc<dyn Journal>,
        tasks: &TaskTracker,
        stop: CancellationToken,
        viewers_limit: usize,
        ring: Ring,
    ) -> Self {
        let shared = Arc::new(Shared {
            bell: journal.doorbell(),
            journal,
            stop,
            ring: Mutex::new(ring),
            newest: watch::Sender::default(),
            watched: watch::Sender::default(),
            viewers_limit,
        });
        tasks.spawn(Arc::clone(&shared).read());
        Self(shared)
    }

    /// The events after `after` that fit `filter`: first those of the past, then each as it is accepted, with no gap
    /// and no repeat. Without a cursor it begins with the next event. The stream ends when the program does.
    ///
    /// # Errors
    /// There are too many viewers already.
    pub fn follow(
        &self,
        after: Option<Cursor>,
        filter: Filter,
    ) -> Result<impl Stream<Item = LiveItem> + Send + use<>, TooManyViewers> {
        let newest = *self.0.bell.borrow();
        // The doors refuse a cursor from the future; waiting for it would be silent for ever.
        let after = after.map_or(newest, |cursor| cursor.min(newest));
        let viewer = Viewer::register(Arc::clone(&self.0), after, filter)?;
        Ok(futures_util::stream::unfold(viewer, |mut viewer| async {
            viewer.next().await.map(|item| (item, viewer))
        }))
    }

    /// How many viewers there are.
    pub fn viewers(&self) -> usize {
        self.0.ring().viewers()
    }
}

impl Shared {
    /// The ring. It is held for a few moves of pointers and never across an `await`.
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills the ring as long as somebody watches.
    async fn read(self: Arc<Self>) {
        let stop = self.stop.clone();
        stop.run_until_cancelled(async {
            let mut watched = self.watched.subscribe();
            let mut bell = self.bell.clone();
            loop {
                if watched.wait_for(|watched| *watched).await.is_err() {
                    return;
                }
                // Seen before reading, so that an event that comes in between rings again.
                bell.borrow_and_update();
                if !self.read_page().await {
                    tokio::select! {
                        Ok(()) = bell.changed() => {}
                        Ok(()) = watched.changed() => {}
                        else => return,
                    }
                }
            }
        })
        .await;
    }

    /// Reads the next page into the ring; tells whether there may be more.
    async fn read_page(&self) -> bool {
        let after = self.ring().newest();
        let query = EventQuery { after: Some(after), ..EventQuery::first(PAGE) };
        match self.journal.events(query).await {
            Ok(page) => {
                let more = page.len() == PAGE;
                if let Some(newest) = self.ring().push(after, page) {
                    self.newest.send_replace(newest);
                }
                more
            }
            Err(error) => {
                warn!("the live stream waits, because the journal cannot be read: {error}");
                tokio::time::sleep(FAILURE_PAUSE).await;
                true
            }
        }
    }
}
