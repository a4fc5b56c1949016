//! Progress, and changes of resources and lists.

use std::sync::Arc;

use crate::{
    context::{CallState, Unfinished},
    outbox::Kind,
    wire,
};

/// Shows the caller of a tool its progress, and tells of what has changed.
#[derive(Debug, Clone)]
pub struct Notify {
    call: Option<Arc<CallState>>,
}

impl Notify {
    pub(crate) const fn new(call: Option<Arc<CallState>>) -> Self {
        Self { call }
    }

    /// Whether progress is shown to nobody: no session, or a caller that gave no progress token.
    pub fn is_noop(&self) -> bool {
        self.call.as_ref().is_none_or(|call| !call.is_open() || !call.shows())
    }

    /// Starts to show progress towards `total`: a number, or `None` where nobody knows.
    ///
    /// A second progress of the same call goes on where the one before it ended, because what a caller sees must only
    /// ever grow. The one before it is complete then, if it was dropped.
    pub fn progress(&self, message: impl Into<String>, total: impl Into<Option<f64>>) -> Progress {
        let total = total.into().filter(|total| total.is_finite() && *total > 0.0);
        let base = self.call.as_ref().map_or(0.0, |call| {
            let unfinished = std::mem::take(&mut call.shown().unfinished);
            unfinished.into_iter().for_each(|progress| call.complete(progress));
            call.shown().last.unwrap_or(0.0)
        });
        let (call, message) = (self.call.clone(), message.into());
        let progress = Progress { call, base, current: 0.0, total, message, is_ended: false };
        progress.show();
        progress
    }

    /// Tells that the resource at `uri` has changed, if the client has subscribed to it.
    pub fn resource_updated(&self, uri: &str) {
        let told = || wire::resource_updated(uri, wire::now());
        self.changed(Kind::ResourceUpdated, Some(uri), told);
    }

    /// Tells that the list of resources has changed.
    pub fn resource_list_changed(&self) {
        let kind = Kind::ResourceListChanged;
        self.changed(kind, None, || wire::list_changed(kind));
    }

    /// Tells that the list of tools has changed.
    pub fn tool_list_changed(&self) {
        let kind = Kind::ToolListChanged;
        self.changed(kind, None, || wire::list_changed(kind));
    }

    /// Tells that the list of prompts has changed.
    pub fn prompt_list_changed(&self) {
        let kind = Kind::PromptListChanged;
        self.changed(kind, None, || wire::list_changed(kind));
    }

    fn changed(
        &self,
        kind: Kind,
        uri: Option<&str>,
        told: impl FnOnce() -> rmcp::model::ServerNotification,
    ) {
        if let Some(call) = &self.call {
            call.changed(kind, uri, told());
        }
    }
}

/// Progress towards an end.
///
/// It ends once: by [`complete`](Self::complete), by [`fail`](Self::fail), or, when it is dropped, as the call does. A
/// call that fails never shows the whole.
#[derive(Debug)]
#[must_use = "progress that is dropped has ended"]
pub struct Progress {
    call: Option<Arc<CallState>>,
    /// What earlier progress of the same call has shown.
    base: f64,
    current: f64,
    total: Option<f64>,
    message: String,
    is_ended: bool,
}

impl Progress {
    /// Shows that `current` of the total is done. It counts if it is more than before.
    pub fn update(&mut self, current: f64) {
        if current.is_finite() {
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

    /// Shows that all is done.
    pub fn complete(mut self, message: impl Into<String>) {
        self.message = message.into();
        self.is_ended = true;
        if let Some(call) = self.call.take() {
            call.complete(self.unfinished());
        }
    }

    /// Tells that it failed, as an error message; nothing more is shown.
    pub fn fail(mut self, message: impl AsRef<str>) {
        self.is_ended = true;
        if let Some(call) = self.call.take() {
            call.fail(message.as_ref());
        }
    }

    fn show(&self) {
        if let Some(call) = &self.call {
            let Unfinished { value, total, message } = self.unfinished();
            // The whole is shown once and for all.
            let is_final = total.is_some_and(|total| value >= total);
            let value = total.map_or(value, |total| value.min(total));
            call.progress(value, total, &message, is_final);
        }
    }

    fn unfinished(&self) -> Unfinished {
        let total = self.total.map(|total| self.base + total);
        Unfinished { value: self.base + self.current, total, message: self.message.clone() }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let Some(call) = self.call.take().filter(|_| !self.is_ended) else { return };
        let unfinished = self.unfinished();
        if call.is_watched {
            call.shown().unfinished.push(unfinished);
        } else if std::thread::panicking() {
            call.fail(&unfinished.message);
        } else {
            call.complete(unfinished);
        }
    }
}
