//! The forms in which events, runs and attempts are kept, the same in every journal that outlives the process.
//!
//! What queries choose by stands in columns; the rest of an event is one JSON object, its body, that repeats none of
//! them. The forms belong to the journal's format number, which counts the schema's migrations:
//!
//! - A new reader finds old data: a field that was added since is absent, and every added field has a default.
//! - An old reader finds a field it does not know, and ignores it. That is all an addition may rely on.
//! - Anything else (a field that goes, a code that means something new) raises the format number with a migration,
//!   which an old program refuses to open.

mod attempts;
mod pieces;

use std::borrow::Cow;

use aws_lc_rs::digest;
use deskbell_core::{
    ChannelName, Context, Event, EventId, Level, Run, RunId, Source,
    attachment::{Attachment, Place},
    delivery::DeliveryState,
    event::{Content, Format, Kind},
    run::{Phase, Progress, RunState, RunStep},
};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use uuid::Uuid;

pub(super) use self::{
    attempts::{Log, attempt_line, log_attempt, log_of, retry_line},
    pieces::{pieces, pieces_of},
};
use super::IdempotencyKey;

/// Something in the journal that cannot be read, and what is wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unreadable(String);

impl Unreadable {
    pub(super) fn new(what: &str, why: impl std::fmt::Display) -> Self {
        Self(format!("{what}: {why}"))
    }
}

/// An event as it is kept: the columns and the body.
#[derive(Debug)]
pub(super) struct StoredEvent {
    pub(super) id: [u8; 16],
    pub(super) at: i64,
    pub(super) level: i64,
    pub(super) kind: i64,
    pub(super) context: String,
    pub(super) client: Option<String>,
    pub(super) run: Option<String>,
    pub(super) body: String,
}

/// The codes of the sorts of event in the column `kind`; each phase of a run is one.
pub(super) const NOTICE: i64 = 0;
pub(super) const PUSH: i64 = 1;
pub(super) const START: i64 = 2;
pub(super) const UPDATE: i64 = 3;
pub(super) const END: i64 = 4;
pub(super) const ERROR: i64 = 5;

/// What of an event has no column.
#[derive(Serialize, Deserialize)]
struct Body<'a> {
    text: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    data: Option<Cow<'a, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attached<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    to: Vec<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<Step<'a>>,
}

/// Something that is attached, at one of the two places.
#[derive(Serialize, Deserialize)]
struct Attached<'a> {
    name: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    media_type: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<Cow<'a, str>>,
}

impl<'a> Attached<'a> {
    fn of(attachment: &'a Attachment) -> Self {
        let (path, url) = match &attachment.place {
            Place::Path(path) => (Some(path.into()), None),
            Place::Url(url) => (None, Some(url.into())),
        };
        let media_type = borrowed(attachment.media_type.as_ref());
        Self { name: attachment.name.as_str().into(), media_type, path, url }
    }

    /// What was attached; nothing where it is at a place that this program does not know.
    fn attachment(self) -> Option<Attachment> {
        let place = match (self.path, self.url) {
            (Some(path), _) => Place::Path(path.into_owned()),
            (None, Some(url)) => Place::Url(url.into_owned()),
            (None, None) => return None,
        };
        let media_type = self.media_type.map(Cow::into_owned);
        Some(Attachment { name: self.name.into_owned(), media_type, place })
    }
}

/// What of a run's step has no column.
#[derive(Serialize, Deserialize)]
struct Step<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    progress: Option<f64>,
    reported_at: Timestamp,
}

/// Reads data that is there, be it `null`.
fn present<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Cow<'static, Value>>, D::Error> {
    Value::deserialize(source).map(|value| Some(Cow::Owned(value)))
}

impl StoredEvent {
    /// The form of `event`.
    pub(super) fn of(event: &Event) -> Result<Self, Unreadable> {
        let Content { title, text, format, data, link, attachments } = &event.content;
        let Source { client, session, project, host } = &event.source;
        let (kind, run, step) = match &event.kind {
            Kind::Notice => (NOTICE, None, None),
            Kind::Push => (PUSH, None, None),
            Kind::Run(step) => {
                (phase_code(step.phase), Some(step.run.to_string()), Some(Step::of(step)))
            }
        };
        let body = Body {
            text: text.into(),
            title: borrowed(title.as_ref()),
            format: (*format != Format::default()).then(|| format.as_str().into()),
            data: data.as_ref().map(Cow::Borrowed),
            link: borrowed(link.as_ref()),
            attachments: attachments.iter().map(Attached::of).collect(),
            session: borrowed(session.as_ref()),
            project: borrowed(project.as_ref()),
            host: borrowed(host.as_ref()),
            to: event.to.iter().map(|name| name.as_str().into()).collect(),
            step,
        };
        Ok(Self {
            id: event.id.uuid().into_bytes(),
            at: nanos(event.at),
            level: level_code(event.level),
            kind,
            context: event.context.as_str().to_owned(),
            client: client.clone(),
            run,
            body: serde_json::to_string(&body).map_err(|error| Unreadable::new("event", error))?,
        })
    }

