//! `notify`: tells the user something (seed S0).
//!
//! The popup of seed S3 shares the name; which of the two a call asks for is decided by contract row C1.

use deskbell_core::{
    Context, Event, Invalid,
    event::{Content, Kind},
    field::described,
};
use futures_util::{FutureExt as _, future::BoxFuture};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Arguments, Call, Effects, Tool, attachments, attachments_schema, channel_names, lenient_level,
    output_schema, refusal, structured,
};
use crate::{
    intake::{Accepted, Report},
    mcp::profiles::Bare,
};

pub(in crate::mcp) const NOTIFY: Tool = Tool {
    name: "notify",
    dotted: "notify",
    aliases: &["notify_log", "notify_create"],
    title: "Notify the user",
    description: "Tell the user something worth knowing: a discovery, a warning, a change of state, a decision. \
                  It is shown at once where the user watches and pushed to their channels as they configured. \
                  Returns immediately.",
    input: unified_input,
    output: output_schema::<Logged<'static>>,
    effects: Effects::TELLS,
    call,
};

/// The arguments of seed S3 that ask for a window.
const POPUP_ARGUMENTS: [&str; 6] =
    ["wait_for_response", "timeout", "title", "show_history", "chime_enabled", "theme"];

const NO_POPUP: &str = "this version of Deskbell has no popup yet, so nothing was shown and nothing was sent; call \
                        `notify` with `mode` \"log\", or without `title`, `wait_for_response`, `timeout`, \
                        `show_history`, `chime_enabled` and `theme`";

/// The schema of the unified `notify`: seed S0's arguments with all levels.
///
/// The popup's arguments of row C1 are understood and not listed while there is no popup, because agents use what is
/// listed.
fn unified_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "message": {
                "type": "string",
                "description": "The message to notify the user about",
                "minLength": 1
            },
            "level": {
                "type": "string",
                "enum": [
                    "debug", "info", "notice", "warn", "warning", "error", "critical", "alert", "emergency"
                ],
                "description": "The notification level (default: info)",
                "default": "info"
            },
            "context": {
                "anyOf": [{ "type": "string" }, { "type": "object" }],
                "description": "Optional category such as analysis, workflow, safety, performance or discovery \
                                (default: llm), or an object with details",
            },
            "data": {
                "type": "object",
                "description": "Optional structured details"
            },
            "link": {
                "type": "string",
                "description": "Optional web address to open for more"
            },
            "attachments": attachments_schema()
        },
        "required": ["message"]
    })
}

/// The schema of seed S0, word for word.
pub(in crate::mcp) fn seed_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "message": {
                "type": "string",
                "description": "The message to notify the user about",
                "minLength": 1
            },
            "level": {
                "type": "string",
                "enum": ["info", "warn", "error"],
                "description": "The notification level (default: info)",
                "default": "info"
            },
            "context": {
                "type": "string",
                "description": "Optional context or category for the notification",
                "default": "llm"
            }
        },
        "required": ["message"]
    })
}

/// What `notify` gives beside its text.
#[derive(Serialize, JsonSchema)]
struct Logged<'a> {
    /// The event's id in the journal.
    event_id: String,
    /// When it was accepted.
    accepted_at: String,
    /// The level it was accepted with.
    level: &'a str,
    /// Its category.
    context: &'a str,
    /// What became of the call: `logged`.
    result_type: &'a str,
    /// Always false: the tool answers before anything is pushed.
    delivered: bool,
    /// The channels it is pushed to.
    channels: Vec<String>,
    /// The resource that tells how each push went.
    deliveries: String,
    /// Arguments that were given and are not known.
    ignored: Vec<String>,
}

fn call<'a>(call: &'a Call<'a>, arguments: Arguments) -> BoxFuture<'a, CallToolResult> {
    notify(call, arguments).boxed()
}

async fn notify(call: &Call<'_>, mut arguments: Arguments) -> CallToolResult {
    match asks_for_popup(call, &mut arguments) {
        Ok(false) => {}
        Ok(true) => return refusal(NO_POPUP),
        Err(invalid) => return refusal(invalid.to_string()),
    }
    let report = match read(call, &mut arguments) {
        Ok(report) => report,
        Err(invalid) => return refusal(invalid.to_string()),
    };
    match call.report(report).await {
        Ok(accepted) => logged(&accepted, arguments.ignored()),
        Err(refused) => refusal(refused.to_string()),
    }
}

/// Decides between line and window: an explicit `mode` first, then the window's own arguments, then the profile.
fn asks_for_popup(call: &Call<'_>, arguments: &mut Arguments) -> Result<bool, Invalid> {
    if call.profile.bare == Bare::AlwaysLog || call.name != NOTIFY.name {
        return Ok(false);
    }
    match arguments.text("mode")?.as_deref() {
        Some("log") => Ok(false),
        Some("popup") => Ok(true),
        Some(other) => Err(Invalid::text("mode", other, "log or popup")),
        None => Ok(POPUP_ARGUMENTS.iter().any(|name| arguments.has(name))),
    }
}

fn read(call: &Call<'_>, arguments: &mut Arguments) -> Result<Report, Invalid> {
    let text = arguments.required_text("message")?;
    let level = lenient_level(arguments, call.profile)?;
    let (context, details) = read_context(arguments)?;
    let title = match call.profile.bare {
        Bare::AlwaysLog => None,
        Bare::Log => arguments.text("title")?,
    };
    let link = arguments.text("link")?;
    let attachments = attachments(arguments)?;
    let data = merge(arguments.object("data")?, details);
    Ok(Report {
        key: call.caller.key(),
        level,
        context,
        source: call.caller.source(),
        content: Content { title, text, data, link, attachments, ..Content::default() },
        text_field: "message",
        at_once: false,
        folder: call.caller.folder(),
        kind: Kind::Notice,
        to: Vec::new(),
    })
}

/// A text is the category, an object is data of the default category (row C3).
fn read_context(arguments: &mut Arguments) -> Result<(Context, Option<JsonObject>), Invalid> {
    match arguments.value("context") {
        None => Ok((Context::default(), None)),
        Some(Value::String(name)) if name.trim().is_empty() => Ok((Context::default(), None)),
        Some(Value::String(name)) => Ok((name.parse()?, None)),
        Some(Value::Object(details)) => Ok((Context::default(), Some(details))),
        Some(other) => Err(Invalid::value(
            "context",
            described(&other),
            "a category or an object with details",
        )),
    }
}

fn merge(data: Option<JsonObject>, details: Option<JsonObject>) -> Option<Value> {
    match (data, details) {
        (None, None) => None,
        (Some(fields), None) | (None, Some(fields)) => Some(Value::Object(fields)),
        (Some(mut data), Some(details)) => {
            data.entry("context").or_insert(Value::Object(details));
            Some(Value::Object(data))
        }
    }
}

fn logged(accepted: &Accepted, ignored: Vec<String>) -> CallToolResult {
    let Event { id, at, level, context, content, .. } = &accepted.event;
    let answer = Logged {
        event_id: id.to_string(),
        accepted_at: at.to_string(),
        level: level.as_str(),
        context: context.as_str(),
        result_type: "logged",
        delivered: false,
        channels: channel_names(accepted),
        deliveries: format!("delivery://{id}"),
        ignored,
    };
    let text = format!("Notification sent: {}", content.text);
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(structured(&answer));
    result
}
