//! `deskbell prompt`: the prompts that MCP clients find here, and what they come to.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::Context as _;
use deskbell_core::text;
use serde_json::json;

use super::{
    Client, Exit, Failure, Output,
    output::{QUIET, STRONG, WARNING, styled},
    report,
    table::{self, Cell},
};
use crate::{
    api::report::ReportBody,
    config::load::Sources,
    paths::Paths,
    prompts::{Found, Notice, Prompt, Prompts, RenderError},
};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Lists the prompts: yours, those of the project of this folder if you trust it, and those that are built in.
    #[command(after_help = "Examples:\n  deskbell prompt list\n  deskbell prompt list --json")]
    List {
        /// Print each prompt as a line of JSON.
        #[arg(long)]
        json: bool,
    },
    Render(Render),
}

/// Fills a prompt in and prints it; what it notifies of is told as an MCP client's would be.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell prompt render notify-guidelines language=zh
  deskbell prompt render review 'file=src/main.rs' --json")]
pub(crate) struct Render {
    /// The prompt, as `prompt list` shows it.
    name: String,
    /// What to fill in.
    #[arg(value_name = "NAME=VALUE", value_parser = argument)]
    arguments: Vec<(String, String)>,
    /// Print text and notices as one line of JSON.
    #[arg(long)]
    json: bool,
}

fn argument(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as language=zh")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

pub(crate) async fn run(command: Command, output: &Output) -> anyhow::Result<Exit> {
    match command {
        Command::List { json } => list(json, output).await,
        Command::Render(args) => render(args, output).await,
    }
}

/// The prompts in the folder where the command was typed.
async fn found() -> anyhow::Result<Found> {
    let paths = Paths::from_process()?;
    let folder: PathBuf = std::env::current_dir().context("failed to find the current folder")?;
    let prompts = Prompts::new(Sources::of_the_daemon(&paths));
    Ok(tokio::task::spawn_blocking(move || prompts.of(Some(&folder))).await?)
}

async fn list(json: bool, output: &Output) -> anyhow::Result<Exit> {
    let Found { prompts, flaws } = found().await?;
    for flaw in flaws {
        output.note(format_args!("{}: {flaw}", styled(WARNING, "warning")));
    }
    if json {
        prompts.iter().try_for_each(|prompt| output.json(&listed(prompt)))?;
        return Ok(Exit::Done);
    }
    let rows: Vec<_> = prompts.iter().map(row).collect();
    table::lines(&rows).iter().try_for_each(|line| output.line(line))?;
    Ok(Exit::Done)
}

fn listed(prompt: &Prompt) -> serde_json::Value {
    let arguments: Vec<_> = prompt
        .arguments
        .iter()
        .map(|argument| {
            json!({
                "name": argument.name,
                "description": argument.description,
                "required": argument.required,
                "default": argument.default,
                "values": argument.values,
            })
        })
        .collect();
    json!({
        "name": prompt.name,
        "title": prompt.title,
        "description": prompt.description,
        "arguments": arguments,
        "origin": prompt.origin.as_str(),
        "file": prompt.origin.file().map(|file| file.display().to_string()),
    })
}

fn row(prompt: &Prompt) -> Vec<Cell> {
    let arguments: Vec<_> = prompt
        .arguments
        .iter()
        .map(|argument| match argument.required {
            true => format!("{}=…", argument.name),
            false => format!("[{}=…]", argument.name),
        })
        .collect();
    vec![
        Cell::styled(&prompt.name, STRONG),
        Cell::styled(prompt.origin.as_str(), QUIET),
        Cell::new(arguments.join(" ")),
        Cell::new(prompt.description.clone().unwrap_or_default()),
    ]
}

async fn render(args: Render, output: &Output) -> anyhow::Result<Exit> {
    let found = found().await?;
    let Some(prompt) = found.find(&args.name).cloned() else {
        return Err(missing(&found, &args.name).into());
    };
    let mut arguments = BTreeMap::new();
    for (name, value) in args.arguments {
        if arguments.insert(name.clone(), value).is_some() {
            let message = format!("`{}` is given twice", text::one_line(&name));
            return Err(Failure::new(Exit::Wrong, message).into());
        }
    }
    let rendered = tokio::task::spawn_blocking(move || prompt.render(&arguments)).await?;
    let rendered = rendered.map_err(|error| match error {
        RenderError::Argument(invalid) => Failure::from(invalid),
        RenderError::Prompt(flaw) => Failure::new(Exit::Failed, flaw.to_string()),
    })?;
    let mut told = Vec::new();
    for notice in &rendered.notices {
        told.push(tell(notice, output).await?);
    }
    if args.json {
        output.json(&json!({ "name": args.name, "text": rendered.text, "notices": told }))?;
    } else if !rendered.text.is_empty() {
        output.line(text::clean(&rendered.text))?;
    }
    Ok(Exit::Done)
}

fn missing(found: &Found, name: &str) -> Failure {
    // A file that is wrong is why the prompt is not there.
    let of_name = |file: &std::path::Path| {
        file.file_name()
            .and_then(|file| file.to_str())
            .is_some_and(|file| file.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
    };
    if let Some(flaw) = found.flaws.iter().find(|flaw| of_name(&flaw.file)) {
        return Failure::new(Exit::Failed, flaw.to_string());
    }
    let names: Vec<_> = found.prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    let message =
        format!("there is no prompt `{}`; there are: {}", text::one_line(name), names.join(", "));
    Failure::new(Exit::Wrong, message)
}

/// Tells what a prompt notifies of, and gives it as it is printed.
async fn tell(notice: &Notice, output: &Output) -> anyhow::Result<serde_json::Value> {
    let client = Client::of_this_user()?;
    let mut body = ReportBody {
        kind: Some("notice".to_owned()),
        text: Some(notice.message.clone()),
        title: notice.title.clone(),
        level: Some(notice.level.to_string()),
        context: Some(notice.context.to_string()),
        link: notice.link.clone(),
        ..ReportBody::default()
    };
    let accepted = report::send(&client, &mut body, "deskbell prompt").await?;
    report::show(&client, &body, &accepted, output).await;
    Ok(json!({
        "event": accepted.id.to_string(),
        "text": notice.message,
        "level": notice.level.to_string(),
        "context": notice.context.to_string(),
        "title": notice.title,
        "link": notice.link,
    }))
}
