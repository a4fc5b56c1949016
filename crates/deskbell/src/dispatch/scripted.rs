//! What the tests of dispatch share: channels that do as they are told, a clock that follows the paused time of
//! tokio, and a desk with a journal in memory.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use async_trait::async_trait;
use deskbell_channels::{
    About, Channel, ChannelKind, Limits, SendContext, SendError, Transport, render::Dialect,
};
use deskbell_core::{
    ChannelName, Context, DeliveryId, EventId, Level, Message, Run, Source,
    clock::Clock,
    delivery::{DeliveryState, Failure, Mark, Receipt},
    event::{Content, Kind},
    run::{Phase, RunStep},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    channel_set::{ChannelSet, ReadyChannel, rules},
    config::{Config, DeliveryOptions},
    dispatch::Health,
    intake::{Accepted, Intake, Report},
    journal::{
        Ack, Claim, Claimed, Cursor, Delivery, DeliveryQuery, Entry, EventQuery, Journal,
        JournalError, RunQuery, Write, memory::MemoryJournal,
    },
};

/// What a scripted channel does with one message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// Takes it after so long.
    Take(Duration),
    /// Fails after so long.
    Fail(Duration, Failure),
    /// Never answers.
    Hang,
    /// Panics.
    Panic,
}

impl Step {
    pub(crate) const TAKE: Self = Self::Take(Duration::ZERO);
    pub(crate) const REFUSE: Self = Self::Fail(Duration::ZERO, Failure::Permanent);
    pub(crate) const FAIL: Self =
        Self::Fail(Duration::ZERO, Failure::Temporary { retry_after: None });

    pub(crate) const fn busy(retry_after: Duration) -> Self {
        Self::Fail(Duration::ZERO, Failure::Temporary { retry_after: Some(retry_after) })
    }
}

/// A channel that does what its script says, step by step, and then the last one's equal for ever.
#[derive(Clone)]
pub(crate) struct ScriptedChannel(Arc<Script>);

struct Script {
    steps: Mutex<VecDeque<Step>>,
    then: Step,
    places: Mutex<Vec<String>>,
    seen: watch::Sender<Seen>,
}

/// What a scripted channel was asked for.
#[derive(Debug, Default)]
struct Seen {
    tries: Vec<Try>,
    running: usize,
    most_running: usize,
}

/// One message that a scripted channel was given.
#[derive(Debug, Clone)]
pub(crate) struct Try {
    pub(crate) at: Instant,
    pub(crate) attempt: u32,
    pub(crate) target: usize,
    pub(crate) delivery: DeliveryId,
    pub(crate) edit: Option<Receipt>,
    pub(crate) body: String,
}

impl ScriptedChannel {
    /// A channel that does `steps`, and `then` ever after.
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>, then: Step) -> Self {
        Self::to_places(steps, then, &["here"])
    }

    /// The same with several places, each of which gets the message for itself.
    pub(crate) fn to_places(
        steps: impl IntoIterator<Item = Step>,
        then: Step,
        places: &[&str],
    ) -> Self {
        let steps = Mutex::new(steps.into_iter().collect());
        let this = Self(Arc::new(Script {
            steps,
            then,
            places: Mutex::default(),
            seen: watch::Sender::default(),
        }));
        this.tell(places);
        this
    }

    /// Tells `places` from now on, as after an edit of the configuration.
    pub(crate) fn tell(&self, places: &[&str]) {
        *self.0.places.lock().unwrap() = places.iter().map(|&place| place.to_owned()).collect();
    }

    /// A channel that does the same with every message.
    pub(crate) fn always(step: Step) -> Self {
        Self::new([], step)
    }

    /// All tries so far, in order.
    pub(crate) fn tries(&self) -> Vec<Try> {
        self.0.seen.borrow().tries.clone()
    }

    /// The most messages that it had at the same time.
    pub(crate) fn most_running(&self) -> usize {
        self.0.seen.borrow().most_running
    }

    /// Waits until it was given `count` messages.
    pub(crate) async fn tried(&self, count: usize) {
        let mut seen = self.0.seen.subscribe();
        let _seen = seen.wait_for(|seen| seen.tries.len() >= count).await.unwrap();
    }

    fn begin(&self, message: &Message, cx: &SendContext) -> (Step, Running<'_>) {
        self.0.seen.send_modify(|seen| {
            seen.tries.push(Try {
                at: Instant::now(),
                attempt: cx.attempt,
                target: cx.target,
                delivery: cx.delivery.clone(),
                edit: cx.edit.clone(),
                body: message.body.clone(),
            });
            seen.running += 1;
            seen.most_running = seen.most_running.max(seen.running);
        });
        let step = self.0.steps.lock().unwrap().pop_front().unwrap_or(self.0.then);
        (step, Running(self))
    }
}

/// A message that a channel has; counts until it is dropped, however the attempt ends.
struct Running<'a>(&'a ScriptedChannel);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.0.seen.send_modify(|seen| seen.running -= 1);
    }
}

