//! What goes to a client next: the rules of waiting, replacing and dropping, without a clock of their own.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::limits::Limits;

/// What [`Limits::per_minute`] counts over.
const MINUTE: Duration = Duration::from_secs(60);

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Progress,
    Message,
    ResourceUpdated,
    ResourceListChanged,
    ToolListChanged,
    PromptListChanged,
}

impl Kind {
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

    /// Whether the newest one says all that the ones before it said.
    const fn is_replaced(self) -> bool {
        !matches!(self, Self::Message)
    }
}

/// A notification on its way.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    pub(crate) topic: Topic,
    /// The last word on its topic: it waits for nothing and does not count.
    pub(crate) is_final: bool,
    pub(crate) item: T,
}

/// What to do now.
#[derive(Debug)]
pub(crate) enum Next<T> {
    /// Send this.
    Send(Entry<T>),
    /// Say that so many were dropped.
    Dropped(u64),
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
    /// When those went out that count, of the last minute.
    recent: VecDeque<Instant>,
    /// How many were dropped since the client was last told.
    dropped: u64,
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
        Self { held: Vec::new(), ready: VecDeque::new(), recent: VecDeque::new(), dropped: 0 }
    }
}

impl<T> Outbox<T> {
    /// Takes a notification. It replaces the one on the same topic that is still held.
    pub(crate) fn add(&mut self, entry: Entry<T>, limits: &Limits, now: Instant) {
        let same = self.held.iter().position(|held| held.entry.topic == entry.topic);
        if !entry.topic.kind.is_replaced() || limits.debounce.is_zero() || entry.is_final {
            if let Some(same) = same {
                self.held.remove(same);
            }
            self.make_ready(entry, limits);
            return;
        }
        match same.and_then(|same| self.held.get_mut(same)) {
            Some(held) => {
                let latest = held.since + limits.debounce_at_most;
                (held.entry, held.until) = (entry, latest.min(now + limits.debounce));
            }
            None => self.held.push(Held { entry, since: now, until: now + limits.debounce }),
        }
        if self.held.len() > limits.queue {
            // A flood of topics: the oldest one does not wait longer.
            let oldest = self.held.remove(0);
            self.make_ready(oldest.entry, limits);
        }
    }

    fn make_ready(&mut self, entry: Entry<T>, limits: &Limits) {
        self.ready.push_back(entry);
        if self.ready.len() > limits.queue {
            let oldest = self.ready.iter().position(|entry| !entry.is_final).unwrap_or(0);
            self.ready.remove(oldest);
            self.dropped += 1;
        }
    }

    /// What to do now.
    pub(crate) fn next(&mut self, limits: &Limits, now: Instant) -> Next<T> {
        while let Some(due) = self.held.iter().position(|held| held.until <= now) {
            let held = self.held.remove(due);
            self.make_ready(held.entry, limits);
        }
        while self.recent.front().is_some_and(|sent| *sent + MINUTE <= now) {
            self.recent.pop_front();
        }
        let limit = usize::try_from(limits.per_minute).unwrap_or(usize::MAX);
        let has_room = |recent: &VecDeque<_>| limit == 0 || recent.len() < limit;
        while let Some(entry) = self.ready.pop_front() {
            if !entry.is_final {
                if !has_room(&self.recent) {
                    self.dropped += 1;
                    tracing::debug!(target: crate::TARGET, method = entry.topic.kind.method(),
                        "dropped a notification: {limit} have gone out within a minute");
                    continue;
                }
                if limit > 0 {
                    self.recent.push_back(now);
                }
            }
            return Next::Send(entry);
        }
        if self.dropped > 0 && has_room(&self.recent) {
            return Next::Dropped(std::mem::take(&mut self.dropped));
        }
        let held = self.held.iter().map(|held| held.until).min();
        let room = self.recent.front().filter(|_| self.dropped > 0).map(|sent| *sent + MINUTE);
        match held.into_iter().chain(room).min() {
            Some(time) => Next::Wait(time),
            None => Next::Idle,
        }
    }

    /// Lets what `call` holds wait no longer.
    pub(crate) fn release(&mut self, call: Call, limits: &Limits) {
        while let Some(held) = self.held.iter().position(|held| held.entry.topic.call == call) {
            let held = self.held.remove(held);
            self.make_ready(held.entry, limits);
        }
    }

    /// Forgets what `call` has not told yet; how much that was.
    pub(crate) fn forget(&mut self, call: Call) -> usize {
        let before = self.held.len() + self.ready.len();
        self.held.retain(|held| held.entry.topic.call != call);
        self.ready.retain(|entry| entry.topic.call != call);
        before - self.held.len() - self.ready.len()
    }

