//! What each write does to the tables, inside the writer's transaction.

use deskbell_core::{
    EventId,
    delivery::{DeliveryState, Earlier, Replaces},
};
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};
use uuid::Uuid;

use super::{
    fault::Fault,
    groups::{GroupedForm, Place},
    plans::Plans,
    reader,
    words::Words,
};
use crate::journal::{
    Ack, Cursor,
    stored::{self, StoredEvent, StoredRun},
};

/// A write in the form in which it is kept, made before it is queued so that the writer need not.
#[derive(Debug)]
pub(super) enum Form {
    Accept(Box<AcceptForm>),
    Outcome(OutcomeForm),
    Retry { event: [u8; 16], channel: String, at: i64 },
    Reschedule { channel: Option<String>, from: i64, to: i64 },
    Recover { at: i64 },
    Prune { before: i64, limit: usize },
}

#[derive(Debug)]
pub(super) struct AcceptForm {
    pub(super) event: StoredEvent,
    pub(super) key: Option<Vec<u8>>,
    /// No channel twice.
    pub(super) deliveries: Vec<PlannedForm>,
    /// The name of the plan that says the same as `deliveries`, if a plan can say it.
    pub(super) plan: Option<String>,
    /// The run after the event, and how many steps it must have before.
    pub(super) run: Option<(StoredRun, i64)>,
}

#[derive(Debug)]
pub(super) struct PlannedForm {
    pub(super) channel: String,
    pub(super) due_at: i64,
    pub(super) reason: String,
    pub(super) replaces: Replaces,
    pub(super) grouped: Option<GroupedForm>,
}

#[derive(Debug)]
pub(super) struct OutcomeForm {
    pub(super) event: [u8; 16],
    pub(super) channel: String,
    pub(super) attempt: u32,
    pub(super) state: i64,
    /// When it was known.
    pub(super) at: i64,
    /// When it is tried again, if it is.
    pub(super) due_at: Option<i64>,
    pub(super) receipts: Option<String>,
    /// The attempt as a line of the log.
    pub(super) line: String,
}

/// What the writer remembers between transactions. It is dropped with the connection, so it never outlives a rollback.
#[derive(Debug)]
pub(super) struct Memory {
    /// The number of the newest event.
    pub(super) last: i64,
    /// The hour of the newest event.
    hour: Option<i64>,
    pub(super) words: Words,
    pub(super) plans: Plans,
}

impl Memory {
    pub(super) fn read(connection: &Connection) -> Result<Self, Fault> {
        let newest =
            "SELECT max(coalesce((SELECT max(seq) FROM events), 0), (SELECT seq FROM forgotten))";
        let last = connection.query_row(newest, [], |row| row.get(0))?;
        Ok(Self { last, hour: None, words: Words::default(), plans: Plans::read(connection)? })
    }

    pub(super) const fn newest(&self) -> Cursor {
        reader::cursor(self.last)
    }
}

/// The transaction that is under way, with the statements that each event needs.
pub(super) struct Writes<'c> {
    pub(super) connection: &'c Connection,
    pub(super) memory: &'c mut Memory,
    insert_event: CachedStatement<'c>,
    insert_delivery: CachedStatement<'c>,
}

/// An id for a step of a run on a channel: the run and the channel.
type Line = (i64, i64);

impl<'c> Writes<'c> {
    pub(super) fn new(connection: &'c Connection, memory: &'c mut Memory) -> Result<Self, Fault> {
        Ok(Self {
            connection,
            memory,
            insert_event: connection.prepare_cached(
                "INSERT INTO events (seq, id, at, level, kind, context, client, run, key, plan, body) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO NOTHING",
            )?,
            insert_delivery: connection.prepare_cached(
                "INSERT INTO deliveries (seq, channel, state, due_at, reason, tries, repeated, run, grp, print, lead) \
                 VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, ?6, ?7, ?8, ?9)",
            )?,
        })
    }

    pub(super) fn write(&mut self, form: &Form) -> Result<Ack, Fault> {
        match form {
            Form::Accept(accept) => self.accept(accept),
            Form::Outcome(outcome) => self.record(outcome),
            Form::Retry { event, channel, at } => self.retry(event, channel, *at),
            Form::Reschedule { channel, from, to } => {
                self.reschedule(channel.as_deref(), *from, *to)
            }
            Form::Recover { at } => self.recover(*at),
            Form::Prune { before, limit } => self.prune(*before, *limit),
        }
    }

