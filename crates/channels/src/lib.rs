//! The channel kinds of Deskbell: how a message reaches a far end, once.
//!
//! A channel tries once and says what a failure means; retry, rate limits and recording happen outside.
#![warn(missing_docs)]

pub mod channel;

pub use channel::{About, Channel, ChannelKind, ConfigError, Limits, SendContext, SendError};
