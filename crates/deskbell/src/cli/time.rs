//! Times and durations as people write them.

use std::time::Duration;

use deskbell_core::Invalid;
use jiff::Timestamp;

use crate::config::file::Period;

use crate::intake::timestamp;

/// A duration such as `30s`, `5m`, `2h 30m` or `7d`.
pub(crate) fn duration(text: &str) -> Result<Duration, Invalid> {
    text.parse().map(|Period(duration)| duration)
}

/// A time, or how long ago it was.
pub(crate) fn since(text: &str, now: Timestamp) -> Result<Timestamp, Invalid> {
    if let Ok(time) = timestamp::read("--since", text) {
        return Ok(time);
    }
    let ago = duration(text).ok().and_then(|ago| now.checked_sub(ago).ok());
    ago.ok_or_else(|| {
        let expected = "a time such as 2026-01-17T12:00:00Z, or a duration such as 30m, 2h or 7d";
        Invalid::text("--since", text, expected)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, seconds) in [("30s", 30), ("5m", 300), ("2h 30m", 9_000), ("7d", 604_800)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for odd in ["", "soon", "-5m", "5"] {
            assert!(duration(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_time_may_be_given_as_its_distance() {
        let now = "2026-01-17T12:00:00Z".parse().unwrap();
        let time = |text| since(text, now).map(|time| time.to_string());
        assert_eq!(time("2h"), Ok("2026-01-17T10:00:00Z".to_owned()));
        assert_eq!(time("2026-01-01T00:00:00Z"), Ok("2026-01-01T00:00:00Z".to_owned()));
        assert!(time("yesterday").is_err());
    }
}
