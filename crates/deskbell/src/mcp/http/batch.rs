//! Batches, which revision 2025-03-26 has and no other: each message goes its own way, the answers come on one stream.

use axum::{
    body::{Body, Bytes, to_bytes},
    response::Response,
};
use futures_util::{StreamExt as _, stream};
use http::{HeaderValue, StatusCode, header, request::Parts};
use rmcp::ServerHandler;
use serde_json::value::RawValue;

use crate::bridge::BATCH_LIMIT;

use super::{BODY_LIMIT, Service, call_one, method, refusal::json_rpc_error};

const VERSION_HEADER: &str = "mcp-protocol-version";

/// The revision with batches. A request without a version is of this one.
const REVISION: &str = "2025-03-26";

/// Serves each of `items` as if it had come alone, and merges what they are answered with.
pub(super) async fn serve<H: ServerHandler>(
    service: &Service<H>,
    parts: &Parts,
    items: Vec<Box<RawValue>>,
) -> Response {
    if let Some(problem) = problem(parts, &items) {
        let text = format!("Invalid Request: {problem}");
        return json_rpc_error(StatusCode::BAD_REQUEST, -32600, &text);
    }
    let mut streams = Vec::new();
    for item in items {
        let message = Bytes::copy_from_slice(item.get().as_bytes());
        let response = call_one(service, parts.clone(), message).await;
        match response.status() {
            StatusCode::ACCEPTED => {}
            StatusCode::OK if is_stream(&response) => {
                streams.push(response.into_body().into_data_stream().boxed());
            }
            // What holds for the whole request, such as a session that is gone.
            StatusCode::NOT_FOUND | StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => {
                return response;
            }
            _ => streams.push(as_event(response).await.into_data_stream().boxed()),
        }
    }
    if streams.is_empty() {
        let mut accepted = Response::new(Body::empty());
        *accepted.status_mut() = StatusCode::ACCEPTED;
        return accepted;
    }
    // Each frame of these streams is a whole event, so merging them frame by frame keeps events whole.
    let mut response = Response::new(Body::from_stream(stream::select_all(streams)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn problem(parts: &Parts, items: &[Box<RawValue>]) -> Option<String> {
    let version = parts.headers.get(VERSION_HEADER);
    if version.is_some_and(|version| version.as_bytes() != REVISION.as_bytes()) {
        return Some(format!("only revision {REVISION} has batches"));
    }
    if items.is_empty() {
        return Some("an empty batch".to_owned());
    }
    if items.len() > BATCH_LIMIT {
        return Some(format!("a batch of {}; at most {BATCH_LIMIT} are taken", items.len()));
    }
    let opens = items.iter().any(|item| method(item).as_deref() == Some("initialize"));
    opens.then(|| "`initialize` must not be in a batch".to_owned())
}

fn is_stream(response: &Response) -> bool {
    response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"))
}

/// The JSON-RPC error in `response` as an event of the merged stream.
async fn as_event(response: Response) -> Body {
    let response = super::json_rpc_errors_only(response).await;
    let message = to_bytes(response.into_body(), BODY_LIMIT).await.unwrap_or_default();
    let event = [b"data: ".as_slice(), message.as_ref(), b"\n\n"].concat();
    Body::from(event)
}
