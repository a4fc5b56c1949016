//! What is told to one client beside its calls.

use std::sync::Arc;

use rmcp::{RoleServer, service::RequestContext};
use serde::Serialize;

use crate::{
    declared::Declared,
    level::Level,
    outbox::Kind,
    session::{Asked, Session},
    wire,
};

/// The client of one session, beside its calls: for what is known only when a call has its answer.
///
/// There is none for requests of 2026-07-28 and later: they hear of changes by `subscriptions/listen` alone, and of
/// messages not at all. What a client hears here is also what it narrows with `notifications/subscribe`.
#[derive(Debug, Clone)]
pub struct Client(Arc<Session>);

impl Client {
    pub(crate) const fn new(session: Arc<Session>) -> Self {
        Self(session)
    }

    /// The client of the session that `context` belongs to, below [`Notifying`](crate::Notifying).
    pub fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        context.extensions.get().cloned()
    }

    /// Says which notifications the client takes.
    pub fn declare(&self, declared: Declared) {
        self.0.declare(declared);
    }

    /// Tells `message` from `logger`, if the client hears `level`. The filter `event_types` of its subscriptions goes
    /// by the field `event_type` of `data`.
    pub fn log(&self, level: Level, logger: &str, message: &str, data: impl Serialize) {
        let data = serde_json::to_value(data).ok().filter(|data| !data.is_null());
        let event_type = data.as_ref().and_then(|data| data.get("event_type")?.as_str());
        let told = wire::message(level, logger, message, data.as_ref(), None);
        self.0.message(level, event_type, told);
    }

    /// Tells that the resource at `uri` has changed, which the client has asked to hear of.
    ///
    /// For servers that keep subscriptions themselves; others call [`Notifier::resource_updated`] and leave it to the
    /// session who has subscribed.
    ///
    /// [`Notifier::resource_updated`]: crate::Notifier::resource_updated
    pub fn resource_updated(&self, uri: &str) {
        self.0.changed(Kind::ResourceUpdated, Some(uri), Asked::Elsewhere);
    }
}