    /// Whether something of `call` has not gone out.
    pub(crate) fn has(&self, call: Call) -> bool {
        let held = self.held.iter().map(|held| &held.entry);
        held.chain(&self.ready).any(|entry| entry.topic.call == call)
    }

    /// How many were dropped since the client was last told, which it is told now.
    pub(crate) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An outbox on a clock that a test turns, and what has gone out of it.
    struct Desk {
        outbox: Outbox<u32>,
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
            Self { outbox: Outbox::default(), limits, start: now, now, sent, told }
        }

        fn add(&mut self, kind: Kind, call: u64, item: u32, is_final: bool) {
            let topic = Topic { call: Some(call), kind, about: None };
            self.outbox.add(Entry { topic, is_final, item }, &self.limits, self.now);
            self.pass(Duration::ZERO);
        }

        fn message(&mut self, item: u32) {
            self.add(Kind::Message, 1, item, false);
        }

        fn progress(&mut self, item: u32) {
            self.add(Kind::Progress, 1, item, false);
        }

        /// Lets `time` pass and does what is to be done within it.
        fn pass(&mut self, time: Duration) {
            let end = self.now + time;
            loop {
                match self.outbox.next(&self.limits, self.now) {
                    Next::Send(entry) => {
                        let at = self.now.duration_since(self.start).as_millis();
                        self.sent.push((at.try_into().unwrap(), entry.item));
                    }
                    Next::Dropped(count) => self.told.push(count),
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
    fn sixty_go_out_in_a_minute_and_the_rest_is_counted_row_43_45() {
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
    fn any_sixty_seconds_count() {
        let mut desk = Desk::new(Limits { per_minute: 2, ..Limits::default() });
        desk.message(1);
        desk.pass(MINUTE - MS);
        desk.message(2);
        desk.message(3);
        desk.pass(MS);
        desk.message(4);
        desk.message(5);
        assert_eq!(desk.items(), [1, 2, 4]);
    }

    #[test]
    fn without_a_limit_everything_goes_out() {
        let mut desk = Desk::new(Limits { per_minute: 0, ..Limits::default() });
        for item in 0..5_000 {
            desk.message(item);
        }
        assert_eq!(desk.sent.len(), 5_000);
        assert!(desk.outbox.recent.is_empty());
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
        let mut desk = Desk::new(Limits { per_minute: 1, ..Limits::default() });
        desk.message(1);
        desk.progress(2);
        desk.add(Kind::Progress, 1, 3, true);
        desk.pass(MINUTE);
        assert_eq!(desk.items(), [1, 3]);
    }

    #[test]
    fn calls_do_not_replace_each_other_row_48() {
        let mut desk = Desk::new(Limits::default());
        desk.add(Kind::Progress, 1, 10, false);
        desk.add(Kind::Progress, 2, 20, false);
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
        let limits = Limits { queue: 10, per_minute: 0, ..Limits::default() };
        let mut outbox = Outbox::default();
        let now = tokio::time::Instant::now().into_std();
        for item in 0..100 {
            let topic = Topic { call: Some(1), kind: Kind::Message, about: None };
            outbox.add(Entry { topic, is_final: item == 5, item }, &limits, now);
        }
        let mut left = Vec::new();
        let dropped = loop {
            match outbox.next(&limits, now) {
                Next::Send(entry) => left.push(entry.item),
                Next::Dropped(count) => break count,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(left, [5, 91, 92, 93, 94, 95, 96, 97, 98, 99]);
        assert_eq!(dropped, 90);
    }

    #[test]
    fn a_flood_of_topics_is_bounded_row_49() {
        let limits = Limits { queue: 10, per_minute: 0, ..Limits::default() };
        let mut outbox = Outbox::default();
        for item in 0..1_000 {
            let about = Some(format!("file:///{item}"));
            let topic = Topic { call: None, kind: Kind::ResourceUpdated, about };
            outbox.add(
                Entry { topic, is_final: false, item },
                &limits,
                tokio::time::Instant::now().into_std(),
            );
            assert!(outbox.held.len() <= 10 && outbox.ready.len() <= 10);
        }
    }

    #[test]
    fn what_a_call_holds_is_released_or_forgotten_row_50() {
        let mut desk = Desk::new(Limits::default());
        desk.progress(1);
        desk.add(Kind::Progress, 2, 2, false);
        desk.outbox.release(Some(1), &desk.limits);
        desk.pass(Duration::ZERO);
        assert_eq!(desk.items(), [1]);
        assert!(desk.outbox.has(Some(2)) && !desk.outbox.has(Some(1)));
        assert_eq!(desk.outbox.forget(Some(2)), 1);
        desk.pass(MINUTE);
        assert_eq!(desk.items(), [1]);
    }
}
