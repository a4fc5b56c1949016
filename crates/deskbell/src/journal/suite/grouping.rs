//! What is told together, and what is not told again.

use deskbell_core::{Event, Level, delivery::DeliveryState, group::MESSAGE_EVENTS};

use super::*;
use crate::journal::{Ack, DeliveryQuery, Write};

const GROUP: (&str, &str) = ("g", "x");

async fn report(journal: &dyn Journal, number: u64, due: i64, said: (&str, &str)) {
    accepted(journal, accept(notice(number)).grouped("a", at(due), said, None)).await;
}

pub(super) async fn one_message(journal: Fresh) {
    let journal = &*journal;
    for number in 1..=4 {
        let said = if number == 3 { ("g", "y") } else { GROUP };
        report(journal, number, 10, said).await;
    }
    report(journal, 5, 10, ("other", "x")).await;
    let late = Event { level: Level::Alert, ..notice(6) };
    accepted(journal, accept(late).grouped("a", at(16), GROUP, None)).await;
    assert_eq!(numbers(&claim(journal, "a", 9, 9).await), NONE);
    let claimed = claim(journal, "a", 9, 10).await;
    assert_eq!(numbers(&claimed), [1, 5]);
    assert_eq!(claimed.due[1].digest, None, "it is alone");
    let digest = claimed.due[0].digest.clone().unwrap();
    assert_eq!((digest.count, digest.different, digest.level), (5, 2, Level::Alert));
    assert_eq!((digest.first_at, digest.last_at), (at(1), at(6)));
    let texts: Vec<_> = digest.texts.iter().map(|(count, it)| (*count, number(it.id))).collect();
    assert_eq!(texts, [(1, 3), (4, 6)]);
    assert_eq!(state(journal, 2, "a").await, DeliveryState::Pending);
    let joined = delivery(journal, 2, "a").await;
    assert_eq!((joined.lead, joined.others), (Some(id(1)), Some(0)));
    let first = delivery(journal, 1, "a").await;
    assert_eq!((first.lead, first.others), (None, Some(4)));
    let pending =
        DeliveryQuery { state: Some(DeliveryState::Pending), limit: 9, ..DeliveryQuery::default() };
    assert_eq!(journal.deliveries(pending).await.unwrap().len(), 4);
    record(journal, &claimed.due[0], sent(Some("m"))).await;
    for number in [1, 2, 3, 4, 6] {
        assert_eq!(state(journal, number, "a").await, DeliveryState::Sent);
    }
    report(journal, 7, 12, GROUP).await;
    let next = delivery(journal, 7, "a").await;
    assert_eq!((next.due_at, next.lead), (at(20), None), "the group has its next turn then");
}

pub(super) async fn closed(journal: Fresh) {
    let journal = &*journal;
    for number in 1..=2 {
        report(journal, number, 3, GROUP).await;
    }
    let tried = claim(journal, "a", 9, 4).await.due.remove(0);
    report(journal, 4, 5, GROUP).await;
    assert_eq!(delivery(journal, 4, "a").await.due_at, at(14), "ten seconds after the attempt");
    assert_eq!(numbers(&claim(journal, "a", 9, 14).await), NONE, "the first is under way");
    record(journal, &tried, retry_at(40)).await;
    report(journal, 6, 7, GROUP).await;
    assert_eq!(delivery(journal, 6, "a").await.lead, Some(id(4)), "what was tried takes no more");
    let next = claim(journal, "a", 9, 39).await.due.remove(0);
    assert_eq!(number(next.id.event), 4, "what waits for its next attempt holds up nothing");
    record(journal, &next, sent(None)).await;
    let again = claim(journal, "a", 9, 40).await.due.remove(0);
    assert_eq!((number(again.id.event), again.attempt), (1, 2));
    assert_eq!(again.digest, tried.digest, "the same in every attempt");
}

/// The first and the second are told together.
pub(super) async fn given_up_together(journal: Fresh) {
    let journal = &*journal;
    for number in 1..=2 {
        report(journal, number, 3, GROUP).await;
    }
    let tried = claim(journal, "a", 9, 3).await.due.remove(0);
    put(journal, Write::Recover { at: at(4) }).await;
    assert_eq!(delivery(journal, 2, "a").await.state, DeliveryState::Pending);
    let again = claim(journal, "a", 9, 4).await.due.remove(0);
    assert_eq!((&again.digest, again.maybe_repeated), (&tried.digest, true));
    record(journal, &again, given_up()).await;
    for number in 1..=2 {
        let told = delivery(journal, number, "a").await;
        assert_eq!((told.state, told.maybe_repeated), (DeliveryState::GivenUp, true));
    }
    // Whichever of them is retried, the message is, and it is the same.
    for number in [2, 1] {
        let retry = Write::Retry { delivery: delivery_id(number, "a"), at: at(41) };
        assert_eq!(put(journal, retry.clone()).await, Ack::Done(1));
        assert_eq!(put(journal, retry).await, Ack::Done(0), "it is due again");
        report(journal, 6 + number, 41, GROUP).await;
        assert_ne!(delivery(journal, 6 + number, "a").await.lead, Some(id(1)), "it takes no more");
        let due = claim(journal, "a", 9, 41).await.due.into_iter();
        let due = due.into_iter().find(|due| due.id.event == id(1)).unwrap();
        assert_eq!(due.digest, tried.digest);
        record(journal, &due, given_up()).await;
    }
    put(journal, Write::Retry { delivery: delivery_id(2, "a"), at: at(50) }).await;
    put(journal, Write::Prune { before: at(3), limit: 9 }).await;
    assert_eq!(state(journal, 2, "a").await, DeliveryState::Pending, "it is still to be told");
}

