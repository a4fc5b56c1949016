//! Takes due deliveries, inside the writer's transaction.

use deskbell_core::{ChannelName, DeliveryId, delivery::DeliveryState};
use rusqlite::{OptionalExtension as _, params};

use super::{
    fault::Fault,
    groups::DigestForm,
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
    arrived: Option<String>,
    digest: Option<DigestForm>,
}

impl ClaimedForm {
    /// What was taken.
    ///
    /// An event that cannot be read stays in flight: trying it again would fail again, and holding the others back
    /// for it would make one damaged row stop every channel.
    pub(super) fn claimed(self) -> Claimed {
        let due = self.due.into_iter().filter_map(|form| {
            let DueForm { channel, attempt, maybe_repeated, event, previous, arrived, digest } = form;
            let receipts = || {
                let digest = digest.map(DigestForm::digest).transpose()?;
                Ok((stored::pieces_of(previous.as_deref())?, stored::pieces_of(arrived.as_deref())?, digest))
            };
            let (event, (previous, arrived, digest)) = match event.event().and_then(|e| Ok((e, receipts()?))) {
                Ok(read) => read,
                Err(unreadable) => {
                    tracing::error!(channel.name = %channel, "cannot deliver a damaged {unreadable}");
                    return None;
                }
            };
            let id = DeliveryId { event: event.id, channel };
            Some(Due { id, attempt, maybe_repeated, event, previous, arrived, digest })
        });
        Claimed { due: due.collect(), next_at: self.next_at.map(stored::timestamp) }
    }
}

/// A delivery that may be taken. They are taken in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    due_at: i64,
    seq: i64,
    from: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// It has a row, and perhaps a run.
    Row(Option<i64>),
    /// It is fresh, with this reason.
    Plan(i64),
}

