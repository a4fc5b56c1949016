//! How the channels do, for `/v1/channels` and `deskbell doctor`.

use std::collections::BTreeMap;

use deskbell_core::ChannelName;
use jiff::Timestamp;

/// How the channels do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Health {
    /// The configured channels, and those that are gone but have attempts under way.
    pub channels: BTreeMap<ChannelName, ChannelHealth>,
}

/// How one channel does since the program started.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelHealth {
    /// Whether deliveries flow.
    pub flow: Flow,
    /// How many attempts are under way.
    pub in_flight: usize,
    /// When the next attempt may begin, if it must wait for that.
    pub waiting_until: Option<Timestamp>,
    /// What went wrong last.
    pub last_error: Option<LastError>,
    /// When the far end last took a message.
    pub last_sent_at: Option<Timestamp>,
    /// How many messages the far end took.
    pub sent: u64,
    /// How many attempts failed.
    pub failed: u64,
    /// How many deliveries were given up.
    pub given_up: u64,
}

/// Whether deliveries flow to a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// All is well.
    Open,
    /// Some attempts in a row failed.
    Failing {
        /// How many.
        failures: u32,
    },
    /// So many failed that only single trials are made.
    Broken,
    /// The far end asked to be left alone for a while.
    Paused,
    /// The channel's `per_minute` is used up.
    Limited,
}

impl Flow {
    /// The flow's name on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Failing { .. } => "failing",
            Self::Broken => "broken",
            Self::Paused => "paused",
            Self::Limited => "limited",
        }
    }
}

/// What went wrong last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastError {
    /// When it was known.
    pub at: Timestamp,
    /// What it was, without secrets.
    pub error: String,
}
