//! Values of arguments: what is said of a wrong one beside what clap says.

use std::str::FromStr;

use deskbell_core::Invalid;

/// Reads a value; a refusal says only what was expected, because clap names the argument and repeats the value.
pub(crate) fn value<T: FromStr<Err = Invalid>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|refusal: Invalid| expected(&refusal))
}

/// What was expected instead of what `refusal` refuses.
pub(crate) fn expected(refusal: &Invalid) -> String {
    format!("expected {}", refusal.expected)
}