    fn accept(&mut self, accept: &AcceptForm) -> Result<Ack, Fault> {
        let mut run = None;
        if accept.event.run.is_some() || accept.run.is_some() {
            if let Some(first) = self.first_with(accept)? {
                return Ok(Ack::Duplicate(first));
            }
            if self.is_stale(accept)? {
                return Ok(Ack::Stale);
            }
            run = self.advance(accept)?;
        }
        let seq = self.memory.last + 1;
        let plan = self.plan_of(accept)?;
        if !self.insert(seq, accept, run, plan)? {
            let first = self.first_with(accept)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
            return Ok(Ack::Duplicate(first));
        }
        self.memory.last = seq;
        self.mark_hour(accept.event.at)?;
        match plan {
            Some(plan) => self.memory.plans.note(plan, seq, accept.event.at),
            None => {
                for planned in &accept.deliveries {
                    self.plan(seq, run, planned, accept.event.at)?;
                }
            }
        }
        Ok(Ack::Accepted(self.memory.newest()))
    }

    /// The number of the plan that says where the event goes, unless each delivery needs a row.
    fn plan_of(&mut self, accept: &AcceptForm) -> Result<Option<i64>, Fault> {
        let Some(name) = &accept.plan else { return Ok(None) };
        let Memory { words, plans, .. } = &mut *self.memory;
        plans.id(self.connection, words, name, &accept.deliveries)
    }

    /// Inserts the event, unless its id or key is there already.
    fn insert(
        &mut self,
        seq: i64,
        accept: &AcceptForm,
        run: Option<i64>,
        plan: Option<i64>,
    ) -> Result<bool, Fault> {
        let StoredEvent { id, at, level, kind, context, client, run: _, body } = &accept.event;
        let key = &accept.key;
        let row = params![seq, id, at, level, kind, context, client, run, key, plan, body];
        Ok(self.insert_event.execute(row)? == 1)
    }

