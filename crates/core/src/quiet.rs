//! When a channel is left alone: quiet hours, and a snooze for a while.
//!
//! What is held back is told later; nothing is dropped.

use std::{collections::BTreeMap, fmt};

use jiff::{
    Timestamp,
    civil::{Date, Time, Weekday},
    tz::TimeZone,
};

use crate::{delivery::ChannelName, level::Level};

/// How often one hold may end inside another before the rest is let be: every day's hours for a week, and a snooze.
const HOLDS_IN_A_ROW: usize = 16;

/// Hours of the day in which only what is serious is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quiet {
    /// When they begin.
    pub from: Time,
    /// When they end: on the next day where that is not later than `from`.
    pub to: Time,
    /// The days on which they begin; empty means all.
    pub days: Vec<Weekday>,
    /// The least level that is told all the same.
    pub breaks_through: Level,
    /// Whose clock they go by.
    pub zone: TimeZone,
}

impl Quiet {
    /// When the quiet hours that `at` lies in end, if it lies in any.
    pub fn end_after(&self, at: Timestamp) -> Option<Timestamp> {
        let today = at.to_zoned(self.zone.clone()).date();
        let begins = [today.yesterday().ok(), Some(today)].into_iter().flatten();
        begins.filter_map(|day| self.end_on(day, at)).max()
    }

    /// When the hours that begin on `day` end, if `at` lies in them.
    fn end_on(&self, day: Date, at: Timestamp) -> Option<Timestamp> {
        if !self.days.is_empty() && !self.days.contains(&day.weekday()) {
            return None;
        }
        let last = if self.from < self.to { day } else { day.tomorrow().ok()? };
        // A time that a change of the clocks leaves out is the one as much later.
        let instant = |date: Date, time: Time| {
            let zoned = date.to_datetime(time).to_zoned(self.zone.clone());
            zoned.ok().map(|zoned| zoned.timestamp())
        };
        let (start, end) = (instant(day, self.from)?, instant(last, self.to)?);
        (start <= at && at < end).then_some(end)
    }
}

/// The channels that were told to be silent, and until when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snoozed {
    /// Until when all of them are.
    pub all: Option<Timestamp>,
    /// Until when single ones are.
    pub channels: BTreeMap<ChannelName, Timestamp>,
}

impl Snoozed {
    /// Until when `channel` is silent, if it is at `now`.
    pub fn until(&self, channel: &ChannelName, now: Timestamp) -> Option<Timestamp> {
        let single = self.channels.get(channel).copied();
        self.all.into_iter().chain(single).max().filter(|until| *until > now)
    }

    /// Whether nothing is silent at `now`.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.all.into_iter().chain(self.channels.values().copied()).all(|until| until <= now)
    }

    /// Forgets what is over at `now`.
    pub fn forget_past(&mut self, now: Timestamp) {
        self.all = self.all.filter(|until| *until > now);
        self.channels.retain(|_, until| *until > now);
    }
}

/// Everything that holds deliveries back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holds {
    /// The quiet hours of every channel that has none of its own.
    pub quiet: Option<Quiet>,
    /// Channels with quiet hours of their own.
    pub quiet_of: BTreeMap<ChannelName, Quiet>,
    /// What was snoozed.
    pub snoozed: Snoozed,
}

/// A delivery that is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Until when.
    pub until: Timestamp,
    /// By what, in the end.
    pub by: Hold,
}

/// What holds a delivery back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// The quiet hours.
    QuietHours,
    /// A snooze.
    Snooze,
}

