//! One event to one channel: its states, its attempts and what they proved.

use std::{fmt, str::FromStr, time::Duration};

use jiff::Timestamp;

use crate::{
    event::{EventId, Kind},
    field::Invalid,
    group::Grouped,
    run::Phase,
};

/// The name of a configured channel, such as `team-slack`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelName(String);

impl ChannelName {
    /// Longest name, in characters.
    pub const LIMIT: usize = 64;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ChannelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for ChannelName {
    type Err = Invalid;

    fn from_str(name: &str) -> Result<Self, Invalid> {
        let fits = (1..=Self::LIMIT).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if fits {
            Ok(Self(name.to_owned()))
        } else {
            Err(Invalid::text("channel", name, "a name of 1 to 64 letters, digits, `-` and `_`"))
        }
    }
}

/// The stable id of a delivery, the same in every attempt: `EVENT_ID.CHANNEL`.
///
/// Far ends that take an id get it, so that they can drop repeats.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryId {
    /// The event that is delivered.
    pub event: EventId,
    /// The channel it goes to.
    pub channel: ChannelName,
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.event, self.channel)
    }
}

impl FromStr for DeliveryId {
    type Err = Invalid;

    fn from_str(id: &str) -> Result<Self, Invalid> {
        let parsed = id.split_once('.').and_then(|(event, channel)| {
            Some(Self { event: event.parse().ok()?, channel: channel.parse().ok()? })
        });
        parsed.ok_or_else(|| Invalid::text("delivery id", id, "EVENT_ID.CHANNEL"))
    }
}

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    /// Not tried yet, or to be tried again.
    Pending,
    /// An attempt is under way.
    InFlight,
    /// The far end took it.
    Sent,
    /// Given up: refused for good, or tried too often.
    GivenUp,
    /// Replaced by a later step of the same run before it was tried, or a repeat of what was told.
    Superseded,
}

impl DeliveryState {
    /// The state's name on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InFlight => "in_flight",
            Self::Sent => "sent",
            Self::GivenUp => "given_up",
            Self::Superseded => "superseded",
        }
    }

    /// Whether nothing more happens to it by itself.
    pub const fn is_settled(self) -> bool {
        match self {
            Self::Pending | Self::InFlight => false,
            Self::Sent | Self::GivenUp | Self::Superseded => true,
        }
    }
}

impl fmt::Display for DeliveryState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for DeliveryState {
    type Err = Invalid;

    fn from_str(name: &str) -> Result<Self, Invalid> {
        let states = [Self::Pending, Self::InFlight, Self::Sent, Self::GivenUp, Self::Superseded];
        let found = states.into_iter().find(|state| state.as_str() == name);
        found.ok_or_else(|| {
            Invalid::text("state", name, "one of pending, in_flight, sent, given_up, superseded")
        })
    }
}

/// What a failed attempt means, said by the code that saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Worth another try, not before `retry_after` if the far end said so.
    Temporary {
        /// How long the far end asked to wait.
        retry_after: Option<Duration>,
    },
    /// Refused for good: a bad token, an unknown chat.
    Permanent,
}

/// What the far end gave as proof that it took a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The far end's id of the message, which an edit needs.
    pub message_id: Option<String>,
}

/// A piece of a message that has arrived: one part of it at one place of its channel.
///
/// The marks tell the pieces apart when the channel's options have changed between two attempts: a place that has the
/// same mark is the same place, wherever it stands in the list by now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrived {
    /// The mark of the place.
    pub place: Mark,
    /// The mark of the part's text; none once the whole message has arrived.
    pub text: Mark,
    /// What the far end gave for it.
    pub receipt: Receipt,
}

/// A number that stands for a text in the journal, where the text itself would be too long or too secret.
///
/// The 32-bit FNV-1a hash of the text. It tells the few texts of one delivery apart and protects nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark(pub u32);

impl Mark {
    /// What stands for nothing: the one place of a channel that names none.
    pub const NONE: Self = Self(0);

    /// The mark of `text`.
    pub fn of(text: &str) -> Self {
        let hash = text
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        Self(hash)
    }
}

/// What an attempt came to, as the journal keeps it.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The far end took it.
    Sent {
        /// Its pieces, for each place of the channel one for each part.
        arrived: Vec<Arrived>,
        /// What of it did not arrive, such as a file, in words.
        without: Option<String>,
    },
    /// It failed and is tried again at `at`.
    RetryAt {
        /// When to try again.
        at: Timestamp,
        /// What went wrong, without secrets.
        error: String,
        /// The pieces that have arrived, which are not sent again.
        arrived: Vec<Arrived>,
    },
    /// It is given up.
    GivenUp {
        /// What went wrong, without secrets.
        error: String,
        /// The pieces that have arrived, which a retry by hand does not send again.
        arrived: Vec<Arrived>,
    },
}

