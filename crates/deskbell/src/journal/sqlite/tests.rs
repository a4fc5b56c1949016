//! What only the journal in a file can get wrong: the file, the disk, other processes.

mod alike;
mod broken;

use std::path::PathBuf;

use deskbell_core::{
    delivery::Replaces,
    run::{Phase, RunState},
};
use tempfile::TempDir;

use super::*;
use crate::journal::suite::{
    self, accept, accepted, all, at, claim, delivery, key, notice, numbers, put, record, retry_at,
    sent, step,
};

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn file(folder: &TempDir) -> PathBuf {
    folder.path().join("journal.db")
}

impl SqliteJournal {
    /// Runs `disturb` on the writer's connection, inside a transaction.
    async fn disturb(
        &self,
        disturb: impl FnOnce(&rusqlite::Connection) + Send + 'static,
    ) -> Result<(), JournalError> {
        let (reply, answer) = Reply::channel();
        self.ask(1, answer, Work::Disturb(Box::new(disturb), reply)).await
    }
}

#[tokio::test]
async fn keeps_every_promise_of_a_journal() {
    let folder = folder();
    let number = std::cell::Cell::new(0);
    suite::holds_for(|| {
        number.set(number.get() + 1);
        let path = folder.path().join(format!("{}.db", number.get()));
        Box::new(SqliteJournal::open(&path).unwrap())
    })
    .await;
}

#[tokio::test]
async fn everything_is_there_after_it_is_opened_anew() {
    let folder = folder();
    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    let start = accept(step(1, "r", Phase::Start)).key(key("s", "k")).to(&["a", "b"]);
    accepted(&journal, start.run(0, RunState::Open)).await;
    let newest = accepted(&journal, accept(notice(2)).to(&["a"])).await;
    let claimed = claim(&journal, "a", 2, 9).await;
    record(&journal, &claimed.due[0], sent(Some("m"))).await;
    let before = (all(&journal).await, suite::all_deliveries(&journal).await);
    drop(journal);

    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    assert_eq!(*journal.doorbell().borrow(), newest);
    assert_eq!((all(&journal).await, suite::all_deliveries(&journal).await), before);
    assert_eq!(put(&journal, Write::Recover { at: at(20) }).await, Ack::Done(1));
    assert!(delivery(&journal, 2, "a").await.maybe_repeated);
    let again = put(&journal, accept(notice(3)).key(key("s", "k")).write()).await;
    assert_eq!(again, Ack::Duplicate(suite::id(1)));
    assert!(accepted(&journal, accept(notice(4))).await > newest);
    let stale = accept(step(5, "r", Phase::Start)).run(0, RunState::Open);
    assert_eq!(put(&journal, stale.write()).await, Ack::Stale);
}

