//! Reports come in, and events are read back.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{RawQuery, State},
    response::{IntoResponse as _, Response},
};
use deskbell_core::{EventId, Invalid, text};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{
    batch,
    body::JsonBytes,
    problem::Problem,
    query,
    report::{self, Reporter},
    segment::Segment,
    wire::{AcceptedBody, EventBody, EventPage},
};
use crate::{
    app::App,
    auth::Identity,
    intake::Accepted,
    journal::{Entry, EventQuery},
};

/// Accepts a report.
pub(super) async fn report(
    State(app): State<Arc<App>>,
    identity: Option<Extension<Identity>>,
    headers: HeaderMap,
    body: JsonBytes,
) -> Result<Response, Problem> {
    let identity = identity.map(|Extension(identity)| identity);
    let key = idempotency_key(&headers)?;
    let reporter = Reporter {
        identity: identity.as_ref().map_or(Identity::LOCAL, Identity::as_str),
        may_attach_files: may_attach_files(identity.as_ref(), &app),
        key: key.as_deref(),
        client: client(&headers),
        now: app.clock.now(),
    };
    let body = match body {
        JsonBytes::One(body) => body,
        JsonBytes::Lines(body) => return batch::accept(&app, &body, &reporter).await,
    };
    let report = report::read(&body, &reporter)?;
    let accepted = app.intake.accept(report).await?;
    Ok(answer(accepted))
}

/// Whether files of this machine may be attached: over the local socket, which names nobody, and over TCP only by the
/// user's own programs, where the user wants it.
fn may_attach_files(identity: Option<&Identity>, app: &App) -> bool {
    identity.is_none_or(|identity| {
        identity.as_str() == Identity::LOCAL && app.config.borrow().serve.attach_files
    })
}

/// The header `Idempotency-Key`, which the draft of its standard writes as a quoted string.
///
/// A key that cannot be read is refused: a report without its key would be accepted again each time it is repeated.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Invalid> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(value.as_bytes());
    let key = text.trim();
    if str::from_utf8(value.as_bytes()).is_err() || text::one_line(key) != key {
        return Err(Invalid::text("Idempotency-Key", key, "visible text in UTF-8"));
    }
    let key = key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key);
    Ok(Some(key.to_owned()))
}

/// The first product in the header `User-Agent`, without its version.
fn client(headers: &HeaderMap) -> Option<&str> {
    let agent = headers.get(header::USER_AGENT)?.to_str().ok()?;
    agent.split(['/', ' ']).next().filter(|name| !name.is_empty())
}

fn answer(accepted: Accepted) -> Response {
    let status = if accepted.duplicate { StatusCode::OK } else { StatusCode::CREATED };
    let location = HeaderValue::try_from(format!("/v1/events/{}", accepted.event.id));
    let mut response = (status, Json(AcceptedBody::from(accepted))).into_response();
    if let Ok(location) = location {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// Lists events, a page at a time.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let query = query::events(query.as_deref(), *app.journal.doorbell().borrow())?;
    let limit = query.limit;
    // One more than asked for tells whether there is another page.
    let query = EventQuery { limit: limit + 1, ..query };
    let mut entries = app.journal.events(query).await?;
    let is_more = entries.len() > limit;
    entries.truncate(limit);
    let next = entries.last().filter(|_| is_more).map(|entry| entry.cursor.to_string());
    let events = entries.iter().map(|entry| EventBody::of(entry.cursor, &entry.event)).collect();
    Ok(Json(EventPage { events, next }).into_response())
}

/// Gives one event.
pub(super) async fn one(
    State(app): State<Arc<App>>,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let entry = find(&app, &id).await?;
    Ok(Json(EventBody::of(entry.cursor, &entry.event)).into_response())
}

/// The event with this id.
pub(super) async fn find(app: &App, id: &str) -> Result<Entry, Problem> {
    let id: EventId = id.parse()?;
    let query = EventQuery { id: Some(id), ..EventQuery::first(1) };
    let found = app.journal.events(query).await?.into_iter().next();
    found.ok_or_else(|| Problem::not_found(format!("there is no event {id}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(value: &[u8]) -> Result<Option<String>, String> {
        let value = HeaderValue::from_bytes(value).unwrap();
        idempotency_key(&[("idempotency-key".parse().unwrap(), value)].into_iter().collect())
            .map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_key_in_the_head_is_read_or_refused_and_never_dropped() {
        assert_eq!(key(b" \"k 1\" "), Ok(Some("k 1".to_owned())));
        assert_eq!(key("schlüssel-漢".as_bytes()), Ok(Some("schlüssel-漢".to_owned())));
        assert_eq!(key(b""), Ok(Some(String::new())));
        for bad in [&b"caf\xe9"[..], b"a\tb", "a\u{202e}b".as_bytes(), "\u{9b}".as_bytes()] {
            let refusal = key(bad).unwrap_err();
            assert!(refusal.contains("`Idempotency-Key`"), "{refusal}");
            assert!(refusal.contains("expected visible text"), "{refusal}");
        }
        assert_eq!(idempotency_key(&HeaderMap::new()), Ok(None));
    }
}
