//! Deliveries, and where an event went and why.

use deskbell_core::{DeliveryId, EventId, delivery::DeliveryState};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EventBody, as_text};
use crate::journal;

/// A delivery as it stands.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Delivery")]
pub struct DeliveryBody {
    /// Its id: `EVENT_ID.CHANNEL`.
    #[serde(with = "as_text")]
    #[schemars(with = "String")]
    pub id: DeliveryId,
    /// The event.
    #[serde(with = "as_text")]
    #[schemars(with = "String", extend("format" = "uuid"))]
    pub event: EventId,
    /// The channel.
    pub channel: String,
    /// `pending`, `in_flight`, `sent`, `given_up` or `superseded`.
    #[serde(with = "as_text")]
    #[schemars(with = "String")]
    pub state: DeliveryState,
    /// Why the event goes there.
    pub reason: String,
    /// When it is or was due.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub due_at: Timestamp,
    /// Whether an attempt may have reached the far end without being recorded.
    pub maybe_repeated: bool,
    /// The latest attempts, the first one first.
    pub attempts: Vec<AttemptBody>,
    /// How many attempts there were.
    pub attempt_count: u32,
    /// The far end's id of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// What an open delivery waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
}

impl DeliveryBody {
    /// Whether nothing more happens to it by itself.
    pub const fn is_settled(&self) -> bool {
        self.state.is_settled()
    }

    /// What went wrong in the latest attempt, if it failed.
    pub fn latest_error(&self) -> Option<&str> {
        self.attempts.last()?.error.as_deref()
    }
}

impl From<journal::Delivery> for DeliveryBody {
    fn from(delivery: journal::Delivery) -> Self {
        let attempt = |record: journal::AttemptRecord| AttemptBody {
            number: record.number,
            at: record.at,
            error: record.error,
        };
        Self {
            event: delivery.id.event,
            channel: delivery.id.channel.to_string(),
            id: delivery.id,
            state: delivery.state,
            reason: delivery.reason,
            due_at: delivery.due_at,
            maybe_repeated: delivery.maybe_repeated,
            attempts: delivery.attempts.into_iter().map(attempt).collect(),
            attempt_count: delivery.attempt_count,
            message_id: delivery.receipts.into_iter().find_map(|piece| piece.receipt.message_id),
            waits_for: None,
        }
    }
}

/// One attempt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Attempt")]
pub struct AttemptBody {
    /// Its number, counted from 1.
    pub number: u32,
    /// When its outcome was known.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
    /// What went wrong; without it the far end took the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Where an event went, and why.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Why")]
pub struct WhyBody<'a> {
    /// The event.
    pub event: EventBody<'a>,
    /// What chose the channels: a sentence.
    pub chosen_by: String,
    /// What each route finds of the event as the routes stand now.
    pub routes: Vec<RouteBody>,
    /// What became of it.
    pub deliveries: Vec<DeliveryBody>,
}

/// A route and what it finds of an event.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RouteVerdict")]
pub struct RouteBody {
    /// Its number, counted from 1.
    pub number: usize,
    /// The project's file that it stands in; absent for the user's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What it takes, in words.
    pub takes: String,
    /// Where its events go.
    pub channels: Vec<String>,
    /// Whether it takes the event.
    pub matches: bool,
    /// Why, or why not.
    pub verdict: String,
}
