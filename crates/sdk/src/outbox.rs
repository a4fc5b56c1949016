//! What goes to a client next: the rules of waiting, replacing and dropping, without a clock of their own.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::{limits::Limits, rate::Rate};

/// The call of a tool that a notification belongs to, counted within its session; none for what belongs to no call.
pub(crate) type Call = Option<u64>;

/// What newer notifications take the place of: of the same call, the same kind, about the same thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Topic {
    pub(crate) call: Call,
    pub(crate) kind: Kind,
    /// A resource's address.
    pub(crate) about: Option<String>,
}

/// What a notification tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Progress,
    Message,
    ResourceUpdated,
    ResourceListChanged,
    ToolListChanged,
    PromptListChanged,
}

impl Kind {
    /// All kinds.
    pub(crate) const ALL: [Self; 6] = [
        Self::Progress,
        Self::Message,
        Self::ResourceUpdated,
        Self::ResourceListChanged,
        Self::ToolListChanged,
        Self::PromptListChanged,
    ];

    /// The notification's method.
    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Progress => "notifications/progress",
            Self::Message => "notifications/message",
            Self::ResourceUpdated => "notifications/resources/updated",
            Self::ResourceListChanged => "notifications/resources/list_changed",
            Self::ToolListChanged => "notifications/tools/list_changed",
            Self::PromptListChanged => "notifications/prompts/list_changed",
        }
    }

    /// How long one waits for a newer one that says all that it says; none for what nothing takes the place of.
    const fn debounce(self, limits: &Limits) -> Option<Duration> {
        match self {
            Self::Progress => Some(limits.debounce.progress),
            Self::Message => None,
            Self::ResourceUpdated => Some(limits.debounce.resource_updated),
            Self::ResourceListChanged | Self::ToolListChanged | Self::PromptListChanged => {
                Some(limits.debounce.list_changed)
            }
        }
    }

    const fn is_replaced(self) -> bool {
        !matches!(self, Self::Message)
    }

    /// Whether it says that something has changed: it waits for room instead of being dropped, because a client that
    /// misses it shows for ever what is no longer true.
    const fn is_change(self) -> bool {
        !matches!(self, Self::Message | Self::Progress)
    }
}

/// Whether something follows on a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// Perhaps.
    Passing,
    /// Nothing: it waits for nothing and does not count.
    Last,
}

/// A notification on its way.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    pub(crate) topic: Topic,
    pub(crate) word: Word,
    pub(crate) item: T,
}

/// What to do now.
#[derive(Debug)]
pub(crate) enum Next<T> {
    /// Send this.
    Send(Entry<T>),
    /// Say that so many were dropped.
    Warn(u64),
    /// Nothing before this time, unless something is added.
    Wait(Instant),
    /// Nothing.
    Idle,
}

/// What waits to go to one client.
#[derive(Debug)]
pub(crate) struct Outbox<T> {
    held: Vec<Held<T>>,
    ready: VecDeque<Entry<T>>,
}

/// A notification that waits for a newer one.
#[derive(Debug)]
struct Held<T> {
    entry: Entry<T>,
    since: Instant,
    until: Instant,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self { held: Vec::new(), ready: VecDeque::new() }
    }
}

/// So long is as good as for ever, and can still be added to the time.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

fn after(time: Instant, wait: Duration) -> Instant {
    time + wait.min(FOR_EVER)
}

impl<T> Outbox<T> {
    /// Takes a notification. It replaces the one on the same topic that has not gone out.
    pub(crate) fn add(&mut self, entry: Entry<T>, rate: &mut Rate, limits: &Limits, now: Instant) {
        let wait = entry.topic.kind.debounce(limits).filter(|wait| !wait.is_zero());
        let Some(wait) = wait.filter(|_| entry.word == Word::Passing) else {
            if entry.topic.kind.is_replaced() {
                self.held.retain(|held| held.entry.topic != entry.topic);
            }
            self.make_ready(entry, rate, limits);
            return;
        };
        match self.held.iter_mut().find(|held| held.entry.topic == entry.topic) {
            Some(held) => {
                let latest = after(held.since, limits.debounce.at_most.max(wait));
                (held.entry, held.until) = (entry, latest.min(after(now, wait)));
            }
            None => self.held.push(Held { entry, since: now, until: after(now, wait) }),
        }
        if self.held.len() > limits.queue.max(1) {
            // A flood of topics: the oldest one does not wait longer.
            let oldest = self.held.remove(0);
            self.make_ready(oldest.entry, rate, limits);
        }
    }

