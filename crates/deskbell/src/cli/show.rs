//! Events as a person reads them: one line each.

use deskbell_core::{Event, Level, run::Progress};
use jiff::{Timestamp, Zoned, tz::TimeZone};

use super::{
    output::{ERROR, GOOD, QUIET, WARNING},
    table::Cell,
};
use crate::terminal::{self, Paint};

/// A fraction in whole percent, rounded down so that 100 means done.
pub(crate) fn percent(fraction: f64) -> String {
    Progress::new("progress", fraction).map(|progress| progress.to_string()).unwrap_or_default()
}

/// An event in one line: how serious, what about, what.
pub(crate) fn line(event: &Event) -> String {
    let summary = terminal::summary(event);
    terminal::compose(event.level, event.context.as_str(), &summary, Paint::Coloured)
}

/// An event as the fields of a row.
pub(crate) fn row(event: &Event, dates: &Dates) -> Vec<Cell> {
    vec![
        Cell::styled(event.id, QUIET),
        Cell::new(dates.short(event.at)),
        level(event.level),
        Cell::new(&event.context),
        Cell::new(terminal::summary(event)),
    ]
}

/// A level as the terminal writes it.
pub(crate) fn level(level: Level) -> Cell {
    let (label, style) = terminal::label(level);
    Cell::styled(label, style)
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

/// The word for how a channel does: one that is `open` looks like a delivery that is not done.
pub(crate) fn flow(flow: &str) -> &str {
    if flow == "open" { "ok" } else { flow }
}

/// The word for a state, in its colour.
pub(crate) fn state(state: &str) -> Cell {
    let style = match state {
        "sent" | "ended" | "open" | "ok" => GOOD,
        "given_up" | "failed" | "broken" => ERROR,
        "failing" | "paused" | "limited" => WARNING,
        _ => QUIET,
    };
    Cell::styled(state.replace('_', " "), style)
}
