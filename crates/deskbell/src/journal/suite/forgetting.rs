//! What forgetting promises.

use deskbell_core::run::{Phase, RunState};

use super::*;
use crate::journal::{Ack, EventQuery, RunQuery, Write};

async fn prune(journal: &dyn Journal, before: i64, limit: usize) -> Ack {
    put(journal, Write::Prune { before: at(before), limit }).await
}

pub(super) async fn old_events(journal: Fresh) {
    let journal = &*journal;
    for number in 1..=9 {
        let event = accept(notice(number)).key(key("s", &number.to_string())).to(&["a", "b"]);
        accepted(journal, event).await;
    }
    for name in ["a", "b"] {
        for due in claim(journal, name, 9, 99).await.due {
            record(journal, &due, if name == "a" { sent(None) } else { given_up() }).await;
        }
    }
    assert_eq!(prune(journal, 7, 4).await, Ack::Done(4));
    assert_eq!(found(journal, EventQuery::first(99)).await, [5, 6, 7, 8, 9]);
    assert_eq!(prune(journal, 7, 4).await, Ack::Done(2));
    assert_eq!(prune(journal, 7, 4).await, Ack::Done(0));
    assert_eq!(found(journal, EventQuery::first(99)).await, [7, 8, 9]);
    assert_eq!(all_deliveries(journal).await.len(), 6);
    // A forgotten key is free.
    accepted(journal, accept(notice(10)).key(key("s", "1"))).await;
    let kept = accept(notice(11)).key(key("s", "7"));
    assert_eq!(put(journal, kept.write()).await, Ack::Duplicate(id(7)));
}

pub(super) async fn unfinished(journal: Fresh) {
    let journal = &*journal;
    accepted(journal, accept(notice(1)).to(&["a"])).await;
    accepted(journal, accept(notice(2)).to(&["b"])).await;
    accepted(journal, accept(step(3, "r", Phase::Start)).run(0, RunState::Open)).await;
    accepted(journal, accept(notice(4))).await;
    claim(journal, "a", 1, 9).await;
    assert_eq!(prune(journal, 99, 99).await, Ack::Done(1));
    assert_eq!(found(journal, EventQuery::first(99)).await, [1, 2, 3]);
    accepted(journal, accept(step(5, "r", Phase::End)).run(1, RunState::Ended)).await;
    assert_eq!(prune(journal, 4, 99).await, Ack::Done(1));
    let runs = async || journal.runs(RunQuery { id: None, state: None, limit: 9 }).await.unwrap();
    assert_eq!(runs().await.len(), 1, "a run stays as long as one of its steps");
    assert_eq!(prune(journal, 99, 99).await, Ack::Done(1));
    assert_eq!(runs().await, []);
    accepted(journal, accept(step(6, "r", Phase::Start)).run(0, RunState::Open)).await;
    assert_eq!(found(journal, EventQuery::first(99)).await, [1, 2, 6]);
}

pub(super) async fn cursors(journal: Fresh) {
    let journal = &*journal;
    let first = accepted(journal, accept(notice(1))).await;
    let second = accepted(journal, accept(notice(2))).await;
    assert_eq!(prune(journal, 99, 99).await, Ack::Done(2));
    assert_eq!(all(journal).await, []);
    let third = accepted(journal, accept(notice(3))).await;
    assert!(first < second && second < third);
    let query = EventQuery { after: Some(second), ..EventQuery::first(9) };
    assert_eq!(found(journal, query).await, [3]);
}
