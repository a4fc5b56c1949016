//! How the daemon does, for operators, supervisors and `deskbell doctor`.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::StatusCode;
use jiff::Timestamp;

use super::{
    channels,
    problem::Problem,
    wire::{LeftOutBody, StatusBody},
};
use crate::{
    app::App,
    disk::{Room, Verdict},
    journal::{EventQuery, Write},
};

/// Says that the process answers; for supervisors, without a token.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// Says whether reports are accepted: the journal is read, its writer takes a transaction, and there is room for more.
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    app.journal.events(EventQuery::first(1)).await?;
    // Nothing is older than the beginning of time: the transaction goes the whole way and changes nothing.
    let nothing = Write::Prune { before: Timestamp::MIN, limit: 0 };
    app.journal.commit(vec![nothing]).await?;
    match room(&app).await {
        Some(room) => enough(room),
        None => Ok(()),
    }
    .map(|()| "ready\n")
}

/// The room that the journal has, where it can be told.
async fn room(app: &App) -> Option<Room> {
    let folder = app.journal_folder.clone()?;
    // A network's disk may take its time.
    tokio::task::spawn_blocking(move || Room::of(&folder).ok()).await.ok()?
}

fn enough(room: Room) -> Result<(), Problem> {
    if room.verdict() == Verdict::Full {
        let detail = format!("the journal's disk is nearly full: {room}; {}", room.needed());
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "disk", detail));
    }
    Ok(())
}

/// Gives the particulars of the daemon.
pub(super) async fn status(State(app): State<Arc<App>>) -> Response {
    let room = room(&app).await;
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
        disk_free_bytes: room.map(|room| room.free_bytes),
        problems: channels::problems(&config, &set).into_iter().map(LeftOutBody::from).collect(),
    })
    .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_nearly_full_makes_the_daemon_unready_and_names_the_figures() {
        const MIB: u64 = 1024 * 1024;
        let room = |free_bytes| Room { free_bytes, total_bytes: 64 * MIB };
        assert!(enough(room(16 * MIB)).is_ok());
        let problem = enough(room(15 * MIB)).unwrap_err();
        assert_eq!(problem.body().status, 503);
        assert_eq!(
            problem.body().detail,
            "the journal's disk is nearly full: 15.0 MiB free of 64.0 MiB; at least 16 MiB are needed"
        );
    }
}
