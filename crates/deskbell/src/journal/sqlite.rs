//! The journal in one file on this machine: SQLite with a write-ahead log, flushed to the disk at every commit.
//!
//! Requests are brought into the form in which they are kept where they are made, queued, and written by one thread
//! that shares each flush among all that wait. Reads have connections of their own and never wait for the writer.

mod claims;
mod fault;
mod groups;
mod plans;
mod reader;
mod schema;
mod words;
mod writer;
mod writes;

use std::{
    collections::HashSet,
    path::Path,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use async_trait::async_trait;
use deskbell_core::{
    Run,
    delivery::{DeliveryState, Outcome},
};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use self::{
    groups::GroupedForm,
    reader::Readers,
    writer::{Reply, Request, Work, Writer},
    writes::{AcceptForm, Form, OutcomeForm, PlannedForm},
};
use super::{
    Accept, Ack, AttemptRecord, Claim, Claimed, Cursor, Delivery, DeliveryQuery, Entry, EventQuery,
    Journal, JournalError, RunQuery, Write,
    stored::{self, StoredEvent, StoredRun, Unreadable},
};

/// How many requests wait for the writer at most. Further ones are told to come again.
const QUEUE: usize = 8_192;

/// How many bytes wait for the writer at most.
const QUEUE_BYTES: u32 = 64 * 1024 * 1024;

/// When to come again: by then a full queue is written on an ordinary disk.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// What a request takes in the queue beside its texts.
const REQUEST_BYTES: usize = 256;

/// The journal in a file.
#[derive(Debug)]
pub struct SqliteJournal {
    /// `None` only while it is dropped.
    queue: Option<mpsc::Sender<Request>>,
    room: Arc<Semaphore>,
    readers: Arc<Readers>,
    bell: watch::Receiver<Cursor>,
    writer: Option<JoinHandle<()>>,
}

impl SqliteJournal {
    /// Opens the journal at `path`, and makes it if there is none.
    ///
    /// This blocks for the time of a few flushes. Dropping the journal blocks until all that is queued is written.
    ///
    /// # Errors
    /// Says that another process has it, that it is damaged, newer than this program or cannot be written.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let (queue, requests) = mpsc::channel(QUEUE);
        let bell = watch::Sender::new(Cursor::START);
        let listener = bell.subscribe();
        let writer = Writer::open(path.to_owned(), requests, bell)?;
        let thread = thread::Builder::new().name("journal-writer".to_owned());
        let writer = thread
            .spawn(|| writer.run())
            .map_err(|error| JournalError::Failed(format!("no thread for the writer: {error}")))?;
        Ok(Self {
            queue: Some(queue),
            room: Arc::new(Semaphore::new(QUEUE_BYTES as usize)),
            readers: Readers::new(path.to_owned()),
            bell: listener,
            writer: Some(writer),
        })
    }

    /// Queues a request of about `bytes` and waits until it is done and safe.
    async fn ask<T>(
        &self,
        bytes: usize,
        answer: oneshot::Receiver<Result<T, JournalError>>,
        work: Work,
    ) -> Result<T, JournalError> {
        let busy = || JournalError::Busy { retry_after: RETRY_AFTER };
        let bytes = u32::try_from(bytes).unwrap_or(QUEUE_BYTES).min(QUEUE_BYTES);
        let room = Arc::clone(&self.room).try_acquire_many_owned(bytes).map_err(|_| busy())?;
        let queue = self.queue.as_ref().ok_or_else(ended)?;
        queue.try_send(Request { work, _room: room }).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => busy(),
            mpsc::error::TrySendError::Closed(_) => ended(),
        })?;
        answer.await.map_err(|_| ended())?
    }
}

impl Drop for SqliteJournal {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the journal's writer panicked");
        }
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn commit(&self, writes: Vec<Write>) -> Result<Vec<Ack>, JournalError> {
        let forms = writes.into_iter().map(Form::of).collect::<Result<Vec<_>, _>>();
        let forms = forms.map_err(|unreadable| JournalError::Failed(unreadable.to_string()))?;
        let bytes = forms.iter().map(Form::bytes).sum();
        let (reply, answer) = Reply::channel();
        self.ask(bytes, answer, Work::Commit(forms, reply)).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, JournalError> {
        let (reply, answer) = Reply::channel();
        let claimed = self.ask(REQUEST_BYTES, answer, Work::Claim(claim, reply)).await?;
        Ok(claimed.claimed())
    }

    async fn events(&self, query: EventQuery) -> Result<Vec<Entry>, JournalError> {
        self.readers.read(move |connection| reader::events(connection, &query)).await
    }

    async fn deliveries(&self, query: DeliveryQuery) -> Result<Vec<Delivery>, JournalError> {
        self.readers.read(move |connection| reader::deliveries(connection, &query)).await
    }

    async fn runs(&self, query: RunQuery) -> Result<Vec<Run>, JournalError> {
        self.readers.read(move |connection| reader::runs(connection, &query)).await
    }

    fn doorbell(&self) -> watch::Receiver<Cursor> {
        self.bell.clone()
    }
}

