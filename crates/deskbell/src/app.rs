//! Puts the parts of the program together and stops them in order.

use std::sync::Arc;

use deskbell_core::clock::Clock;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::{config::Config, intake::Intake, journal::Journal};

/// The parts that doors need.
pub struct App {
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// The journal, for reading.
    pub journal: Arc<dyn Journal>,
    /// The way in.
    pub intake: Intake,
    /// The newest configuration.
    pub config: watch::Receiver<Arc<Config>>,
}

/// The wall clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that everything else is given"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
