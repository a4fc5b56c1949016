//! What a tool gets: the way to tell its caller something.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use rmcp::{
    ErrorData, RoleServer,
    handler::server::common::{AsRequestContext, FromContextPart},
    model::{ProgressToken, RequestId, ServerNotification},
    service::{Peer, RequestContext},
};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::{
    level::Level,
    limits::Limits,
    log::Log,
    notify::Notify,
    outbox::{Kind, Topic},
    session::{Item, Session, Warned},
    wire,
};

/// What a tool gets to tell its caller something while it works.
///
/// Any tool of an rmcp server takes it as an argument. Everything on it may be called at any time: where the client
/// cannot or does not want to hear, nothing happens.
///
/// ```
/// use deskbell_sdk::ToolContext;
/// use rmcp::{tool, tool_router};
///
/// struct Files;
///
/// #[tool_router]
/// impl Files {
///     #[tool(description = "Reads all files")]
///     async fn read_all(&self, cx: ToolContext) -> String {
///         cx.log.info("reading");
///         let mut progress = cx.notify.progress("Reading files", 3.0);
///         for file in ["a", "b", "c"] {
///             progress.increment_with(1.0, format!("read {file}"));
///         }
///         "read 3 files".to_owned()
///     }
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolContext {
    /// Messages of eight levels.
    pub log: Log,
    /// Progress, and changes of resources and lists.
    pub notify: Notify,
}

impl ToolContext {
    /// One that tells nobody, for tests of tools.
    pub fn silent() -> Self {
        Self::from(None)
    }

    /// The context of the request that `context` belongs to.
    ///
    /// Below [`Notifying`](crate::Notifying) it knows its session. Without it the limits hold for the one call, a
    /// progress that is dropped is complete at once, and a level that the client has set is not known.
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        let known = context.extensions.get::<Arc<CallState>>().cloned();
        let call = known.or_else(|| {
            let session = Session::new(Limits::default());
            CallState::of(context, session, crate::LOGGER, false).ok().map(Arc::new)
        });
        Self::from(call)
    }
}

impl From<Option<Arc<CallState>>> for ToolContext {
    fn from(call: Option<Arc<CallState>>) -> Self {
        Self { log: Log::new(call.clone()), notify: Notify::new(call) }
    }
}

impl<C: AsRequestContext> FromContextPart<C> for ToolContext {
    fn from_context_part(context: &mut C) -> Result<Self, ErrorData> {
        Ok(Self::of(context.as_request_context()))
    }
}

/// One call of a tool, as long as it has no answer.
#[derive(Debug)]
pub(crate) struct CallState {
    session: Arc<Session>,
    /// Where the call came in: a tool may go on in threads that have no runtime.
    runtime: Option<Handle>,
    peer: Peer<RoleServer>,
    number: u64,
    request: RequestId,
    token: Option<ProgressToken>,
    /// What messages of the call say they come from: the tool's name.
    logger: String,
    /// Who decides what messages are heard.
    hears: Hears,
    /// Whether the answer has not been given.
    is_open: AtomicBool,
    /// Cancelled when the client cancels the request, and when the answer goes out.
    cancelled: CancellationToken,
    /// Whether somebody ends the call when it has its answer.
    pub(crate) is_watched: bool,
    shown: Mutex<Shown>,
}

/// Who decides what messages are heard.
#[derive(Debug, Clone, Copy)]
enum Hears {
    /// The session, by `logging/setLevel` (2025-11-25 and before).
    Session,
    /// The request, by its least severe level; none hears nothing (2026-07-28 and later).
    Request(Option<Level>),
}

/// What the caller has been shown of the call's progress.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// The last value.
    pub(crate) last: Option<f64>,
    /// Progress that its tool has let go of without a word about its end.
    pub(crate) unfinished: Vec<Unfinished>,
}

/// Progress whose end depends on how the call ends.
#[derive(Debug)]
pub(crate) struct Unfinished {
    pub(crate) value: f64,
    pub(crate) total: Option<f64>,
    pub(crate) message: String,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending<'a> {
    /// It did what it was asked for.
    Done,
    /// It failed, and says so.
    Failed(&'a str),
    /// It goes on elsewhere: in another request, or as a task.
    Open,
}

impl CallState {
    /// # Errors
    /// Gives the level that the request asks for, if there is no such level.
    pub(crate) fn of(
        context: &RequestContext<RoleServer>,
        session: Arc<Session>,
        logger: &str,
        is_watched: bool,
    ) -> Result<Self, serde_json::Value> {
        let hears = if wire::is_stateless(context) {
            Hears::Request(wire::wanted_level(context)?)
        } else {
            Hears::Session
        };
        Ok(Self {
            number: session.next_call(),
            session,
            runtime: Handle::try_current().ok(),
            peer: context.peer.clone(),
            request: context.id.clone(),
            token: context.meta.get_progress_token(),
            logger: logger.to_owned(),
            hears,
            is_open: AtomicBool::new(true),
            cancelled: context.ct.clone(),
            is_watched,
            shown: Mutex::default(),
        })
    }

