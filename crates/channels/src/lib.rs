//! The channel kinds of Deskbell: how a message reaches a far end, once.
//!
//! A channel tries once and says what a failure means; retry, rate limits and recording happen outside.
#![warn(missing_docs)]

pub mod catalog;
pub mod channel;
pub mod options;
pub mod prelude;
pub mod url;

mod below;
pub mod deliver;
pub mod files;
mod fit;
pub mod manner;
pub mod preview;

mod alert;
mod genie;
mod targets;
pub mod variables;
pub mod verdict;

mod envelope;
pub mod render;

pub mod address;
mod aws;
mod desktop;
mod fields;
mod guard;
pub mod http;
pub mod lab;
mod lent;
pub mod mail;
mod mail_api;
mod mail_url;
mod mail_variables;
mod multipart;
pub mod reply;
pub mod secret;
mod syslog;
mod tls;
mod token;
mod web_push;

pub use address::StandIn;
pub use catalog::{from_url, from_url_with, kind, kinds};
pub use channel::{
    About, Channel, ChannelKind, ConfigError, Limits, SendContext, SendError, Transport,
};
pub use deliver::{Delivered, deliver};
pub use http::{Http, HttpOptions, Names};
pub use manner::{Manner, Overflow};
pub use preview::{Preview, preview};
pub use targets::Targets;
pub use url::FromUrl;
