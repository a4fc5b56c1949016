//! `deskbell runs`: the long jobs and how far they are.

use deskbell_core::clock::Clock as _;

use super::{
    Client, Exit, Output, argument, client,
    output::STRONG,
    show,
    table::{self, Cell},
};
use crate::{
    api::wire::{RunBody, RunList},
    app::SystemClock,
};

/// Lists runs, the latest change first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell runs
  deskbell runs --state open
  deskbell runs --json")]
pub(crate) struct Args {
    /// Only runs in this state.
    #[arg(short, long, value_parser = ["open", "ended", "failed"])]
    state: Option<String>,
    /// How many at most.
    #[arg(short = 'n', long, default_value_t = 50, value_parser = argument::limit)]
    limit: usize,
    /// Print each run as a line of JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args, output: &Output) -> anyhow::Result<Exit> {
    let client = Client::of_this_user()?;
    let limit = Some(args.limit.to_string());
    let query = client::query(&[("state", args.state), ("limit", limit)]);
    let list: RunList = client.get(&format!("/v1/runs{query}")).await?;
    if args.json {
        list.runs.iter().try_for_each(|run| output.json(run))?;
        return Ok(Exit::Done);
    }
    if list.runs.is_empty() {
        output.note("there are no runs that fit");
    }
    let dates = show::Dates::at(SystemClock.now());
    let rows: Vec<_> = list.runs.iter().map(|run| row(run, &dates)).collect();
    table::lines(&rows).iter().try_for_each(|line| output.line(line))?;
    Ok(Exit::Done)
}

fn row(run: &RunBody, dates: &show::Dates) -> Vec<Cell> {
    vec![
        Cell::styled(&run.id, STRONG),
        show::state(&run.state),
        Cell::new(run.progress.map(show::percent).unwrap_or_default()),
        Cell::new(dates.short(run.updated_at)),
        Cell::new(run.step.as_deref().unwrap_or_default()),
        Cell::new(&run.text),
    ]
}