    pub(crate) fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire) && !self.cancelled.is_cancelled()
    }

    /// The least severe level that is heard, if any is.
    pub(crate) fn least(&self) -> Option<Level> {
        match self.hears {
            Hears::Session => Some(self.session.level()),
            Hears::Request(level) => level,
        }
    }

    /// Whether messages of `level` are heard.
    pub(crate) fn hears(&self, level: Level) -> bool {
        self.session.takes(Kind::Message) && self.least().is_some_and(|least| level >= least)
    }

    /// Whether progress is heard.
    pub(crate) fn shows(&self) -> bool {
        self.token.is_some() && self.session.takes(Kind::Progress)
    }

    /// Tells a message.
    pub(crate) fn message(
        self: &Arc<Self>,
        level: Level,
        text: &str,
        data: Option<&serde_json::Value>,
    ) {
        if !self.hears(level) {
            tracing::trace!(target: crate::TARGET, %level, "not told: below what the client hears");
            return;
        }
        let message = wire::message(level, &self.logger, text, data, Some(&self.request));
        self.tell(Kind::Message, None, false, message);
    }

    /// Shows progress, which must be more than was shown before.
    pub(crate) fn progress(
        self: &Arc<Self>,
        value: f64,
        total: Option<f64>,
        message: &str,
        is_final: bool,
    ) {
        let Some(token) = self.token.clone().filter(|_| self.shows()) else { return };
        // Held until the value is on its way, so that no other thread gets a smaller one behind it.
        let shown = &mut self.shown();
        if shown.last.is_some_and(|last| value <= last) {
            tracing::debug!(target: crate::TARGET, value, last = shown.last,
                "not shown: progress does not go forward");
            return;
        }
        if !self.is_open() {
            tracing::debug!(target: crate::TARGET, "not shown: the call has its answer");
            return;
        }
        shown.last = Some(value);
        let text = Some(message).filter(|text| !text.is_empty());
        let progress = wire::progress(token, value, total, text, &self.request);
        self.tell(Kind::Progress, None, is_final, progress);
    }

    /// Tells that a resource or a list has changed, which no request of 2026-07-28 and later may carry.
    pub(crate) fn changed(
        self: &Arc<Self>,
        kind: Kind,
        uri: Option<&str>,
        told: ServerNotification,
    ) {
        let is_wanted = uri.is_none_or(|uri| self.session.is_subscribed(uri));
        if self.has_changes() && self.session.takes(kind) && is_wanted {
            self.tell(kind, uri, false, told);
        } else {
            tracing::debug!(target: crate::TARGET, method = kind.method(),
                "not told: the client has not asked for it");
        }
    }

    /// Whether changes may be told beside the call.
    pub(crate) const fn has_changes(&self) -> bool {
        matches!(self.hears, Hears::Session)
    }

    fn tell(
        self: &Arc<Self>,
        kind: Kind,
        about: Option<&str>,
        is_final: bool,
        notification: ServerNotification,
    ) {
        if !self.is_open() {
            tracing::debug!(target: crate::TARGET, method = kind.method(),
                "not told: the call has its answer");
            return;
        }
        let is_of_call = matches!(kind, Kind::Progress | Kind::Message);
        let topic = Topic {
            call: is_of_call.then_some(self.number),
            kind,
            about: about.map(str::to_owned),
        };
        let warned = self.hears(Level::Warning).then(|| Warned {
            peer: self.peer.clone(),
            request: match self.hears {
                Hears::Session => None,
                Hears::Request(_) => Some((self.number, self.request.clone())),
            },
        });
        let item = Item { notification, peer: self.peer.clone() };
        self.session.add(topic, is_final, item, warned, self.runtime.as_ref());
    }

    /// Ends the call: its progress gets its end, everything goes out, and nothing after that.
    pub(crate) async fn end(self: &Arc<Self>, ending: Ending<'_>) {
        let unfinished = std::mem::take(&mut self.shown().unfinished);
        match ending {
            Ending::Done => unfinished.into_iter().for_each(|progress| self.complete(progress)),
            Ending::Failed(why) if !unfinished.is_empty() => self.fail(why),
            Ending::Failed(_) | Ending::Open => {}
        }
        self.is_open.store(false, Ordering::Release);
        self.session.end(self.number).await;
        if self.shown().last.is_some() {
            tokio::time::sleep(self.session.limits.gap).await;
        }
    }

    /// Shows that a progress has come to its end, where it says what that is.
    pub(crate) fn complete(self: &Arc<Self>, progress: Unfinished) {
        let Unfinished { value, total, message } = progress;
        self.progress(total.unwrap_or(value), total, &message, true);
    }

    /// Tells that a progress has failed, after what it has shown.
    pub(crate) fn fail(self: &Arc<Self>, why: &str) {
        self.session.release(self.number);
        if self.hears(Level::Error) {
            let message = wire::message(Level::Error, &self.logger, why, None, Some(&self.request));
            self.tell(Kind::Message, None, true, message);
        }
    }

    /// Nothing of the call goes out any more.
    pub(crate) fn close(&self) {
        self.is_open.store(false, Ordering::Release);
        self.session.close(Some(self.number));
    }
}
