//! A message as JSON, the same for every channel that hands messages to programs.
//!
//! Readers meet new fields from time to time and must ignore those they do not know; a field that is there keeps its
//! meaning as long as `version` is 1.

use deskbell_core::{
    Message, Source,
    attachment::{Attachment, Place},
};
use serde::Serialize;
use serde_json::Value;

use crate::channel::SendContext;

/// A message as JSON.
#[derive(Serialize)]
pub(crate) struct Envelope<'a> {
    version: u8,
    /// The same in every attempt; drop what you have seen.
    delivery_id: String,
    event_id: String,
    at: String,
    level: &'a str,
    context: &'a str,
    title: Option<&'a str>,
    body: &'a str,
    format: &'a str,
    link: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attached<'a>>,
    run: Option<Run<'a>>,
    data: Option<&'a Value>,
    source: Reporter<'a>,
}

/// Something that is attached. Files of the daemon's machine have no address.
#[derive(Serialize)]
struct Attached<'a> {
    name: &'a str,
    media_type: Option<&'a str>,
    url: Option<&'a str>,
}

impl<'a> Attached<'a> {
    fn of(attachment: &'a Attachment) -> Self {
        let url = match &attachment.place {
            Place::Url(url) => Some(url.as_str()),
            Place::Path(_) => None,
        };
        Self { name: &attachment.name, media_type: attachment.media_type.as_deref(), url }
    }
}

#[derive(Serialize)]
struct Run<'a> {
    run_id: &'a str,
    event: &'a str,
    step: Option<&'a str>,
    progress: Option<f64>,
}

#[derive(Serialize)]
struct Reporter<'a> {
    client: Option<&'a str>,
    session: Option<&'a str>,
    project: Option<&'a str>,
    host: Option<&'a str>,
}

impl<'a> Envelope<'a> {
    pub(crate) fn of(message: &'a Message, cx: &SendContext) -> Self {
        let Source { client, session, project, host } = &message.source;
        Self {
            version: 1,
            delivery_id: cx.id(),
            event_id: message.event.to_string(),
            at: message.at.to_string(),
            level: message.level.as_str(),
            context: message.context.as_str(),
            title: message.title.as_deref(),
            body: &message.body,
            format: message.format.as_str(),
            link: message.link.as_deref(),
            attachments: message.attachments.iter().map(Attached::of).collect(),
            run: message.run.as_ref().map(|run| Run {
                run_id: run.id.as_str(),
                event: run.phase.as_str(),
                step: run.step.as_deref(),
                progress: run.progress.map(deskbell_core::run::Progress::fraction),
            }),
            data: message.data.as_ref(),
            source: Reporter {
                client: client.as_deref(),
                session: session.as_deref(),
                project: project.as_deref(),
                host: host.as_deref(),
            },
        }
    }

    /// The message on one line.
    pub(crate) fn line(&self) -> String {
        // Texts, numbers and JSON values always serialise.
        serde_json::to_string(self).unwrap_or_default()
    }
}
