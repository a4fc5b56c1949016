//! `deskbell snooze`: silences channels for a while.

use std::time::Duration;

use deskbell_core::{ChannelName, clock::Clock as _};

use super::{
    Client, Exit, Failure, Output,
    argument::{expected, value},
    client,
    output::{STRONG, styled},
    show::Dates,
    time,
};
use crate::{
    api::{LONGEST_SNOOZE as LONGEST, wire::SnoozedBody},
    app::SystemClock,
    config::file::Period,
};

/// What means every channel.
const ALL: &str = "all";

/// Silences a channel, or all of them, for a while: what is for it meanwhile comes at the end.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell snooze phone 2h
  deskbell snooze all 30m
  deskbell snooze phone --off         what was held back comes now
  deskbell snooze                     what is snoozed")]
pub(crate) struct Args {
    /// The channel, or `all`; without it what is snoozed is listed.
    #[arg(value_parser = value::<ChannelName>)]
    channel: Option<ChannelName>,
    /// For how long, such as `30m`, `2h` or `1d`.
    #[arg(value_name = "DURATION", value_parser = length, conflicts_with = "off")]
    length: Option<Duration>,
    /// End the silence.
    #[arg(long, requires = "channel")]
    off: bool,
    /// Print what is snoozed as JSON.
    #[arg(long)]
    json: bool,
}

fn length(text: &str) -> Result<Duration, String> {
    let length = time::duration(text).map_err(|refusal| expected(&refusal))?;
    let is_one = !length.is_zero() && length <= LONGEST;
    is_one.then_some(length).ok_or_else(|| "expected more than nothing and at most 366d".to_owned())
}

pub(crate) async fn run(args: Args, output: &Output) -> anyhow::Result<Exit> {
    if args.channel.is_some() && args.length.is_none() && !args.off {
        let message = "for how long? expected a length of time such as 2h, or `--off`";
        return Err(Failure::new(Exit::Wrong, message).into());
    }
    let client = Client::of_this_user()?;
    let snoozed: SnoozedBody = match &args.channel {
        None => client.get("/v1/snooze").await?,
        Some(channel) => {
            let single = (channel.as_str() != ALL).then(|| channel.to_string());
            let length = args.length.map_or("off".to_owned(), |length| Period(length).to_string());
            let query = client::query(&[("channel", single), ("for", Some(length))]);
            client.post(&format!("/v1/snooze{query}")).await?
        }
    };
    if args.json {
        output.json(&snoozed)?;
        return Ok(Exit::Done);
    }
    for line in lines(&snoozed) {
        output.line(line)?;
    }
    match snoozed.moved {
        Some(0) | None => {}
        Some(count) if args.off => output.note(format_args!("{count} held back: they come now")),
        Some(count) => output.note(format_args!("{count} held back: they come at the new end")),
    }
    if snoozed.all.is_none() && snoozed.channels.is_empty() {
        output.note("nothing is snoozed");
    }
    Ok(Exit::Done)
}

fn lines(snoozed: &SnoozedBody) -> Vec<String> {
    let dates = Dates::at(SystemClock.now());
    let all = snoozed.all.map(|until| (ALL, until));
    let channels = snoozed.channels.iter().map(|(name, until)| (name.as_str(), *until));
    all.into_iter()
        .chain(channels)
        .map(|(name, until)| {
            format!("{} is snoozed until {}", styled(STRONG, name), dates.short(until))
        })
        .collect()
}
