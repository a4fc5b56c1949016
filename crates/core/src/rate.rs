//! How often something may happen in a minute, without a clock of its own.

use std::{collections::VecDeque, time::Duration};

use jiff::Timestamp;

const MINUTE: Duration = Duration::from_mins(1);

/// What happens within so long of each other is remembered as one, so that there is little to remember.
const STRETCH: Duration = Duration::from_secs(1);

/// What happened in the last minute.
///
/// No minute gets more than the limit, wherever it begins. A bucket that fills up again while it is emptied lets nearly
/// twice as much through in the first minute, and a far end that counts shuts such a sender out.
#[derive(Debug, Clone, Default)]
pub struct Usage {
    stretches: VecDeque<Stretch>,
}

#[derive(Debug, Clone, Copy)]
struct Stretch {
    from: Timestamp,
    to: Timestamp,
    count: u32,
}

impl Stretch {
    /// When it no longer counts.
    fn ends_at(&self) -> Timestamp {
        self.to.checked_add(MINUTE).unwrap_or(Timestamp::MAX)
    }
}

impl Usage {
    /// Remembers `count` that happened at `at`, which is not before what happened already.
    pub fn count(&mut self, count: u32, at: Timestamp) {
        self.stretches.retain(|stretch| at < stretch.ends_at());
        match self.stretches.back_mut() {
            Some(last) if at.duration_since(last.from).unsigned_abs() < STRETCH => {
                last.to = last.to.max(at);
                last.count = last.count.saturating_add(count);
            }
            _ => self.stretches.push_back(Stretch { from: at, to: at, count }),
        }
    }

    /// How many more may happen at `now`, where `limit` may in a minute.
    pub fn free(&self, limit: u32, now: Timestamp) -> u32 {
        self.counting(now).fold(limit, |free, stretch| free.saturating_sub(stretch.count))
    }

    /// When more may happen than at `now`.
    pub fn more_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.counting(now).map(Stretch::ends_at).min()
    }

    fn counting(&self, now: Timestamp) -> impl Iterator<Item = &Stretch> {
        self.stretches.iter().filter(move |stretch| now < stretch.ends_at())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_000_000 + millis).unwrap()
    }

    #[test]
    fn a_burst_passes_at_once_and_then_nothing_for_a_minute() {
        let mut usage = Usage::default();
        for _ in 0..20 {
            assert!(usage.free(20, at(0)) > 0);
            usage.count(1, at(0));
        }
        assert_eq!((usage.free(20, at(59_999)), usage.more_at(at(59_999))), (0, Some(at(60_000))));
        assert_eq!((usage.free(20, at(60_000)), usage.more_at(at(60_000))), (20, None));
    }

    proptest! {
        #[test]
        fn no_minute_gets_more_than_the_limit_and_waiting_as_told_is_enough(
            limit in 1_u32..30,
            pauses in prop::collection::vec(0_i64..9_000, 1..200),
        ) {
            let mut usage = Usage::default();
            let (mut now, mut happened) = (0, Vec::new());
            for pause in pauses {
                now += pause;
                if usage.free(limit, at(now)) == 0 {
                    let more_at = usage.more_at(at(now)).unwrap();
                    prop_assert!(more_at > at(now));
                    now = more_at.as_millisecond() - 1_000_000;
                }
                prop_assert!(usage.free(limit, at(now)) > 0);
                usage.count(1, at(now));
                happened.push(now);
            }
            for (first, later) in happened.iter().zip(happened.iter().skip(limit as usize)) {
                prop_assert!(later - first >= 60_000);
            }
            prop_assert!(usage.stretches.len() <= 61, "{} stretches", usage.stretches.len());
        }
    }
}
