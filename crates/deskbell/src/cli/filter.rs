//! Which events a command shows.

use deskbell_core::{Context, RunId, level::LevelRange};

/// Which events to show; whatever is left out shows all.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Filter {
    /// Only these levels: one, or a range such as `warning..` or `info..error`.
    #[arg(short, long, value_name = "RANGE")]
    pub(crate) level: Option<LevelRange>,
    /// Only this category.
    #[arg(short, long, value_name = "CONTEXT")]
    pub(crate) context: Option<Context>,
    /// Only this kind of event.
    #[arg(short, long, value_parser = ["notice", "push", "run"])]
    pub(crate) kind: Option<String>,
    /// Only steps of this run.
    #[arg(long, value_name = "RUN_ID")]
    pub(crate) run: Option<RunId>,
    /// Only what this client reported.
    #[arg(long, value_name = "NAME")]
    pub(crate) client: Option<String>,
}

impl Filter {
    /// The filter as the parameters of a query.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, Option<String>)> {
        vec![
            ("level", self.level.map(|level| level.to_string())),
            ("context", self.context.as_ref().map(ToString::to_string)),
            ("kind", self.kind.clone()),
            ("run", self.run.as_ref().map(ToString::to_string)),
            ("client", self.client.clone()),
        ]
    }
}
