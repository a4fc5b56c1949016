//! Lengths of time, as they stand in a configuration.

use std::{fmt, str::FromStr, time::Duration};

use deskbell_core::Invalid;
use jiff::SpanRelativeTo;

use crate::config;

/// A length of time such as `5s`, `2m 30s` or `30d`; a day has 24 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period(pub Duration);

impl FromStr for Period {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let span = text.trim().parse::<jiff::Span>().ok();
        let duration = span
            .and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok())
            .and_then(|duration| Duration::try_from(duration).ok());
        duration.map(Self).ok_or_else(|| {
            Invalid::text("duration", text, "a length of time such as 15s, 5m or 30d")
        })
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        match seconds {
            0 => write!(f, "{}ms", self.0.as_millis()),
            _ if seconds.is_multiple_of(86_400) => write!(f, "{}d", seconds / 86_400),
            _ if seconds.is_multiple_of(3_600) => write!(f, "{}h", seconds / 3_600),
            _ if seconds.is_multiple_of(60) => write!(f, "{}m", seconds / 60),
            _ => write!(f, "{seconds}s"),
        }
    }
}

/// How long events wait for their group. Whoever waits longer is not told, and what is told is of yesterday.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause(pub Duration);

impl Pause {
    /// The longest one.
    pub const LONGEST: Duration = Duration::from_hours(24);
}

impl FromStr for Pause {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let length = text.parse().ok().map(|Period(length)| length);
        length.filter(|length| *length <= Self::LONGEST).map(Self).ok_or_else(|| {
            Invalid::text("duration", text, "a length of time such as 10s or 5m, at most 1d")
        })
    }
}

/// How long finished history is kept: a length of time, or forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History(pub Option<Duration>);

impl Default for History {
    fn default() -> Self {
        Self(config::default_keep_history())
    }
}

impl FromStr for History {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.trim() == "forever" {
            return Ok(Self(None));
        }
        match text.parse() {
            Ok(Period(kept)) if !kept.is_zero() => Ok(Self(Some(kept))),
            _ => {
                let expected = "a length of time such as 30d, or forever";
                Err(Invalid::text("keep_history", text, expected))
            }
        }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(kept) => Period(kept).fmt(f),
            None => f.write_str("forever"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_and_written_back() {
        #[track_caller]
        fn check(text: &str, seconds: f64) {
            let period: Period = text.parse().unwrap();
            assert_eq!(period.0, Duration::from_secs_f64(seconds), "{text}");
            assert_eq!(period.to_string().parse(), Ok(period));
        }
        check("15s", 15.0);
        check("2m 30s", 150.0);
        check("250ms", 0.25);
        check("30d", 30.0 * 86_400.0);
        check("1w", 7.0 * 86_400.0);
        check("0s", 0.0);
        for text in ["", "15", "-5s", "1 month", "soon", "5s ago"] {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_group_waits_for_a_day_at_most() {
        assert_eq!("24h".parse(), Ok(Pause(Pause::LONGEST)));
        assert!("86401s".parse::<Pause>().is_err());
        assert!("soon".parse::<Pause>().is_err());
    }

    #[test]
    fn history_is_kept_for_a_while_or_forever() {
        assert_eq!("forever".parse(), Ok(History(None)));
        assert_eq!("1d".parse(), Ok(History(Some(Duration::from_secs(86_400)))));
        assert!("0s".parse::<History>().is_err());
    }
}
