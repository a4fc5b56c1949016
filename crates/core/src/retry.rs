//! What follows a failed attempt.

use std::time::Duration;

use crate::delivery::Failure;

/// How often and how patiently a delivery is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How many attempts there are in all.
    pub attempts: u32,
    /// The ceiling of the wait after the first attempt; it doubles with each further one.
    pub first: Duration,
    /// The ceiling that no wait of ours exceeds.
    pub longest: Duration,
    /// The longest wait that a far end may ask for. Longer wishes are cut to this.
    ///
    /// It is larger than `longest`, because some far ends punish an early retry.
    pub longest_asked: Duration,
}

impl Default for RetryPolicy {
    /// Twelve attempts over about three hours.
    fn default() -> Self {
        Self {
            attempts: 12,
            first: Duration::from_secs(2),
            longest: Duration::from_mins(30),
            longest_asked: Duration::from_hours(6),
        }
    }
}

/// What follows an attempt that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Try again after this wait.
    RetryIn(Duration),
    /// Try no more.
    GiveUp,
}

impl RetryPolicy {
    /// Decides what follows attempt number `attempt`, counted from 1.
    ///
    /// The wait is a random part of an exponentially growing ceiling ("full jitter"), and never shorter than the far
    /// end asked for. `jitter` is a uniform sample from `0.0..=1.0`.
    pub fn after(&self, attempt: u32, failure: Failure, jitter: f64) -> Decision {
        let Failure::Temporary { retry_after } = failure else {
            return Decision::GiveUp;
        };
        if attempt >= self.attempts {
            return Decision::GiveUp;
        }
        let doublings = attempt.saturating_sub(1).min(31);
        let ceiling = self.first.saturating_mul(1 << doublings).min(self.longest);
        let own = ceiling.mul_f64(jitter.clamp(0.0, 1.0));
        let asked = retry_after.unwrap_or_default().min(self.longest_asked);
        Decision::RetryIn(own.max(asked))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        attempts: 5,
        first: Duration::from_secs(1),
        longest: Duration::from_secs(10),
        longest_asked: Duration::from_secs(100),
    };

    #[test]
    fn permanent_failures_are_never_retried() {
        assert_eq!(POLICY.after(1, Failure::Permanent, 0.5), Decision::GiveUp);
    }

    #[test]
    fn the_far_ends_wish_is_honoured() {
        let failure = Failure::Temporary { retry_after: Some(Duration::from_secs(42)) };
        assert_eq!(POLICY.after(1, failure, 1.0), Decision::RetryIn(Duration::from_secs(42)));
    }

    proptest! {
        #[test]
        fn delays_stay_within_the_caps(attempt in 1_u32..100, jitter in 0.0_f64..=1.0, hint in prop::option::of(0_u64..10_000)) {
            let asked = hint.map(Duration::from_secs);
            match POLICY.after(attempt, Failure::Temporary { retry_after: asked }, jitter) {
                Decision::RetryIn(delay) => {
                    let wish = asked.unwrap_or_default().min(POLICY.longest_asked);
                    prop_assert!(attempt < POLICY.attempts);
                    prop_assert!(wish <= delay && delay <= POLICY.longest.max(wish));
                }
                Decision::GiveUp => prop_assert!(POLICY.attempts <= attempt),
            }
        }
    }
}
