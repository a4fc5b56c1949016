//! The durable, ordered log of all events, with the deliveries and runs that they change.
//!
//! An event is accepted exactly when [`Journal::commit`] has answered. What is due, what happened and where each run
//! stands is always readable from here: a restart needs nothing else.

pub mod memory;
pub mod sqlite;
mod stored;
#[cfg(test)]
mod suite;

use std::{fmt, str::FromStr, time::Duration};

use async_trait::async_trait;
use deskbell_core::{
    ChannelName, DeliveryId, Event, EventId, Invalid, Run, RunId,
    delivery::{Arrived, DeliveryState, Outcome, Planned},
    group::Digest,
    level::LevelRange,
    run::RunState,
};
use jiff::Timestamp;
use tokio::sync::watch;

/// The journal. One suite of tests holds for every implementation.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Makes `writes` durable in one transaction, in order, and answers each.
    ///
    /// Concurrent calls share a transaction where they can. When this returns an error nothing of it was written.
    async fn commit(&self, writes: Vec<Write>) -> Result<Vec<Ack>, JournalError>;

    /// Takes due deliveries: marks them as in flight, durably, and counts the attempt.
    async fn claim(&self, claim: Claim) -> Result<Claimed, JournalError>;

    /// Reads events.
    async fn events(&self, query: EventQuery) -> Result<Vec<Entry>, JournalError>;

    /// Reads deliveries.
    async fn deliveries(&self, query: DeliveryQuery) -> Result<Vec<Delivery>, JournalError>;

    /// Reads runs, the latest change first.
    async fn runs(&self, query: RunQuery) -> Result<Vec<Run>, JournalError>;

    /// Rings when something was committed, and shows the cursor of the newest event.
    ///
    /// It may ring for nothing and rings once for many: it says "look", never what there is to see.
    fn doorbell(&self) -> watch::Receiver<Cursor>;
}

/// One thing to be made durable.
#[derive(Debug, Clone)]
pub enum Write {
    /// An event with its planned deliveries and the state that it changes.
    Accept(Box<Accept>),
    /// What an attempt came to.
    Outcome {
        /// The delivery.
        delivery: DeliveryId,
        /// The number of the attempt, as [`Due::attempt`] gave it; a late outcome of an earlier one is `Stale`.
        attempt: u32,
        /// When it was known.
        at: Timestamp,
        /// What it came to.
        outcome: Outcome,
    },
    /// Puts a delivery that was given up back among the due ones, with its attempts counted anew.
    Retry {
        /// The delivery.
        delivery: DeliveryId,
        /// When it is due.
        at: Timestamp,
    },
    /// Makes due at `to` what was put off until exactly `from` and never tried.
    Reschedule {
        /// Only deliveries to this channel.
        channel: Option<ChannelName>,
        /// Until when they were put off.
        from: Timestamp,
        /// When they are due instead.
        to: Timestamp,
    },
    /// Marks what was in flight when the program ended as due, and as maybe repeated. For the start of the program.
    Recover {
        /// When it is due.
        at: Timestamp,
    },
    /// Forgets at most `limit` of the oldest events before `before`, with their finished deliveries.
    /// Events with a delivery that is not finished, and open runs, stay.
    Prune {
        /// The limit of age.
        before: Timestamp,
        /// The most events to forget in one transaction.
        limit: usize,
    },
}

/// An event that is to be accepted.
#[derive(Debug, Clone)]
pub struct Accept {
    /// The event.
    pub event: Event,
    /// The caller's key for it, if it gave one.
    pub key: Option<IdempotencyKey>,
    /// Where it goes.
    pub deliveries: Vec<Planned>,
    /// The run after the event, if it is a step of one.
    pub run: Option<RunChange>,
}

/// The caller's own name for a report, under which it is accepted once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey {
    /// Whose key it is: keys of different scopes are different.
    pub scope: String,
    /// The key.
    pub key: String,
}

