//! `deskbell demo`: the whole thing in a minute, with no account and no configuration.
//!
//! Everything is real: the built program as an MCP server and as a daemon, a journal in a folder of its own, and an
//! HTTP server that stands for a phone or a chat.

mod agent;
mod far_end;
mod stage;

use std::time::Duration;

use anyhow::Context as _;
use deskbell_core::{Event, event::Kind, text};
use serde_json::{Value, json};

use self::{agent::Agent, far_end::FarEnd, stage::Stage};
use super::{
    Client, Exit, Output,
    client::Lines,
    output::{GOOD, QUIET, STRONG, styled},
    show,
    watch::Bars,
};
use crate::{
    api::wire::{DeliveryList, EventBody, EventPage},
    paths::Paths,
};

/// Shows an agent telling, a run progressing and a push arriving, in a minute and without configuration.
///
/// Uses a folder of its own, so that your journal and channels are not touched, and leaves nothing behind.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell demo
  deskbell demo --fast")]
pub(crate) struct Args {
    /// Do not pause between the steps.
    #[arg(long)]
    fast: bool,
}

/// How long somebody who reads along needs between two steps.
const PAUSE: Duration = Duration::from_millis(1_200);

/// How long a run's steps are apart.
const STEP: Duration = Duration::from_millis(500);

/// How long anything may take before the demonstration gives up.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn run(args: Args, output: &Output) -> anyhow::Result<Exit> {
    let far_end = FarEnd::start().await?;
    let stage = Stage::build(&far_end.url())?;
    let is_paced = output.is_terminal && !args.fast;
    let shown = tokio::select! {
        shown = play(&stage, far_end, is_paced, output) => shown,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    stage.clear().await?;
    shown?;
    Ok(Exit::Done)
}

async fn play(
    stage: &Stage,
    far_end: FarEnd,
    is_paced: bool,
    output: &Output,
) -> anyhow::Result<()> {
    output.line(styled(STRONG, "Deskbell carries messages between agents and people."))?;
    output.line(styled(
        QUIET,
        "Everything here happens in a folder of its own, which is removed at the end.",
    ))?;
    let agent = Agent::launch(stage).await?;
    let client = stage.client();
    let lines = client.follow("/events?after=0-0").await?;
    let bars = Bars::new(output.is_terminal);
    let mut show = Show { agent, client, lines, bars, far_end, is_paced, output };
    show.a_notice().await?;
    show.a_run().await?;
    show.a_push().await?;
    show.the_record().await?;
    show.agent.end().await?;
    next_steps(output)
}

struct Show<'a> {
    agent: Agent,
    client: Client,
    lines: Lines,
    bars: Bars,
    far_end: FarEnd,
    is_paced: bool,
    output: &'a Output,
}

