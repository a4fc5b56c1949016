//! Deliveries that are told together, and repeats, inside the writer's transaction.

use deskbell_core::{
    delivery::DeliveryState,
    group::{self, DIGEST_TEXTS, Digest, Grouped, Telling, Turn},
};
use rusqlite::{OptionalExtension as _, params};

use super::{
    fault::Fault,
    reader::{self, EVENT},
    writes::Writes,
};
use crate::journal::stored::{self, PRINT_BYTES, StoredEvent, Unreadable};

/// A delivery's group in the form in which it is kept.
#[derive(Debug)]
pub(super) struct GroupedForm {
    pub(super) group: [u8; PRINT_BYTES],
    pub(super) print: [u8; PRINT_BYTES],
    pub(super) grouped: Grouped,
}

/// What a new delivery's row says of where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) state: i64,
    pub(super) due_at: i64,
    pub(super) lead: Option<i64>,
}

impl Place {
    /// That of a delivery that is told by itself.
    pub(super) const fn due(due_at: i64) -> Self {
        Self { state: 0, due_at, lead: None }
    }
}

/// A digest in the form in which it is kept, so that the writer need not decode it.
#[derive(Debug)]
pub(super) struct DigestForm {
    count: i64,
    different: i64,
    first_at: i64,
    last_at: i64,
    level: i64,
    texts: Vec<(i64, StoredEvent)>,
}

impl DigestForm {
    pub(super) fn digest(self) -> Result<Digest, Unreadable> {
        let Self { count, different, first_at, last_at, level, texts } = self;
        let text = |(count, event): (i64, StoredEvent)| Ok((count.cast_unsigned(), event.event()?));
        Ok(Digest {
            count: count.cast_unsigned(),
            different: different.cast_unsigned(),
            first_at: stored::timestamp(first_at),
            last_at: stored::timestamp(last_at),
            level: stored::level(level)
                .ok_or_else(|| Unreadable::new("digest", format!("level {level}")))?,
            texts: texts.into_iter().map(text).collect::<Result<_, Unreadable>>()?,
        })
    }
}

