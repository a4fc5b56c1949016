//! Events, writes and short ways to the journal, for the checks.

use std::time::Duration;

use deskbell_core::{
    ChannelName, DeliveryId, Event, EventId, Level, Run, RunId, Source,
    delivery::{Arrived, DeliveryState, Mark, Outcome, Planned, Receipt, Replaces},
    event::{Content, Kind},
    group::Grouped,
    run::{Phase, RunState, RunStep},
};
use jiff::Timestamp;
use uuid::Uuid;

use crate::journal::{
    Accept, Ack, Claim, Claimed, Cursor, Delivery, DeliveryQuery, Due, Entry, EventQuery,
    IdempotencyKey, Journal, RunChange, Write,
};

/// `seconds` after the beginning of the sample's time, to the nanosecond.
pub(in crate::journal) fn at(seconds: i64) -> Timestamp {
    Timestamp::new(1_790_000_000 + seconds, 123_456_789).unwrap()
}

pub(in crate::journal) fn channel(name: &str) -> ChannelName {
    name.parse().unwrap()
}

pub(in crate::journal) fn run(id: &str) -> RunId {
    id.parse().unwrap()
}

pub(in crate::journal) fn id(number: u64) -> EventId {
    EventId::from_uuid(Uuid::from_u128(
        0x019a_0000_0000_7000_8000_0000_0000_0000 + u128::from(number),
    ))
}

pub(in crate::journal) fn key(scope: &str, key: &str) -> IdempotencyKey {
    IdempotencyKey { scope: scope.to_owned(), key: key.to_owned() }
}

/// The notice with the id `number`, reported that many seconds into the sample's time.
pub(in crate::journal) fn notice(number: u64) -> Event {
    Event {
        id: id(number),
        at: at(number.cast_signed()),
        level: Level::Info,
        context: "workflow".parse().unwrap(),
        source: Source { client: Some("claude-code".to_owned()), ..Source::default() },
        content: Content { text: format!("notice {number}"), ..Content::default() },
        kind: Kind::Notice,
        to: Vec::new(),
    }
}

/// A step of the run `id`.
pub(in crate::journal) fn step(number: u64, id: &str, phase: Phase) -> Event {
    let step = RunStep { run: run(id), phase, step: None, progress: None, reported_at: at(0) };
    Event { kind: Kind::Run(step), ..notice(number) }
}

pub(in crate::journal) const UPDATES: Replaces =
    Replaces::Updates { interval: Duration::from_secs(10) };

/// An acceptance that is put together piece by piece.
pub(in crate::journal) fn accept(event: Event) -> Accept {
    Accept { event, key: None, deliveries: Vec::new(), run: None }
}

impl Accept {
    /// Plans deliveries that are due when the event is reported and replace nothing.
    pub(in crate::journal) fn to(self, channels: &[&str]) -> Self {
        self.replacing(channels, Replaces::Nothing)
    }

    pub(in crate::journal) fn replacing(self, channels: &[&str], replaces: Replaces) -> Self {
        let due_at = self.event.at;
        self.due(channels, due_at, replaces)
    }

    pub(in crate::journal) fn due(
        mut self,
        channels: &[&str],
        due_at: Timestamp,
        replaces: Replaces,
    ) -> Self {
        self.deliveries.extend(channels.iter().map(|name| Planned {
            channel: channel(name),
            due_at,
            reason: "route 1".to_owned(),
            replaces,
            grouped: None,
        }));
        self
    }

    /// Plans a delivery of a group whose messages are ten seconds apart, and that says `content`.
    pub(in crate::journal) fn grouped(
        mut self,
        name: &str,
        due_at: Timestamp,
        (group, content): (&str, &str),
        repeat: Option<i64>,
    ) -> Self {
        let seconds = |seconds: i64| Duration::from_secs(seconds.cast_unsigned());
        self.deliveries.push(Planned {
            channel: channel(name),
            due_at,
            reason: "route 1".to_owned(),
            replaces: Replaces::Nothing,
            grouped: Some(Grouped {
                group: group.to_owned(),
                content: content.to_owned(),
                interval: seconds(10),
                repeat: repeat.map(seconds),
            }),
        });
        self
    }

