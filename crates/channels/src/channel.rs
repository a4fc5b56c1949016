//! What a channel is: one method, and a declaration that configuration, documentation, tests and dispatch read.

use async_trait::async_trait;
use deskbell_core::{
    DeliveryId, Message,
    delivery::{Failure, Receipt},
    text::Unit,
};
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, schema_for};
use serde::de::DeserializeOwned;

/// A configured destination.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Delivers `message` once.
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError>;
}

/// What an attempt knows beside its message.
#[derive(Debug, Clone)]
pub struct SendContext {
    /// The delivery's stable id, for far ends that drop repeats.
    pub delivery: DeliveryId,
    /// The number of this attempt, counted from 1.
    pub attempt: u32,
    /// The receipt of an earlier step of the same run, where the message is to take that one's place.
    pub edit: Option<Receipt>,
    /// The time now, for signatures.
    pub now: Timestamp,
}

/// Why a message was not delivered.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SendError {
    /// What the failure means for another try.
    pub failure: Failure,
    /// What happened, as a fragment that fits after "failed to send", without secrets.
    pub message: String,
}

impl SendError {
    /// A failure that may pass.
    pub fn temporary(message: impl Into<String>) -> Self {
        Self { failure: Failure::Temporary { retry_after: None }, message: message.into() }
    }

    /// A refusal for good.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self { failure: Failure::Permanent, message: message.into() }
    }
}

/// What a channel kind declares once.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// The `kind` in the configuration; also the name of the file.
    pub name: &'static str,
    /// The far end's own documentation of the interface that is used.
    pub docs: &'static str,
    /// What the far end takes in one message.
    pub limits: Limits,
    /// Whether a run is told as one message that is edited in place.
    pub edits: bool,
    /// A configuration that must build, in TOML.
    pub example: &'static str,
}

/// The longest title and body that a far end takes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest title.
    pub title: usize,
    /// The longest body.
    pub body: usize,
    /// What both are counted in.
    pub unit: Unit,
}

/// A kind of channel.
#[derive(Debug, Clone, Copy)]
pub struct ChannelKind {
    /// What it declares.
    pub about: About,
    build: fn(toml::Table) -> Result<Box<dyn Channel>, ConfigError>,
    schema: fn() -> Schema,
}

/// A channel's options that do not build one. Names the option, never its value.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

impl ChannelKind {
    /// The kind whose options are the fields of `C`.
    pub const fn of<C>(about: About) -> Self
    where
        C: Channel + DeserializeOwned + JsonSchema + 'static,
    {
        Self { about, build: build::<C>, schema: || schema_for!(C) }
    }

    /// Builds a channel from its options, in which every secret is resolved.
    ///
    /// # Errors
    /// Names the option that is missing, unknown or wrong.
    pub fn build(&self, options: toml::Table) -> Result<Box<dyn Channel>, ConfigError> {
        (self.build)(options)
    }

    /// The JSON Schema of the options; its descriptions are the documentation.
    pub fn schema(&self) -> Schema {
        (self.schema)()
    }
}

fn build<C: Channel + DeserializeOwned + 'static>(
    options: toml::Table,
) -> Result<Box<dyn Channel>, ConfigError> {
    match options.try_into::<C>() {
        Ok(channel) => Ok(Box::new(channel)),
        Err(error) => Err(ConfigError(error.message().to_owned())),
    }
}
