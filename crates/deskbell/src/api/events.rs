//! Reports come in, and events are read back.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{Path, RawQuery, State},
    response::{IntoResponse as _, Response},
};
use deskbell_core::EventId;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{
    batch,
    body::JsonBytes,
    problem::Problem,
    query,
    report::{self, Reporter},
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
    let reporter = Reporter {
        identity: identity.as_ref().map_or(Identity::LOCAL, Identity::as_str),
        key: idempotency_key(&headers),
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

/// The header `Idempotency-Key`, which the draft of its standard writes as a quoted string.
fn idempotency_key(headers: &HeaderMap) -> Option<&str> {
    let key = headers.get("idempotency-key")?.to_str().ok()?.trim();
    Some(key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key))
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
    let query = query::events(query.as_deref())?;
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
    Path(id): Path<String>,
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
