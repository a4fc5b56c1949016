//! The live stream: one event after the other, as server-sent events or as lines of JSON.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{RawQuery, State},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use deskbell_core::Invalid;
use futures_util::{Stream, StreamExt as _};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;
use tokio_stream::wrappers::IntervalStream;

use super::{
    problem::Problem,
    query::{self, FILTERS, Parameters},
    wire::EventBody,
};
use crate::{app::App, journal::Cursor, live::LiveItem};

/// How often a quiet stream says that it is alive. Proxies end a connection that is silent for a minute.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How a stream is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    /// `text/event-stream`; each `id:` is a cursor.
    Sse,
    /// One JSON object on each line.
    Lines,
}

/// Follows the events that fit, from a place in the journal or from now on.
pub(super) async fn follow(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut parameters = Parameters::of(query.as_deref());
    let filter = query::filter(&mut parameters)?;
    let newest = *app.journal.doorbell().borrow();
    let after = parameters.cursor("after", newest)?;
    parameters.end(&format!("{FILTERS}, after"))?;
    // A browser that reconnects says how far it came; that goes before the address, which stays the same.
    let after = last_event_id(&headers, newest)?.or(after);
    let wire = Wire::wanted(&headers)?;
    let items = app.live.follow(after, filter).map_err(|error| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "viewers", error.to_string())
            .retry_after(Duration::from_secs(1))
    })?;
    let headers = [
        (header::CONTENT_TYPE, wire.media_type()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        // nginx holds a stream back unless it is told not to.
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok((headers, Body::from_stream(frames(items, wire))).into_response())
}

fn last_event_id(headers: &HeaderMap, newest: Cursor) -> Result<Option<Cursor>, Invalid> {
    let Some(id) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let id = id.to_str().unwrap_or_default();
    let field = "Last-Event-ID";
    let cursor = id.parse::<Cursor>().and_then(|cursor| query::place(field, cursor, newest));
    cursor.map(Some).map_err(|refusal| Invalid { field: field.to_owned(), ..refusal })
}

/// The stream's bytes: what `items` brings, with signs of life in between, until it ends.
fn frames(
    items: impl Stream<Item = LiveItem> + Send + 'static,
    wire: Wire,
) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> + Send + 'static {
    let items = items.map(move |item| Some(wire.item(&item))).chain(end());
    // The first sign comes at once, so that the client sees that the stream is open.
    let alive = IntervalStream::new(tokio::time::interval(KEEP_ALIVE));
    let alive = alive.map(move |_| Some(wire.sign_of_life()));
    futures_util::stream::select(alive, items)
        .take_while(|frame| std::future::ready(frame.is_some()))
        .filter_map(|frame| std::future::ready(frame.map(Ok)))
}

/// The mark that the events are over; the signs of life alone would go on for ever.
fn end() -> impl Stream<Item = Option<Bytes>> {
    futures_util::stream::once(std::future::ready(None))
}

impl Wire {
    /// What `Accept` asks for; server-sent events where it does not say.
    fn wanted(headers: &HeaderMap) -> Result<Self, Problem> {
        let Some(accept) = headers.get(header::ACCEPT) else {
            return Ok(Self::Sse);
        };
        let accept = accept.to_str().unwrap_or_default().to_ascii_lowercase();
        let kinds = accept.split(',').map(|part| part.split(';').next().unwrap_or_default().trim());
        for kind in kinds {
            match kind {
                "text/event-stream" | "text/*" | "*/*" => return Ok(Self::Sse),
                "application/x-ndjson" | "application/jsonl" | "application/*" => {
                    return Ok(Self::Lines);
                }
                _ => {}
            }
        }
        Err(Problem::new(
            StatusCode::NOT_ACCEPTABLE,
            "not-acceptable",
            "the stream is text/event-stream or application/x-ndjson",
        ))
    }

    const fn media_type(self) -> HeaderValue {
        match self {
            Self::Sse => HeaderValue::from_static("text/event-stream"),
            Self::Lines => HeaderValue::from_static("application/x-ndjson"),
        }
    }

    const fn sign_of_life(self) -> Bytes {
        match self {
            Self::Sse => Bytes::from_static(b":\n\n"),
            Self::Lines => Bytes::from_static(b"\n"),
        }
    }

    fn item(self, item: &LiveItem) -> Bytes {
        match item {
            LiveItem::Event(entry) => {
                let body = EventBody::of(entry.cursor, &entry.event);
                let json = serde_json::to_string(&body).unwrap_or_default();
                match self {
                    Self::Sse => format!("id: {}\ndata: {json}\n\n", entry.cursor).into(),
                    Self::Lines => format!("{json}\n").into(),
                }
            }
            LiveItem::Lagged { skipped } => {
                let json = json!({ "lagged": { "skipped": skipped } });
                match self {
                    Self::Sse => format!("event: lagged\ndata: {json}\n\n").into(),
                    Self::Lines => format!("{json}\n").into(),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(accept: Option<&'static str>, expected: Option<Wire>) {
        let mut headers = HeaderMap::new();
        if let Some(accept) = accept {
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        }
        assert_eq!(Wire::wanted(&headers).ok(), expected, "{accept:?}");
    }

    #[test]
    fn the_client_chooses_how_the_stream_is_written() {
        check(None, Some(Wire::Sse));
        check(Some("*/*"), Some(Wire::Sse));
        check(Some("application/x-ndjson"), Some(Wire::Lines));
        check(Some("image/png, text/event-stream;q=0.9"), Some(Wire::Sse));
        check(Some("image/png"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_shows_that_it_is_alive_and_ends_with_its_events() {
        let items = futures_util::stream::once(async {
            tokio::time::sleep(KEEP_ALIVE * 2 + Duration::from_secs(1)).await;
            LiveItem::Lagged { skipped: 3 }
        });
        let frames: Vec<_> = frames(items, Wire::Sse).map(Result::unwrap).collect().await;
        assert_eq!(frames.len(), 4);
        assert_eq!(frames.last().unwrap(), "event: lagged\ndata: {\"lagged\":{\"skipped\":3}}\n\n");
        assert!(frames.iter().take(3).all(|frame| frame == ":\n\n"));
    }
}
