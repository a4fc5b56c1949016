//! Which channels are silent for a while.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{RawQuery, State},
    response::{IntoResponse as _, Response},
};
use deskbell_core::{ChannelName, Invalid, quiet::Snoozed};
use http::StatusCode;
use jiff::Timestamp;

use super::{channels, problem::Problem, query::Parameters, wire::SnoozedBody};
use crate::{app::App, config::file::Period, snoozes::SnoozeError};

/// The longest snooze: whoever wants silence for good takes the channel out of the configuration.
pub(crate) const LONGEST: Duration = Duration::from_hours(366 * 24);

const EXPECTED: &str = "a length of time such as 2h, at most 366d, or off";

/// Lists what is snoozed.
pub(super) async fn list(State(app): State<Arc<App>>) -> Response {
    Json(body(&app.snoozes.at(app.clock.now()), None)).into_response()
}

/// Silences a channel, or all, for a while, or ends that.
pub(super) async fn set(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut parameters = Parameters::of(query.as_deref());
    let channel: Option<ChannelName> = parameters.read("channel")?;
    let length = length(&mut parameters)?;
    parameters.end("channel, for")?;
    let now = app.clock.now();
    let until = length.map(|length| now.checked_add(length).unwrap_or(Timestamp::MAX));
    // One that is gone may still be snoozed from before.
    if let Some(name) = &channel
        && until.is_some()
    {
        channels::working(&app, name)?;
    }
    let moved = app.snoozes.set(&*app.journal, channel, until, now).await?;
    Ok(Json(body(&app.snoozes.at(now), Some(moved))).into_response())
}

/// The value of `for`: how long, or not any longer.
fn length(parameters: &mut Parameters<'_>) -> Result<Option<Duration>, Invalid> {
    let Some(text) = parameters.take("for") else {
        return Err(Invalid::value("for", "missing", EXPECTED));
    };
    if text == "off" {
        return Ok(None);
    }
    let length = text.parse().ok().map(|Period(length)| length);
    match length.filter(|length| !length.is_zero() && *length <= LONGEST) {
        Some(length) => Ok(Some(length)),
        None => Err(Invalid::text("for", &text, EXPECTED)),
    }
}

fn body(snoozed: &Snoozed, moved: Option<u64>) -> SnoozedBody {
    let channels = snoozed.channels.iter().map(|(name, until)| (name.to_string(), *until));
    SnoozedBody { all: snoozed.all, channels: channels.collect(), moved }
}

impl From<SnoozeError> for Problem {
    fn from(error: SnoozeError) -> Self {
        match error {
            SnoozeError::Journal(error) => error.into(),
            SnoozeError::File { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "snooze", error.to_string())
            }
        }
    }
}
