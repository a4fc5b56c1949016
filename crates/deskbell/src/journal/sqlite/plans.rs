//! Where events go as a whole, and how far each channel is.
//!
//! Nearly every delivery is due from the start and goes where the same routes send thousands of others. Such an event
//! has one number for its whole plan instead of a row for each delivery, and each channel a position before which all
//! of its deliveries have rows. That makes accepting an event cost the same whatever the number of its channels; a
//! delivery gets its row when it is taken.

use std::collections::HashMap;

use rusqlite::Connection;

use super::{fault::Fault, words::Words, writes::PlannedForm};
use crate::journal::stored::{StoredEvent, Unreadable};

/// How many plans there are at most. Configured routes make few; an event beyond them has a row for each delivery.
const PLANS: usize = 256;

/// The name of the plan that says where `event` goes: the same for the same channels and reasons.
///
/// There is none for steps of runs, which wait for each other, and for deliveries that are due at another time or
/// belong to a group.
pub(super) fn name(
    event: &StoredEvent,
    deliveries: &[PlannedForm],
) -> Result<Option<String>, Unreadable> {
    let is_plain = |it: &PlannedForm| it.due_at == event.at && it.grouped.is_none();
    let from_the_start = deliveries.iter().all(is_plain);
    if event.run.is_some() || deliveries.is_empty() || !from_the_start {
        return Ok(None);
    }
    let targets: Vec<_> = deliveries.iter().map(|it| (&it.channel, &it.reason)).collect();
    let name = serde_json::to_string(&targets);
    name.map(Some).map_err(|error| Unreadable::new("plan", error))
}

/// The plans and positions, as the writer remembers them.
#[derive(Debug, Default)]
pub(super) struct Plans {
    ids: HashMap<String, i64>,
    of_channel: HashMap<i64, Vec<Part>>,
    /// The newest event of each plan.
    latest: HashMap<i64, i64>,
    /// The latest time at which a planned event is due.
    pub(super) latest_at: i64,
    positions: HashMap<i64, i64>,
}

/// The part of a plan that concerns one channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) plan: i64,
    pub(super) reason: i64,
}

impl Plans {
    pub(super) fn read(connection: &Connection) -> Result<Self, Fault> {
        let mut plans = Self { latest_at: i64::MIN, ..Self::default() };
        let mut statement = connection.prepare(
            "SELECT plan, word, channel, reason, (SELECT max(seq) FROM events WHERE events.plan = plans.plan) \
             FROM plans CROSS JOIN words ON words.id = plan ORDER BY plan",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (plan, reason) = (row.get(0)?, row.get(3)?);
            plans.ids.insert(row.get(1)?, plan);
            plans.of_channel.entry(row.get(2)?).or_default().push(Part { plan, reason });
            plans.latest.insert(plan, row.get::<_, Option<i64>>(4)?.unwrap_or(0));
        }
        let mut statement = connection.prepare("SELECT channel, seq FROM positions")?;
        let positions = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        plans.positions = positions.collect::<Result<_, _>>()?;
        let mut statement =
            connection.prepare("SELECT at FROM events ORDER BY seq DESC LIMIT 1")?;
        for at in statement.query_map([], |row| row.get(0))? {
            plans.latest_at = at?;
        }
        Ok(plans)
    }

    /// The number of the plan called `name`, which is made if there is room for another.
    pub(super) fn id(
        &mut self,
        connection: &Connection,
        words: &mut Words,
        name: &str,
        deliveries: &[PlannedForm],
    ) -> Result<Option<i64>, Fault> {
        if let Some(plan) = self.ids.get(name) {
            return Ok(Some(*plan));
        }
        if self.ids.len() >= PLANS {
            return Ok(None);
        }
        let plan = words.id(connection, name)?;
        let mut insert = connection.prepare_cached("INSERT INTO plans VALUES (?1, ?2, ?3)")?;
        for planned in deliveries {
            let channel = words.id(connection, &planned.channel)?;
            let reason = words.id(connection, &planned.reason)?;
            insert.execute([plan, channel, reason])?;
            self.of_channel.entry(channel).or_default().push(Part { plan, reason });
        }
        self.ids.insert(name.to_owned(), plan);
        Ok(Some(plan))
    }

    /// Remembers that an event with this plan was accepted.
    pub(super) fn note(&mut self, plan: i64, seq: i64, at: i64) {
        self.latest.insert(plan, seq);
        self.latest_at = self.latest_at.max(at);
    }

    /// The parts of plans that may have something fresh for `channel`.
    pub(super) fn with_fresh(&self, channel: i64) -> impl Iterator<Item = Part> {
        let position = self.position(channel);
        let parts = self.of_channel.get(&channel).into_iter().flatten().copied();
        parts.filter(move |part| self.latest.get(&part.plan).is_some_and(|seq| *seq > position))
    }

    /// The event up to which every delivery to `channel` has a row.
    pub(super) fn position(&self, channel: i64) -> i64 {
        self.positions.get(&channel).copied().unwrap_or(0)
    }

    /// Moves the position of `channel` forward.
    pub(super) fn advance(
        &mut self,
        connection: &Connection,
        channel: i64,
        seq: i64,
    ) -> Result<(), Fault> {
        let mut upsert = connection.prepare_cached(
            "INSERT INTO positions VALUES (?1, ?2) ON CONFLICT (channel) DO UPDATE SET seq = ?2",
        )?;
        upsert.execute([channel, seq])?;
        self.positions.insert(channel, seq);
        Ok(())
    }
}
