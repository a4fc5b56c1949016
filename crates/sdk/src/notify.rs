//! Progress, and changes of resources and lists.

use std::sync::Arc;

use crate::{
    call::{Call, Unfinished},
    notifier::Notifier,
    outbox::Word,
};

/// Shows the caller of a tool its progress, and tells of what has changed.
#[derive(Debug, Clone)]
pub struct Notify {
    call: Option<Arc<Call>>,
}

impl Notify {
    pub(crate) const fn new(call: Option<Arc<Call>>) -> Self {
        Self { call }
    }

    /// Whether progress is shown to nobody: no session, or a caller that gave no progress token.
    pub fn is_noop(&self) -> bool {
        self.call.as_ref().is_none_or(|call| !call.is_open() || !call.shows())
    }

    /// Starts to show progress towards `total`: a number, or `None` where nobody knows.
    ///
    /// A second progress of the same call goes on where the one before it ended, because what a caller sees must only
    /// ever grow. One that was dropped before counts as done then.
    pub fn progress(&self, message: impl Into<String>, total: impl Into<Option<f64>>) -> Progress {
        let total = total.into().filter(|total| total.is_finite() && *total > 0.0);
        let base = self.call.as_ref().map_or(0.0, |call| call.base());
        let (call, message) = (self.call.clone(), message.into());
        let progress = Progress { call, base, current: 0.0, total, message };
        progress.show();
        progress
    }

    /// Tells that the resource at `uri` has changed, to every client that has subscribed to it or to what contains it.
    pub fn resource_updated(&self, uri: &str) {
        self.notifier(|notifier| notifier.resource_updated(uri));
    }

    /// Tells every client that the list of resources has changed.
    pub fn resource_list_changed(&self) {
        self.notifier(Notifier::resource_list_changed);
    }

    /// Tells every client that the list of tools has changed.
    pub fn tool_list_changed(&self) {
        self.notifier(Notifier::tool_list_changed);
    }

    /// Tells every client that the list of prompts has changed.
    pub fn prompt_list_changed(&self) {
        self.notifier(Notifier::prompt_list_changed);
    }

    fn notifier(&self, tell: impl FnOnce(&Notifier)) {
        if let Some(call) = &self.call {
            tell(&call.session.notifier);
        }
    }
}

/// Progress towards an end.
///
/// It ends once: by [`complete`](Self::complete), by [`fail`](Self::fail), by [`leave`](Self::leave), or, when it is
/// dropped, as the call does. The whole is shown at its end only, so that a call that fails never shows it.
#[derive(Debug)]
#[must_use = "progress that is dropped has ended"]
pub struct Progress {
    /// None once it has ended.
    call: Option<Arc<Call>>,
    /// What earlier progress of the same call has shown.
    base: f64,
    current: f64,
    total: Option<f64>,
    message: String,
}

impl Progress {
    /// Shows that `current` of the total is done. It counts if it is more than before.
    pub fn update(&mut self, current: f64) {
        if current.is_finite() && current > self.current {
            self.current = current;
        }
        self.show();
    }

    /// The same with another message.
    pub fn update_with(&mut self, current: f64, message: impl Into<String>) {
        self.message = message.into();
        self.update(current);
    }

    /// Shows that `by` more is done.
    pub fn increment(&mut self, by: f64) {
        self.update(self.current + by);
    }

    /// The same with another message.
    pub fn increment_with(&mut self, by: f64, message: impl Into<String>) {
        self.message = message.into();
        self.increment(by);
    }

    /// Shows that all is done, whatever becomes of the call.
    ///
    /// Without a total nothing tells that from the last value, so `message` is shown if that value was not.
    pub fn complete(mut self, message: impl Into<String>) {
        self.message = message.into();
        if let Some(call) = self.call.take() {
            call.complete(&self.so_far());
        }
    }

    /// Tells that it failed, as an error message; nothing more is shown.
    pub fn fail(mut self, message: impl AsRef<str>) {
        if let Some(call) = self.call.take() {
            call.fail(message.as_ref());
        }
    }

    /// Ends it where it is: what was shown last is not all, and nothing has failed.
    pub fn leave(mut self) {
        if let Some(call) = self.call.take() {
            let Unfinished { value, total, message } = self.so_far();
            call.progress(value, total, &message, Word::Last);
        }
    }

    fn show(&self) {
        let Some(call) = &self.call else { return };
        let Unfinished { value, total, message } = self.so_far();
        if total.is_some_and(|total| value >= total) {
            tracing::trace!(target: crate::TARGET, value, "held back: the whole is shown at the end");
        } else {
            call.progress(value, total, &message, Word::Passing);
        }
    }

    fn so_far(&self) -> Unfinished {
        let total = self.total.map(|total| self.base + total);
        Unfinished { value: self.base + self.current, total, message: self.message.clone() }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            call.let_go(self.so_far());
        }
    }
}
