//! One viewer: a cursor that goes forward, through the journal first and the ring then.

use std::{collections::VecDeque, sync::Arc};

use tokio::sync::watch;
use tracing::warn;

use crate::{
    journal::{Cursor, Entry},
    live::{
        FAILURE_PAUSE, Filter, LiveItem, PAGE, Shared, TooManyViewers,
        ring::{self, Slice},
    },
};

/// How many bytes of events a viewer should read from the journal at once. Where a page has more, the next is smaller.
const PAGE_BYTES: usize = 512 * 1024;

/// How many events a viewer reads at first, when it does not know how large they are.
const FIRST_PAGE: usize = 16;

pub(super) struct Viewer {
    shared: Arc<Shared>,
    newest: watch::Receiver<Cursor>,
    filter: Filter,
    /// Everything up to here was told or did not fit.
    after: Cursor,
    /// What was taken and is not told yet; at most a page.
    taken: VecDeque<Arc<Entry>>,
    /// How many events had passed through the ring when the viewer was last in it. `None` while it catches up, so
    /// that a replay is not called a lag.
    passed: Option<u64>,
    /// How many events it reads from the journal next.
    page: usize,
}

impl Viewer {
    /// Counts the viewer in, so that the ring is filled from now on.
    pub(super) fn register(
        shared: Arc<Shared>,
        after: Cursor,
        filter: Filter,
    ) -> Result<Self, TooManyViewers> {
        // Register interest before reading the journal, so that an event that comes in between is not missed.
        let newest = shared.newest.subscribe();
        {
            let mut ring = shared.ring();
            if ring.viewers() >= shared.viewers_limit {
                return Err(TooManyViewers);
            }
            ring.enter(*shared.bell.borrow());
            shared.watched.send_replace(true);
        }
        Ok(Self {
            shared,
            newest,
            filter,
            after,
            taken: VecDeque::new(),
            passed: None,
            page: FIRST_PAGE,
        })
    }

    /// The next item; `None` when the program ends.
    pub(super) async fn next(&mut self) -> Option<LiveItem> {
        loop {
            if let Some(entry) = self.taken.pop_front() {
                return Some(LiveItem::Event(entry));
            }
            self.newest.borrow_and_update();
            let slice = self.shared.ring().after(self.after);
            match slice {
                Slice::Events(events, passed) => {
                    self.passed = Some(passed);
                    self.after = events.last().map_or(self.after, |entry| entry.cursor);
                    self.taken
                        .extend(events.into_iter().filter(|entry| self.filter.fits(&entry.event)));
                }
                Slice::UpToDate(passed) => {
                    self.passed = Some(passed);
                    let stop = self.shared.stop.clone();
                    // The sender lives as long as `shared`, so only a stop ends this without a change.
                    stop.run_until_cancelled(self.newest.changed()).await?.ok()?;
                }
                Slice::TooOld { readable, left } => {
                    if let Some(passed) = self.passed.take() {
                        return Some(LiveItem::Lagged { skipped: left.saturating_sub(passed) });
                    }
                    let stop = self.shared.stop.clone();
                    stop.run_until_cancelled(self.replay(readable)).await?;
                }
            }
        }
    }

    /// Takes the next page from the journal.
    async fn replay(&mut self, readable: Cursor) {
        match self.shared.journal.events(self.filter.query(self.after, self.page)).await {
            Ok(page) => {
                // A page that is not full has everything that fits, at least up to what was readable before.
                let complete = (page.len() < self.page).then_some(readable);
                let bytes: usize = page.iter().map(|entry| ring::weight(&entry.event)).sum();
                self.page = if bytes > PAGE_BYTES { self.page / 4 } else { self.page * 2 };
                self.page = self.page.clamp(1, PAGE);
                let last = page.last().map(|entry| entry.cursor);
                self.after = self.after.max(last.max(complete).unwrap_or_default());
                self.taken.extend(page.into_iter().map(Arc::new));
            }
            Err(error) => {
                warn!("a viewer waits, because the journal cannot be read: {error}");
                tokio::time::sleep(FAILURE_PAUSE).await;
            }
        }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let mut ring = self.shared.ring();
        ring.leave();
        if ring.viewers() == 0 {
            self.shared.watched.send_replace(false);
        }
    }
}
