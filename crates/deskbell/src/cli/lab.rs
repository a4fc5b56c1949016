//! `deskbell lab`: far ends on this machine that behave as the real ones do.

mod server;

use std::sync::Arc;

use anyhow::Context as _;
use deskbell_channels::{kinds, lab::Fake};
use deskbell_core::{Level, clock::Clock as _, event::Content, text};
use tokio::net::TcpListener;
use toml::{Table, Value};

use self::server::{Lab, Seen};
use super::{
    Exit, Output,
    output::{GOOD, STRONG, WARNING, styled},
};
use crate::{api::preview, app::SystemClock};

/// Serves far ends on this machine that behave as the real ones do, and shows what they get.
///
/// Each kind that is reached by HTTP has a fake at `/KIND`, which checks what a request must have, counts length and
/// rate as the service does, and answers with the service's own bodies. With `?lab=MISHAP` or as `/MISHAP/KIND` it
/// misbehaves: refuse, 429, busy, 500, garbage, hang, close, or `mixed` for any of them now and then. What arrived is kept,
/// and an edit of anything else is refused; `GET /` lists it. Any channel comes here with one more line, its
/// `stand_in`; it keeps the rest of its options.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell lab                   prints the channels that lead there, then what arrives
  deskbell lab --port 0 --json")]
pub(crate) struct Args {
    /// The port on this machine; 0 takes one that is free.
    #[arg(long, default_value_t = 8390)]
    port: u16,
    /// Print what arrives as lines of JSON, and no channels.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &Args, output: &Output) -> anyhow::Result<Exit> {
    let listener = TcpListener::bind(("127.0.0.1", args.port)).await;
    let listener = listener
        .with_context(|| format!("failed to listen on port {} of this machine", args.port))?;
    let base = format!("http://{}", listener.local_addr()?);
    let fakes = fakes().await?;
    if !args.json {
        output.line(page(&fakes, &base).trim_end())?;
    }
    output.note(format_args!("the lab listens on {base}"));
    let (lab, mut arriving) = Lab::new(fakes);
    let serving = tokio::spawn(server::serve(listener, Arc::new(lab)));
    let mut ended = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        tokio::select! {
            Some(seen) = arriving.recv() => show(&seen, args.json, output)?,
            _ = &mut ended => break,
        }
    }
    serving.abort();
    Ok(Exit::Done)
}

/// The fakes of all kinds that can be led here.
async fn fakes() -> anyhow::Result<Vec<Fake>> {
    let content = Content { text: "sample".to_owned(), ..Content::default() };
    let sample = preview::message(content, Level::Info, "sample", SystemClock.now())?;
    let mut fakes = Vec::new();
    for kind in kinds() {
        fakes.extend(Fake::of(kind, &sample).await);
    }
    Ok(fakes)
}

/// The configuration of a channel for each fake.
fn page(fakes: &[Fake], base: &str) -> String {
    let mut page = String::new();
    for fake in fakes {
        let kind = fake.kind.about.name;
        let mut options = fake.options.clone();
        options.insert("kind".to_owned(), kind.into());
        options.insert("stand_in".to_owned(), format!("{base}/{kind}").into());
        let channel = Table::from_iter([(format!("lab-{kind}"), Value::Table(options))]);
        let channels = Table::from_iter([("channels".to_owned(), Value::Table(channel))]);
        page.extend([channels.to_string().as_str(), "\n"]);
    }
    let is_there = |name: &str| fakes.iter().any(|fake| fake.kind.about.name == name);
    let others = kinds().iter().map(|kind| kind.about.name).filter(|name| !is_there(name));
    let others = others.collect::<Vec<_>>().join(", ");
    page + &format!("# Not in the lab, because they speak no HTTP: {others}\n")
}

/// The longest text that is shown in a line, in characters.
const SHOWN: usize = 200;

fn show(seen: &Seen, json: bool, output: &Output) -> anyhow::Result<()> {
    if json {
        return Ok(output.json(seen)?);
    }
    let style = if seen.taken { GOOD } else { WARNING };
    let told: Vec<_> =
        [&seen.title, &seen.text].into_iter().flatten().map(String::as_str).collect();
    let told = text::cut(&told.join(" | "), SHOWN, text::Unit::Characters);
    output.line(format_args!(
        "{:>4} {} {}  {}",
        seen.number,
        styled(STRONG, &seen.kind),
        styled(style, text::one_line(&seen.outcome)),
        text::one_line(&told)
    ))?;
    Ok(())
}
