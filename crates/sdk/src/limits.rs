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
/// let limits = Limits::default().with_per_minute(600).with_debounce(Duration::from_millis(50));
/// assert_eq!(limits.debounce.progress, Duration::from_millis(50));
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
///
/// In the environment they are `DESKBELL_SDK_` and the name there, in capitals; [`from_env`](Self::from_env) reads them.
///
/// | in a file | |
/// |---|---|
/// | `per_minute` | [`per_minute`](Self::per_minute) |
/// | `debounce_ms` | all of [`debounce`](Self::debounce) |
/// | `progress_debounce_ms`, `resource_debounce_ms`, `list_debounce_ms` | each kind of it |
/// | `debounce_at_most_ms` | [`Debounce::at_most`] |
/// | `queue` | [`queue`](Self::queue) |
/// | `flush_ms` | [`flush`](Self::flush) |
/// | `gap_ms` | [`gap`](Self::gap) |
/// | `level` | [`level`](Self::level) |
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Written")]
#[non_exhaustive]
pub struct Limits {
    /// Most notifications to one client in any 60 seconds; 0 sets no limit. The last values of progress do not count.
    pub per_minute: u32,
    /// How long each kind waits for a newer one that takes its place.
    pub debounce: Debounce,
    /// Most notifications that wait for a client which does not read, at least 1; beyond it the oldest is dropped.
    pub queue: usize,
    /// How long the answer of a tool waits for the notifications of the call that a client has not read.
    pub flush: Duration,
    /// The gap between a call's last progress and its answer: clients on stdio of the TypeScript SDK lose a progress
    /// that arrives together with the answer.
    pub gap: Duration,
    /// The least severe level that a client gets that did not set one (2025-11-25 and before).
    pub level: Level,
}

/// How long a notification waits for a newer one that takes its place. Messages do not wait.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Debounce {
    /// Progress of one call.
    pub progress: Duration,
    /// The change of one resource.
    pub resource_updated: Duration,
    /// The change of a list.
    pub list_changed: Duration,
    /// The longest such wait, however many newer ones come; never shorter than the usual one.
    pub at_most: Duration,
}

impl Debounce {
    const fn all(wait: Duration, at_most: Duration) -> Self {
        Self { progress: wait, resource_updated: wait, list_changed: wait, at_most }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            per_minute: 60,
            debounce: Debounce::all(Duration::from_millis(100), Duration::from_millis(250)),
            queue: 1_000,
            flush: Duration::from_secs(2),
            gap: Duration::from_millis(2),
            level: Level::Info,
        }
    }
}

impl Limits {
    /// The same with another number of notifications in a minute; 0 sets no limit.
    #[must_use]
    pub const fn with_per_minute(mut self, per_minute: u32) -> Self {
        self.per_minute = per_minute;
        self
    }

    /// The same with another wait for newer ones, for all kinds.
    #[must_use]
    pub fn with_debounce(mut self, wait: Duration) -> Self {
        self.debounce = Debounce::all(wait, self.debounce.at_most.max(wait));
        self
    }

    /// The same with another length of the queue.
    #[must_use]
    pub const fn with_queue(mut self, queue: usize) -> Self {
        self.queue = queue;
        self
    }

    /// The same with another gap before the answer; none is needed where no client reads from a pipe.
    #[must_use]
    pub const fn with_gap(mut self, gap: Duration) -> Self {
        self.gap = gap;
        self
    }

    /// The same with another level for clients that set none.
    #[must_use]
    pub const fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
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
    /// The usual limits with what the environment says instead; the type's description names the variables.
    ///
    /// # Errors
    /// Names the variable, its value and what was expected.
    pub fn from_env() -> Result<Self, WrongVariable> {
        Self::default().or_env()
    }

    /// These limits with what the environment says instead.
    ///
    /// # Errors
    /// Names the variable, its value and what was expected.
    pub fn or_env(self) -> Result<Self, WrongVariable> {
        self.or_variables(|name| {
            env::var_os(name).map(|value| value.to_string_lossy().into_owned())
        })
    }

    fn or_variables(self, get: impl Fn(&str) -> Option<String>) -> Result<Self, WrongVariable> {
        const COUNT: &str = "a whole number";
        let limits = Self {
            per_minute: read("DESKBELL_SDK_PER_MINUTE", COUNT, &get)?.unwrap_or(self.per_minute),
            queue: read("DESKBELL_SDK_QUEUE", COUNT, &get)?.unwrap_or(self.queue),
            level: read("DESKBELL_SDK_LEVEL", "one of the eight levels", &get)?
                .unwrap_or(self.level),
            flush: milliseconds("DESKBELL_SDK_FLUSH_MS", &get)?.unwrap_or(self.flush),
            gap: milliseconds("DESKBELL_SDK_GAP_MS", &get)?.unwrap_or(self.gap),
            debounce: self.debounce,
        };
        let mut limits = match milliseconds("DESKBELL_SDK_DEBOUNCE_MS", &get)? {
            Some(wait) => limits.with_debounce(wait),
            None => limits,
        };
        let debounce = &mut limits.debounce;
        for (variable, wait) in [
            ("DESKBELL_SDK_PROGRESS_DEBOUNCE_MS", &mut debounce.progress),
            ("DESKBELL_SDK_RESOURCE_DEBOUNCE_MS", &mut debounce.resource_updated),
            ("DESKBELL_SDK_LIST_DEBOUNCE_MS", &mut debounce.list_changed),
            ("DESKBELL_SDK_DEBOUNCE_AT_MOST_MS", &mut debounce.at_most),
        ] {
            *wait = milliseconds(variable, &get)?.unwrap_or(*wait);
        }
        Ok(limits)
    }
}

