//! How much a client is told, and how fast.

use std::{env, str::FromStr, time::Duration};

use serde::Deserialize;

use crate::level::Level;

/// How much a client is told, and how fast.
///
/// ```
/// use std::time::Duration;
/// use deskbell_sdk::Limits;
///
/// let limits = Limits { per_minute: 600, ..Limits::default() };
/// assert_eq!(limits.debounce, Duration::from_millis(100));
/// ```
///
/// In a configuration file the times are numbers of milliseconds, and what is missing has its default:
///
/// ```
/// # use deskbell_sdk::Limits;
/// let limits: Limits = serde_json::from_str(r#"{"per_minute": 120, "debounce_ms": 50}"#)?;
/// assert_eq!(limits.per_minute, 120);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Written")]
pub struct Limits {
    /// Most notifications to one client in any 60 seconds; 0 sets no limit. Final values of progress do not count.
    pub per_minute: u32,
    /// How long progress and changes of a resource wait for a newer value that takes their place.
    pub debounce: Duration,
    /// The longest such wait, however many newer values come.
    pub debounce_at_most: Duration,
    /// Most notifications that wait for a client which does not read; beyond it the oldest is dropped.
    pub queue: usize,
    /// How long the answer of a tool waits for the notifications of the call that a client has not read.
    pub flush: Duration,
    /// The gap between a call's last progress and its answer: clients on stdio of the TypeScript SDK lose a progress
    /// that arrives together with the answer.
    pub gap: Duration,
    /// The least severe level that a client gets that did not set one (2025-11-25 and before).
    pub level: Level,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            per_minute: 60,
            debounce: Duration::from_millis(100),
            debounce_at_most: Duration::from_millis(250),
            queue: 1_000,
            flush: Duration::from_secs(2),
            gap: Duration::from_millis(2),
            level: Level::Info,
        }
    }
}

/// A variable of the environment has a value that it cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is {value:?}, expected {expected}")]
pub struct WrongVariable {
    /// The variable's name.
    pub variable: &'static str,
    /// Its value, cut to 40 characters.
    pub value: String,
    /// What it may be.
    pub expected: &'static str,
}

impl Limits {
    /// These limits with what the environment says instead: `DESKBELL_SDK_PER_MINUTE`, `DESKBELL_SDK_DEBOUNCE_MS`,
    /// `DESKBELL_SDK_QUEUE` and `DESKBELL_SDK_LEVEL`.
    ///
    /// # Errors
    /// Names the variable, its value and what was expected.
    pub fn or_environment(self) -> Result<Self, WrongVariable> {
        self.or_variables(|name| env::var(name).ok())
    }

    fn or_variables(self, get: impl Fn(&str) -> Option<String>) -> Result<Self, WrongVariable> {
        fn read<T: FromStr>(
            variable: &'static str,
            expected: &'static str,
            get: impl Fn(&str) -> Option<String>,
        ) -> Result<Option<T>, WrongVariable> {
            let Some(value) = get(variable) else { return Ok(None) };
            let wrong =
                |_| WrongVariable { variable, value: value.chars().take(40).collect(), expected };
            value.trim().parse().map(Some).map_err(wrong)
        }
        const COUNT: &str = "a whole number";
        let debounce = read("DESKBELL_SDK_DEBOUNCE_MS", "a whole number of milliseconds", &get)?;
        let debounce = debounce.map_or(self.debounce, Duration::from_millis);
        Ok(Self {
            per_minute: read("DESKBELL_SDK_PER_MINUTE", COUNT, &get)?.unwrap_or(self.per_minute),
            debounce,
            debounce_at_most: self.debounce_at_most.max(debounce),
            queue: read("DESKBELL_SDK_QUEUE", COUNT, &get)?.unwrap_or(self.queue),
            level: read("DESKBELL_SDK_LEVEL", "one of the eight levels", &get)?
                .unwrap_or(self.level),
            ..self
        })
    }
}

/// Limits as a configuration file writes them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    per_minute: u32,
    debounce_ms: u64,
    debounce_at_most_ms: u64,
    queue: usize,
    flush_ms: u64,
    gap_ms: u64,
    level: Level,
}

impl Default for Written {
    fn default() -> Self {
        let limits = Limits::default();
        let ms = |time: Duration| time.as_millis().try_into().unwrap_or(u64::MAX);
        Self {
            per_minute: limits.per_minute,
            debounce_ms: ms(limits.debounce),
            debounce_at_most_ms: ms(limits.debounce_at_most),
            queue: limits.queue,
            flush_ms: ms(limits.flush),
            gap_ms: ms(limits.gap),
            level: limits.level,
        }
    }
}

impl From<Written> for Limits {
    fn from(written: Written) -> Self {
        let Written {
            per_minute,
            debounce_ms,
            debounce_at_most_ms,
            queue,
            flush_ms,
            gap_ms,
            level,
        } = written;
        Self {
            per_minute,
            debounce: Duration::from_millis(debounce_ms),
            debounce_at_most: Duration::from_millis(debounce_at_most_ms.max(debounce_ms)),
            queue,
            flush: Duration::from_millis(flush_ms),
            gap: Duration::from_millis(gap_ms),
            level,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_goes_before_the_code_row_43() {
        let set = |name: &str| match name {
            "DESKBELL_SDK_PER_MINUTE" => Some("120".to_owned()),
            "DESKBELL_SDK_DEBOUNCE_MS" => Some("500".to_owned()),
            "DESKBELL_SDK_LEVEL" => Some("error".to_owned()),
            _ => None,
        };
        let limits = Limits { queue: 7, ..Limits::default() }.or_variables(set).unwrap();
        assert_eq!((limits.per_minute, limits.queue, limits.level), (120, 7, Level::Error));
        // The longest wait is never shorter than the usual one.
        assert_eq!(limits.debounce, Duration::from_millis(500));
        assert_eq!(limits.debounce_at_most, Duration::from_millis(500));
    }

    #[test]
    fn a_wrong_variable_is_named() {
        let error = |variable: &'static str, value: &'static str| {
            let get = move |name: &str| (name == variable).then(|| value.to_owned());
            Limits::default().or_variables(get).unwrap_err().to_string()
        };
        assert_eq!(
            error("DESKBELL_SDK_QUEUE", "-1"),
            "DESKBELL_SDK_QUEUE is \"-1\", expected a whole number"
        );
        assert_eq!(
            error("DESKBELL_SDK_LEVEL", "loud"),
            "DESKBELL_SDK_LEVEL is \"loud\", expected one of the eight levels"
        );
    }

    #[test]
    fn a_file_may_say_a_part() {
        assert_eq!(serde_json::from_str::<Limits>("{}").unwrap(), Limits::default());
        let error = serde_json::from_str::<Limits>(r#"{"per_minut": 1}"#).unwrap_err();
        assert!(error.to_string().contains("per_minut"), "{error}");
    }
}
