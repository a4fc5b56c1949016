//! What on-call services have in common: an alert has a key, is open until somebody closes it, and a run is one alert.

use deskbell_core::{
    Message,
    run::Phase,
    text::{self, Unit},
};

use crate::{channel::SendContext, render::Dialect};

/// What a message does to its alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Opens it. Services take a second opening of the same alert for a repeat.
    Open,
    /// Tells more of one that is open.
    Add,
    /// Closes it, because the run that it is about ended well.
    Close,
}

/// What `message` does to its alert.
pub(crate) fn step(message: &Message, cx: &SendContext) -> Step {
    if message.run.as_ref().is_some_and(|run| run.phase == Phase::End) {
        Step::Close
    } else if cx.edit.is_some() {
        Step::Add
    } else {
        Step::Open
    }
}

/// The key of the alert that `message` belongs to: that of an earlier step, `fixed`, the run's, or its own.
pub(crate) fn key(fixed: Option<&str>, message: &Message, cx: &SendContext) -> String {
    let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.as_deref());
    let run = || message.run.as_ref().map(|run| run.id.as_str());
    earlier.or(fixed).or_else(run).map_or_else(|| cx.id(), str::to_owned)
}

/// One line that says what `message` is about, at most `limit` characters long.
pub(crate) fn summary(message: &Message, limit: usize) -> String {
    match &message.title {
        Some(title) => text::cut(title, limit, Unit::Characters),
        None => {
            let plain = Dialect::Plain.body(message);
            let line = plain.lines().find(|line| !line.trim().is_empty()).unwrap_or("Deskbell");
            text::cut(line, limit, Unit::Characters)
        }
    }
}

/// What the alert is about, where the configuration does not say: the project, or whoever reported it.
pub(crate) fn source(message: &Message) -> &str {
    let source = &message.source;
    let named = [&source.project, &source.host, &source.client];
    named.into_iter().find_map(|name| name.as_deref()).unwrap_or("deskbell")
}

/// Whether `text` is a UUID, as services write their ids and keys.
pub(crate) fn is_uuid(text: &str) -> bool {
    let groups = text.split('-').map(str::len);
    groups.eq([8, 4, 4, 4, 12]) && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}
