//! `deskbell notify`: one notice.

use std::time::Duration;

use deskbell_core::{ChannelName, Context, Level, delivery::DeliveryState, text};
use serde_json::json;
use tokio::time::Instant;

use super::{
    Client, Exit, Output,
    argument::{expected, value},
    attach, client,
    output::{ERROR, GOOD, STRONG, WARNING, styled},
    report, time,
};
use crate::api::{
    LIMIT_MAX,
    report::ReportBody,
    wire::{AcceptedBody, DeliveryBody, DeliveryList},
};

/// How long one request waits; the daemon allows no more.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Tells one thing, as an agent would with its `notify` tool.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell notify 'the build is green'
  deskbell notify 'disk is 95 % full' -l error -c safety
  deskbell notify 'deploy finished' --to phone --wait
  make 2>&1 | tail -n 20 | deskbell notify - -t 'make failed' -l error")]
pub(crate) struct Args {
    /// What to tell; `-` reads it from stdin.
    text: String,
    /// How serious it is.
    #[arg(short, long, default_value = "info", value_parser = value::<Level>)]
    level: Level,
    /// Its category: analysis, workflow, safety, performance, discovery, or any other word.
    #[arg(short, long, value_parser = value::<Context>)]
    context: Option<Context>,
    /// A headline.
    #[arg(short, long)]
    title: Option<String>,
    /// Structured data, as a JSON value.
    #[arg(long, value_name = "JSON")]
    data: Option<String>,
    /// A web address that belongs to it, for whoever wants to see more.
    #[arg(long, value_name = "URL")]
    link: Option<String>,
    /// Attach this file, or what stands at this web address. May be given several times.
    #[arg(long, value_name = "FILE|URL")]
    attach: Vec<String>,
    /// The text is Markdown.
    #[arg(long)]
    markdown: bool,
    /// Push it to this channel, whatever the routes say. May be given several times.
    #[arg(long, value_name = "CHANNEL", value_parser = value::<ChannelName>)]
    to: Vec<ChannelName>,
    /// Wait until every channel took it or it was given up.
    #[arg(short, long)]
    wait: bool,
    /// How long to wait with `--wait`, such as `30s` or `5m`.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration, requires = "wait")]
    timeout: Duration,
    /// Your own name for this notice: told twice under the same key, it is told once.
    #[arg(long)]
    key: Option<String>,
    /// Print what was accepted as JSON.
    #[arg(long)]
    json: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    time::duration(text).map_err(|refusal| expected(&refusal))
}

pub(crate) async fn run(args: Args, output: &Output) -> anyhow::Result<Exit> {
    let client = Client::of_this_user()?;
    let mut report = ReportBody {
        kind: Some("notice".to_owned()),
        text: Some(report::text(args.text)?),
        title: args.title,
        level: Some(args.level.to_string()),
        context: args.context.map(|context| context.to_string()),
        format: args.markdown.then(|| "markdown".to_owned()),
        data: report::data(args.data.as_deref())?,
        link: args.link,
        attachments: attach::read(&args.attach)?,
        to: args.to.iter().map(ToString::to_string).collect(),
        key: args.key,
        ..ReportBody::default()
    };
    let accepted = report::send(&client, &mut report, "deskbell notify").await?;
    report::show(&client, &report, &accepted, output).await;
    if !args.wait {
        if args.json {
            output.json(&accepted)?;
        }
        return Ok(Exit::Done);
    }
    let deliveries = settled(&client, &accepted, args.timeout).await?;
    if args.json {
        output.json(&json!({ "accepted": accepted, "deliveries": deliveries }))?;
    } else {
        deliveries.iter().for_each(|delivery| output.note(outcome(delivery)));
    }
    Ok(exit(&deliveries))
}

/// The deliveries of what was accepted, once they are settled or `patience` is over.
async fn settled(
    client: &Client,
    accepted: &AcceptedBody,
    patience: Duration,
) -> anyhow::Result<Vec<DeliveryBody>> {
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).min(WAIT_MAX);
        // The daemon takes whole seconds; rounded down, the last part of one would not be waited for.
        let seconds = left.as_millis().div_ceil(1_000);
        let query = client::query(&[
            ("event", Some(accepted.id.to_string())),
            ("limit", Some(LIMIT_MAX.to_string())),
            ("wait", Some(seconds.to_string())),
        ]);
        let list: DeliveryList = client.get(&format!("/v1/deliveries{query}")).await?;
        if Instant::now() >= deadline || list.deliveries.iter().all(DeliveryBody::is_settled) {
            return Ok(list.deliveries);
        }
    }
}

/// What became of a delivery, in one line.
pub(super) fn outcome(delivery: &DeliveryBody) -> String {
    let channel = styled(STRONG, &delivery.channel);
    let error = delivery.latest_error().map(|error| format!(": {}", text::one_line(error)));
    let state = match delivery.state {
        DeliveryState::Sent => styled(GOOD, "sent"),
        DeliveryState::GivenUp => styled(ERROR, "given up"),
        DeliveryState::Superseded => "superseded".to_owned(),
        DeliveryState::Pending | DeliveryState::InFlight => styled(WARNING, "still open"),
    };
    format!("{channel}: {state}{}", error.unwrap_or_default())
}

fn exit(deliveries: &[DeliveryBody]) -> Exit {
    if deliveries.iter().any(|delivery| !delivery.is_settled()) {
        Exit::StillOpen
    } else if deliveries.iter().any(|delivery| delivery.state == DeliveryState::GivenUp) {
        Exit::Failed
    } else {
        Exit::Done
    }
}
