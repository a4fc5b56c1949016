//! What viewers see, with a journal in memory.

use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

use deskbell_core::{
    Context, Event, EventId, Level, Source,
    event::{Content, Kind},
    level::LevelRange,
    run::{Phase, RunStep},
};
use futures_util::{Stream, StreamExt as _};
use jiff::Timestamp;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use super::{Filter, Live, LiveItem, PAGE, VIEWERS_LIMIT, ring::Ring};
use crate::{
    dispatch::scripted::CountingJournal,
    journal::{Accept, Ack, Cursor, Journal as _, Write},
};

/// A live stream of a journal in memory.
struct Stage {
    journal: Arc<CountingJournal>,
    live: Live,
    stop: CancellationToken,
}

impl Stage {
    fn new() -> Self {
        Self::with(VIEWERS_LIMIT, Ring::default())
    }

    fn with(viewers_limit: usize, ring: Ring) -> Self {
        let (journal, stop) = (Arc::new(CountingJournal::default()), CancellationToken::new());
        let tasks = TaskTracker::new();
        let live = Live::with_limits(journal.clone(), &tasks, stop.clone(), viewers_limit, ring);
        Self { journal, live, stop }
    }

    fn follow(&self, after: Option<Cursor>) -> impl Stream<Item = LiveItem> + Unpin + use<> {
        self.follow_only(after, Filter::default())
    }

    fn follow_only(
        &self,
        after: Option<Cursor>,
        filter: Filter,
    ) -> impl Stream<Item = LiveItem> + Unpin + use<> {
        Box::pin(self.live.follow(after, filter).unwrap())
    }

    /// Accepts notices with the numbers as their texts; returns the last one's cursor.
    async fn accept(&self, numbers: std::ops::Range<usize>) -> Cursor {
        accept(&self.journal, numbers).await
    }
}

async fn accept(journal: &CountingJournal, numbers: std::ops::Range<usize>) -> Cursor {
    let mut last = Cursor::START;
    for number in numbers {
        last = accept_one(journal, notice(&number.to_string())).await;
    }
    last
}

async fn accept_one(journal: &CountingJournal, event: Event) -> Cursor {
    match journal.commit(vec![write(event)]).await.unwrap()[..] {
        [Ack::Accepted(cursor)] => cursor,
        ref other => panic!("not accepted: {other:?}"),
    }
}

fn write(event: Event) -> Write {
    Write::Accept(Box::new(Accept { event, key: None, deliveries: Vec::new(), run: None }))
}

fn notice(text: &str) -> Event {
    Event {
        id: EventId::from_uuid(Uuid::new_v4()),
        at: Timestamp::UNIX_EPOCH,
        level: Level::Info,
        context: Context::default(),
        source: Source::default(),
        content: Content { text: text.to_owned(), ..Content::default() },
        kind: Kind::Notice,
        to: Vec::new(),
    }
}

/// The texts of the next `count` events, and how many were skipped on the way.
async fn texts(
    stream: &mut (impl Stream<Item = LiveItem> + Unpin),
    count: usize,
) -> (Vec<String>, Vec<u64>) {
    let (mut texts, mut lags) = (Vec::new(), Vec::new());
    while texts.len() < count {
        let next = tokio::time::timeout(Duration::from_secs(60), stream.next()).await;
        match next.unwrap_or_else(|_| panic!("no event after {texts:?}")).unwrap() {
            LiveItem::Event(entry) => texts.push(entry.event.content.text.clone()),
            LiveItem::Lagged { skipped } => lags.push(skipped),
        }
    }
    (texts, lags)
}

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

async fn expect_nothing(stream: &mut (impl Stream<Item = LiveItem> + Unpin)) {
    let next = tokio::time::timeout(Duration::from_secs(60), stream.next()).await;
    assert!(next.is_err(), "{next:?}");
}

