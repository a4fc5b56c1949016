#![doc = include_str!("../README.md")]

mod context;
mod declared;
mod level;
mod limits;
mod log;
mod notify;
mod outbox;
mod service;
mod session;
mod wire;

pub use context::ToolContext;
pub use declared::Declared;
pub use level::{Level, UnknownLevel};
pub use limits::{Limits, WrongVariable};
pub use log::Log;
pub use notify::{Notify, Progress};
pub use service::Notifying;

/// The target of `tracing` under which this crate says what it sent, held back or dropped, and why.
pub const TARGET: &str = "deskbell_sdk";

/// What messages of this crate's own say they come from.
const LOGGER: &str = "deskbell-sdk";