    pub(in crate::journal) fn key(self, key: IdempotencyKey) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Changes the run of the event's step, which had `after_steps` steps.
    pub(in crate::journal) fn run(self, after_steps: u64, state: RunState) -> Self {
        let Kind::Run(step) = &self.event.kind else { panic!("not a step of a run") };
        let run = Run {
            id: step.run.clone(),
            state,
            text: self.event.content.text.clone(),
            step: step.step.clone(),
            progress: step.progress,
            started_at: at(0),
            updated_at: self.event.at,
            steps: after_steps + 1,
        };
        Self { run: Some(RunChange { after_steps, run }), ..self }
    }

    pub(in crate::journal) fn write(self) -> Write {
        Write::Accept(Box::new(self))
    }
}

/// Writes one thing.
pub(in crate::journal) async fn put(journal: &dyn Journal, write: Write) -> Ack {
    journal.commit(vec![write]).await.unwrap().remove(0)
}

pub(in crate::journal) async fn accepted(journal: &dyn Journal, accept: Accept) -> Cursor {
    match put(journal, accept.write()).await {
        Ack::Accepted(cursor) => cursor,
        other => panic!("not accepted: {other:?}"),
    }
}

/// No events.
pub(in crate::journal) const NONE: [u64; 0] = [];

/// Claims at most `room` deliveries of one channel, `seconds` into the sample's time.
pub(in crate::journal) async fn claim(
    journal: &dyn Journal,
    name: &str,
    room: usize,
    seconds: i64,
) -> Claimed {
    journal.claim(Claim { now: at(seconds), room: vec![(channel(name), room)] }).await.unwrap()
}

/// The numbers of the events that were claimed.
pub(in crate::journal) fn numbers(claimed: &Claimed) -> Vec<u64> {
    claimed.due.iter().map(|due| number(due.id.event)).collect()
}

pub(in crate::journal) fn number(event: EventId) -> u64 {
    (0..20_000).find(|number| id(*number) == event).unwrap()
}

pub(in crate::journal) async fn record(journal: &dyn Journal, due: &Due, outcome: Outcome) -> Ack {
    let write =
        Write::Outcome { delivery: due.id.clone(), attempt: due.attempt, at: at(50), outcome };
    put(journal, write).await
}

/// The receipt of a piece.
pub(in crate::journal) fn receipt(message_id: Option<&str>) -> Arrived {
    let receipt = Receipt { message_id: message_id.map(str::to_owned) };
    Arrived { place: Mark(7), text: Mark::NONE, receipt }
}

pub(in crate::journal) fn sent(message_id: Option<&str>) -> Outcome {
    Outcome::Sent { arrived: vec![receipt(message_id)], without: None }
}

pub(in crate::journal) fn retry_at(seconds: i64) -> Outcome {
    Outcome::RetryAt {
        at: at(seconds),
        error: "destination answered 503".to_owned(),
        arrived: Vec::new(),
    }
}

pub(in crate::journal) fn given_up() -> Outcome {
    Outcome::GivenUp { error: "destination answered 401".to_owned(), arrived: Vec::new() }
}

pub(in crate::journal) async fn read(journal: &dyn Journal, query: EventQuery) -> Vec<Entry> {
    journal.events(query).await.unwrap()
}

/// All events, the oldest first.
pub(in crate::journal) async fn all(journal: &dyn Journal) -> Vec<Entry> {
    read(journal, EventQuery::first(10_000)).await
}

/// The numbers of the events that `query` finds.
pub(in crate::journal) async fn found(journal: &dyn Journal, query: EventQuery) -> Vec<u64> {
    read(journal, query).await.iter().map(|entry| number(entry.event.id)).collect()
}

pub(in crate::journal) async fn all_deliveries(journal: &dyn Journal) -> Vec<Delivery> {
    let query = DeliveryQuery { limit: usize::MAX, ..DeliveryQuery::default() };
    journal.deliveries(query).await.unwrap()
}

pub(in crate::journal) fn delivery_id(event: u64, name: &str) -> DeliveryId {
    DeliveryId { event: id(event), channel: channel(name) }
}

pub(in crate::journal) async fn delivery(
    journal: &dyn Journal,
    event: u64,
    name: &str,
) -> Delivery {
    let query = DeliveryQuery {
        event: Some(id(event)),
        channel: Some(channel(name)),
        state: None,
        limit: 2,
    };
    let mut found = journal.deliveries(query).await.unwrap();
    assert_eq!(found.len(), 1, "deliveries of event {event} to {name}");
    found.remove(0)
}

pub(in crate::journal) async fn state(
    journal: &dyn Journal,
    event: u64,
    name: &str,
) -> DeliveryState {
    delivery(journal, event, name).await.state
}
