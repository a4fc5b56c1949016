//! The body of a request: its media type, its size, and how long it may take to arrive.

use std::time::Duration;

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::problem::Problem;

/// Longest body, in bytes. The longest text of an event fits even where every character is escaped.
pub(crate) const BODY_LIMIT: usize = 2 * 1024 * 1024;

/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);

/// A body of JSON.
pub(crate) enum JsonBytes {
    /// One JSON object. Also what says nothing of its type.
    One(Bytes),
    /// One JSON object on each line.
    Lines(Bytes),
}

impl JsonBytes {
    /// The body, where only one object is taken.
    pub(crate) fn one(self) -> Result<Bytes, Problem> {
        match self {
            Self::One(body) => Ok(body),
            Self::Lines(_) => Err(wrong_type("application/x-ndjson")),
        }
    }
}

impl<S: Sync> FromRequest<S> for JsonBytes {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let kind = kind(request.headers())?;
        let body = Limited::new(request.into_body(), BODY_LIMIT).collect();
        match tokio::time::timeout(BODY_TIME, body).await {
            Ok(Ok(collected)) => Ok(kind(collected.to_bytes())),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too-large",
                format!("the body is larger than {BODY_LIMIT} bytes"),
            )),
            Ok(Err(_)) => Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "incomplete",
                "the body did not arrive whole",
            )),
            Err(_) => Err(Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "too-slow",
                format!("the body did not arrive within {} s", BODY_TIME.as_secs()),
            )),
        }
    }
}

/// What the media type says of the body.
fn kind(headers: &HeaderMap) -> Result<fn(Bytes) -> JsonBytes, Problem> {
    let Some(given) = headers.get(header::CONTENT_TYPE) else {
        return Ok(JsonBytes::One);
    };
    let given = given.to_str().unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    match essence.to_ascii_lowercase().as_str() {
        "application/json" => Ok(JsonBytes::One),
        "application/x-ndjson" | "application/jsonl" => Ok(JsonBytes::Lines),
        _ => Err(wrong_type(given)),
    }
}

fn wrong_type(given: &str) -> Problem {
    let given = deskbell_core::text::one_line(given);
    Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "media-type",
        format!(
            "the header `Content-Type` is `{given}`; expected application/json, or application/x-ndjson for many \
             reports"
        ),
    )
}
