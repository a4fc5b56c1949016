//! Quiet hours as they stand in a configuration file.

use std::{fmt, str::FromStr};

use deskbell_core::{Invalid, Level};
use jiff::civil::{self, Weekday};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{OneOrMany, Parsed};

/// Quiet hours: what is not serious waits until they are over.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuietTable {
    /// When they begin, such as `22:00`.
    pub from: Option<Parsed<TimeOfDay>>,
    /// When they end, such as `07:00`: on the next day where that is not later than `from`.
    pub to: Option<Parsed<TimeOfDay>>,
    /// The days on which they begin: `mon`, `tue`, `wed`, `thu`, `fri`, `sat`, `sun`, or a list; all, if none is named.
    pub days: OneOrMany<Day>,
    /// The least level that is told all the same; without it `error`.
    pub breaks_through: Option<Parsed<Level>>,
    /// Whose clock they go by, such as `Europe/Berlin`; without it the machine's.
    pub time_zone: Option<String>,
}

impl QuietTable {
    /// These options, and those of `other` where this says nothing.
    pub fn or(self, other: Self) -> Self {
        Self {
            from: self.from.or(other.from),
            to: self.to.or(other.to),
            days: if self.days.0.is_empty() { other.days } else { self.days },
            breaks_through: self.breaks_through.or(other.breaks_through),
            time_zone: self.time_zone.or(other.time_zone),
        }
    }

    /// Whether nothing is said.
    pub const fn is_empty(&self) -> bool {
        self.from.is_none()
            && self.to.is_none()
            && self.days.0.is_empty()
            && self.breaks_through.is_none()
            && self.time_zone.is_none()
    }
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl From<Day> for Weekday {
    fn from(day: Day) -> Self {
        match day {
            Day::Mon => Self::Monday,
            Day::Tue => Self::Tuesday,
            Day::Wed => Self::Wednesday,
            Day::Thu => Self::Thursday,
            Day::Fri => Self::Friday,
            Day::Sat => Self::Saturday,
            Day::Sun => Self::Sunday,
        }
    }
}

/// A time of the day, to the minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOfDay(pub civil::Time);

impl FromStr for TimeOfDay {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        civil::Time::strptime("%H:%M", text.trim())
            .map(Self)
            .map_err(|_| Invalid::text("time", text, "a time of the day such as 22:00"))
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0.hour(), self.0.minute())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_day_are_read_and_written_back() {
        for text in ["00:00", "07:05", "23:59"] {
            assert_eq!(text.parse::<TimeOfDay>().unwrap().to_string(), text);
        }
        for text in ["", "7", "24:00", "22:00:30", "10pm"] {
            assert!(text.parse::<TimeOfDay>().is_err(), "{text}");
        }
    }
}