/// A delivery as it is planned when its event is accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The channel.
    pub channel: ChannelName,
    /// Not to be tried before this time.
    pub due_at: Timestamp,
    /// Why it goes there, such as `route 2` or `named by the caller`.
    pub reason: String,
    /// What it does to earlier deliveries of the same run to the same channel.
    pub replaces: Replaces,
    /// Its group, if it may be told together with others.
    pub grouped: Option<Grouped>,
}

/// What a delivery of a run's step does to earlier, untried deliveries of the same run to the same channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaces {
    /// Nothing: every delivery stands for itself.
    Nothing,
    /// It takes the place of untried updates, and waits until `interval` after the last step that was due.
    Updates {
        /// The least time between two updates of a run on a channel.
        interval: Duration,
    },
    /// It takes the place of untried updates and goes at once.
    UpdatesAtOnce,
}

impl Replaces {
    /// What a delivery of an event of this sort replaces; updates of a run keep `interval` between them.
    pub const fn of(kind: &Kind, interval: Duration) -> Self {
        let Kind::Run(step) = kind else { return Self::Nothing };
        match step.phase {
            Phase::Start => Self::Nothing,
            Phase::Update => Self::Updates { interval },
            Phase::End | Phase::Error => Self::UpdatesAtOnce,
        }
    }

    /// Finds the place of a delivery that is planned for `due_at` behind the `earlier` ones of its run on its channel,
    /// which come in the order of their steps.
    ///
    /// Of the finished ones only the last that was tried counts: whoever has many may leave out the others.
    pub fn place<K: Clone>(
        self,
        due_at: Timestamp,
        earlier: impl IntoIterator<Item = Earlier<K>>,
    ) -> Place<K> {
        let mut place = Place { due_at, superseded: Vec::new(), hurried: Vec::new() };
        if self == Self::Nothing {
            return place;
        }
        let (mut replaced, mut latest): (Option<Timestamp>, Option<Timestamp>) = (None, None);
        let mut untried = Vec::new();
        for delivery in earlier {
            if delivery.is_untried() && !delivery.is_untried_update() {
                untried.push((delivery.due_at, delivery.key.clone()));
            }
            if delivery.is_untried_update() {
                replaced = replaced.into_iter().chain([delivery.due_at]).min();
                place.superseded.push(delivery.key);
            } else if delivery.counts_for_the_interval() {
                latest = Some(delivery.due_at);
            }
        }
        if let Self::Updates { interval } = self {
            let spaced = latest.map(|at| at.checked_add(interval).unwrap_or(Timestamp::MAX));
            // With the place goes the time, so that a run that never rests is told all the same.
            place.due_at = replaced.unwrap_or_else(|| spaced.map_or(due_at, |at| at.max(due_at)));
        }
        let later = untried.into_iter().filter(|(due_at, _)| *due_at > place.due_at);
        place.hurried.extend(later.map(|(_, key)| key));
        place
    }
}

/// The delivery of an earlier step of a run to the same channel.
#[derive(Debug, Clone, Copy)]
pub struct Earlier<K> {
    /// What the journal knows it by.
    pub key: K,
    /// Which step it tells.
    pub phase: Phase,
    /// Where it stands.
    pub state: DeliveryState,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is or was due.
    pub due_at: Timestamp,
}

impl<K> Earlier<K> {
    fn is_untried(&self) -> bool {
        self.state == DeliveryState::Pending && self.attempts == 0
    }

    fn is_untried_update(&self) -> bool {
        self.phase == Phase::Update && self.is_untried()
    }

    /// A start counts from when it is planned: whoever reads of it need not read an update at once.
    fn counts_for_the_interval(&self) -> bool {
        self.attempts > 0 || self.phase == Phase::Start
    }
}

