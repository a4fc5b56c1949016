//! `notify.send`: pushes a message to all configured channels (seed S4).

use deskbell_core::{
    ChannelName, Context, Invalid,
    event::{Content, Kind},
};
use futures_util::{FutureExt as _, future::BoxFuture};
use rmcp::model::CallToolResult;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Arguments, Call, Effects, Tool, attachments, attachments_schema, lenient_level, output_schema,
    push::{Pushed, Queued, answer, not_accepted},
};
use crate::intake::Report;

pub(in crate::mcp) const NOTIFY_SEND: Tool = Tool {
    name: "notify_send",
    dotted: "notify.send",
    aliases: &[],
    title: "Push a message",
    description: "Push a message with a title to all of the user's configured channels (phone, chat, mail, …). \
                  Use it for what the user must learn away from the screen. Returns at once; \
                  `delivery://{delivery_id}` tells later how each push went.",
    input: unified_input,
    output: output_schema::<Sent<'static>>,
    effects: Effects::TELLS,
    call,
};

fn unified_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "title": { "type": "string", "description": "Headline, best under 100 characters" },
            "content": {
                "type": "string",
                "description": "The message, best under 2000 characters; line breaks are kept"
            },
            "level": {
                "type": "string",
                "enum": [
                    "debug", "info", "notice", "warn", "warning", "error", "critical", "alert", "emergency"
                ],
                "description": "How serious it is (default: info)",
                "default": "info"
            },
            "context": { "type": "string", "description": "Optional category (default: llm)" },
            "link": {
                "type": "string",
                "description": "Optional web address to open for more"
            },
            "attachments": attachments_schema(),
            "channels": {
                "type": "array",
                "items": { "type": "string" },
                "description": "Optional names of channels, if not all that the user's routes choose"
            }
        },
        "required": ["title", "content"]
    })
}

/// The arguments of seed S4, in its own words.
pub(in crate::mcp) fn seed_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "title": { "type": "string", "description": "消息标题" },
            "content": { "type": "string", "description": "消息内容（支持换行符 `\\n`）" }
        },
        "required": ["title", "content"]
    })
}

/// What `notify.send` gives, as text and as structured content.
#[derive(Serialize, JsonSchema)]
struct Sent<'a> {
    /// Whether the message was accepted and goes to at least one channel, or is one that the user never wants pushed.
    success: bool,
    /// The same in words.
    message: String,
    #[serde(flatten)]
    queued: Queued<'a>,
}

fn call<'a>(call: &'a Call<'a>, arguments: Arguments) -> BoxFuture<'a, CallToolResult> {
    send(call, arguments).boxed()
}

async fn send(call: &Call<'_>, mut arguments: Arguments) -> CallToolResult {
    let report = match read(call, &mut arguments) {
        Ok(report) => report,
        Err(invalid) => return not_accepted(&invalid.to_string()),
    };
    match call.report(report).await {
        Err(refused) => not_accepted(&refused.to_string()),
        Ok(accepted) => {
            let pushed = Pushed::of(&accepted);
            let message = pushed
                .problem()
                .unwrap_or_else(|| format!("已向 {} 个渠道发送通知", accepted.channels.len()));
            answer(&Sent {
                success: pushed.is_success(),
                message,
                queued: Queued::new(pushed, &accepted, arguments.ignored()),
            })
        }
    }
}

fn read(call: &Call<'_>, arguments: &mut Arguments) -> Result<Report, Invalid> {
    let title = arguments.required_text("title")?;
    let text = arguments.required_text("content")?;
    let level = lenient_level(arguments, call.profile)?;
    let context = match arguments.text("context")? {
        Some(name) if !name.trim().is_empty() => name.parse()?,
        _ => Context::default(),
    };
    let link = arguments.text("link")?;
    let attachments = attachments(arguments)?;
    let to = arguments.texts("channels")?;
    let to = to.iter().map(|name| name.parse()).collect::<Result<Vec<ChannelName>, Invalid>>()?;
    Ok(Report {
        key: call.caller.key(),
        level,
        context,
        source: call.caller.source(),
        content: Content { title: Some(title), text, link, attachments, ..Content::default() },
        text_field: "content",
        at_once: false,
        folder: call.caller.folder(),
        kind: Kind::Push,
        to,
    })
}
