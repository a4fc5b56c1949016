//! A journal in memory, for tests and for trying things out: every promise of [`Journal`] except that it survives
//! the process.
//!
//! It is also the model that the other implementations are compared with.

mod groups;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use deskbell_core::{
    ChannelName, DeliveryId, Event, EventId, Run, RunId,
    delivery::{DeliveryState, Earlier, Outcome, Planned, Replaces},
    event::Kind,
    run::RunState,
};
use jiff::Timestamp;
use tokio::sync::watch;

use self::groups::{Member, Placed};
use super::{
    ATTEMPTS_KEPT, Accept, Ack, AttemptRecord, Claim, Claimed, Cursor, Delivery, DeliveryQuery,
    Due, Entry, EventQuery, IdempotencyKey, Journal, JournalError, RetryRecord, RunQuery, Write,
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
    /// The steps of each run.
    steps: HashMap<RunId, BTreeSet<Number>>,
    /// The deliveries of one run to one channel, which go one after the other.
    lines: HashMap<(RunId, ChannelName), BTreeSet<Number>>,
    /// What is known of the deliveries that belong to groups.
    members: BTreeMap<Placed, Member>,
    /// The pending deliveries of each channel by the time at which they are due.
    pending: HashMap<ChannelName, BTreeSet<(Timestamp, Number)>>,
    /// Each run with the number of its latest step.
    runs: HashMap<RunId, (Number, Run)>,
    failing: Option<JournalError>,
}

#[derive(Debug)]
struct Kept {
    event: Event,
    key: Option<IdempotencyKey>,
    deliveries: BTreeMap<ChannelName, Delivery>,
}

