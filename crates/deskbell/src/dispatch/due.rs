//! Looks for what is due: one claim for all lanes, and when to look again.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tracing::warn;

use crate::{
    crash_point::{self, Point},
    dispatch::{Dispatch, LONGEST_SLEEP, lane::Room},
    journal::Claim,
};

/// How long to wait after the first claim that failed; it doubles up to [`LONGEST_CLAIM_PAUSE`].
const FIRST_CLAIM_PAUSE: Duration = Duration::from_millis(100);

/// The longest wait after a claim that failed.
const LONGEST_CLAIM_PAUSE: Duration = Duration::from_secs(5);

impl Dispatch {
    /// Starts all attempts that are due and for which there is room; says when to look again if nothing else happens.
    pub(super) async fn look(&mut self) -> Instant {
        let (now, steady) = (self.clock.now(), self.steady.now());
        let mut sleep = LONGEST_SLEEP;
        let mut room = Vec::new();
        for (name, lane) in &self.lanes {
            let Room { free, opens_at } = lane.room(steady);
            if free > 0 {
                room.push((name.clone(), free));
            }
            sleep = sleep.min(opens_at.map_or(LONGEST_SLEEP, |at| until(at, steady)));
        }
        if !room.is_empty() {
            match self.journal.claim(Claim { now, room }).await {
                Ok(claimed) => {
                    if !claimed.due.is_empty() {
                        crash_point::pass(Point::Claimed);
                    }
                    self.claim_failures = 0;
                    sleep = sleep.min(claimed.next_at.map_or(LONGEST_SLEEP, |at| until(at, now)));
                    claimed.due.into_iter().for_each(|due| self.begin(due));
                }
                Err(error) => {
                    if self.claim_failures == 0 {
                        warn!(
                            "deliveries wait, because what is due cannot be taken from the journal: {error}"
                        );
                    }
                    let pause = FIRST_CLAIM_PAUSE.saturating_mul(1 << self.claim_failures.min(16));
                    self.claim_failures += 1;
                    sleep = sleep.min(pause.min(LONGEST_CLAIM_PAUSE));
                }
            }
        }
        Instant::now() + sleep
    }
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}
