//! When a channel's far end is not worth trying for a while.

use std::time::Duration;

use jiff::Timestamp;

/// When a breaker opens and how long it stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// How many attempts in a row must fail before it opens.
    pub failures: u32,
    /// How long it stays open the first time; it doubles each time the trial fails.
    pub pause: Duration,
    /// The longest pause.
    pub longest: Duration,
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self { failures: 5, pause: Duration::from_secs(5), longest: Duration::from_mins(5) }
    }
}

/// Whether a channel's far end is being tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Breaker {
    /// All is well.
    #[default]
    Closed,
    /// Some attempts in a row failed.
    Failing {
        /// How many.
        failures: u32,
    },
    /// Nothing is tried until the given time.
    Open {
        /// When one attempt is let through.
        until: Timestamp,
        /// How often in a row it opened.
        times: u32,
    },
}

/// How many attempts may be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// As many as the channel takes.
    All,
    /// One, to see whether the far end is back.
    OneTrial,
    /// None before this time.
    NoneUntil(Timestamp),
}

impl Breaker {
    /// What may be tried at `now`.
    pub fn permission(self, now: Timestamp) -> Permission {
        match self {
            Self::Closed | Self::Failing { .. } => Permission::All,
            Self::Open { until, .. } if now < until => Permission::NoneUntil(until),
            Self::Open { .. } => Permission::OneTrial,
        }
    }

    /// The breaker after an attempt reached the far end, whether it took the message or refused it.
    #[must_use]
    pub const fn answered(self) -> Self {
        Self::Closed
    }

    /// The breaker after somebody asked for a trial at `now` instead of at its end.
    #[must_use]
    pub fn asked_for_trial(self, now: Timestamp) -> Self {
        match self {
            Self::Open { until, times } => Self::Open { until: until.min(now), times },
            other => other,
        }
    }

    /// The breaker after an attempt that began at `began` failed for a reason that may pass.
    #[must_use]
    pub fn failed(self, policy: &BreakerPolicy, began: Timestamp, now: Timestamp) -> Self {
        let open = |times: u32| {
            let pause = policy.pause.saturating_mul(1 << times.min(16)).min(policy.longest);
            Self::Open { until: now.checked_add(pause).unwrap_or(Timestamp::MAX), times: times + 1 }
        };
        match self {
            Self::Closed if policy.failures > 1 => Self::Failing { failures: 1 },
            Self::Failing { failures } if failures + 1 < policy.failures => {
                Self::Failing { failures: failures + 1 }
            }
            Self::Closed | Self::Failing { .. } => open(0),
            // Attempts that were under way when it opened are no trial, however late they fail.
            Self::Open { until, .. } if began < until => self,
            Self::Open { times, .. } => open(times),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: BreakerPolicy = BreakerPolicy {
        failures: 3,
        pause: Duration::from_secs(5),
        longest: Duration::from_secs(8),
    };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    /// A breaker that three failures opened at 0.
    fn opened() -> Breaker {
        (0..3).fold(Breaker::default(), |breaker, _| breaker.failed(&POLICY, at(0), at(0)))
    }

    #[test]
    fn it_opens_after_failures_in_a_row_and_lets_one_through_later() {
        let mut breaker = Breaker::default();
        for _ in 0..2 {
            breaker = breaker.failed(&POLICY, at(0), at(0));
            assert_eq!(breaker.permission(at(0)), Permission::All);
        }
        breaker = breaker.failed(&POLICY, at(0), at(0));
        assert_eq!(breaker.permission(at(4)), Permission::NoneUntil(at(5)));
        assert_eq!(breaker.permission(at(5)), Permission::OneTrial);
    }

    #[test]
    fn a_failed_trial_doubles_the_pause_up_to_the_cap() {
        let open = opened();
        let again = open.failed(&POLICY, at(5), at(5));
        assert_eq!(again.permission(at(5)), Permission::NoneUntil(at(13)));
    }

    #[test]
    fn stragglers_do_not_prolong_an_open_breaker() {
        let open = opened();
        assert_eq!(open.failed(&POLICY, at(0), at(1)), open);
        assert_eq!(open.failed(&POLICY, at(0), at(6)), open, "after the pause as well");
    }

    #[test]
    fn a_trial_that_is_asked_for_comes_at_once_and_counts_as_one() {
        let asked = opened().asked_for_trial(at(1));
        assert_eq!(asked.permission(at(1)), Permission::OneTrial);
        assert_eq!(asked.asked_for_trial(at(9)), asked, "it is due already");
        let failed = asked.failed(&POLICY, at(1), at(2));
        assert_eq!(failed.permission(at(2)), Permission::NoneUntil(at(10)));
        assert_eq!(Breaker::Closed.asked_for_trial(at(1)), Breaker::Closed);
    }

    #[test]
    fn one_answer_closes_it() {
        let open = opened();
        assert_eq!(open.answered().permission(at(0)), Permission::All);
    }
}
