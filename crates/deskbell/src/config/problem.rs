//! What is left out of a configuration that is used all the same.

use std::fmt;

use deskbell_core::ChannelName;

use super::finding::Finding;

/// Something that is wrong; what it concerns is left out, and everything else works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The channel that is left out, if it is one.
    pub channel: Option<ChannelName>,
    /// Whether a variable is missing that only a new start of the process brings.
    pub of_environment: bool,
    /// What is wrong and where, in a sentence.
    pub text: String,
}

impl Problem {
    /// The problem that has left out `channel`, if one has.
    pub fn of<'a>(channel: &ChannelName, problems: &'a [Self]) -> Option<&'a Self> {
        problems.iter().find(|problem| problem.channel.as_ref() == Some(channel))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<&Finding> for Problem {
    fn from(finding: &Finding) -> Self {
        Self {
            channel: finding.channel(),
            of_environment: finding.of_environment,
            text: finding.to_string(),
        }
    }
}
