//! MCP over Streamable HTTP: both eras on one endpoint, one endpoint for each profile.
//!
//! rmcp carries the protocol. What lies around it here: bodies that are no message get the answer that JSON-RPC
//! wants, batches of revision 2025-03-26 are taken apart, and sessions are counted. Tokens are checked outside.

mod batch;
mod refusal;

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    response::Response,
    routing::any,
};
use deskbell_core::Invalid;
use http::{HeaderMap, Method, StatusCode, header, request::Parts, uri::Authority};
use rmcp::{
    ServerHandler,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use url::Url;

use self::refusal::{json_rpc_error, json_rpc_errors_only};
use super::{
    Connection, Door,
    profiles::{self, Profile},
};
use crate::{api::segment::Segment, app::App, bridge::MESSAGE_LIMIT};

/// Largest body of a request, in bytes, as on the other transports. A larger one is answered with 413.
pub const BODY_LIMIT: usize = MESSAGE_LIMIT;

/// How many sessions there may be at once. The next `initialize` is answered with 503.
pub const SESSION_LIMIT: usize = 1000;

/// When a client that found no room for its session may ask again, in seconds.
const RETRY_AFTER: &str = "60";

/// How long a session may be silent before it is forgotten. Long, because rmcp counts messages and not open calls,
/// and a call may wait for a person.
const SESSION_IDLE: Duration = Duration::from_secs(24 * 60 * 60);

/// Names under which a client on the same machine reaches it.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

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
    // In the place of one of our own: ARCHITECTURE.md says under "What falls short" what that costs.
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SESSION_IDLE);
    let endpoints = Endpoints { app, stop, wrap, sessions: Arc::new(sessions) };
    Router::new()
        .route("/mcp", any(serve_default))
        .route("/mcp/{profile}", any(serve_profile))
        .with_state(Arc::new(endpoints))
}

struct Endpoints<W> {
    app: Arc<App>,
    stop: CancellationToken,
    wrap: W,
    sessions: Arc<LocalSessionManager>,
}

/// rmcp's service for one request.
type Service<H> = StreamableHttpService<H, LocalSessionManager>;

async fn serve_default<H, W>(
    State(endpoints): State<Arc<Endpoints<W>>>,
    request: Request,
) -> Response
where
    H: ServerHandler,
    W: Fn(Door) -> H + Clone + Send + Sync + 'static,
{
    let configured = endpoints.app.config.borrow().mcp.profile.clone();
    serve(&endpoints, configured.as_deref().unwrap_or(profiles::DEFAULT), request).await
}

async fn serve_profile<H, W>(
    State(endpoints): State<Arc<Endpoints<W>>>,
    Segment(profile): Segment,
    request: Request,
) -> Response
where
    H: ServerHandler,
    W: Fn(Door) -> H + Clone + Send + Sync + 'static,
{
    serve(&endpoints, &profile, request).await
}

