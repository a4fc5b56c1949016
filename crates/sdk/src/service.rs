//! Around a server: sessions, levels, subscriptions, and the end of each call.

mod handler;

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler,
    model::{CallToolResult, CustomRequest, ErrorCode, ServerCapabilities},
    service::RequestContext,
};
use serde_json::Value;

use crate::{
    call::{Call, Ending},
    client::Client,
    declared::Declared,
    level::UnknownLevel,
    limits::Limits,
    notifier::Notifier,
    session::Session,
    subscriptions::Refused,
    wire,
};

/// The method by which a client sets the least severe level it gets (2025-11-25 and before).
const SET_LEVEL: &str = "logging/setLevel";

/// The methods by which a client narrows what is told beside its calls. No part of the protocol's standard.
const SUBSCRIBE: &str = "notifications/subscribe";
const UNSUBSCRIBE: &str = "notifications/unsubscribe";

/// A server whose tools can tell their callers what they do.
///
/// It goes around any server of rmcp, once for each session: on stdio around the one server, over HTTP in the factory
/// of servers, where they share a [`Notifier`]. It is such a server itself.
///
/// ```no_run
/// use deskbell_sdk::Notifying;
/// use rmcp::{ServerHandler, ServiceExt};
///
/// struct Files;
/// impl ServerHandler for Files {}
///
/// # async fn serve(transport: (tokio::io::DuplexStream, tokio::io::DuplexStream)) -> anyhow::Result<()> {
/// Notifying::new(Files).serve(transport).await?.waiting().await?;
/// # Ok(())
/// # }
/// ```
///
/// What it adds to the server:
/// - It answers `logging/setLevel` and declares the capability for messages.
/// - It holds the answer of a tool, a prompt or a resource until what was told is out, or until the client has not read
///   it for [`Limits::flush`]. A tool that panics has an answer too: an error.
/// - Where the server declares `resources.subscribe` and does not answer `resources/subscribe`, it does; likewise
///   `subscriptions/listen`, for what the server's capabilities declare.
/// - It answers `notifications/subscribe` and `notifications/unsubscribe`, and obeys `capabilities.notifications` of a
///   client: a request of 2026-07-28 and later brings it along. rmcp drops it from `initialize`; a transport that has
///   read it puts a [`Declared`] into the extensions of that request, or calls [`declare`](Self::declare).
#[derive(Debug)]
pub struct Notifying<S> {
    server: S,
    session: Arc<Session>,
}

impl<S> Notifying<S> {
    /// Goes around `server`, with the usual [`Limits`], for a server with one session.
    pub fn new(server: S) -> Self {
        Self::with_limits(server, Limits::default())
    }

    /// Goes around `server`, for a server with one session.
    pub fn with_limits(server: S, limits: Limits) -> Self {
        Self::sharing(server, &Notifier::new(limits))
    }

    /// Goes around `server` for one of the sessions that share `notifier`.
    pub fn sharing(server: S, notifier: &Notifier) -> Self {
        Self { server, session: Session::new(notifier.clone()) }
    }

    /// What this session shares with others.
    pub fn notifier(&self) -> &Notifier {
        &self.session.notifier
    }

    /// Says which notifications the client of the session takes.
    pub fn declare(&self, declared: Declared) {
        self.session.declare(declared);
    }
}

/// How a call ended, as its answer says.
enum Outcome {
    Done,
    Failed(String),
    Open,
}

impl<S: ServerHandler> Notifying<S> {
    /// Lets the server do `work` as a call, whose messages say they come from `logger`.
    async fn call<T, W: Future<Output = Result<T, ErrorData>>>(
        &self,
        mut context: RequestContext<RoleServer>,
        logger: &str,
        work: impl FnOnce(RequestContext<RoleServer>) -> W,
        outcome: impl FnOnce(&T) -> Outcome,
    ) -> Result<T, ErrorData> {
        self.enter(&mut context);
        let call = Call::open(&context, Arc::clone(&self.session), logger);
        let call = Arc::new(call.map_err(|level| unknown_level(&level))?);
        context.extensions.insert(Arc::clone(&call));
        // Where the call is abandoned in the middle, nothing of it goes out any more.
        let _closing = Closing(&call);
        let answer = caught(work(context)).await;
        let outcome = match &answer {
            Ok(answer) => outcome(answer),
            Err(error) => Outcome::Failed(error.message.to_string()),
        };
        let ending = match &outcome {
            Outcome::Done => Ending::Done,
            Outcome::Failed(why) => Ending::Failed(why),
            Outcome::Open => Ending::Open,
        };
        call.end(ending).await;
        answer
    }

    /// Finds the session of a request, or the minute of its client where there is no session.
    fn enter(&self, context: &mut RequestContext<RoleServer>) {
        if wire::is_stateless(context) {
            self.session.share_rate(|| self.session.notifier.rate_of(context));
        } else {
            self.meet(&context.peer);
            context.extensions.insert(Client::new(Arc::clone(&self.session)));
        }
    }

    fn meet(&self, peer: &Peer<RoleServer>) {
        if self.session.meet(peer) {
            self.session.notifier.admit(&self.session);
        }
    }

    /// Whether `error` says that the server leaves subscriptions to the session, and declares them.
    fn answers_instead(&self, error: &ErrorData) -> bool {
        let resources = self.server.get_info().capabilities.resources;
        error.code == ErrorCode::METHOD_NOT_FOUND
            && resources.is_some_and(|resources| resources.subscribe == Some(true))
    }

    /// Carries out what narrows what is told beside the calls of a session, if `method` does.
    fn narrow(&self, method: &str, params: Option<&Value>) -> Option<Result<Value, Refused>> {
        match method {
            SUBSCRIBE => Some(self.session.subscribe(params)),
            UNSUBSCRIBE => {
                Some(self.session.subscriptions(|subscriptions| subscriptions.unsubscribe(params)))
            }
            _ => None,
        }
    }
}

/// What `work` gives, or an error if it panics.
async fn caught<T>(work: impl Future<Output = Result<T, ErrorData>>) -> Result<T, ErrorData> {
    let mut work = pin!(work);
    poll_fn(|context| {
        // A future that has panicked is not polled again.
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.unwrap_or_else(|_panic| {
            tracing::error!(target: crate::TARGET, "a tool panicked");
            Poll::Ready(Err(ErrorData::internal_error("failed unexpectedly", None)))
        })
    })
    .await
}

/// Closes a call when it is dropped.
struct Closing<'a>(&'a Call);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What a tool says about its failure, cut to 500 characters.
fn first_text(result: &CallToolResult) -> String {
    let text = result.content.iter().find_map(|content| content.as_text());
    let text = text.map_or("the tool failed", |text| text.text.as_str());
    text.chars().take(500).collect()
}

fn unknown_level(level: &Value) -> ErrorData {
    let level = level.as_str().map_or_else(|| level.to_string(), str::to_owned);
    ErrorData::invalid_params(UnknownLevel(level.chars().take(40).collect()).to_string(), None)
}

/// Reads the level of a request that rmcp could not read.
fn refused_level(request: &CustomRequest) -> ErrorData {
    let level = request.params.as_ref().and_then(|params| params.get("level"));
    match level {
        Some(level) => unknown_level(level),
        None => ErrorData::invalid_params("level is missing, expected one of the eight", None),
    }
}

fn with_logging(capabilities: &mut ServerCapabilities) {
    capabilities.logging.get_or_insert_default();
}
