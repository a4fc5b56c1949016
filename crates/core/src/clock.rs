//! What time it is, as an argument.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

/// The wall clock. Rules take a time; what must ask for it asks this.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `start`, kept in milliseconds.
    pub fn at(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.as_millisecond()))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: std::time::Duration) {
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.0.load(Ordering::SeqCst)).unwrap_or(Timestamp::MAX)
    }
}
