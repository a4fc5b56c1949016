//! Reads what is committed, on connections that cannot write.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use deskbell_core::{DeliveryId, EventId, Run, delivery::DeliveryState, level::LevelRange};
use rusqlite::{Connection, Row, ToSql, params_from_iter};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::{
    fault::{Fault, journal_error},
    schema,
};
use crate::journal::{
    Cursor, Delivery, DeliveryQuery, Entry, EventQuery, JournalError, RunQuery,
    stored::{self, StoredEvent, StoredRun},
};

/// How many reads run at a time; further ones wait.
const READERS: usize = 4;

/// The connections that read.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Arc<Self> {
        let permits = Semaphore::new(READERS);
        Arc::new(Self { path, idle: Mutex::default(), permits })
    }

    /// Asks on a connection of its own. A connection that failed is not used again.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        ask: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, JournalError> {
        let _permit = self.permits.acquire().await.map_err(|_| closed())?;
        let readers = Arc::clone(self);
        let answer = tokio::task::spawn_blocking(move || {
            let idle = readers.idle().pop();
            let connection = idle.map_or_else(|| schema::open_reader(&readers.path), Ok)?;
            let answer = ask(&connection).map_err(|fault| journal_error(&readers.path, fault))?;
            readers.idle().push(connection);
            Ok(answer)
        });
        answer.await.map_err(|error| JournalError::Failed(format!("a read failed: {error}")))?
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed() -> JournalError {
    JournalError::Failed("it is closed".to_owned())
}

/// A query that is put together clause by clause.
struct Clauses {
    sql: String,
    parameters: Vec<Box<dyn ToSql>>,
    joint: &'static str,
}

impl Clauses {
    fn new(select: &str) -> Self {
        Self { sql: select.to_owned(), parameters: Vec::new(), joint: " WHERE " }
    }

    /// Adds a clause in which `?` stands for `value`.
    fn and(&mut self, clause: &str, value: impl ToSql + 'static) {
        self.and_plain(clause);
        self.parameters.push(Box::new(value));
    }

    fn and_plain(&mut self, clause: &str) {
        self.sql.push_str(self.joint);
        self.sql.push_str(clause);
        self.joint = " AND ";
    }

    /// Adds an optional clause.
    fn and_if(&mut self, clause: &str, value: Option<impl ToSql + 'static>) {
        if let Some(value) = value {
            self.and(clause, value);
        }
    }

    /// Reads at most `limit` rows in the given order.
    fn read<T>(
        mut self,
        connection: &Connection,
        order: &str,
        limit: usize,
        mut each: impl FnMut(&Row<'_>) -> Result<Option<T>, Fault>,
    ) -> Result<Vec<T>, Fault> {
        self.sql.push_str(order);
        self.sql.push_str(" LIMIT ?");
        self.parameters.push(Box::new(i64::try_from(limit).unwrap_or(i64::MAX)));
        let mut statement = connection.prepare_cached(&self.sql)?;
        let mut rows = statement.query(params_from_iter(&self.parameters))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.extend(each(row)?);
        }
        Ok(found)
    }
}

/// The columns that [`event`] reads, from `events LEFT JOIN runs`.
pub(super) const EVENT: &str = "events.id, events.at, events.level, events.kind, events.context, events.client, \
     runs.id, events.body";

/// Reads an event's form from the columns [`EVENT`], the first of which is number `first`.
pub(super) fn event(row: &Row<'_>, first: usize) -> rusqlite::Result<StoredEvent> {
    Ok(StoredEvent {
        id: row.get(first)?,
        at: row.get(first + 1)?,
        level: row.get(first + 2)?,
        kind: row.get(first + 3)?,
        context: row.get(first + 4)?,
        client: row.get(first + 5)?,
        run: row.get(first + 6)?,
        body: row.get(first + 7)?,
    })
}

