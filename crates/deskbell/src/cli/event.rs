//! `deskbell event`: one step of a run.

use deskbell_core::{
    Invalid, Level, RunId,
    run::{Phase, Progress},
};
use jiff::Timestamp;

use super::{Client, Exit, Output, argument::value, attach, report};
use crate::{
    api::report::{ReportBody, StepReport},
    intake::timestamp,
};

/// Reports one step of a run: its start, an update, its end or its error.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell event backup-0117 start 'backing up the database'
  deskbell event backup-0117 update 'exporting tables' --progress 0.4 --step export
  deskbell event backup-0117 end 'backup finished' --data '{\"artifact_url\": \"https://example.com/b.tgz\"}'")]
pub(crate) struct Args {
    /// The run's id, the same in each of its steps.
    #[arg(value_parser = value::<RunId>)]
    run_id: RunId,
    /// Which step it is: start, update, end or error.
    #[arg(value_parser = value::<Phase>)]
    phase: Phase,
    /// What to tell; `-` reads it from stdin.
    text: String,
    /// How far the run is, from 0 to 1.
    #[arg(short, long, value_name = "FRACTION", value_parser = progress)]
    progress: Option<Progress>,
    /// What the run is doing, such as `export_tables`.
    #[arg(short, long)]
    step: Option<String>,
    /// Structured data, as a JSON object.
    #[arg(short, long, value_name = "JSON")]
    data: Option<String>,
    /// A web address that belongs to it, such as that of what was made.
    #[arg(long, value_name = "URL")]
    link: Option<String>,
    /// Attach this file, or what stands at this web address. May be given several times.
    #[arg(long, value_name = "FILE|URL")]
    attach: Vec<String>,
    /// When it happened, ISO 8601; now without it.
    #[arg(long, value_name = "TIME", value_parser = timestamp)]
    timestamp: Option<Timestamp>,
    /// How serious it is, where the step alone does not say.
    #[arg(short, long, value_parser = value::<Level>)]
    level: Option<Level>,
    /// Your own name for this step: told twice under the same key, it is told once.
    #[arg(long)]
    key: Option<String>,
    /// Print what was accepted as JSON.
    #[arg(long)]
    json: bool,
}

fn progress(text: &str) -> Result<Progress, Invalid> {
    let fraction =
        text.parse().map_err(|_| Invalid::text("--progress", text, "a number from 0 to 1"))?;
    Progress::new("--progress", fraction)
}

fn timestamp(text: &str) -> Result<Timestamp, Invalid> {
    timestamp::read("--timestamp", text)
}

pub(crate) async fn run(args: Args, output: &Output) -> anyhow::Result<Exit> {
    let client = Client::of_this_user()?;
    let mut report = ReportBody {
        kind: Some("run".to_owned()),
        text: Some(report::text(args.text)?),
        level: args.level.map(|level| level.to_string()),
        data: report::data(args.data.as_deref())?,
        link: args.link,
        attachments: attach::read(&args.attach)?,
        run: Some(StepReport {
            id: args.run_id.to_string(),
            phase: args.phase.to_string(),
            step: args.step,
            progress: args.progress.map(Progress::fraction),
            timestamp: args.timestamp.map(|timestamp| timestamp.to_string()),
        }),
        key: args.key,
        ..ReportBody::default()
    };
    let accepted = report::send(&client, &mut report, "deskbell event").await?;
    report::show(&client, &report, &accepted, output).await;
    if args.json {
        output.json(&accepted)?;
    }
    Ok(Exit::Done)
}
