//! What accepting promises.

use deskbell_core::{
    Level, Source,
    attachment::{Attachment, Place},
    event::{Content, Format, Kind},
    run::{Phase, Progress, RunState, RunStep},
};
use serde_json::json;

use super::*;
use crate::journal::{Ack, Cursor, EventQuery, RunQuery};

pub(super) async fn in_order(journal: Fresh) {
    let journal = &*journal;
    let mut last = Cursor::START;
    for number in 0..20 {
        let cursor = accepted(journal, accept(notice(number))).await;
        assert!(cursor > last);
        last = cursor;
    }
    let entries = all(journal).await;
    assert_eq!(entries.last().map(|entry| entry.cursor), Some(last));
    for (number, entry) in (0..20).zip(&entries) {
        assert_eq!(entry.event, notice(number));
    }
    assert!(entries.is_sorted_by_key(|entry| entry.cursor));
    let mut query = EventQuery::first(7);
    query.newest_first = true;
    assert_eq!(found(journal, query).await, (13..20).rev().collect::<Vec<_>>());
}

pub(super) async fn every_field(journal: Fresh) {
    let journal = &*journal;
    let mut full = notice(1);
    full.level = Level::Emergency;
    full.context = "何か else".parse().unwrap();
    full.source = Source {
        client: Some("c\"\\".to_owned()),
        session: Some("s".to_owned()),
        project: Some("/home/p".to_owned()),
        host: Some("h".to_owned()),
    };
    full.content = Content {
        title: Some("Title 🔔".to_owned()),
        text: "line\nline\u{0}\u{1b}[0m \u{2028}".to_owned(),
        format: Format::Markdown,
        data: Some(json!({ "a": [1, -2.5, 1e300, null, { "b": u64::MAX }], "": i64::MIN })),
        link: Some("https://example.com/?a=1&b=前".to_owned()),
        attachments: vec![
            Attachment::new(Place::Path("/home/p/前 1.log".to_owned()), None, None),
            Attachment::new(Place::Url("https://example.com/a".to_owned()), Some("b"), Some("x/y")),
        ],
    };
    full.kind = Kind::Run(RunStep {
        run: run("deploy-前端"),
        phase: Phase::Update,
        step: Some("export".to_owned()),
        progress: Some(Progress::new("progress", 0.1 + 0.2).unwrap()),
        reported_at: "-000044-03-15T12:00:00.5Z".parse().unwrap(),
    });
    full.to = vec![channel("b"), channel("a")];
    let mut push = notice(2);
    push.kind = Kind::Push;
    push.source = Source::default();
    let mut data = notice(3);
    data.content.data = Some(json!(null));
    let events = [full, push, data];
    for event in &events {
        accepted(journal, accept(event.clone()).to(&["a"])).await;
    }
    let kept: Vec<_> = all(journal).await.into_iter().map(|entry| entry.event).collect();
    assert_eq!(kept, events);
    let claimed = claim(journal, "a", 9, 9).await;
    let told: Vec<_> = claimed.due.into_iter().map(|due| due.event).collect();
    assert_eq!(told, events);
}

pub(super) async fn a_key_once(journal: Fresh) {
    let journal = &*journal;
    accepted(journal, accept(notice(1)).key(key("s", "k")).to(&["a"])).await;
    let start = accept(step(2, "r", Phase::Start)).key(key("s", "k")).to(&["a"]);
    let again = put(journal, start.run(0, RunState::Open).write()).await;
    assert_eq!(again, Ack::Duplicate(id(1)));
    assert_eq!(all(journal).await.len(), 1);
    assert_eq!(all_deliveries(journal).await.len(), 1);
    let runs = journal.runs(RunQuery { id: None, state: None, limit: 9 }).await.unwrap();
    assert_eq!(runs, []);
    let query = EventQuery { key: Some(key("s", "k")), ..EventQuery::first(9) };
    assert_eq!(found(journal, query).await, [1]);
}

pub(super) async fn scopes_differ(journal: Fresh) {
    let journal = &*journal;
    let keys = [key("s", "k"), key("", "sk"), key("sk", ""), key("s", "k2"), key("s2", "k")];
    for (number, key) in (1..).zip(&keys) {
        accepted(journal, accept(notice(number)).key(key.clone())).await;
    }
    for (number, key) in (1..).zip(&keys) {
        let query = EventQuery { key: Some(key.clone()), ..EventQuery::first(9) };
        assert_eq!(found(journal, query).await, [number]);
    }
}

