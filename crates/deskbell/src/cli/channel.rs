//! `deskbell channel`: what is configured, whether it works, what would be sent, what others have configured.

mod import;
mod preview;

use deskbell_core::{ChannelName, clock::Clock as _, text};

use super::{
    Client, Exit, Output,
    argument::value,
    client::{self, RESTART},
    output::{ERROR, STRONG, WARNING, styled},
    show::{self, Dates},
    table::{self, Cell},
};
use crate::{
    api::wire::{ChannelBody, ChannelList, TestBody},
    app::SystemClock,
};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Lists the configured channels and how they do.
    #[command(after_help = "Examples:\n  deskbell channel list\n  deskbell channel list --json")]
    List {
        /// Print each channel as a line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Sends a real message through a channel and prints the far end's answer.
    #[command(after_help = "Examples:\n  deskbell channel test phone")]
    Test {
        /// The channel.
        #[arg(value_parser = value::<ChannelName>)]
        name: ChannelName,
        /// Print the answer as JSON.
        #[arg(long)]
        json: bool,
    },
    Preview(preview::Args),
    Import(import::Args),
}

pub(crate) async fn run(command: Command, output: &Output) -> anyhow::Result<Exit> {
    match command {
        Command::List { json } => list(&Client::of_this_user()?, json, output).await,
        Command::Test { name, json } => test(&Client::of_this_user()?, &name, json, output).await,
        Command::Preview(args) => preview::run(&args, output).await,
        Command::Import(args) => import::run(&args, output),
    }
}

async fn list(client: &Client, json: bool, output: &Output) -> anyhow::Result<Exit> {
    let list: ChannelList = client.get("/v1/channels").await?;
    if json {
        list.channels.iter().try_for_each(|channel| output.json(channel))?;
    } else {
        let dates = Dates::at(SystemClock.now());
        let rows: Vec<_> = list.channels.iter().map(|channel| row(channel, &dates)).collect();
        table::lines(&rows).iter().try_for_each(|line| output.line(line))?;
    }
    for channel in &list.channels {
        if let Some(unseen) = &channel.unseen {
            let name = &channel.name;
            output.note(format_args!("{} channel `{name}`: {unseen}", styled(WARNING, "warning:")));
            output.hint(seen_again(channel));
        }
    }
    for channel in &list.channels {
        if let Some(stand_in) = &channel.stand_in {
            let (warning, name) = (styled(WARNING, "warning:"), &channel.name);
            let told = stood_in(stand_in, &channel.kind);
            output.note(format_args!("{warning} channel `{name}` {told}"));
        }
    }
    for problem in &list.problems {
        output.note(format_args!(
            "{} {}",
            styled(WARNING, "warning:"),
            text::one_line(&problem.text)
        ));
    }
    if list.problems.iter().any(|problem| problem.of_environment) {
        output.hint(RESTART);
    }
    if list.channels.is_empty() && list.problems.is_empty() {
        output.note("no channel is configured");
        output.hint(
            "add one to the configuration, such as `[channels.phone]` with `kind = \"ntfy\"`",
        );
    }
    Ok(if list.problems.is_empty() { Exit::Done } else { Exit::Failed })
}

/// What is said of a channel whose messages a stand-in gets.
pub(super) fn stood_in(stand_in: &str, kind: &str) -> String {
    let title = deskbell_channels::kind(kind).map_or(kind, |kind| kind.about.title);
    format!("talks to a stand-in at {stand_in}; nothing reaches {title}")
}

/// What to do about a channel that nobody sees.
pub(super) fn seen_again(channel: &ChannelBody) -> &'static str {
    match channel.kind.as_str() {
        "desktop" => "start the daemon from a terminal on the desktop, or set the channel's `bus`",
        "console" => "end the daemon, and run `deskbell serve` in a terminal or as a service",
        _ => "mend it; the next message looks again",
    }
}

fn row(channel: &ChannelBody, dates: &Dates) -> Vec<Cell> {
    let last = match (&channel.last_error, channel.last_sent_at) {
        (Some(last), sent_at) if Some(last.at) > sent_at => {
            format!("{}: {}", dates.short(last.at), last.error)
        }
        (_, Some(at)) => format!("{}: sent", dates.short(at)),
        _ => "nothing sent since the daemon started".to_owned(),
    };
    let last = silent(channel, dates).map_or(last.clone(), |silent| format!("{silent}; {last}"));
    vec![
        Cell::styled(&channel.name, STRONG),
        Cell::new(&channel.kind),
        show::state(show::flow(&channel.flow)),
        Cell::new(last),
    ]
}

/// Until when a channel is left alone, if it is.
pub(super) fn silent(channel: &ChannelBody, dates: &Dates) -> Option<String> {
    let snoozed =
        channel.snoozed_until.map(|until| format!("snoozed until {}", dates.short(until)));
    let quiet = channel.quiet_until.map(|until| format!("quiet until {}", dates.short(until)));
    snoozed.or(quiet)
}

async fn test(
    client: &Client,
    name: &ChannelName,
    json: bool,
    output: &Output,
) -> anyhow::Result<Exit> {
    let path = format!("/v1/channels/{}/test", client::segment(name.as_str()));
    let test: TestBody = client.post(&path).await?;
    if json {
        output.json(&test)?;
    } else {
        output.line(told(name, &test))?;
        if !test.delivery.is_settled() {
            output.note("it is tried again, so the message may still arrive");
        }
    }
    Ok(match test.outcome.as_str() {
        "sent" => Exit::Done,
        "failed" => Exit::Failed,
        _ => Exit::StillOpen,
    })
}

/// What the far end made of a test, in one line.
fn told(name: &ChannelName, test: &TestBody) -> String {
    let after = |words: &str, text: Option<&String>| {
        text.map(|text| format!("{words}{}", text::one_line(text))).unwrap_or_default()
    };
    match test.outcome.as_str() {
        "sent" => {
            let receipt = after(", and calls it ", test.delivery.message_id.as_ref());
            let missing = after(", but ", test.error.as_ref());
            let far_end = match &test.delivery.stand_in {
                Some(stand_in) => format!("the stand-in at {stand_in}"),
                None => "the far end".to_owned(),
            };
            format!("{name}: {far_end} took it{receipt}{missing}")
        }
        "failed" => {
            let error = after(": ", test.error.as_ref());
            format!("{name}: {}{error}", styled(ERROR, "failed"))
        }
        _ => {
            let waits = after("; it waits for ", test.delivery.waits_for.as_ref());
            format!("{name}: {}{waits}", styled(WARNING, "no answer yet"))
        }
    }
}
