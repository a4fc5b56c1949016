//! What claiming and recording promise.

use std::collections::HashSet;

use deskbell_core::{
    delivery::{DeliveryState, Outcome, Replaces},
    run::Phase,
};

use super::*;
use crate::journal::{ATTEMPTS_KEPT, Ack, AttemptRecord, Claim, RetryRecord, Write};

pub(super) async fn marks(journal: Fresh) {
    let journal = &*journal;
    accepted(journal, accept(notice(1)).to(&["a", "b"])).await;
    let claimed = claim(journal, "a", 5, 9).await;
    assert_eq!(numbers(&claimed), [1]);
    let due = &claimed.due[0];
    assert_eq!((due.attempt, due.maybe_repeated, &due.previous), (1, false, &Vec::new()));
    assert_eq!((&due.id, &due.event), (&delivery_id(1, "a"), &notice(1)));
    let marked = delivery(journal, 1, "a").await;
    assert_eq!((marked.state, marked.attempt_count), (DeliveryState::InFlight, 1));
    assert_eq!(state(journal, 1, "b").await, DeliveryState::Pending);
    assert_eq!(numbers(&claim(journal, "a", 5, 9).await), NONE);
    record(journal, due, retry_at(60)).await;
    assert_eq!(claim(journal, "a", 5, 61).await.due[0].attempt, 2);
}

pub(super) async fn room_time_order(journal: Fresh) {
    let journal = &*journal;
    for (number, due_at) in [(1, 30), (2, 10), (3, 20), (4, 10), (5, 50)] {
        let channels = &["a", "b"];
        accepted(journal, accept(notice(number)).due(channels, at(due_at), Replaces::Nothing))
            .await;
    }
    assert_eq!(claim(journal, "a", 9, 9).await.next_at, Some(at(10)));
    let none = claim(journal, "unknown", 9, 99).await;
    assert_eq!((none.due.len(), none.next_at), (0, None));

    let both =
        Claim { now: at(20), room: vec![(channel("b"), 1), (channel("a"), 2), (channel("c"), 3)] };
    let claimed = journal.claim(both).await.unwrap();
    let ids: Vec<_> = claimed.due.iter().map(|due| due.id.clone()).collect();
    assert_eq!(ids, [delivery_id(2, "b"), delivery_id(2, "a"), delivery_id(4, "a")]);
    assert_eq!(claimed.next_at, Some(at(30)), "what is due already is not waiting for its time");

    assert_eq!(numbers(&claim(journal, "a", 0, 99).await), NONE);
    assert_eq!(numbers(&claim(journal, "a", 9, 49).await), [3, 1]);
    assert_eq!(claim(journal, "a", 9, 49).await.next_at, Some(at(50)));
    assert_eq!(numbers(&claim(journal, "b", 9, 50).await), [4, 3, 1, 5]);
    assert_eq!(claim(journal, "b", 9, 50).await.next_at, None);
}

pub(super) async fn concurrent(journal: Fresh) {
    for number in 0..100 {
        accepted(&*journal, accept(notice(number)).to(&["a"])).await;
    }
    let mut claimers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let journal = Arc::clone(&journal);
        claimers.spawn(async move {
            let mut mine = Vec::new();
            loop {
                let claimed = claim(&*journal, "a", 3, 200).await;
                if claimed.due.is_empty() {
                    return mine;
                }
                mine.extend(numbers(&claimed));
            }
        });
    }
    let taken: Vec<u64> = claimers.join_all().await.into_iter().flatten().collect();
    assert_eq!(taken.len(), 100);
    assert_eq!(taken.into_iter().collect::<HashSet<_>>().len(), 100, "each is taken once");
}