async fn serve<H, W>(endpoints: &Endpoints<W>, profile: &str, request: Request) -> Response
where
    H: ServerHandler,
    W: Fn(Door) -> H + Clone + Send + Sync + 'static,
{
    let service = match endpoints.service(profile, request.headers()) {
        Ok(service) => service,
        Err(invalid) => {
            return json_rpc_error(StatusCode::NOT_FOUND, -32600, &invalid.to_string());
        }
    };
    let is_delete = request.method() == Method::DELETE;
    let response = match *request.method() {
        Method::POST => endpoints.post(service, request).await,
        _ => call(service, request).await,
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

async fn call<H: ServerHandler>(service: Service<H>, request: Request) -> Response {
    let Ok(response) = service.oneshot(request).await;
    response.map(Body::new)
}

impl<H, W> Endpoints<W>
where
    H: ServerHandler,
    W: Fn(Door) -> H + Clone + Send + Sync + 'static,
{
    /// The service for a request with `headers`, by the newest configuration.
    fn service(&self, profile: &str, headers: &HeaderMap) -> Result<Service<H>, Invalid> {
        let config = Arc::clone(&self.app.config.borrow());
        let profile: &'static Profile = profiles::find(profile)?;
        let names = config.mcp.tool_names;
        let (app, wrap) = (Arc::clone(&self.app), self.wrap.clone());
        let make =
            move || Ok(wrap(Door::new(Arc::clone(&app), profile, names, Connection::default())));
        let hosts = LOOPBACK.map(str::to_owned).into_iter();
        let hosts =
            hosts.chain(config.serve.allowed_hosts.clone()).chain(named_by_address(headers));
        let origins = LOOPBACK
            .iter()
            .flat_map(|host| ["http", "https"].map(|scheme| format!("{scheme}://{host}:*")));
        let options = StreamableHttpServerConfig::default()
            .with_cancellation_token(self.stop.clone())
            .with_max_request_body_bytes(BODY_LIMIT)
            .with_allowed_hosts(hosts)
            .with_allowed_origins(
                origins.chain(config.serve.allowed_origins.iter().map(|o| with_port(o))),
            )
            .enforce_origin_validation();
        Ok(StreamableHttpService::new(make, Arc::clone(&self.sessions), options))
    }

    async fn post(&self, service: Service<H>, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let bytes = match read(body).await {
            Ok(bytes) => bytes,
            Err(refused) => return refused,
        };
        match Sort::of(&bytes) {
            // The text of the error names line and column, and never shows the body itself.
            Err(error) => {
                json_rpc_error(StatusCode::BAD_REQUEST, -32700, &format!("Parse error: {error}"))
            }
            Ok(Sort::Batch(items)) => batch::serve(service, &parts, items).await,
            Ok(Sort::Opening) if self.is_full().await => {
                let mut response = json_rpc_error(
                    StatusCode::SERVICE_UNAVAILABLE,
                    -32603,
                    &format!("there are {SESSION_LIMIT} sessions already; try again later"),
                );
                let later = header::HeaderValue::from_static(RETRY_AFTER);
                response.headers_mut().insert(header::RETRY_AFTER, later);
                response
            }
            Ok(Sort::Opening | Sort::Other) => call_one(service, parts, bytes).await,
        }
    }

    async fn is_full(&self) -> bool {
        self.sessions.sessions.read().await.len() >= SESSION_LIMIT
    }
}

/// Hands one message to rmcp. What is JSON but no message is an invalid request, where rmcp blames the media type.
async fn call_one<H: ServerHandler>(service: Service<H>, parts: Parts, bytes: Bytes) -> Response {
    let media_type = parts.headers.get(header::CONTENT_TYPE).cloned();
    let response = call(service, Request::from_parts(parts, Body::from(bytes))).await;
    let is_json = media_type.as_ref().and_then(|value| value.to_str().ok()).is_some_and(|value| {
        let essence = value.split(';').next().unwrap_or_default();
        essence.trim().eq_ignore_ascii_case("application/json")
    });
    if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_json {
        let text = "Invalid Request: not a JSON-RPC 2.0 message";
        return json_rpc_error(StatusCode::BAD_REQUEST, -32600, text);
    }
    response
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

/// As much of a body as decides where it goes.
enum Sort {
    /// A batch of revision 2025-03-26.
    Batch(Vec<Box<RawValue>>),
    /// A request that opens a session.
    Opening,
    /// Any other value.
    Other,
}

#[derive(Deserialize)]
struct Peek {
    #[serde(default)]
    method: Option<String>,
}

impl Sort {
    fn of(bytes: &[u8]) -> serde_json::Result<Self> {
        if bytes.trim_ascii_start().first() == Some(&b'[') {
            return serde_json::from_slice(bytes).map(Self::Batch);
        }
        let value: &RawValue = serde_json::from_slice(bytes)?;
        Ok(if method(value).as_deref() == Some("initialize") { Self::Opening } else { Self::Other })
    }
}

fn method(value: &RawValue) -> Option<String> {
    serde_json::from_str::<Peek>(value.get()).ok()?.method
}

/// The host of a request that names an address. Whoever rebinds a DNS name cannot do without that name, so an
/// address is no danger and the listener's own need not be configured.
fn named_by_address(headers: &HeaderMap) -> Option<String> {
    let host: Authority = headers.get(header::HOST)?.to_str().ok()?.parse().ok()?;
    let host = host.host();
    host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok().then(|| host.to_owned())
}

/// An origin with its port, because rmcp takes an entry without one for any port.
fn with_port(origin: &str) -> String {
    match Url::parse(origin) {
        Ok(url) if url.port().is_none() => {
            let port = url.port_or_known_default().unwrap_or_default();
            format!("{}:{port}", origin.trim_end_matches('/'))
        }
        _ => origin.trim_end_matches('/').to_owned(),
    }
}
