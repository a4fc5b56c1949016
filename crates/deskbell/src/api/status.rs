//! How the daemon does, for operators, supervisors and `deskbell doctor`.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use jiff::Timestamp;

use super::{channels, problem::Problem, wire::StatusBody};
use crate::{
    app::App,
    journal::{EventQuery, Write},
};

/// Says that the process answers; for supervisors, without a token.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// Says whether reports are accepted: the journal is read, and its writer takes a transaction.
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    app.journal.events(EventQuery::first(1)).await?;
    // Nothing is older than the beginning of time: the transaction goes the whole way and changes nothing.
    let nothing = Write::Prune { before: Timestamp::MIN, limit: 0 };
    app.journal.commit(vec![nothing]).await?;
    Ok("ready\n")
}

/// Gives the particulars of the daemon.
pub(super) async fn status(State(app): State<Arc<App>>) -> Response {
    let set = Arc::clone(&app.channels.borrow());
    let config = Arc::clone(&app.config.borrow());
    Json(StatusBody {
        version: crate::VERSION.to_owned(),
        pid: std::process::id(),
        now: app.clock.now(),
        started_at: app.started_at,
        cursor: *app.journal.doorbell().borrow(),
        channels: set.iter().count(),
        viewers: app.live.viewers(),
        problems: channels::problems(&config, &set),
    })
    .into_response()
}