pub(super) async fn outcomes(journal: Fresh) {
    let journal = &*journal;
    accepted(journal, accept(notice(1)).to(&["a", "b", "c"])).await;
    let take = async |name| claim(journal, name, 1, 9).await.due.remove(0);

    assert_eq!(record(journal, &take("a").await, sent(Some("m1"))).await, Ack::Done(1));
    let kept = delivery(journal, 1, "a").await;
    assert_eq!(kept.state, DeliveryState::Sent);
    assert_eq!(kept.receipts, [receipt(Some("m1"))]);
    assert_eq!(kept.attempts, [AttemptRecord { number: 1, at: at(50), error: None }]);

    record(journal, &take("b").await, retry_at(60)).await;
    let kept = delivery(journal, 1, "b").await;
    assert_eq!((kept.state, kept.due_at), (DeliveryState::Pending, at(60)));
    let error = Some("destination answered 503".to_owned());
    assert_eq!(kept.attempts, [AttemptRecord { number: 1, at: at(50), error }]);
    assert_eq!(claim(journal, "b", 1, 59).await.next_at, Some(at(60)));

    record(journal, &take("c").await, given_up()).await;
    let kept = delivery(journal, 1, "c").await;
    assert_eq!((kept.state, kept.receipts), (DeliveryState::GivenUp, vec![]));
    assert_eq!(kept.attempts[0].error.as_deref(), Some("destination answered 401"));

    accepted(journal, accept(notice(2)).to(&["a"])).await;
    record(journal, &take("a").await, sent(None)).await;
    assert_eq!(delivery(journal, 2, "a").await.state, DeliveryState::Sent);
}

pub(super) async fn arrived(journal: Fresh) {
    let journal = &*journal;
    accepted(journal, accept(notice(1)).to(&["a"])).await;
    let due = claim(journal, "a", 1, 9).await.due.remove(0);
    assert_eq!(due.arrived, []);
    let arrived = vec![receipt(Some("m1")), receipt(None)];
    let error = "destination answered 503".to_owned();
    let outcome = Outcome::RetryAt { at: at(10), error: error.clone(), arrived: arrived.clone() };
    record(journal, &due, outcome).await;
    assert_eq!(delivery(journal, 1, "a").await.receipts, arrived);
    let due = claim(journal, "a", 1, 10).await.due.remove(0);
    assert_eq!(due.arrived, arrived);
    // A crash while it is in flight, and a retry by hand after it was given up, forget none of it.
    put(journal, Write::Recover { at: at(11) }).await;
    let due = claim(journal, "a", 1, 11).await.due.remove(0);
    assert_eq!(due.arrived, arrived);
    record(journal, &due, Outcome::GivenUp { error, arrived: arrived.clone() }).await;
    put(journal, Write::Retry { delivery: delivery_id(1, "a"), at: at(12) }).await;
    let due = claim(journal, "a", 1, 12).await.due.remove(0);
    assert_eq!(due.arrived, arrived);
}

pub(super) async fn late_outcomes(journal: Fresh) {
    let journal = &*journal;
    accepted(journal, accept(notice(1)).to(&["a"])).await;
    let first = claim(journal, "a", 1, 9).await.due.remove(0);
    record(journal, &first, retry_at(60)).await;
    assert_eq!(record(journal, &first, sent(None)).await, Ack::Stale, "recorded already");
    let second = claim(journal, "a", 1, 60).await.due.remove(0);
    assert_eq!(record(journal, &first, sent(None)).await, Ack::Stale, "an earlier attempt");
    assert_eq!(state(journal, 1, "a").await, DeliveryState::InFlight);
    put(journal, Write::Recover { at: at(70) }).await;
    assert_eq!(record(journal, &second, sent(None)).await, Ack::Stale, "recovered meanwhile");
    let kept = delivery(journal, 1, "a").await;
    assert_eq!((kept.state, kept.attempts.len()), (DeliveryState::Pending, 1));

    let mut unknown = first;
    unknown.id = delivery_id(1, "other");
    assert_eq!(record(journal, &unknown, sent(None)).await, Ack::Stale);
    unknown.id = delivery_id(99, "a");
    assert_eq!(record(journal, &unknown, sent(None)).await, Ack::Stale);
}

