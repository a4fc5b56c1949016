//! `deskbell why`: where an event went, and why.

use deskbell_core::{Event, EventId, clock::Clock as _, delivery::DeliveryState, text};

use super::{
    Client, Exit, Failure, Output,
    argument::value,
    output::{GOOD, QUIET, STRONG, styled},
    show::{self, Dates},
};
use crate::{
    api::wire::{DeliveryBody, EventBody, EventPage, RouteBody, WhyBody},
    app::SystemClock,
};

/// Explains where an event went: each route, each delivery, each attempt.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell why 019a9c2e-5f00-7000-8000-000000000000
  deskbell why                        the newest event")]
pub(crate) struct Args {
    /// The event, as `history` shows it; the newest one without it.
    #[arg(value_parser = value::<EventId>)]
    event_id: Option<EventId>,
    /// Print it as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args, output: &Output) -> anyhow::Result<Exit> {
    let client = Client::of_this_user()?;
    let id = match args.event_id {
        Some(id) => id,
        None => newest(&client).await?,
    };
    let why: WhyBody<'static> = client.get(&format!("/v1/events/{id}/why")).await?;
    if args.json {
        output.json(&why)?;
        return Ok(Exit::Done);
    }
    lines(&why).iter().try_for_each(|line| output.line(line))?;
    for delivery in why.deliveries.iter().filter(|one| one.state == DeliveryState::GivenUp) {
        output.hint(format_args!(
            "once the cause is mended, `deskbell delivery retry {}` sends it",
            delivery.id
        ));
    }
    Ok(Exit::Done)
}

async fn newest(client: &Client) -> anyhow::Result<EventId> {
    let page: EventPage<'static> = client.get("/v1/events?limit=1").await?;
    let newest = page.events.first().map(|event| event.id);
    Ok(newest.ok_or_else(|| Failure::new(Exit::Failed, "there is no event yet"))?)
}

fn lines(why: &WhyBody<'_>) -> Vec<String> {
    let dates = Dates::at(SystemClock.now());
    let event = &why.event;
    let mut lines = vec![
        Event::try_from(event).map(|event| show::line(&event)).unwrap_or_default(),
        format!("event {}", styled(STRONG, event.id)),
        format!("reported {} by {}", dates.short(event.at), reporter(event)),
        String::new(),
        format!("Its way: {}.", text::one_line(&why.chosen_by)),
    ];
    lines.extend(why.routes.iter().map(route));
    lines.push(String::new());
    if why.deliveries.is_empty() {
        lines.push("It goes to no channel.".to_owned());
    }
    for one in &why.deliveries {
        lines.extend(delivery(one, &dates));
    }
    lines
}

fn reporter(event: &EventBody<'_>) -> String {
    let source = &event.source;
    let known = [&source.client, &source.project, &source.host, &source.session];
    let known: Vec<_> = known.into_iter().flatten().map(|part| text::one_line(part)).collect();
    if known.is_empty() { "somebody who did not say".to_owned() } else { known.join(", ") }
}

fn route(route: &RouteBody) -> String {
    let style = if route.matches { GOOD } else { QUIET };
    let channels = match route.channels.is_empty() {
        true => "nowhere".to_owned(),
        false => route.channels.join(", "),
    };
    let file = route.file.as_deref().map(|file| format!(" of {}", text::one_line(file)));
    let groups = route.groups.as_deref().map(|groups| format!("; {}", text::one_line(groups)));
    format!(
        "  route {}{} ({} → {channels}{}): {}",
        route.number,
        file.unwrap_or_default(),
        text::one_line(&route.takes),
        groups.unwrap_or_default(),
        styled(style, &route.verdict)
    )
}

fn delivery(delivery: &DeliveryBody, dates: &Dates) -> Vec<String> {
    let repeated = if delivery.maybe_repeated { ", maybe repeated" } else { "" };
    let mut lines = vec![format!(
        "{} ({}{repeated})",
        super::notify::outcome(delivery),
        text::one_line(&delivery.reason)
    )];
    let left_out = delivery.attempt_count as usize
        - delivery.attempts.len().min(delivery.attempt_count as usize);
    if left_out > 0 {
        lines.push(format!("  {left_out} earlier attempts"));
    }
    lines.extend(attempts(delivery, dates));
    if let Some(message_id) = &delivery.message_id {
        lines.push(format!("  the far end's id: {}", text::one_line(message_id)));
    }
    if let Some(stand_in) = &delivery.stand_in {
        lines.push(format!("  the channel talks to a stand-in at {stand_in}, not to the service"));
    }
    if let Some(place) = delivery.place() {
        lines.push(format!("  {}", text::one_line(&place)));
    }
    if let Some(waits_for) = &delivery.waits_for {
        lines.push(format!("  waits for {}", text::one_line(waits_for)));
    }
    lines
}

/// The attempts, with the retries by hand between them.
fn attempts(delivery: &DeliveryBody, dates: &Dates) -> Vec<String> {
    let last = delivery.attempts.last().map(|attempt| attempt.number);
    let attempts = delivery.attempts.iter().map(|attempt| {
        let is_sent = delivery.state == DeliveryState::Sent && Some(attempt.number) == last;
        let result = match attempt.error.as_deref().map(text::one_line) {
            Some(missing) if is_sent => format!("the far end took it, but {missing}").into(),
            other => other.unwrap_or("the far end took it".into()),
        };
        let line = format!("  attempt {} at {}: {result}", attempt.number, dates.short(attempt.at));
        (attempt.number, line)
    });
    let retries = delivery.retries.iter().map(|retry| {
        (retry.after_attempts, format!("  tried again by hand at {}", dates.short(retry.at)))
    });
    let mut lines: Vec<_> = attempts.chain(retries).collect();
    // Stable: a retry comes behind the attempt that it follows.
    lines.sort_by_key(|(number, _)| *number);
    lines.into_iter().map(|(_, line)| line).collect()
}
