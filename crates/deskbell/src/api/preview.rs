//! What a channel would send, and nothing is sent.

use std::sync::Arc;

use axum::{Json, extract::State};
use deskbell_channels::{Channel, ChannelKind, Manner};
use deskbell_core::{
    ChannelName, Context, Event, EventId, Invalid, Level, Message, Source,
    event::{Content, Kind},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::{
    body::JsonBytes,
    channels,
    explain::{PREVIEW, explain},
    problem::Problem,
    wire::LevelName,
};
use crate::app::App;

/// What to preview.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Preview")]
pub(crate) struct PreviewBody {
    /// A configured channel, or an address such as `ntfy://topic`.
    channel: String,
    /// Headline, one line.
    #[serde(default)]
    title: Option<String>,
    /// The text.
    body: String,
    /// How serious it is.
    #[serde(default)]
    #[schemars(with = "Option<LevelName>")]
    level: Option<String>,
    /// `text` or `markdown`.
    #[serde(default)]
    format: Option<String>,
    /// A web address that belongs to it.
    #[serde(default)]
    link: Option<String>,
}

/// What a channel would send.
#[derive(JsonSchema)]
#[schemars(rename = "Requests")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct RequestsBody {
    /// The kind of channel.
    kind: String,
    /// The requests, in order, with every secret masked.
    requests: Vec<Value>,
    /// Why there are none.
    failure: Option<String>,
}

/// Gives the requests that a channel would send.
pub(super) async fn preview(
    State(app): State<Arc<App>>,
    body: JsonBytes,
) -> Result<Json<Value>, Problem> {
    let bytes = body.one()?;
    let body: PreviewBody =
        serde_json::from_slice(&bytes).map_err(|error| explain(&bytes, &error, &PREVIEW))?;
    let content = Content {
        title: body.title,
        text: body.body,
        format: body.format.as_deref().map(str::parse).transpose()?.unwrap_or_default(),
        data: None,
        link: body.link,
        attachments: Vec::new(),
    };
    let level = body.level.as_deref().map_or(Ok(Kind::Push.level()), str::parse)?;
    let now = app.clock.now();
    let message = message(content, level, "body", now)?;
    if body.channel.contains("://") {
        let (kind, channel, manner) = of_address(&body.channel)?;
        let shown = deskbell_channels::preview(kind, &*channel, &message, now, manner, false);
        return Ok(Json(shown.await));
    }
    let name: ChannelName = body.channel.parse()?;
    let ready = channels::working(&app, &name)?;
    let (kind, channel) = (ready.kind, &*ready.channel);
    Ok(Json(deskbell_channels::preview(kind, channel, &message, now, ready.manner, false).await))
}

fn of_address(address: &str) -> Result<(&'static ChannelKind, Box<dyn Channel>, Manner), Problem> {
    let wrong = |error: deskbell_channels::ConfigError| {
        Invalid::value("channel", "an address that cannot be used", error.to_string())
    };
    let found = deskbell_channels::from_url(address).map_err(wrong)?;
    let kind = deskbell_channels::kind(found.kind)
        .ok_or_else(|| Invalid::text("channel", found.kind, "a kind of channel"))?;
    Ok((kind, kind.build(found.options).map_err(wrong)?, found.manner))
}

/// The message that would be told; `text_field` is what the caller calls the text.
pub(crate) fn message(
    content: Content,
    level: Level,
    text_field: &str,
    now: Timestamp,
) -> Result<Message, Invalid> {
    content.check(text_field)?;
    Ok(Message::of(&Event {
        id: EventId::from_uuid(Uuid::now_v7()),
        at: now,
        level,
        context: Context::default(),
        source: Source::default(),
        content,
        kind: Kind::Push,
        to: Vec::new(),
    }))
}
