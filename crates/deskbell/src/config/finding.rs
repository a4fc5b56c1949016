//! What is said about a configuration: what is wrong, where, and what to do about it. Never a value.

use std::fmt;

use deskbell_core::{ChannelName, field::nearest};

use super::{secrets::Unresolved, tree::Place};

/// Something to say about the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What follows from it.
    pub severity: Severity,
    /// Where it was written.
    pub place: Place,
    /// The key, such as `routes[0].level`; empty for a file as a whole.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Whether it lies in the variables of the process.
    pub of_environment: bool,
}

/// What follows from a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing, but somebody should look at it.
    Warning,
    /// A part is left out, and everything else works.
    Problem,
    /// The configuration as a whole is not used.
    Fatal,
}

impl Severity {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Problem => "problem",
            Self::Fatal => "error",
        }
    }
}

impl Finding {
    pub(super) fn fatal(place: Place, key: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Fatal, place, key, message)
    }

    pub(super) fn problem(
        place: Place,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self::new(Severity::Problem, place, key, message)
    }

    pub(super) fn warning(
        place: Place,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self::new(Severity::Warning, place, key, message)
    }

    fn new(
        severity: Severity,
        place: Place,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let (key, message) = (key.into(), message.into());
        Self { severity, place, key, message, hint: None, of_environment: false }
    }

    #[must_use]
    pub(super) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// What is wrong with a secret that is not found.
    pub(super) fn unresolved(place: Place, key: impl Into<String>, why: &Unresolved) -> Self {
        let of_environment = matches!(why, Unresolved::Variable(_));
        Self { of_environment, ..Self::problem(place, key, why.to_string()) }
    }

    /// The channel that it is about, if it is about one.
    pub fn channel(&self) -> Option<ChannelName> {
        self.key.strip_prefix("channels.")?.split('.').next()?.parse().ok()
    }

    /// The same, with a severity of at most a problem: for layers that must not stop the program.
    #[must_use]
    pub(super) fn at_most_a_problem(self) -> Self {
        Self { severity: self.severity.min(Severity::Problem), ..self }
    }
}

impl fmt::Display for Finding {
    /// One line; the hint is on a second one in what [`ConfigErrors`] and commands print.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// Why a configuration is not used: everything that is wrong with it.
#[derive(Debug, Clone, thiserror::Error)]
pub struct ConfigErrors(pub Vec<Finding>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration cannot be used")?;
        for finding in &self.0 {
            write!(f, "\n  {finding}")?;
            if let Some(hint) = &finding.hint {
                write!(f, "\n    hint: {hint}")?;
            }
        }
        Ok(())
    }
}

/// A hint at the known name that is nearest to `name`, if one is near.
pub(super) fn did_you_mean<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(name, known).map(|known| format!("did you mean `{known}`?"))
}
