//! `deskbell channel import`: channels that other programs are configured with, as this program's configuration.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, IsTerminal as _, Read as _},
    path::Path,
};

use anyhow::Context as _;
use clap::ValueEnum;
use deskbell_core::text;
use serde_json::{Value, json};
use toml::Table;

use crate::{
    cli::{
        Exit, Failure, Output,
        config::sources,
        output::{WARNING, styled},
    },
    config::{
        import::{self, Gathered, Plan, Written},
        load::{FILE_LIMIT, Sources},
    },
};

/// Prints the configuration for channels that other programs are configured with.
///
/// Reads the `config.sh` of mcp-push and Qinglong, where variables of the environment go before the file, the files of
/// Apprise (lines or YAML, with tags, groups and includes), and Apprise's addresses. Nothing is sent. Ends with 1 if
/// something could not be taken; the comments say what and why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell channel import ~/.config/apprise/apprise.yml
  deskbell channel import config.sh --write
  deskbell channel import 'ntfy://builds-7f3a' 'mailtos://me:secret@example.com'
  deskbell channel import --env --secrets env
  cat apprise.txt | deskbell channel import -")]
pub(crate) struct Args {
    /// Files, addresses such as `ntfy://topic`, and `-` for stdin, which is read where nothing is named.
    #[arg(value_name = "FILE|URL")]
    places: Vec<String>,
    /// Take what mcp-push's variables in the environment describe.
    #[arg(long)]
    env: bool,
    /// How secrets are written: as they are, or as references to variables, which are listed.
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    secrets: SecretForm,
    /// Append the channels to the user's configuration and keep a copy of it as it was.
    #[arg(long)]
    write: bool,
    /// Print it as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// How secrets are written.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum SecretForm {
    #[default]
    Clear,
    Env,
}

pub(super) fn run(args: &Args, output: &Output) -> anyhow::Result<Exit> {
    let sources = sources()?;
    let gathered = gather(args, &sources.variables)?;
    let existing = existing(&sources, output);
    let secrets = match args.secrets {
        SecretForm::Clear => import::Secrets::Clear,
        SecretForm::Env => import::Secrets::Variables,
    };
    let plan = Plan::new(gathered, &existing, secrets);
    let written = (args.write && !plan.is_empty())
        .then(|| {
            let file = &sources.paths.config_user;
            import::append(file, &plan)
                .with_context(|| format!("failed to add to {}", file.display()))
        })
        .transpose()?;
    if args.json {
        output.json(&body(&plan, written.as_ref()))?;
    } else if !args.write {
        output.line(import::page(&plan).trim_end())?;
    }
    tell(args, &plan, written.as_ref(), output);
    Ok(if plan.left.is_empty() && !plan.is_empty() { Exit::Done } else { Exit::Failed })
}

fn gather(args: &Args, variables: &BTreeMap<String, String>) -> anyhow::Result<Gathered> {
    let mut gathered = Gathered::default();
    if args.env {
        gathered.environment(variables);
    }
    let reads_stdin = args.places.is_empty() && !args.env;
    if reads_stdin && io::stdin().is_terminal() {
        let failure = Failure::new(Exit::Wrong, "nothing is named that could be imported");
        return Err(failure.hint("name a file or an address, or say --env").into());
    }
    let stdin = reads_stdin.then_some("-");
    for (index, place) in args.places.iter().map(String::as_str).chain(stdin).enumerate() {
        match place.split_once("://") {
            _ if place == "-" => gathered.stdin(&read_stdin()?, variables),
            Some((scheme, _)) if !scheme.eq_ignore_ascii_case("file") => {
                gathered.address(index + 1, place);
            }
            file => {
                let path = Path::new(file.map_or(place, |(_, path)| path));
                let failed = |error: io::Error| {
                    let path = path.display();
                    Failure::new(Exit::Wrong, format!("{path} cannot be read: {error}"))
                };
                gathered.file(path, variables).map_err(failed)?;
            }
        }
    }
    Ok(gathered)
}