pub(super) async fn last_attempts(journal: Fresh) {
    let journal = &*journal;
    accepted(journal, accept(notice(1)).to(&["a"])).await;
    for _ in 0..ATTEMPTS_KEPT + 3 {
        let due = claim(journal, "a", 1, 100).await.due.remove(0);
        record(journal, &due, retry_at(100)).await;
    }
    let kept = delivery(journal, 1, "a").await;
    assert_eq!(kept.attempt_count, 23);
    let numbers: Vec<_> = kept.attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, (4..=23).collect::<Vec<_>>());
}

pub(super) async fn retry(journal: Fresh) {
    let journal = &*journal;
    accepted(journal, accept(notice(1)).to(&["a"])).await;
    let retry = || Write::Retry { delivery: delivery_id(1, "a"), at: at(80) };
    assert_eq!(put(journal, retry()).await, Ack::Done(0), "it is not given up");
    let due = claim(journal, "a", 1, 9).await.due.remove(0);
    record(journal, &due, given_up()).await;
    assert_eq!(put(journal, retry()).await, Ack::Done(1));
    let kept = delivery(journal, 1, "a").await;
    assert_eq!((kept.state, kept.due_at, kept.attempt_count), (DeliveryState::Pending, at(80), 1));
    assert_eq!(kept.attempts.len(), 1, "what happened before stays to be seen");
    assert_eq!(kept.retries, [RetryRecord { after: 1, at: at(80) }]);
    assert_eq!(numbers(&claim(journal, "a", 1, 79).await), NONE);
    let due = claim(journal, "a", 1, 80).await.due.remove(0);
    assert_eq!(due.attempt, 1, "it may fail as often as before");
    assert_eq!(record(journal, &due, sent(None)).await, Ack::Done(1));
    let kept = delivery(journal, 1, "a").await;
    let numbers: Vec<_> = kept.attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!((kept.attempt_count, numbers), (2, vec![1, 2]));
    let unknown = Write::Retry { delivery: delivery_id(7, "a"), at: at(80) };
    assert_eq!(put(journal, unknown).await, Ack::Done(0));
}

pub(super) async fn recover(journal: Fresh) {
    let journal = &*journal;
    for number in 1..=4 {
        accepted(journal, accept(notice(number)).to(&["a"])).await;
    }
    let claimed = claim(journal, "a", 3, 9).await;
    record(journal, &claimed.due[0], sent(None)).await;
    assert_eq!(put(journal, Write::Recover { at: at(70) }).await, Ack::Done(2));
    assert_eq!(put(journal, Write::Recover { at: at(71) }).await, Ack::Done(0));
    let kept = delivery(journal, 2, "a").await;
    assert_eq!((kept.state, kept.due_at), (DeliveryState::Pending, at(70)));
    assert!(kept.maybe_repeated);
    let again = claim(journal, "a", 9, 70).await;
    assert_eq!(numbers(&again), [4, 2, 3]);
    let seen: Vec<_> = again.due.iter().map(|due| (due.attempt, due.maybe_repeated)).collect();
    assert_eq!(seen, [(1, false), (2, true), (2, true)]);
    record(journal, &again.due[1], sent(None)).await;
    assert!(delivery(journal, 2, "a").await.maybe_repeated, "a repeat stays to be seen");
    assert!(!delivery(journal, 1, "a").await.maybe_repeated);
}