#[tokio::test]
async fn numbers_are_not_given_again_after_all_was_forgotten() {
    let folder = folder();
    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    let newest = accepted(&journal, accept(notice(1))).await;
    put(&journal, Write::Prune { before: at(99), limit: 9 }).await;
    drop(journal);
    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    assert_eq!(*journal.doorbell().borrow(), newest);
    assert!(accepted(&journal, accept(notice(2))).await > newest);
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let path = folder.path().join("new/state/journal.db");
    let journal = SqliteJournal::open(&path).unwrap();
    accepted(&journal, accept(notice(1))).await;
    assert_eq!(all(&journal).await.len(), 1);
    let mode = |name: &str| {
        let metadata = std::fs::metadata(path.with_file_name(name)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    for name in ["journal.db", "journal.db-wal", "journal.db-shm", "journal.db.lock"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    assert_eq!(
        std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777,
        0o700
    );

    drop(journal);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let _journal = SqliteJournal::open(&path).unwrap();
    assert_eq!(mode("journal.db"), 0o600, "a file that others could read is tightened");
}

#[tokio::test]
async fn a_commit_is_flushed_to_the_disk() {
    let folder = folder();
    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    journal
        .disturb(move |connection| {
            let pragma =
                |name| connection.pragma_query_value(None, name, |row| row.get(0)).unwrap();
            let synchronous: i64 = pragma("synchronous");
            let checkpoint: i64 = pragma("wal_autocheckpoint");
            let limit: i64 = pragma("journal_size_limit");
            tell.send([synchronous, checkpoint, limit]).unwrap();
        })
        .await
        .unwrap();
    assert_eq!(told.recv().unwrap(), [2, 4_000, 64 * 1024 * 1024]);
}

#[tokio::test]
async fn a_full_queue_says_when_to_come_again() {
    let folder = folder();
    let journal = Arc::new(SqliteJournal::open(&file(&folder)).unwrap());
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let (tell, told) = oneshot::channel();
    let blocked = tokio::spawn({
        let journal = Arc::clone(&journal);
        async move {
            let block = move |_: &rusqlite::Connection| {
                tell.send(()).unwrap();
                wait.recv().unwrap();
            };
            journal.disturb(block).await
        }
    });
    told.await.unwrap();

    // One report that fills the queue's bytes, so that the next finds no room.
    let mut big = notice(1);
    big.content.text = "x".repeat(QUEUE_BYTES as usize - 3 * REQUEST_BYTES);
    let mut waiting = tokio::task::JoinSet::new();
    let first = Arc::clone(&journal);
    waiting.spawn(async move { first.commit(vec![accept(big).write()]).await });
    let permits = || journal.room.available_permits();
    while permits() > 1_000 {
        tokio::task::yield_now().await;
    }
    let refused = journal.commit(vec![accept(notice(2)).to(&["a", "b", "c"]).write()]).await;
    assert!(
        matches!(refused, Err(JournalError::Busy { retry_after }) if retry_after == RETRY_AFTER)
    );
    release.send(()).unwrap();
    waiting.join_next().await.unwrap().unwrap().unwrap();
    blocked.await.unwrap().unwrap();

    // Once the writer is free, so is the queue.
    accepted(&*journal, accept(notice(2))).await;
    assert_eq!(all(&*journal).await.len(), 2);
}

#[tokio::test]
async fn the_queue_has_an_end() {
    let folder = folder();
    let journal = Arc::new(SqliteJournal::open(&file(&folder)).unwrap());
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let (tell, told) = oneshot::channel();
    let mut asking = tokio::task::JoinSet::new();
    let first = Arc::clone(&journal);
    asking.spawn(async move {
        let block = move |_: &rusqlite::Connection| {
            tell.send(()).unwrap();
            wait.recv().unwrap();
        };
        first.disturb(block).await
    });
    told.await.unwrap();
    for _ in 0..QUEUE {
        let journal = Arc::clone(&journal);
        asking.spawn(async move { journal.disturb(|_| {}).await });
    }
    let queue = journal.queue.as_ref().unwrap();
    while queue.capacity() > 0 {
        tokio::task::yield_now().await;
    }
    assert!(matches!(journal.disturb(|_| {}).await, Err(JournalError::Busy { .. })));
    release.send(()).unwrap();
    assert!(asking.join_all().await.into_iter().all(|answer| answer.is_ok()));
}

#[tokio::test]
async fn what_is_queued_when_it_is_dropped_is_written() {
    let folder = folder();
    let journal = Arc::new(SqliteJournal::open(&file(&folder)).unwrap());
    for number in 0..50 {
        let journal = Arc::clone(&journal);
        // Each caller goes away as soon as its request is queued.
        let write = vec![accept(notice(number)).write()];
        tokio::select! {
            biased;
            _ = journal.commit(write) => {}
            () = std::future::ready(()) => {}
        }
    }
    drop(journal);
    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    assert_eq!(all(&journal).await.len(), 50);
}

#[tokio::test]
async fn a_read_sees_all_that_was_answered() {
    let folder = folder();
    let journal = Arc::new(SqliteJournal::open(&file(&folder)).unwrap());
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..40 {
        let journal = Arc::clone(&journal);
        writers.spawn(async move {
            accepted(&*journal, accept(notice(number)).to(&["a"])).await;
            let query = EventQuery { id: Some(suite::id(number)), ..EventQuery::first(1) };
            assert_eq!(suite::found(&*journal, query).await, [number]);
        });
    }
    writers.join_all().await;
}

#[tokio::test]
async fn history_of_an_hour_does_not_read_the_whole_journal() {
    let folder = folder();
    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    let mut cursors = Vec::new();
    // The clock goes back in the middle, and a later event is from an earlier hour.
    for (number, hour) in (0..).zip([0, 1, 2, 1, 0, 3, 4]) {
        let mut event = notice(number);
        event.at = at(hour * 3_600);
        cursors.push(accepted(&journal, accept(event)).await);
    }
    let since = |hour: i64| EventQuery { since: Some(at(hour * 3_600)), ..EventQuery::first(99) };
    let check = async |hour, expected: &[u64]| {
        assert_eq!(suite::found(&journal, since(hour)).await, expected, "hour {hour}");
    };
    check(-9, &[0, 1, 2, 3, 4, 5, 6]).await;
    check(1, &[1, 2, 3, 5, 6]).await;
    check(2, &[2, 5, 6]).await;
    check(4, &[6]).await;
    check(5, &[]).await;
    let plan = journal
        .readers
        .read(|connection| {
            let mut statement = connection.prepare("SELECT seq FROM hours ORDER BY hour")?;
            let hours = statement.query_map([], |row| row.get(0))?;
            Ok(hours.collect::<Result<Vec<i64>, _>>()?)
        })
        .await
        .unwrap();
    assert_eq!(plan, [1, 2, 3, 6, 7]);
}

#[tokio::test]
async fn a_damaged_row_hides_no_other() {
    let folder = folder();
    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    for number in 1..=3 {
        accepted(&journal, accept(notice(number)).to(&["a"])).await;
    }
    let spoil = |connection: &rusqlite::Connection| {
        connection.execute("UPDATE events SET body = '{' WHERE seq = 2", []).unwrap();
    };
    journal.disturb(spoil).await.unwrap();
    assert_eq!(suite::found(&journal, EventQuery::first(9)).await, [1, 3]);
    let claimed = claim(&journal, "a", 9, 9).await;
    assert_eq!(numbers(&claimed), [1, 3]);
    assert_eq!(suite::state(&journal, 2, "a").await, DeliveryState::InFlight);
    record(&journal, &claimed.due[0], retry_at(10)).await;
    assert_eq!(numbers(&claim(&journal, "a", 9, 20).await), [1]);
}

/// The numbers of the events that `name` gets one after the other, one at a time.
async fn one_by_one(journal: &SqliteJournal, name: &str, seconds: i64) -> Vec<u64> {
    let mut taken = Vec::new();
    loop {
        match numbers(&claim(journal, name, 1, seconds).await)[..] {
            [] => return taken,
            [number] => taken.push(number),
            _ => panic!("more than there was room for"),
        }
    }
}

#[tokio::test]
async fn nothing_is_passed_over_when_the_clock_goes_back() {
    let folder = folder();
    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    for (number, seconds) in (1..).zip([10, 50, 20, 30, 60]) {
        let mut event = notice(number);
        event.at = at(seconds);
        let channels: &[&str] = if number % 2 == 0 { &["a"] } else { &["a", "b"] };
        accepted(&journal, accept(event).to(channels)).await;
    }
    let early = claim(&journal, "a", 9, 40).await;
    assert_eq!(numbers(&early), [1], "what was accepted later is not due earlier");
    assert_eq!(early.next_at, Some(at(50)));
    assert_eq!(one_by_one(&journal, "a", 55).await, [2, 3, 4]);
    assert_eq!(one_by_one(&journal, "a", 60).await, [5]);
    assert_eq!(one_by_one(&journal, "b", 60).await, [1, 3, 5]);
}

#[tokio::test]
async fn a_row_between_two_times_passes_over_nothing_when_the_clock_goes_back() {
    let folder = folder();
    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    accepted(&journal, accept(notice(1)).due(&["a"], at(30), Replaces::Nothing)).await;
    for (number, seconds) in [(2, 50), (3, 20)] {
        let mut event = notice(number);
        event.at = at(seconds);
        accepted(&journal, accept(event).to(&["a"])).await;
    }
    assert_eq!(numbers(&claim(&journal, "a", 2, 60).await), [1, 2]);
    assert_eq!(numbers(&claim(&journal, "a", 2, 60).await), [3]);
}

#[tokio::test]
async fn events_that_go_the_same_way_for_other_reasons_keep_theirs() {
    let folder = folder();
    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    for (number, reason) in (1..).zip(["route 1", "route 2", "route 1"]) {
        let mut to = accept(notice(number)).to(&["a", "b"]);
        to.deliveries.iter_mut().for_each(|planned| planned.reason = reason.to_owned());
        accepted(&journal, to).await;
    }
    assert_eq!(numbers(&claim(&journal, "a", 9, 9).await), [1, 2, 3]);
    for (number, reason) in (1..).zip(["route 1", "route 2", "route 1"]) {
        for name in ["a", "b"] {
            assert_eq!(delivery(&journal, number, name).await.reason, reason);
        }
    }
}

#[tokio::test]
async fn plans_beyond_the_limit_have_rows() {
    let folder = folder();
    let open = || SqliteJournal::open(&file(&folder)).unwrap();
    let journal = open();
    let total = 300_u64;
    for number in 1..=total {
        let own = format!("own-{number}");
        accepted(&journal, accept(notice(number)).to(&["all", &own])).await;
    }
    let count = async |sql: &'static str| {
        let count = move |connection: &rusqlite::Connection| {
            Ok(connection.query_row(sql, [], |row| row.get::<_, u32>(0))?)
        };
        journal.readers.read(count).await.unwrap()
    };
    assert_eq!(count("SELECT count(DISTINCT plan) FROM plans").await, 256);
    assert_eq!(count("SELECT count(*) FROM deliveries").await, 2 * (300 - 256));
    assert_eq!(suite::all_deliveries(&journal).await.len(), 600);
    assert_eq!(numbers(&claim(&journal, "own-7", 9, 999).await), [7]);
    assert_eq!(numbers(&claim(&journal, "own-299", 9, 999).await), [299]);
    let all: Vec<u64> = (1..=total).collect();
    assert_eq!(numbers(&claim(&journal, "all", 9_999, 999).await), all);
    drop(journal);
    let journal = open();
    assert_eq!(numbers(&claim(&journal, "own-8", 9, 999).await), [8]);
    assert_eq!(numbers(&claim(&journal, "own-7", 9, 999).await), suite::NONE);
    assert_eq!(numbers(&claim(&journal, "all", 9, 999).await), suite::NONE);
}

#[tokio::test]
async fn a_channel_that_comes_later_gets_what_was_planned_for_it() {
    let folder = folder();
    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    accepted(&journal, accept(notice(1)).to(&["a"])).await;
    assert_eq!(numbers(&claim(&journal, "a", 9, 9).await), [1]);
    accepted(&journal, accept(notice(2)).to(&["b"])).await;
    accepted(&journal, accept(notice(3)).to(&["a", "b"])).await;
    accepted(&journal, accept(notice(4)).due(&["b"], at(0), Replaces::Nothing)).await;
    assert_eq!(
        numbers(&claim(&journal, "b", 9, 9).await),
        [4, 2, 3],
        "what is due first goes first"
    );
    assert_eq!(numbers(&claim(&journal, "a", 9, 9).await), [3]);
}
