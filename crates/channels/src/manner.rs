//! How a user wants a channel to tell, whatever its kind.

use std::str::FromStr;

use deskbell_core::{Invalid, Message, event::Format};

use crate::render::Dialect;

/// How a user wants a channel to tell, whatever its kind. The default is what suits the far end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Manner {
    /// How texts are taken to be written, instead of what their reporter says.
    pub format: Option<Format>,
    /// What becomes of a text that is longer than the far end takes.
    pub overflow: Overflow,
}

/// What becomes of a text that is longer than the far end takes. The words are those of Apprise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Overflow {
    /// It becomes several messages.
    #[default]
    Split,
    /// It is cut, with a mark where it was.
    Truncate,
    /// It is sent as it is; the far end does with it what it does.
    Upstream,
}

impl Overflow {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Split, Self::Truncate, Self::Upstream];

    /// The word for it in configurations and addresses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Truncate => "truncate",
            Self::Upstream => "upstream",
        }
    }
}

impl FromStr for Overflow {
    type Err = Invalid;

    fn from_str(word: &str) -> Result<Self, Invalid> {
        let found = Self::ALL.into_iter().find(|overflow| overflow.as_str() == word);
        found.ok_or_else(|| Invalid::text("overflow", word, "split, truncate or upstream"))
    }
}

impl Manner {
    /// `message` as a channel of this manner tells it: without marks where it is to be text.
    pub(crate) fn told(self, message: &Message) -> Message {
        let body = match (self.format, message.format) {
            (Some(Format::Text), Format::Markdown) => Dialect::Plain.body(message),
            _ => message.body.clone(),
        };
        Message { body, format: self.format.unwrap_or(message.format), ..message.clone() }
    }
}
