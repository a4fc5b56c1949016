//! `deskbell watch`: the live stream in the terminal.

mod bars;

use std::{io, time::Duration};

use deskbell_core::{Event, clock::Clock as _, event::Kind, run::Phase};
use serde::Deserialize;
use tokio::time::Instant;

pub(crate) use self::bars::Bars;
use super::{
    Client, Exit, Failure, Output,
    argument::value,
    client,
    filter::Filter,
    output::{QUIET, styled},
    show,
};
use crate::{
    api::wire::{EventBody, RunBody, RunList, StatusBody},
    app::SystemClock,
    journal::Cursor,
};

/// Shows what happens, live, with a progress bar for each open run.
///
/// Goes on where it was when the daemon restarts. Ends with Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell watch
  deskbell watch --level warning.. --context safety
  deskbell watch --json | jq .text
  deskbell watch --after 0-0        from the first event on")]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Begin after this place in the journal instead of now.
    #[arg(short, long, value_name = "CURSOR", value_parser = value::<Cursor>)]
    after: Option<Cursor>,
    /// Print each event as a line of JSON.
    #[arg(long)]
    json: bool,
}

/// How long to wait before the first try to reach a daemon that has ended.
const PAUSE_FIRST: Duration = Duration::from_millis(100);

/// The longest wait between two tries.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How long a stream must have lasted for the next pause to be short again.
const LASTED: Duration = Duration::from_secs(10);

pub(crate) async fn run(args: Args, output: &Output) -> anyhow::Result<Exit> {
    let client = Client::of_this_user()?;
    let status: StatusBody = client.get("/v1/status").await?;
    let mut watch = Watch {
        // Without a place of its own, a stream that is opened again would skip what came in between.
        after: args.after.unwrap_or(status.cursor),
        // A bar needs the end of its run as much as its updates.
        bars: Bars::new(output.is_terminal && !args.json && args.filter.shows_whole_runs()),
        args,
        client,
        output,
    };
    watch.show_open_runs().await?;
    tokio::select! {
        ended = watch.follow() => ended?,
        _ = tokio::signal::ctrl_c() => {}
    }
    watch.bars.clear();
    Ok(Exit::Done)
}

struct Watch<'a> {
    args: Args,
    client: Client,
    output: &'a Output,
    bars: Bars,
    after: Cursor,
}

/// A line of the stream.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Event(Box<EventBody<'static>>),
    Lagged { lagged: Lagged },
}

#[derive(Deserialize)]
struct Lagged {
    skipped: u64,
}

impl Watch<'_> {
    /// Shows events for as long as somebody reads them, whatever becomes of the daemon.
    async fn follow(&mut self) -> anyhow::Result<()> {
        let (mut pause, mut is_first) = (PAUSE_FIRST, true);
        loop {
            let began = Instant::now();
            match self.client.follow(&self.path()).await {
                Ok(mut lines) => {
                    while let Some(line) = lines.next().await {
                        self.show(&line)?;
                    }
                    self.tell("the daemon has ended; waiting for the next one");
                }
                Err(error) if is_first => return Err(error),
                // The filter was right before, so it is the place: one of a journal that is no more.
                Err(error) if is_refusal(&error) && self.after != Cursor::START => {
                    self.tell(&format!("{error}; going on from the first event"));
                    self.after = Cursor::START;
                }
                Err(error) if may_pass(&error) => {}
                Err(error) => return Err(error),
            }
            // Whoever ended the daemon does not want a mere viewer to start it again.
            self.client = self.client.without_starting();
            is_first = false;
            pause = if began.elapsed() > LASTED { PAUSE_FIRST } else { (pause * 2).min(PAUSE_MAX) };
            tokio::time::sleep(pause).await;
        }
    }

    fn path(&self) -> String {
        let mut parameters = self.args.filter.parameters();
        parameters.push(("after", Some(self.after.to_string())));
        format!("/events{}", client::query(&parameters))
    }

    fn show(&mut self, line: &[u8]) -> io::Result<()> {
        match serde_json::from_slice(line) {
            Ok(Line::Event(body)) => {
                self.after = body.cursor;
                if self.args.json {
                    return self.output.json_line(line);
                }
                match Event::try_from(&*body) {
                    Ok(event) => self.show_event(&event),
                    Err(_) => self.output.json_line(line),
                }
            }
            Ok(Line::Lagged { lagged }) => {
                self.tell(&format!("{} events came faster than they were read", lagged.skipped));
                Ok(())
            }
            Err(_) => {
                self.tell(
                    "a line of the stream is not understood; the daemon may be of another version",
                );
                Ok(())
            }
        }
    }

    fn show_event(&mut self, event: &Event) -> io::Result<()> {
        if let Kind::Run(step) = &event.kind {
            self.bars.step(step, &event.content.text);
            // The bar shows it, and a line for each would push everything else away.
            if step.phase == Phase::Update && self.bars.are_shown() {
                return Ok(());
            }
        }
        let dates = show::Dates::at(SystemClock.now());
        let line = format!("{}  {}", styled(QUIET, dates.short(event.at)), show::line(event));
        self.bars.aside(|| self.output.line(line))
    }

    fn tell(&self, text: &str) {
        self.bars.aside(|| self.output.note(styled(QUIET, text)));
    }

    /// Draws the bars of the runs that were open before.
    async fn show_open_runs(&mut self) -> anyhow::Result<()> {
        if self.bars.are_shown() {
            let list: RunList = self.client.get("/v1/runs?state=open&limit=20").await?;
            let shown = |run: &RunBody| self.args.filter.shows_run(&run.id);
            for run in list.runs.into_iter().filter(shown).rev() {
                self.bars.open(&run);
            }
        }
        Ok(())
    }
}

/// Whether it may go better the next time: the daemon is gone, or takes nothing at the moment.
fn may_pass(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Failure>().is_none_or(|failure| failure.exit == Exit::NotNow)
}

fn is_refusal(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Failure>().is_some_and(|failure| failure.exit == Exit::Wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::client::fake;

    #[tokio::test]
    async fn a_refusal_that_will_not_pass_ends_it() {
        let home = tempfile::tempdir().unwrap();
        let stream = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        let refusal = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
        let client =
            fake::daemon(home.path(), vec![(Duration::ZERO, stream), (Duration::ZERO, refusal)]);
        let output = Output { is_terminal: false };
        let args = Args { filter: Filter::default(), after: None, json: true };
        let (bars, after) = (Bars::new(false), Cursor::START);
        let mut watch = Watch { args, client, output: &output, bars, after };
        let ended = tokio::time::timeout(Duration::from_secs(30), watch.follow()).await;
        let error = ended.unwrap().unwrap_err().to_string();
        assert!(error.contains("404"), "{error}");
    }
}