impl Writes<'_> {
    pub(super) fn claim(&mut self, claim: &Claim) -> Result<ClaimedForm, Fault> {
        let now = stored::nanos(claim.now);
        let mut claimed = ClaimedForm::default();
        for (name, room) in &claim.room {
            let Some(channel) = self.memory.words.find(self.connection, name.as_str())? else {
                continue;
            };
            let later = [self.row_after(channel, now)?, self.fresh_after(channel, now)?];
            let next_at = later.into_iter().chain([claimed.next_at]).flatten().min();
            claimed.next_at = next_at;
            let mut candidates = self.rows(channel, now, *room)?;
            candidates.extend(self.fresh(channel, now, *room)?);
            candidates.sort_unstable();
            candidates.truncate(*room);
            self.pass(channel, &candidates)?;
            for candidate in candidates {
                claimed.due.push(self.take(name, channel, candidate, now)?);
            }
        }
        Ok(claimed)
    }

    /// When the next delivery of a channel is due that has a row and waits for its time.
    fn row_after(&self, channel: i64, now: i64) -> Result<Option<i64>, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT due_at FROM deliveries INDEXED BY unfinished \
             WHERE state < 2 AND state = 0 AND channel = ?1 AND due_at > ?2 ORDER BY due_at LIMIT 1",
        )?;
        Ok(statement.query_row([channel, now], |row| row.get(0)).optional()?)
    }

    /// When the next fresh delivery of a channel is due. There is one only where the clock was set back.
    fn fresh_after(&self, channel: i64, now: i64) -> Result<Option<i64>, Fault> {
        let plans = &self.memory.plans;
        if plans.latest_at <= now {
            return Ok(None);
        }
        let mut statement = self.connection.prepare_cached(
            "SELECT min(at) FROM events INDEXED BY event_plans WHERE plan = ?1 AND seq > ?2 AND at > ?3",
        )?;
        let mut next = None;
        for part in plans.with_fresh(channel) {
            let parameters = [part.plan, plans.position(channel), now];
            let found: Option<i64> = statement.query_row(parameters, |row| row.get(0))?;
            next = next.into_iter().chain(found).min();
        }
        Ok(next)
    }

    /// The first `room` due deliveries of a channel that have rows and that no earlier step of their run holds back.
    fn rows(&self, channel: i64, now: i64, room: usize) -> Result<Vec<Candidate>, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT due_at, seq, run, grp FROM deliveries INDEXED BY unfinished \
             WHERE state < 2 AND state = 0 AND channel = ?1 AND due_at <= ?2 ORDER BY due_at, seq",
        )?;
        let mut rows = statement.query([channel, now])?;
        let mut candidates = Vec::new();
        while candidates.len() < room
            && let Some(row) = rows.next()?
        {
            let (due_at, seq, run) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let group: Option<Vec<u8>> = row.get(3)?;
            // Nothing is marked while this reads, so of one run only the first unfinished step passes.
            let is_free = match (run, group) {
                (Some(run), _) => self.is_first(seq, run, channel)?,
                (None, Some(group)) => self.is_first_of_group(seq, &group, channel)?,
                (None, None) => true,
            };
            if is_free {
                candidates.push(Candidate { due_at, seq, from: Origin::Row(run) });
            }
        }
        Ok(candidates)
    }

    /// Whether all earlier steps of the run are finished on the channel.
    fn is_first(&self, seq: i64, run: i64, channel: i64) -> Result<bool, Fault> {
        let mut earlier = self.connection.prepare_cached(
            "SELECT 1 FROM deliveries INDEXED BY lines \
             WHERE run = ?1 AND channel = ?2 AND state IN (0, 1) AND seq < ?3",
        )?;
        Ok(!earlier.exists([run, channel, seq])?)
    }

    /// The first `room` due deliveries of a channel that are fresh.
    fn fresh(&self, channel: i64, now: i64, room: usize) -> Result<Vec<Candidate>, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT seq, at FROM events INDEXED BY event_plans \
             WHERE plan = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
        )?;
        let plans = &self.memory.plans;
        let position = plans.position(channel);
        let limit = i64::try_from(room).unwrap_or(i64::MAX);
        let mut found: Vec<(i64, i64, i64)> = Vec::new();
        for part in plans.with_fresh(channel) {
            let mut rows = statement.query([part.plan, position, limit])?;
            while let Some(row) = rows.next()? {
                found.push((row.get(0)?, row.get(1)?, part.reason));
            }
        }
        found.sort_unstable();
        found.truncate(room);
        // A position passes all before it, so fresh ones go strictly in order: where the clock was set back between
        // two of them, the later one counts as due with the earlier one.
        let mut latest = i64::MIN;
        let in_order = found.into_iter().map(|(seq, at, reason)| {
            latest = latest.max(at);
            Candidate { due_at: latest, seq, from: Origin::Plan(reason) }
        });
        Ok(in_order.take_while(|candidate| candidate.due_at <= now).collect())
    }

    /// Moves the position of a channel behind the fresh ones of `taken`.
    fn pass(&mut self, channel: i64, taken: &[Candidate]) -> Result<(), Fault> {
        let fresh = taken.iter().filter(|candidate| matches!(candidate.from, Origin::Plan(_)));
        match fresh.map(|candidate| candidate.seq).max() {
            Some(seq) => self.memory.plans.advance(self.connection, channel, seq),
            None => Ok(()),
        }
    }

    /// Marks a delivery as in flight.
    fn take(
        &self,
        name: &ChannelName,
        channel: i64,
        candidate: Candidate,
        now: i64,
    ) -> Result<DueForm, Fault> {
        let Candidate { seq, from, .. } = candidate;
        let select = format!(
            "SELECT {EVENT} FROM events LEFT JOIN runs ON runs.key = events.run WHERE events.seq = ?1"
        );
        let mut event = self.connection.prepare_cached(&select)?;
        let event = event.query_row([seq], |row| reader::event(row, 0))?;
        let mut due = DueForm {
            channel: name.clone(),
            attempt: 1,
            maybe_repeated: false,
            event,
            previous: None,
            arrived: None,
            digest: None,
        };
        match from {
            Origin::Plan(reason) => {
                let mut insert = self.connection.prepare_cached(
                    "INSERT INTO deliveries (seq, channel, state, due_at, reason, tries, repeated) \
                     VALUES (?1, ?2, 1, ?3, ?4, 1, 0)",
                )?;
                insert.execute([seq, channel, due.event.at, reason])?;
            }
            Origin::Row(run) => {
                // A group reckons with the time of its last message.
                let mut mark = self.connection.prepare_cached(
                    "UPDATE deliveries SET state = 1, tries = tries + 1, due_at = iif(print IS NULL, due_at, ?3) \
                     WHERE seq = ?1 AND channel = ?2 RETURNING tries, repeated, message_id, print IS NOT NULL",
                )?;
                let is_grouped: bool;
                (due.attempt, due.maybe_repeated, due.arrived, is_grouped) = mark
                    .query_row([seq, channel, now], |row| {
                        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
                    })?;
                if is_grouped {
                    due.digest = self.digest(seq, channel)?;
                }
                due.previous = match run {
                    Some(run) => self.previous(seq, run, channel)?,
                    None => None,
                };
            }
        }
        Ok(due)
    }

    /// The latest receipts of an earlier step that was sent.
    fn previous(&self, seq: i64, run: i64, channel: i64) -> Result<Option<String>, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT message_id FROM deliveries INDEXED BY receipts WHERE run = ?1 AND channel = ?2 \
             AND message_id IS NOT NULL AND state = ?4 AND seq < ?3 ORDER BY seq DESC LIMIT 1",
        )?;
        Ok(statement
            .query_row(
                params![run, channel, seq, stored::delivery_state_code(DeliveryState::Sent)],
                |row| row.get(0),
            )
            .optional()?)
    }
}
