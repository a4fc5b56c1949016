//! What the HTTP API writes and reads as JSON. The command line reads the same types.
//!
//! These are separate from the types we think in: changing a name here breaks somebody's script.

use std::borrow::Cow;

use deskbell_core::{
    DeliveryId, Event, EventId, Invalid, Level, Run, Source,
    delivery::DeliveryState,
    event::{Content, Kind},
    run::{Progress, RunStep},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    intake::Accepted,
    journal::{self, Cursor},
};

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

/// An event.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Event")]
pub struct EventBody<'a> {
    /// The event's id.
    #[serde(with = "as_text")]
    #[schemars(with = "String", extend("format" = "uuid"))]
    pub id: EventId,
    /// Its place in the journal.
    #[serde(with = "as_text")]
    #[schemars(with = "String")]
    pub cursor: Cursor,
    /// When it was accepted.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
    /// `notice`, `push` or `run`.
    pub kind: Cow<'a, str>,
    /// How serious it is.
    #[serde(with = "as_text")]
    #[schemars(with = "LevelName")]
    pub level: Level,
    /// Its category.
    pub context: Cow<'a, str>,
    /// Headline, one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Cow<'a, str>>,
    /// The text as it was reported.
    pub text: Cow<'a, str>,
    /// `text` or `markdown`.
    pub format: Cow<'a, str>,
    /// Structured data beside the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Cow<'a, Value>>,
    /// The step, if the event is one of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<StepBody<'a>>,
    /// Who reported it.
    #[serde(default)]
    pub source: SourceBody<'a>,
    /// The channels that the reporter named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<Cow<'a, str>>,
}

impl<'a> EventBody<'a> {
    /// The event at `cursor`.
    pub fn of(cursor: Cursor, event: &'a Event) -> Self {
        Self {
            id: event.id,
            cursor,
            at: event.at,
            kind: event.kind.as_str().into(),
            level: event.level,
            context: event.context.as_str().into(),
            title: event.content.title.as_deref().map(Cow::Borrowed),
            text: event.content.text.as_str().into(),
            format: event.content.format.as_str().into(),
            data: event.content.data.as_ref().map(Cow::Borrowed),
            run: match &event.kind {
                Kind::Run(step) => Some(StepBody::of(step)),
                Kind::Notice | Kind::Push => None,
            },
            source: SourceBody::of(&event.source),
            to: event.to.iter().map(|name| name.as_str().into()).collect(),
        }
    }
}

impl TryFrom<&EventBody<'_>> for Event {
    type Error = Invalid;

    /// The event that was written, for whoever shows it.
    fn try_from(body: &EventBody<'_>) -> Result<Self, Invalid> {
        let kind = match (body.kind.as_ref(), &body.run) {
            ("push", _) => Kind::Push,
            ("run", Some(step)) => Kind::Run(step.try_into()?),
            _ => Kind::Notice,
        };
        Ok(Self {
            id: body.id,
            at: body.at,
            level: body.level,
            context: body.context.parse()?,
            source: body.source.clone().into(),
            content: Content {
                title: body.title.as_deref().map(str::to_owned),
                text: body.text.clone().into_owned(),
                format: body.format.parse()?,
                data: body.data.clone().map(Cow::into_owned),
            },
            kind,
            to: body.to.iter().map(|name| name.parse()).collect::<Result<_, _>>()?,
        })
    }
}

impl TryFrom<&StepBody<'_>> for RunStep {
    type Error = Invalid;

    fn try_from(body: &StepBody<'_>) -> Result<Self, Invalid> {
        let progress = body.progress.map(|fraction| Progress::new("progress", fraction));
        Ok(Self {
            run: body.id.parse()?,
            phase: body.phase.parse()?,
            step: body.step.as_deref().map(str::to_owned),
            progress: progress.transpose()?,
            reported_at: body.reported_at,
        })
    }
}

/// The names of the levels, for schemas.
#[derive(JsonSchema)]
#[schemars(rename = "Level", rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum LevelName {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// A step of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RunStep")]
pub struct StepBody<'a> {
    /// The run.
    pub id: Cow<'a, str>,
    /// `start`, `update`, `end` or `error`.
    pub phase: Cow<'a, str>,
    /// What the run is doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Cow<'a, str>>,
    /// How far it is, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// When the step happened, by the reporter's clock.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub reported_at: Timestamp,
}

impl<'a> StepBody<'a> {
    fn of(step: &'a RunStep) -> Self {
        Self {
            id: step.run.as_str().into(),
            phase: step.phase.as_str().into(),
            step: step.step.as_deref().map(Cow::Borrowed),
            progress: step.progress.map(Progress::fraction),
            reported_at: step.reported_at,
        }
    }
}

/// Who reported an event, as far as it is known: what the reporter said of itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Source")]
pub struct SourceBody<'a> {
    /// Name of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<Cow<'a, str>>,
    /// Its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Cow<'a, str>>,
    /// The project folder it works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Cow<'a, str>>,
    /// Name of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Cow<'a, str>>,
}

impl<'a> SourceBody<'a> {
    fn of(source: &'a Source) -> Self {
        let part = |part: &'a Option<String>| part.as_deref().map(Cow::Borrowed);
        Self {
            client: part(&source.client),
            session: part(&source.session),
            project: part(&source.project),
            host: part(&source.host),
        }
    }
}