#[async_trait]
impl Channel for ScriptedChannel {
    fn targets(&self) -> Vec<Mark> {
        self.0.places.lock().unwrap().iter().map(|name| Mark::of(name)).collect()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let (step, _running) = self.begin(message, cx);
        match step {
            Step::Take(after) => {
                tokio::time::sleep(after).await;
                let place = self.0.places.lock().unwrap()[cx.target].clone();
                let message_id = match cx.target {
                    0 => format!("message of {}", cx.delivery.event),
                    _ => format!("message of {} at {place}", cx.delivery.event),
                };
                Ok(Receipt { message_id: Some(message_id) })
            }
            Step::Fail(after, failure) => {
                tokio::time::sleep(after).await;
                Err(SendError { failure, message: "as the script says".to_owned() })
            }
            Step::Hang => std::future::pending().await,
            Step::Panic => panic!("as the script says"),
        }
    }
}

/// A kind needs a type with options; scripted channels are built by hand.
#[derive(Deserialize, JsonSchema)]
struct Unbuilt {}

#[async_trait]
impl Channel for Unbuilt {
    async fn send(&self, _: &Message, _: &SendContext) -> Result<Receipt, SendError> {
        Err(SendError::permanent("not a channel"))
    }
}

const fn about(name: &'static str, edits: bool) -> About {
    About {
        name,
        title: "Scripted",
        docs: "",
        transport: Transport::Local,
        dialect: Dialect::Plain,
        limits: Limits::NONE,
        edits,
        example: "",
    }
}

static PLAIN: ChannelKind = ChannelKind::of::<Unbuilt>(about("scripted", false));
static EDITING: ChannelKind = ChannelKind::of::<Unbuilt>(about("scripted-editing", true));

/// A wall clock that goes with tokio's time, so that tests can pause both.
#[derive(Debug)]
pub(crate) struct PausedClock {
    start: Timestamp,
    begun: Instant,
    /// How far somebody set the clock back.
    set_back: Mutex<Duration>,
}

impl PausedClock {
    fn new() -> Self {
        let start = Timestamp::from_second(1_800_000_000).unwrap();
        Self { start, begun: Instant::now(), set_back: Mutex::default() }
    }

    pub(crate) fn set_back(&self, by: Duration) {
        *self.set_back.lock().unwrap() += by;
    }
}

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        self.start + self.begun.elapsed() - *self.set_back.lock().unwrap()
    }
}

/// A journal in memory that counts what is asked of it.
#[derive(Default)]
pub(crate) struct CountingJournal {
    pub(crate) kept: Arc<MemoryJournal>,
    pub(crate) claims: AtomicUsize,
    pub(crate) reads: AtomicUsize,
    /// Whether reading events fails.
    pub(crate) unreadable: AtomicBool,
    /// What somebody else writes between the next reading of events and its answer.
    pub(crate) meanwhile: Mutex<Option<Write>>,
}

#[async_trait]
impl Journal for CountingJournal {
    async fn commit(&self, writes: Vec<Write>) -> Result<Vec<Ack>, JournalError> {
        self.kept.commit(writes).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, JournalError> {
        self.claims.fetch_add(1, SeqCst);
        self.kept.claim(claim).await
    }

    async fn events(&self, query: EventQuery) -> Result<Vec<Entry>, JournalError> {
        self.reads.fetch_add(1, SeqCst);
        if self.unreadable.load(SeqCst) {
            return Err(JournalError::Failed("unreadable".to_owned()));
        }
        let page = self.kept.events(query).await;
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(write) = meanwhile {
            self.kept.commit(vec![write]).await?;
        }
        page
    }

    async fn deliveries(&self, query: DeliveryQuery) -> Result<Vec<Delivery>, JournalError> {
        self.kept.deliveries(query).await
    }

    async fn runs(&self, query: RunQuery) -> Result<Vec<Run>, JournalError> {
        self.kept.runs(query).await
    }

    fn doorbell(&self) -> watch::Receiver<Cursor> {
        self.kept.doorbell()
    }
}

/// A desk with a journal in memory, an intake, dispatch and scripted channels.
pub(crate) struct Desk {
    pub(crate) journal: Arc<MemoryJournal>,
    pub(crate) counted: Arc<CountingJournal>,
    pub(crate) clock: Arc<PausedClock>,
    pub(crate) health: watch::Receiver<Health>,
    pub(crate) options: DeliveryOptions,
    pub(crate) trials: mpsc::Sender<ChannelName>,
    channels: watch::Sender<Arc<ChannelSet>>,
    rules: watch::Sender<Arc<crate::intake::Rules>>,
    intake: Intake,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// The channels of a test, by name.
pub(crate) type Scripted<'a> = &'a [(&'a str, &'a ScriptedChannel)];

/// A set of scripted channels; those whose name begins with `edit` edit their messages.
pub(crate) fn set_of(
    channels: Scripted<'_>,
    per_minute: Option<u32>,
    options: &DeliveryOptions,
) -> ChannelSet {
    let ready = channels.iter().map(|(name, channel)| {
        let kind = if name.starts_with("edit") { &EDITING } else { &PLAIN };
        let channel = Box::new((*channel).clone());
        (name.parse().unwrap(), ReadyChannel::scripted(kind, channel, per_minute))
    });
    ChannelSet::of(ready, options.clone())
}

impl Desk {
    /// A desk with `channels`, running.
    pub(crate) fn with(channels: Scripted<'_>) -> Self {
        Self::begin(channels, None, Arc::new(MemoryJournal::default()))
    }

