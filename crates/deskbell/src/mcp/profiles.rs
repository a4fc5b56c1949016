//! Profiles: which tools a connection lists, under which names and with which schemas.
//!
//! A profile never takes a tool away: every tool answers to all its names in each of them.

use std::str::FromStr;

use deskbell_core::{Invalid, Level};
use rmcp::model::{JsonObject, Tool as Listing};
use serde_json::Value;

use super::tools::{self, NOTIFY, NOTIFY_EVENT, NOTIFY_SEND, Tool};
use crate::prompts;

/// The profile that is used where none is named.
pub const DEFAULT: &str = "unified";

/// What a connection lists, and how `notify` reads what is ambiguous.
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// What the server says of itself to the model, at most 600 characters.
    pub(super) instructions: &'static str,
    /// How its tool names are written.
    pub(super) tool_names: ToolNames,
    /// What a bare `notify` is.
    pub(super) bare: Bare,
    /// The levels that `notify` knows; every other is `info`.
    pub(super) levels: &'static [Level],
    listed: &'static [Listed],
}

/// How tool names are written in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolNames {
    /// As the seeds write them: `notify.send`.
    Dot,
    /// So that every client takes them: `notify_send`.
    Underscore,
}

impl ToolNames {
    /// The choice's name on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dot => "dot",
            Self::Underscore => "underscore",
        }
    }
}

impl FromStr for ToolNames {
    type Err = Invalid;

    fn from_str(name: &str) -> Result<Self, Invalid> {
        match name {
            "dot" => Ok(Self::Dot),
            "underscore" => Ok(Self::Underscore),
            _ => Err(Invalid::text("tool names", name, "dot or underscore")),
        }
    }
}

/// What a `notify` is that says neither line nor window (row C1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bare {
    /// A line, unless its arguments ask for a window.
    Log,
    /// A line whatever its arguments are: the profile knows no window.
    AlwaysLog,
}

/// A tool in the list of a profile, with what the profile says in its own words.
struct Listed {
    tool: &'static Tool,
    description: &'static str,
    input: fn() -> Value,
}

impl Listed {
    /// The tool as Deskbell itself describes it.
    const fn ours(tool: &'static Tool) -> Self {
        Self { tool, description: tool.description, input: tool.input }
    }
}

const PROFILES: &[Profile] = &[
    Profile {
        name: DEFAULT,
        instructions: prompts::INSTRUCTIONS,
        tool_names: ToolNames::Underscore,
        bare: Bare::Log,
        levels: &Level::ALL,
        listed: &[Listed::ours(&NOTIFY), Listed::ours(&NOTIFY_SEND), Listed::ours(&NOTIFY_EVENT)],
    },
    Profile {
        name: "swissarmyhammer",
        instructions: "Use `notify` to surface important discoveries, status updates of long operations, warnings \
                       and decisions to the user while you work. Messages should be concise and actionable; be \
                       selective about what is worth notifying.",
        tool_names: ToolNames::Dot,
        bare: Bare::AlwaysLog,
        levels: &[Level::Info, Level::Warning, Level::Error],
        listed: &[Listed {
            tool: &NOTIFY,
            description: "Send messages from LLM to user through the logging system",
            input: tools::notify_seed_input,
        }],
    },
    Profile {
        name: "mcp-push",
        instructions: prompts::INSTRUCTIONS_ZH,
        tool_names: ToolNames::Dot,
        bare: Bare::Log,
        levels: &Level::ALL,
        listed: &[
            Listed {
                tool: &NOTIFY_SEND,
                description: "发送简单的标题+内容消息到所有已配置渠道",
                input: tools::notify_send_seed_input,
            },
            Listed {
                tool: &NOTIFY_EVENT,
                description: "发送带任务 ID、进度、状态的结构化事件，适合长时间运行的任务追踪",
                input: tools::notify_event_seed_input,
            },
        ],
    },
];

/// The names of the profiles.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|profile| profile.name)
}

/// Finds a profile.
///
/// # Errors
/// Names the profiles that there are.
pub fn find(name: &str) -> Result<&'static Profile, Invalid> {
    PROFILES.iter().find(|profile| profile.name == name).ok_or_else(|| {
        let known: Vec<_> = names().collect();
        Invalid::text("profile", name, format!("one of {}", known.join(", ")))
    })
}

impl Profile {
    /// The tools as they are listed.
    pub(super) fn list(&self, names: ToolNames) -> Vec<Listing> {
        self.listed.iter().map(|listed| listed.listing(names)).collect()
    }
}

impl Listed {
    fn listing(&self, names: ToolNames) -> Listing {
        let tool = self.tool;
        let name = match names {
            ToolNames::Dot => tool.dotted,
            ToolNames::Underscore => tool.name,
        };
        Listing::new(name, self.description, object((self.input)()))
            .with_title(tool.title)
            .with_raw_output_schema((tool.output)())
            .with_annotations(tool.effects.annotations(tool.title))
    }
}

fn object(schema: Value) -> JsonObject {
    match schema {
        Value::Object(fields) => fields,
        _ => JsonObject::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(profile: &str, names: ToolNames) -> Vec<String> {
        let tools = find(profile).unwrap().list(names);
        tools.into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    #[test]
    fn names_are_written_as_the_profile_or_its_user_wants_row_103_c17() {
        assert_eq!(
            listed(DEFAULT, find(DEFAULT).unwrap().tool_names),
            ["notify", "notify_send", "notify_event"]
        );
        assert_eq!(
            listed("mcp-push", find("mcp-push").unwrap().tool_names),
            ["notify.send", "notify.event"]
        );
        assert_eq!(listed("mcp-push", ToolNames::Underscore), ["notify_send", "notify_event"]);
        assert_eq!(listed(DEFAULT, ToolNames::Dot), ["notify", "notify.send", "notify.event"]);
    }

    #[test]
    fn swissarmyhammer_publishes_the_schema_of_its_seed_row_1() {
        let tools = find("swissarmyhammer").unwrap().list(ToolNames::Dot);
        assert_eq!(tools.len(), 1);
        assert_eq!(
            tools[0].schema_as_json_value(),
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
        );
    }

    #[test]
    fn every_tool_says_what_it_does_to_the_world() {
        for profile in PROFILES {
            assert!(profile.instructions.chars().count() <= 600, "{}", profile.name);
            for tool in profile.list(profile.tool_names) {
                let annotations = tool.annotations.unwrap();
                assert_eq!(annotations.read_only_hint, Some(false), "{}", tool.name);
                assert_eq!(annotations.destructive_hint, Some(false), "{}", tool.name);
                assert_eq!(annotations.idempotent_hint, Some(false), "{}", tool.name);
                assert_eq!(annotations.open_world_hint, Some(true), "{}", tool.name);
                assert!(tool.title.is_some() && tool.output_schema.is_some(), "{}", tool.name);
            }
        }
    }

    #[test]
    fn an_unknown_profile_is_answered_with_those_that_there_are() {
        let sentence = find("voice").map(|profile| profile.name).unwrap_err().to_string();
        assert_eq!(
            sentence,
            "`profile` is \"voice\"; expected one of unified, swissarmyhammer, mcp-push"
        );
    }
}
