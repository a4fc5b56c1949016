//! How serious an event is: the eight levels of RFC 5424, as in MCP.

use std::{fmt, str::FromStr};

use crate::field::Invalid;

/// The severity of an event, ordered from `Debug` to `Emergency` (RFC 5424, section 6.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Level {
    /// Of interest only while looking for a fault.
    Debug,
    /// Ordinary news.
    #[default]
    Info,
    /// Ordinary, but worth a look.
    Notice,
    /// May become a problem.
    Warning,
    /// Something failed.
    Error,
    /// A part does not work.
    Critical,
    /// Somebody must act now.
    Alert,
    /// Nothing works.
    Emergency,
}

impl Level {
    /// All levels, the least serious first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The level's name on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Level {
    type Err = Invalid;

    /// Reads a level in any case, with the short forms that syslog and shells use.
    fn from_str(name: &str) -> Result<Self, Invalid> {
        Ok(match name.trim().to_ascii_lowercase().as_str() {
            "debug" => Self::Debug,
            "info" => Self::Info,
            "notice" => Self::Notice,
            "warning" | "warn" => Self::Warning,
            "error" | "err" => Self::Error,
            "critical" | "crit" => Self::Critical,
            "alert" => Self::Alert,
            "emergency" | "emerg" => Self::Emergency,
            _ => return Err(Invalid::text("level", name, NAMES)),
        })
    }
}

const NAMES: &str = "one of debug, info, notice, warning, error, critical, alert, emergency";

/// A range of levels as routes and filters write it: `error..`, `..info`, `notice..error`, `warning`.
///
/// Both ends belong to the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelRange {
    /// The least serious level in the range.
    pub from: Level,
    /// The most serious level in the range.
    pub to: Level,
}

impl LevelRange {
    /// Every level.
    pub const ALL: Self = Self { from: Level::Debug, to: Level::Emergency };

    /// Whether `level` lies in the range.
    pub fn contains(self, level: Level) -> bool {
        self.from <= level && level <= self.to
    }

    /// The range from `level` upwards.
    pub const fn at_least(level: Level) -> Self {
        Self { from: level, to: Level::Emergency }
    }
}

impl fmt::Display for LevelRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.from, self.to) {
            (from, to) if from == to => write!(f, "{from}"),
            (from, Level::Emergency) => write!(f, "{from}.."),
            (Level::Debug, to) => write!(f, "..{to}"),
            (from, to) => write!(f, "{from}..{to}"),
        }
    }
}

impl FromStr for LevelRange {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let end = |part: &str, open| if part.trim().is_empty() { Ok(open) } else { part.parse() };
        let range = match text.split_once("..") {
            None => text.parse().map(|level| Self { from: level, to: level }),
            Some((from, to)) => end(from, Level::Debug).and_then(|from| {
                let to = end(to.trim_start_matches('='), Level::Emergency)?;
                Ok(Self { from, to })
            }),
        };
        let expected =
            || "a level or a range of levels such as `error..`, `..info` or `notice..error`";
        match range {
            Ok(range) if range.from <= range.to => Ok(range),
            _ => Err(Invalid::text("level", text, expected())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case() {
        for level in Level::ALL {
            assert_eq!(level.as_str().to_uppercase().parse(), Ok(level));
        }
        assert_eq!("WARN".parse(), Ok(Level::Warning));
        assert!("bogus".parse::<Level>().is_err());
    }

    #[test]
    fn ranges_are_read_and_written_back() {
        #[track_caller]
        fn check(text: &str, from: Level, to: Level) {
            let range: LevelRange = text.parse().unwrap();
            assert_eq!(range, LevelRange { from, to });
            assert_eq!(range.to_string().parse(), Ok(range));
        }
        check("error..", Level::Error, Level::Emergency);
        check("..info", Level::Debug, Level::Info);
        check("notice..error", Level::Notice, Level::Error);
        check("warn", Level::Warning, Level::Warning);
        check("..", Level::Debug, Level::Emergency);
    }

    #[test]
    fn senseless_ranges_are_refused() {
        for text in ["error..info", "loud..", "", "info...error"] {
            assert!(text.parse::<LevelRange>().is_err(), "{text}");
        }
    }
}
