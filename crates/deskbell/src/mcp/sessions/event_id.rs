//! The ids of the events on a session's streams: `<session's tag>.<stream>-<number>`.
//!
//! They are unique within the session, as the specification wants them, and the tag tells those of another session.

use std::{
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

/// What the event ids of one session begin with. It is no secret and gives access to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag(u32);

impl Tag {
    pub(super) fn of(session: &str) -> Self {
        // Its keys are fixed, so that ids stay good when the program is started again.
        let mut hasher = DefaultHasher::new();
        session.hash(&mut hasher);
        Self(u32::try_from(hasher.finish() >> 32).unwrap_or_default())
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// The id of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) tag: Tag,
    pub(super) stream: u64,
    /// The message's number on its stream; 0 stands before the first.
    pub(super) number: u64,
}

impl EventId {
    /// The id that `text` is, in the one form that is written.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (tag, place) = text.split_once('.')?;
        let (stream, number) = place.split_once('-')?;
        let id = Self {
            tag: Tag(u32::from_str_radix(tag, 16).ok()?),
            stream: stream.parse().ok()?,
            number: number.parse().ok()?,
        };
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}-{}", self.tag, self.stream, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_written_and_nothing_else_is() {
        for (stream, number) in [(0, 0), (7, 12), (u64::MAX, u64::MAX)] {
            let id = EventId { tag: Tag::of("a session"), stream, number };
            assert_eq!(EventId::parse(&id.to_string()), Some(id));
        }
        let tag = Tag::of("a session");
        for text in [
            String::new(),
            "0".to_owned(),
            "1-2".to_owned(),
            format!("{tag}.1"),
            format!("{tag}.1-"),
            format!("{tag}.1-+2"),
            format!("{tag}.01-2"),
            format!("{tag}.1-2 "),
            format!("{tag}.-1-2"),
            format!("{tag}.1-18446744073709551616"),
            format!("é{tag}.1-2"),
            format!("+{tag}.1-2"),
        ] {
            assert_eq!(EventId::parse(&text), None, "{text}");
        }
    }

    #[test]
    fn sessions_have_different_tags() {
        assert_ne!(Tag::of("a"), Tag::of("b"));
        assert_eq!(Tag::of("a"), Tag::of("a"));
    }
}
