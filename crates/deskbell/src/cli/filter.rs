//! Which events a command shows.

use deskbell_core::{Context, RunId, event::Kind, level::LevelRange};

use super::argument::value;

/// Which events to show; whatever is left out shows all.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Filter {
    /// Only these levels: one, or a range such as `warning..` or `info..error`.
    #[arg(short, long, value_name = "RANGE", value_parser = value::<LevelRange>)]
    pub(crate) level: Option<LevelRange>,
    /// Only this category.
    #[arg(short, long, value_name = "CONTEXT", value_parser = value::<Context>)]
    pub(crate) context: Option<Context>,
    /// Only this kind of event.
    #[arg(short, long, value_parser = Kind::NAMES)]
    pub(crate) kind: Option<String>,
    /// Only steps of this run.
    #[arg(long, value_name = "RUN_ID", value_parser = value::<RunId>)]
    pub(crate) run: Option<RunId>,
    /// Only what this client reported.
    #[arg(long, value_name = "NAME")]
    pub(crate) client: Option<String>,
}

impl Filter {
    /// Whether it shows all steps of a run or none. The level, the category and the client may differ from step to
    /// step.
    pub(crate) const fn shows_whole_runs(&self) -> bool {
        self.level.is_none() && self.context.is_none() && self.client.is_none()
    }

    /// Whether it shows the steps of this run, where it shows whole runs.
    pub(crate) fn shows_run(&self, run: &str) -> bool {
        self.kind.as_deref().is_none_or(|kind| kind == "run")
            && self.run.as_ref().is_none_or(|wanted| wanted.as_str() == run)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_knows_which_runs_it_shows_from_start_to_end() {
        assert!(Filter::default().shows_whole_runs() && Filter::default().shows_run("any"));
        let of_one = Filter { run: Some("w1".parse().unwrap()), ..Filter::default() };
        assert!(of_one.shows_whole_runs() && of_one.shows_run("w1") && !of_one.shows_run("dep"));
        let notices = Filter { kind: Some("notice".to_owned()), ..Filter::default() };
        assert!(!notices.shows_run("any"));
        let serious = Filter { level: Some("error..".parse().unwrap()), ..Filter::default() };
        assert!(!serious.shows_whole_runs(), "its end may be less serious than its update");
    }
}