fn read_stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    io::stdin().take(FILE_LIMIT + 1).read_to_string(&mut text).context("failed to read stdin")?;
    if text.len() as u64 > FILE_LIMIT {
        let message = format!("stdin is larger than {FILE_LIMIT} bytes");
        return Err(Failure::new(Exit::Wrong, message).into());
    }
    Ok(text)
}

/// The channels of the user's file, and the names of those of the machine's.
fn existing(sources: &Sources, output: &Output) -> BTreeMap<String, Table> {
    let files = [&sources.paths.config_machine, &sources.paths.config_user];
    let mut existing = BTreeMap::new();
    for file in files {
        let Ok(text) = fs::read_to_string(file) else { continue };
        let Ok(config) = text.parse::<Table>() else {
            let (file, word) = (file.display(), styled(WARNING, "warning:"));
            output.note(format_args!("{word} {file} is no TOML, so its channels are not known"));
            continue;
        };
        let Some(toml::Value::Table(channels)) = config.get("channels") else { continue };
        for (name, channel) in channels {
            existing.insert(name.clone(), channel.as_table().cloned().unwrap_or_default());
        }
    }
    existing
}

fn body(plan: &Plan, written: Option<&Written>) -> Value {
    let channel = |channel: &import::Planned| {
        json!({
            "name": channel.name.as_str(),
            "kind": channel.kind,
            "from": channel.place.to_string(),
            "tags": channel.tags,
            "variables": channel.variables,
            "passed_over": channel.passed_over,
        })
    };
    let left = |left: &import::Left| json!({ "from": left.place.to_string(), "names": left.names, "reason": left.reason });
    json!({
        "channels": plan.channels.iter().map(channel).collect::<Vec<_>>(),
        "not_taken": plan.left.iter().map(left).collect::<Vec<_>>(),
        "skip_titles": plan.skip_titles,
        "toml": import::page(plan),
        "written_to": written.map(|written| written.file.display().to_string()),
        "backup": written.and_then(|written| written.backup.as_ref()).map(|backup| backup.display().to_string()),
    })
}

/// Says what a person has to know beside the page.
fn tell(args: &Args, plan: &Plan, written: Option<&Written>, output: &Output) {
    let warn = |text: &str| output.note(format_args!("{} {text}", styled(WARNING, "warning:")));
    if let Some(written) = written {
        let file = written.file.display().to_string();
        let names: Vec<_> = plan.channels.iter().map(|channel| channel.name.as_str()).collect();
        let what = if names.is_empty() { "titles".to_owned() } else { names.join(", ") };
        output.note(format_args!("{what}: added to {}", text::one_line(&file)));
        if let Some(backup) = &written.backup {
            let backup = backup.display().to_string();
            output.note(format_args!("as it was: {}", text::one_line(&backup)));
        }
        if written.keeps_titles {
            warn("the file has `skip_titles` already; the titles were not added");
        }
    }
    for channel in plan.channels.iter().filter(|channel| !channel.passed_over.is_empty()) {
        let (place, names) = (&channel.place, channel.passed_over.join(", "));
        warn(&text::one_line(&format!(
            "{place}: no channel has {names}, so it means nothing here"
        )));
    }
    if args.write || args.json {
        for left in &plan.left {
            let line = format!("{}: {}", left.place, left.reason);
            output.note(format_args!("not taken: {}", text::one_line(&line)));
        }
    }
    if plan.is_empty() && plan.left.is_empty() {
        output.note("nothing was found that describes a channel");
    }
    if plan.has_clear_secrets() {
        warn("there are secrets in it as they are");
        output.hint(match written {
            None => "`--secrets env` writes references to variables instead",
            Some(_) => {
                "for references to variables instead, take these channels out again and import with `--secrets env`"
            }
        });
    }
    let variables: Vec<_> = plan.variables().into_iter().collect();
    if !variables.is_empty() {
        output.note(format_args!("variables to set: {}", variables.join(", ")));
    }
}