    /// The event that has the key, else the one that has the id.
    fn first_with(&self, accept: &AcceptForm) -> Result<Option<EventId>, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT id FROM events WHERE key = ?1 UNION ALL SELECT id FROM events WHERE id = ?2 LIMIT 1",
        )?;
        let found = statement.query_row(params![accept.key, accept.event.id], |row| row.get(0));
        Ok(found.optional()?.map(|id| EventId::from_uuid(Uuid::from_bytes(id))))
    }

    fn is_stale(&self, accept: &AcceptForm) -> Result<bool, Fault> {
        let Some((run, after_steps)) = &accept.run else {
            return Ok(false);
        };
        let mut statement =
            self.connection.prepare_cached("SELECT steps FROM runs WHERE id = ?1")?;
        let steps: Option<i64> = statement.query_row([&run.id], |row| row.get(0)).optional()?;
        Ok(steps.unwrap_or(0) != *after_steps)
    }

    /// Changes the run, and gives the number of the one that the event is a step of.
    fn advance(&self, accept: &AcceptForm) -> Result<Option<i64>, Fault> {
        if let Some((StoredRun { id, state, steps, body }, _)) = &accept.run {
            let mut statement = self.connection.prepare_cached(
                "INSERT INTO runs (id, latest, state, steps, body) VALUES (?1, ?2, ?3, ?4, ?5) \
                 ON CONFLICT (id) DO UPDATE SET latest = ?2, state = ?3, steps = ?4, body = ?5",
            )?;
            statement.execute(params![id, self.memory.last + 1, state, steps, body])?;
        }
        let Some(id) = &accept.event.run else {
            return Ok(None);
        };
        let mut known = self.connection.prepare_cached("SELECT key FROM runs WHERE id = ?1")?;
        if let Some(run) = known.query_row([id], |row| row.get(0)).optional()? {
            return Ok(Some(run));
        }
        let mut insert =
            self.connection.prepare_cached("INSERT INTO runs (id, steps) VALUES (?1, 0)")?;
        Ok(Some(insert.insert([id])?))
    }

    fn mark_hour(&mut self, at: i64) -> Result<(), Fault> {
        let hour = reader::hour(at);
        if self.memory.hour != Some(hour) {
            let insert = "INSERT INTO hours (hour, seq) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            self.connection.prepare_cached(insert)?.execute([hour, self.memory.last])?;
            self.memory.hour = Some(hour);
        }
        Ok(())
    }

    fn plan(
        &mut self,
        seq: i64,
        run: Option<i64>,
        planned: &PlannedForm,
        at: i64,
    ) -> Result<(), Fault> {
        let channel = self.memory.words.id(self.connection, &planned.channel)?;
        let reason = self.memory.words.id(self.connection, &planned.reason)?;
        let place = match (run, &planned.grouped) {
            (Some(run), _) => Place::due(self.take_place((run, channel), planned)?),
            (None, Some(grouped)) => self.take_turn(seq, channel, grouped, at, planned.due_at)?,
            (None, None) => Place::due(planned.due_at),
        };
        let Place { state, due_at, lead } = place;
        let grouped = planned.grouped.as_ref().filter(|_| run.is_none());
        let (group, print) = (grouped.map(|it| it.group), grouped.map(|it| it.print));
        self.insert_delivery
            .execute(params![seq, channel, state, due_at, reason, run, group, print, lead])?;
        Ok(())
    }

    /// Supersedes what `planned` replaces on its line, and says when it is due.
    fn take_place(&self, line: Line, planned: &PlannedForm) -> Result<i64, Fault> {
        if planned.replaces == Replaces::Nothing {
            return Ok(planned.due_at);
        }
        let place =
            planned.replaces.place(stored::timestamp(planned.due_at), self.earlier_in(line)?);
        let mut supersede = self
            .connection
            .prepare_cached("UPDATE deliveries SET state = ?3 WHERE seq = ?1 AND channel = ?2")?;
        let state = stored::delivery_state_code(DeliveryState::Superseded);
        for seq in place.superseded {
            supersede.execute([seq, line.1, state])?;
        }
        let due_at = stored::nanos(place.due_at);
        let mut hurry = self
            .connection
            .prepare_cached("UPDATE deliveries SET due_at = ?3 WHERE seq = ?1 AND channel = ?2")?;
        for seq in place.hurried {
            hurry.execute([seq, line.1, due_at])?;
        }
        Ok(due_at)
    }

    /// The deliveries of a line in the order of their steps: the unfinished ones, which are few, and of the finished
    /// ones the last that was sent and the last that was given up.
    fn earlier_in(&self, line: Line) -> Result<Vec<Earlier<i64>>, Fault> {
        const ALL: i64 = -1;
        let mut statement = self.connection.prepare_cached(
            "SELECT seq, (SELECT kind FROM events WHERE events.seq = deliveries.seq), tries, due_at \
             FROM deliveries INDEXED BY lines \
             WHERE run = ?1 AND channel = ?2 AND state = ?3 ORDER BY seq DESC LIMIT ?4",
        )?;
        let mut earlier = Vec::new();
        for (state, limit) in [
            (DeliveryState::Pending, ALL),
            (DeliveryState::InFlight, ALL),
            (DeliveryState::Sent, 1),
            (DeliveryState::GivenUp, 1),
        ] {
            let code = stored::delivery_state_code(state);
            let mut rows = statement.query([line.0, line.1, code, limit])?;
            while let Some(row) = rows.next()? {
                earlier.push(Earlier {
                    key: row.get(0)?,
                    phase: stored::phase(row.get(1)?)?,
                    state,
                    attempts: row.get(2)?,
                    due_at: stored::timestamp(row.get(3)?),
                });
            }
        }
        earlier.sort_unstable_by_key(|delivery| delivery.key);
        Ok(earlier)
    }

    fn record(&mut self, outcome: &OutcomeForm) -> Result<Ack, Fault> {
        let Some(channel) = self.memory.words.find(self.connection, &outcome.channel)? else {
            return Ok(Ack::Stale);
        };
        let mut in_flight = self.connection.prepare_cached(
            "SELECT events.seq, attempts, print IS NOT NULL FROM events CROSS JOIN deliveries ON deliveries.seq = events.seq \
             WHERE id = ?1 AND channel = ?2 AND state = 1 AND tries = ?3",
        )?;
        let found = in_flight
            .query_row(params![outcome.event, channel, outcome.attempt], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        let Some((seq, log, is_grouped)): Option<(i64, Option<String>, bool)> = found else {
            return Ok(Ack::Stale);
        };
        let log = stored::log_attempt(log, &outcome.line);
        let mut update = self.connection.prepare_cached(
            "UPDATE deliveries SET state = ?3, due_at = coalesce(?4, due_at), attempts = ?5, message_id = ?6 \
             WHERE seq = ?1 AND channel = ?2",
        )?;
        let OutcomeForm { state, at, due_at, receipts, .. } = outcome;
        update.execute(params![seq, channel, state, due_at, log, receipts])?;
        if is_grouped && due_at.is_none() {
            self.settle_joined(channel, seq)?;
            if *state == stored::delivery_state_code(DeliveryState::GivenUp) {
                self.tell_repeats(channel, seq, *at)?;
            }
        }
        Ok(Ack::Done(1))
    }

    fn retry(&mut self, event: &[u8; 16], channel: &str, at: i64) -> Result<Ack, Fault> {
        let Some(channel) = self.memory.words.find(self.connection, channel)? else {
            return Ok(Ack::Done(0));
        };
        let mut find = self.connection.prepare_cached("SELECT seq FROM events WHERE id = ?1")?;
        let Some(seq) = find.query_row([event], |row| row.get(0)).optional()? else {
            return Ok(Ack::Done(0));
        };
        // What was told together is tried again together: a part of it has perhaps arrived.
        let seq = self.told_with(channel, seq)?.unwrap_or(seq);
        let mut given_up = self.connection.prepare_cached(
            "SELECT tries, attempts FROM deliveries WHERE seq = ?1 AND channel = ?2 AND state = 3",
        )?;
        let found = given_up.query_row([seq, channel], |row| Ok((row.get(0)?, row.get(1)?)));
        let Some((tries, log)): Option<(u32, Option<String>)> = found.optional()? else {
            return Ok(Ack::Done(0));
        };
        let before = stored::log_of(log.as_deref().unwrap_or_default())?.before();
        let line = stored::retry_line(before.saturating_add(tries), at);
        let log = stored::log_attempt(log, &line);
        let mut retry = self.connection.prepare_cached(
            "UPDATE deliveries SET state = 0, due_at = ?3, tries = 0, attempts = ?4 WHERE seq = ?1 AND channel = ?2",
        )?;
        retry.execute(params![seq, channel, at, log])?;
        self.reopen_joined(channel, seq)?;
        Ok(Ack::Done(1))
    }

    fn reschedule(&mut self, channel: Option<&str>, from: i64, to: i64) -> Result<Ack, Fault> {
        let Some(name) = channel else {
            let mut statement = self.connection.prepare_cached(
                "UPDATE deliveries INDEXED BY unfinished SET due_at = ?2 \
                 WHERE state < 2 AND state = 0 AND due_at = ?1 AND tries = 0",
            )?;
            return Ok(done(statement.execute([from, to])?));
        };
        let Some(channel) = self.memory.words.find(self.connection, name)? else {
            return Ok(Ack::Done(0));
        };
        let mut statement = self.connection.prepare_cached(
            "UPDATE deliveries INDEXED BY unfinished SET due_at = ?3 \
             WHERE state < 2 AND state = 0 AND channel = ?1 AND due_at = ?2 AND tries = 0",
        )?;
        Ok(done(statement.execute([channel, from, to])?))
    }

    fn recover(&self, at: i64) -> Result<Ack, Fault> {
        let mut statement = self.connection.prepare_cached(
            "UPDATE deliveries INDEXED BY unfinished SET state = 0, due_at = ?1, repeated = 1 \
             WHERE state < 2 AND state = 1",
        )?;
        Ok(done(statement.execute([at])?))
    }

    fn prune(&self, before: i64, limit: usize) -> Result<Ack, Fault> {
        let idle = self.idle_before(before, limit)?;
        for seq in &idle {
            self.forget(*seq)?;
        }
        if let Some(last) = idle.last() {
            let remember = "UPDATE forgotten SET seq = max(seq, ?1)";
            self.connection.prepare_cached(remember)?.execute([last])?;
        }
        Ok(done(idle.len()))
    }

    /// The oldest events before `before` for which nothing is still to be done.
    fn idle_before(&self, before: i64, limit: usize) -> Result<Vec<i64>, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT seq, at, \
             EXISTS (SELECT 1 FROM deliveries WHERE deliveries.seq = events.seq AND (state < 2 OR state = 5)) \
             OR EXISTS (SELECT 1 FROM deliveries AS repeats JOIN deliveries AS told \
                 ON told.seq = repeats.lead AND told.channel = repeats.channel \
                 WHERE repeats.seq = events.seq AND repeats.state = 4 AND (told.state < 2 OR told.state = 5)) \
             OR EXISTS (SELECT 1 FROM plans LEFT JOIN positions USING (channel) \
                 WHERE plans.plan = events.plan AND events.seq > coalesce(positions.seq, 0)) \
             OR EXISTS (SELECT 1 FROM runs WHERE runs.key = events.run AND state = ?1) \
             FROM events ORDER BY seq",
        )?;
        let mut rows = statement.query([stored::OPEN])?;
        let mut idle = Vec::new();
        while idle.len() < limit
            && let Some(row) = rows.next()?
        {
            if row.get::<_, i64>(1)? >= before {
                break;
            }
            if !row.get::<_, bool>(2)? {
                idle.push(row.get(0)?);
            }
        }
        Ok(idle)
    }

    fn forget(&self, seq: i64) -> Result<(), Fault> {
        let cached = |sql| self.connection.prepare_cached(sql);
        cached("DELETE FROM deliveries WHERE seq = ?1")?.execute([seq])?;
        let run: Option<i64> = cached("DELETE FROM events WHERE seq = ?1 RETURNING run")?
            .query_row([seq], |row| row.get(0))?;
        if let Some(run) = run {
            cached(
                "DELETE FROM runs WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM events WHERE run = ?1)",
            )?
            .execute([run])?;
        }
        Ok(())
    }
}

fn done(rows: usize) -> Ack {
    Ack::Done(rows as u64)
}