    /// A desk whose channels each take `per_minute` messages a minute.
    pub(crate) fn limited(channels: Scripted<'_>, per_minute: u32) -> Self {
        Self::begin(channels, Some(per_minute), Arc::new(MemoryJournal::default()))
    }

    /// A desk that goes on with the journal of an earlier one.
    pub(crate) fn begin(
        channels: Scripted<'_>,
        per_minute: Option<u32>,
        journal: Arc<MemoryJournal>,
    ) -> Self {
        let options = DeliveryOptions::default();
        let set = Arc::new(set_of(channels, per_minute, &options));
        let clock = Arc::new(PausedClock::new());
        let (rules, followed_rules) = watch::channel(Arc::new(rules(&Config::default(), &set)));
        let (channels, followed_channels) = watch::channel(set);
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let counted = Arc::new(CountingJournal { kept: journal.clone(), ..Default::default() });
        let (trials, asked_trials) = mpsc::channel(1);
        let health = super::start(
            counted.clone(),
            clock.clone(),
            followed_channels,
            asked_trials,
            &tasks,
            stop.clone(),
        );
        let config = watch::channel(Arc::default()).1;
        let intake = Intake::new(journal.clone(), clock.clone(), followed_rules, config);
        Self {
            journal,
            counted,
            clock,
            health,
            options,
            trials,
            channels,
            rules,
            intake,
            stop,
            tasks,
        }
    }

    /// Changes the channels, as a new configuration does.
    pub(crate) fn change(&self, channels: Scripted<'_>) {
        let set = Arc::new(set_of(channels, None, &self.options));
        self.rules.send_replace(Arc::new(rules(&Config::default(), &set)));
        self.channels.send_replace(set);
    }

    /// Changes what of the rules decides where events go and when.
    pub(crate) fn route(&self, change: impl FnOnce(&mut deskbell_core::route::Routing)) {
        self.rules.send_modify(|rules| change(&mut Arc::make_mut(rules).routing));
    }

    /// Accepts a push to the named channels.
    pub(crate) async fn push(&self, to: &[&str]) -> EventId {
        self.accept("a message", Level::Info, Kind::Push, to).await.event.id
    }

    /// Accepts a push of `level` to all channels.
    pub(crate) async fn tell(&self, level: Level, text: &str) -> EventId {
        self.accept(text, level, Kind::Push, &[]).await.event.id
    }

    /// Accepts a step of a run, to all channels.
    pub(crate) async fn step(&self, phase: Phase, text: &str) -> EventId {
        let step = RunStep {
            run: "build-1".parse().unwrap(),
            phase,
            step: None,
            progress: None,
            reported_at: self.clock.now(),
        };
        let level = if phase == Phase::Error { Level::Error } else { Level::Info };
        self.accept(text, level, Kind::Run(step), &[]).await.event.id
    }

    async fn accept(&self, text: &str, level: Level, kind: Kind, to: &[&str]) -> Accepted {
        let report = Report {
            key: None,
            level,
            context: Context::default(),
            source: Source::default(),
            content: Content { text: text.to_owned(), ..Content::default() },
            text_field: "text",
            at_once: false,
            folder: None,
            kind,
            to: to.iter().map(|name| name.parse().unwrap()).collect(),
        };
        self.intake.accept(report).await.unwrap()
    }

    /// The deliveries of an event, by channel.
    pub(crate) async fn deliveries(&self, event: EventId) -> BTreeMap<String, Delivery> {
        let query =
            DeliveryQuery { event: Some(event), limit: usize::MAX, ..DeliveryQuery::default() };
        let found = self.journal.deliveries(query).await.unwrap();
        found.into_iter().map(|it| (it.id.channel.as_str().to_owned(), it)).collect()
    }

    pub(crate) async fn delivery(&self, event: EventId, channel: &str) -> Delivery {
        self.deliveries(event).await.remove(channel).unwrap()
    }

    /// Waits until the delivery of `event` to `channel` is in `state`; a day at most.
    pub(crate) async fn expect(
        &self,
        event: EventId,
        channel: &str,
        state: DeliveryState,
    ) -> Delivery {
        let mut bell = self.journal.doorbell();
        let waiting = async {
            loop {
                let delivery = self.delivery(event, channel).await;
                if delivery.state == state {
                    return delivery;
                }
                bell.changed().await.unwrap();
            }
        };
        let day = Duration::from_hours(24);
        match tokio::time::timeout(day, waiting).await {
            Ok(delivery) => delivery,
            Err(_) => panic!("not {state} in a day: {:?}", self.delivery(event, channel).await),
        }
    }

    /// Stops dispatch as the program does, and waits until it has stopped.
    pub(crate) async fn stop(self) -> Arc<MemoryJournal> {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.journal
    }
}
