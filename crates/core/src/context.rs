//! The category of an event.

use std::{fmt, str::FromStr};

use crate::{field::Invalid, text};

/// A category such as `analysis`, `workflow`, `safety`, `performance`, `discovery`, or any other word.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Context(String);

impl Context {
    /// Longest category, in characters.
    pub const LIMIT: usize = 64;

    /// The category as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Context {
    /// The category of what a language model reports without naming one (seed S0).
    fn default() -> Self {
        Self("llm".to_owned())
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Context {
    type Err = Invalid;

    /// Reads a category; surrounding white space is dropped, control characters are cleaned away.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let cleaned = text::one_line(text.trim()).into_owned();
        match cleaned.chars().count() {
            0 => Err(Invalid::text("context", text, "a category of 1 to 64 characters")),
            length if length > Self::LIMIT => {
                Err(Invalid::too_long("context", length, Self::LIMIT, "characters"))
            }
            _ => Ok(Self(cleaned)),
        }
    }
}
