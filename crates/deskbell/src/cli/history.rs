//! `deskbell history`: what happened.

use std::io;

use deskbell_core::{Event, clock::Clock as _};

use super::{
    Client, Exit, Output,
    argument::{self, value},
    client,
    filter::Filter,
    show, table, time,
};
use crate::{
    api::{
        LIMIT_MAX,
        wire::{EventBody, EventPage},
    },
    app::SystemClock,
    journal::Cursor,
};

/// Shows what happened, the newest last.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell history
  deskbell history --level error.. --since 2h
  deskbell history --run backup-0117 --json")]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Only events since a time (ISO 8601) or for the last while, such as `30m`, `2h` or `7d`.
    #[arg(short, long, value_name = "TIME")]
    since: Option<String>,
    /// Only events after this place in the journal.
    #[arg(long, value_name = "CURSOR", value_parser = value::<Cursor>)]
    after: Option<Cursor>,
    /// How many at most, the newest ones.
    #[arg(short = 'n', long, default_value_t = 50, value_parser = argument::any_limit)]
    limit: usize,
    /// Print each event as a line of JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args, output: &Output) -> anyhow::Result<Exit> {
    let client = Client::of_this_user()?;
    let now = SystemClock.now();
    let since = args.since.as_deref().map(|since| time::since(since, now)).transpose()?;
    let mut events = Vec::new();
    let mut before = None;
    // The newest are asked for, a page at a time, and shown the other way round.
    while events.len() < args.limit {
        let mut parameters = args.filter.parameters();
        parameters.extend([
            ("since", since.map(|since| since.to_string())),
            ("after", args.after.map(|after| after.to_string())),
            ("before", before.take()),
            ("order", Some("newest".to_owned())),
            ("limit", Some((args.limit - events.len()).min(LIMIT_MAX).to_string())),
        ]);
        let path = format!("/v1/events{}", client::query(&parameters));
        let page: EventPage<'static> = client.get(&path).await?;
        events.extend(page.events);
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    events.reverse();
    print(&events, args.json, output)?;
    Ok(Exit::Done)
}

fn print(events: &[EventBody<'_>], json: bool, output: &Output) -> io::Result<()> {
    if json {
        return events.iter().try_for_each(|event| output.json(event));
    }
    if events.is_empty() {
        output.note("there are no events that fit");
    }
    let dates = show::Dates::at(SystemClock.now());
    let shown = events.iter().filter_map(|event| Event::try_from(event).ok());
    let rows: Vec<_> = shown.map(|event| show::row(&event, &dates)).collect();
    table::lines(&rows).iter().try_for_each(|line| output.line(line))
}