    /// The event.
    pub(super) fn event(self) -> Result<Event, Unreadable> {
        let id = Uuid::from_bytes(self.id);
        let unreadable = |why: String| Unreadable::new(&format!("event {id}"), why);
        let invalid = |refusal: deskbell_core::Invalid| unreadable(refusal.to_string());
        let body: Body<'_> =
            serde_json::from_str(&self.body).map_err(|error| unreadable(error.to_string()))?;
        let kind = match (self.kind, self.run, body.step) {
            (NOTICE, _, _) => Kind::Notice,
            (PUSH, _, _) => Kind::Push,
            (code, Some(run), Some(step)) => {
                let phase = phase(code).map_err(|error| unreadable(error.to_string()))?;
                Kind::Run(step.step(run.parse().map_err(invalid)?, phase).map_err(invalid)?)
            }
            (code, _, _) => return Err(unreadable(format!("kind {code} without a run"))),
        };
        let format = body.format.as_deref().map(str::parse).transpose().map_err(invalid)?;
        let to: Result<_, _> = body.to.iter().map(|name| name.parse()).collect();
        Ok(Event {
            id: EventId::from_uuid(id),
            at: timestamp(self.at),
            level: level(self.level).ok_or_else(|| unreadable(format!("level {}", self.level)))?,
            context: self.context.parse::<Context>().map_err(invalid)?,
            source: Source {
                client: self.client,
                session: body.session.map(Cow::into_owned),
                project: body.project.map(Cow::into_owned),
                host: body.host.map(Cow::into_owned),
            },
            content: Content {
                title: body.title.map(Cow::into_owned),
                text: body.text.into_owned(),
                format: format.unwrap_or_default(),
                data: body.data.map(Cow::into_owned),
                link: body.link.map(Cow::into_owned),
                attachments: body
                    .attachments
                    .into_iter()
                    .filter_map(Attached::attachment)
                    .collect(),
            },
            kind,
            to: to.map_err(invalid)?,
        })
    }
}

impl<'a> Step<'a> {
    fn of(step: &'a RunStep) -> Self {
        Self {
            name: borrowed(step.step.as_ref()),
            progress: step.progress.map(Progress::fraction),
            reported_at: step.reported_at,
        }
    }

    fn step(self, run: RunId, phase: Phase) -> Result<RunStep, deskbell_core::Invalid> {
        Ok(RunStep {
            run,
            phase,
            step: self.name.map(Cow::into_owned),
            progress: progress(self.progress)?,
            reported_at: self.reported_at,
        })
    }
}

fn progress(fraction: Option<f64>) -> Result<Option<Progress>, deskbell_core::Invalid> {
    fraction.map(|fraction| Progress::new("progress", fraction)).transpose()
}

fn borrowed(text: Option<&String>) -> Option<Cow<'_, str>> {
    text.map(Cow::from)
}

/// A run as it is kept.
#[derive(Debug)]
pub(super) struct StoredRun {
    pub(super) id: String,
    pub(super) state: i64,
    pub(super) steps: i64,
    pub(super) body: String,
}

/// The code of an open run in the column `state`.
pub(super) const OPEN: i64 = 0;

/// What of a run has no column.
#[derive(Serialize, Deserialize)]
struct RunBody<'a> {
    text: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    progress: Option<f64>,
    started_at: Timestamp,
    updated_at: Timestamp,
}

impl StoredRun {
    /// The form of `run`.
    pub(super) fn of(run: &Run) -> Result<Self, Unreadable> {
        let body = RunBody {
            text: (&run.text).into(),
            step: borrowed(run.step.as_ref()),
            progress: run.progress.map(Progress::fraction),
            started_at: run.started_at,
            updated_at: run.updated_at,
        };
        Ok(Self {
            id: run.id.to_string(),
            state: run_state_code(run.state),
            steps: run.steps.cast_signed(),
            body: serde_json::to_string(&body).map_err(|error| Unreadable::new("run", error))?,
        })
    }

