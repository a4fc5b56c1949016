//! What a person at a terminal sees of an event: one line, on the target `llm_notify`.

use deskbell_core::{Event, text};

use crate::config::Tracing;

/// The line that tells `event`, if the user wants it shown.
pub fn line(event: &Event, _tracing: &Tracing) -> Option<String> {
    Some(text::one_line(&event.content.text).into_owned())
}
