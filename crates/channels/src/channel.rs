//! What a channel is: one method, and a declaration that configuration, documentation, tests and dispatch read.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use aws_lc_rs::digest;
use deskbell_core::{
    DeliveryId, Message,
    delivery::{Arrived, Failure, Mark, Receipt},
    text::Unit,
};
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, schema_for};
use serde::de::DeserializeOwned;

use crate::{
    address::Address,
    files::{Files, ReadFile},
    http::Http,
    manner::Manner,
    options,
    preview::Preview,
    render::Dialect,
    secret,
    url::Urls,
    variables::Variables,
    verdict::{Refusal, Verdict},
};

/// A configured destination.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Delivers `message` once. The message is within the limits that the channel's kind declares.
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError>;

    /// The places that a message goes to, each by the mark of its name; each gets it by a `send` of its own, which
    /// [`SendContext::target`] numbers.
    fn targets(&self) -> Vec<Mark> {
        vec![Mark::NONE]
    }

    /// Says what is wrong between options that are each right for themselves.
    ///
    /// # Errors
    /// Names the options, never their values.
    fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    /// Why nobody would see a message, as far as that shows without sending one: a file that cannot be read, no desktop.
    fn unseen(&self) -> Option<String> {
        None
    }

    /// What must not be seen of the options. Channels that [`ChannelKind::build`] made know it.
    fn secrets(&self) -> &[String] {
        &[]
    }
}

/// What an attempt knows beside its message.
#[derive(Debug, Clone)]
pub struct SendContext {
    /// The delivery's stable id, for far ends that drop repeats.
    pub delivery: DeliveryId,
    /// The number of this attempt, counted from 1.
    pub attempt: u32,
    /// Which of the places the message is for, counted from 0.
    pub target: usize,
    /// Which part of a message that was too long for one, counted from 1.
    pub part: usize,
    /// The receipt of an earlier step of the same run at this place, where the message is to take that one's place.
    pub edit: Option<Receipt>,
    /// The pieces of an earlier step of the same run; the code around a channel reads them.
    pub earlier: Vec<Arrived>,
    /// The pieces that have arrived by earlier attempts; the code around a channel reads them.
    pub arrived: Vec<Arrived>,
    /// The files to send, as [`ChannelKind::files`] says: with the last part of the text, or one in a `send` of its own.
    pub files: Vec<Arc<ReadFile>>,
    /// What the far end gave for the text that the file follows, of those that go out after it.
    pub told: Option<Receipt>,
    /// The time now, for signatures.
    pub now: Timestamp,
    /// How the user wants the channel to tell; the code around a channel reads it.
    pub manner: Manner,
    /// How long the whole attempt may take.
    pub timeout: Duration,
    /// The way to far ends that speak HTTP.
    pub http: Http,
    /// Where requests are written down instead of sent, if they are.
    pub preview: Option<Preview>,
    /// What must not be seen of the channel's options. The code around a channel sets it.
    pub secrets: Arc<[String]>,
}

impl SendContext {
    /// How long an attempt may take unless the configuration says otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(15);

    /// The first attempt of `delivery`.
    pub fn new(delivery: DeliveryId, now: Timestamp, http: Http) -> Self {
        Self {
            delivery,
            attempt: 1,
            target: 0,
            part: 1,
            edit: None,
            earlier: Vec::new(),
            arrived: Vec::new(),
            files: Vec::new(),
            told: None,
            now,
            manner: Manner::default(),
            timeout: Self::TIMEOUT,
            http,
            preview: None,
            secrets: Arc::default(),
        }
    }

    /// What a far end said, fit for an error: without secrets, on one line, not too long.
    pub fn excerpt(&self, told: &str) -> String {
        secret::excerpt(told, &self.secrets)
    }

