//! How often something may happen: the generic cell rate algorithm (ITU-T I.371), without a clock of its own.

use std::time::Duration;

use jiff::Timestamp;

/// An allowance of `burst` at once and `per_interval` in each `interval` thereafter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// How many may happen in an interval.
    pub per_interval: u32,
    /// The interval.
    pub interval: Duration,
    /// How many may happen at once after a pause.
    pub burst: u32,
}

impl Quota {
    /// `count` in a minute, all of which may come at once.
    pub const fn per_minute(count: u32) -> Self {
        Self { per_interval: count, interval: Duration::from_mins(1), burst: count }
    }

    fn spacing(&self) -> Duration {
        self.interval / self.per_interval.max(1)
    }
}

/// How much of a [`Quota`] is used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// When the allowance will be whole again.
    whole_at: Option<Timestamp>,
}

impl Usage {
    /// Takes one from the allowance, or says how long until one is free.
    ///
    /// # Errors
    /// The time to wait; nothing was taken.
    pub fn take(&mut self, quota: &Quota, now: Timestamp) -> Result<(), Duration> {
        let spacing = quota.spacing();
        let whole_at = self.whole_at.map_or(now, |whole_at| whole_at.max(now));
        let tolerance = spacing * quota.burst.max(1).saturating_sub(1);
        let used = Duration::try_from(whole_at.duration_since(now)).unwrap_or_default();
        if used > tolerance {
            return Err(used - tolerance);
        }
        self.whole_at = whole_at.checked_add(spacing).ok();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millisecond(1_000_000 + i64::try_from(millis).unwrap()).unwrap()
    }

    #[test]
    fn sixty_of_a_hundred_pass_at_once() {
        let quota = Quota::per_minute(60);
        let mut usage = Usage::default();
        let passed = (0..100).filter(|_| usage.take(&quota, at(0)).is_ok()).count();
        assert_eq!(passed, 60);
        assert_eq!(usage.take(&quota, at(0)), Err(Duration::from_secs(1)));
    }

    proptest! {
        #[test]
        fn waiting_as_long_as_told_is_enough(quota in (1_u32..50, 1_u64..100, 1_u32..20), calls in prop::collection::vec(0_u64..3_000, 1..50)) {
            let quota = Quota { per_interval: quota.0, interval: Duration::from_secs(quota.1), burst: quota.2 };
            let mut usage = Usage::default();
            let mut now = 0;
            for pause in calls {
                now += pause;
                if let Err(wait) = usage.take(&quota, at(now)) {
                    let wait = u64::try_from(wait.as_millis()).unwrap() + 1;
                    prop_assert!(usage.take(&quota, at(now + wait)).is_ok());
                    now += wait;
                }
            }
        }

        #[test]
        fn no_more_pass_than_the_quota_allows(pauses in prop::collection::vec(0_u64..500, 1..300)) {
            let quota = Quota { per_interval: 10, interval: Duration::from_secs(1), burst: 5 };
            let mut usage = Usage::default();
            let mut now = 0;
            let passed = pauses.iter().filter(|pause| { now += **pause; usage.take(&quota, at(now)).is_ok() }).count();
            prop_assert!(u64::try_from(passed).unwrap() <= 5 + now / 100 + 1);
        }
    }
}
