//! The rules of Deskbell, as pure functions: what an event is, where it goes, when it is tried again.
//!
//! Nothing here does I/O, reads a clock or knows an async runtime: the time and randomness are arguments.
//! The types are the ones we think in; what is stored, sent or configured has its own types beside its reader.
#![warn(missing_docs)]

pub mod field;

pub mod attachment;
pub mod context;
pub mod event;
pub mod level;
pub mod link;
pub mod run;
pub mod source;

pub mod message;
pub mod text;

pub mod delivery;
pub mod group;
pub mod quiet;
pub mod route;

pub mod breaker;
pub mod clock;
pub mod debounce;
pub mod rate;
pub mod retry;

pub use context::Context;
pub use delivery::{ChannelName, DeliveryId};
pub use event::{Event, EventId};
pub use field::Invalid;
pub use level::Level;
pub use message::Message;
pub use run::{Run, RunId};
pub use source::Source;