    /// The id of what is sent: the delivery's, with the number of the place and of the part from the second on.
    pub fn id(&self) -> String {
        match (self.target, self.part) {
            (0, 0 | 1) => self.delivery.to_string(),
            (0, part) => format!("{}.{part}", self.delivery),
            (target, part) => format!("{}.{part}.{}", self.delivery, target + 1),
        }
    }

    /// The same id for far ends that take a UUID only (RFC 9562, version 8): the start of its SHA-256.
    pub fn uuid(&self) -> String {
        let digest = digest::digest(&digest::SHA256, self.id().as_bytes());
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(digest.as_ref()).for_each(|(byte, digest)| *byte = *digest);
        uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
    }
}

/// Why a message was not delivered.
#[derive(Debug, Clone, thiserror::Error)]
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

    /// A failure that may pass, but not before `wait` is over.
    pub fn retry_after(wait: Duration, message: impl Into<String>) -> Self {
        Self { failure: Failure::Temporary { retry_after: Some(wait) }, message: message.into() }
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
    /// What the far end is called where people speak of it, such as `Slack`.
    pub title: &'static str,
    /// The far end's own documentation of the interface that is used.
    pub docs: &'static str,
    /// How the far end is reached.
    pub transport: Transport,
    /// How the far end wants text to be written.
    pub dialect: Dialect,
    /// What the far end takes in one message.
    pub limits: Limits,
    /// Whether a run is told as one message that is edited in place.
    pub edits: bool,
    /// A configuration that must build, in TOML.
    pub example: &'static str,
}

/// How a far end is reached. Tests and previews choose their stand-in by it.
#[derive(Debug, Clone, Copy)]
pub enum Transport {
    /// By HTTP requests.
    Http {
        /// The body of an answer that means success.
        accepted: &'static str,
        /// What an answer means.
        verdict: Verdict,
        /// Real answers that mean no success.
        refusals: &'static [Refusal],
    },
    /// By a mail server.
    Smtp,
    /// By an MQTT broker.
    Mqtt,
    /// By frames over a WebSocket.
    WebSocket {
        /// What an answer means.
        verdict: Verdict,
    },
    /// By records of syslog, which nobody acknowledges.
    Syslog,
    /// On this machine.
    Local,
}

/// What a far end takes: the longest title and body, counted as it counts, after escaping; and how often.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest title.
    pub title: usize,
    /// The longest body.
    pub body: usize,
    /// What both are counted in.
    pub unit: Unit,
    /// How many messages a minute, where more have consequences; the configuration may set less or more.
    pub per_minute: Option<u32>,
}

impl Limits {
    /// A far end that takes whatever an event may hold.
    pub const NONE: Self =
        Self { title: usize::MAX, body: usize::MAX, unit: Unit::Characters, per_minute: None };
}

/// A kind of channel.
#[derive(Debug, Clone, Copy)]
pub struct ChannelKind {
    /// What it declares.
    pub about: About,
    /// The addresses that stand for a channel of this kind, if there are such.
    pub urls: Option<Urls>,
    /// The variables by which mcp-push and Qinglong describe a channel of this kind, if they do.
    pub variables: Option<Variables>,
    /// The longest link that its messages have a place of their own for, in bytes. The text says a longer one.
    pub link: usize,
    /// How files go out with its messages.
    pub files: Files,
    /// How many addresses of files its messages have a place of their own for. The text says the others.
    pub file_urls: usize,
    build: fn(toml::Table) -> Result<Box<dyn Channel>, ConfigError>,
    schema: fn() -> Schema,
}

/// A channel's options that do not build one. Names the option, never its value.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

impl ChannelKind {
    /// The kind whose options are the fields of `C`.
    pub const fn of<C>(about: About) -> Self
    where
        C: Channel + DeserializeOwned + JsonSchema + 'static,
    {
        Self {
            about,
            urls: None,
            variables: None,
            link: 0,
            files: Files::Not,
            file_urls: 0,
            build: build::<C>,
            schema: || schema_for!(C),
        }
    }

