//! The prompts that come with the program. What the server says of itself to a model is the head of the guidelines.

use super::{Origin, Prompt, front};

/// What the server says of itself, at most 600 characters.
pub const INSTRUCTIONS: &str = include_str!("texts/instructions.en.txt").trim_ascii_end();

/// The same in Chinese.
pub const INSTRUCTIONS_ZH: &str = include_str!("texts/instructions.zh.txt").trim_ascii_end();

const GUIDELINES: &str = concat!(
    include_str!("texts/guidelines.head.yaml"),
    "{%- if language == \"zh\" -%}\n",
    include_str!("texts/instructions.zh.txt"),
    include_str!("texts/guidelines.zh.md"),
    "{%- else -%}\n",
    include_str!("texts/instructions.en.txt"),
    include_str!("texts/guidelines.en.md"),
    "{%- endif -%}\n",
);

const BUILT_IN: [(&str, &str); 2] =
    [("notify", include_str!("texts/notify.md")), ("notify-guidelines", GUIDELINES)];

pub(super) fn prompts() -> impl Iterator<Item = Prompt> {
    // A test reads them all.
    BUILT_IN
        .into_iter()
        .filter_map(|(name, source)| front::read(name, Origin::BuiltIn, source).ok())
}

/// How many there are.
#[cfg(test)]
pub(super) const COUNT: usize = BUILT_IN.len();