    /// The run.
    pub(super) fn run(self) -> Result<Run, Unreadable> {
        let unreadable = |why: String| Unreadable::new(&format!("run {}", self.id), why);
        let invalid = |refusal: deskbell_core::Invalid| unreadable(refusal.to_string());
        let body: RunBody<'_> =
            serde_json::from_str(&self.body).map_err(|error| unreadable(error.to_string()))?;
        Ok(Run {
            id: self.id.parse().map_err(invalid)?,
            state: run_state(self.state)
                .ok_or_else(|| unreadable(format!("state {}", self.state)))?,
            text: body.text.into_owned(),
            step: body.step.map(Cow::into_owned),
            progress: progress(body.progress).map_err(invalid)?,
            started_at: body.started_at,
            updated_at: body.updated_at,
            steps: self.steps.cast_unsigned(),
        })
    }
}

/// The form of an idempotency key: eight bytes for its scope, then the key itself if it is short or a UUID, else its
/// digest. No key costs more than 24 bytes.
///
/// Keys of one scope that count up, or carry their time as version 7 UUIDs do, stay neighbours in the index. Keys in
/// no order make each event write a page of the index anew.
pub(super) fn key(key: &IdempotencyKey) -> Vec<u8> {
    let IdempotencyKey { scope, key } = key;
    let mut form = Vec::with_capacity(SCOPE_DIGEST + KEY_DIGEST);
    form.extend(digest(scope).as_ref().iter().take(SCOPE_DIGEST));
    match Uuid::try_parse(key).ok().filter(|uuid| uuid.to_string() == *key) {
        Some(uuid) => form.extend(uuid.as_bytes()),
        None if key.len() < KEY_DIGEST => form.extend(key.as_bytes()),
        None => form.extend(digest(key).as_ref().iter().take(KEY_DIGEST)),
    }
    form
}

fn digest(text: &str) -> digest::Digest {
    digest::digest(&digest::SHA256, text.as_bytes())
}

const SCOPE_DIGEST: usize = 8;
const KEY_DIGEST: usize = 16;

/// The time in nanoseconds. Times after the year 2261 are kept as its end.
pub(super) fn nanos(time: Timestamp) -> i64 {
    let nanos = time.as_nanosecond();
    i64::try_from(nanos).unwrap_or(if nanos > 0 { i64::MAX } else { i64::MIN })
}

/// The time of so many nanoseconds.
pub(super) fn timestamp(nanos: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanos.into()).unwrap_or(Timestamp::MAX)
}

pub(super) const fn level_code(level: Level) -> i64 {
    level as i64
}

pub(super) fn level(code: i64) -> Option<Level> {
    Level::ALL.get(usize::try_from(code).ok()?).copied()
}

const fn phase_code(phase: Phase) -> i64 {
    match phase {
        Phase::Start => START,
        Phase::Update => UPDATE,
        Phase::End => END,
        Phase::Error => ERROR,
    }
}

pub(super) fn phase(code: i64) -> Result<Phase, Unreadable> {
    Ok(match code {
        START => Phase::Start,
        UPDATE => Phase::Update,
        END => Phase::End,
        ERROR => Phase::Error,
        _ => return Err(Unreadable::new("run", format!("kind {code}"))),
    })
}

pub(super) const fn run_state_code(state: RunState) -> i64 {
    match state {
        RunState::Open => OPEN,
        RunState::Ended => 1,
        RunState::Failed => 2,
    }
}

const fn run_state(code: i64) -> Option<RunState> {
    Some(match code {
        OPEN => RunState::Open,
        1 => RunState::Ended,
        2 => RunState::Failed,
        _ => return None,
    })
}

/// The codes of the states of a delivery. What is not finished comes first: an index holds exactly those.
pub(super) const fn delivery_state_code(state: DeliveryState) -> i64 {
    match state {
        DeliveryState::Pending => 0,
        DeliveryState::InFlight => 1,
        DeliveryState::Sent => 2,
        DeliveryState::GivenUp => 3,
        DeliveryState::Superseded => 4,
    }
}

/// The code of a pending delivery that is told in the message of another.
pub(super) const JOINED: i64 = 5;

/// The form of a group, or of what is said in it.
pub(super) fn print(text: &str) -> [u8; PRINT_BYTES] {
    let mut print = [0; PRINT_BYTES];
    print.iter_mut().zip(digest(text).as_ref()).for_each(|(to, from)| *to = *from);
    print
}

/// How much of a digest tells groups and texts apart, whoever chose them.
pub(super) const PRINT_BYTES: usize = 16;