#[tokio::test(start_paused = true)]
async fn a_replay_begins_strictly_after_the_cursor_and_goes_on_live_row_73() {
    let stage = Stage::new();
    let cursor = stage.accept(0..10).await;
    stage.accept(10..300).await;
    let mut viewer = stage.follow(Some(cursor));
    assert_eq!(texts(&mut viewer, 290).await, (numbers(10..300), vec![]));
    stage.accept(300..310).await;
    assert_eq!(texts(&mut viewer, 10).await, (numbers(300..310), vec![]));
    expect_nothing(&mut viewer).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_cursor_it_begins_with_the_next_event() {
    let stage = Stage::new();
    stage.accept(0..10).await;
    let mut viewer = stage.follow(None);
    stage.accept(10..12).await;
    assert_eq!(texts(&mut viewer, 2).await, (numbers(10..12), vec![]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_missed_or_repeated_while_others_report() {
    const COUNT: usize = 2_000;
    let stage = Stage::with(VIEWERS_LIMIT, Ring::holding(50));
    let journal = stage.journal.clone();
    let reporter = tokio::spawn(async move {
        for number in 0..COUNT {
            accept(&journal, number..number + 1).await;
            tokio::task::yield_now().await;
        }
    });
    let mut viewers = Vec::new();
    for start in 0..20 {
        let mut bell = stage.journal.doorbell();
        let come = bell.wait_for(|newest| newest.minor >= start * 100);
        tokio::time::timeout(Duration::from_secs(30), come).await.unwrap().unwrap();
        let mut viewer = stage.follow(Some(Cursor::START));
        viewers.push(tokio::spawn(async move { texts(&mut viewer, COUNT).await.0 }));
    }
    reporter.await.unwrap();
    for viewer in viewers {
        assert_eq!(viewer.await.unwrap(), numbers(0..COUNT));
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_comes_while_the_journal_is_read_is_not_missed() {
    let stage = Stage::new();
    let mut live = stage.follow(None);
    tokio::time::sleep(Duration::from_secs(1)).await;
    *stage.journal.meanwhile.lock().unwrap() = Some(write(notice("1")));
    stage.accept(0..1).await;
    assert_eq!(texts(&mut live, 2).await.0, numbers(0..2));
    *stage.journal.meanwhile.lock().unwrap() = Some(write(notice("2")));
    let mut replaying = stage.follow(Some(Cursor::START));
    assert_eq!(texts(&mut replaying, 3).await.0, numbers(0..3));
}

#[tokio::test(start_paused = true)]
async fn a_slow_viewer_is_told_that_it_lags_and_loses_nothing_row_74() {
    let stage = Stage::with(VIEWERS_LIMIT, Ring::holding(10));
    let (mut slow, mut quick) = (stage.follow(None), stage.follow(None));
    stage.accept(0..3).await;
    assert_eq!(texts(&mut slow, 3).await, (numbers(0..3), vec![]));
    for start in (3..503).step_by(5) {
        stage.accept(start..start + 5).await;
        let (seen, lags) = texts(&mut quick, if start == 3 { 8 } else { 5 }).await;
        assert_eq!((seen.last(), lags.len()), (Some(&(start + 4).to_string()), 0));
    }
    // 503 events passed, 10 are in the ring, the viewer had seen 3.
    assert_eq!(slow.next().await, Some(LiveItem::Lagged { skipped: 490 }));
    assert_eq!(texts(&mut slow, 500).await, (numbers(3..503), vec![]));
    stage.accept(503..505).await;
    assert_eq!(texts(&mut slow, 2).await, (numbers(503..505), vec![]));
}

#[tokio::test(start_paused = true)]
async fn filters_choose_the_same_from_the_past_and_from_the_present_row_75() {
    let run: RunStep = RunStep {
        run: "build-1".parse().unwrap(),
        phase: Phase::Start,
        step: None,
        progress: None,
        reported_at: Timestamp::UNIX_EPOCH,
    };
    let source = Source { client: Some("one".to_owned()), ..Source::default() };
    let events = [
        Event { level: Level::Error, ..notice("error") },
        Event { context: "safety".parse().unwrap(), ..notice("safety") },
        Event { source, ..notice("client") },
        Event { kind: Kind::Run(run), ..notice("run") },
        notice("plain"),
    ];
    let all = Filter::default();
    let filters = [
        (Filter { levels: LevelRange::at_least(Level::Warning), ..all.clone() }, "error"),
        (Filter { context: Some("safety".to_owned()), ..all.clone() }, "safety"),
        (Filter { client: Some("one".to_owned()), ..all.clone() }, "client"),
        (Filter { kind: Some("run".to_owned()), ..all.clone() }, "run"),
        (Filter { run: "build-1".parse().ok(), ..all.clone() }, "run"),
    ];
    for (filter, expected) in filters {
        let stage = Stage::new();
        for event in &events {
            accept_one(&stage.journal, event.clone()).await;
        }
        let mut viewer = stage.follow_only(Some(Cursor::START), filter.clone());
        assert_eq!(texts(&mut viewer, 1).await.0, [expected], "from the journal: {filter:?}");
        expect_nothing(&mut viewer).await;
        for event in &events {
            let again = Event { id: notice("").id, ..event.clone() };
            accept_one(&stage.journal, again).await;
        }
        assert_eq!(texts(&mut viewer, 1).await.0, [expected], "from the ring: {filter:?}");
        expect_nothing(&mut viewer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_fits_little_replays_past_what_does_not_fit() {
    let stage = Stage::new();
    stage.accept(0..5 * PAGE).await;
    accept_one(&stage.journal, Event { level: Level::Error, ..notice("rare") }).await;
    let filter = Filter { levels: LevelRange::at_least(Level::Error), ..Filter::default() };
    let mut viewer = stage.follow_only(Some(Cursor::START), filter);
    assert_eq!(texts(&mut viewer, 1).await.0, ["rare"]);
    expect_nothing(&mut viewer).await;
    assert!(stage.journal.reads.load(SeqCst) < 5);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_when_nobody_watches_row_72() {
    let stage = Stage::new();
    stage.accept(0..100).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(stage.journal.reads.load(SeqCst), 0);
    let mut viewer = stage.follow(None);
    stage.accept(100..101).await;
    assert_eq!(texts(&mut viewer, 1).await.0, numbers(100..101));
    drop(viewer);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let before = stage.journal.reads.load(SeqCst);
    stage.accept(101..201).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(stage.journal.reads.load(SeqCst), before);
    let mut viewer = stage.follow(Some(Cursor::START));
    assert_eq!(texts(&mut viewer, 201).await.0, numbers(0..201));
}

#[tokio::test(start_paused = true)]
async fn all_viewers_share_one_reader() {
    let stage = Stage::new();
    let mut viewers: Vec<_> = (0..100).map(|_| stage.follow(None)).collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = stage.journal.reads.load(SeqCst);
    stage.accept(0..10).await;
    for viewer in &mut viewers {
        assert_eq!(texts(viewer, 10).await.0, numbers(0..10));
    }
    let reads = stage.journal.reads.load(SeqCst) - before;
    assert!(reads <= 10, "{reads} reads for 100 viewers");
}

#[tokio::test(start_paused = true)]
async fn more_viewers_than_the_limit_are_refused_until_one_leaves() {
    let stage = Stage::with(2, Ring::default());
    let (first, _second) = (stage.follow(None), stage.follow(None));
    assert!(stage.live.follow(None, Filter::default()).is_err());
    drop(first);
    assert_eq!(stage.live.viewers(), 1);
    assert!(stage.live.follow(None, Filter::default()).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_cursor_of_another_journal_does_not_silence_a_viewer() {
    let stage = Stage::new();
    stage.accept(0..3).await;
    let mut viewer = stage.follow(Some(Cursor { major: 7, minor: u64::MAX }));
    stage.accept(3..4).await;
    assert_eq!(texts(&mut viewer, 1).await.0, numbers(3..4));
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_cannot_be_read_for_a_while_delays_and_loses_nothing() {
    let stage = Stage::new();
    let mut replaying = stage.follow(Some(Cursor::START));
    let mut live = stage.follow(None);
    stage.journal.unreadable.store(true, SeqCst);
    stage.accept(0..3).await;
    expect_nothing(&mut live).await;
    stage.journal.unreadable.store(false, SeqCst);
    assert_eq!(texts(&mut live, 3).await.0, numbers(0..3));
    assert_eq!(texts(&mut replaying, 3).await.0, numbers(0..3));
}

#[tokio::test(start_paused = true)]
async fn large_events_do_not_fill_the_memory() {
    let stage = Stage::new();
    let mut viewer = stage.follow(None);
    let large = "x".repeat(200 * 1024);
    for _ in 0..200 {
        accept_one(&stage.journal, notice(&large)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(stage.live.0.ring().bytes() <= 16 * 1024 * 1024);
    assert_eq!(texts(&mut viewer, 200).await.0.len(), 200);
}

#[tokio::test(start_paused = true)]
async fn the_stream_ends_when_the_program_does() {
    let stage = Stage::new();
    let mut viewer = stage.follow(None);
    stage.stop.cancel();
    assert_eq!(viewer.next().await, None);
}