    /// The same kind, which takes addresses as well.
    pub const fn with_urls(self, urls: Urls) -> Self {
        Self { urls: Some(urls), ..self }
    }

    /// The same kind, whose messages have a place of their own for every link.
    pub const fn with_links(self) -> Self {
        self.with_links_up_to(usize::MAX)
    }

    /// The same kind, whose messages have a place of their own for links of at most `bytes`.
    pub const fn with_links_up_to(self, bytes: usize) -> Self {
        Self { link: bytes, ..self }
    }

    /// The same kind, whose messages go out with files.
    pub const fn with_files(self, files: Files) -> Self {
        Self { files, ..self }
    }

    /// The same kind, whose messages have a place of their own for as many addresses of files.
    pub const fn with_file_urls(self, count: usize) -> Self {
        Self { file_urls: count, ..self }
    }

    /// Whether its messages have a place of their own for `link`.
    pub(crate) const fn has_place_for(&self, link: &str) -> bool {
        link.len() <= self.link
    }

    /// The same kind, which variables can describe.
    pub const fn with_variables(self, variables: Variables) -> Self {
        Self { variables: Some(variables), ..self }
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

    /// The options, those that must be set first.
    pub fn options(&self) -> Vec<options::OptionDoc> {
        options::documented(self.schema().as_value())
    }

    /// The option with a plain HTTP address of another machine, where everybody on the way can read the channel's
    /// secrets.
    pub fn clear_address(&self, options: &toml::Table) -> Option<String> {
        let has_secret =
            |option: &options::OptionDoc| option.secret && options.contains_key(&option.name);
        if !self.options().iter().any(has_secret) {
            return None;
        }
        let is_clear = |value: &toml::Value| {
            let address = value.as_str().filter(|text| text.starts_with("http://"));
            address.and_then(Address::parse).is_some_and(|address| !address.is_this_machine())
        };
        options.iter().find(|(_, value)| is_clear(value)).map(|(name, _)| name.clone())
    }

    /// Whether its far ends speak HTTP, so that a server on this machine can stand for them.
    pub const fn speaks_http(&self) -> bool {
        matches!(self.about.transport, Transport::Http { .. })
    }

    /// Whether something of these options must not be seen.
    pub fn has_secrets(&self, options: &toml::Table) -> bool {
        let options = toml::Value::Table(options.clone());
        !secret::found_in(self.schema().as_value(), &options).is_empty()
    }

    /// The setup guide, in Markdown.
    pub fn guide(&self) -> String {
        let schema = self.schema();
        schema.get("description").and_then(|text| text.as_str()).unwrap_or_default().to_owned()
    }
}

fn build<C>(options: toml::Table) -> Result<Box<dyn Channel>, ConfigError>
where
    C: Channel + DeserializeOwned + JsonSchema + 'static,
{
    let schema = schema_for!(C);
    let options = toml::Value::Table(options);
    let channel: C = options::read(schema.as_value(), options.clone())?;
    channel.check()?;
    let secrets = secret::found_in(schema.as_value(), &options).into();
    Ok(Box::new(Built { channel, secrets }))
}

/// A channel that keeps what is secret out of its errors.
struct Built<C> {
    channel: C,
    secrets: Arc<[String]>,
}

#[async_trait]
impl<C: Channel> Channel for Built<C> {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let cx = SendContext { secrets: Arc::clone(&self.secrets), ..cx.clone() };
        // Far ends repeat what they were sent: a wrong token, the address with the key in it.
        self.channel.send(message, &cx).await.map_err(|error| SendError {
            message: secret::mask(&error.message, &self.secrets),
            ..error
        })
    }

    fn targets(&self) -> Vec<Mark> {
        self.channel.targets()
    }

    fn unseen(&self) -> Option<String> {
        self.channel.unseen()
    }

    fn secrets(&self) -> &[String] {
        &self.secrets
    }
}
