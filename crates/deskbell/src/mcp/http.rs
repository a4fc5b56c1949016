//! MCP over Streamable HTTP: both eras on one endpoint, one endpoint for each profile.
//!
//! rmcp carries the protocol and `sessions` keeps its sessions. What lies around them here: bodies that are no message
//! get the answer that JSON-RPC wants, batches of revision 2025-03-26 are taken apart, and each refusal says why.
//! Tokens are checked outside.

mod batch;
mod direct;
mod refusal;
mod services;

use std::{path::PathBuf, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    response::Response,
    routing::any,
};
use http::{Method, StatusCode, header, request::Parts};
use rmcp::ServerHandler;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use self::{
    refusal::{json_rpc_error, json_rpc_errors_only},
    services::{Service, Services},
};
pub use super::sessions::Limits;
use super::{
    Door,
    sessions::{NotResumed, Refusal, Sessions, refusable},
    told,
};
use crate::{api::segment::Segment, app::App, bridge::MESSAGE_LIMIT};

/// Largest body of a request, in bytes, as on the other transports. A larger one is answered with 413.
pub const BODY_LIMIT: usize = MESSAGE_LIMIT;

/// The folder beside the journal in which sessions are stored.
const SESSIONS: &str = "sessions";

const LAST_EVENT_ID: &str = "last-event-id";

/// Headers that no `initialize` has: a session comes after it, and the era without sessions knows none.
const OF_LATER_REQUESTS: [&str; 2] = ["mcp-session-id", "mcp-method"];

/// The MCP endpoints: `/mcp` for the configured profile and `/mcp/{profile}`. Streams end when `stop` is cancelled.
pub fn router(app: Arc<App>, stop: CancellationToken) -> Router {
    router_of(app, stop, |door| door)
}

/// The MCP endpoints with what `wrap` makes of each connection's [`Door`], such as one with further tools.
pub fn router_of<H: ServerHandler>(
    app: Arc<App>,
    stop: CancellationToken,
    wrap: impl Fn(Door) -> H + Clone + Send + Sync + 'static,
) -> Router {
    let folder = app.journal_folder.as_ref().map(|folder| folder.join(SESSIONS));
    router_within(app, stop, Limits::default(), folder, wrap)
}

/// The same with other limits, and with the sessions stored in `folder`.
pub fn router_within<H: ServerHandler>(
    app: Arc<App>,
    stop: CancellationToken,
    limits: Limits,
    folder: Option<PathBuf>,
    wrap: impl Fn(Door) -> H + Clone + Send + Sync + 'static,
) -> Router {
    let keep_alive = limits.keep_alive;
    let sessions = Sessions::new(limits, folder, app.clock.now().into());
    let aging = tokio::spawn(Sessions::age(Arc::downgrade(&sessions)));
    let notifier = told::notifier(&app.config.borrow());
    let telling = tokio::spawn(told::lists(notifier.clone(), app.channels.clone()));
    let wrap = move |door| notifier.around(wrap(door));
    let services = Services::new(app, stop, Arc::clone(&sessions), keep_alive, wrap);
    let tasks = [aging, telling].map(AbortOnDropHandle::new);
    let endpoints = Endpoints { services, sessions, _tasks: tasks };
    Router::new()
        .route("/mcp", any(serve_default))
        .route("/mcp/{profile}", any(serve_profile))
        .with_state(Arc::new(endpoints))
}