pub(super) fn events(connection: &Connection, query: &EventQuery) -> Result<Vec<Entry>, Fault> {
    let mut clauses = Clauses::new(&format!(
        "SELECT events.seq, {EVENT} FROM events LEFT JOIN runs ON runs.key = events.run"
    ));
    clauses.and_if("events.seq > ?", query.after.map(last_up_to));
    clauses.and_if("events.seq < ?", query.before.and_then(first_from));
    clauses.and_if("events.id = ?", query.id.map(|id| id.uuid().into_bytes()));
    clauses.and_if("events.key = ?", query.key.as_ref().map(stored::key));
    if query.levels != LevelRange::ALL {
        clauses.and("events.level >= ?", stored::level_code(query.levels.from));
        clauses.and("events.level <= ?", stored::level_code(query.levels.to));
    }
    clauses.and_if("events.context = ?", query.context.clone());
    clauses.and_if("events.client = ?", query.client.clone());
    if let Some(kind) = &query.kind {
        let (first, last) = match kind.as_str() {
            "notice" => (stored::NOTICE, stored::NOTICE),
            "push" => (stored::PUSH, stored::PUSH),
            "run" => (stored::START, stored::ERROR),
            _ => return Ok(Vec::new()),
        };
        clauses.and("events.kind >= ?", first);
        clauses.and("events.kind <= ?", last);
    }
    let run = query.run.as_ref().map(|run| run.as_str().to_owned());
    clauses.and_if("events.run = (SELECT key FROM runs WHERE id = ?)", run);
    if let Some(since) = query.since {
        // The table of hours says where to begin, so that an hour of history does not read a year of it.
        clauses.and(
            "events.seq >= (SELECT min(seq) FROM hours WHERE hour >= ?)",
            hour(stored::nanos(since)),
        );
        clauses.and("events.at >= ?", stored::nanos(since));
    }
    let order =
        if query.newest_first { " ORDER BY events.seq DESC" } else { " ORDER BY events.seq" };
    clauses.read(connection, order, query.limit, |row| {
        let event = match event(row, 1)?.event() {
            Ok(event) => event,
            // One damaged row must not hide the others, nor stop whoever follows the journal.
            Err(unreadable) => {
                tracing::error!("left out a damaged {unreadable}");
                return Ok(None);
            }
        };
        Ok(Some(Entry { cursor: cursor(row.get(0)?), event }))
    })
}

/// The hour of a time in nanoseconds.
pub(super) const fn hour(nanos: i64) -> i64 {
    nanos.div_euclid(3_600_000_000_000)
}

/// The cursor of the event number `seq`.
pub(super) const fn cursor(seq: i64) -> Cursor {
    Cursor { major: 0, minor: seq.cast_unsigned() }
}

/// The last number that is not after `cursor`.
fn last_up_to(cursor: Cursor) -> i64 {
    match cursor.major {
        0 => i64::try_from(cursor.minor).unwrap_or(i64::MAX),
        _ => i64::MAX,
    }
}

/// The first number that is not before `cursor`, if there can be one.
fn first_from(cursor: Cursor) -> Option<i64> {
    i64::try_from(cursor.minor).ok().filter(|_| cursor.major == 0)
}

pub(super) fn deliveries(
    connection: &Connection,
    query: &DeliveryQuery,
) -> Result<Vec<Delivery>, Fault> {
    // Both halves in one transaction, so that none is seen twice or not at all that is taken in between.
    let snapshot = connection.unchecked_transaction()?;
    let mut found = with_rows(&snapshot, query, query.state.map(rows_in))?;
    if query.state == Some(DeliveryState::Pending) {
        found.extend(with_rows(&snapshot, query, Some("state = 5"))?);
    }
    if query.state.is_none_or(|state| state == DeliveryState::Pending) {
        found.extend(fresh(&snapshot, query)?);
        found.sort_by(|(a, one), (b, other)| {
            b.cmp(a).then_with(|| one.id.channel.cmp(&other.id.channel))
        });
        found.truncate(query.limit);
    }
    Ok(found.into_iter().map(|(_, delivery)| delivery).collect())
}

/// A delivery with the number of its event.
type Numbered = (i64, Delivery);

