//! Many changes, few tellings: the last value is told once it is quiet, or once it was held back long enough.

use std::time::Duration;

use jiff::Timestamp;

/// How long a value is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Debounce {
    /// The pause after which the last value is told.
    pub quiet: Duration,
    /// The longest time that a value is held back, however busy it is.
    pub longest: Duration,
}

/// A value that is held back. A new one takes its place; the first one's time counts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held<T> {
    value: T,
    since: Timestamp,
    last: Timestamp,
}

impl<T> Held<T> {
    /// Holds back `value` from `now`.
    pub const fn new(value: T, now: Timestamp) -> Self {
        Self { value, since: now, last: now }
    }

    /// Puts `value` in the place of the one that is held back.
    pub fn replace(&mut self, value: T, now: Timestamp) {
        (self.value, self.last) = (value, now.max(self.last));
    }

    /// When the value is to be told.
    pub fn due_at(&self, rule: &Debounce) -> Timestamp {
        let after = |start: Timestamp, wait| start.checked_add(wait).unwrap_or(Timestamp::MAX);
        after(self.last, rule.quiet).min(after(self.since, rule.longest))
    }

    /// The value that was held back.
    pub fn into_value(self) -> T {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Debounce =
        Debounce { quiet: Duration::from_millis(100), longest: Duration::from_millis(300) };

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    #[test]
    fn the_last_value_is_told_after_a_pause() {
        let mut held = Held::new(1, at(0));
        held.replace(2, at(50));
        assert_eq!(held.due_at(&RULE), at(150));
        assert_eq!(held.into_value(), 2);
    }

    #[test]
    fn a_busy_value_does_not_starve() {
        let mut held = Held::new(0, at(0));
        for step in 1..20 {
            held.replace(step, at(i64::from(step) * 30));
        }
        assert_eq!(held.due_at(&RULE), at(300));
    }
}
