//! Events as a person reads them: one line each.

use anstyle::Style;
use deskbell_core::{Event, Level, event::Kind, run::Progress, text};
use jiff::{Timestamp, Zoned, tz::TimeZone};

use super::{
    output::{ERROR, GOOD, QUIET, WARNING, colour, styled},
    table::Cell,
};

/// Longest text of an event on one line, in characters. `--json` has the whole.
const TEXT_LIMIT: usize = 2_000;

/// What is said in one line: the run's step, the title, the text.
pub(crate) fn summary(event: &Event) -> String {
    let mut parts = Vec::new();
    if let Kind::Run(step) = &event.kind {
        let progress = step.progress.map(|progress| format!(" {progress}"));
        parts.push(format!("{} {}{}", step.run, step.phase, progress.unwrap_or_default()));
    }
    parts.extend(event.content.title.clone());
    parts.push(text::cut(event.content.text.trim(), TEXT_LIMIT, text::Unit::Characters));
    text::one_line(&parts.join(": ")).into_owned()
}

/// A fraction in whole percent, rounded down so that 100 means done.
pub(crate) fn percent(fraction: f64) -> String {
    Progress::new("progress", fraction).map(|progress| progress.to_string()).unwrap_or_default()
}

/// An event in one line: how serious, what about, what.
pub(crate) fn line(event: &Event) -> String {
    format!(
        "{}  {}  {}",
        styled(colour(event.level), format_args!("{:<9}", event.level)),
        styled(QUIET, text::one_line(event.context.as_str())),
        emphasis(event.level, &summary(event)),
    )
}

fn emphasis(level: Level, text: &str) -> String {
    let style = if level >= Level::Error { Style::new().bold() } else { Style::new() };
    styled(style, text)
}

/// An event as the fields of a row.
pub(crate) fn row(event: &Event, dates: &Dates) -> Vec<Cell> {
    vec![
        Cell::styled(event.id, QUIET),
        Cell::new(dates.short(event.at)),
        Cell::styled(event.level, colour(event.level)),
        Cell::new(&event.context),
        Cell::new(summary(event)),
    ]
}

/// Times as a person reads them, in the user's own zone.
pub(crate) struct Dates {
    zone: TimeZone,
    today: Zoned,
}

impl Dates {
    pub(crate) fn at(now: Timestamp) -> Self {
        let zone = TimeZone::system();
        Self { today: now.to_zoned(zone.clone()), zone }
    }

    /// The time alone today, the date with it on other days.
    pub(crate) fn short(&self, at: Timestamp) -> String {
        let at = at.to_zoned(self.zone.clone());
        let format = if at.date() == self.today.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
        at.strftime(format).to_string()
    }
}

/// The word for a state, in its colour.
pub(crate) fn state(state: &str) -> Cell {
    let style = match state {
        "sent" | "ended" | "open" => GOOD,
        "given_up" | "failed" | "broken" => ERROR,
        "failing" | "paused" | "limited" => WARNING,
        _ => QUIET,
    };
    Cell::styled(state.replace('_', " "), style)
}
