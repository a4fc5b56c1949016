//! Telling many similar events as one, and not telling the same again too soon.
//!
//! The three times are those of Prometheus' Alertmanager: a new group waits for more (`group_wait`), what joins a group
//! that was told waits for its next turn (`group_interval`), and what was told is not told again for a while
//! (`repeat_interval`).

mod digest;

use std::{fmt, time::Duration};

use jiff::{SignedDuration, Timestamp};

pub use self::digest::{DIGEST_TEXTS, Digest};
use crate::{
    delivery::DeliveryState,
    event::{Event, Kind},
};

/// What events of one group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Their category.
    Context,
    /// Who reported them.
    Client,
    /// The project folder.
    Project,
    /// Their level.
    Level,
    /// Their headline.
    Title,
    /// Their text.
    Text,
}

impl By {
    /// The word for it in a configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Client => "client",
            Self::Project => "project",
            Self::Level => "level",
            Self::Title => "title",
            Self::Text => "text",
        }
    }

    fn of(self, event: &Event) -> Option<&str> {
        match self {
            Self::Context => Some(event.context.as_str()),
            Self::Client => event.source.client.as_deref(),
            Self::Project => event.source.project.as_deref(),
            Self::Level => Some(event.level.as_str()),
            Self::Title => event.content.title.as_deref(),
            Self::Text => Some(&event.content.text),
        }
    }
}

/// What two events have in common that say the same, where a route says nothing else.
const SAME: [By; 6] = [By::Level, By::Context, By::Client, By::Project, By::Title, By::Text];

/// When so many events were accepted after the first of a message, it takes no more: the next begins another.
pub const MESSAGE_EVENTS: u64 = 10_000;

/// How a route groups its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grouping {
    /// What the events of a group have in common; with nothing, all of the route are one group.
    pub by: Vec<By>,
    /// How long the first of a group waits for more.
    pub wait: Duration,
    /// The least time between two messages of a group.
    pub interval: Duration,
    /// For how long what was told is not told again; `None` tells all.
    pub repeat: Option<Duration>,
    /// What events have in common that say the same: one line of a message, and repeats. With nothing, level, context,
    /// client, project, title and text.
    pub same: Vec<By>,
}

impl Grouping {
    /// Only drops repeats of what is the `same`: nothing waits for anything else.
    pub fn of_repeats(repeat: Duration, same: Vec<By>) -> Self {
        let by = if same.is_empty() { SAME.to_vec() } else { same.clone() };
        let (wait, interval) = (Duration::ZERO, Duration::ZERO);
        Self { by, wait, interval, repeat: Some(repeat), same }
    }

    /// The group of `event` among those of `scope`. Steps of runs belong to none: they follow each other already.
    pub fn of(&self, scope: &str, event: &Event) -> Option<Grouped> {
        if matches!(event.kind, Kind::Run(_)) {
            return None;
        }
        let values = |by: &[By]| by.iter().map(|by| by.of(event)).collect::<Vec<_>>();
        Some(Grouped {
            // Written with quotes and escapes, so that no text can pass for the values of another group.
            group: format!("{scope:?} {:?} {:?}", self.by, values(&self.by)),
            content: format!("{:?}", values(if self.same.is_empty() { &SAME } else { &self.same })),
            interval: self.interval,
            repeat: self.repeat,
        })
    }
}

/// What it does, in the words of the configuration.
impl fmt::Display for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |by: &[By]| by.iter().map(|by| by.as_str()).collect::<Vec<_>>().join(", ");
        let length = |length: Duration| SignedDuration::try_from(length).unwrap_or_default();
        let mut parts = Vec::new();
        if !self.wait.is_zero() || !self.interval.is_zero() {
            let by = if self.by.is_empty() { "route".to_owned() } else { list(&self.by) };
            let (wait, interval) = (length(self.wait), length(self.interval));
            parts.push(format!("grouped by {by}, after {wait:#} and at most every {interval:#}"));
        }
        if let Some(repeat) = self.repeat {
            let same = if self.same.is_empty() { "the same".to_owned() } else { list(&self.same) };
            parts.push(format!("{same} again only after {:#}", length(repeat)));
        }
        f.write_str(&parts.join("; "))
    }
}

/// A delivery's place in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grouped {
    /// Which group.
    pub group: String,
    /// What two deliveries have in common that say the same.
    pub content: String,
    /// The least time between two messages of the group.
    pub interval: Duration,
    /// For how long what was told is not told again.
    pub repeat: Option<Duration>,
}

/// The telling of a group: the delivery that others join, or that was tried already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Telling<K> {
    /// What the journal knows the delivery by.
    pub key: K,
    /// Where the message stands.
    pub state: DeliveryState,
    /// Whether it was tried, be it before a retry by hand.
    pub was_tried: bool,
    /// When it is due, or was tried last.
    pub due_at: Timestamp,
    /// How many events were accepted since its first.
    pub events_since: u64,
}

