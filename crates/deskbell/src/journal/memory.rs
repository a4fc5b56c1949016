//! A journal in memory, for tests: every promise of [`Journal`] except that it survives the process.
//!
//! It is also the model that the other implementations are compared with, so it prefers plain to fast.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use deskbell_core::{
    ChannelName, DeliveryId, Event, EventId, Run, RunId,
    delivery::{DeliveryState, Outcome, Planned, Replaces},
    event::Kind,
    run::{Phase, RunState},
};
use jiff::Timestamp;
use tokio::sync::watch;

use super::{
    ATTEMPTS_KEPT, Accept, Ack, AttemptRecord, Claim, Claimed, Cursor, Delivery, DeliveryQuery,
    Due, Entry, EventQuery, IdempotencyKey, Journal, JournalError, RunQuery, Write,
};

/// A journal that lives as long as its value.
#[derive(Debug)]
pub struct MemoryJournal {
    state: Mutex<State>,
    bell: watch::Sender<Cursor>,
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self { state: Mutex::default(), bell: watch::Sender::new(Cursor::START) }
    }
}

impl MemoryJournal {
    /// From now on refuses each commit and claim with `error`, until it is called with `None`.
    pub fn fail_with(&self, error: Option<JournalError>) {
        self.state().failing = error;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    async fn commit(&self, writes: Vec<Write>) -> Result<Vec<Ack>, JournalError> {
        let mut state = self.state();
        state.check()?;
        let acks = writes.into_iter().map(|write| state.write(write)).collect();
        self.bell.send_replace(state.newest());
        Ok(acks)
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, JournalError> {
        let mut state = self.state();
        state.check()?;
        Ok(state.claim(&claim))
    }

    async fn events(&self, query: EventQuery) -> Result<Vec<Entry>, JournalError> {
        Ok(self.state().events(&query))
    }

    async fn deliveries(&self, query: DeliveryQuery) -> Result<Vec<Delivery>, JournalError> {
        Ok(self.state().deliveries(&query))
    }

    async fn runs(&self, query: RunQuery) -> Result<Vec<Run>, JournalError> {
        Ok(self.state().runs(&query))
    }

    fn doorbell(&self) -> watch::Receiver<Cursor> {
        self.bell.subscribe()
    }
}

/// The number of an event in order of acceptance, from 1: what a cursor counts.
type Number = u64;

#[derive(Debug, Default)]
struct State {
    last: Number,
    events: BTreeMap<Number, Kept>,
    by_id: HashMap<EventId, Number>,
    by_key: HashMap<IdempotencyKey, Number>,
    deliveries: BTreeMap<(Number, ChannelName), Delivery>,
    /// The deliveries of one run to one channel, which go one after the other.
    lines: HashMap<(RunId, ChannelName), BTreeSet<Number>>,
    /// Each run with the number of its latest step.
    runs: HashMap<RunId, (Number, Run)>,
    failing: Option<JournalError>,
}

#[derive(Debug)]
struct Kept {
    event: Event,
    key: Option<IdempotencyKey>,
}

impl State {
    fn check(&self) -> Result<(), JournalError> {
        self.failing.clone().map_or(Ok(()), Err)
    }

    fn newest(&self) -> Cursor {
        Cursor { major: 0, minor: self.last }
    }

    fn write(&mut self, write: Write) -> Ack {
        match write {
            Write::Accept(accept) => self.accept(*accept),
            Write::Outcome { delivery, attempt, at, outcome } => {
                self.record(&delivery, attempt, at, outcome)
            }
            Write::Retry { delivery, at } => Ack::Done(self.retry(&delivery, at)),
            Write::Recover { at } => Ack::Done(self.recover(at)),
            Write::Prune { before, limit } => Ack::Done(self.prune(before, limit)),
        }
    }

    fn accept(&mut self, accept: Accept) -> Ack {
        let Accept { event, key, deliveries, run } = accept;
        if let Some(first) = self.first_with(&event, key.as_ref()) {
            return Ack::Duplicate(first);
        }
        if let Some(change) = &run {
            let steps = self.runs.get(&change.run.id).map_or(0, |(_, run)| run.steps);
            if steps != change.after_steps {
                return Ack::Stale;
            }
        }
        self.last += 1;
        let number = self.last;
        for planned in deliveries {
            self.plan(number, &event, planned);
        }
        if let Some(change) = run {
            self.runs.insert(change.run.id.clone(), (number, change.run));
        }
        self.by_id.insert(event.id, number);
        if let Some(key) = &key {
            self.by_key.insert(key.clone(), number);
        }
        self.events.insert(number, Kept { event, key });
        Ack::Accepted(self.newest())
    }

    fn first_with(&self, event: &Event, key: Option<&IdempotencyKey>) -> Option<EventId> {
        let number =
            key.and_then(|key| self.by_key.get(key)).or_else(|| self.by_id.get(&event.id))?;
        self.events.get(number).map(|kept| kept.event.id)
    }

    fn plan(&mut self, number: Number, event: &Event, planned: Planned) {
        let place = (number, planned.channel.clone());
        if self.deliveries.contains_key(&place) {
            return;
        }
        let mut due_at = planned.due_at;
        if let Kind::Run(step) = &event.kind {
            let line = (step.run.clone(), planned.channel.clone());
            due_at = self.take_place(&line, &planned);
            self.lines.entry(line).or_default().insert(number);
        }
        let delivery = Delivery {
            id: DeliveryId { event: event.id, channel: planned.channel },
            state: DeliveryState::Pending,
            reason: planned.reason,
            due_at,
            maybe_repeated: false,
            attempts: Vec::new(),
            attempt_count: 0,
            receipt: None,
        };
        self.deliveries.insert(place, delivery);
    }

    /// Supersedes what `planned` replaces on its line, and says when it is due.
    fn take_place(&mut self, line: &(RunId, ChannelName), planned: &Planned) -> Timestamp {
        if planned.replaces == Replaces::Nothing {
            return planned.due_at;
        }
        let mut replaced = None;
        let mut latest = None;
        for number in self.lines.get(line).into_iter().flatten() {
            let Some(Kind::Run(step)) = self.events.get(number).map(|kept| &kept.event.kind) else {
                continue;
            };
            let Some(earlier) = self.deliveries.get_mut(&(*number, line.1.clone())) else {
                continue;
            };
            let untried = earlier.state == DeliveryState::Pending && earlier.attempt_count == 0;
            if untried && step.phase == Phase::Update {
                earlier.state = DeliveryState::Superseded;
                replaced = replaced.min(Some(earlier.due_at)).or(Some(earlier.due_at));
            } else if earlier.attempt_count > 0 || step.phase == Phase::Start {
                latest = Some(earlier.due_at);
            }
        }
        match planned.replaces {
            Replaces::Updates { interval } => {
                let spaced =
                    latest.map(|at: Timestamp| at.checked_add(interval).unwrap_or(Timestamp::MAX));
                replaced.or(spaced.max(Some(planned.due_at))).unwrap_or(planned.due_at)
            }
            Replaces::Nothing | Replaces::UpdatesAtOnce => planned.due_at,
        }
    }

    fn delivery(&mut self, id: &DeliveryId) -> Option<&mut Delivery> {
        let number = *self.by_id.get(&id.event)?;
        self.deliveries.get_mut(&(number, id.channel.clone()))
    }

    fn record(&mut self, id: &DeliveryId, attempt: u32, at: Timestamp, outcome: Outcome) -> Ack {
        let latest = |delivery: &&mut Delivery| {
            delivery.state == DeliveryState::InFlight && delivery.attempt_count == attempt
        };
        let Some(delivery) = self.delivery(id).filter(latest) else {
            return Ack::Stale;
        };
        let error = match outcome {
            Outcome::Sent(receipt) => {
                delivery.state = DeliveryState::Sent;
                delivery.receipt = Some(receipt);
                None
            }
            Outcome::RetryAt { at, error } => {
                delivery.state = DeliveryState::Pending;
                delivery.due_at = at;
                Some(error)
            }
            Outcome::GivenUp { error } => {
                delivery.state = DeliveryState::GivenUp;
                Some(error)
            }
        };
        delivery.attempts.push(AttemptRecord { number: attempt, at, error });
        let surplus = delivery.attempts.len().saturating_sub(ATTEMPTS_KEPT);
        delivery.attempts.drain(..surplus);
        Ack::Done(1)
    }

    fn retry(&mut self, id: &DeliveryId, at: Timestamp) -> u64 {
        let given_up = |delivery: &&mut Delivery| delivery.state == DeliveryState::GivenUp;
        let Some(delivery) = self.delivery(id).filter(given_up) else {
            return 0;
        };
        delivery.state = DeliveryState::Pending;
        delivery.due_at = at;
        delivery.attempt_count = 0;
        1
    }

    fn recover(&mut self, at: Timestamp) -> u64 {
        let mut touched = 0;
        for delivery in self.deliveries.values_mut() {
            if delivery.state == DeliveryState::InFlight {
                delivery.state = DeliveryState::Pending;
                delivery.due_at = at;
                delivery.maybe_repeated = true;
                touched += 1;
            }
        }
        touched
    }

    fn prune(&mut self, before: Timestamp, limit: usize) -> u64 {
        let old = self.events.iter().take_while(|(_, kept)| kept.event.at < before);
        let idle = old.filter(|(number, kept)| self.is_finished(**number, &kept.event));
        let numbers: Vec<Number> = idle.take(limit).map(|(number, _)| *number).collect();
        for number in &numbers {
            self.forget(*number);
        }
        numbers.len() as u64
    }

    /// Whether nothing is still to be done for an event.
    fn is_finished(&self, number: Number, event: &Event) -> bool {
        let open_run = run_of(event)
            .and_then(|run| self.runs.get(run))
            .is_some_and(|(_, run)| run.state == RunState::Open);
        !open_run && self.of_event(number).all(|(_, delivery)| !is_waiting(delivery))
    }

    fn forget(&mut self, number: Number) {
        let Some(Kept { event, key }) = self.events.remove(&number) else {
            return;
        };
        self.by_id.remove(&event.id);
        if let Some(key) = key {
            self.by_key.remove(&key);
        }
        let channels: Vec<ChannelName> =
            self.of_event(number).map(|(channel, _)| channel.clone()).collect();
        for channel in channels {
            if let Some(run) = run_of(&event)
                && let Some(line) = self.lines.get_mut(&(run.clone(), channel.clone()))
            {
                line.remove(&number);
            }
            self.deliveries.remove(&(number, channel));
        }
        if let Some(run) = run_of(&event)
            && !self.events.values().any(|kept| run_of(&kept.event) == Some(run))
        {
            self.runs.remove(run);
        }
    }

    fn of_event(&self, number: Number) -> impl Iterator<Item = (&ChannelName, &Delivery)> {
        let of_event = move |(place, _): &(&(Number, ChannelName), &Delivery)| place.0 == number;
        // Channel names have no smallest value to start a range with; tests have few deliveries.
        self.deliveries.iter().filter(of_event).map(|(place, delivery)| (&place.1, delivery))
    }

    fn claim(&mut self, claim: &Claim) -> Claimed {
        let mut claimed = Claimed::default();
        for (channel, room) in &claim.room {
            let pending = self.deliveries.iter().filter(|((_, on), delivery)| {
                on == channel && delivery.state == DeliveryState::Pending
            });
            let mut waiting: Vec<(Timestamp, Number)> =
                pending.map(|((number, _), delivery)| (delivery.due_at, *number)).collect();
            waiting.sort_unstable();
            let due = waiting.partition_point(|(due_at, _)| *due_at <= claim.now);
            let next_at = waiting.get(due).map(|(due_at, _)| *due_at);
            claimed.next_at = claimed.next_at.into_iter().chain(next_at).min();
            waiting.truncate(due);
            let mut room = *room;
            for (_, number) in waiting {
                if room == 0 {
                    break;
                }
                if let Some(due) = self.take(number, channel) {
                    claimed.due.push(due);
                    room -= 1;
                }
            }
        }
        claimed
    }

    /// Marks a delivery as in flight, unless an earlier step of its run is not finished on the channel.
    fn take(&mut self, number: Number, channel: &ChannelName) -> Option<Due> {
        let event = self.events.get(&number)?.event.clone();
        let mut previous = None;
        for earlier in self.earlier_in_line(number, &event, channel) {
            if is_waiting(earlier) {
                return None;
            }
            previous = earlier.receipt.clone().filter(|it| it.message_id.is_some()).or(previous);
        }
        let delivery = self.deliveries.get_mut(&(number, channel.clone()))?;
        delivery.state = DeliveryState::InFlight;
        delivery.attempt_count += 1;
        Some(Due {
            id: delivery.id.clone(),
            attempt: delivery.attempt_count,
            maybe_repeated: delivery.maybe_repeated,
            event,
            previous,
        })
    }

    /// The deliveries of earlier steps of the event's run to `channel`, the first one first.
    fn earlier_in_line(
        &self,
        number: Number,
        event: &Event,
        channel: &ChannelName,
    ) -> impl Iterator<Item = &Delivery> {
        let line = run_of(event).and_then(|run| self.lines.get(&(run.clone(), channel.clone())));
        let earlier = line.into_iter().flat_map(move |line| line.range(..number));
        earlier.filter_map(|earlier| self.deliveries.get(&(*earlier, channel.clone())))
    }

    fn events(&self, query: &EventQuery) -> Vec<Entry> {
        let all =
            self.events.iter().map(|(number, kept)| (Cursor { major: 0, minor: *number }, kept));
        let entry = |(cursor, kept): (Cursor, &Kept)| Entry { cursor, event: kept.event.clone() };
        let fits = |(cursor, kept): &(Cursor, &Kept)| fits(query, *cursor, kept);
        if query.newest_first {
            all.rev().filter(fits).take(query.limit).map(entry).collect()
        } else {
            all.filter(fits).take(query.limit).map(entry).collect()
        }
    }

    fn deliveries(&self, query: &DeliveryQuery) -> Vec<Delivery> {
        let mut found: Vec<_> = self
            .deliveries
            .iter()
            .filter(|(_, delivery)| {
                query.event.is_none_or(|event| event == delivery.id.event)
                    && query.channel.as_ref().is_none_or(|name| *name == delivery.id.channel)
                    && query.state.is_none_or(|state| state == delivery.state)
            })
            .collect();
        found.sort_by_key(|((number, channel), _)| (std::cmp::Reverse(*number), channel));
        found.into_iter().take(query.limit).map(|(_, delivery)| delivery.clone()).collect()
    }

    fn runs(&self, query: &RunQuery) -> Vec<Run> {
        let mut found: Vec<_> = self
            .runs
            .values()
            .filter(|(_, run)| {
                query.id.as_ref().is_none_or(|id| *id == run.id)
                    && query.state.is_none_or(|state| state == run.state)
            })
            .collect();
        found.sort_by_key(|(latest, _)| std::cmp::Reverse(*latest));
        found.into_iter().take(query.limit).map(|(_, run)| run.clone()).collect()
    }
}

fn run_of(event: &Event) -> Option<&RunId> {
    match &event.kind {
        Kind::Run(step) => Some(&step.run),
        Kind::Notice | Kind::Push => None,
    }
}

fn is_waiting(delivery: &Delivery) -> bool {
    matches!(delivery.state, DeliveryState::Pending | DeliveryState::InFlight)
}

fn fits(query: &EventQuery, cursor: Cursor, kept: &Kept) -> bool {
    let event = &kept.event;
    query.after.is_none_or(|after| cursor > after)
        && query.before.is_none_or(|before| cursor < before)
        && query.id.is_none_or(|id| id == event.id)
        && query.key.as_ref().is_none_or(|key| kept.key.as_ref() == Some(key))
        && query.levels.contains(event.level)
        && query.context.as_ref().is_none_or(|context| context == event.context.as_str())
        && query.kind.as_ref().is_none_or(|kind| kind == event.kind.as_str())
        && query.run.as_ref().is_none_or(|run| run_of(event) == Some(run))
        && query.client.as_ref().is_none_or(|client| event.source.client.as_ref() == Some(client))
        && query.since.is_none_or(|since| event.at >= since)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::suite;

    #[tokio::test]
    async fn keeps_every_promise_of_a_journal() {
        suite::holds_for(|| Box::new(MemoryJournal::default())).await;
    }

    #[tokio::test]
    async fn refuses_while_it_is_told_to() {
        let journal = MemoryJournal::default();
        journal.fail_with(Some(JournalError::Failed("broken".to_owned())));
        assert!(journal.commit(Vec::new()).await.is_err());
        journal.fail_with(None);
        assert!(journal.commit(Vec::new()).await.is_ok());
    }
}