/// So many events after its first, a message takes no more.
pub(super) async fn full(journal: Fresh) {
    let journal = &*journal;
    report(journal, 1, 500, GROUP).await;
    let between = (2..=MESSAGE_EVENTS).map(|number| accept(notice(number)).write());
    journal.commit(between.collect()).await.unwrap();
    let last = MESSAGE_EVENTS + 1;
    report(journal, last, 500, GROUP).await;
    assert_eq!(delivery(journal, last, "a").await.lead, None);
    report(journal, last + 1, 500, GROUP).await;
    assert_eq!(delivery(journal, last + 1, "a").await.lead, Some(id(last)));
    assert_eq!(numbers(&claim(journal, "a", 9, 500).await), [1, last]);
}

pub(super) async fn hurried(journal: Fresh) {
    let journal = &*journal;
    report(journal, 1, 500, GROUP).await;
    report(journal, 2, 500, GROUP).await;
    report(journal, 3, 13, GROUP).await;
    let claimed = claim(journal, "a", 9, 13).await;
    assert_eq!(numbers(&claimed), [1]);
    assert_eq!(claimed.due[0].digest.as_ref().map(|digest| digest.count), Some(3));
}

pub(super) async fn repeats(journal: Fresh) {
    let journal = &*journal;
    let tell = async |number: u64, said| {
        let due_at = at(number.cast_signed());
        accepted(journal, accept(notice(number)).grouped("a", due_at, said, Some(60))).await;
        delivery(journal, number, "a").await
    };
    tell(1, GROUP).await;
    let first = claim(journal, "a", 9, 1).await.due.remove(0);
    let repeat = tell(2, GROUP).await;
    assert_eq!((repeat.state, repeat.lead), (DeliveryState::Superseded, Some(id(1))));
    record(journal, &first, sent(None)).await;
    assert_eq!(tell(30, GROUP).await.state, DeliveryState::Superseded);
    assert_eq!(tell(31, ("g", "y")).await.state, DeliveryState::Pending, "it says something else");
    assert_eq!(tell(32, ("h", "x")).await.state, DeliveryState::Pending, "it is of another group");
    let claimed = claim(journal, "a", 9, 32).await;
    assert_eq!(numbers(&claimed), [31, 32]);
    for due in &claimed.due {
        record(journal, due, given_up()).await;
    }
    assert_eq!(tell(33, ("h", "x")).await.state, DeliveryState::Pending, "it was not told");
    assert_eq!(tell(60, GROUP).await.state, DeliveryState::Superseded);
    assert_eq!(tell(61, GROUP).await.state, DeliveryState::Pending, "the time is over");
}

/// What stood for others was never told: they are told after all, together.
pub(super) async fn repeats_of_the_lost(journal: Fresh) {
    let journal = &*journal;
    let tell = async |number: u64, due: i64| {
        accepted(journal, accept(notice(number)).grouped("a", at(due), GROUP, Some(60))).await;
    };
    tell(1, 1).await;
    let first = claim(journal, "a", 9, 1).await.due.remove(0);
    record(journal, &first, retry_at(20)).await;
    for (number, due) in [(2, 2), (3, 3), (4, 90)] {
        tell(number, due).await;
        assert_eq!(state(journal, number, "a").await, DeliveryState::Superseded);
    }
    put(journal, Write::Prune { before: at(9), limit: 9 }).await;
    let again = claim(journal, "a", 9, 20).await.due.remove(0);
    record(journal, &again, given_up()).await;
    assert_eq!(state(journal, 1, "a").await, DeliveryState::GivenUp);
    for number in 2..=4 {
        let repeat = delivery(journal, number, "a").await;
        assert_eq!((repeat.state, repeat.due_at), (DeliveryState::Pending, at(50)), "{number}");
    }
    tell(5, 55).await;
    let told = claim(journal, "a", 9, 55).await;
    assert_eq!(numbers(&told), [2]);
    let digest = told.due[0].digest.clone().unwrap();
    assert_eq!((digest.count, digest.different), (4, 1));
    record(journal, &told.due[0], given_up()).await;
    for number in 2..=5 {
        assert_eq!(state(journal, number, "a").await, DeliveryState::GivenUp);
    }
    let retry = Write::Retry { delivery: delivery_id(3, "a"), at: at(60) };
    assert_eq!(put(journal, retry).await, Ack::Done(1), "it can be tried again by hand");
}

/// What was to wait until the end of quiet hours waits for it also when it is told after all.
pub(super) async fn held_repeats(journal: Fresh) {
    let journal = &*journal;
    let tell = async |number: u64, due: i64| {
        accepted(journal, accept(notice(number)).grouped("a", at(due), GROUP, Some(60))).await;
    };
    tell(1, 1).await;
    let first = claim(journal, "a", 9, 1).await.due.remove(0);
    tell(2, 500).await;
    record(journal, &first, given_up()).await;
    assert_eq!(delivery(journal, 2, "a").await.due_at, at(500));
    assert_eq!(numbers(&claim(journal, "a", 9, 499).await), NONE);
    assert_eq!(numbers(&claim(journal, "a", 9, 500).await), [2]);
}
