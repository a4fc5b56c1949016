//! `deskbell delivery`: what is on its way to a channel, and what did not get there.

use deskbell_core::{ChannelName, DeliveryId, EventId, delivery::DeliveryState};

use super::{
    Client, Exit, Failure, Output,
    argument::{self, value},
    client,
    output::QUIET,
    show,
    table::{self, Cell},
};
use crate::api::wire::{ChannelList, DeliveryBody, DeliveryList};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    List(List),
    Retry(Retry),
}

/// Lists deliveries, the newest event first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell delivery list --state given_up
  deskbell delivery list --channel phone --json")]
pub(crate) struct List {
    /// Only deliveries in this state.
    #[arg(short, long, value_name = "pending|in_flight|sent|given_up|superseded", value_parser = value::<DeliveryState>)]
    state: Option<DeliveryState>,
    /// Only deliveries to this channel.
    #[arg(short, long, value_parser = value::<ChannelName>)]
    channel: Option<ChannelName>,
    /// Only deliveries of this event.
    #[arg(short, long, value_name = "EVENT_ID", value_parser = value::<EventId>)]
    event: Option<EventId>,
    /// How many at most.
    #[arg(short = 'n', long, default_value_t = 50, value_parser = argument::limit)]
    limit: usize,
    /// Print each delivery as a line of JSON.
    #[arg(long)]
    json: bool,
}

/// Puts deliveries that were given up back among the due ones.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell delivery retry 019a9c2e-5f00-7000-8000-000000000000.phone
  deskbell delivery list --state given_up --json | jq -r .id | xargs deskbell delivery retry")]
pub(crate) struct Retry {
    /// The deliveries, as `delivery list` shows them.
    #[arg(required = true, value_name = "DELIVERY_ID", value_parser = value::<DeliveryId>)]
    ids: Vec<DeliveryId>,
    /// Print each delivery as a line of JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(command: Command, output: &Output) -> anyhow::Result<Exit> {
    let client = Client::of_this_user()?;
    match command {
        Command::List(args) => list(&client, args, output).await,
        Command::Retry(args) => retry(&client, &args, output).await,
    }
}

async fn list(client: &Client, args: List, output: &Output) -> anyhow::Result<Exit> {
    let query = client::query(&[
        ("state", args.state.map(|state| state.to_string())),
        ("channel", args.channel.as_ref().map(ToString::to_string)),
        ("event", args.event.map(|event| event.to_string())),
        ("limit", Some(args.limit.to_string())),
    ]);
    let list: DeliveryList = client.get(&format!("/v1/deliveries{query}")).await?;
    if list.deliveries.is_empty()
        && let Some(channel) = &args.channel
    {
        know(client, channel).await?;
    }
    if args.json {
        list.deliveries.iter().try_for_each(|delivery| output.json(delivery))?;
        return Ok(Exit::Done);
    }
    if list.deliveries.is_empty() {
        output.note("there are no deliveries that fit");
    }
    let rows: Vec<_> = list.deliveries.iter().map(row).collect();
    table::lines(&rows).iter().try_for_each(|line| output.line(line))?;
    Ok(Exit::Done)
}

/// Refuses the name of a channel that is not configured; what one that is gone has left is still listed.
async fn know(client: &Client, channel: &ChannelName) -> anyhow::Result<()> {
    let list: ChannelList = client.get("/v1/channels").await?;
    let names: Vec<_> = list.channels.iter().map(|channel| channel.name.as_str()).collect();
    let is_left_out =
        list.problems.iter().any(|it| it.channel.as_deref() == Some(channel.as_str()));
    if is_left_out || names.contains(&channel.as_str()) {
        return Ok(());
    }
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let message = format!("there is no channel `{channel}`; configured are: {known}");
    Err(Failure::new(Exit::Wrong, message).into())
}

fn row(delivery: &DeliveryBody) -> Vec<Cell> {
    let attempts = match delivery.attempt_count {
        1 => "1 attempt".to_owned(),
        count => format!("{count} attempts"),
    };
    let latest = delivery.waits_for.as_ref().map(|what| format!("waits for {what}"));
    let latest = delivery.latest_error().map(str::to_owned).or(latest).or(delivery.place());
    vec![
        Cell::styled(&delivery.id, QUIET),
        show::state(delivery.state.as_str()),
        Cell::new(attempts),
        Cell::new(latest.unwrap_or_default()),
    ]
}

async fn retry(client: &Client, args: &Retry, output: &Output) -> anyhow::Result<Exit> {
    let mut exit = Exit::Done;
    for id in &args.ids {
        let path = format!("/v1/deliveries/{}/retry", client::segment(&id.to_string()));
        match client.post::<DeliveryBody>(&path).await {
            Ok(delivery) if args.json => output.json(&delivery)?,
            Ok(delivery) => output.note(format_args!("{}: due again", delivery.id)),
            // One that cannot be tried again must not keep the others from it.
            Err(error) => {
                output.error(&error);
                exit = Exit::Failed;
            }
        }
    }
    Ok(exit)
}
