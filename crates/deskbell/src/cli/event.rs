//! `deskbell event`: one step of a run.

use deskbell_core::{Level, RunId, run::Phase};
use jiff::Timestamp;

use super::{Exit, Failure, Output};

/// Reports one step of a run: its start, an update, its end or its error.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell event backup-0117 start 'backing up the database'
  deskbell event backup-0117 update 'exporting tables' --progress 0.4 --step export
  deskbell event backup-0117 end 'backup finished' --data '{\"artifact_url\": \"https://example.com/b.tgz\"}'")]
pub(crate) struct Args {
    /// The run's id, the same in each of its steps.
    run_id: RunId,
    /// Which step it is: start, update, end or error.
    phase: Phase,
    /// What to tell; `-` reads it from stdin.
    text: String,
    /// How far the run is, from 0 to 1.
    #[arg(short, long, value_name = "FRACTION")]
    progress: Option<f64>,
    /// What the run is doing, such as `export_tables`.
    #[arg(short, long)]
    step: Option<String>,
    /// Structured data, as a JSON object.
    #[arg(short, long, value_name = "JSON")]
    data: Option<String>,
    /// When it happened, ISO 8601; now without it.
    #[arg(long, value_name = "TIME")]
    timestamp: Option<Timestamp>,
    /// How serious it is, where the step alone does not say.
    #[arg(short, long)]
    level: Option<Level>,
    /// Your own name for this step: told twice under the same key, it is told once.
    #[arg(long)]
    key: Option<String>,
    /// Print what was accepted as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(_args: Args, _output: &Output) -> anyhow::Result<Exit> {
    Err(Failure::new(Exit::Failed, "not there yet").into())
}