    fn make_ready(&mut self, entry: Entry<T>, rate: &mut Rate, limits: &Limits) {
        if entry.topic.kind.is_replaced() {
            let goes_before = |ready: &Entry<T>| {
                ready.topic != entry.topic
                    || (ready.word, entry.word) == (Word::Last, Word::Passing)
            };
            self.ready.retain(goes_before);
        }
        self.ready.push_back(entry);
        if self.ready.len() > limits.queue.max(1) {
            let oldest = self.ready.iter().position(|entry| entry.word == Word::Passing);
            self.ready.remove(oldest.unwrap_or(0));
            rate.count_dropped(1);
        }
    }

    /// What to do now.
    pub(crate) fn next(&mut self, rate: &mut Rate, limits: &Limits, now: Instant) -> Next<T> {
        while let Some(due) = self.held.iter().position(|held| held.until <= now) {
            let held = self.held.remove(due);
            self.make_ready(held.entry, rate, limits);
        }
        let mut waiting = 0;
        while let Some(entry) = self.ready.get(waiting) {
            if entry.word == Word::Last || rate.take(limits, now) {
                return self.ready.remove(waiting).map_or(Next::Idle, Next::Send);
            }
            if entry.topic.kind.is_change() {
                waiting += 1;
                continue;
            }
            tracing::debug!(target: crate::TARGET, method = entry.topic.kind.method(),
                "dropped a notification: {} have gone out within a minute", limits.per_minute);
            self.ready.remove(waiting);
            rate.count_dropped(1);
        }
        let held = self.held.iter().map(|held| held.until).min();
        let room = if waiting > 0 { rate.room_at(limits, now) } else { None };
        held.into_iter().chain(room).min().map_or(Next::Idle, Next::Wait)
    }

    /// Lets what is held of `calls` wait no longer.
    pub(crate) fn release(
        &mut self,
        calls: impl Fn(Call) -> bool,
        rate: &mut Rate,
        limits: &Limits,
    ) {
        while let Some(held) = self.held.iter().position(|held| calls(held.entry.topic.call)) {
            let held = self.held.remove(held);
            self.make_ready(held.entry, rate, limits);
        }
    }

    /// Forgets what `call` has not told yet; how much that was.
    pub(crate) fn forget(&mut self, call: Call) -> u64 {
        let before = self.held.len() + self.ready.len();
        self.held.retain(|held| held.entry.topic.call != call);
        self.ready.retain(|entry| entry.topic.call != call);
        (before - self.held.len() - self.ready.len()) as u64
    }

