//! Takes due deliveries, inside the writer's transaction.

use deskbell_core::{ChannelName, DeliveryId, delivery::Receipt};
use rusqlite::{OptionalExtension as _, params};

use super::{
    fault::Fault,
    reader::{self, EVENT},
    writes::Writes,
};
use crate::journal::{
    Claim, Claimed, Due,
    stored::{self, StoredEvent},
};

/// What was taken, in the form in which it is kept, so that the writer need not decode it.
#[derive(Debug, Default)]
pub(super) struct ClaimedForm {
    due: Vec<DueForm>,
    next_at: Option<i64>,
}

#[derive(Debug)]
struct DueForm {
    channel: ChannelName,
    attempt: u32,
    maybe_repeated: bool,
    event: StoredEvent,
    previous: Option<String>,
}

impl ClaimedForm {
    /// What was taken.
    ///
    /// An event that cannot be read stays in flight: trying it again would fail again, and holding the others back
    /// for it would make one damaged row stop every channel.
    pub(super) fn claimed(self) -> Claimed {
        let due = self.due.into_iter().filter_map(|form| {
            let DueForm { channel, attempt, maybe_repeated, event, previous } = form;
            let event = match event.event() {
                Ok(event) => event,
                Err(unreadable) => {
                    tracing::error!(channel.name = %channel, "cannot deliver a damaged {unreadable}");
                    return None;
                }
            };
            let id = DeliveryId { event: event.id, channel };
            let previous = previous.map(|id| Receipt { message_id: Some(id) });
            Some(Due { id, attempt, maybe_repeated, event, previous })
        });
        Claimed { due: due.collect(), next_at: self.next_at.map(stored::timestamp) }
    }
}

impl Writes<'_> {
    pub(super) fn claim(&mut self, claim: &Claim) -> Result<ClaimedForm, Fault> {
        let now = stored::nanos(claim.now);
        let mut claimed = ClaimedForm::default();
        for (name, room) in &claim.room {
            let Some(channel) = self.memory.words.find(self.connection, name.as_str())? else {
                continue;
            };
            let next_at = self.next_after(channel, now)?;
            claimed.next_at = claimed.next_at.into_iter().chain(next_at).min();
            for (seq, run) in self.claimable(channel, now, *room)? {
                claimed.due.push(self.take(name, channel, seq, run)?);
            }
        }
        Ok(claimed)
    }

    fn next_after(&self, channel: i64, now: i64) -> Result<Option<i64>, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT due_at FROM deliveries INDEXED BY unfinished \
             WHERE state < 2 AND state = 0 AND channel = ?1 AND due_at > ?2 ORDER BY due_at LIMIT 1",
        )?;
        Ok(statement.query_row([channel, now], |row| row.get(0)).optional()?)
    }

    /// The first `room` due deliveries of a channel that no earlier step of their run holds back.
    fn claimable(
        &self,
        channel: i64,
        now: i64,
        room: usize,
    ) -> Result<Vec<(i64, Option<i64>)>, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT seq, run FROM deliveries INDEXED BY unfinished \
             WHERE state < 2 AND state = 0 AND channel = ?1 AND due_at <= ?2 ORDER BY due_at, seq",
        )?;
        let mut rows = statement.query([channel, now])?;
        let mut claimable = Vec::new();
        while claimable.len() < room
            && let Some(row) = rows.next()?
        {
            let (seq, run) = (row.get(0)?, row.get(1)?);
            // Nothing is marked while this reads, so of one run only the first unfinished step passes.
            let is_free = match run {
                Some(run) => self.is_first(seq, run, channel)?,
                None => true,
            };
            if is_free {
                claimable.push((seq, run));
            }
        }
        Ok(claimable)
    }

    /// Whether all earlier steps of the run are finished on the channel.
    fn is_first(&self, seq: i64, run: i64, channel: i64) -> Result<bool, Fault> {
        let mut earlier = self.connection.prepare_cached(
            "SELECT 1 FROM deliveries INDEXED BY lines \
             WHERE run = ?1 AND channel = ?2 AND state IN (0, 1) AND seq < ?3",
        )?;
        Ok(!earlier.exists([run, channel, seq])?)
    }

    fn take(
        &self,
        name: &ChannelName,
        channel: i64,
        seq: i64,
        run: Option<i64>,
    ) -> Result<DueForm, Fault> {
        let mut mark = self.connection.prepare_cached(
            "UPDATE deliveries SET state = 1, tries = tries + 1 WHERE seq = ?1 AND channel = ?2 \
             RETURNING tries, repeated",
        )?;
        let (attempt, maybe_repeated) =
            mark.query_row([seq, channel], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let select = format!(
            "SELECT {EVENT} FROM events LEFT JOIN runs ON runs.key = events.run WHERE events.seq = ?1"
        );
        let mut event = self.connection.prepare_cached(&select)?;
        let event = event.query_row([seq], |row| reader::event(row, 0))?;
        let previous = match run {
            Some(run) => self.previous(seq, run, channel)?,
            None => None,
        };
        Ok(DueForm { channel: name.clone(), attempt, maybe_repeated, event, previous })
    }

    /// The message id of the latest receipt of an earlier step.
    fn previous(&self, seq: i64, run: i64, channel: i64) -> Result<Option<String>, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT message_id FROM deliveries INDEXED BY receipts WHERE run = ?1 AND channel = ?2 \
             AND message_id IS NOT NULL AND seq < ?3 ORDER BY seq DESC LIMIT 1",
        )?;
        Ok(statement.query_row(params![run, channel, seq], |row| row.get(0)).optional()?)
    }
}