/// Reads a variable of the environment by `get`, if it is set.
fn read<T: FromStr>(
    variable: &'static str,
    expected: &'static str,
    get: impl Fn(&str) -> Option<String>,
) -> Result<Option<T>, WrongVariable> {
    let Some(value) = get(variable) else { return Ok(None) };
    let wrong = |_| WrongVariable { variable, value: value.chars().take(40).collect(), expected };
    value.trim().parse().map(Some).map_err(wrong)
}

fn milliseconds(
    variable: &'static str,
    get: impl Fn(&str) -> Option<String>,
) -> Result<Option<Duration>, WrongVariable> {
    let read = read(variable, "a whole number of milliseconds", get)?;
    Ok(read.map(Duration::from_millis))
}

/// Limits as a configuration file writes them.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    per_minute: Option<u32>,
    debounce_ms: Option<u64>,
    progress_debounce_ms: Option<u64>,
    resource_debounce_ms: Option<u64>,
    list_debounce_ms: Option<u64>,
    debounce_at_most_ms: Option<u64>,
    queue: Option<usize>,
    flush_ms: Option<u64>,
    gap_ms: Option<u64>,
    level: Option<Level>,
}

impl From<Written> for Limits {
    fn from(written: Written) -> Self {
        let usual = Self::default();
        let or =
            |milliseconds: Option<u64>, usual| milliseconds.map_or(usual, Duration::from_millis);
        let debounce =
            usual.clone().with_debounce(or(written.debounce_ms, usual.debounce.progress));
        let Debounce { progress, resource_updated, list_changed, at_most } = debounce.debounce;
        Self {
            per_minute: written.per_minute.unwrap_or(usual.per_minute),
            debounce: Debounce {
                progress: or(written.progress_debounce_ms, progress),
                resource_updated: or(written.resource_debounce_ms, resource_updated),
                list_changed: or(written.list_debounce_ms, list_changed),
                at_most: or(written.debounce_at_most_ms, at_most),
            },
            queue: written.queue.unwrap_or(usual.queue),
            flush: or(written.flush_ms, usual.flush),
            gap: or(written.gap_ms, usual.gap),
            level: written.level.unwrap_or(usual.level),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_environment_goes_before_the_code_rows_43_46() {
        let set = |name: &str| match name {
            "DESKBELL_SDK_PER_MINUTE" => Some("120".to_owned()),
            "DESKBELL_SDK_DEBOUNCE_MS" => Some("500".to_owned()),
            "DESKBELL_SDK_LIST_DEBOUNCE_MS" => Some(" 7 ".to_owned()),
            "DESKBELL_SDK_LEVEL" => Some("error".to_owned()),
            _ => None,
        };
        let limits = Limits::default().with_queue(7).or_variables(set).unwrap();
        assert_eq!((limits.per_minute, limits.queue, limits.level), (120, 7, Level::Error));
        // The longest wait is never shorter than the usual one.
        let mut expected = Debounce::all(500 * MS, 500 * MS);
        expected.list_changed = 7 * MS;
        assert_eq!(limits.debounce, expected);
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
            error("DESKBELL_SDK_GAP_MS", "2 ms"),
            "DESKBELL_SDK_GAP_MS is \"2 ms\", expected a whole number of milliseconds"
        );
        assert_eq!(
            error("DESKBELL_SDK_LEVEL", "loud"),
            "DESKBELL_SDK_LEVEL is \"loud\", expected one of the eight levels"
        );
    }

    #[test]
    fn a_file_may_say_a_part_row_46() {
        let read = |text| serde_json::from_str::<Limits>(text);
        assert_eq!(read("{}").unwrap(), Limits::default());
        let limits =
            read(r#"{"debounce_ms": 300, "progress_debounce_ms": 0, "queue": 5}"#).unwrap();
        let mut expected = Debounce::all(300 * MS, 300 * MS);
        expected.progress = Duration::ZERO;
        assert_eq!((limits.queue, limits.debounce), (5, expected));
        let error = read(r#"{"per_minut": 1}"#).unwrap_err();
        assert!(error.to_string().contains("per_minut"), "{error}");
    }
}
