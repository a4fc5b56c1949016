//! The long jobs and how far they are.

use std::sync::Arc;

use axum::{
    Json,
    extract::{RawQuery, State},
    response::{IntoResponse as _, Response},
};
use deskbell_core::{Invalid, RunId, run::RunState};

use super::{
    problem::Problem,
    query::Parameters,
    segment::Segment,
    wire::{RunBody, RunList},
};
use crate::{app::App, journal::RunQuery};

/// Lists runs, the latest change first.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut parameters = Parameters::of(query.as_deref());
    let state = match parameters.take("state").as_deref() {
        None => None,
        Some("open") => Some(RunState::Open),
        Some("ended") => Some(RunState::Ended),
        Some("failed") => Some(RunState::Failed),
        Some(other) => return Err(Invalid::text("state", other, "open, ended or failed").into()),
    };
    let query = RunQuery { id: None, state, limit: parameters.limit()? };
    parameters.end("state, limit")?;
    let runs = app.journal.runs(query).await?;
    Ok(Json(RunList { runs: runs.into_iter().map(Into::into).collect() }).into_response())
}

/// Gives one run.
pub(super) async fn one(
    State(app): State<Arc<App>>,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let id: RunId = id.parse()?;
    let query = RunQuery { id: Some(id.clone()), state: None, limit: 1 };
    let found = app.journal.runs(query).await?.into_iter().next();
    let run = found.ok_or_else(|| Problem::not_found(format!("there is no run {id}")))?;
    Ok(Json(RunBody::from(run)).into_response())
}