/// The place of a delivery among those of its run on its channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place<K> {
    /// When it is due.
    pub due_at: Timestamp,
    /// The deliveries whose place it takes.
    pub superseded: Vec<K>,
    /// The deliveries that were held back until later than it is due, and go with it: it waits for them.
    pub hurried: Vec<K>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunStep;

    const INTERVAL: Duration = Duration::from_secs(10);
    const UPDATES: Replaces = Replaces::Updates { interval: INTERVAL };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Deliveries by phase, state, attempts and the second at which they are due; the index is their key.
    #[track_caller]
    fn check(
        replaces: Replaces,
        earlier: &[(Phase, DeliveryState, u32, i64)],
        due_at: i64,
        superseded: &[usize],
    ) {
        let line = earlier.iter().enumerate().map(|(key, (phase, state, attempts, due_at))| {
            Earlier { key, phase: *phase, state: *state, attempts: *attempts, due_at: at(*due_at) }
        });
        let place = replaces.place(at(100), line);
        let superseded = superseded.to_vec();
        assert_eq!(place, Place { due_at: at(due_at), superseded, hurried: Vec::new() });
    }

    #[test]
    fn an_update_takes_place_and_time_of_untried_ones() {
        let line = [
            (Phase::Start, DeliveryState::Sent, 1, 90),
            (Phase::Update, DeliveryState::Superseded, 0, 97),
            (Phase::Update, DeliveryState::Pending, 0, 98),
            (Phase::Update, DeliveryState::Pending, 0, 97),
        ];
        check(UPDATES, &line, 97, &[2, 3]);
        check(Replaces::UpdatesAtOnce, &line, 100, &[2, 3]);
        check(Replaces::Nothing, &line, 100, &[]);
    }

    #[test]
    fn an_update_keeps_the_interval_to_the_last_one_tried() {
        let tried = |state| [(Phase::Update, state, 1, 80), (Phase::Update, state, 1, 95)];
        for state in [
            DeliveryState::Pending,
            DeliveryState::InFlight,
            DeliveryState::Sent,
            DeliveryState::GivenUp,
        ] {
            check(UPDATES, &tried(state), 105, &[]);
        }
        check(UPDATES, &[(Phase::Update, DeliveryState::Sent, 1, 80)], 100, &[]);
        check(UPDATES, &[(Phase::Update, DeliveryState::Superseded, 0, 99)], 100, &[]);
        check(UPDATES, &[], 100, &[]);
    }

    #[test]
    fn a_start_counts_before_it_is_tried_and_is_never_superseded() {
        check(UPDATES, &[(Phase::Start, DeliveryState::Pending, 0, 99)], 109, &[]);
        check(Replaces::UpdatesAtOnce, &[(Phase::Start, DeliveryState::Pending, 0, 99)], 100, &[]);
    }

    #[test]
    fn what_cannot_wait_hurries_the_start_that_was_held_back() {
        let start = |due_at, attempts| Earlier {
            key: 0,
            phase: Phase::Start,
            state: DeliveryState::Pending,
            attempts,
            due_at: at(due_at),
        };
        let place = |earlier| Replaces::UpdatesAtOnce.place(at(100), [earlier]);
        let expected = |hurried| Place { due_at: at(100), superseded: Vec::new(), hurried };
        assert_eq!(place(start(500, 0)), expected(vec![0]));
        assert_eq!(place(start(500, 1)), expected(Vec::new()));
        assert_eq!(place(start(90, 0)), expected(Vec::new()));
    }

    #[test]
    fn only_later_steps_replace() {
        let step = |phase| {
            let run = "r".parse().unwrap();
            let step = RunStep { run, phase, step: None, progress: None, reported_at: at(0) };
            Replaces::of(&Kind::Run(step), INTERVAL)
        };
        assert_eq!(step(Phase::Start), Replaces::Nothing);
        assert_eq!(step(Phase::Update), UPDATES);
        assert_eq!(step(Phase::End), Replaces::UpdatesAtOnce);
        assert_eq!(step(Phase::Error), Replaces::UpdatesAtOnce);
        assert_eq!(Replaces::of(&Kind::Push, INTERVAL), Replaces::Nothing);
    }

    #[test]
    fn ids_are_read_back() {
        let id = "019a9c2e-5f00-7000-8000-000000000000.team-slack";
        assert_eq!(id.parse::<DeliveryId>().unwrap().to_string(), id);
        for odd in [
            "",
            "x",
            "019a9c2e-5f00-7000-8000-000000000000",
            "019a9c2e-5f00-7000-8000-000000000000.a b",
        ] {
            assert!(odd.parse::<DeliveryId>().is_err(), "{odd}");
        }
    }

    #[test]
    fn channel_names_are_plain() {
        for name in ["phone", "team-slack", "a_1"] {
            assert!(name.parse::<ChannelName>().is_ok());
        }
        for name in ["", "a b", "ä", "a.b", &"x".repeat(65)] {
            assert!(name.parse::<ChannelName>().is_err(), "{name}");
        }
    }
}