impl From<SourceBody<'_>> for Source {
    fn from(body: SourceBody<'_>) -> Self {
        Self {
            client: body.client.map(Cow::into_owned),
            session: body.session.map(Cow::into_owned),
            project: body.project.map(Cow::into_owned),
            host: body.host.map(Cow::into_owned),
        }
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

/// A delivery as it stands.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Delivery")]
pub struct DeliveryBody {
    /// Its id: `EVENT_ID.CHANNEL`.
    #[serde(with = "as_text")]
    #[schemars(with = "String")]
    pub id: DeliveryId,
    /// The event.
    #[serde(with = "as_text")]
    #[schemars(with = "String", extend("format" = "uuid"))]
    pub event: EventId,
    /// The channel.
    pub channel: String,
    /// `pending`, `in_flight`, `sent`, `given_up` or `superseded`.
    #[serde(with = "as_text")]
    #[schemars(with = "String")]
    pub state: DeliveryState,
    /// Why the event goes there.
    pub reason: String,
    /// When it is or was due.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub due_at: Timestamp,
    /// Whether an attempt may have reached the far end without being recorded.
    pub maybe_repeated: bool,
    /// The latest attempts, the first one first.
    pub attempts: Vec<AttemptBody>,
    /// How many attempts there were.
    pub attempt_count: u32,
    /// The far end's id of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// What an open delivery waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
}

impl DeliveryBody {
    /// Whether nothing more happens to it by itself.
    pub const fn is_settled(&self) -> bool {
        !matches!(self.state, DeliveryState::Pending | DeliveryState::InFlight)
    }

    /// What went wrong in the latest attempt, if it failed.
    pub fn latest_error(&self) -> Option<&str> {
        self.attempts.last()?.error.as_deref()
    }
}

impl From<journal::Delivery> for DeliveryBody {
    fn from(delivery: journal::Delivery) -> Self {
        let attempt = |record: journal::AttemptRecord| AttemptBody {
            number: record.number,
            at: record.at,
            error: record.error,
        };
        Self {
            event: delivery.id.event,
            channel: delivery.id.channel.to_string(),
            id: delivery.id,
            state: delivery.state,
            reason: delivery.reason,
            due_at: delivery.due_at,
            maybe_repeated: delivery.maybe_repeated,
            attempts: delivery.attempts.into_iter().map(attempt).collect(),
            attempt_count: delivery.attempt_count,
            message_id: delivery.receipt.and_then(|receipt| receipt.message_id),
            waits_for: None,
        }
    }
}

/// One attempt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Attempt")]
pub struct AttemptBody {
    /// Its number, counted from 1.
    pub number: u32,
    /// When its outcome was known.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
    /// What went wrong; without it the far end took the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
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

/// Where an event went, and why.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Why")]
pub struct WhyBody<'a> {
    /// The event.
    pub event: EventBody<'a>,
    /// What chose the channels: a sentence.
    pub chosen_by: String,
    /// What each route finds of the event as the routes stand now.
    pub routes: Vec<RouteBody>,
    /// What became of it.
    pub deliveries: Vec<DeliveryBody>,
}

/// A route and what it finds of an event.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RouteVerdict")]
pub struct RouteBody {
    /// Its number, counted from 1.
    pub number: usize,
    /// What it takes, in words.
    pub takes: String,
    /// Where its events go.
    pub channels: Vec<String>,
    /// Whether it takes the event.
    pub matches: bool,
    /// Why, or why not.
    pub verdict: String,
}

/// The configured channels.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChannelList {
    /// The channels that work, by name.
    pub channels: Vec<ChannelBody>,
    /// What is wrong with the ones that were left out.
    pub problems: Vec<String>,
}

/// A configured channel.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Channel")]
pub struct ChannelBody {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// Whether deliveries flow: `open`, `failing`, `broken`, `paused` or `limited`.
    pub flow: String,
    /// How many messages a minute it takes, where the configuration says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<u32>,
    /// How many attempts are under way.
    pub in_flight: usize,
    /// When the next attempt may begin, if it must wait for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub waiting_until: Option<Timestamp>,
    /// What went wrong last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastErrorBody>,
    /// When the far end last took a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_sent_at: Option<Timestamp>,
    /// How many messages the far end took since the daemon started.
    pub sent: u64,
    /// How many attempts failed since the daemon started.
    pub failed: u64,
    /// How many deliveries were given up since the daemon started.
    pub given_up: u64,
}

/// What went wrong last.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LastError")]
pub struct LastErrorBody {
    /// When it was known.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
    /// What it was.
    pub error: String,
}

/// What a test of a channel came to.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChannelTest")]
pub struct TestBody {
    /// `sent`, `failed`, or `open` if the far end did not answer in time.
    pub outcome: String,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The delivery.
    pub delivery: DeliveryBody,
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
    /// What is wrong with the configuration.
    pub problems: Vec<String>,
}

#[cfg(test)]
mod tests {
    use deskbell_core::{event::EventIds, run::Phase};
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_written_and_read_back() {
        let event = Event {
            id: EventIds::default().next(Timestamp::UNIX_EPOCH, 7),
            at: Timestamp::UNIX_EPOCH,
            level: Level::Error,
            context: "safety".parse().unwrap(),
            source: Source { client: Some("ci".to_owned()), ..Source::default() },
            content: Content {
                title: Some("t".to_owned()),
                text: "a \u{1b}[31m".to_owned(),
                data: Some(json!({ "n": [1, null] })),
                ..Content::default()
            },
            kind: Kind::Run(RunStep {
                run: "r/1".parse().unwrap(),
                phase: Phase::Error,
                step: Some("s".to_owned()),
                progress: Progress::new("progress", 0.25).ok(),
                reported_at: Timestamp::UNIX_EPOCH,
            }),
            to: vec!["phone".parse().unwrap()],
        };
        let body = EventBody::of(Cursor { major: 0, minor: 31 }, &event);
        let json = serde_json::to_string(&body).unwrap();
        let read: EventBody<'static> = serde_json::from_str(&json).unwrap();
        assert_eq!(Event::try_from(&read).unwrap(), event);
        assert_eq!(read.cursor.to_string(), "0-1f");
    }
}
