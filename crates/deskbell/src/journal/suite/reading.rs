//! What reading promises.

use deskbell_core::{
    delivery::DeliveryState,
    level::{Level, LevelRange},
    run::{Phase, RunState},
};

use super::*;
use crate::journal::{Cursor, DeliveryQuery, EventQuery, RunQuery};

pub(super) async fn filters(journal: Fresh) {
    let journal = &*journal;
    for number in 0..8 {
        let mut event = match number {
            5 | 6 => step(number, "r", Phase::Update),
            7 => step(number, "other", Phase::Update),
            _ => notice(number),
        };
        event.level = Level::ALL[usize::try_from(number).unwrap()];
        if number == 3 {
            event.context = "safety".parse().unwrap();
            event.source.client = None;
        }
        if number == 4 {
            event.source.client = Some("cursor".to_owned());
        }
        accepted(journal, accept(event)).await;
    }
    let any = || EventQuery::first(100);
    let check = async |query, expected: &[u64]| assert_eq!(found(journal, query).await, expected);
    check(any(), &[0, 1, 2, 3, 4, 5, 6, 7]).await;
    check(EventQuery { id: Some(id(4)), ..any() }, &[4]).await;
    check(EventQuery { id: Some(id(99)), ..any() }, &[]).await;
    check(EventQuery { key: Some(key("s", "k")), ..any() }, &[]).await;
    check(EventQuery { levels: "warning..critical".parse().unwrap(), ..any() }, &[3, 4, 5]).await;
    check(EventQuery { levels: LevelRange::at_least(Level::Alert), ..any() }, &[6, 7]).await;
    check(EventQuery { context: Some("safety".to_owned()), ..any() }, &[3]).await;
    check(EventQuery { kind: Some("run".to_owned()), ..any() }, &[5, 6, 7]).await;
    check(EventQuery { kind: Some("push".to_owned()), ..any() }, &[]).await;
    check(EventQuery { kind: Some("weather".to_owned()), ..any() }, &[]).await;
    check(EventQuery { run: Some(run("r")), ..any() }, &[5, 6]).await;
    check(EventQuery { run: Some(run("none")), ..any() }, &[]).await;
    check(EventQuery { client: Some("cursor".to_owned()), ..any() }, &[4]).await;
    check(EventQuery { since: Some(at(6)), ..any() }, &[6, 7]).await;
    let both = EventQuery {
        run: Some(run("r")),
        levels: LevelRange::at_least(Level::Alert),
        newest_first: true,
        ..any()
    };
    check(both, &[6]).await;
    check(EventQuery { limit: 0, ..any() }, &[]).await;
    check(EventQuery { limit: usize::MAX, newest_first: true, since: Some(at(7)), ..any() }, &[7])
        .await;
}

pub(super) async fn cursors(journal: Fresh) {
    let journal = &*journal;
    let mut cursors = Vec::new();
    for number in 0..6 {
        cursors.push(accepted(journal, accept(notice(number))).await);
    }
    let any = || EventQuery::first(100);
    let check = async |query, expected: &[u64]| assert_eq!(found(journal, query).await, expected);
    check(EventQuery { after: Some(Cursor::START), ..any() }, &[0, 1, 2, 3, 4, 5]).await;
    check(EventQuery { after: Some(cursors[3]), ..any() }, &[4, 5]).await;
    check(EventQuery { after: Some(cursors[5]), ..any() }, &[]).await;
    check(EventQuery { before: Some(cursors[2]), ..any() }, &[0, 1]).await;
    let between =
        EventQuery { after: Some(cursors[0]), before: Some(cursors[5]), limit: 2, ..any() };
    check(between.clone(), &[1, 2]).await;
    check(EventQuery { newest_first: true, ..between }, &[4, 3]).await;
    // A cursor from elsewhere is a place like any other.
    let far = Cursor { major: u64::MAX, minor: u64::MAX };
    check(EventQuery { after: Some(far), ..any() }, &[]).await;
    check(EventQuery { before: Some(far), ..any() }, &[0, 1, 2, 3, 4, 5]).await;
}

pub(super) async fn deliveries(journal: Fresh) {
    accepted(&*journal, accept(notice(1)).to(&["b", "a"])).await;
    accepted(&*journal, accept(notice(2)).to(&["c", "a"])).await;
    claim(&*journal, "a", 1, 9).await;
    let check = async |query, expected: &[(u64, &str)]| {
        let expected: Vec<_> =
            expected.iter().map(|(event, name)| delivery_id(*event, name)).collect();
        let found = journal.deliveries(query).await.unwrap();
        assert_eq!(found.into_iter().map(|it| it.id).collect::<Vec<_>>(), expected);
    };
    let any = || DeliveryQuery { limit: 100, ..DeliveryQuery::default() };
    check(any(), &[(2, "a"), (2, "c"), (1, "a"), (1, "b")]).await;
    check(DeliveryQuery { limit: 3, ..any() }, &[(2, "a"), (2, "c"), (1, "a")]).await;
    check(DeliveryQuery { event: Some(id(1)), ..any() }, &[(1, "a"), (1, "b")]).await;
    check(DeliveryQuery { channel: Some(channel("a")), ..any() }, &[(2, "a"), (1, "a")]).await;
    check(DeliveryQuery { channel: Some(channel("z")), ..any() }, &[]).await;
    check(DeliveryQuery { event: Some(id(9)), ..any() }, &[]).await;
    check(DeliveryQuery { state: Some(DeliveryState::InFlight), ..any() }, &[(1, "a")]).await;
    let both = DeliveryQuery {
        channel: Some(channel("a")),
        state: Some(DeliveryState::Pending),
        event: Some(id(2)),
        limit: 1,
    };
    check(both, &[(2, "a")]).await;
    let planned = delivery(&*journal, 2, "a").await;
    assert_eq!((planned.reason.as_str(), planned.due_at), ("route 1", at(2)));
    assert_eq!((planned.attempt_count, planned.receipts, planned.attempts), (0, vec![], vec![]));
}

pub(super) async fn runs(journal: Fresh) {
    let start = |number, name| accept(step(number, name, Phase::Start)).run(0, RunState::Open);
    accepted(&*journal, start(1, "one")).await;
    accepted(&*journal, start(2, "two")).await;
    accepted(&*journal, start(3, "three")).await;
    accepted(&*journal, accept(step(4, "one", Phase::Update)).run(1, RunState::Open)).await;
    accepted(&*journal, accept(step(5, "two", Phase::Error)).run(1, RunState::Failed)).await;
    let check = async |query, expected: &[&str]| {
        let found = journal.runs(query).await.unwrap();
        let ids: Vec<_> = found.iter().map(|run| run.id.as_str()).collect();
        assert_eq!(ids, expected);
    };
    let any = || RunQuery { id: None, state: None, limit: 100 };
    check(any(), &["two", "one", "three"]).await;
    check(RunQuery { limit: 2, ..any() }, &["two", "one"]).await;
    check(RunQuery { state: Some(RunState::Open), ..any() }, &["one", "three"]).await;
    check(RunQuery { state: Some(RunState::Ended), ..any() }, &[]).await;
    check(RunQuery { id: Some(run("three")), ..any() }, &["three"]).await;
    check(RunQuery { id: Some(run("four")), ..any() }, &[]).await;
    let failed = journal.runs(RunQuery { id: Some(run("two")), ..any() }).await.unwrap();
    assert_eq!(failed[0].state, RunState::Failed);
    assert_eq!((failed[0].started_at, failed[0].updated_at, failed[0].steps), (at(0), at(5), 2));
}