impl Hold {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::QuietHours, Self::Snooze];

    /// What is said of a delivery that is held back.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QuietHours => "held for the quiet hours",
            Self::Snooze => "held while it is snoozed",
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Holds {
    /// The quiet hours of `channel`.
    pub fn quiet_of(&self, channel: &ChannelName) -> Option<&Quiet> {
        self.quiet_of.get(channel).or(self.quiet.as_ref())
    }

    /// Whether something of `level` that would go to `channel` at `at` is held back.
    pub fn hold(&self, channel: &ChannelName, level: Level, at: Timestamp) -> Option<Held> {
        let quiet = self.quiet_of(channel).filter(|quiet| level < quiet.breaks_through);
        let next = |at| {
            let snooze = self.snoozed.until(channel, at).map(|until| (until, Hold::Snooze));
            let quiet = || Some((quiet?.end_after(at)?, Hold::QuietHours));
            snooze.or_else(quiet).map(|(until, by)| Held { until, by })
        };
        let mut held = next(at)?;
        for _ in 0..HOLDS_IN_A_ROW {
            let Some(longer) = next(held.until) else { break };
            held = longer;
        }
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quiet(from: &str, to: &str, days: &[Weekday]) -> Quiet {
        Quiet {
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            days: days.to_vec(),
            breaks_through: Level::Error,
            zone: TimeZone::get("Europe/Berlin").unwrap(),
        }
    }

    fn local(text: &str) -> Timestamp {
        format!("{text}[Europe/Berlin]").parse::<jiff::Zoned>().unwrap().timestamp()
    }

    #[track_caller]
    fn check(quiet: &Quiet, at: &str, end: Option<&str>) {
        assert_eq!(quiet.end_after(local(at)), end.map(local), "{at}");
    }

    #[test]
    fn a_night_ends_in_the_morning() {
        let night = quiet("22:00", "07:00", &[]);
        check(&night, "2026-01-05T21:59:59", None);
        check(&night, "2026-01-05T22:00", Some("2026-01-06T07:00"));
        check(&night, "2026-01-06T06:59:59", Some("2026-01-06T07:00"));
        check(&night, "2026-01-06T07:00", None);
        let lunch = quiet("12:00", "13:00", &[]);
        check(&lunch, "2026-01-05T12:30", Some("2026-01-05T13:00"));
        check(&lunch, "2026-01-05T13:00", None);
        check(&lunch, "2026-01-05T11:59", None);
    }

    #[test]
    fn a_day_is_the_one_on_which_the_hours_begin() {
        let friday = quiet("22:00", "07:00", &[Weekday::Friday]);
        check(&friday, "2026-01-02T23:00", Some("2026-01-03T07:00"));
        check(&friday, "2026-01-03T06:00", Some("2026-01-03T07:00"));
        check(&friday, "2026-01-03T23:00", None);
        check(&friday, "2026-01-02T06:00", None);
    }

    #[test]
    fn hours_keep_to_the_local_clock_when_it_changes() {
        let night = quiet("22:00", "07:00", &[]);
        check(&night, "2026-03-28T23:00", Some("2026-03-29T07:00"));
        check(&night, "2026-10-24T23:00", Some("2026-10-25T07:00"));
        let hours = |from: &str, to: &str| local(to).duration_since(local(from)).as_hours();
        assert_eq!(hours("2026-03-28T23:00", "2026-03-29T07:00"), 7);
        // 02:30 does not exist on that day: the hours that begin then begin at 03:30.
        let early = quiet("02:30", "05:00", &[]);
        check(&early, "2026-03-29T03:00", None);
        check(&early, "2026-03-29T03:30", Some("2026-03-29T05:00"));
    }

    #[test]
    fn what_ends_inside_another_hold_goes_on() {
        let phone: ChannelName = "phone".parse().unwrap();
        let weekend = quiet("00:00", "00:00", &[Weekday::Saturday, Weekday::Sunday]);
        let mut holds = Holds { quiet: Some(weekend), ..Holds::default() };
        let held = |holds: &Holds, level, at| holds.hold(&phone, level, local(at));
        let saturday = "2026-01-03T12:00";
        let monday = Held { until: local("2026-01-05T00:00"), by: Hold::QuietHours };
        assert_eq!(held(&holds, Level::Info, saturday), Some(monday));
        assert_eq!(held(&holds, Level::Error, saturday), None);
        let until = local("2026-01-05T09:00");
        holds.snoozed.channels.insert(phone.clone(), until);
        let snoozed = Some(Held { until, by: Hold::Snooze });
        assert_eq!(held(&holds, Level::Error, saturday), snoozed);
        assert_eq!(held(&holds, Level::Error, "2026-01-05T09:00"), None);
        holds.snoozed.all = Some(local("2026-01-03T13:00"));
        assert_eq!(held(&holds, Level::Error, saturday), snoozed);
        assert!(!holds.snoozed.is_over(local(saturday)));
        holds.snoozed.forget_past(until);
        assert_eq!(holds.snoozed, Snoozed::default());
    }

    #[test]
    fn a_channel_s_own_hours_go_before_those_of_all() {
        let phone: ChannelName = "phone".parse().unwrap();
        let own = Quiet { breaks_through: Level::Debug, ..quiet("22:00", "07:00", &[]) };
        let holds = Holds {
            quiet: Some(quiet("22:00", "07:00", &[])),
            quiet_of: BTreeMap::from([(phone.clone(), own)]),
            ..Holds::default()
        };
        let at = local("2026-01-05T23:00");
        assert_eq!(holds.hold(&phone, Level::Debug, at), None);
        assert!(holds.hold(&"team".parse().unwrap(), Level::Debug, at).is_some());
    }

    proptest! {
        #[test]
        fn what_is_held_is_held_until_a_time_that_is_not_quiet(
            hours in (0i8..24, 0i8..24),
            day in prop::option::of(1i8..=7),
            seconds in 1_700_000_000i64..1_800_000_000,
        ) {
            prop_assume!(hours.0 != hours.1 || day.is_some());
            let time = |hour| Time::constant(hour, 0, 0, 0);
            let days = day.and_then(|day| Weekday::from_monday_one_offset(day).ok());
            let quiet = Quiet {
                from: time(hours.0),
                to: time(hours.1),
                ..quiet("00:00", "00:00", days.as_slice())
            };
            let holds = Holds { quiet: Some(quiet.clone()), ..Holds::default() };
            let at = Timestamp::from_second(seconds).unwrap();
            let held = holds.hold(&"phone".parse().unwrap(), Level::Info, at);
            prop_assert_eq!(held.is_some(), quiet.end_after(at).is_some());
            if let Some(Held { until, .. }) = held {
                prop_assert!(until > at && quiet.end_after(until).is_none());
                prop_assert!(until.duration_since(at).as_hours() <= 25);
            }
        }
    }
}
