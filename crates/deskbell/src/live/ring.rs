//! The newest events, shared by all viewers.

use std::{collections::VecDeque, sync::Arc};

use deskbell_core::Event;

use crate::journal::{Cursor, Entry};

/// How many events the ring holds.
const EVENTS_LIMIT: usize = 1_024;

/// How many bytes of text and data the ring holds.
const BYTES_LIMIT: usize = 16 * 1024 * 1024;

/// How many events a viewer takes at once. Few, because what it has taken stays in memory until it is read.
const SLICE: usize = 16;

/// The newest events without a gap: all that the journal has after `floor`, up to `newest`.
pub(super) struct Ring {
    entries: VecDeque<Held>,
    floor: Cursor,
    newest: Cursor,
    /// How many events have left the ring since it was made.
    left: u64,
    bytes: usize,
    viewers: usize,
    events_limit: usize,
}

struct Held {
    entry: Arc<Entry>,
    bytes: usize,
}

/// What comes after a cursor.
#[derive(Debug, PartialEq)]
pub(super) enum Slice {
    /// The next events, at least one, and how many have passed through the ring after the last of them.
    Events(Vec<Arc<Entry>>, u64),
    /// Nothing yet; so many events have passed through the ring.
    UpToDate(u64),
    /// The ring begins later. The journal has what is missing, at least up to `readable`.
    TooOld {
        /// Every event up to here was read from the journal at least once.
        readable: Cursor,
        /// How many events have left the ring.
        left: u64,
    },
}

impl Default for Ring {
    fn default() -> Self {
        Self::holding(EVENTS_LIMIT)
    }
}

impl Ring {
    pub(super) const fn holding(events_limit: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            floor: Cursor::START,
            newest: Cursor::START,
            left: 0,
            bytes: 0,
            viewers: 0,
            events_limit,
        }
    }

    pub(super) const fn viewers(&self) -> usize {
        self.viewers
    }

    #[cfg(test)]
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) const fn newest(&self) -> Cursor {
        self.newest
    }

    /// Counts one viewer more. For the first one the ring begins anew at `newest`.
    pub(super) fn enter(&mut self, newest: Cursor) {
        if self.viewers == 0 {
            (self.floor, self.newest) = (newest, newest);
        }
        self.viewers += 1;
    }

    /// Counts one viewer less. After the last one nothing is kept.
    pub(super) fn leave(&mut self) {
        self.viewers -= 1;
        if self.viewers == 0 {
            self.left += self.entries.len() as u64;
            self.entries.clear();
            (self.bytes, self.floor) = (0, self.newest);
        }
    }

    /// Adds the events that follow `after`; returns the newest one's cursor if something was added.
    ///
    /// They are dropped if the ring began anew while they were read.
    pub(super) fn push(&mut self, after: Cursor, page: Vec<Entry>) -> Option<Cursor> {
        if self.viewers == 0 || after != self.newest {
            return None;
        }
        self.newest = page.last()?.cursor;
        for entry in page {
            let bytes = weight(&entry.event);
            self.bytes += bytes;
            self.entries.push_back(Held { entry: Arc::new(entry), bytes });
        }
        // The newest event always stays, however large it is, so that viewers find what they were woken for.
        while self.entries.len() > self.events_limit
            || (self.bytes > BYTES_LIMIT && self.entries.len() > 1)
        {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.bytes;
            self.floor = oldest.entry.cursor;
            self.left += 1;
        }
        Some(self.newest)
    }

    /// What comes after `after`, at most [`SLICE`] events.
    pub(super) fn after(&self, after: Cursor) -> Slice {
        if after < self.floor {
            return Slice::TooOld { readable: self.newest, left: self.left };
        }
        let start = self.entries.partition_point(|held| held.entry.cursor <= after);
        let events: Vec<_> = self
            .entries
            .iter()
            .skip(start)
            .take(SLICE)
            .map(|held| Arc::clone(&held.entry))
            .collect();
        let passed = self.left + (start + events.len()) as u64;
        if events.is_empty() { Slice::UpToDate(passed) } else { Slice::Events(events, passed) }
    }
}

/// About how many bytes an event takes.
pub(super) fn weight(event: &Event) -> usize {
    let data = event.content.data.as_ref().map_or(0, |data| data.to_string().len());
    let title = event.content.title.as_ref().map_or(0, String::len);
    size_of::<Entry>() + event.content.text.len() + title + data
}
