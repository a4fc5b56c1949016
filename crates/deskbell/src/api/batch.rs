//! Many reports in one request: a line each, and a line of answer for each.

use axum::response::{IntoResponse as _, Response};
use deskbell_core::{Invalid, event::Kind};
use futures_util::future::join_all;
use http::{StatusCode, header};

use super::{
    problem::Problem,
    report::{self, KEY_LIMIT, Reporter},
    wire::AcceptedBody,
};
use crate::{app::App, intake::Report};

/// Most reports in one request.
pub(super) const BATCH_LIMIT: usize = 1_000;

/// Room for the number of a line behind a key, in bytes: blank lines count too.
const NUMBER_ROOM: usize = 8;

/// Accepts the reports in `body`, each for itself: one that is refused keeps no other from being accepted.
pub(super) async fn accept(
    app: &App,
    body: &[u8],
    reporter: &Reporter<'_>,
) -> Result<Response, Problem> {
    if let Some(key) = reporter.key {
        check_key(key)?;
    }
    let reports: Vec<_> = body
        .split(|byte| *byte == b'\n')
        .zip(1_usize..)
        .filter(|(line, _)| !line.trim_ascii().is_empty())
        .take(BATCH_LIMIT + 1)
        .map(|(line, number)| {
            // The key in the head is one for the request, so each line has its number behind it.
            let key = reporter.key.map(|key| format!("{key}:{number}"));
            report::read(line, &Reporter { key: key.as_deref(), ..reporter.clone() })
        })
        .collect();
    if reports.len() > BATCH_LIMIT {
        let detail = format!("the body has more than {BATCH_LIMIT} reports");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-many", detail));
    }
    let mut answers = String::new();
    for group in groups(reports) {
        // What is accepted at the same time shares the journal's flush.
        for answer in join_all(group.into_iter().map(|report| answer(app, report))).await {
            answers.push_str(&answer);
            answers.push('\n');
        }
    }
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], answers).into_response())
}

/// Refuses a key that is blank or leaves no room for the number of a line.
fn check_key(key: &str) -> Result<(), Invalid> {
    if key.trim().is_empty() {
        return Err(Invalid::text("Idempotency-Key", key, "a key that is not blank"));
    }
    let room = KEY_LIMIT - NUMBER_ROOM;
    if key.len() > room {
        return Err(Invalid::too_long("Idempotency-Key", key.len(), room, "bytes before lines"));
    }
    Ok(())
}

/// Reports that may be accepted at the same time. The steps of a run are alone, because their order counts.
fn groups(reports: Vec<Result<Report, Problem>>) -> Vec<Vec<Result<Report, Problem>>> {
    let is_step =
        |report: &Result<Report, Problem>| matches!(report, Ok(Report { kind: Kind::Run(_), .. }));
    let mut groups: Vec<Vec<_>> = Vec::new();
    for report in reports {
        match groups.last_mut() {
            Some(group) if !is_step(&report) && !group.first().is_some_and(is_step) => {
                group.push(report);
            }
            _ => groups.push(vec![report]),
        }
    }
    groups
}

/// The line that answers a report.
async fn answer(app: &App, report: Result<Report, Problem>) -> String {
    let accepted = match report {
        Ok(report) => app.intake.accept(report).await.map_err(Problem::from),
        Err(problem) => Err(problem),
    };
    let line = match accepted {
        Ok(accepted) => serde_json::to_string(&AcceptedBody::from(accepted)),
        Err(problem) => serde_json::to_string(problem.body()),
    };
    line.unwrap_or_default()
}