impl Show<'_> {
    async fn a_notice(&mut self) -> anyhow::Result<()> {
        self.chapter("1. An agent tells something, and whoever watches sees it").await?;
        let arguments = json!({
            "message": "The migration drops a column; a backup was made first.",
            "level": "warning",
            "context": "safety",
        });
        let event = self.call("notify", &arguments).await?;
        self.output.line(format_args!("  you see         {}", show::line(&event)))?;
        Ok(())
    }

    async fn a_run(&mut self) -> anyhow::Result<()> {
        self.chapter("2. A long job reports its steps").await?;
        let steps = [
            ("start", json!({}), "deploying version 2.4"),
            ("update", json!({ "progress": 0.2, "step": "build" }), "building"),
            ("update", json!({ "progress": 0.5, "step": "test" }), "testing"),
            ("update", json!({ "progress": 0.9, "step": "upload" }), "uploading"),
            ("end", json!({ "artifact_url": "https://example.com/2.4" }), "version 2.4 is live"),
        ];
        for (event, data, message) in steps {
            let arguments =
                json!({ "run_id": "deploy-2.4", "event": event, "message": message, "data": data });
            self.agent.call("notify_event", &arguments).await?;
            let event = self.seen().await?;
            if let Kind::Run(step) = &event.kind {
                self.bars.step(step, &event.content.text);
            }
            if !self.bars.are_shown()
                || matches!(&event.kind, Kind::Run(step) if step.phase.is_terminal())
            {
                self.output.line(format_args!("  you see         {}", show::line(&event)))?;
            }
            self.pause(STEP).await;
        }
        let told = self.far_end.next_end().await?;
        self.output.line(format_args!("  the phone gets  {}", headline(&told)))?;
        self.quiet("                  updates in between take each other's place, so that nobody is flooded")?;
        Ok(())
    }

    async fn a_push(&mut self) -> anyhow::Result<()> {
        self.chapter("3. An agent pushes a message to a channel").await?;
        let arguments =
            json!({ "title": "Review, please", "content": "Pull request 42 is ready." });
        let id = self.call("notify_send", &arguments).await?.id;
        let told = self.far_end.next_of(id).await?;
        self.output.line(format_args!("  the phone gets  {}", headline(&told)))?;
        let list: DeliveryList =
            self.client.get(&format!("/v1/deliveries?event={id}&wait=10")).await?;
        for delivery in &list.deliveries {
            let outcome = super::notify::outcome(delivery);
            self.output.line(format_args!("  the record says {outcome}, {}", delivery.reason))?;
        }
        Ok(())
    }

    async fn the_record(&mut self) -> anyhow::Result<()> {
        self.chapter("4. Everything is in the journal").await?;
        let page: EventPage<'static> = self.client.get("/v1/events?order=oldest").await?;
        for event in page.events.iter().filter_map(|event| Event::try_from(event).ok()) {
            self.output.line(format_args!("  {}", show::line(&event)))?;
        }
        self.pause(PAUSE).await;
        Ok(())
    }

    /// Lets the agent call a tool, says so, and gives the event that a viewer sees.
    async fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Event> {
        let shown = text::cut(&arguments.to_string(), 100, text::Unit::Characters);
        self.quiet(&format!("  the agent calls {tool} {shown}"))?;
        let result = self.agent.call(tool, arguments).await?;
        let places = ["/structuredContent/message", "/content/0/text"];
        let answer = places.into_iter().find_map(|place| result.pointer(place)?.as_str());
        let answer = answer.unwrap_or_default();
        self.quiet(&format!("  it is told      {}", text::one_line(answer)))?;
        self.seen().await
    }

    /// The next event as a viewer of the live stream gets it.
    async fn seen(&mut self) -> anyhow::Result<Event> {
        let line = tokio::time::timeout(PATIENCE, self.lines.next()).await;
        let line = line.context("the live stream is silent")?.context("the live stream ended")?;
        let body: EventBody<'static> = serde_json::from_slice(&line)?;
        Ok(Event::try_from(&body)?)
    }

    async fn chapter(&self, title: &str) -> anyhow::Result<()> {
        self.pause(PAUSE).await;
        self.output.line("")?;
        self.output.line(styled(STRONG, title))?;
        Ok(())
    }

    fn quiet(&self, line: &str) -> std::io::Result<()> {
        self.output.line(styled(QUIET, line))
    }

    async fn pause(&self, pause: Duration) {
        if self.is_paced {
            tokio::time::sleep(pause).await;
        }
    }
}

/// What a reader of the phone sees first.
fn headline(told: &Value) -> String {
    let part = |name: &str| told.get(name).and_then(Value::as_str).unwrap_or_default();
    let first_line = part("body").lines().next().unwrap_or_default().to_owned();
    format!("{}: {}", styled(GOOD, text::one_line(part("title"))), text::one_line(&first_line))
}

fn next_steps(output: &Output) -> anyhow::Result<()> {
    output.line("")?;
    output.line(styled(STRONG, "What to do next"))?;
    for (what, how) in NEXT {
        output.line(format_args!("  {what:<40}  {}", styled(GOOD, how)))?;
    }
    let file = Paths::from_process()?.config_user;
    output.line(format_args!("  let it reach your phone: put this into {}", file.display()))?;
    for line in CHANNEL.lines() {
        output.line(format_args!("      {}", styled(GOOD, line)))?;
    }
    output.line(format_args!(
        "  {:<40}  {}",
        "and see that it works",
        styled(GOOD, "deskbell channel test phone")
    ))?;
    Ok(())
}

const NEXT: [(&str, &str); 4] = [
    ("give it to your agent (Claude Code here)", "claude mcp add deskbell -- deskbell mcp"),
    ("see what agents tell, live", "deskbell watch"),
    ("tell something yourself", "deskbell notify 'hello'"),
    ("check the whole way", "deskbell doctor"),
];

const CHANNEL: &str = "\
[channels.phone]
kind = \"ntfy\"
topic = \"a-topic-that-nobody-guesses\"";
