//! What is on its way to a channel, what got there, and what is to be tried again.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{RawQuery, State},
    response::{IntoResponse as _, Response},
};
use deskbell_core::{DeliveryId, Invalid, delivery::DeliveryState, route};
use http::StatusCode;
use jiff::Timestamp;
use tokio::time::Instant;

use super::{
    problem::Problem,
    query::Parameters,
    segment::Segment,
    wire::{DeliveryBody, DeliveryList},
};
use crate::{
    app::App,
    dispatch::{ChannelHealth, Flow},
    journal::{Ack, Delivery, DeliveryQuery, JournalError, Write},
};

/// The longest wait for deliveries that a request may ask for.
const PATIENCE_MAX: Duration = Duration::from_secs(60);

/// How often a wait looks again although nothing was heard: another process may have recorded the outcome.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The least time between two looks, however often the journal's bell rings.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// Lists deliveries; with `wait`, once all that are found are settled or the time is over.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut parameters = Parameters::of(query.as_deref());
    let query = DeliveryQuery {
        event: parameters.read("event")?,
        channel: parameters.read("channel")?,
        state: parameters.read("state")?,
        limit: parameters.limit()?,
    };
    let patience = patience(&mut parameters)?;
    parameters.end("event, channel, state, wait, limit")?;
    let deliveries = match patience {
        None => app.journal.deliveries(query).await?,
        Some(patience) => settled(&app, query, patience, is_settled).await?,
    };
    let deliveries = deliveries.into_iter().map(|delivery| body(&app, delivery)).collect();
    Ok(Json(DeliveryList { deliveries }).into_response())
}

/// The value of `wait`, in seconds.
pub(super) fn patience(parameters: &mut Parameters<'_>) -> Result<Option<Duration>, Invalid> {
    let Some(text) = parameters.take("wait") else {
        return Ok(None);
    };
    let seconds = text.parse().ok().filter(|seconds| *seconds <= PATIENCE_MAX.as_secs());
    let seconds = seconds.ok_or_else(|| {
        let expected = format!("whole seconds, at most {}", PATIENCE_MAX.as_secs());
        Invalid::text("wait", &text, expected)
    })?;
    Ok(Some(Duration::from_secs(seconds)))
}

const fn is_settled(delivery: &Delivery) -> bool {
    delivery.state.is_settled()
}

/// Reads deliveries, once each is `enough` or `patience` is over.
pub(super) async fn settled(
    app: &App,
    query: DeliveryQuery,
    patience: Duration,
    enough: impl Fn(&Delivery) -> bool,
) -> Result<Vec<Delivery>, JournalError> {
    let deadline = Instant::now() + patience;
    let mut bell = app.journal.doorbell();
    loop {
        // The bell is marked as heard before the look, so that what is recorded in between rings again.
        bell.mark_unchanged();
        let deliveries = app.journal.deliveries(query.clone()).await?;
        if deliveries.iter().all(&enough) || Instant::now() >= deadline {
            return Ok(deliveries);
        }
        tokio::time::sleep_until((Instant::now() + LOOK_PAUSE).min(deadline)).await;
        tokio::select! {
            _ = bell.changed() => {}
            () = tokio::time::sleep_until((Instant::now() + LOOK_AGAIN).min(deadline)) => {}
        }
    }
}

/// Gives one delivery.
pub(super) async fn one(
    State(app): State<Arc<App>>,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let delivery = find(&app, &id.parse()?).await?;
    Ok(Json(body(&app, delivery)).into_response())
}

async fn find(app: &App, id: &DeliveryId) -> Result<Delivery, Problem> {
    let query = DeliveryQuery {
        event: Some(id.event),
        channel: Some(id.channel.clone()),
        state: None,
        limit: 1,
    };
    let found = app.journal.deliveries(query).await?.into_iter().next();
    found.ok_or_else(|| Problem::not_found(format!("there is no delivery {id}")))
}

/// Puts a delivery that was given up back among the due ones.
pub(super) async fn retry(
    State(app): State<Arc<App>>,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let id: DeliveryId = id.parse()?;
    let write = Write::Retry { delivery: id.clone(), at: app.clock.now() };
    let acks = app.journal.commit(vec![write]).await?;
    let delivery = find(&app, &id).await?;
    // With one of a message the others are due again as well, and may be asked for in the same breath.
    let is_due_with_another = delivery.state == DeliveryState::Pending && delivery.lead.is_some();
    if !matches!(acks.first(), Some(Ack::Done(1..))) && !is_due_with_another {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "not-given-up",
            format!(
                "delivery {id} is {}; only one that was given up is tried again",
                delivery.state
            ),
        ));
    }
    Ok(Json(body(&app, delivery)).into_response())
}

/// The delivery as it is written, with what it waits for.
pub(super) fn body(app: &App, delivery: Delivery) -> DeliveryBody {
    let waits_for = (delivery.state == DeliveryState::Pending).then(|| waits_for(app, &delivery));
    let set = app.channels.borrow();
    let stand_in = set.get(&delivery.id.channel).and_then(|ready| ready.stand_in.as_ref());
    let stand_in = stand_in.map(ToString::to_string);
    DeliveryBody { waits_for, stand_in, ..delivery.into() }
}

fn waits_for(app: &App, delivery: &Delivery) -> String {
    let name = &delivery.id.channel;
    if let Some(lead) = delivery.lead {
        return format!("the message that tells it together with event {lead}");
    }
    let is_due = delivery.due_at <= app.clock.now();
    if app.channels.borrow().get(name).is_none() {
        return format!(
            "a working channel of the name `{name}`; there is none in the configuration"
        );
    }
    if !is_due {
        let until = until(delivery.due_at);
        return match delivery.attempt_count {
            0 if let Some(hold) = route::parts(&delivery.reason).1 => format!("{until}, {hold}"),
            0 if delivery.others.is_some() => {
                format!("{until}, so that others of its group are told with it")
            }
            0 => format!("{until}, so that updates of a run are not too frequent"),
            count => format!("{until}, because attempt {count} failed"),
        };
    }
    let health = app.health.borrow();
    health.channels.get(name).map_or_else(|| "its turn".to_owned(), limit)
}

fn limit(health: &ChannelHealth) -> String {
    let until = health.waiting_until.map_or_else(|| "its turn".to_owned(), until);
    match health.flow {
        Flow::Broken => format!("{until}, because too many attempts in a row failed"),
        Flow::Paused => format!("{until}, because the far end asked to be left alone"),
        Flow::Limited => format!("{until}, because the channel's `per_minute` is used up"),
        Flow::Open | Flow::Failing { .. } => until,
    }
}

/// The second, for people: the fields beside it have the exact time.
fn until(at: Timestamp) -> String {
    format!("{at:.0}")
}
