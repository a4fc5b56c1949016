//! What `notify.send` and `notify.event` both tell of a message that was accepted for the channels.

use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Serialize;

use super::{channel_names, structured};
use crate::intake::Accepted;

/// What became of a message at acceptance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    /// It waits for its channels.
    Queued,
    /// Its title is one that the user never wants pushed.
    Skipped,
    /// There is no channel.
    NoChannels,
    /// No route takes it.
    NotRouted,
}

impl Pushed {
    pub(super) const fn of(accepted: &Accepted) -> Self {
        if accepted.skipped {
            Self::Skipped
        } else if !accepted.channels.is_empty() {
            Self::Queued
        } else if accepted.configured == 0 {
            Self::NoChannels
        } else {
            Self::NotRouted
        }
    }

    pub(super) const fn is_success(self) -> bool {
        matches!(self, Self::Queued | Self::Skipped)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Skipped => "skipped",
            Self::NoChannels => "no_channels",
            Self::NotRouted => "not_routed",
        }
    }

    /// What to say instead of the seed's words, where nothing is pushed.
    pub(super) fn problem(self) -> Option<String> {
        let problem = match self {
            Self::Queued => return None,
            Self::Skipped => "标题在跳过列表中，未推送",
            Self::NoChannels => "未配置任何通知渠道，消息只保存在日志中",
            Self::NotRouted => "没有匹配的路由，消息只保存在日志中",
        };
        Some(problem.to_owned())
    }

    const fn hint(self) -> Option<&'static str> {
        match self {
            Self::Queued => None,
            Self::Skipped => Some(
                "the title is on the list of titles that are never pushed; it is kept in the journal",
            ),
            Self::NoChannels => Some(
                "no channel is configured, so nobody is pushed; the message is kept in the journal, and the user can \
                 add a channel under [channels] in the configuration",
            ),
            Self::NotRouted => {
                Some("no route takes this message to a channel; it is kept in the journal")
            }
        }
    }
}

/// The facts of a push that are the same for every tool.
#[derive(Serialize, JsonSchema)]
pub(super) struct Queued<'a> {
    /// Where it stands: `queued`, `skipped`, `no_channels` or `not_routed`.
    status: &'a str,
    /// How many channels it goes to.
    channels_count: usize,
    /// The channels it goes to.
    channels: Vec<String>,
    /// The id under which the resource `delivery://{delivery_id}` tells how each push went.
    delivery_id: String,
    /// The level it was accepted with.
    level: &'a str,
    /// Failures by channel; empty, because nothing was tried yet.
    errors: Errors,
    /// Whether its title is one that the user never wants pushed.
    skipped: bool,
    /// What to do about it, where nothing is pushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    /// Arguments that were given and are not known.
    ignored: Vec<String>,
}

/// No failures: an object without fields.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Errors {}

impl<'a> Queued<'a> {
    pub(super) fn new(pushed: Pushed, accepted: &'a Accepted, ignored: Vec<String>) -> Self {
        let channels = channel_names(accepted);
        Self {
            status: pushed.as_str(),
            channels_count: channels.len(),
            channels,
            delivery_id: accepted.event.id.to_string(),
            level: accepted.event.level.as_str(),
            errors: Errors {},
            skipped: pushed == Pushed::Skipped,
            hint: pushed.hint(),
            ignored,
        }
    }
}

/// A result whose text is its structured content in JSON, with the fields in the order of the struct.
pub(super) fn answer(answer: &impl Serialize) -> CallToolResult {
    let text = serde_json::to_string(answer).unwrap_or_default();
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(structured(answer));
    result
}

/// Why nothing was accepted.
#[derive(Serialize)]
struct NotAccepted<'a> {
    success: bool,
    message: &'a str,
}

/// A result that says why nothing was sent, in the shape of the other answers.
pub(super) fn not_accepted(reason: &str) -> CallToolResult {
    let text =
        serde_json::to_string(&NotAccepted { success: false, message: reason }).unwrap_or_default();
    CallToolResult::error(vec![ContentBlock::text(text)])
}