impl Kept {
    fn run(&self) -> Option<&RunId> {
        run_of(&self.event)
    }
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
            Write::Reschedule { channel, from, to } => {
                Ack::Done(self.reschedule(channel.as_ref(), from, to))
            }
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
        if let Some(run) = run_of(&event) {
            self.steps.entry(run.clone()).or_default().insert(number);
        }
        if let Some(change) = run {
            self.runs.insert(change.run.id.clone(), (number, change.run));
        }
        self.by_id.insert(event.id, number);
        if let Some(key) = &key {
            self.by_key.insert(key.clone(), number);
        }
        self.events.insert(number, Kept { event, key, deliveries: BTreeMap::new() });
        for planned in deliveries {
            self.plan(number, planned);
        }
        Ack::Accepted(self.newest())
    }

    fn first_with(&self, event: &Event, key: Option<&IdempotencyKey>) -> Option<EventId> {
        let number =
            key.and_then(|key| self.by_key.get(key)).or_else(|| self.by_id.get(&event.id))?;
        self.events.get(number).map(|kept| kept.event.id)
    }

    fn plan(&mut self, number: Number, planned: Planned) {
        let Some(kept) = self.events.get(&number) else { return };
        if kept.deliveries.contains_key(&planned.channel) {
            return;
        }
        let event = kept.event.id;
        let mut due_at = planned.due_at;
        let mut state = DeliveryState::Pending;
        let grouped = planned.grouped.filter(|_| kept.run().is_none());
        let at = kept.event.at;
        if let Some(run) = kept.run() {
            let line = (run.clone(), planned.channel.clone());
            due_at = self.take_place(&line, planned.replaces, planned.due_at);
            self.lines.entry(line).or_default().insert(number);
        }
        if let Some(grouped) = grouped {
            let placed = (number, planned.channel.clone());
            (state, due_at) = self.join_group(placed, grouped, at, due_at);
        }
        let delivery = Delivery {
            id: DeliveryId { event, channel: planned.channel.clone() },
            state,
            reason: planned.reason,
            due_at,
            maybe_repeated: false,
            attempts: Vec::new(),
            attempt_count: 0,
            retries: Vec::new(),
            receipts: Vec::new(),
            lead: None,
            others: None,
        };
        if state == DeliveryState::Pending && !self.is_joined(number, &planned.channel) {
            let pending = self.pending.entry(planned.channel.clone()).or_default();
            pending.insert((due_at, number));
        }
        if let Some(kept) = self.events.get_mut(&number) {
            kept.deliveries.insert(planned.channel, delivery);
        }
    }

    /// Supersedes what a delivery replaces on its line, and says when it is due.
    fn take_place(
        &mut self,
        line: &(RunId, ChannelName),
        replaces: Replaces,
        due_at: Timestamp,
    ) -> Timestamp {
        let numbers = self.lines.get(line).into_iter().flatten();
        let earlier = numbers.filter_map(|number| {
            let kept = self.events.get(number)?;
            let Kind::Run(step) = &kept.event.kind else { return None };
            let delivery = kept.deliveries.get(&line.1)?;
            Some(Earlier {
                key: delivery.id.clone(),
                phase: step.phase,
                state: delivery.state,
                attempts: delivery.attempt_count,
                due_at: delivery.due_at,
            })
        });
        let place = replaces.place(due_at, earlier);
        for id in &place.superseded {
            self.change(id, |_| true, |delivery| delivery.state = DeliveryState::Superseded);
        }
        for id in &place.hurried {
            self.change(id, |_| true, |delivery| delivery.due_at = place.due_at);
        }
        place.due_at
    }

    fn delivery(&self, number: Number, channel: &ChannelName) -> Option<&Delivery> {
        self.events.get(&number)?.deliveries.get(channel)
    }

    /// Changes the delivery `id` if it is as `fits` wants it, and keeps the list of what is pending in step.
    fn change(
        &mut self,
        id: &DeliveryId,
        fits: impl FnOnce(&Delivery) -> bool,
        change: impl FnOnce(&mut Delivery),
    ) -> bool {
        let Some(number) = self.by_id.get(&id.event) else { return false };
        let is_joined = self.is_joined(*number, &id.channel);
        let Some(kept) = self.events.get_mut(number) else { return false };
        let Some(delivery) = kept.deliveries.get_mut(&id.channel).filter(|it| fits(it)) else {
            return false;
        };
        let pending = self.pending.entry(id.channel.clone()).or_default();
        pending.remove(&(delivery.due_at, *number));
        change(delivery);
        if delivery.state == DeliveryState::Pending && !is_joined {
            pending.insert((delivery.due_at, *number));
        }
        true
    }

    fn record(&mut self, id: &DeliveryId, attempt: u32, at: Timestamp, outcome: Outcome) -> Ack {
        let is_latest = |delivery: &Delivery| {
            delivery.state == DeliveryState::InFlight && delivery.attempt_count == attempt
        };
        let is_given_up = matches!(outcome, Outcome::GivenUp { .. });
        let recorded = self.change(id, is_latest, |delivery| {
            let error = match outcome {
                Outcome::Sent { arrived, without } => {
                    delivery.state = DeliveryState::Sent;
                    // As in the file: without an id there is nothing to keep.
                    let names_one = arrived.iter().any(|piece| piece.receipt.message_id.is_some());
                    delivery.receipts = if names_one { arrived } else { Vec::new() };
                    without
                }
                Outcome::RetryAt { at, error, arrived } => {
                    delivery.state = DeliveryState::Pending;
                    delivery.due_at = at;
                    delivery.receipts = arrived;
                    Some(error)
                }
                Outcome::GivenUp { error, arrived } => {
                    delivery.state = DeliveryState::GivenUp;
                    delivery.receipts = arrived;
                    Some(error)
                }
            };
            let number = before(delivery) + attempt;
            delivery.attempts.push(AttemptRecord { number, at, error });
            let surplus = delivery.attempts.len().saturating_sub(ATTEMPTS_KEPT);
            delivery.attempts.drain(..surplus);
            let first = delivery.attempts.first().map_or(0, |attempt| attempt.number);
            let dropped = delivery.retries.iter().filter(|retry| retry.after + 1 < first).count();
            delivery.retries.drain(..dropped.saturating_sub(1));
        });
        if recorded {
            self.settle_joined(id);
            if is_given_up {
                self.tell_repeats(id, at);
            }
            return Ack::Done(1);
        }
        Ack::Stale
    }

    fn retry(&mut self, id: &DeliveryId, at: Timestamp) -> u64 {
        let is_given_up = |delivery: &Delivery| delivery.state == DeliveryState::GivenUp;
        let id = &self.message_of(id);
        let retried = self.change(id, is_given_up, |delivery| {
            delivery.state = DeliveryState::Pending;
            delivery.due_at = at;
            let after = before(delivery) + delivery.attempt_count;
            delivery.retries.push(RetryRecord { after, at });
            delivery.attempt_count = 0;
        });
        if retried {
            self.reopen_joined(id);
        }
        u64::from(retried)
    }

    fn reschedule(&mut self, channel: Option<&ChannelName>, from: Timestamp, to: Timestamp) -> u64 {
        let put_off = |delivery: &&Delivery| {
            delivery.state == DeliveryState::Pending
                && delivery.attempt_count == 0
                && delivery.due_at == from
                && self.lead(&delivery.id).is_none()
                && channel.is_none_or(|name| *name == delivery.id.channel)
        };
        let all = self.events.values().flat_map(|kept| kept.deliveries.values());
        let ids: Vec<DeliveryId> = all.filter(put_off).map(|it| it.id.clone()).collect();
        for id in &ids {
            self.change(id, |_| true, |delivery| delivery.due_at = to);
        }
        ids.len() as u64
    }

    fn recover(&mut self, at: Timestamp) -> u64 {
        let all = self.events.values().flat_map(|kept| kept.deliveries.values());
        let in_flight = all.filter(|delivery| delivery.state == DeliveryState::InFlight);
        let ids: Vec<DeliveryId> = in_flight.map(|delivery| delivery.id.clone()).collect();
        for id in &ids {
            self.change(
                id,
                |_| true,
                |delivery| {
                    delivery.state = DeliveryState::Pending;
                    delivery.due_at = at;
                    delivery.maybe_repeated = true;
                },
            );
        }
        ids.len() as u64
    }

    fn prune(&mut self, before: Timestamp, limit: usize) -> u64 {
        let old = self.events.iter().take_while(|(_, kept)| kept.event.at < before);
        let idle = old.filter(|(_, kept)| self.is_finished(kept));
        let numbers: Vec<Number> = idle.take(limit).map(|(number, _)| *number).collect();
        for number in &numbers {
            self.forget(*number);
        }
        numbers.len() as u64
    }

    /// Whether nothing is still to be done for an event.
    fn is_finished(&self, kept: &Kept) -> bool {
        let run = kept.run().and_then(|run| self.runs.get(run));
        let in_open_run = run.is_some_and(|(_, run)| run.state == RunState::Open);
        let is_finished = |it: &Delivery| it.state.is_settled() && !self.repeats_what_is_open(it);
        !in_open_run && kept.deliveries.values().all(is_finished)
    }

    fn forget(&mut self, number: Number) {
        let Some(Kept { event, key, deliveries }) = self.events.remove(&number) else {
            return;
        };
        self.by_id.remove(&event.id);
        if let Some(key) = key {
            self.by_key.remove(&key);
        }
        for channel in deliveries.keys() {
            self.members.remove(&(number, channel.clone()));
        }
        let Some(run) = run_of(&event) else { return };
        for channel in deliveries.into_keys() {
            remove_from(&mut self.lines, &(run.clone(), channel), number);
        }
        if remove_from(&mut self.steps, run, number) {
            self.runs.remove(run);
        }
    }

    fn claim(&mut self, claim: &Claim) -> Claimed {
        let mut claimed = Claimed::default();
        for (channel, room) in &claim.room {
            let Some(pending) = self.pending.get(channel) else { continue };
            let later = pending.range((claim.now, Number::MAX)..).next().map(|(due_at, _)| *due_at);
            claimed.next_at = claimed.next_at.into_iter().chain(later).min();
            let due = pending.range(..(claim.now, Number::MAX)).map(|(_, number)| *number);
            // Nothing is marked while this looks, so of one run only the first unfinished step passes.
            let free = due.filter(|number| self.is_first(*number, channel));
            let taken: Vec<Number> = free.take(*room).collect();
            claimed.due.extend(
                taken.into_iter().filter_map(|number| self.take(number, channel, claim.now)),
            );
        }
        claimed
    }

    /// Whether all earlier steps of the event's run, or messages of its group, are finished on the channel.
    fn is_first(&self, number: Number, channel: &ChannelName) -> bool {
        self.earlier_in_line(number, channel).all(|earlier| earlier.state.is_settled())
            && self.is_first_of_group(number, channel)
    }

    /// Marks a delivery as in flight.
    fn take(&mut self, number: Number, channel: &ChannelName, now: Timestamp) -> Option<Due> {
        let earlier = self.earlier_in_line(number, channel);
        let mut sent = earlier.filter(|earlier| earlier.state == DeliveryState::Sent);
        let names_one = |earlier: &&Delivery| {
            earlier.receipts.iter().any(|piece| piece.receipt.message_id.is_some())
        };
        let previous = sent.rfind(names_one).map(|earlier| earlier.receipts.clone());
        drop(sent);
        let event = self.events.get(&number)?.event.clone();
        let id = DeliveryId { event: event.id, channel: channel.clone() };
        let is_grouped = self.members.contains_key(&(number, channel.clone()));
        self.change(
            &id,
            |_| true,
            |delivery| {
                delivery.state = DeliveryState::InFlight;
                delivery.attempt_count += 1;
                // A group reckons with the time of its last message.
                delivery.due_at = if is_grouped { now } else { delivery.due_at };
            },
        );
        let delivery = self.delivery(number, channel)?;
        let (attempt, maybe_repeated) = (delivery.attempt_count, delivery.maybe_repeated);
        let arrived = delivery.receipts.clone();
        let digest = self.digest(number, channel);
        Some(Due {
            id,
            attempt,
            maybe_repeated,
            event,
            previous: previous.unwrap_or_default(),
            arrived,
            digest,
        })
    }

    /// The deliveries of earlier steps of the event's run to `channel`, the first one first.
    fn earlier_in_line(
        &self,
        number: Number,
        channel: &ChannelName,
    ) -> impl DoubleEndedIterator<Item = &Delivery> {
        let run = self.events.get(&number).and_then(Kept::run);
        let line = run.and_then(|run| self.lines.get(&(run.clone(), channel.clone())));
        let earlier = line.into_iter().flat_map(move |line| line.range(..number));
        earlier.filter_map(|earlier| self.delivery(*earlier, channel))
    }

    fn events(&self, query: &EventQuery) -> Vec<Entry> {
        let entry = |(cursor, kept): (Cursor, &Kept)| Entry { cursor, event: kept.event.clone() };
        let fits = |(cursor, kept): &(Cursor, &Kept)| fits(query, *cursor, kept);
        let place = |number| Cursor { major: 0, minor: number };
        // One event is looked up; everything else is searched for.
        if query.id.is_some() || query.key.is_some() {
            let by_id = query.id.and_then(|id| self.by_id.get(&id));
            let number = by_id.or_else(|| self.by_key.get(query.key.as_ref()?));
            let found = number.and_then(|number| Some((place(*number), self.events.get(number)?)));
            return found.filter(fits).map(entry).into_iter().take(query.limit).collect();
        }
        let after = query.after.map_or(0, |after| if after.major == 0 { after.minor } else { 0 });
        let all = self.events.range(after..).map(|(number, kept)| (place(*number), kept));
        if query.newest_first {
            all.rev().filter(fits).take(query.limit).map(entry).collect()
        } else {
            all.filter(fits).take(query.limit).map(entry).collect()
        }
    }

    fn deliveries(&self, query: &DeliveryQuery) -> Vec<Delivery> {
        let numbers = match query.event {
            Some(event) => match self.by_id.get(&event) {
                Some(number) => *number..=*number,
                None => return Vec::new(),
            },
            None => 0..=Number::MAX,
        };
        let newest_first = self.events.range(numbers).rev();
        let all = newest_first.flat_map(|(_, kept)| kept.deliveries.values());
        let found = all.filter(|delivery| {
            query.channel.as_ref().is_none_or(|name| *name == delivery.id.channel)
                && query.state.is_none_or(|state| state == delivery.state)
        });
        let found = found.take(query.limit).cloned();
        let counted = |delivery: Delivery| Delivery {
            attempt_count: before(&delivery) + delivery.attempt_count,
            ..delivery
        };
        found.map(|delivery| self.placed(counted(delivery))).collect()
    }

    fn runs(&self, query: &RunQuery) -> Vec<Run> {
        let fits = |run: &Run| query.state.is_none_or(|state| state == run.state);
        if let Some(id) = &query.id {
            let found = self.runs.get(id).map(|(_, run)| run).filter(|run| fits(run));
            return found.into_iter().take(query.limit).cloned().collect();
        }
        let mut found: Vec<_> = self.runs.values().filter(|(_, run)| fits(run)).collect();
        found.sort_by_key(|(latest, _)| std::cmp::Reverse(*latest));
        found.into_iter().take(query.limit).map(|(_, run)| run.clone()).collect()
    }
}

/// How many attempts there were before the last retry by hand: a kept delivery counts those since.
fn before(delivery: &Delivery) -> u32 {
    delivery.retries.last().map_or(0, |retry| retry.after)
}

/// Takes `number` out of the set of `key`, and says whether that leaves the key with none.
fn remove_from<K: Eq + Hash>(
    sets: &mut HashMap<K, BTreeSet<Number>>,
    key: &K,
    number: Number,
) -> bool {
    let Some(set) = sets.get_mut(key) else { return true };
    set.remove(&number);
    let is_empty = set.is_empty();
    if is_empty {
        sets.remove(key);
    }
    is_empty
}

fn run_of(event: &Event) -> Option<&RunId> {
    match &event.kind {
        Kind::Run(step) => Some(&step.run),
        Kind::Notice | Kind::Push => None,
    }
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
