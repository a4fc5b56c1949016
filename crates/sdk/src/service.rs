//! Around a server: sessions, levels, subscriptions, and the end of each call.

use std::{
    borrow::Cow,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use rmcp::{
    ErrorData, RoleServer, Service,
    model::{
        CallToolResult, ClientNotification, ClientRequest, CustomRequest, CustomResult, ErrorCode,
        ProtocolVersion, ServerCapabilities, ServerConfig, ServerResult,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::Value;

use crate::{
    call::{Call, Ending},
    client::Client,
    declared::Declared,
    level::UnknownLevel,
    limits::Limits,
    listening::Listening,
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
/// of servers, where they share a [`Notifier`].
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

impl<S: Service<RoleServer>> Notifying<S> {
    /// Hands `request` to the server as a call, whose messages say they come from `logger`.
    async fn call(
        &self,
        request: ClientRequest,
        mut context: RequestContext<RoleServer>,
        logger: &str,
    ) -> Result<ServerResult, ErrorData> {
        let call = Call::open(&context, Arc::clone(&self.session), logger);
        let call = Arc::new(call.map_err(|level| unknown_level(&level))?);
        context.extensions.insert(Arc::clone(&call));
        // Where the call is abandoned in the middle, nothing of it goes out any more.
        let _closing = Closing(&call);
        let outcome = caught(self.server.handle_request(request, context)).await;
        let told = match &outcome {
            Ok(ServerResult::CallToolResult(result)) if result.is_error == Some(true) => {
                Some(first_text(result))
            }
            Err(error) => Some(error.message.to_string()),
            Ok(_) => None,
        };
        let ending = match (&outcome, &told) {
            (_, Some(why)) => Ending::Failed(why),
            (
                Ok(ServerResult::InputRequiredResult(_) | ServerResult::CreateTaskResult(_)),
                None,
            ) => Ending::Open,
            (_, None) => Ending::Done,
        };
        call.end(ending).await;
        outcome
    }

    /// Lets the server answer to `resources/subscribe`, or answers for it where it declares that it is answered.
    async fn follow(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
        uri: &str,
    ) -> Result<ServerResult, ErrorData> {
        let followed = self.session.subscriptions(|subscriptions| subscriptions.follow(uri));
        followed.map_err(|text| ErrorData::invalid_params(text, None))?;
        let outcome = self.server.handle_request(request, context).await;
        match &outcome {
            Ok(_) => outcome,
            Err(error) if self.answers_instead(error) => Ok(ServerResult::empty(())),
            Err(_) => {
                self.session.subscriptions(|subscriptions| subscriptions.unfollow(uri));
                outcome
            }
        }
    }

    async fn unfollow(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
        uri: &str,
    ) -> Result<ServerResult, ErrorData> {
        self.session.subscriptions(|subscriptions| subscriptions.unfollow(uri));
        let outcome = self.server.handle_request(request, context).await;
        match &outcome {
            Err(error) if self.answers_instead(error) => Ok(ServerResult::empty(())),
            _ => outcome,
        }
    }

    /// Whether `error` says that the server leaves subscriptions to the session, and declares them.
    fn answers_instead(&self, error: &ErrorData) -> bool {
        let resources = self.server.get_info().capabilities.resources;
        error.code == ErrorCode::METHOD_NOT_FOUND
            && resources.is_some_and(|resources| resources.subscribe == Some(true))
    }

    async fn listen(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let again = (request.clone(), context.clone());
        match self.server.handle_request(request, context).await {
            Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                let (notifier, info) = (self.session.notifier.clone(), self.server.get_info());
                Listening { notifier, info }.handle_request(again.0, again.1).await
            }
            outcome => outcome,
        }
    }

    /// Carries out what narrows what is told beside the calls of a session, if `request` does.
    fn narrow(&self, method: &str, params: Option<&Value>) -> Option<Result<Value, Refused>> {
        match method {
            SUBSCRIBE => Some(self.session.subscribe(params)),
            UNSUBSCRIBE => {
                Some(self.session.subscriptions(|subscriptions| subscriptions.unsubscribe(params)))
            }
            _ => None,
        }
    }

    /// What is answered to in the same way in every era.
    async fn pass(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let logger = match &request {
            ClientRequest::CallToolRequest(request) => request.params.name.to_string(),
            ClientRequest::GetPromptRequest(request) => request.params.name.clone(),
            ClientRequest::ReadResourceRequest(_) => "resources/read".to_owned(),
            ClientRequest::CompleteRequest(_) => "completion/complete".to_owned(),
            ClientRequest::CustomRequest(request) => request.method.clone(),
            _ => return self.server.handle_request(request, context).await,
        };
        self.call(request, context, &logger).await
    }

    /// What a client of 2025-11-25 and before asks, with the state of its session.
    async fn of_session(
        &self,
        request: ClientRequest,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        match &request {
            ClientRequest::InitializeRequest(_) => {
                if let Some(declared) = context.extensions.get::<Declared>() {
                    self.session.declare(declared.clone());
                }
            }
            ClientRequest::PingRequest(_) => {}
            _ => self.meet(&context.peer),
        }
        context.extensions.insert(Client::new(Arc::clone(&self.session)));
        match request {
            ClientRequest::SetLevelRequest(request) => {
                let level = wire::set_level(&request.params);
                tracing::debug!(target: crate::TARGET, %level, "the client set its level");
                self.session.set_level(level);
                Ok(ServerResult::empty(()))
            }
            ClientRequest::CustomRequest(request) if request.method == SET_LEVEL => {
                Err(refused_level(&request))
            }
            ClientRequest::CustomRequest(request) => {
                match self.narrow(&request.method, request.params.as_ref()) {
                    Some(Ok(result)) => Ok(ServerResult::CustomResult(CustomResult::new(result))),
                    Some(Err(refused)) => Err(ErrorData::invalid_params(refused.to_string(), None)),
                    None => self.pass(ClientRequest::CustomRequest(request), context).await,
                }
            }
            ClientRequest::SubscribeRequest(request) => {
                let uri = request.params.uri.clone();
                self.follow(ClientRequest::SubscribeRequest(request), context, &uri).await
            }
            ClientRequest::UnsubscribeRequest(request) => {
                let uri = request.params.uri.clone();
                self.unfollow(ClientRequest::UnsubscribeRequest(request), context, &uri).await
            }
            request => self.pass(request, context).await,
        }
    }

    fn meet(&self, peer: &rmcp::Peer<RoleServer>) {
        if self.session.meet(peer) {
            self.session.notifier.admit(&self.session);
        }
    }
}

/// What `work` gives, or an error if it panics.
async fn caught(
    work: impl Future<Output = Result<ServerResult, ErrorData>>,
) -> Result<ServerResult, ErrorData> {
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

impl<S: Service<RoleServer>> Service<RoleServer> for Notifying<S> {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let mut result = if !wire::is_stateless(&context) {
            Box::pin(self.of_session(request, context)).await
        } else if let ClientRequest::SubscriptionsListenRequest(_) = &request {
            Box::pin(self.listen(request, context)).await
        } else {
            self.session.share_rate(|| self.session.notifier.rate_of(&context));
            Box::pin(self.pass(request, context)).await
        }?;
        match &mut result {
            ServerResult::InitializeResult(result) => with_logging(&mut result.capabilities),
            ServerResult::DiscoverResult(result) => with_logging(&mut result.capabilities),
            _ => {}
        }
        Ok(result)
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match &notification {
            ClientNotification::InitializedNotification(_) => self.meet(&context.peer),
            ClientNotification::CustomNotification(told) => {
                if let Some(outcome) = self.narrow(&told.method, told.params.as_ref()) {
                    tracing::debug!(target: crate::TARGET, ?outcome, "narrowed without an answer");
                    return Ok(());
                }
            }
            _ => {}
        }
        self.server.handle_notification(notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        let mut info = self.server.get_info();
        with_logging(&mut info.capabilities);
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.server.supported_protocol_versions()
    }
}
