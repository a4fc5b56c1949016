//! Calls in an open session, past rmcp's HTTP layer.
//!
//! Nearly every request is such a call, from a client that asks for nothing special; rmcp would check it against much
//! that cannot apply, and open a stream for each answer. Here a call that is answered at once gets its answer as JSON.
//! Any other gets a stream from which its client can resume. What rmcp might refuse goes to rmcp.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientRequest, GetExtensions as _, GetMeta as _, ServerJsonRpcMessage,
    },
    transport::streamable_http_server::session::ServerSseMessage,
};
use tokio::time::timeout;

use super::{is_json, refusal::json_rpc_error, services};
use crate::mcp::sessions::{Reader, Refusal, Session, Sessions};

/// How long an answer may take that is sent as JSON. A client whose connection breaks before cannot resume, so a call
/// that takes longer gets a stream.
const AT_ONCE: Duration = Duration::from_millis(50);

/// The revisions with sessions.
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

const SESSION: &str = "mcp-session-id";
const REVISION: &str = "mcp-protocol-version";
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Serves a request that is a plain call in an open session; gives back what is to go through rmcp.
pub(super) async fn call(
    sessions: &Sessions,
    parts: Parts,
    body: &Bytes,
) -> Result<Response, Parts> {
    let Some((session, message)) = plain_call(sessions, &parts, body) else { return Err(parts) };
    let ClientJsonRpcMessage::Request(mut request) = message else { return Err(parts) };
    request.request.extensions_mut().insert(parts);
    let called = session.call(ClientJsonRpcMessage::Request(request)).await;
    let Ok(mut reader) = called else { return Ok(Refusal::Gone.into()) };
    match timeout(AT_ONCE, reader.sole_answer()).await {
        Ok(Some(answer)) => Ok(json(&answer)),
        Ok(None) | Err(_) => Ok(stream(reader.kept().await, sessions.limits().keep_alive)),
    }
}

/// The session and the message of a request about which rmcp would find nothing.
fn plain_call(
    sessions: &Sessions,
    parts: &Parts,
    body: &Bytes,
) -> Option<(Arc<Session>, ClientJsonRpcMessage)> {
    let headers = &parts.headers;
    let session = headers.get(SESSION)?.to_str().ok()?;
    let is_plain = is_json(parts)
        && accepts_both(headers)
        && is_of_revision(headers)
        && parts.uri.authority().is_none()
        && !headers.contains_key(header::ORIGIN)
        && services::is_reached_locally(headers);
    let session = is_plain.then(|| sessions.live(session)).flatten()?;
    let message = serde_json::from_slice(body).ok()?;
    is_call(&message).then_some((session, message))
}

fn is_of_revision(headers: &HeaderMap) -> bool {
    let mut revisions = headers.get_all(REVISION).iter();
    revisions.all(|revision| REVISIONS.iter().any(|known| known.as_bytes() == revision.as_bytes()))
}

/// Whether both forms of an answer are accepted, without a word on how much.
fn accepts_both(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let types = || accepted.unwrap_or_default().split(',').map(str::trim);
    types().any(|given| given == "application/json")
        && types().any(|given| given == "text/event-stream")
}

fn is_call(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    let opens = matches!(
        request.request,
        ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_)
    );
    !opens && request.request.get_meta().protocol_version().is_none()
}

fn json(answer: &ServerJsonRpcMessage) -> Response {
    match serde_json::to_vec(answer) {
        Ok(body) => {
            let json = HeaderValue::from_static("application/json");
            ([(header::CONTENT_TYPE, json)], Body::from(body)).into_response()
        }
        Err(error) => {
            tracing::error!("an answer is no JSON: {error}");
            let status = http::StatusCode::INTERNAL_SERVER_ERROR;
            json_rpc_error(status, -32603, "the answer cannot be written")
        }
    }
}

fn stream(reader: Reader, keep_alive: Duration) -> Response {
    let events = reader.map(|message| Ok::<_, Infallible>(event(message)));
    let keep_alive = KeepAlive::new().interval(keep_alive).text("keepalive");
    let unbuffered = [(BUFFERING, HeaderValue::from_static("no"))];
    (unbuffered, Sse::new(events).keep_alive(keep_alive)).into_response()
}

fn event(message: ServerSseMessage) -> Event {
    let ServerSseMessage { event_id, message, retry, .. } = message;
    let mut event = Event::default();
    if let Some(id) = event_id {
        event = event.id(id);
    }
    if let Some(retry) = retry {
        event = event.retry(retry);
    }
    let data = message.map(|message| serde_json::to_string(&message));
    match data.transpose() {
        Ok(data) => event.data(data.unwrap_or_default()),
        Err(error) => {
            tracing::error!("a message is no JSON: {error}");
            event.comment("a message could not be written")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(value: &'static str) -> bool {
        let value = HeaderValue::from_static(value);
        accepts_both(&HeaderMap::from_iter([(header::ACCEPT, value)]))
    }

    #[test]
    fn only_what_is_plainly_accepted_goes_the_short_way() {
        assert!(accepts("application/json, text/event-stream"));
        assert!(accepts("text/event-stream,application/json,*/*"));
        for other in ["", "*/*", "application/json", "application/json;q=0, text/event-stream"] {
            assert!(!accepts(other), "{other}");
        }
        assert!(!accepts_both(&HeaderMap::new()));
    }

    #[test]
    fn a_call_that_names_a_revision_of_its_own_or_opens_something_goes_through_rmcp() {
        let message = |text: &str| serde_json::from_str::<ClientJsonRpcMessage>(text).unwrap();
        assert!(is_call(&message(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)));
        for other in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        ] {
            assert!(!is_call(&message(other)), "{other}");
        }
    }
}
