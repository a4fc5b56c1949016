//! Times as people and programs write them, read in one way at every door.

use deskbell_core::Invalid;
use jiff::{Timestamp, civil::DateTime, fmt::temporal::Pieces, tz::TimeZone};

/// What a door says that it expected.
pub(crate) const EXPECTED: &str = "a time in ISO 8601, such as 2026-01-17T12:00:00Z";

/// Reads an ISO 8601 time; one without an offset, such as Python's `isoformat()` writes, is in the local time zone.
///
/// # Errors
/// Names `field`, and says whether the time is badly written or out of range.
pub fn read(field: &str, text: &str) -> Result<Timestamp, Invalid> {
    let text = text.trim();
    let local = || text.parse::<DateTime>()?.to_zoned(TimeZone::system()).map(|at| at.timestamp());
    text.parse::<Timestamp>().or_else(|_| local()).map_err(|_: jiff::Error| {
        let is_well_written = Pieces::parse(text).is_ok_and(|pieces| pieces.time().is_some());
        let expected = match is_well_written {
            true => format!("a time from {} to {}", Timestamp::MIN, Timestamp::MAX),
            false => EXPECTED.to_owned(),
        };
        Invalid::text(field, text, expected)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_iso_8601_row_106() {
        for good in
            ["2024-01-01T12:00:00Z", "2024-01-01T12:00:00+08:00", "2024-01-01 12:00:00.123456"]
        {
            assert!(read("timestamp", good).is_ok(), "{good}");
        }
        for bad in ["", "yesterday", "1704110400", "2024-13-01T00:00:00Z", "12:00"] {
            let sentence = read("timestamp", bad).unwrap_err().to_string();
            assert!(sentence.starts_with("`timestamp` is "), "{sentence}");
            assert!(sentence.contains("in ISO 8601"), "{sentence}");
        }
        for late in ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59-12:00"] {
            let sentence = read("timestamp", late).unwrap_err().to_string();
            assert!(sentence.ends_with("to 9999-12-30T22:00:00.999999999Z"), "{sentence}");
        }
    }
}