struct Endpoints<H, W> {
    services: Services<H, W>,
    sessions: Arc<Sessions>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

async fn serve_default<H, W>(
    State(endpoints): State<Arc<Endpoints<H, W>>>,
    request: Request,
) -> Response
where
    H: ServerHandler,
    W: Fn(Door) -> H + Clone + Send + Sync + 'static,
{
    let configured = endpoints.services.configured_profile();
    serve(&endpoints, configured, request).await
}

async fn serve_profile<H, W>(
    State(endpoints): State<Arc<Endpoints<H, W>>>,
    Segment(profile): Segment,
    request: Request,
) -> Response
where
    H: ServerHandler,
    W: Fn(Door) -> H + Clone + Send + Sync + 'static,
{
    serve(&endpoints, &profile, request).await
}

async fn serve<H, W>(endpoints: &Endpoints<H, W>, profile: &str, request: Request) -> Response
where
    H: ServerHandler,
    W: Fn(Door) -> H + Clone + Send + Sync + 'static,
{
    let service = match endpoints.services.get(profile, request.headers()) {
        Ok(service) => service,
        Err(invalid) => {
            return json_rpc_error(StatusCode::NOT_FOUND, -32600, &invalid.to_string());
        }
    };
    let is_delete = request.method() == Method::DELETE;
    let response = match *request.method() {
        Method::POST => post(&endpoints.sessions, &service, request).await,
        // rmcp takes an id that is no text for none.
        Method::GET if has_odd_event_id(&request) => Refusal::NotResumed(NotResumed::NoId).into(),
        _ => call(&service, request).await,
    };
    if is_delete && response.status() == StatusCode::ACCEPTED {
        // Nothing goes on behind it, and Python clients warn of 202.
        return Response::builder()
            .status(StatusCode::NO_CONTENT)
            .body(Body::empty())
            .unwrap_or_default();
    }
    json_rpc_errors_only(response).await
}

fn has_odd_event_id(request: &Request) -> bool {
    let id = request.headers().get(LAST_EVENT_ID);
    id.is_some_and(|id| id.to_str().is_err())
}

async fn call<H: ServerHandler>(service: &Service<H>, request: Request) -> Response {
    match refusable(service.handle(request)).await {
        Ok(response) => response.map(Body::new),
        Err(refusal) => refusal.into(),
    }
}

async fn post<H: ServerHandler>(
    sessions: &Sessions,
    service: &Service<H>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = match read(body).await {
        Ok(bytes) => bytes,
        Err(refused) => return refused,
    };
    if bytes.trim_ascii_start().first() != Some(&b'[') {
        return match direct::call(sessions, parts, &bytes).await {
            Ok(response) => response,
            Err(parts) => call_one(service, parts, bytes).await,
        };
    }
    match serde_json::from_slice(&bytes) {
        Ok(items) => batch::serve(service, &parts, items).await,
        Err(error) => parse_error(&error),
    }
}

/// Hands one message to rmcp, which blames the media type for whatever it does not understand: here JSON-RPC is.
async fn call_one<H: ServerHandler>(
    service: &Service<H>,
    mut parts: Parts,
    bytes: Bytes,
) -> Response {
    if !OF_LATER_REQUESTS.iter().any(|header| parts.headers.contains_key(*header)) {
        parts.extensions.insert(told::declared(&bytes));
    }
    let is_json = is_json(&parts);
    let response =
        call(service, Request::from_parts(parts, Body::from(Bytes::clone(&bytes)))).await;
    if response.status() != StatusCode::UNSUPPORTED_MEDIA_TYPE || !is_json {
        return response;
    }
    match serde_json::from_slice::<IgnoredAny>(&bytes) {
        Ok(IgnoredAny) => {
            let text = "Invalid Request: not a JSON-RPC 2.0 message";
            json_rpc_error(StatusCode::BAD_REQUEST, -32600, text)
        }
        Err(error) => parse_error(&error),
    }
}

fn is_json(parts: &Parts) -> bool {
    let media_type = parts.headers.get(header::CONTENT_TYPE);
    media_type.and_then(|value| value.to_str().ok()).is_some_and(|value| {
        let essence = value.split(';').next().unwrap_or_default();
        essence.trim().eq_ignore_ascii_case("application/json")
    })
}

/// The text of such an error names line and column, and never shows the body itself.
fn parse_error(error: &serde_json::Error) -> Response {
    json_rpc_error(StatusCode::BAD_REQUEST, -32700, &format!("Parse error: {error}"))
}

async fn read(body: Body) -> Result<Bytes, Response> {
    axum::body::to_bytes(body, BODY_LIMIT).await.map_err(|error| {
        let too_large = std::error::Error::source(&error)
            .is_some_and(|source| source.is::<http_body_util::LengthLimitError>());
        if too_large {
            let text = format!("Invalid Request: the body is larger than {BODY_LIMIT} bytes");
            json_rpc_error(StatusCode::PAYLOAD_TOO_LARGE, -32600, &text)
        } else {
            let text = "Parse error: the body ended early";
            json_rpc_error(StatusCode::BAD_REQUEST, -32700, text)
        }
    })
}

/// As much of a message as a batch asks for.
#[derive(Deserialize)]
struct Peek {
    #[serde(default)]
    method: Option<String>,
}

fn method(value: &RawValue) -> Option<String> {
    serde_json::from_str::<Peek>(value.get()).ok()?.method
}