pub(super) async fn run_order(journal: Fresh) {
    let journal = &*journal;
    accepted(journal, accept(step(1, "r", Phase::Start)).to(&["a", "b"])).await;
    accepted(journal, accept(step(2, "r", Phase::Update)).to(&["a", "b"])).await;
    accepted(journal, accept(step(3, "r", Phase::End)).to(&["a", "b"])).await;
    accepted(journal, accept(step(4, "other", Phase::Start)).to(&["a"])).await;
    accepted(journal, accept(notice(5)).to(&["a"])).await;

    let first = claim(journal, "a", 9, 9).await;
    assert_eq!(numbers(&first), [1, 4, 5], "one of each run, and what belongs to none");
    assert_eq!(numbers(&claim(journal, "b", 9, 9).await), [1], "each channel for itself");
    assert_eq!(numbers(&claim(journal, "a", 9, 9).await), NONE, "the first is in flight");
    record(journal, &first.due[0], retry_at(60)).await;
    assert_eq!(numbers(&claim(journal, "a", 9, 59).await), NONE, "the first waits for its time");
    let again = claim(journal, "a", 9, 60).await;
    assert_eq!(numbers(&again), [1]);
    record(journal, &again.due[0], given_up()).await;
    let second = claim(journal, "a", 9, 60).await;
    assert_eq!(numbers(&second), [2], "what is given up holds nothing back");
    record(journal, &second.due[0], sent(None)).await;
    assert_eq!(numbers(&claim(journal, "a", 9, 60).await), [3]);
}

pub(super) async fn previous(journal: Fresh) {
    let journal = &*journal;
    for (number, phase) in [(1, Phase::Start), (2, Phase::Update), (3, Phase::Update)] {
        accepted(journal, accept(step(number, "r", phase)).to(&["a", "b"])).await;
    }
    accepted(journal, accept(step(4, "r", Phase::End)).to(&["a"])).await;
    accepted(journal, accept(step(5, "other", Phase::Start)).to(&["a"])).await;
    let mut receipts = Vec::new();
    for outcome in [sent(Some("m1")), sent(None), given_up(), sent(Some("m4"))] {
        let claimed = claim(journal, "a", 9, 9).await;
        let due = claimed.due.iter().find(|due| due.id.event != id(5)).unwrap();
        receipts.push(due.previous.iter().find_map(|piece| piece.receipt.message_id.clone()));
        record(journal, due, outcome).await;
        let other = claimed.due.iter().find(|due| due.id.event == id(5));
        assert!(other.is_none_or(|due| due.previous.is_empty()), "another run");
    }
    let m1 = Some("m1".to_owned());
    assert_eq!(receipts, [None, m1.clone(), m1.clone(), m1]);
    let due = claim(journal, "b", 9, 9).await.due.remove(0);
    assert_eq!(due.previous, [], "another channel");
    // A receipt of a later step is none of an earlier one, even where that one is tried again afterwards.
    let again = Write::Retry { delivery: delivery_id(3, "a"), at: at(9) };
    assert_eq!(put(journal, again).await, Ack::Done(1));
    let due = claim(journal, "a", 9, 9).await.due.remove(0);
    assert_eq!(due.previous, [receipt(Some("m1"))]);
}

pub(super) async fn reschedule(journal: Fresh) {
    let journal = &*journal;
    for number in 1..=2 {
        let held = accept(notice(number)).due(&["a", "b"], at(500), Replaces::Nothing);
        accepted(journal, held).await;
    }
    accepted(journal, accept(notice(3)).due(&["a"], at(501), Replaces::Nothing)).await;
    accepted(journal, accept(notice(4)).to(&["a"])).await;
    let tried = claim(journal, "a", 1, 4).await.due.remove(0);
    record(journal, &tried, retry_at(500)).await;
    let reschedule = |name: Option<&str>, from, to| Write::Reschedule {
        channel: name.map(channel),
        from: at(from),
        to: at(to),
    };
    assert_eq!(put(journal, reschedule(Some("a"), 500, 20)).await, Ack::Done(2));
    assert_eq!(put(journal, reschedule(Some("c"), 500, 20)).await, Ack::Done(0));
    assert_eq!(numbers(&claim(journal, "a", 9, 20).await), [1, 2]);
    assert_eq!(numbers(&claim(journal, "b", 9, 20).await), NONE);
    assert_eq!(put(journal, reschedule(None, 500, 30)).await, Ack::Done(2));
    assert_eq!(put(journal, reschedule(None, 500, 30)).await, Ack::Done(0));
    assert_eq!(numbers(&claim(journal, "b", 9, 30).await), [1, 2]);
    assert_eq!(numbers(&claim(journal, "a", 9, 501).await), [4, 3]);
}