    /// Whether something of `call` has not gone out.
    pub(crate) fn has(&self, call: Call) -> bool {
        let held = self.held.iter().map(|held| &held.entry);
        held.chain(&self.ready).any(|entry| entry.topic.call == call)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.ready.is_empty()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.held.clear();
        self.ready.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::{MINUTE, Warning};

    /// An outbox on a clock that a test turns, and what has gone out of it.
    struct Desk {
        outbox: Outbox<u32>,
        rate: Rate,
        limits: Limits,
        start: Instant,
        now: Instant,
        sent: Vec<(u64, u32)>,
        told: Vec<u64>,
    }

    impl Desk {
        fn new(limits: Limits) -> Self {
            let now = tokio::time::Instant::now().into_std();
            let (sent, told) = (Vec::new(), Vec::new());
            let (outbox, rate) = (Outbox::default(), Rate::default());
            Self { outbox, rate, limits, start: now, now, sent, told }
        }

        fn add(&mut self, kind: Kind, call: u64, item: u32, word: Word) {
            let topic = Topic { call: Some(call), kind, about: None };
            let entry = Entry { topic, word, item };
            self.outbox.add(entry, &mut self.rate, &self.limits, self.now);
            self.pass(Duration::ZERO);
        }

        fn message(&mut self, item: u32) {
            self.add(Kind::Message, 1, item, Word::Passing);
        }

        fn progress(&mut self, item: u32) {
            self.add(Kind::Progress, 1, item, Word::Passing);
        }

        /// Lets `time` pass and does what is to be done within it.
        fn pass(&mut self, time: Duration) {
            let end = self.now + time;
            loop {
                let mut next = self.outbox.next(&mut self.rate, &self.limits, self.now);
                if let Next::Wait(_) | Next::Idle = next {
                    next = match (self.rate.warning(&self.limits, self.now), next) {
                        (Warning::Due(count), _) => Next::Warn(count),
                        (Warning::At(time), Next::Wait(until)) => Next::Wait(time.min(until)),
                        (Warning::At(time), _) => Next::Wait(time),
                        (Warning::None, next) => next,
                    };
                }
                match next {
                    Next::Send(entry) => {
                        let at = self.now.duration_since(self.start).as_millis();
                        self.sent.push((at.try_into().unwrap(), entry.item));
                    }
                    Next::Warn(count) => self.told.push(count),
                    Next::Wait(time) if time <= end => self.now = time,
                    Next::Wait(_) | Next::Idle => break,
                }
            }
            self.now = end;
        }

        fn items(&self) -> Vec<u32> {
            self.sent.iter().map(|(_, item)| *item).collect()
        }
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn sixty_go_out_in_a_minute_and_the_rest_is_counted_rows_43_45() {
        let mut desk = Desk::new(Limits::default());
        for item in 1..=62 {
            desk.message(item);
        }
        assert_eq!(desk.items(), (1..=60).collect::<Vec<_>>());
        assert_eq!(desk.told, [0_u64; 0]);
        desk.pass(MINUTE);
        assert_eq!(desk.told, [2]);
        desk.message(63);
        assert_eq!(desk.items().last(), Some(&63));
        desk.pass(MINUTE);
        assert_eq!(desk.told, [2]);
    }

    #[test]
    fn ten_updates_in_fifty_milliseconds_are_one_row_46() {
        let mut desk = Desk::new(Limits::default());
        for item in 1..=10 {
            desk.progress(item);
            desk.pass(5 * MS);
        }
        desk.pass(Duration::from_secs(1));
        assert_eq!(desk.sent, [(145, 10)]);
    }

    #[test]
    fn a_stream_of_updates_is_heard_row_47() {
        let mut desk = Desk::new(Limits::default());
        for item in 1..=33 {
            desk.progress(item);
            desk.pass(30 * MS);
        }
        assert!(desk.sent.len() >= 3, "{:?}", desk.sent);
        desk.pass(Duration::from_secs(1));
        assert_eq!(desk.items().last(), Some(&33));
    }

    #[test]
    fn the_last_word_waits_for_nothing_and_is_the_last_row_32() {
        let mut desk = Desk::new(Limits::default().with_per_minute(1));
        desk.message(1);
        desk.progress(2);
        desk.add(Kind::Progress, 1, 3, Word::Last);
        desk.pass(MINUTE);
        assert_eq!(desk.items(), [1, 3]);
    }

    #[test]
    fn calls_do_not_replace_each_other_row_48() {
        let mut desk = Desk::new(Limits::default());
        desk.add(Kind::Progress, 1, 10, Word::Passing);
        desk.add(Kind::Progress, 2, 20, Word::Passing);
        desk.pass(Duration::from_secs(1));
        assert_eq!(desk.items(), [10, 20]);
    }

    #[test]
    fn messages_never_replace_each_other() {
        let mut desk = Desk::new(Limits::default());
        desk.message(1);
        desk.message(2);
        assert_eq!(desk.sent, [(0, 1), (0, 2)]);
    }

    #[test]
    fn what_waits_is_bounded_and_the_oldest_goes_row_49() {
        let limits = Limits::default().with_queue(10).with_per_minute(0);
        let (mut outbox, mut rate) = (Outbox::default(), Rate::default());
        let now = tokio::time::Instant::now().into_std();
        for item in 0..100 {
            let topic = Topic { call: Some(1), kind: Kind::Message, about: None };
            let word = if item == 5 { Word::Last } else { Word::Passing };
            outbox.add(Entry { topic, word, item }, &mut rate, &limits, now);
        }
        let mut left = Vec::new();
        while let Next::Send(entry) = outbox.next(&mut rate, &limits, now) {
            left.push(entry.item);
        }
        assert_eq!(left, [5, 91, 92, 93, 94, 95, 96, 97, 98, 99]);
        assert_eq!(rate.warning(&limits, now), Warning::Due(90));
    }

    #[test]
    fn a_flood_of_topics_is_bounded_row_49() {
        let limits = Limits::default().with_queue(10).with_per_minute(0);
        let (mut outbox, mut rate) = (Outbox::default(), Rate::default());
        let now = tokio::time::Instant::now().into_std();
        for item in 0..1_000 {
            let about = Some(format!("file:///{item}"));
            let topic = Topic { call: None, kind: Kind::ResourceUpdated, about };
            let entry = Entry { topic, word: Word::Passing, item };
            outbox.add(entry, &mut rate, &limits, now);
            assert!(outbox.held.len() <= 10 && outbox.ready.len() <= 10);
        }
    }

    #[test]
    fn changes_wait_for_room_and_are_not_dropped() {
        let mut desk = Desk::new(Limits::default().with_per_minute(1));
        desk.message(1);
        desk.add(Kind::ResourceUpdated, 1, 2, Word::Passing);
        desk.pass(Duration::from_secs(1));
        desk.add(Kind::ResourceUpdated, 1, 3, Word::Passing);
        desk.pass(Duration::from_secs(1));
        assert_eq!(desk.items(), [1]);
        desk.pass(MINUTE);
        assert_eq!((desk.items(), &desk.told[..]), (vec![1, 3], &[][..]));
    }

    #[test]
    fn the_last_word_takes_the_place_of_one_that_waits() {
        let mut desk = Desk::new(Limits::default());
        desk.progress(1);
        let topic = Topic { call: Some(1), kind: Kind::Progress, about: None };
        let entry = Entry { topic, word: Word::Passing, item: 2 };
        desk.outbox.make_ready(entry, &mut desk.rate, &desk.limits);
        desk.add(Kind::Progress, 1, 3, Word::Last);
        desk.pass(MINUTE);
        assert_eq!(desk.items(), [3]);
    }

    #[test]
    fn limits_at_their_ends_break_nothing() {
        let for_ever = Limits::default().with_debounce(Duration::MAX).with_queue(0);
        let mut desk = Desk::new(for_ever);
        desk.progress(1);
        desk.progress(2);
        desk.message(3);
        desk.add(Kind::Progress, 1, 4, Word::Last);
        assert_eq!(desk.items(), [3, 4]);
    }

    #[test]
    fn kinds_may_wait_differently_row_46() {
        let mut limits = Limits::default();
        limits.debounce.progress = Duration::ZERO;
        limits.debounce.list_changed = Duration::from_secs(3);
        limits.debounce.at_most = Duration::from_secs(1);
        let mut desk = Desk::new(limits);
        desk.add(Kind::ToolListChanged, 1, 1, Word::Passing);
        desk.progress(2);
        desk.add(Kind::ResourceUpdated, 1, 3, Word::Passing);
        desk.pass(Duration::from_secs(10));
        assert_eq!(desk.sent, [(0, 2), (100, 3), (3_000, 1)]);
    }

    #[test]
    fn what_a_call_holds_is_released_or_forgotten_row_50() {
        let mut desk = Desk::new(Limits::default());
        desk.progress(1);
        desk.add(Kind::Progress, 2, 2, Word::Passing);
        desk.outbox.release(|call| call == Some(1), &mut desk.rate, &desk.limits);
        desk.pass(Duration::ZERO);
        assert_eq!(desk.items(), [1]);
        assert!(desk.outbox.has(Some(2)) && !desk.outbox.has(Some(1)));
        assert_eq!(desk.outbox.forget(Some(2)), 1);
        desk.pass(MINUTE);
        assert_eq!(desk.items(), [1]);
    }
}
