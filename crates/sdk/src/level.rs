//! How severe a message is.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// How severe a message is, from RFC 5424; more severe is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// What helps to find a fault.
    Debug,
    /// What happens normally.
    Info,
    /// What is normal and worth noticing.
    Notice,
    /// What may go wrong.
    Warning,
    /// What went wrong.
    Error,
    /// What makes a part unusable.
    Critical,
    /// What somebody must do something about at once.
    Alert,
    /// What makes everything unusable.
    Emergency,
}

impl Level {
    /// All levels, the least severe first.
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

    /// The name that goes over the wire.
    pub const fn name(self) -> &'static str {
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
        f.pad(self.name())
    }
}

/// A text is no level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("level {0:?} is none of debug, info, notice, warning, error, critical, alert, emergency")]
pub struct UnknownLevel(pub String);

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Self, UnknownLevel> {
        let known = Self::ALL.into_iter().find(|level| level.name() == name);
        known.ok_or_else(|| UnknownLevel(name.chars().take(40).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_has_its_own_name_row_22() {
        let names = Level::ALL.map(Level::name);
        let wire = Level::ALL.map(|level| serde_json::to_value(level).unwrap());
        assert_eq!(wire, names.map(serde_json::Value::from));
        assert_eq!(names.map(|name| name.parse()), Level::ALL.map(Ok));
        assert!(Level::ALL.is_sorted());
        let error = "warn".parse::<Level>().unwrap_err().to_string();
        assert!(error.starts_with("level \"warn\" is none of debug, info"), "{error}");
    }
}
