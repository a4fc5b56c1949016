//! Values of arguments: what is said of a wrong one beside what clap says.

use std::str::FromStr;

use deskbell_core::Invalid;

use crate::api::LIMIT_MAX;

/// Reads a value; a refusal says only what was expected, because clap names the argument and repeats the value.
pub(crate) fn value<T: FromStr<Err = Invalid>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|refusal: Invalid| expected(&refusal))
}

/// Reads how many entries are wanted, where all come at once.
pub(crate) fn limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
    limit.ok_or_else(|| format!("expected a whole number from 1 to {LIMIT_MAX}"))
}

/// Reads how many entries are wanted, where they come page by page.
pub(crate) fn any_limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| *limit > 0);
    limit.ok_or_else(|| "expected a whole number, at least 1".to_owned())
}

/// What was expected instead of what `refusal` refuses.
pub(crate) fn expected(refusal: &Invalid) -> String {
    format!("expected {}", refusal.expected)
}