/// A run's new state, valid only if nobody changed the run meanwhile.
#[derive(Debug, Clone)]
pub struct RunChange {
    /// [`Run::steps`] of the run that the change was decided on; 0 if there was none.
    pub after_steps: u64,
    /// The run after the change.
    pub run: Run,
}

/// The answer to one [`Write`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ack {
    /// The event is accepted.
    Accepted(Cursor),
    /// An event with the same key was accepted before; this one was not written.
    Duplicate(EventId),
    /// The run was changed meanwhile, or the attempt is not the latest; nothing was written.
    Stale,
    /// Done, and this many rows were touched.
    Done(u64),
}

/// A place in the journal. Opaque: it is only compared, kept and given back.
///
/// `major` is 0 on one machine; in PostgreSQL it is the transaction, because sequence numbers commit out of order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    /// The transaction, or 0.
    pub major: u64,
    /// The number in order of acceptance.
    pub minor: u64,
}

impl Cursor {
    /// Before the first event.
    pub const START: Self = Self { major: 0, minor: 0 };
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.major, self.minor)
    }
}

impl FromStr for Cursor {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let number = |part: &str| {
            let plain = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
            plain.then(|| u64::from_str_radix(part, 16).ok()).flatten()
        };
        let cursor = text
            .split_once('-')
            .and_then(|(major, minor)| Some(Self { major: number(major)?, minor: number(minor)? }));
        cursor.ok_or_else(|| {
            Invalid::text("cursor", text, "a cursor as Deskbell gave it, such as 0-1f")
        })
    }
}

/// An event with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The place.
    pub cursor: Cursor,
    /// The event.
    pub event: Event,
}

/// What to take of what is due.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The time now.
    pub now: Timestamp,
    /// How many deliveries each channel can take; channels that are not named get none.
    pub room: Vec<(ChannelName, usize)>,
}

/// What was taken.
#[derive(Debug, Clone, Default)]
pub struct Claimed {
    /// The deliveries, each now in flight.
    pub due: Vec<Due>,
    /// When the next delivery of the named channels falls due, if any is waiting for its time.
    pub next_at: Option<Timestamp>,
}

/// A delivery that was taken, with all that an attempt needs.
#[derive(Debug, Clone)]
pub struct Due {
    /// The delivery.
    pub id: DeliveryId,
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
    /// Whether an earlier attempt may have reached the far end without being recorded.
    pub maybe_repeated: bool,
    /// The event to tell.
    pub event: Event,
    /// The pieces of the latest earlier step of the same run on the same channel that name a message.
    pub previous: Vec<Arrived>,
    /// The pieces that earlier attempts have brought there.
    pub arrived: Vec<Arrived>,
    /// The events that are told with it in one message, if there are others.
    pub digest: Option<Digest>,
}

/// Which events to read, and in which order.
#[derive(Debug, Clone)]
pub struct EventQuery {
    /// Only events after this place.
    pub after: Option<Cursor>,
    /// Only events before this place.
    pub before: Option<Cursor>,
    /// Only this event.
    pub id: Option<EventId>,
    /// Only the event with this key.
    pub key: Option<IdempotencyKey>,
    /// Only these levels.
    pub levels: LevelRange,
    /// Only this category.
    pub context: Option<String>,
    /// Only this sort.
    pub kind: Option<String>,
    /// Only steps of this run.
    pub run: Option<RunId>,
    /// Only what this client reported.
    pub client: Option<String>,
    /// Only events accepted at or after this time.
    pub since: Option<Timestamp>,
    /// The newest first instead of the oldest first.
    pub newest_first: bool,
    /// How many at most.
    pub limit: usize,
}

impl EventQuery {
    /// All events, the oldest first, at most `limit`.
    pub const fn first(limit: usize) -> Self {
        Self {
            after: None,
            before: None,
            id: None,
            key: None,
            levels: LevelRange::ALL,
            context: None,
            kind: None,
            run: None,
            client: None,
            since: None,
            newest_first: false,
            limit,
        }
    }
}

