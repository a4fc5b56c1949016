//! The body of a request: its media type, its size, and how long it may take to arrive.

use std::time::Duration;

use axum::{
    body::Body,
    extract::{FromRequest, Request},
};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;

use super::problem::Problem;

/// Longest body, in bytes. The longest text of an event fits even where every character is escaped.
pub(crate) const BODY_LIMIT: usize = 2 * 1024 * 1024;

/// How much of a body that is too long is still read, in bytes.
const DRAIN_LIMIT: usize = 16 * 1024 * 1024;

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
        match tokio::time::timeout(BODY_TIME, collect(request.into_body())).await {
            Ok(collected) => collected.map(kind),
            Err(_) => Err(Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "too-slow",
                format!("the body did not arrive within {} s", BODY_TIME.as_secs()),
            )),
        }
    }
}

/// The whole of `body`, without a copy where it came in one piece.
async fn collect(mut body: Body) -> Result<Bytes, Problem> {
    let mut whole = Bytes::new();
    let mut pieces = BytesMut::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| incomplete())?.into_data() else {
            continue;
        };
        length += data.len();
        if length > BODY_LIMIT + DRAIN_LIMIT {
            break;
        }
        if length > BODY_LIMIT {
            // A client that is still sending would not see the answer, so the rest is taken and thrown away.
            continue;
        }
        if whole.is_empty() && pieces.is_empty() {
            whole = data;
        } else {
            pieces.extend_from_slice(&std::mem::take(&mut whole));
            pieces.extend_from_slice(&data);
        }
    }
    if length > BODY_LIMIT {
        return Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too-large",
            format!("the body is larger than {BODY_LIMIT} bytes"),
        ));
    }
    Ok(if pieces.is_empty() { whole } else { pieces.freeze() })
}

fn incomplete() -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "incomplete", "the body did not arrive whole")
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

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    async fn collected(pieces: Vec<Vec<u8>>) -> Result<Bytes, Problem> {
        let pieces = pieces.into_iter().map(Ok::<_, std::convert::Infallible>);
        collect(Body::from_stream(stream::iter(pieces))).await
    }

    #[tokio::test]
    async fn pieces_are_put_together() {
        assert_eq!(collected(vec![]).await.unwrap(), "");
        assert_eq!(collected(vec![b"a".to_vec()]).await.unwrap(), "a");
        let pieces = vec![b"a".to_vec(), vec![], b"bc".to_vec(), b"d".to_vec()];
        assert_eq!(collected(pieces).await.unwrap(), "abcd");
    }

    #[tokio::test]
    async fn a_body_may_have_exactly_the_longest_length() {
        assert_eq!(collected(vec![vec![0; BODY_LIMIT]]).await.unwrap().len(), BODY_LIMIT);
        let longer = collected(vec![vec![0; BODY_LIMIT], vec![0]]).await;
        assert_eq!(longer.unwrap_err().body().status, 413);
    }
}