/// The channel that was kept as `name`.
pub(super) fn channel(name: &str) -> Result<ChannelName, Unreadable> {
    name.parse().map_err(|refusal| Unreadable::new("delivery", refusal))
}

pub(super) fn delivery_state(code: i64) -> Result<DeliveryState, Unreadable> {
    Ok(match code {
        0 | JOINED => DeliveryState::Pending,
        1 => DeliveryState::InFlight,
        2 => DeliveryState::Sent,
        3 => DeliveryState::GivenUp,
        4 => DeliveryState::Superseded,
        _ => return Err(Unreadable::new("delivery", format!("state {code}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::suite::{at, key as named, notice};

    #[test]
    fn fields_of_a_newer_version_are_ignored() {
        let mut stored = StoredEvent::of(&notice(1)).unwrap();
        stored.body = stored.body.replacen('{', r#"{"mood":{"happy":true},"#, 1);
        assert_eq!(stored.event().unwrap(), notice(1));
    }

    #[test]
    fn a_body_of_the_first_version_is_read() {
        // What the first version wrote. This test may get new rows and never loses one.
        let body = r#"{"text":"t","title":"T","format":"markdown","data":null,"session":"s","project":"p","host":"h","to":["a"],"step":{"name":"n","progress":0.5,"reported_at":"2026-11-21T10:00:00Z"}}"#;
        let stored = StoredEvent {
            body: body.to_owned(),
            kind: UPDATE,
            run: Some("r".to_owned()),
            ..StoredEvent::of(&notice(1)).unwrap()
        };
        let event = stored.event().unwrap();
        assert_eq!(event.content.data, Some(Value::Null));
        assert_eq!(StoredEvent::of(&event).unwrap().body, body);
    }

    #[test]
    fn a_body_repeats_no_column() {
        let stored = StoredEvent::of(&notice(1)).unwrap();
        assert_eq!(stored.body, r#"{"text":"notice 1"}"#);
    }

    #[test]
    fn nonsense_is_unreadable_and_says_of_which_event() {
        let stored = || StoredEvent::of(&notice(1)).unwrap();
        let odd = [
            StoredEvent { body: "{".to_owned(), ..stored() },
            StoredEvent { body: "{}".to_owned(), ..stored() },
            StoredEvent { level: 8, ..stored() },
            StoredEvent { level: -1, ..stored() },
            StoredEvent { kind: 9, ..stored() },
            StoredEvent { kind: UPDATE, ..stored() },
            StoredEvent { context: String::new(), ..stored() },
        ];
        for stored in odd {
            let shown = format!("{stored:?}");
            let error = stored.event().expect_err(&shown).to_string();
            assert!(error.contains("019a0000-0000-7000-8000-000000000001"), "{error}");
        }
    }

    #[test]
    fn keys_are_told_apart_in_few_bytes() {
        let long = |end| "x".repeat(500) + end;
        let keys = [
            key(&named("s", "1")),
            key(&named("s", "2")),
            key(&named("s", "")),
            key(&named("t", "1")),
            key(&named("s", &long("1"))),
            key(&named("s", &long("2"))),
            key(&named(&long("s"), "0123456789abcde")),
            key(&named(&long("s"), "0123456789abcdef")),
            key(&named("s", "019a9c2e-5f00-7000-8000-00000000000a")),
            key(&named("s", "019a9c2e-5f00-7000-8000-00000000000A")),
            key(&named("s", "019a9c2e5f0070008000-00000000000a")),
        ];
        assert!(keys.iter().all(|key| key.len() <= 24));
        assert_eq!(keys.iter().collect::<std::collections::HashSet<_>>().len(), keys.len());
        assert_eq!(key(&named("s", "1")), keys[0]);
        let uuids =
            ["019a9c2e-5f00-7000-8000-000000000001", "019a9c2e-5f01-7000-8000-000000000000"];
        assert!(
            uuids.map(|uuid| key(&named("s", uuid))).is_sorted(),
            "their times keep their order"
        );
    }

    #[test]
    fn times_are_kept_to_the_nanosecond_and_clamped() {
        for time in
            [at(7), Timestamp::UNIX_EPOCH, "1900-01-01T00:00:00.000000001Z".parse().unwrap()]
        {
            assert_eq!(timestamp(nanos(time)), time);
        }
        assert_eq!(timestamp(nanos(Timestamp::MAX)).to_string(), "2262-04-11T23:47:16.854775807Z");
        assert_eq!(nanos(Timestamp::MIN), i64::MIN);
    }
}
