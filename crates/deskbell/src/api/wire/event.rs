//! Events, the steps of runs and their reporters, as they are written and read back.

use std::borrow::Cow;

use deskbell_core::{
    Event, EventId, Invalid, Level, Source,
    event::{Content, Kind},
    run::{Progress, RunStep},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AttachmentBody, as_text, attachments};
use crate::journal::Cursor;

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
    /// The address that belongs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Cow<'a, str>>,
    /// The files that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<AttachmentBody<'a>>,
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
            link: event.content.link.as_deref().map(Cow::Borrowed),
            attachments: event.content.attachments.iter().map(AttachmentBody::of).collect(),
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
                link: body.link.as_deref().map(str::to_owned),
                attachments: attachments(&body.attachments)?,
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
pub(in crate::api) enum LevelName {
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
                link: Some("https://example.com/7".to_owned()),
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
