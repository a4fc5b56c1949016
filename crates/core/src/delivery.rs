//! One event to one channel: its states, its attempts and what they proved.

use std::{fmt, str::FromStr, time::Duration};

use jiff::Timestamp;

use crate::{event::EventId, field::Invalid};

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
    /// Replaced by a later step of the same run before it was tried.
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

/// What an attempt came to, as the journal keeps it.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The far end took it.
    Sent(Receipt),
    /// It failed and is tried again at `at`.
    RetryAt {
        /// When to try again.
        at: Timestamp,
        /// What went wrong, without secrets.
        error: String,
    },
    /// It is given up.
    GivenUp {
        /// What went wrong, without secrets.
        error: String,
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

#[cfg(test)]
mod tests {
    use super::*;

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
