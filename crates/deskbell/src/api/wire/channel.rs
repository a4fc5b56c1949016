//! The configured channels, and what a test of one came to.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DeliveryBody;
use crate::config::Problem;

/// The configured channels.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChannelList {
    /// The channels that work, by name.
    pub channels: Vec<ChannelBody>,
    /// What is wrong with the configuration as the daemon sees it, such as channels that were left out.
    pub problems: Vec<LeftOutBody>,
}

/// Something of the configuration that is left out.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LeftOut")]
pub struct LeftOutBody {
    /// The channel, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Whether the daemon lacks a variable, which only a new start of it brings.
    pub of_environment: bool,
    /// What is wrong and where.
    pub text: String,
}

impl From<Problem> for LeftOutBody {
    fn from(problem: Problem) -> Self {
        let Problem { channel, of_environment, text } = problem;
        Self { channel: channel.map(|name| name.to_string()), of_environment, text }
    }
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
    /// Why nobody would see its messages as things are, as far as that shows without sending one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// The server on this machine that gets its messages in place of the far end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<String>,
    /// Until when it is snoozed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub snoozed_until: Option<Timestamp>,
    /// Until when its quiet hours last, while they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub quiet_until: Option<Timestamp>,
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

/// What is snoozed.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Snoozed")]
pub struct SnoozedBody {
    /// Until when all channels are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub all: Option<Timestamp>,
    /// Until when single channels are, by name.
    #[schemars(with = "BTreeMap<String, String>")]
    pub channels: BTreeMap<String, Timestamp>,
    /// Of a change: how many deliveries that were held back are told now, or held until the new end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<u64>,
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
