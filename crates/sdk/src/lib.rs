#![doc = include_str!("../README.md")]

mod call;
mod client;
mod context;
mod declared;
mod level;
mod limits;
mod listening;
mod log;
mod notifier;
mod notify;
mod outbox;
mod rate;
mod service;
mod session;
mod subscriptions;
mod wire;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use client::Client;
pub use context::ToolContext;
pub use declared::Declared;
pub use level::{Level, UnknownLevel};
pub use limits::{Debounce, Limits, WrongVariable};
pub use log::Log;
pub use notifier::Notifier;
pub use notify::{Notify, Progress};
pub use service::Notifying;

/// The target of `tracing` under which this crate says what it sent, held back or dropped, and why.
pub const TARGET: &str = "deskbell_sdk";

/// What messages of this crate's own say they come from.
const LOGGER: &str = "deskbell-sdk";

/// Locks, also after a panic elsewhere: what is locked here is whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
