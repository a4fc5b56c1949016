//! One call of a tool, as long as it has no answer.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use rmcp::{
    RoleServer,
    model::{ProgressToken, RequestId},
    service::{Peer, RequestContext},
};
use serde_json::Value;
use tokio::{runtime::Handle, time};
use tokio_util::sync::CancellationToken;

use crate::{
    declared::Declared,
    level::Level,
    lock,
    outbox::{Kind, Word},
    session::{Item, Session, Warned},
    wire,
};

/// One call of a tool, as long as it has no answer.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) session: Arc<Session>,
    /// Where the call came in: a tool may go on in threads that have no runtime.
    runtime: Option<Handle>,
    peer: Peer<RoleServer>,
    number: u64,
    request: RequestId,
    token: Option<ProgressToken>,
    /// What messages of the call say they come from: the tool's name.
    logger: String,
    era: Era,
    /// Cancelled when the client cancels the request, and when the answer goes out.
    cancelled: CancellationToken,
    /// Progress that its tool has let go of without a word about its end.
    unfinished: Mutex<Vec<Unfinished>>,
}

/// Who decides what is heard.
#[derive(Debug)]
enum Era {
    /// The session (2025-11-25 and before).
    Session,
    /// The request (2026-07-28 and later): its client's capabilities, and the least severe level; none hears nothing.
    Request(Declared, Option<Level>),
}

/// Progress whose end depends on how the call ends.
#[derive(Debug)]
pub(crate) struct Unfinished {
    pub(crate) value: f64,
    pub(crate) total: Option<f64>,
    pub(crate) message: String,
}

impl Unfinished {
    /// The value that it comes to if all goes well.
    fn whole(&self) -> f64 {
        self.total.unwrap_or(self.value)
    }
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

impl Call {
    /// # Errors
    /// Gives the level that the request asks for, if there is no such level.
    pub(crate) fn open(
        context: &RequestContext<RoleServer>,
        session: Arc<Session>,
        logger: &str,
    ) -> Result<Self, Value> {
        let era = if wire::is_stateless(context) {
            let declared = wire::capabilities(context).map(Declared::of).unwrap_or_default();
            Era::Request(declared, wire::wanted_level(context)?)
        } else {
            Era::Session
        };
        Ok(Self {
            number: session.open(),
            session,
            runtime: Handle::try_current().ok(),
            peer: context.peer.clone(),
            request: context.id.clone(),
            token: context.meta.get_progress_token(),
            logger: logger.to_owned(),
            era,
            cancelled: context.ct.clone(),
            unfinished: Mutex::default(),
        })
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.cancelled.is_cancelled() && self.session.is_open(self.number)
    }

    fn takes(&self, kind: Kind) -> bool {
        match &self.era {
            Era::Session => self.session.takes(kind),
            Era::Request(declared, _) => declared.takes(kind),
        }
    }

    /// Whether messages of `level` are heard.
    pub(crate) fn hears(&self, level: Level) -> bool {
        let least = match &self.era {
            Era::Session => Some(self.session.level()),
            Era::Request(_, least) => *least,
        };
        least.is_some_and(|least| level >= least) && self.takes(Kind::Message)
    }

    /// Whether progress is heard.
    pub(crate) fn shows(&self) -> bool {
        self.token.is_some() && self.takes(Kind::Progress)
    }

    /// Tells a message.
    pub(crate) fn message(&self, level: Level, word: Word, text: &str, data: Option<&Value>) {
        if !self.hears(level) || self.cancelled.is_cancelled() {
            tracing::trace!(target: crate::TARGET, %level, "not told: the client does not hear it");
            return;
        }
        let notification = wire::message(level, &self.logger, text, data, Some(&self.request));
        let item = Item { notification, peer: self.peer.clone(), value: None };
        self.session.tell(self.number, word, item, self.runtime.as_ref());
    }

    /// Shows progress, where it is more than was shown before.
    pub(crate) fn progress(&self, value: f64, total: Option<f64>, message: &str, word: Word) {
        let token = self.token.clone().filter(|_| self.shows() && !self.cancelled.is_cancelled());
        let Some(token) = token else { return };
        let text = Some(message).filter(|text| !text.is_empty());
        self.session.show(self.number, word, value, self.runtime.as_ref(), |value| Item {
            notification: wire::progress(token, value, total, text, &self.request),
            peer: self.peer.clone(),
            value: Some(value),
        });
    }

    /// Where another progress of the call begins: behind what was shown, and behind what was let go of.
    pub(crate) fn base(&self) -> f64 {
        let unfinished = std::mem::take(&mut *lock(&self.unfinished));
        let shown = self.session.progress_of(self.number);
        unfinished.iter().map(Unfinished::whole).fold(shown, f64::max)
    }

    /// Takes a progress whose end depends on how the call ends.
    pub(crate) fn let_go(&self, unfinished: Unfinished) {
        lock(&self.unfinished).push(unfinished);
    }

    /// Shows that a progress has come to its end, where it says what that is.
    pub(crate) fn complete(&self, progress: &Unfinished) {
        self.progress(progress.whole(), progress.total, &progress.message, Word::Last);
    }

    /// Tells that a progress has failed, after what it has shown.
    pub(crate) fn fail(&self, why: &str) {
        self.session.release(self.number);
        self.message(Level::Error, Word::Last, why, None);
    }

    /// Ends the call: its progress gets its end, everything goes out, and nothing after that.
    pub(crate) async fn end(&self, ending: Ending<'_>) {
        let unfinished = std::mem::take(&mut *lock(&self.unfinished));
        match ending {
            Ending::Done => unfinished.iter().for_each(|progress| self.complete(progress)),
            Ending::Failed(why) if !unfinished.is_empty() => self.fail(why),
            Ending::Failed(_) | Ending::Open => {}
        }
        let warned = match &self.era {
            // A session is warned beside its calls.
            Era::Session => None,
            // On this request's stream it is now or never.
            Era::Request(..) => self
                .hears(Level::Warning)
                .then(|| Warned { peer: self.peer.clone(), request: Some(self.request.clone()) }),
        };
        let has_shown_progress = self.session.end(self.number, warned).await;
        let gap = self.session.notifier.limits().gap;
        if has_shown_progress && gap > Duration::ZERO {
            time::sleep(gap).await;
        }
    }

    /// Nothing of the call goes out any more.
    pub(crate) fn close(&self) {
        self.session.close(self.number);
    }
}
