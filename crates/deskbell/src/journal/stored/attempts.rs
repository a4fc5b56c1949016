//! The form in which the attempts of a delivery are kept: one JSON array a line, with number, time and error.
//!
//! A retry by hand is a line with the number 0 and, in the place of an error, how many attempts there were before.
//! After it the numbers begin anew, because what follows an attempt depends on how many there were since.

use jiff::Timestamp;

use super::{Unreadable, nanos, timestamp};
use crate::journal::{ATTEMPTS_KEPT, AttemptRecord, RetryRecord};

/// How the line of a retry by hand begins.
const RETRY: &str = "[0,";

/// What a log says.
#[derive(Debug, Default, PartialEq)]
pub(in crate::journal) struct Log {
    /// The attempts, numbered through all retries.
    pub(in crate::journal) attempts: Vec<AttemptRecord>,
    /// The retries by hand.
    pub(in crate::journal) retries: Vec<RetryRecord>,
}

impl Log {
    /// How many attempts there were before the last retry by hand.
    pub(in crate::journal) fn before(&self) -> u32 {
        self.retries.last().map_or(0, |retry| retry.after)
    }
}

/// Adds a line to the log of a delivery.
///
/// Only the last [`ATTEMPTS_KEPT`] attempts stay, and the retry by hand before them. It takes no parsing, because it
/// runs where everybody waits.
pub(in crate::journal) fn log_attempt(log: Option<String>, line: &str) -> String {
    let Some(mut log) = log else { return line.to_owned() };
    log.push('\n');
    log.push_str(line);
    let is_retry = |line: &&str| line.starts_with(RETRY);
    let mut surplus =
        log.lines().filter(|line| !is_retry(line)).count().saturating_sub(ATTEMPTS_KEPT);
    if surplus == 0 {
        return log;
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut retry = None;
    for line in log.lines() {
        match (surplus, is_retry(&line)) {
            (0, _) => kept.push(line),
            (_, true) => retry = Some(line),
            (_, false) => surplus -= 1,
        }
    }
    retry.into_iter().chain(kept).collect::<Vec<_>>().join("\n")
}

/// One attempt as a line of the log.
pub(in crate::journal) fn attempt_line(attempt: &AttemptRecord) -> Result<String, Unreadable> {
    let line = (attempt.number, nanos(attempt.at), &attempt.error);
    serde_json::to_string(&line).map_err(|error| Unreadable::new("attempt", error))
}

/// A retry by hand at `at`, after so many attempts, as a line of the log.
pub(in crate::journal) fn retry_line(after: u32, at: i64) -> String {
    format!(r#"{RETRY}{at},"{after}"]"#)
}

/// What stands in a log.
pub(in crate::journal) fn log_of(text: &str) -> Result<Log, Unreadable> {
    let unreadable = |error: &dyn std::fmt::Display| Unreadable::new("attempt", error);
    let mut log = Log::default();
    for line in text.lines() {
        let (number, at, said): (u32, i64, Option<String>) =
            serde_json::from_str(line).map_err(|error| unreadable(&error))?;
        let at: Timestamp = timestamp(at);
        if number == 0 {
            let after = said.unwrap_or_default().parse().map_err(|error| unreadable(&error))?;
            log.retries.push(RetryRecord { after, at });
        } else {
            let number = log.before().saturating_add(number);
            log.attempts.push(AttemptRecord { number, at, error: said });
        }
    }
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::suite::at;

    #[test]
    fn attempts_are_counted_through_retries_by_hand_and_the_oldest_go() {
        let line = |number| {
            let error = Some("[0,\nno".to_owned());
            attempt_line(&AttemptRecord { number, at: at(number.into()), error }).unwrap()
        };
        let mut log = None;
        for number in 1..=3 {
            log = Some(log_attempt(log, &line(number)));
        }
        log = Some(log_attempt(log, &retry_line(3, nanos(at(50)))));
        let read = log_of(log.as_deref().unwrap()).unwrap();
        assert_eq!((read.attempts.len(), read.before()), (3, 3));
        for number in 1..=25 {
            log = Some(log_attempt(log, &line(number)));
        }
        let read = log_of(log.as_deref().unwrap()).unwrap();
        let numbers: Vec<_> = read.attempts.iter().map(|attempt| attempt.number).collect();
        assert_eq!(numbers, (9..=28).collect::<Vec<_>>());
        assert_eq!(read.retries, [RetryRecord { after: 3, at: at(50) }]);
    }
}