pub(super) async fn an_id_once(journal: Fresh) {
    let journal = &*journal;
    accepted(journal, accept(notice(1))).await;
    let again = put(journal, accept(notice(1)).key(key("s", "k")).write()).await;
    assert_eq!(again, Ack::Duplicate(id(1)));
    assert_eq!(all(journal).await.len(), 1);
}

pub(super) async fn stale_runs(journal: Fresh) {
    let journal = &*journal;
    let early = accept(step(1, "r", Phase::Update)).run(1, RunState::Open).to(&["a"]);
    assert_eq!(put(journal, early.write()).await, Ack::Stale);
    accepted(journal, accept(step(2, "r", Phase::Start)).run(0, RunState::Open)).await;
    let late = accept(step(3, "r", Phase::Start)).key(key("s", "k")).run(0, RunState::Open);
    assert_eq!(put(journal, late.to(&["a"]).write()).await, Ack::Stale);
    assert_eq!(all(journal).await.len(), 1);
    assert_eq!(all_deliveries(journal).await, []);
    // The key of what was not written is free.
    accepted(journal, accept(notice(4)).key(key("s", "k"))).await;
    accepted(journal, accept(step(5, "r", Phase::End)).run(1, RunState::Ended)).await;
    let runs = journal.runs(RunQuery { id: None, state: None, limit: 9 }).await.unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!((runs[0].steps, runs[0].state), (2, RunState::Ended));
    assert_eq!(runs[0].text, "notice 5");
}

pub(super) async fn one_call(journal: Fresh) {
    let writes = vec![
        accept(step(1, "r", Phase::Start)).run(0, RunState::Open).key(key("s", "1")).write(),
        accept(step(2, "r", Phase::Start)).run(0, RunState::Open).write(),
        accept(step(3, "r", Phase::Update)).run(1, RunState::Open).write(),
        accept(notice(4)).key(key("s", "1")).write(),
        accept(notice(5)).write(),
    ];
    let acks = journal.commit(writes).await.unwrap();
    let [
        Ack::Accepted(first),
        Ack::Stale,
        Ack::Accepted(second),
        ref duplicate,
        Ack::Accepted(third),
    ] = acks[..]
    else {
        panic!("{acks:?}");
    };
    assert_eq!(*duplicate, Ack::Duplicate(id(1)));
    assert!(first < second && second < third);
    assert_eq!(journal.commit(Vec::new()).await.unwrap(), []);
}

pub(super) async fn doorbell(journal: Fresh) {
    let mut bell = journal.doorbell();
    assert_eq!(*bell.borrow_and_update(), Cursor::START);
    let cursor = accepted(&*journal, accept(notice(1)).to(&["a"])).await;
    bell.changed().await.unwrap();
    assert_eq!(*bell.borrow_and_update(), cursor);
    // An outcome may let the next step of a run go, so it rings as well; a claim makes nothing new.
    let claimed = claim(&*journal, "a", 1, 9).await;
    assert!(!bell.has_changed().unwrap());
    record(&*journal, &claimed.due[0], sent(None)).await;
    assert!(bell.has_changed().unwrap());
    assert_eq!(*journal.doorbell().borrow(), cursor);
}

pub(super) async fn concurrent_writers(journal: Fresh) {
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..16 {
        let journal = Arc::clone(&journal);
        writers.spawn(async move {
            let mut cursors = Vec::new();
            for index in 0..25 {
                let number = writer * 25 + index;
                let unique = key("writer", &number.to_string());
                let event = accept(notice(number)).key(unique).to(&["a", "b"]);
                cursors.push(accepted(&*journal, event.clone()).await);
                let again = put(&*journal, event.write()).await;
                assert_eq!(again, Ack::Duplicate(id(number)));
            }
            assert!(cursors.is_sorted(), "a writer's events keep their order");
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    let mut kept: Vec<_> =
        all(&*journal).await.iter().map(|entry| number(entry.event.id)).collect();
    kept.sort_unstable();
    assert_eq!(kept, (0..400).collect::<Vec<_>>());
    assert_eq!(all_deliveries(&*journal).await.len(), 800);
}
