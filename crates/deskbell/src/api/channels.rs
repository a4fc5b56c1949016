//! The configured channels: how they do, and whether they really work.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{RawQuery, State},
    response::{IntoResponse as _, Response},
};
use deskbell_core::{
    ChannelName, Context, Level, Source,
    delivery::DeliveryState,
    event::{Content, Kind},
    quiet::Holds,
};
use http::StatusCode;
use jiff::Timestamp;

use super::{
    deliveries,
    problem::{Problem, VARIABLE_MISSING},
    query::Parameters,
    segment::Segment,
    wire::{ChannelBody, ChannelList, DeliveryBody, LastErrorBody, LeftOutBody, TestBody},
};
use crate::{
    app::App,
    channel_set::{ChannelSet, ReadyChannel},
    config::{self, Config},
    dispatch::{ChannelHealth, Flow},
    intake::Report,
    journal::{Delivery, DeliveryQuery},
    telemetry::Role,
};

/// How long a test waits for the far end when the request does not say.
const TEST_PATIENCE: Duration = Duration::from_secs(20);

/// Lists the configured channels.
pub(super) async fn list(State(app): State<Arc<App>>) -> Response {
    let set = Arc::clone(&app.channels.borrow());
    let health = app.health.borrow().clone();
    let (now, holds) = (app.clock.now(), app.intake.rules_from(None).await.routing.holds.clone());
    let snoozed = &holds.snoozed;
    let channels = set
        .iter()
        .map(|(name, ready)| ChannelBody {
            snoozed_until: snoozed.until(name, now),
            quiet_until: quiet_until(&holds, name, now),
            ..body(name, ready, health.channels.get(name), app.role)
        })
        .collect();
    let problems = problems(&app.config.borrow(), &set);
    let problems = problems.into_iter().map(LeftOutBody::from).collect();
    Json(ChannelList { channels, problems }).into_response()
}

/// What is wrong with the configuration as the daemon sees it, whose environment is not the caller's.
pub(super) fn problems(config: &Config, set: &ChannelSet) -> Vec<config::Problem> {
    config.problems.iter().chain(&set.problems).cloned().collect()
}

/// Until when the quiet hours of a channel last, if it has some now.
fn quiet_until(holds: &Holds, name: &ChannelName, now: Timestamp) -> Option<Timestamp> {
    holds.quiet_of(name)?.end_after(now)
}

fn body(
    name: &ChannelName,
    ready: &ReadyChannel,
    health: Option<&ChannelHealth>,
    role: Role,
) -> ChannelBody {
    let last_error = health.and_then(|health| health.last_error.clone());
    ChannelBody {
        name: name.to_string(),
        kind: ready.kind.about.name.to_owned(),
        flow: health.map_or(Flow::Open, |health| health.flow).as_str().to_owned(),
        per_minute: ready.per_minute,
        in_flight: health.map_or(0, |health| health.in_flight),
        waiting_until: health.and_then(|health| health.waiting_until),
        last_error: last_error.map(|last| LastErrorBody { at: last.at, error: last.error }),
        unseen: unseen(ready, role),
        stand_in: ready.stand_in.as_ref().map(ToString::to_string),
        snoozed_until: None,
        quiet_until: None,
        last_sent_at: health.and_then(|health| health.last_sent_at),
        sent: health.map_or(0, |health| health.sent),
        failed: health.map_or(0, |health| health.failed),
        given_up: health.map_or(0, |health| health.given_up),
    }
}

/// Why nobody sees what a channel is sent, if so.
fn unseen(ready: &ReadyChannel, role: Role) -> Option<String> {
    let is_stderr = ready.kind.about.name == "console";
    let background = "the daemon was started in the background, where nobody reads its stderr";
    let unwatched = (is_stderr && !role.is_watched()).then(|| background.to_owned());
    unwatched.or_else(|| ready.channel.unseen())
}

/// Sends a real message through a channel and gives the far end's answer.
pub(super) async fn test(
    State(app): State<Arc<App>>,
    Segment(name): Segment,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut parameters = Parameters::of(query.as_deref());
    let patience = deliveries::patience(&mut parameters)?.unwrap_or(TEST_PATIENCE);
    parameters.end("wait")?;
    let name: ChannelName = name.parse()?;
    working(&app, &name)?;
    let accepted = app.intake.accept(test_report(&name)).await?;
    // Whoever tests wants to know now. A queue that is full is no harm: it is tried when its pause is over.
    drop(app.trials.try_send(name.clone()));
    let query =
        DeliveryQuery { event: Some(accepted.event.id), limit: 1, ..DeliveryQuery::default() };
    let found = deliveries::settled(&app, query, patience, is_answered).await?.into_iter().next();
    let delivery = found.ok_or_else(|| {
        Problem::new(StatusCode::CONFLICT, "gone", format!("channel `{name}` is gone"))
    })?;
    let delivery = deliveries::body(&app, delivery);
    let body = TestBody {
        outcome: outcome(&delivery).to_owned(),
        error: delivery.latest_error().map(str::to_owned),
        delivery,
    };
    Ok(Json(body).into_response())
}

/// The channel called `name`, if it works.
pub(super) fn working(app: &App, name: &ChannelName) -> Result<Arc<ReadyChannel>, Problem> {
    let set = app.channels.borrow();
    if let Some(ready) = set.get(name) {
        return Ok(Arc::clone(ready));
    }
    let problems = problems(&app.config.borrow(), &set);
    Err(match config::Problem::of(name, &problems) {
        Some(problem) => {
            let sort = if problem.of_environment { VARIABLE_MISSING } else { "channel-left-out" };
            Problem::new(StatusCode::CONFLICT, sort, &problem.text)
        }
        None => {
            let known: Vec<_> = set.iter().map(|(name, _)| name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Problem::not_found(format!("there is no channel `{name}`; configured are: {known}"))
        }
    })
}

fn test_report(name: &ChannelName) -> Report {
    Report {
        key: None,
        level: Level::Info,
        context: Context::default(),
        source: Source { client: Some("deskbell channel test".to_owned()), ..Source::default() },
        content: Content {
            title: Some("Deskbell test".to_owned()),
            text: format!("This is a test of the channel {name}. If you can read it, it works."),
            ..Content::default()
        },
        text_field: "text",
        at_once: true,
        folder: None,
        kind: Kind::Push,
        to: vec![name.clone()],
    }
}

/// Whether the far end answered, or the attempt failed.
fn is_answered(delivery: &Delivery) -> bool {
    match delivery.state {
        DeliveryState::Pending => delivery.attempt_count > 0,
        DeliveryState::InFlight => false,
        DeliveryState::Sent | DeliveryState::GivenUp | DeliveryState::Superseded => true,
    }
}

fn outcome(delivery: &DeliveryBody) -> &'static str {
    match delivery.state {
        DeliveryState::Sent => "sent",
        DeliveryState::GivenUp | DeliveryState::Superseded => "failed",
        DeliveryState::Pending if delivery.attempt_count > 0 => "failed",
        DeliveryState::Pending | DeliveryState::InFlight => "open",
    }
}
