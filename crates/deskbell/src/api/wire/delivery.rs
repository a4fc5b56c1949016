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
    /// When it is or was due; of what belongs to a group, when it was last tried.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub due_at: Timestamp,
    /// Whether an attempt may have reached the far end without being recorded.
    pub maybe_repeated: bool,
    /// The latest attempts, the first one first.
    pub attempts: Vec<AttemptBody>,
    /// How many attempts there were.
    pub attempt_count: u32,
    /// When it was put back among the due ones by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<RetryBody>,
    /// The far end's id of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// How many other events its message tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tells_others: Option<u64>,
    /// The event whose message tells this one too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "uuid"))]
    pub told_with: Option<String>,
    /// The event that told the same before, for which this one was not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "uuid"))]
    pub repeat_of: Option<String>,
    /// The server on this machine that stands for the channel's far end by the configuration of now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<String>,
    /// What an open delivery waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
}

impl DeliveryBody {
    /// How it is told with others or instead of them, if it is.
    pub fn place(&self) -> Option<String> {
        if let Some(first) = &self.repeat_of {
            return Some(format!("not told: it says the same as event {first}"));
        }
        if let Some(lead) = &self.told_with {
            return Some(format!("told in one message with event {lead}"));
        }
        let others = self.tells_others?;
        Some(format!(
            "told in one message with {others} other {}",
            if others == 1 { "event" } else { "events" }
        ))
    }

    /// Whether nothing more happens to it by itself.
    pub const fn is_settled(&self) -> bool {
        self.state.is_settled()
    }

    /// What went wrong in the latest attempt: all of it, or, where the message was sent, a part of it.
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
        let retry = |record: journal::RetryRecord| RetryBody {
            after_attempts: record.after,
            at: record.at,
        };
        let lead = delivery.lead.map(|lead| lead.to_string());
        let is_repeat = delivery.state == DeliveryState::Superseded;
        let (repeat_of, told_with) = if is_repeat { (lead, None) } else { (None, lead) };
        Self {
            tells_others: delivery.others.filter(|others| *others > 0),
            told_with,
            repeat_of,
            event: delivery.id.event,
            channel: delivery.id.channel.to_string(),
            id: delivery.id,
            state: delivery.state,
            reason: delivery.reason,
            due_at: delivery.due_at,
            maybe_repeated: delivery.maybe_repeated,
            attempts: delivery.attempts.into_iter().map(attempt).collect(),
            attempt_count: delivery.attempt_count,
            retries: delivery.retries.into_iter().map(retry).collect(),
            message_id: delivery.receipts.into_iter().find_map(|piece| piece.receipt.message_id),
            waits_for: None,
            stand_in: None,
        }
    }
}

/// One attempt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Attempt")]
pub struct AttemptBody {
    /// Its number, counted from 1 through all retries by hand.
    pub number: u32,
    /// When its outcome was known.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
    /// What went wrong; of a delivery that was sent, what of it did not arrive. Without it the far end took all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A retry by hand.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Retry")]
pub struct RetryBody {
    /// How many attempts there were before.
    pub after_attempts: u32,
    /// When it was asked for.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
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
    /// How it tells its events together, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<String>,
}
