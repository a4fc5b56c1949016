//! What stands below a text because the far end has no place of its own for it.

use deskbell_core::{Message, attachment::Attachment, event::Format};

use crate::{
    channel::ChannelKind,
    files::{ReadFile, in_words},
    render::Dialect,
};

/// A line below the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// What a reader has to see. A text that has it needs no line.
    shows: String,
    /// The line, written in the format of the message.
    pub(crate) written: String,
    /// Whether it says how a file was found at this attempt. The next one may find it in another way.
    pub(crate) is_found: bool,
}

impl Line {
    /// The line for the address `link`.
    pub(crate) fn link(link: &str, format: Format) -> Self {
        let written = match format {
            // What calls somebody in a text would be pulled apart; in an address both mean the same.
            Format::Text => link.replace("/@", "/%40"),
            Format::Markdown => format!("<{link}>"),
        };
        Self { shows: link.to_owned(), written, is_found: false }
    }

    /// The line for a file that stands at `url`.
    pub(crate) fn file_at(attachment: &Attachment, url: &str, format: Format) -> Self {
        let line = Self::link(url, format);
        Self { written: format!("{}: {}", named(&attachment.name, format), line.written), ..line }
    }

    /// The line for a file that does not go out, with its size or the reason.
    pub(crate) fn file(name: &str, facts: &str, format: Format) -> Self {
        let written = format!("{} ({facts})", named(name, format));
        Self { shows: written.clone(), written, is_found: true }
    }

    /// The line for a file that the far end did not take.
    pub(crate) fn refused(file: &ReadFile, error: &str, format: Format) -> Self {
        let facts = format!("{}, not taken: {error}", in_words(file.bytes.len() as u64));
        match format {
            Format::Text => Self::file(&file.name, &facts, format),
            Format::Markdown => {
                Self::file(&file.name, &Dialect::ChatMarkdown.escaped(&facts), format)
            }
        }
    }

    /// Whether `text` says it already, and not as the start of something longer.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let goes_on = |c: char| c.is_alphanumeric() || "/#&=%-_~+@".contains(c);
        text.match_indices(&self.shows).any(|(start, _)| {
            let mut rest = text.get(start + self.shows.len()..).unwrap_or_default().chars();
            match (rest.next(), rest.next()) {
                // They may end a sentence.
                (Some('.' | ':' | '?'), after) => !after.is_some_and(goes_on),
                (next, _) => !next.is_some_and(goes_on),
            }
        })
    }
}

/// What a file is called in a text of this format.
fn named(name: &str, format: Format) -> String {
    match format {
        Format::Text => format!("Attached: {name}"),
        Format::Markdown => format!("Attached: {}", Dialect::ChatMarkdown.escaped(name)),
    }
}

/// The lines for what a kind has no place for.
pub(crate) fn lines(kind: &ChannelKind, message: &Message) -> Vec<Line> {
    let link = message.link.as_deref().filter(|link| !kind.has_place_for(link));
    link.map(|link| Line::link(link, message.format)).into_iter().collect()
}

/// `message` with its link in the text, for kinds that write a text alone where the user wants no JSON.
pub(crate) fn whole(message: &Message) -> Message {
    let line = message.link.as_deref().map(|link| Line::link(link, message.format));
    match line.filter(|line| !line.is_in(&message.body)) {
        Some(line) => {
            let body = format!("{}\n\n{}", message.body.trim_end(), line.written);
            Message { body, ..message.clone() }
        }
        None => message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_says_the_link_needs_no_line_and_one_that_says_a_longer_one_does() {
        let line = Line::link("https://h/7", Format::Text);
        for text in
            ["https://h/7", "see https://h/7.", "[CI](https://h/7)", "https://h/77, https://h/7"]
        {
            assert!(line.is_in(text), "{text}");
        }
        for text in ["https://h/77", "https://h/7/log", "https://h/7.html", "h/7", ""] {
            assert!(!line.is_in(text), "{text}");
        }
    }
}
