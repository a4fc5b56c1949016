//! What the steps of a run do to each other's deliveries.

use deskbell_core::{
    delivery::{DeliveryState, Replaces},
    run::Phase,
};

use super::*;

async fn update(journal: &dyn Journal, number: u64) {
    accepted(journal, accept(step(number, "r", Phase::Update)).replacing(&["a"], UPDATES)).await;
}

async fn send(journal: &dyn Journal, seconds: i64) -> u64 {
    let due = claim(journal, "a", 1, seconds).await.due.remove(0);
    record(journal, &due, sent(None)).await;
    number(due.id.event)
}

pub(super) async fn in_place(journal: Fresh) {
    let journal = &*journal;
    accepted(journal, accept(step(1, "r", Phase::Start)).to(&["a"])).await;
    assert_eq!(send(journal, 1).await, 1);
    for number in 2..=8 {
        update(journal, number).await;
    }
    for number in 2..=7 {
        assert_eq!(state(journal, number, "a").await, DeliveryState::Superseded);
    }
    let last = delivery(journal, 8, "a").await;
    assert_eq!((last.state, last.due_at), (DeliveryState::Pending, at(11)));
    // The update that takes the place also takes the time, so that a busy run does not starve.
    for number in 12..=14 {
        update(journal, number).await;
        assert_eq!(delivery(journal, number, "a").await.due_at, at(11));
    }
    assert_eq!(send(journal, 14).await, 14);
    assert_eq!(claim(journal, "a", 9, 999).await.due.len(), 0);
}

pub(super) async fn interval(journal: Fresh) {
    let journal = &*journal;
    update(journal, 1).await;
    assert_eq!(delivery(journal, 1, "a").await.due_at, at(1), "nothing went before");
    let first = claim(journal, "a", 1, 1).await.due.remove(0);
    update(journal, 2).await;
    assert_eq!(delivery(journal, 1, "a").await.state, DeliveryState::InFlight);
    assert_eq!(delivery(journal, 2, "a").await.due_at, at(11), "one that is being tried counts");
    record(journal, &first, retry_at(40)).await;
    update(journal, 3).await;
    assert_eq!(state(journal, 1, "a").await, DeliveryState::Pending, "it was tried: it stays");
    assert_eq!(delivery(journal, 3, "a").await.due_at, at(11), "it takes the time of the second");
    assert_eq!(numbers(&claim(journal, "a", 9, 39).await), NONE, "the first still holds it back");
    assert_eq!(send(journal, 40).await, 1);
    assert_eq!(send(journal, 40).await, 3);
    update(journal, 12).await;
    assert_eq!(delivery(journal, 12, "a").await.due_at, at(21));
    assert_eq!(send(journal, 21).await, 12);
    update(journal, 90).await;
    assert_eq!(delivery(journal, 90, "a").await.due_at, at(90), "the interval is long over");
    let due = claim(journal, "a", 1, 90).await.due.remove(0);
    record(journal, &due, given_up()).await;
    update(journal, 91).await;
    assert_eq!(delivery(journal, 91, "a").await.due_at, at(100), "one that was given up counts");

    // A start counts even before it is tried, and is never superseded.
    accepted(journal, accept(step(100, "s", Phase::Start)).to(&["a"])).await;
    for number in [101, 102] {
        let event = step(number, "s", Phase::Update);
        accepted(journal, accept(event).replacing(&["a"], UPDATES)).await;
    }
    assert_eq!(state(journal, 100, "a").await, DeliveryState::Pending);
    assert_eq!(delivery(journal, 102, "a").await.due_at, at(110));
}

pub(super) async fn at_once(journal: Fresh) {
    let journal = &*journal;
    accepted(journal, accept(step(1, "r", Phase::Start)).to(&["a"])).await;
    update(journal, 2).await;
    let end = accept(step(3, "r", Phase::End)).replacing(&["a"], Replaces::UpdatesAtOnce);
    accepted(journal, end).await;
    assert_eq!(state(journal, 1, "a").await, DeliveryState::Pending);
    assert_eq!(state(journal, 2, "a").await, DeliveryState::Superseded);
    assert_eq!(delivery(journal, 3, "a").await.due_at, at(3));
    assert_eq!(send(journal, 3).await, 1);
    assert_eq!(send(journal, 3).await, 3);
}

pub(super) async fn within_a_line(journal: Fresh) {
    let journal = &*journal;
    let updates = |number, name| accept(step(number, name, Phase::Update));
    accepted(journal, updates(1, "r").replacing(&["a", "b"], UPDATES)).await;
    accepted(journal, updates(2, "other").replacing(&["a"], UPDATES)).await;
    accepted(journal, accept(notice(3)).to(&["a"])).await;
    accepted(journal, updates(4, "r").to(&["a"])).await;
    assert_eq!(state(journal, 1, "a").await, DeliveryState::Pending, "it replaces nothing");
    accepted(journal, updates(5, "r").replacing(&["a"], UPDATES)).await;
    assert_eq!(state(journal, 1, "a").await, DeliveryState::Superseded);
    assert_eq!(state(journal, 4, "a").await, DeliveryState::Superseded);
    assert_eq!(delivery(journal, 5, "a").await.due_at, at(1), "the earliest time of those");
    assert_eq!(state(journal, 1, "b").await, DeliveryState::Pending, "another channel");
    assert_eq!(state(journal, 2, "a").await, DeliveryState::Pending, "another run");
    assert_eq!(state(journal, 3, "a").await, DeliveryState::Pending, "no run at all");
    // Where there is no run there is nothing to replace.
    accepted(journal, accept(notice(6)).replacing(&["a"], UPDATES)).await;
    assert_eq!(delivery(journal, 6, "a").await.due_at, at(6));
    assert_eq!(state(journal, 3, "a").await, DeliveryState::Pending);
}

pub(super) async fn hurries(journal: Fresh) {
    let journal = &*journal;
    let start = accept(step(1, "r", Phase::Start)).due(&["a", "b"], at(500), Replaces::Nothing);
    accepted(journal, start).await;
    let error = accept(step(3, "r", Phase::Error)).replacing(&["a"], Replaces::UpdatesAtOnce);
    accepted(journal, error).await;
    assert_eq!(delivery(journal, 1, "a").await.due_at, at(3));
    assert_eq!(delivery(journal, 1, "b").await.due_at, at(500));
    assert_eq!(send(journal, 3).await, 1);
    assert_eq!(send(journal, 3).await, 3);
}
