//! How much of its minute a client has used: the rule, without a clock of its own.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::limits::Limits;

/// What [`Limits::per_minute`] counts over, and how often at most a client is warned.
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// What one client was told within a minute, and what was dropped instead.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    /// When those went out that count, of the last minute.
    recent: VecDeque<Instant>,
    /// How many were dropped since the client was last warned.
    dropped: u64,
    warned: Option<Instant>,
}

/// Whether to warn of what was dropped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Warning {
    /// Now, of so many.
    Due(u64),
    /// Not before this time.
    At(Instant),
    /// Nothing was dropped.
    None,
}

impl Rate {
    /// Takes the room for one notification, if there is any.
    pub(crate) fn take(&mut self, limits: &Limits, now: Instant) -> bool {
        let is_free = self.room_at(limits, now).is_none();
        if is_free && limits.per_minute > 0 {
            self.recent.push_back(now);
        }
        is_free
    }

    /// When there is room again; none if there is room now.
    pub(crate) fn room_at(&mut self, limits: &Limits, now: Instant) -> Option<Instant> {
        while self.recent.front().is_some_and(|sent| *sent + MINUTE <= now) {
            self.recent.pop_front();
        }
        let limit = usize::try_from(limits.per_minute).unwrap_or(usize::MAX);
        if limit == 0 || self.recent.len() < limit {
            return None;
        }
        // Warnings at the end of a stream may have gone out beyond the limit.
        let ahead = self.recent.len() - limit;
        self.recent.get(ahead).map(|sent| *sent + MINUTE)
    }

    /// Counts notifications that were dropped.
    pub(crate) const fn count_dropped(&mut self, count: u64) {
        self.dropped += count;
    }

    /// Whether to warn of what was dropped. A warning takes room like any message.
    pub(crate) fn warning(&mut self, limits: &Limits, now: Instant) -> Warning {
        if self.dropped == 0 {
            return Warning::None;
        }
        let patience = self.warned.map(|warned| warned + MINUTE).filter(|end| *end > now);
        match patience.max(self.room_at(limits, now)) {
            Some(time) => Warning::At(time),
            None => Warning::Due(self.warn(limits, now)),
        }
    }

    /// What to warn of on a stream that ends. It does not wait for room, because later is too late.
    pub(crate) fn last_warning(&mut self, limits: &Limits, now: Instant) -> Option<u64> {
        let is_due = self.warned.is_none_or(|warned| warned + MINUTE <= now);
        (is_due && self.dropped > 0).then(|| self.warn(limits, now))
    }

    fn warn(&mut self, limits: &Limits, now: Instant) -> u64 {
        self.warned = Some(now);
        if limits.per_minute > 0 {
            self.recent.push_back(now);
        }
        std::mem::take(&mut self.dropped)
    }

    /// Whether what was told in the last minute still matters.
    pub(crate) fn is_fresh(&self, now: Instant) -> bool {
        self.recent.back().is_some_and(|sent| *sent + MINUTE > now) || self.dropped > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    #[test]
    fn any_sixty_seconds_count_row_43() {
        let limits = Limits::default().with_per_minute(2);
        let (mut rate, start) = (Rate::default(), now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let taken: Vec<_> =
            [0, 59, 59, 60, 61].into_iter().filter(|time| rate.take(&limits, at(*time))).collect();
        assert_eq!(taken, [0, 59, 60]);
        assert_eq!(rate.room_at(&limits, at(61)), Some(at(59 + 60)));
    }

    #[test]
    fn a_client_is_warned_once_a_minute_and_the_warning_takes_room_row_45() {
        let limits = Limits::default().with_per_minute(2);
        let (mut rate, start) = (Rate::default(), now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(rate.warning(&limits, at(0)), Warning::None);
        assert!(rate.take(&limits, at(0)));
        rate.count_dropped(3);
        assert_eq!(rate.warning(&limits, at(1)), Warning::Due(3));
        assert!(!rate.take(&limits, at(2)));
        rate.count_dropped(4);
        assert_eq!(rate.warning(&limits, at(2)), Warning::At(at(61)));
        assert_eq!(rate.last_warning(&limits, at(2)), None);
        assert_eq!(rate.warning(&limits, at(61)), Warning::Due(4));
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let limits = Limits::default().with_per_minute(0);
        let (mut rate, start) = (Rate::default(), now());
        assert!((0..5_000).all(|_| rate.take(&limits, start)));
        assert!(rate.recent.is_empty());
    }

    #[test]
    fn a_stream_that_ends_is_warned_at_once() {
        let limits = Limits::default().with_per_minute(1);
        let (mut rate, start) = (Rate::default(), now());
        assert!(rate.take(&limits, start));
        rate.count_dropped(1);
        assert_eq!(rate.last_warning(&limits, start), Some(1));
        assert_eq!(rate.room_at(&limits, start), Some(start + MINUTE));
    }
}