fn ended() -> JournalError {
    JournalError::Failed("its writer has ended".to_owned())
}

impl Form {
    /// The form of `write`. This is where the encoding happens, away from the writer.
    fn of(write: Write) -> Result<Self, Unreadable> {
        Ok(match write {
            Write::Accept(accept) => Self::Accept(Box::new(AcceptForm::of(*accept)?)),
            Write::Outcome { delivery, attempt, at, outcome } => {
                let (state, due_at, receipts, error) = match outcome {
                    Outcome::Sent { arrived, without } => {
                        (DeliveryState::Sent, None, arrived, without)
                    }
                    Outcome::RetryAt { at, error, arrived } => {
                        (DeliveryState::Pending, Some(stored::nanos(at)), arrived, Some(error))
                    }
                    Outcome::GivenUp { error, arrived } => {
                        (DeliveryState::GivenUp, None, arrived, Some(error))
                    }
                };
                Self::Outcome(OutcomeForm {
                    event: delivery.event.uuid().into_bytes(),
                    channel: delivery.channel.to_string(),
                    attempt,
                    state: stored::delivery_state_code(state),
                    due_at,
                    receipts: stored::pieces(&receipts, state == DeliveryState::Sent)?,
                    at: stored::nanos(at),
                    line: stored::attempt_line(&AttemptRecord { number: attempt, at, error })?,
                })
            }
            Write::Retry { delivery, at } => Self::Retry {
                event: delivery.event.uuid().into_bytes(),
                channel: delivery.channel.to_string(),
                at: stored::nanos(at),
            },
            Write::Reschedule { channel, from, to } => Self::Reschedule {
                channel: channel.map(|name| name.to_string()),
                from: stored::nanos(from),
                to: stored::nanos(to),
            },
            Write::Recover { at } => Self::Recover { at: stored::nanos(at) },
            Write::Prune { before, limit } => Self::Prune { before: stored::nanos(before), limit },
        })
    }

    /// About how much memory it takes.
    fn bytes(&self) -> usize {
        let texts = match self {
            Self::Accept(accept) => {
                let run = accept.run.as_ref().map_or(0, |(run, _)| run.body.len());
                accept.event.body.len() + run + accept.deliveries.len() * REQUEST_BYTES
            }
            Self::Outcome(outcome) => outcome.line.len(),
            Self::Retry { .. }
            | Self::Reschedule { .. }
            | Self::Recover { .. }
            | Self::Prune { .. } => 0,
        };
        REQUEST_BYTES + texts
    }
}

impl AcceptForm {
    fn of(accept: Accept) -> Result<Self, Unreadable> {
        let run = match &accept.run {
            Some(change) => Some((StoredRun::of(&change.run)?, change.after_steps.cast_signed())),
            None => None,
        };
        // A channel that is planned twice gets the event once.
        let mut channels = HashSet::new();
        let planned = accept.deliveries.into_iter();
        let once = planned.filter(|planned| channels.insert(planned.channel.clone()));
        let deliveries: Vec<_> = once
            .map(|planned| PlannedForm {
                channel: planned.channel.to_string(),
                due_at: stored::nanos(planned.due_at),
                reason: planned.reason,
                replaces: planned.replaces,
                grouped: planned.grouped.map(|grouped| GroupedForm {
                    group: stored::print(&grouped.group),
                    print: stored::print(&grouped.content),
                    grouped,
                }),
            })
            .collect();
        let event = StoredEvent::of(&accept.event)?;
        Ok(Self {
            plan: plans::name(&event, &deliveries)?,
            event,
            key: accept.key.as_ref().map(stored::key),
            deliveries,
            run,
        })
    }
}

#[cfg(test)]
mod tests;
