//! Messages of eight levels.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::{call::Call, level::Level, outbox::Word};

/// Tells the caller of a tool messages of eight levels.
///
/// ```
/// # use deskbell_sdk::ToolContext;
/// # let cx = ToolContext::silent();
/// cx.log.info("started");
/// cx.log.data(serde_json::json!({ "items": 100, "errors": 0 })).notice("done");
/// ```
///
/// Nothing here waits, and nothing here fails.
#[derive(Debug, Clone)]
pub struct Log {
    call: Option<Arc<Call>>,
    data: Option<Value>,
}

impl Log {
    pub(crate) const fn new(call: Option<Arc<Call>>) -> Self {
        Self { call, data: None }
    }

    /// The same with `data` beside each message: the fields of an object, or anything else as the field `data`.
    ///
    /// What cannot be written as JSON is left out, and so is data of more than 64 KiB, whose size is told instead.
    #[must_use]
    pub fn data(&self, data: impl Serialize) -> Self {
        let data = serde_json::to_value(data).ok().filter(|data| !data.is_null());
        Self { call: self.call.clone(), data }
    }

    /// Tells `message`, if the client wants to hear of `level`; beyond 16 KiB it is cut.
    pub fn log(&self, level: Level, message: impl AsRef<str>) {
        match &self.call {
            Some(call) => {
                call.message(level, Word::Passing, message.as_ref(), self.data.as_ref());
            }
            None => tracing::trace!(target: crate::TARGET, %level, "not told: no session"),
        }
    }

    /// Whether no message at all is heard.
    pub fn is_noop(&self) -> bool {
        !self.is_enabled(Level::Emergency)
    }

    /// Whether messages of `level` are heard, for what is dear to compute.
    pub fn is_enabled(&self, level: Level) -> bool {
        self.call.as_ref().is_some_and(|call| call.is_open() && call.hears(level))
    }

    /// Tells what helps to find a fault.
    pub fn debug(&self, message: impl AsRef<str>) {
        self.log(Level::Debug, message);
    }

    /// Tells what happens normally.
    pub fn info(&self, message: impl AsRef<str>) {
        self.log(Level::Info, message);
    }

    /// Tells what is normal and worth noticing.
    pub fn notice(&self, message: impl AsRef<str>) {
        self.log(Level::Notice, message);
    }

    /// Tells what may go wrong.
    pub fn warning(&self, message: impl AsRef<str>) {
        self.log(Level::Warning, message);
    }

    /// Tells what went wrong.
    pub fn error(&self, message: impl AsRef<str>) {
        self.log(Level::Error, message);
    }

    /// Tells what makes a part unusable.
    pub fn critical(&self, message: impl AsRef<str>) {
        self.log(Level::Critical, message);
    }

    /// Tells what somebody must do something about at once.
    pub fn alert(&self, message: impl AsRef<str>) {
        self.log(Level::Alert, message);
    }

    /// Tells what makes everything unusable.
    pub fn emergency(&self, message: impl AsRef<str>) {
        self.log(Level::Emergency, message);
    }
}