/// The deliveries that have a row.
fn with_rows(
    connection: &Connection,
    query: &DeliveryQuery,
    states: Option<&str>,
) -> Result<Vec<Numbered>, Fault> {
    // CROSS JOIN keeps SQLite from beginning with the words.
    let mut clauses = Clauses::new(
        "SELECT deliveries.seq, events.id, channels.word, reasons.word, due_at, state, repeated, attempts, tries, \
         message_id, (SELECT id FROM events AS leads WHERE leads.seq = deliveries.lead), \
         iif(print IS NULL, NULL, (SELECT count(*) FROM deliveries AS others INDEXED BY leads \
             WHERE others.channel = deliveries.channel AND others.lead = deliveries.seq AND others.state <> 4)) \
         FROM deliveries CROSS JOIN events ON events.seq = deliveries.seq \
         CROSS JOIN words AS channels ON channels.id = channel \
         CROSS JOIN words AS reasons ON reasons.id = reason",
    );
    let event = query.event.map(|id| id.uuid().into_bytes());
    clauses.and_if("deliveries.seq = (SELECT seq FROM events WHERE id = ?)", event);
    let channel = query.channel.as_ref().map(|name| name.as_str().to_owned());
    clauses.and_if("channel = (SELECT id FROM words WHERE word = ?)", channel);
    if let Some(states) = states {
        clauses.and_plain(states);
    }
    let order = " ORDER BY deliveries.seq DESC, channels.word";
    clauses.read(connection, order, query.limit, |row| {
        let attempts: Option<String> = row.get(7)?;
        let (seq, mut delivery) = planned(row)?;
        delivery.state = stored::delivery_state(row.get(5)?)?;
        delivery.maybe_repeated = row.get(6)?;
        let log = stored::log_of(attempts.as_deref().unwrap_or_default())?;
        delivery.attempt_count = log.before().saturating_add(row.get(8)?);
        stored::Log { attempts: delivery.attempts, retries: delivery.retries } = log;
        delivery.receipts = stored::pieces_of(row.get::<_, Option<String>>(9)?.as_deref())?;
        let lead: Option<[u8; 16]> = row.get(10)?;
        delivery.lead = lead.map(|id| EventId::from_uuid(Uuid::from_bytes(id)));
        delivery.others = row.get::<_, Option<i64>>(11)?.map(i64::cast_unsigned);
        Ok(Some((seq, delivery)))
    })
}

/// The rows in a state. Literal, because only then does SQLite see that an index of just these rows will do.
const fn rows_in(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Pending => "state < 2 AND state = 0",
        DeliveryState::InFlight => "state < 2 AND state = 1",
        DeliveryState::Sent => "state = 2",
        DeliveryState::GivenUp => "state = 3",
        DeliveryState::Superseded => "state = 4",
    }
}

/// The deliveries that only their event's plan knows.
fn fresh(connection: &Connection, query: &DeliveryQuery) -> Result<Vec<Numbered>, Fault> {
    let mut clauses = Clauses::new(
        "SELECT events.seq, events.id, channels.word, reasons.word, events.at \
         FROM plans LEFT JOIN positions ON positions.channel = plans.channel \
         CROSS JOIN events ON events.plan = plans.plan AND events.seq > coalesce(positions.seq, 0) \
         CROSS JOIN words AS channels ON channels.id = plans.channel \
         CROSS JOIN words AS reasons ON reasons.id = plans.reason",
    );
    let event = query.event.map(|id| id.uuid().into_bytes());
    clauses.and_if("events.seq = (SELECT seq FROM events WHERE id = ?)", event);
    let channel = query.channel.as_ref().map(|name| name.as_str().to_owned());
    clauses.and_if("plans.channel = (SELECT id FROM words WHERE word = ?)", channel);
    let order = " ORDER BY events.seq DESC, channels.word";
    clauses.read(connection, order, query.limit, |row| planned(row).map(Some))
}

/// Reads a delivery as it was planned from number, event, channel, reason and time.
fn planned(row: &Row<'_>) -> Result<Numbered, Fault> {
    let (id, channel): ([u8; 16], String) = (row.get(1)?, row.get(2)?);
    let delivery = Delivery {
        id: DeliveryId {
            event: EventId::from_uuid(Uuid::from_bytes(id)),
            channel: stored::channel(&channel)?,
        },
        state: DeliveryState::Pending,
        reason: row.get(3)?,
        due_at: stored::timestamp(row.get(4)?),
        maybe_repeated: false,
        attempts: Vec::new(),
        attempt_count: 0,
        retries: Vec::new(),
        receipts: Vec::new(),
        lead: None,
        others: None,
    };
    Ok((row.get(0)?, delivery))
}

pub(super) fn runs(connection: &Connection, query: &RunQuery) -> Result<Vec<Run>, Fault> {
    let mut clauses = Clauses::new("SELECT id, state, steps, body FROM runs");
    clauses.and_plain("state IS NOT NULL");
    clauses.and_if("id = ?", query.id.as_ref().map(|id| id.as_str().to_owned()));
    clauses.and_if("state = ?", query.state.map(stored::run_state_code));
    clauses.read(connection, " ORDER BY latest DESC", query.limit, |row| {
        let stored = StoredRun {
            id: row.get(0)?,
            state: row.get(1)?,
            steps: row.get(2)?,
            body: row.get(3)?,
        };
        Ok(Some(stored.run()?))
    })
}
