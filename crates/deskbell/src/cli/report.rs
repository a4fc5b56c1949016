//! What `notify` and `event` share: the text, the key, the report, and the line that shows what was accepted.

use std::{
    borrow::Cow,
    io::{self, Read},
};

use deskbell_core::{
    Context, Event, Invalid, Source,
    event::{Content, Kind, TEXT_LIMIT},
    run::{Progress, RunStep},
};
use serde_json::Value;
use uuid::Uuid;

use super::{
    Client, Failure, Output,
    output::{QUIET, styled},
};
use crate::{
    api::{
        report::ReportBody,
        wire::{AcceptedBody, EventBody, SourceBody},
    },
    config::{Config, load::Sources},
    terminal,
};

/// Most that is read from stdin, in bytes: the longest text, and the end of its last line.
const STDIN_LIMIT: usize = TEXT_LIMIT + "\r\n".len();

/// The text that `argument` is or names: `-` reads stdin.
pub(super) fn text(argument: String) -> anyhow::Result<String> {
    if argument == "-" { read_text(io::stdin()) } else { Ok(argument) }
}

/// The text that `input` holds, without the white space at its end.
fn read_text(input: impl Read) -> anyhow::Result<String> {
    // One byte more, so that what is too long is refused rather than cut.
    let limit = u64::try_from(STDIN_LIMIT).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    input.take(limit).read_to_end(&mut bytes)?;
    // Before the white space goes: behind it there may be more.
    if bytes.len() > STDIN_LIMIT {
        let expected = format!("at most {TEXT_LIMIT} bytes");
        return Err(Invalid::value("text", "too long", expected).into());
    }
    Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

/// The value of `--data`.
pub(super) fn data(argument: Option<&str>) -> Result<Option<Value>, Failure> {
    let parsed = argument.map(serde_json::from_str).transpose();
    parsed.map_err(|error| {
        Invalid::text("--data", argument.unwrap_or_default(), format!("JSON ({error})")).into()
    })
}

/// Sends `report` with where it comes from and a key of its own, where it has none.
pub(super) async fn send(
    client: &Client,
    report: &mut ReportBody<'_>,
    command: &'static str,
) -> anyhow::Result<AcceptedBody> {
    report.source = Some(source(command));
    report.key.get_or_insert_with(|| Uuid::new_v4().to_string());
    client.post_keyed("/v1/events", report).await
}

fn source(command: &'static str) -> SourceBody<'static> {
    let folder = std::env::current_dir().ok();
    SourceBody {
        client: Some(command.into()),
        session: None,
        project: folder.map(|folder| folder.display().to_string().into()),
        host: gethostname::gethostname().into_string().ok().map(Cow::Owned),
    }
}

/// Shows what was accepted, as everybody sees it who watches (row 16). Whoever reads stdout does not get it.
pub(super) async fn show(
    client: &Client,
    report: &ReportBody<'_>,
    accepted: &AcceptedBody,
    output: &Output,
) {
    // What is wrong with the configuration is told by the daemon, by `config check` and by `doctor`.
    let config = Config::load(&Sources::of_the_daemon(client.paths())).unwrap_or_default();
    let shown = match accepted.duplicate {
        true => kept(client, accepted).await,
        false => event(report, accepted).ok(),
    };
    match shown {
        Some(event) => {
            let line = terminal::coloured_line(&event, &config.tracing);
            line.iter().for_each(|line| output.note(line));
        }
        // It was accepted all the same, and the id tells at least that much.
        None => output.note(accepted.id),
    }
    if accepted.duplicate {
        output.note(styled(QUIET, "it was told before under this key, and is not told again"));
    }
}

/// The event that was accepted before under the report's key, which may say something else.
async fn kept(client: &Client, accepted: &AcceptedBody) -> Option<Event> {
    let body: EventBody<'static> = client.get(&format!("/v1/events/{}", accepted.id)).await.ok()?;
    Event::try_from(&body).ok()
}

/// The event that `report` became.
fn event(report: &ReportBody<'_>, accepted: &AcceptedBody) -> Result<Event, Invalid> {
    let kind = match &report.run {
        None => Kind::Notice,
        Some(step) => Kind::Run(RunStep {
            run: step.id.parse()?,
            phase: step.phase.parse()?,
            step: step.step.clone(),
            progress: accepted.run.as_ref().and_then(|run| run.progress).and_then(known_progress),
            reported_at: accepted.at,
        }),
    };
    let level = report.level.as_deref().map_or(Ok(kind.level()), str::parse)?;
    Ok(Event {
        id: accepted.id,
        at: accepted.at,
        level,
        context: report.context.as_deref().map_or(Ok(Context::default()), str::parse)?,
        source: Source::default(),
        content: Content {
            title: report.title.clone(),
            text: report.text.clone().unwrap_or_default(),
            ..Content::default()
        },
        kind,
        to: Vec::new(),
    })
}

fn known_progress(fraction: f64) -> Option<Progress> {
    Progress::new("progress", fraction).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_refused_even_where_white_space_hides_it() {
        let full = "a".repeat(TEXT_LIMIT);
        for end in ["", "\n", "\r\n"] {
            assert_eq!(read_text(format!("{full}{end}").as_bytes()).unwrap(), full);
        }
        for more in [format!("\n{}", "b".repeat(200)), " ".repeat(3), "c".repeat(TEXT_LIMIT)] {
            let refusal = read_text(format!("{full}{more}").as_bytes()).unwrap_err().to_string();
            assert_eq!(refusal, "`text` is too long; expected at most 262144 bytes");
        }
    }
}
