//! What the HTTP API writes and reads as JSON. The command line reads the same types.
//!
//! These are separate from the types we think in: changing a name here breaks somebody's script.

mod attachment;
mod channel;
mod delivery;
mod event;

use deskbell_core::{EventId, Run, run::Progress};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use attachment::attachments;
pub(super) use event::LevelName;
pub use {
    attachment::AttachmentBody,
    channel::{ChannelBody, ChannelList, LastErrorBody, LeftOutBody, SnoozedBody, TestBody},
    delivery::{AttemptBody, DeliveryBody, RouteBody, WhyBody},
    event::{EventBody, SourceBody, StepBody},
};

use crate::{intake::Accepted, journal::Cursor};

/// Something that is written as its text, read back from it, and checked on the way.
mod as_text {
    use std::{fmt::Display, str::FromStr};

    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(
        value: &impl Display,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, D, T>(deserializer: D) -> Result<T, D::Error>
    where
        D: Deserializer<'de>,
        T: FromStr<Err: Display>,
    {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// The answer to a report: it is safe on disk.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Accepted")]
pub struct AcceptedBody {
    /// The event's id.
    #[serde(with = "as_text")]
    #[schemars(with = "String", extend("format" = "uuid"))]
    pub id: EventId,
    /// When it was accepted.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
    /// Whether it was accepted before, under the same key.
    pub duplicate: bool,
    /// The channels it goes to.
    pub channels: Vec<String>,
    /// The run after it, if it is a step of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunBody>,
}

impl From<Accepted> for AcceptedBody {
    fn from(accepted: Accepted) -> Self {
        Self {
            id: accepted.event.id,
            at: accepted.event.at,
            duplicate: accepted.duplicate,
            channels: accepted.channels.iter().map(ToString::to_string).collect(),
            run: accepted.run.map(Into::into),
        }
    }
}

/// A run as it stands.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Run")]
pub struct RunBody {
    /// Its id.
    pub id: String,
    /// `open`, `ended` or `failed`.
    pub state: String,
    /// The latest text.
    pub text: String,
    /// What it is doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// How far it is, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// When it was started.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub started_at: Timestamp,
    /// When it last reported.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub updated_at: Timestamp,
    /// How many steps were accepted.
    pub steps: u64,
}

impl From<Run> for RunBody {
    fn from(run: Run) -> Self {
        Self {
            id: run.id.to_string(),
            state: run.state.to_string(),
            text: run.text,
            step: run.step,
            progress: run.progress.map(Progress::fraction),
            started_at: run.started_at,
            updated_at: run.updated_at,
            steps: run.steps,
        }
    }
}

/// A page of events.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EventPage")]
pub struct EventPage<'a> {
    /// The events.
    pub events: Vec<EventBody<'a>>,
    /// Where the next page begins: give it as `after` (oldest first) or `before` (newest first). Absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Runs, the latest change first.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunBody>,
}

/// Deliveries, the newest event first.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryList {
    /// The deliveries.
    pub deliveries: Vec<DeliveryBody>,
}

/// How the daemon does.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Status")]
pub struct StatusBody {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Its clock.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub now: Timestamp,
    /// When it was started.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub started_at: Timestamp,
    /// The place of the newest event.
    #[serde(with = "as_text")]
    #[schemars(with = "String")]
    pub cursor: Cursor,
    /// How many channels work.
    pub channels: usize,
    /// How many viewers watch the live stream.
    pub viewers: usize,
    /// How much room the journal's disk has, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_free_bytes: Option<u64>,
    /// What is wrong with the configuration.
    pub problems: Vec<LeftOutBody>,
}
