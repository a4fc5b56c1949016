//! Deliveries that are told together, and repeats.

use std::collections::BTreeMap;

use deskbell_core::{
    ChannelName, DeliveryId, EventId, Level,
    delivery::DeliveryState,
    group::{self, DIGEST_TEXTS, Digest, Grouped, Telling, Turn},
};
use jiff::Timestamp;

use super::{Number, State};
use crate::journal::Delivery;

/// A delivery: the number of its event, and its channel.
pub(super) type Placed = (Number, ChannelName);

/// What is known of a delivery that belongs to a group.
#[derive(Debug)]
pub(super) struct Member {
    group: String,
    content: String,
    /// The event whose delivery tells this one too, or told the same before.
    lead: Option<Number>,
}

impl State {
    pub(super) fn find(&self, id: &DeliveryId) -> Option<&Delivery> {
        self.delivery(*self.by_id.get(&id.event)?, &id.channel)
    }

    /// The event whose delivery tells this one too, or told the same before.
    pub(super) fn lead(&self, id: &DeliveryId) -> Option<EventId> {
        let number = *self.by_id.get(&id.event)?;
        let lead = self.members.get(&(number, id.channel.clone()))?.lead?;
        self.events.get(&lead).map(|kept| kept.event.id)
    }

    /// `delivery` with its place in its group.
    pub(super) fn placed(&self, delivery: Delivery) -> Delivery {
        let number = self.by_id.get(&delivery.id.event).copied();
        let place = number.map(|number| (number, delivery.id.channel.clone()));
        let Some((number, channel)) = place.filter(|place| self.members.contains_key(place)) else {
            return delivery;
        };
        let others = self.told_with(number, &channel).len().saturating_sub(1) as u64;
        Delivery { lead: self.lead(&delivery.id), others: Some(others), ..delivery }
    }

    /// Whether a delivery is told with another.
    pub(super) fn is_joined(&self, number: Number, channel: &ChannelName) -> bool {
        self.members.get(&(number, channel.clone())).is_some_and(|member| member.lead.is_some())
    }

    /// Finds the place of a delivery in its group.
    pub(super) fn join_group(
        &mut self,
        placed: Placed,
        grouped: Grouped,
        at: Timestamp,
        due_at: Timestamp,
    ) -> (DeliveryState, Timestamp) {
        let tellings = self.tellings(&placed, &grouped);
        let same = self.same(&placed, &grouped);
        let turn = grouped.turn(at, due_at, &tellings, same);
        let Grouped { group, content, .. } = grouped;
        let (lead, state, due_at) = match turn {
            Turn::Leads(due_at) => (None, DeliveryState::Pending, due_at),
            Turn::Joins(lead, due_at) => {
                self.hurry(lead, &placed.1, due_at);
                (Some(lead), DeliveryState::Pending, due_at)
            }
            Turn::Repeats(lead) => (Some(lead), DeliveryState::Superseded, due_at),
        };
        self.members.insert(placed, Member { group, content, lead });
        (state, due_at)
    }

    fn hurry(&mut self, number: Number, channel: &ChannelName, due_at: Timestamp) {
        let Some(delivery) = self.delivery(number, channel) else { return };
        let id = delivery.id.clone();
        let is_later = |delivery: &Delivery| delivery.due_at > due_at;
        self.change(&id, is_later, |delivery| delivery.due_at = due_at);
    }