/// Which deliveries to read, the newest event first.
#[derive(Debug, Clone, Default)]
pub struct DeliveryQuery {
    /// Only deliveries of this event.
    pub event: Option<EventId>,
    /// Only deliveries to this channel.
    pub channel: Option<ChannelName>,
    /// Only deliveries in this state.
    pub state: Option<DeliveryState>,
    /// How many at most.
    pub limit: usize,
}

/// A delivery as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Its id.
    pub id: DeliveryId,
    /// Where it stands.
    pub state: DeliveryState,
    /// Why the event goes there.
    pub reason: String,
    /// When it is or was due.
    pub due_at: Timestamp,
    /// Whether an attempt may have reached the far end without being recorded.
    pub maybe_repeated: bool,
    /// The attempts, the first one first; at most the last [`ATTEMPTS_KEPT`].
    pub attempts: Vec<AttemptRecord>,
    /// How many attempts there were.
    pub attempt_count: u32,
    /// When it was put back among the due ones by hand, as far as the attempts before are kept, and the last time
    /// before those.
    pub retries: Vec<RetryRecord>,
    /// What the far end gave for each piece that has arrived; nothing where all have, and none has an id.
    pub receipts: Vec<Arrived>,
    /// The event whose delivery tells this one too; of a superseded one the event that told the same before.
    pub lead: Option<EventId>,
    /// How many other events its message tells; `None` for what belongs to no group.
    pub others: Option<u64>,
}

/// How many attempts of a delivery are kept in detail.
pub const ATTEMPTS_KEPT: usize = 20;

/// One attempt, as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptRecord {
    /// Its number, counted from 1 through all retries by hand.
    pub number: u32,
    /// When its outcome was known.
    pub at: Timestamp,
    /// What went wrong; of a delivery that was sent, what of it did not arrive. `None` means that the far end took all of it.
    pub error: Option<String>,
}

/// A retry by hand, as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryRecord {
    /// How many attempts there were before.
    pub after: u32,
    /// When it was asked for.
    pub at: Timestamp,
}

/// Which runs to read.
#[derive(Debug, Clone, Default)]
pub struct RunQuery {
    /// Only this run.
    pub id: Option<RunId>,
    /// Only runs in this state.
    pub state: Option<RunState>,
    /// How many at most.
    pub limit: usize,
}

/// Why the journal did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum JournalError {
    /// Too much is waiting to be written.
    #[error("the journal is busy; try again after {} ms", .retry_after.as_millis())]
    Busy {
        /// How long to wait.
        retry_after: Duration,
    },
    /// The disk is full.
    #[error("the disk that holds the journal is full: {0}")]
    Full(String),
    /// The file or its folder cannot be written.
    #[error("the journal cannot be written: {0}")]
    ReadOnly(String),
    /// The file is not a journal, or is damaged.
    #[error("the journal is damaged: {0}")]
    Damaged(String),
    /// The file was written by a newer version.
    #[error(
        "the journal has format {found}, and this version of Deskbell knows {known}; install a newer version"
    )]
    Newer {
        /// The file's format.
        found: i64,
        /// The newest format that this program knows.
        known: i64,
    },
    /// Another process has the file.
    #[error("the journal is in use by another process: {0}")]
    InUse(String),
    /// Anything else, such as an I/O error. The next call may work: the file is opened anew.
    #[error("the journal failed: {0}")]
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_back_and_nonsense_is_refused() {
        let cursor = Cursor { major: 0, minor: 0x1f };
        assert_eq!(cursor.to_string(), "0-1f");
        assert_eq!("0-1f".parse(), Ok(cursor));
        for text in ["", "-", "0", "0-", "0-g", "0-+1", "0-1-1", "0-11111111111111111"] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }
}
