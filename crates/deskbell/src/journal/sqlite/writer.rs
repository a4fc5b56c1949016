//! The one thread that writes: it takes all that is queued, commits once, and answers all.
//!
//! Commits of many share one flush to the disk, which is where nearly all the time goes. Nothing waits for a batch to
//! fill: what comes while one is written is the next.

use std::{
    any::Any,
    fs::File,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};

use super::{
    claims::ClaimedForm,
    fault::{Fault, journal_error},
    schema,
    writes::{Form, Memory, Writes},
};
use crate::journal::{Ack, Claim, Cursor, JournalError};

/// How many requests share a transaction at most.
const BATCH: usize = 1_024;

/// Something for the writer to do, with its room in the queue.
pub(super) struct Request {
    pub(super) work: Work,
    pub(super) _room: OwnedSemaphorePermit,
}

pub(super) enum Work {
    Commit(Vec<Form>, Reply<Vec<Ack>>),
    Claim(Claim, Reply<ClaimedForm>),
    /// Runs inside the transaction: how the tests of this module get in the way.
    #[cfg(test)]
    Disturb(Box<dyn FnOnce(&Connection) + Send>, Reply<()>),
}

/// Where an answer goes once the transaction is safe.
pub(super) struct Reply<T> {
    to: oneshot::Sender<Result<T, JournalError>>,
    answer: Option<T>,
}

impl<T> Reply<T> {
    pub(super) fn channel() -> (Self, oneshot::Receiver<Result<T, JournalError>>) {
        let (to, receiver) = oneshot::channel();
        (Self { to, answer: None }, receiver)
    }

    fn send(self, committed: &Result<(), JournalError>) {
        let answer = committed.clone().and_then(|()| {
            self.answer.ok_or_else(|| JournalError::Failed("a request got no answer".to_owned()))
        });
        // Whoever went away meanwhile needs no answer.
        self.to.send(answer).ok();
    }
}

/// An open file and what is remembered of it.
struct Open {
    connection: Connection,
    memory: Memory,
}

impl Open {
    fn new(path: &std::path::Path) -> Result<Self, JournalError> {
        let connection = schema::open_writer(path)?;
        let memory = Memory::read(&connection).map_err(|fault| journal_error(path, fault))?;
        Ok(Self { connection, memory })
    }

    /// Does all that is asked in one transaction.
    fn transact(&mut self, requests: &mut [Request]) -> Result<(), Fault> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut writes = Writes::new(&self.connection, &mut self.memory)?;
        for request in requests {
            request.work.carry_out(&mut writes)?;
        }
        drop(writes);
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }
}

impl Work {
    fn carry_out(&mut self, writes: &mut Writes<'_>) -> Result<(), Fault> {
        match self {
            Self::Commit(forms, reply) => {
                let acks = forms.iter().map(|form| writes.write(form)).collect::<Result<_, _>>()?;
                reply.answer = Some(acks);
            }
            Self::Claim(claim, reply) => reply.answer = Some(writes.claim(claim)?),
            #[cfg(test)]
            Self::Disturb(disturb, reply) => {
                std::mem::replace(disturb, Box::new(|_| {}))(writes.connection);
                reply.answer = Some(());
            }
        }
        Ok(())
    }

    fn answer(self, committed: &Result<(), JournalError>) {
        match self {
            Self::Commit(_, reply) => reply.send(committed),
            Self::Claim(_, reply) => reply.send(committed),
            #[cfg(test)]
            Self::Disturb(_, reply) => reply.send(committed),
        }
    }
}

/// The state of the thread.
pub(super) struct Writer {
    path: PathBuf,
    queue: mpsc::Receiver<Request>,
    bell: watch::Sender<Cursor>,
    /// `None` after a failure: the next batch opens the file anew. What a flush that failed leaves in the memory of
    /// a connection or of the kernel may look written and not be, so no connection outlives a failure.
    open: Option<Open>,
    /// Keeps other processes out; given back last.
    _lock: File,
}

impl Writer {
    /// Opens the file, so that whoever starts the writer hears at once what is wrong with it.
    pub(super) fn open(
        path: PathBuf,
        queue: mpsc::Receiver<Request>,
        bell: watch::Sender<Cursor>,
    ) -> Result<Self, JournalError> {
        let lock = schema::prepare_files(&path)?;
        let open = Open::new(&path)?;
        bell.send_replace(open.memory.newest());
        Ok(Self { path, queue, bell, open: Some(open), _lock: lock })
    }

    /// Writes until nobody can ask any more and all that was asked is done.
    pub(super) fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        while self.queue.blocking_recv_many(&mut batch, BATCH) > 0 {
            let committed = self.commit(&mut batch);
            self.ring(&batch);
            for request in batch.drain(..) {
                request.work.answer(&committed);
            }
        }
    }

    fn commit(&mut self, batch: &mut [Request]) -> Result<(), JournalError> {
        let was_open = self.open.is_some();
        let mut open = match self.open.take() {
            Some(open) => open,
            None => Open::new(&self.path)?,
        };
        let path = &self.path;
        // A panic must not end the thread on which everybody waits. What it may have left half done is dropped.
        let transacted = catch_unwind(AssertUnwindSafe(move || {
            open.transact(batch).map_err(|fault| journal_error(path, fault))?;
            Ok(open)
        }));
        let transacted = transacted.unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
        match transacted {
            Ok(open) => {
                self.open = Some(open);
                if !was_open {
                    tracing::info!("the journal can be written again");
                }
                Ok(())
            }
            Err(error) => {
                tracing::error!("nothing of a batch was written: {error}");
                Err(error)
            }
        }
    }

    /// Rings unless there were only claims: nobody need look because somebody took something.
    fn ring(&self, batch: &[Request]) {
        let is_news = |request: &Request| matches!(request.work, Work::Commit(..));
        if let Some(open) = &self.open
            && batch.iter().any(is_news)
        {
            self.bell.send_replace(open.memory.newest());
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> JournalError {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    JournalError::Failed(format!("the writer panicked: {message}"))
}