impl<K> Telling<K> {
    /// The states in which the last message of a group matters.
    pub const STATES: [DeliveryState; 3] =
        [DeliveryState::Pending, DeliveryState::InFlight, DeliveryState::Sent];

    /// Whether more can join it: what was tried once must be the same in the next attempt.
    const fn is_open(&self) -> bool {
        matches!(self.state, DeliveryState::Pending)
            && !self.was_tried
            && self.events_since < MESSAGE_EVENTS
    }

    /// Whether the next message keeps its distance to it. One that waits for its next attempt holds up nothing: the
    /// far end has not got it.
    const fn counts_for_the_interval(&self) -> bool {
        matches!(self.state, DeliveryState::InFlight | DeliveryState::Sent)
    }

    /// Whether it was told, or is on its way.
    const fn counts_as_told(&self) -> bool {
        match self.state {
            // Until it arrives it stands only for so many, which are told after all when it is given up.
            DeliveryState::Pending => self.was_tried && self.events_since < MESSAGE_EVENTS,
            DeliveryState::InFlight => self.events_since < MESSAGE_EVENTS,
            DeliveryState::Sent => true,
            DeliveryState::GivenUp | DeliveryState::Superseded => false,
        }
    }
}

/// When repeats are told after all: once the message that stood for them is given up, but not before the first of them
/// was due, such as at the end of quiet hours.
pub fn told_after_all(given_up_at: Timestamp, due_at: Timestamp) -> Timestamp {
    given_up_at.max(due_at)
}

/// What becomes of a delivery of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn<K> {
    /// It is the first of the next message, which is due then.
    Leads(Timestamp),
    /// It is told in the message of another, which is due then.
    Joins(K, Timestamp),
    /// It says the same as another that was told or is on its way, and is told only if that one is given up.
    Repeats(K),
}