    /// The members of the group on the channel, the newest first, with their deliveries.
    fn group_of<'a>(
        &'a self,
        channel: &'a ChannelName,
        group: &'a str,
    ) -> impl Iterator<Item = (Number, &'a Member, &'a Delivery)> {
        let fits = move |(place, member): &(&Placed, &Member)| {
            place.1 == *channel && member.group == group
        };
        let found = self.members.iter().rev().filter(fits);
        found.filter_map(|((number, channel), member)| {
            Some((*number, member, self.delivery(*number, channel)?))
        })
    }

    /// The last message of the group in each state.
    fn tellings(&self, placed: &Placed, grouped: &Grouped) -> Vec<Telling<Number>> {
        let last = |state| {
            let mut group = self.group_of(&placed.1, &grouped.group);
            let found = group.find(|(_, member, it)| member.lead.is_none() && it.state == state)?;
            Some(telling(placed.0, found.0, found.2))
        };
        Telling::<Number>::STATES.into_iter().filter_map(last).collect()
    }

    /// The newest delivery that says the same and is no repeat, with where its message stands.
    fn same(&self, placed: &Placed, grouped: &Grouped) -> Option<Telling<Number>> {
        let channel = &placed.1;
        let (number, member, own) = self.group_of(channel, &grouped.group).find(|found| {
            found.1.content == grouped.content && found.2.state != DeliveryState::Superseded
        })?;
        let lead = member.lead.and_then(|lead| self.delivery(lead, channel));
        Some(telling(placed.0, number, lead.unwrap_or(own)))
    }

    /// Whether no earlier message of the group is under way to the channel.
    pub(super) fn is_first_of_group(&self, number: Number, channel: &ChannelName) -> bool {
        let Some(member) = self.members.get(&(number, channel.clone())) else { return true };
        let mut members = self.group_of(channel, &member.group);
        members.all(|(other, member, delivery)| {
            other >= number || member.lead.is_some() || delivery.state != DeliveryState::InFlight
        })
    }

    /// The deliveries that are told together with this one, itself among them, in order.
    fn told_with(&self, number: Number, channel: &ChannelName) -> Vec<(Number, &Member)> {
        let is_told = |place: &Placed, member: &Member| {
            let delivery = self.delivery(place.0, channel);
            let is_repeat = delivery.is_none_or(|it| it.state == DeliveryState::Superseded);
            place.1 == *channel
                && (place.0 == number || (member.lead == Some(number) && !is_repeat))
        };
        let told = self.members.iter().filter(|(place, member)| is_told(place, member));
        told.map(|(place, member)| (place.0, member)).collect()
    }

    /// What is told together with a delivery, if there is more than it.
    pub(super) fn digest(&self, number: Number, channel: &ChannelName) -> Option<Digest> {
        let told = self.told_with(number, channel);
        if told.len() < 2 {
            return None;
        }
        let events = || told.iter().filter_map(|(number, _)| Some(&self.events.get(number)?.event));
        let mut by_content: BTreeMap<&str, (u64, Number)> = BTreeMap::new();
        for (number, member) in &told {
            let (count, latest) = by_content.entry(&member.content).or_default();
            (*count, *latest) = (*count + 1, *number);
        }
        let different = by_content.len();
        let mut texts: Vec<_> = by_content.into_values().collect();
        texts.sort_unstable_by_key(|(_, latest)| *latest);
        texts.drain(..texts.len().saturating_sub(DIGEST_TEXTS));
        let text = |(count, number)| Some((count, self.events.get(&number)?.event.clone()));
        Some(Digest {
            count: told.len() as u64,
            different: different as u64,
            first_at: events().map(|event| event.at).min().unwrap_or_default(),
            last_at: events().map(|event| event.at).max().unwrap_or_default(),
            level: events().map(|event| event.level).max().unwrap_or(Level::Debug),
            texts: texts.into_iter().filter_map(text).collect(),
        })
    }

    /// Lets what was told together with a delivery end as it did.
    pub(super) fn settle_joined(&mut self, id: &DeliveryId) {
        let Some(told) = self.find(id).filter(|it| it.state.is_settled()) else { return };
        let (state, due_at, maybe_repeated) = (told.state, told.due_at, told.maybe_repeated);
        let settle = |it: &mut Delivery| {
            (it.state, it.due_at, it.maybe_repeated) = (state, due_at, maybe_repeated);
        };
        for id in self.joined(id, DeliveryState::Pending) {
            self.change(&id, |_| true, settle);
        }
    }

    /// Tells, in one message of their own, the repeats of what was told with a delivery that was given up at `at`.
    pub(super) fn tell_repeats(&mut self, id: &DeliveryId, at: Timestamp) {
        let Some(number) = self.by_id.get(&id.event) else { return };
        let told: Vec<Number> =
            self.told_with(*number, &id.channel).into_iter().map(|(number, _)| number).collect();
        let repeats: Vec<(Number, DeliveryId, Timestamp)> = self
            .members
            .iter()
            .filter(|((_, channel), member)| {
                *channel == id.channel && member.lead.is_some_and(|lead| told.contains(&lead))
            })
            .filter_map(|((number, channel), _)| Some((*number, self.delivery(*number, channel)?)))
            .filter(|(_, delivery)| delivery.state == DeliveryState::Superseded)
            .map(|(number, delivery)| (number, delivery.id.clone(), delivery.due_at))
            .collect();
        let first = repeats.first().map(|(number, ..)| *number);
        let Some(due_at) = repeats.iter().map(|(.., due_at)| *due_at).min() else { return };
        let due_at = group::told_after_all(at, due_at);
        for (number, id, _) in repeats {
            if let Some(member) = self.members.get_mut(&(number, id.channel.clone())) {
                member.lead = first.filter(|first| *first != number);
            }
            let tell = |it: &mut Delivery| {
                (it.state, it.due_at) = (DeliveryState::Pending, due_at);
            };
            self.change(&id, |_| true, tell);
        }
    }

    /// Whether a delivery repeats what is not settled yet.
    pub(super) fn repeats_what_is_open(&self, delivery: &Delivery) -> bool {
        let told = self.lead(&delivery.id).and_then(|lead| {
            self.find(&DeliveryId { event: lead, channel: delivery.id.channel.clone() })
        });
        delivery.state == DeliveryState::Superseded && told.is_some_and(|it| !it.state.is_settled())
    }

    /// The delivery whose message tells that of `id` too, else `id` itself.
    pub(super) fn message_of(&self, id: &DeliveryId) -> DeliveryId {
        let is_told = self.find(id).is_some_and(|it| it.state != DeliveryState::Superseded);
        let lead = self.lead(id).filter(|_| is_told);
        DeliveryId { event: lead.unwrap_or(id.event), channel: id.channel.clone() }
    }

    /// Lets what was given up together with a delivery wait for its next attempt.
    pub(super) fn reopen_joined(&mut self, id: &DeliveryId) {
        for id in self.joined(id, DeliveryState::GivenUp) {
            self.change(&id, |_| true, |it| it.state = DeliveryState::Pending);
        }
    }

    /// The deliveries in `state` that are told together with `id`.
    fn joined(&self, id: &DeliveryId, state: DeliveryState) -> Vec<DeliveryId> {
        let Some(number) = self.by_id.get(&id.event) else { return Vec::new() };
        let told = self.told_with(*number, &id.channel).into_iter();
        told.filter(|(other, _)| other != number)
            .filter_map(|(other, _)| self.delivery(other, &id.channel))
            .filter(|delivery| delivery.state == state)
            .map(|delivery| delivery.id.clone())
            .collect()
    }
}

fn telling(now: Number, key: Number, delivery: &Delivery) -> Telling<Number> {
    Telling {
        key,
        state: delivery.state,
        was_tried: delivery.attempt_count > 0 || !delivery.attempts.is_empty(),
        due_at: delivery.due_at,
        events_since: now.abs_diff(key),
    }
}
