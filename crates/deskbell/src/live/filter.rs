//! Which events a viewer wants.

use deskbell_core::{Event, RunId, event::Kind, level::LevelRange};

use crate::journal::{Cursor, EventQuery};

/// Which events a viewer wants; what it leaves out fits everything.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// Only these levels.
    pub levels: LevelRange,
    /// Only this category.
    pub context: Option<String>,
    /// Only what this client reported.
    pub client: Option<String>,
    /// Only this sort of event: `notice`, `push` or `run`.
    pub kind: Option<String>,
    /// Only steps of this run.
    pub run: Option<RunId>,
}

impl Default for Filter {
    /// Everything.
    fn default() -> Self {
        Self { levels: LevelRange::ALL, context: None, client: None, kind: None, run: None }
    }
}

impl Filter {
    /// Whether `event` fits, as the journal would decide it.
    pub fn fits(&self, event: &Event) -> bool {
        let same = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let run = match &event.kind {
            Kind::Run(step) => Some(&step.run),
            Kind::Notice | Kind::Push => None,
        };
        self.levels.contains(event.level)
            && same(&self.context, Some(event.context.as_str()))
            && same(&self.client, event.source.client.as_deref())
            && same(&self.kind, Some(event.kind.as_str()))
            && self.run.as_ref().is_none_or(|wanted| run == Some(wanted))
    }

    /// The query for the next events that fit.
    pub(super) fn query(&self, after: Cursor, limit: usize) -> EventQuery {
        EventQuery {
            after: Some(after),
            levels: self.levels,
            context: self.context.clone(),
            client: self.client.clone(),
            kind: self.kind.clone(),
            run: self.run.clone(),
            ..EventQuery::first(limit)
        }
    }
}