impl Grouped {
    /// What becomes of a delivery that was reported at `at` and, for itself, is due at `due_at`.
    ///
    /// `tellings` are the messages of the group on the channel, at least the last of each state; `same` the newest
    /// delivery that says the same and is no repeat, with where its message stands.
    pub fn turn<K: Copy>(
        &self,
        at: Timestamp,
        due_at: Timestamp,
        tellings: &[Telling<K>],
        same: Option<Telling<K>>,
    ) -> Turn<K> {
        let after = |at: Timestamp, by| at.checked_add(by).unwrap_or(Timestamp::MAX);
        if let (Some(repeat), Some(same)) = (self.repeat, same)
            && same.counts_as_told()
            && at < after(same.due_at, repeat)
        {
            return Turn::Repeats(same.key);
        }
        let told = tellings.iter().filter(|telling| telling.counts_for_the_interval());
        let next = told.map(|telling| after(telling.due_at, self.interval)).max();
        let due_at = next.map_or(due_at, |next| next.max(due_at));
        match tellings.iter().find(|telling| telling.is_open()) {
            // One that cannot wait takes the others with it.
            Some(open) => Turn::Joins(open.key, open.due_at.min(due_at)),
            None => Turn::Leads(due_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        event::{Content, EventIds},
        level::Level,
        source::Source,
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn telling(key: u8, state: DeliveryState, was_tried: bool, due_at: i64) -> Telling<u8> {
        Telling { key, state, was_tried, due_at: at(due_at), events_since: 0 }
    }

    /// A delivery that is reported at 100 and due at 110, in a group of 60 seconds with repeats after 50.
    #[track_caller]
    fn check(tellings: &[Telling<u8>], same: Option<Telling<u8>>, expected: Turn<u8>) {
        let grouped = Grouped {
            group: String::new(),
            content: String::new(),
            interval: Duration::from_secs(60),
            repeat: Some(Duration::from_secs(50)),
        };
        assert_eq!(grouped.turn(at(100), at(110), tellings, same), expected);
    }

    #[test]
    fn the_first_of_a_group_leads_and_the_next_join_it() {
        use DeliveryState::{InFlight, Pending, Sent};
        check(&[], None, Turn::Leads(at(110)));
        check(&[telling(1, Pending, false, 105)], None, Turn::Joins(1, at(105)));
        check(&[telling(1, Pending, false, 900)], None, Turn::Joins(1, at(110)));
        check(&[telling(1, Sent, true, 95)], None, Turn::Leads(at(155)));
        check(&[telling(1, Sent, true, 20)], None, Turn::Leads(at(110)));
        check(&[telling(1, InFlight, true, 99)], None, Turn::Leads(at(159)));
        let line = [telling(1, InFlight, true, 95), telling(2, Pending, false, 155)];
        check(&line, None, Turn::Joins(2, at(155)));
    }

    #[test]
    fn a_message_that_waits_for_its_next_attempt_takes_no_more_and_holds_up_nothing() {
        check(&[telling(1, DeliveryState::Pending, true, 900)], None, Turn::Leads(at(110)));
    }

    #[test]
    fn a_message_takes_only_so_many_events() {
        let open = telling(1, DeliveryState::Pending, false, 105);
        let full = Telling { events_since: MESSAGE_EVENTS, ..open };
        check(
            &[Telling { events_since: MESSAGE_EVENTS - 1, ..open }],
            None,
            Turn::Joins(1, at(105)),
        );
        check(&[full], None, Turn::Leads(at(110)));
    }

    #[test]
    fn what_was_told_is_not_told_again_for_a_while() {
        use DeliveryState::{GivenUp, InFlight, Pending, Sent};
        let told = |state, was_tried, due_at| Some(telling(9, state, was_tried, due_at));
        check(&[], told(Sent, true, 51), Turn::Repeats(9));
        check(&[], told(Sent, true, 50), Turn::Leads(at(110)));
        check(&[], told(InFlight, true, 99), Turn::Repeats(9));
        check(&[], told(Pending, true, 300), Turn::Repeats(9));
        let many = |state| {
            told(state, true, 99).map(|same| Telling { events_since: MESSAGE_EVENTS, ..same })
        };
        check(&[], many(Sent), Turn::Repeats(9));
        check(&[], many(InFlight), Turn::Leads(at(110)));
        check(&[], many(Pending), Turn::Leads(at(110)));
        check(&[], told(GivenUp, true, 99), Turn::Leads(at(110)));
        let open = telling(9, Pending, false, 99);
        check(&[open], Some(open), Turn::Joins(9, at(99)));
    }

    fn event(title: Option<&str>, text: &str) -> Event {
        Event {
            id: EventIds::default().next(at(0), 0),
            at: at(0),
            level: Level::Info,
            context: crate::context::Context::default(),
            source: Source::default(),
            content: Content {
                title: title.map(str::to_owned),
                text: text.to_owned(),
                ..Content::default()
            },
            kind: Kind::Push,
            to: Vec::new(),
        }
    }

    #[test]
    fn no_text_passes_for_the_values_of_another_group() {
        let by = vec![By::Title, By::Text];
        let grouping = Grouping { by, ..Grouping::of_repeats(Duration::ZERO, Vec::new()) };
        let group = |title, text| grouping.of("route 1", &event(title, text)).unwrap().group;
        assert_eq!(group(Some("a"), "b"), group(Some("a"), "b"));
        assert_ne!(group(Some("a"), "b"), group(None, "b"));
        assert_ne!(group(Some("a\"), Some(\"b"), "c"), group(Some("a"), "b\"), Some(\"c"));
        assert_ne!(
            grouping.of("route 1", &event(None, "b")),
            grouping.of("route 2", &event(None, "b"))
        );
    }

    #[test]
    fn what_is_the_same_is_for_the_route_to_say() {
        let told = |same: &[By], title, text| {
            let grouping = Grouping::of_repeats(Duration::ZERO, same.to_vec());
            let grouped = grouping.of("route 1", &event(Some(title), text)).unwrap();
            (grouped.group, grouped.content)
        };
        assert_ne!(told(&[], "Disk", "95 %"), told(&[], "Disk", "96 %"));
        assert_eq!(told(&[By::Title], "Disk", "95 %"), told(&[By::Title], "Disk", "96 %"));
        assert_ne!(told(&[By::Title], "Disk", "95 %"), told(&[By::Title], "Memory", "95 %"));
        let elsewhere = |project: &str| {
            let source = Source { project: Some(project.to_owned()), ..Source::default() };
            let event = Event { source, ..event(None, "done") };
            Grouping::of_repeats(Duration::ZERO, Vec::new()).of("route 1", &event)
        };
        assert_ne!(elsewhere("/home/me/a"), elsewhere("/home/me/b"));
    }

    #[test]
    fn a_grouping_says_what_it_does() {
        let grouping = Grouping {
            by: vec![By::Client, By::Level],
            wait: Duration::from_secs(10),
            interval: Duration::from_mins(1),
            repeat: Some(Duration::from_hours(4)),
            same: vec![By::Title],
        };
        assert_eq!(
            grouping.to_string(),
            "grouped by client, level, after 10s and at most every 1m; title again only after 4h"
        );
        let repeats = Grouping::of_repeats(Duration::from_mins(90), Vec::new());
        assert_eq!(repeats.to_string(), "the same again only after 1h 30m");
    }
}
