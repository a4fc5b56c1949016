//! An event as a channel is to tell it, before it is rendered for that channel's far end.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    attachment::Attachment,
    context::Context,
    event::{Content, Event, EventId, Format, Kind},
    group::Digest,
    level::Level,
    link,
    run::{Phase, Progress, RunId},
    source::Source,
    text,
};

/// What is to be told. Channels render it in their far end's dialect and within its limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The event it tells.
    pub event: EventId,
    /// When the event was accepted.
    pub at: Timestamp,
    /// How serious it is.
    pub level: Level,
    /// Its category.
    pub context: Context,
    /// Who reported it.
    pub source: Source,
    /// Headline, one line.
    pub title: Option<String>,
    /// The text.
    pub body: String,
    /// How the text is written.
    pub format: Format,
    /// An address that belongs to the message.
    pub link: Option<String>,
    /// The files that belong to the message.
    pub attachments: Vec<Attachment>,
    /// The run that it is a step of.
    pub run: Option<RunFacts>,
    /// Structured data as it was reported.
    pub data: Option<Value>,
}

/// What a message says of its run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    /// The run.
    pub id: RunId,
    /// Which step.
    pub phase: Phase,
    /// What the run is doing.
    pub step: Option<String>,
    /// How far it is.
    pub progress: Option<Progress>,
}

impl Message {
    /// The message that tells `event`: cleaned of what deceives, a run's facts in its title and body.
    pub fn of(event: &Event) -> Self {
        let run = match &event.kind {
            Kind::Run(step) => Some(RunFacts {
                id: step.run.clone(),
                phase: step.phase,
                step: step.step.clone(),
                progress: step.progress,
            }),
            Kind::Notice | Kind::Push => None,
        };
        let reported =
            event.content.title.as_deref().map(|title| text::one_line(title.trim()).into_owned());
        let title = match &run {
            Some(run) => Some(reported.unwrap_or_else(|| run_title(run))),
            None => reported,
        };
        let mut body = text::clean(&event.content.text).into_owned();
        if let Some(run) = &run {
            append_facts(&mut body, run, event.content.data.as_ref());
        }
        Self {
            event: event.id,
            at: event.at,
            level: event.level,
            context: event.context.clone(),
            source: event.source.clone(),
            title,
            body,
            format: event.content.format,
            link: Self::link_of(&event.content),
            attachments: event.content.attachments.clone(),
            run,
            data: event.content.data.clone(),
        }
    }

    /// The address that `content` gives, else the one that its data names.
    pub(crate) fn link_of(content: &Content) -> Option<String> {
        let given = content.link.as_deref().and_then(link::opened);
        given.or_else(|| content.data.as_ref().and_then(link::named))
    }

    /// The message that tells `digest`, which `event` leads.
    pub fn of_digest(event: &Event, digest: &Digest) -> Self {
        let latest = Self::of(digest.texts.last().map_or(event, |(_, latest)| latest));
        let (title, body) = (Some(digest.title()), digest.body());
        let told = Self { event: event.id, level: digest.level, title, body, ..latest };
        if digest.different == 1 {
            return told;
        }
        // Each line has its own.
        Self { format: Format::default(), link: None, data: None, attachments: Vec::new(), ..told }
    }

    /// The title and the body as one plain text, a blank line between them.
    pub fn title_and_body(&self) -> String {
        match &self.title {
            Some(title) => format!("{title}\n\n{}", self.body),
            None => self.body.clone(),
        }
    }
}

/// The headline of a run's step, as mcp-push writes it: `[UPDATE] backup-20240101-001`.
fn run_title(run: &RunFacts) -> String {
    format!("[{}] {}", run.phase.as_str().to_uppercase(), run.id)
}

/// Adds what the step says beside its text, one line each.
fn append_facts(body: &mut String, run: &RunFacts, data: Option<&Value>) {
    let mut facts = Vec::new();
    if let Some(step) = &run.step {
        facts.push(format!("step: {}", text::one_line(step)));
    }
    if let Some(progress) = run.progress {
        facts.push(format!("progress: {progress}"));
    }
    for (name, value) in data.and_then(Value::as_object).into_iter().flatten() {
        let shown = match value {
            Value::String(text) => text::one_line(text).into_owned(),
            other => text::one_line(&other.to_string()).into_owned(),
        };
        if !matches!(name.as_str(), "step" | "progress") {
            facts.push(format!("{}: {shown}", text::one_line(name)));
        }
    }
    if !facts.is_empty() {
        // Writing to a string cannot fail.
        let _infallible = write!(body, "\n\n{}", facts.join("\n"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{event::EventIds, run::RunStep};

    fn event(kind: Kind, title: Option<&str>, text: &str, data: Option<Value>) -> Event {
        Event {
            id: EventIds::default().next(Timestamp::UNIX_EPOCH, 0),
            at: Timestamp::UNIX_EPOCH,
            level: Level::Info,
            context: Context::default(),
            source: Source::default(),
            content: Content {
                title: title.map(str::to_owned),
                text: text.to_owned(),
                format: Format::Text,
                data,
                ..Content::default()
            },
            kind,
            to: Vec::new(),
        }
    }

    #[test]
    fn a_step_tells_run_step_progress_and_data() {
        let step = RunStep {
            run: "deploy-1".parse().unwrap(),
            phase: Phase::Update,
            step: Some("upload".to_owned()),
            progress: Progress::new("progress", 0.8).ok(),
            reported_at: Timestamp::UNIX_EPOCH,
        };
        let data = json!({ "step": "upload", "progress": 0.8, "artifact_url": "https://example.com/a", "n": 3 });
        let message = Message::of(&event(Kind::Run(step), None, "uploading", Some(data)));
        assert_eq!(message.title.as_deref(), Some("[UPDATE] deploy-1"));
        assert_eq!(
            message.body,
            "uploading\n\nstep: upload\nprogress: 80 %\nartifact_url: https://example.com/a\nn: 3"
        );
        assert_eq!(message.link.as_deref(), Some("https://example.com/a"));
    }

    #[test]
    fn what_deceives_does_not_reach_a_channel() {
        let message =
            Message::of(&event(Kind::Push, Some("a\nb"), "x\u{1b}[31m\u{202e}y\nz", None));
        assert_eq!((message.title.as_deref(), message.body.as_str()), (Some("a\\nb"), "xy\nz"));
    }

    #[test]
    fn a_link_that_was_given_comes_before_one_in_the_data() {
        let data = json!({ "url": "https://example.com/data" });
        let mut event = event(Kind::Push, None, "x", Some(data));
        assert_eq!(Message::of(&event).link.as_deref(), Some("https://example.com/data"));
        event.content.link = Some("https://example.com/given".to_owned());
        assert_eq!(Message::of(&event).link.as_deref(), Some("https://example.com/given"));
    }
}
