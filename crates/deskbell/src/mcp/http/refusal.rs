//! Errors over HTTP, each with a JSON-RPC body, so that a client can show what is wrong.

use axum::{
    body::{Body, to_bytes},
    response::Response,
};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use crate::mcp::sessions::{NotResumed, Refusal};

/// Longest plain text of an error that is put into a JSON-RPC body, in bytes.
const TEXT_LIMIT: usize = 4 * 1024;

/// When a client that found no room for its session may ask again, in seconds.
const RETRY_AFTER: &str = "60";

impl From<Refusal> for Response {
    fn from(refusal: Refusal) -> Self {
        // 404 says that the session is gone and makes a client open another one, so what is wrong with an event id
        // has other numbers. What an id was is not repeated.
        let (status, code, text) = match refusal {
            Refusal::NoRoom => {
                let text = "there are as many sessions as there may be; try again later";
                (StatusCode::SERVICE_UNAVAILABLE, -32603, text)
            }
            Refusal::Gone => (StatusCode::NOT_FOUND, -32600, "Not Found: Session not found"),
            Refusal::NotResumed(NotResumed::NoId) => {
                (StatusCode::BAD_REQUEST, -32600, "Last-Event-ID: not an id of an event")
            }
            Refusal::NotResumed(NotResumed::OtherSession) => {
                (StatusCode::BAD_REQUEST, -32600, "Last-Event-ID: not an id of this session")
            }
            Refusal::NotResumed(NotResumed::NeverSent) => {
                let text = "Last-Event-ID: no such event was sent in this session";
                (StatusCode::BAD_REQUEST, -32600, text)
            }
            Refusal::NotResumed(NotResumed::Forgotten) => {
                (StatusCode::GONE, -32600, "Last-Event-ID: what came after it is no longer kept")
            }
        };
        let mut response = json_rpc_error(status, code, text);
        if refusal == Refusal::NoRoom {
            let later = HeaderValue::from_static(RETRY_AFTER);
            response.headers_mut().insert(header::RETRY_AFTER, later);
        }
        response
    }
}

/// An error with `status` that answers no request in particular.
pub(super) fn json_rpc_error(status: StatusCode, code: i32, message: &str) -> Response {
    let body =
        json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": message } });
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Puts the plain text of an error into a JSON-RPC body, and leaves every other response as it is.
pub(super) async fn json_rpc_errors_only(response: Response) -> Response {
    let status = response.status();
    let is_json = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
    if is_json || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let text = to_bytes(body, TEXT_LIMIT).await.unwrap_or_default();
    let code = if status.is_server_error() { -32603 } else { -32600 };
    let mut error = json_rpc_error(status, code, &String::from_utf8_lossy(&text));
    for (name, value) in &parts.headers {
        if *name != header::CONTENT_TYPE && *name != header::CONTENT_LENGTH {
            error.headers_mut().append(name, value.clone());
        }
    }
    error
}