impl Writes<'_> {
    /// Finds the place of the delivery of event number `seq` in its group.
    pub(super) fn take_turn(
        &self,
        seq: i64,
        channel: i64,
        form: &GroupedForm,
        at: i64,
        due_at: i64,
    ) -> Result<Place, Fault> {
        let tellings = self.tellings(seq, channel, form)?;
        let same = match form.grouped.repeat {
            Some(_) => self.same(seq, channel, form)?,
            None => None,
        };
        let (reported, due) = (stored::timestamp(at), stored::timestamp(due_at));
        Ok(match form.grouped.turn(reported, due, &tellings, same) {
            Turn::Leads(due_at) => Place::due(stored::nanos(due_at)),
            Turn::Joins(lead, due_at) => {
                let due_at = stored::nanos(due_at);
                let mut hurry = self.connection.prepare_cached(
                    "UPDATE deliveries SET due_at = ?3 WHERE seq = ?1 AND channel = ?2 AND due_at > ?3",
                )?;
                hurry.execute([lead, channel, due_at])?;
                Place { state: stored::JOINED, due_at, lead: Some(lead) }
            }
            Turn::Repeats(lead) => {
                let state = stored::delivery_state_code(DeliveryState::Superseded);
                Place { state, due_at, lead: Some(lead) }
            }
        })
    }

    /// The last message of the group in each state.
    fn tellings(
        &self,
        seq: i64,
        channel: i64,
        form: &GroupedForm,
    ) -> Result<Vec<Telling<i64>>, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT seq, tries > 0 OR attempts IS NOT NULL, due_at FROM deliveries INDEXED BY heads \
             WHERE channel = ?1 AND grp = ?2 AND lead IS NULL AND state = ?3 ORDER BY seq DESC LIMIT 1",
        )?;
        let mut tellings = Vec::new();
        for state in Telling::<i64>::STATES {
            let code = stored::delivery_state_code(state);
            let found = statement.query_row(params![channel, form.group, code], |row| {
                let key: i64 = row.get(0)?;
                Ok(Telling {
                    key,
                    state,
                    was_tried: row.get(1)?,
                    due_at: stored::timestamp(row.get(2)?),
                    events_since: seq.abs_diff(key),
                })
            });
            tellings.extend(found.optional()?);
        }
        Ok(tellings)
    }

    /// The newest delivery that says the same and is no repeat, with where its message stands.
    fn same(
        &self,
        seq: i64,
        channel: i64,
        form: &GroupedForm,
    ) -> Result<Option<Telling<i64>>, Fault> {
        let mut newest = self.connection.prepare_cached(
            "SELECT seq, lead FROM deliveries INDEXED BY prints \
             WHERE channel = ?1 AND grp = ?2 AND print = ?3 AND state <> 4 ORDER BY seq DESC LIMIT 1",
        )?;
        let found = newest.query_row(params![channel, form.group, form.print], |row| {
            Ok((row.get(0)?, row.get(1)?))
        });
        let Some((key, lead)): Option<(i64, Option<i64>)> = found.optional()? else {
            return Ok(None);
        };
        let mut telling = self.connection.prepare_cached(
            "SELECT state, tries > 0 OR attempts IS NOT NULL, due_at FROM deliveries \
             WHERE seq IN (?1, ?2) AND channel = ?3 ORDER BY seq = ?2 DESC LIMIT 1",
        )?;
        let (state, was_tried, due_at) = telling.query_row(params![key, lead, channel], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
        let (state, due_at) = (stored::delivery_state(state)?, stored::timestamp(due_at));
        Ok(Some(Telling { key, state, was_tried, due_at, events_since: seq.abs_diff(key) }))
    }

    /// Whether no earlier message of the group is under way to the channel.
    pub(super) fn is_first_of_group(
        &self,
        seq: i64,
        group: &[u8],
        channel: i64,
    ) -> Result<bool, Fault> {
        let mut earlier = self.connection.prepare_cached(
            "SELECT 1 FROM deliveries INDEXED BY heads \
             WHERE channel = ?1 AND grp = ?2 AND lead IS NULL AND state = 1 AND seq < ?3",
        )?;
        Ok(!earlier.exists(params![channel, group, seq])?)
    }

    /// What is told together with a delivery, if there is more than it.
    pub(super) fn digest(&self, seq: i64, channel: i64) -> Result<Option<DigestForm>, Fault> {
        const MEMBERS: &str = "(SELECT seq, print FROM deliveries WHERE seq = ?1 AND channel = ?2 \
            UNION ALL SELECT seq, print FROM deliveries INDEXED BY leads \
            WHERE channel = ?2 AND lead = ?1 AND state <> 4) AS members";
        let total = format!(
            "SELECT count(*), count(DISTINCT print), min(at), max(at), max(level) \
             FROM {MEMBERS} CROSS JOIN events ON events.seq = members.seq"
        );
        let mut digest =
            self.connection.prepare_cached(&total)?.query_row([seq, channel], |row| {
                Ok(DigestForm {
                    count: row.get(0)?,
                    different: row.get(1)?,
                    first_at: row.get(2)?,
                    last_at: row.get(3)?,
                    level: row.get(4)?,
                    texts: Vec::new(),
                })
            })?;
        if digest.count < 2 {
            return Ok(None);
        }
        let texts = format!(
            "SELECT said, {EVENT} FROM (SELECT count(*) AS said, max(seq) AS newest FROM {MEMBERS} \
                 GROUP BY print ORDER BY newest DESC LIMIT ?3) \
             CROSS JOIN events ON events.seq = newest \
             LEFT JOIN runs ON runs.key = events.run ORDER BY newest"
        );
        let mut texts = self.connection.prepare_cached(&texts)?;
        let limit = i64::try_from(DIGEST_TEXTS).unwrap_or(i64::MAX);
        let mut rows = texts.query([seq, channel, limit])?;
        while let Some(row) = rows.next()? {
            digest.texts.push((row.get(0)?, reader::event(row, 1)?));
        }
        Ok(Some(digest))
    }

    /// Lets what was told together with a delivery end as it did.
    pub(super) fn settle_joined(&self, channel: i64, seq: i64) -> Result<(), Fault> {
        let mut settle = self.connection.prepare_cached(
            "UPDATE deliveries INDEXED BY leads SET (state, due_at, repeated) = \
                 (SELECT state, due_at, repeated FROM deliveries AS told WHERE told.seq = ?2 AND told.channel = ?1) \
             WHERE channel = ?1 AND lead = ?2 AND state = 5",
        )?;
        settle.execute([channel, seq])?;
        Ok(())
    }

    /// Tells, in one message of their own, the repeats of what was told with a delivery that was given up at `at`.
    pub(super) fn tell_repeats(&self, channel: i64, seq: i64, at: i64) -> Result<(), Fault> {
        const REPEATS: &str = "channel = ?1 AND state = 4 AND lead IN (SELECT ?2 UNION ALL \
            SELECT seq FROM deliveries INDEXED BY leads WHERE channel = ?1 AND lead = ?2 AND state <> 4)";
        let first = format!(
            "SELECT min(seq), min(due_at) FROM deliveries INDEXED BY leads WHERE {REPEATS}"
        );
        let found = self.connection.prepare_cached(&first)?.query_row([channel, seq], |row| {
            Ok(row.get::<_, Option<i64>>(0)?.zip(row.get::<_, Option<i64>>(1)?))
        })?;
        let Some((first, due_at)) = found else { return Ok(()) };
        let due_at = group::told_after_all(stored::timestamp(at), stored::timestamp(due_at));
        let tell = format!(
            "UPDATE deliveries INDEXED BY leads SET state = iif(seq = ?3, 0, {joined}), \
                 lead = iif(seq = ?3, NULL, ?3), due_at = ?4 WHERE {REPEATS}",
            joined = stored::JOINED
        );
        let row = [channel, seq, first, stored::nanos(due_at)];
        self.connection.prepare_cached(&tell)?.execute(row)?;
        Ok(())
    }

    /// The event whose delivery tells that of event number `seq` too.
    pub(super) fn told_with(&self, channel: i64, seq: i64) -> Result<Option<i64>, Fault> {
        let mut lead = self.connection.prepare_cached(
            "SELECT lead FROM deliveries WHERE seq = ?1 AND channel = ?2 AND state <> 4",
        )?;
        Ok(lead.query_row([seq, channel], |row| row.get(0)).optional()?.flatten())
    }

    /// Lets what was given up together with a delivery wait for its next attempt.
    pub(super) fn reopen_joined(&self, channel: i64, seq: i64) -> Result<(), Fault> {
        let mut reopen = self.connection.prepare_cached(
            "UPDATE deliveries INDEXED BY leads SET state = 5 WHERE channel = ?1 AND lead = ?2 AND state = 3",
        )?;
        reopen.execute([channel, seq])?;
        Ok(())
    }
}
