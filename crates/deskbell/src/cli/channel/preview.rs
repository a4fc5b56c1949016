//! `deskbell channel preview`: what a channel would send, and nothing is sent.

use anyhow::Context as _;
use deskbell_channels::ChannelKind;
use deskbell_core::{
    ChannelName, Level,
    clock::Clock as _,
    event::{Content, Format},
    text,
};
use serde_json::Value;

use crate::{
    api::{preview, wire::attachments},
    app::SystemClock,
    cli::{
        Exit, Failure, Output,
        argument::value,
        attach,
        channel::stood_in,
        config::sources,
        output::{STRONG, WARNING, styled},
    },
    config::{ChannelOptions, Config, Problem},
};

/// Prints the requests that a channel would send, and sends nothing.
///
/// Needs no daemon. Secrets are hidden unless `--show-secrets` is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell channel preview phone --title 'Build' --body 'It is green.'
  deskbell channel preview ntfy://builds-7f3a --title T --body B --json")]
pub(crate) struct Args {
    /// A configured channel, or an address such as `ntfy://topic`.
    name_or_url: String,
    /// The headline.
    #[arg(short, long)]
    title: Option<String>,
    /// The text.
    #[arg(short, long)]
    body: String,
    /// How serious it is.
    #[arg(short, long, default_value = "info", value_parser = value::<Level>)]
    level: Level,
    /// How the text is written: text or markdown.
    #[arg(long, default_value = "text", value_name = "text|markdown", value_parser = value::<Format>)]
    format: Format,
    /// A web address that belongs to it.
    #[arg(long, value_name = "URL")]
    link: Option<String>,
    /// Attach this file, or what stands at this web address. May be given several times.
    #[arg(long, value_name = "FILE|URL")]
    attach: Vec<String>,
    /// Show secrets as they are.
    #[arg(long)]
    show_secrets: bool,
    /// Print it as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// What a channel that is given by its address is called while it is looked at.
const NAME: &str = "preview";

pub(super) async fn run(args: &Args, output: &Output) -> anyhow::Result<Exit> {
    let (name, options) = options(&args.name_or_url)?;
    let kind = deskbell_channels::kind(&options.kind);
    let kind = kind.with_context(|| format!("there is no kind of channel `{}`", options.kind))?;
    let channel = kind.build(options.options.clone()).map_err(|error| {
        Failure::new(Exit::Wrong, format!("channel `{name}` cannot be used: {error}"))
    })?;
    let content = Content {
        title: args.title.clone(),
        text: args.body.clone(),
        format: args.format,
        data: None,
        link: args.link.clone(),
        attachments: attachments(&attach::read(&args.attach)?)?,
    };
    let now = SystemClock.now();
    let message = preview::message(content, args.level, "--body", now)?;
    let (manner, show_secrets) = (options.manner, args.show_secrets);
    let requests =
        deskbell_channels::preview(kind, &*channel, &message, now, manner, show_secrets).await;
    let failure = requests.get("failure").and_then(Value::as_str);
    match args.json {
        true => output.json(&requests)?,
        false if failure.is_none() => show(kind, &requests, output)?,
        false => {}
    }
    if let Some(failure) = failure {
        let message = format!("channel `{name}` would send nothing: {failure}");
        return Err(Failure::new(Exit::Failed, message).into());
    }
    if let Some(unseen) = channel.unseen() {
        output.note(format_args!("{} {unseen}", styled(WARNING, "warning:")));
    }
    if let Some(stand_in) = &options.stand_in {
        output.note(format_args!(
            "channel `{name}` {}",
            stood_in(&stand_in.to_string(), &options.kind)
        ));
    }
    Ok(Exit::Done)
}

/// The channel that the argument names or is.
fn options(name_or_url: &str) -> anyhow::Result<(ChannelName, ChannelOptions)> {
    let is_address = name_or_url.contains("://");
    let name: ChannelName = if is_address { NAME } else { name_or_url }.parse()?;
    let mut sources = sources()?;
    if is_address {
        // It needs no configuration, so what is wrong with that is no matter.
        let alone = sources.without_files();
        sources = alone.with_override("the address", "channels.preview.url", name_or_url);
    }
    let mut config =
        Config::load(&sources).map_err(|errors| Failure::new(Exit::Failed, errors.to_string()))?;
    if let Some(options) = config.channels.remove(&name) {
        return Ok((name, options));
    }
    Err(match Problem::of(&name, &config.problems) {
        // Whoever gave an address never saw the key that it was put under.
        Some(problem) if is_address => {
            Failure::new(Exit::Wrong, problem.text.replace("`channels.preview`: ", ""))
        }
        Some(problem) => Failure::new(Exit::Wrong, &problem.text),
        None => {
            let names: Vec<_> = config.channels.keys().map(ToString::to_string).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Failure::new(
                Exit::Wrong,
                format!("there is no channel `{name}`; configured are: {known}"),
            )
            .hint("an address such as `ntfy://topic` can be previewed without configuring it")
        }
    }
    .into())
}

/// The requests for a person.
fn show(kind: &ChannelKind, requests: &Value, output: &Output) -> anyhow::Result<()> {
    let field = |request: &Value, name: &str| {
        request.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    for request in requests.get("requests").and_then(Value::as_array).into_iter().flatten() {
        if request.get("url").is_none() {
            other(request, output)?;
            continue;
        }
        let head = format!("{} {}", field(request, "method"), field(request, "url"));
        output.line(styled(STRONG, head))?;
        for (name, value) in request.get("headers").and_then(Value::as_object).into_iter().flatten()
        {
            output.line(format_args!("{name}: {}", value.as_str().unwrap_or_default()))?;
        }
        output.line("")?;
        output.line(field(request, "body"))?;
    }
    output.note(format_args!("nothing was sent; kind {}", kind.about.name));
    Ok(())
}

/// What is no HTTP request: its facts as JSON, and below them its texts of several lines, such as a mail, as they are.
fn other(request: &Value, output: &Output) -> anyhow::Result<()> {
    let mut facts = request.clone();
    let mut texts = Vec::new();
    if let Value::Object(fields) = &mut facts {
        fields.retain(|_, value| match value.as_str().filter(|text| text.contains('\n')) {
            Some(text) => {
                texts.push(text.replace("\r\n", "\n"));
                false
            }
            None => true,
        });
    }
    output.line(serde_json::to_string_pretty(&facts)?)?;
    for text in texts {
        output.line("")?;
        text.trim_end().lines().try_for_each(|line| output.line(text::one_line(line)))?;
    }
    Ok(())
}
