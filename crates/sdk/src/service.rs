//! Around a server: sessions, levels, and the end of each call.

use std::{borrow::Cow, sync::Arc};

use rmcp::{
    ErrorData, RoleServer, Service,
    model::{
        CallToolRequest, CallToolResult, ClientNotification, ClientRequest, CustomRequest,
        ErrorCode, ProtocolVersion, ServerCapabilities, ServerConfig, ServerResult,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::Value;

use crate::{
    context::{CallState, Ending},
    declared::Declared,
    level::UnknownLevel,
    limits::Limits,
    session::{SUBSCRIPTIONS, Session},
    wire,
};

/// The method by which a client sets the least severe level it gets (2025-11-25 and before).
const SET_LEVEL: &str = "logging/setLevel";

/// A server whose tools can tell their callers what they do.
///
/// It goes around any server of rmcp, once for each session: on stdio around the one server, over HTTP in the factory
/// of servers.
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
/// It answers `logging/setLevel`, declares the capability for messages, and holds a call's answer until everything that
/// the call has told is out.
#[derive(Debug)]
pub struct Notifying<S> {
    server: S,
    session: Arc<Session>,
}

impl<S> Notifying<S> {
    /// Goes around `server`, with the usual [`Limits`].
    pub fn new(server: S) -> Self {
        Self::with_limits(server, Limits::default())
    }

    /// Goes around `server`.
    pub fn with_limits(server: S, limits: Limits) -> Self {
        Self { server, session: Session::new(limits) }
    }

    /// Says which notifications the client of a session takes, for transports that have read its capabilities.
    ///
    /// rmcp does not keep `capabilities.notifications` of an `initialize`; requests of 2026-07-28 and later bring it
    /// along, and need nobody to call this.
    pub fn declare(&self, declared: Declared) {
        self.session.declare(declared);
    }
}

impl<S: Service<RoleServer>> Notifying<S> {
    async fn call_tool(
        &self,
        request: CallToolRequest,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        if let Some(capabilities) = wire::capabilities(&context) {
            self.session.declare(Declared::of(capabilities));
        }
        let session = Arc::clone(&self.session);
        let call = CallState::of(&context, session, &request.params.name, true);
        let call = Arc::new(call.map_err(|level| unknown_level(&level))?);
        context.extensions.insert(Arc::clone(&call));
        // Where the call is abandoned in the middle, nothing of it goes out any more.
        let _closing = Closing(&call);
        let request = ClientRequest::CallToolRequest(request);
        let outcome = self.server.handle_request(request, context).await;
        let told = match &outcome {
            Ok(ServerResult::CallToolResult(result)) if result.is_error == Some(true) => {
                Some(first_text(result))
            }
            Err(error) => Some(error.message.to_string()),
            Ok(_) => None,
        };
        let ending = match (&outcome, &told) {
            (_, Some(why)) => Ending::Failed(why),
            (Ok(ServerResult::CallToolResult(_)), None) => Ending::Done,
            (_, None) => Ending::Open,
        };
        call.end(ending).await;
        outcome
    }

    async fn subscribe(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
        uri: &str,
        is_wanted: bool,
    ) -> Result<ServerResult, ErrorData> {
        if is_wanted && !self.session.subscribe(uri) {
            let message = format!("a session subscribes to {SUBSCRIPTIONS} resources at most");
            return Err(ErrorData::invalid_params(message, None));
        }
        let outcome = self.server.handle_request(request, context).await;
        let is_refused =
            matches!(&outcome, Err(error) if error.code != ErrorCode::METHOD_NOT_FOUND);
        if !is_wanted || is_refused {
            self.session.unsubscribe(uri);
        }
        if is_refused { outcome } else { Ok(ServerResult::empty(())) }
    }
}

/// Closes a call when it is dropped.
struct Closing<'a>(&'a CallState);

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
        let is_stateless = wire::is_stateless(&context);
        match request {
            ClientRequest::CallToolRequest(request) => self.call_tool(request, context).await,
            ClientRequest::SetLevelRequest(request) if !is_stateless => {
                let level = wire::set_level(&request.params);
                tracing::debug!(target: crate::TARGET, %level, "the client set its level");
                self.session.set_level(level);
                Ok(ServerResult::empty(()))
            }
            ClientRequest::CustomRequest(request)
                if !is_stateless && request.method == SET_LEVEL =>
            {
                Err(refused_level(&request))
            }
            ClientRequest::SubscribeRequest(request) if !is_stateless => {
                let uri = request.params.uri.clone();
                self.subscribe(ClientRequest::SubscribeRequest(request), context, &uri, true).await
            }
            ClientRequest::UnsubscribeRequest(request) if !is_stateless => {
                let uri = request.params.uri.clone();
                let request = ClientRequest::UnsubscribeRequest(request);
                self.subscribe(request, context, &uri, false).await
            }
            request => {
                let mut result = self.server.handle_request(request, context).await?;
                match &mut result {
                    ServerResult::InitializeResult(result) => {
                        with_logging(&mut result.capabilities);
                    }
                    ServerResult::DiscoverResult(result) => {
                        with_logging(&mut result.capabilities);
                    }
                    _ => {}
                }
                Ok(result)
            }
        }
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
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
