//! From what is written to what holds: secrets found, names and bounds checked.

mod routes;

use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use deskbell_channels::Manner;
use deskbell_core::{ChannelName, Invalid, Level, quiet::Quiet};
use jiff::{civil::Weekday, tz::TimeZone};

use super::{
    ChannelOptions, Config, DeliveryOptions, LogFile, McpOptions, Tracing, TracingTarget,
    file::{ChannelTable, DeliveryTable, File, LogFileTable, QuietTable, TracingTable},
    finding::{Finding, did_you_mean},
    load::{PROJECT_FILE, Sources},
    mcp_push::Imported,
    read::read,
    secrets::{self, Secrets},
    tree::{self, Node, Place, Source, Step, Value},
};
use crate::{mcp::profiles::ToolNames, telemetry::filter, terminal};

/// How long an attempt may take at most.
const LONGEST_TIMEOUT: Duration = Duration::from_mins(10);

/// How many attempts there may be.
const ATTEMPTS: RangeInclusive<u32> = 1..=100;

/// How many days a week has.
const EVERY_DAY: usize = 7;

/// The smallest log file, in bytes: room for a few lines.
const LEAST_LOG_BYTES: u64 = 1024;

/// The most log files that are kept.
const MOST_LOGS: u32 = 100;

/// What the parts of a configuration are made from.
pub(super) struct Parts<'a> {
    pub(super) tree: &'a Node,
    pub(super) sources: &'a Sources,
    pub(super) findings: Vec<Finding>,
    pub(super) secrets: Secrets<'a>,
}

impl Parts<'_> {
    pub(super) fn config(
        &mut self,
        file: File,
        channels: Option<Node>,
        imported: Option<Imported>,
    ) -> Config {
        let imported = imported.unwrap_or_default();
        self.findings.extend(imported.findings);
        let written = channels.as_ref().and_then(Node::as_table).map(BTreeMap::keys);
        let declared: Vec<String> = written
            .into_iter()
            .flatten()
            .cloned()
            .chain(imported.channels.keys().map(ToString::to_string))
            .collect();
        let quiet = self.quiet(file.quiet.clone(), &dotted("quiet"));
        let mut channels = self.channels(channels, &file.quiet);
        channels.extend(imported.channels);
        Config {
            project_channels: self.project_channels(&channels),
            channels,
            routes: self.routes(file.routes, &declared),
            tracing: self.tracing(file.tracing),
            delivery: self.delivery(&file.delivery),
            quiet,
            mcp: McpOptions {
                profile: file.mcp.profile.map(|profile| profile.as_str().to_owned()),
                tool_names: file.mcp.tool_names.map(ToolNames::from),
                notifications_per_minute: file.mcp.notifications_per_minute,
            },
            serve: self.serve(file.serve),
            keep_history: file.keep_history.0.0,
            skip_titles: file.skip_titles.into_iter().chain(imported.skip_titles).collect(),
            problems: Vec::new(),
        }
    }

    /// Warns of files that others can read and that hold a secret in the clear.
    pub(super) fn warn_of_clear_secrets(&mut self) {
        for source in &self.secrets.clear_in {
            if let Source::File(path) = &**source
                && is_readable_by_others(path)
            {
                let place = Place { source: source.clone(), position: None };
                let message = "others can read this file, and it holds secrets in the clear";
                let hint = "run `chmod 600` on it, or write secrets as `env:NAME` or `file:PATH`";
                self.findings.push(Finding::warning(place, "", message).with_hint(hint));
            }
        }
    }

    fn channels(
        &mut self,
        channels: Option<Node>,
        quiet: &QuietTable,
    ) -> BTreeMap<ChannelName, ChannelOptions> {
        let Some(Node { value, place }) = channels else {
            return BTreeMap::new();
        };
        let Value::Table(table) = value else {
            self.findings.push(Finding::fatal(place, "channels", "expected a table"));
            return BTreeMap::new();
        };
        let mut channels = BTreeMap::new();
        for (name, node) in table {
            match self.channel(&name, node, quiet) {
                Ok(Some((name, options))) => {
                    channels.insert(name, options);
                }
                Ok(None) => {}
                Err(finding) => self.findings.push(finding.at_most_a_problem()),
            }
        }
        channels
    }

    /// The channels that a project's file brings, with the file.
    fn project_channels(
        &self,
        channels: &BTreeMap<ChannelName, ChannelOptions>,
    ) -> BTreeMap<ChannelName, PathBuf> {
        let brought_by = |name: &ChannelName| {
            let node = self.tree.at(&channel_path(name.as_str(), None))?;
            match &*node.place.source {
                Source::File(file) if file.file_name()? == PROJECT_FILE => Some(file.clone()),
                _ => None,
            }
        };
        channels.keys().filter_map(|name| Some((name.clone(), brought_by(name)?))).collect()
    }

    /// A channel with its secrets, or `None` when it is not used or what is wrong has been told.
    fn channel(
        &mut self,
        name: &str,
        mut node: Node,
        quiet_of_all: &QuietTable,
    ) -> Result<Option<(ChannelName, ChannelOptions)>, Finding> {
        let place = node.place.clone();
        let path = channel_path(name, None);
        let problem = |place: &Place, message: String| {
            Finding::problem(place.clone(), tree::shown(&path), message)
        };
        let parsed = name.parse::<ChannelName>().map_err(|refusal: Invalid| {
            problem(&place, format!("the name is not right; expected {}", refusal.expected))
        })?;
        if node.as_table().is_none() {
            return Err(problem(&place, "expected a table".to_owned()));
        }
        let has_kind = node.as_table().is_some_and(|table| table.contains_key("kind"));
        let common = take_common(&mut node, has_kind);
        let mut findings = Vec::new();
        let table: ChannelTable = read(common, &path, &mut findings);
        let is_broken = !findings.is_empty();
        self.findings.extend(findings.into_iter().map(Finding::at_most_a_problem));
        if is_broken || !table.enabled.0 {
            return Ok(None);
        }
        if table.per_minute == Some(0) {
            return Err(problem(&place, "`per_minute` is 0; expected at least 1".to_owned()));
        }
        let mut manner = Manner::default();
        let (kind, options) = match (table.kind, table.url) {
            (Some(kind), _) => (kind, self.options(name, &node)?),
            (None, Some(url)) => {
                let resolved = secrets::resolve_address(&url, &mut self.secrets, &place);
                if !secrets::is_reference(&url) && resolved.as_ref().is_ok_and(|same| *same == url)
                {
                    self.secrets.note_clear(&place);
                }
                let url = resolved.map_err(|why| {
                    let key = tree::shown(&channel_path(name, Some("url")));
                    Finding::unresolved(place.clone(), key, &why)
                })?;
                let found = deskbell_channels::from_url(&url)
                    .map_err(|error| problem(&place, format!("`url`: {error}")))?;
                manner = found.manner;
                (found.kind.to_owned(), found.options)
            }
            (None, None) => {
                let finding = problem(&place, "`kind` is missing".to_owned());
                return Err(finding.with_hint(known_kinds()));
            }
        };
        let Some(known) = deskbell_channels::kind(&kind) else {
            let kinds = deskbell_channels::kinds().iter().map(|kind| kind.about.name);
            let hint = did_you_mean(&kind, kinds).unwrap_or_else(known_kinds);
            let finding = problem(&place, "there is no such `kind` of channel".to_owned());
            return Err(finding.with_hint(hint));
        };
        let stand_in = table.stand_in.map(|stand_in| stand_in.0);
        if stand_in.is_some() && !known.speaks_http() {
            let message = format!("`stand_in` is for kinds that speak HTTP, and `{kind}` does not");
            return Err(problem(&place, message));
        }
        let is_real = |_: &String| stand_in.is_none();
        if let Some(option) = known.clear_address(&options).filter(is_real) {
            let message =
                "secrets go to this address without encryption, so that others can read them";
            let key = tree::shown(&channel_path(name, Some(&option)));
            let finding = Finding::warning(place.clone(), key, message);
            self.findings.push(finding.with_hint("use https if the far end takes it"));
        }
        manner.format = table.format.map(|format| format.0).or(manner.format);
        manner.overflow = table.overflow.map_or(manner.overflow, |overflow| overflow.0);
        let per_minute = table.per_minute;
        let quiet = match table.quiet.is_empty() {
            true => None,
            false => {
                let path = channel_path(name, Some("quiet"));
                self.quiet(table.quiet.or(quiet_of_all.clone()), &path)
            }
        };
        Ok(Some((parsed, ChannelOptions { kind, options, per_minute, manner, quiet, stand_in })))
    }

    /// The options of a channel beside the common ones, with their secrets.
    fn options(&mut self, name: &str, node: &Node) -> Result<toml::Table, Finding> {
        let known = self
            .tree
            .at(&channel_path(name, Some("kind")))
            .and_then(|kind| kind.clone().plain(true).as_str().and_then(deskbell_channels::kind));
        let schema = known.map(|kind| kind.schema().to_value()).unwrap_or_default();
        let secret_names: Vec<_> = known
            .map(|kind| kind.options())
            .unwrap_or_default()
            .into_iter()
            .filter_map(|option| option.secret.then_some(option.name))
            .collect();
        let mut options = toml::Table::new();
        for (key, option) in node.as_table().into_iter().flatten() {
            let place = option.place.clone();
            let value = option.clone().plain(is_text(&schema, key));
            if secret_names.contains(key) && has_clear_text(&value) {
                self.secrets.note_clear(&place);
            }
            let resolved = self.secrets.resolve_all(value, &place).map_err(|why| {
                let key = tree::shown(&channel_path(name, Some(key)));
                Finding::unresolved(place.clone(), key, &why)
            })?;
            options.insert(key.clone(), resolved);
        }
        Ok(options)
    }

    /// The quiet hours that stand at `path`, if there are any.
    fn quiet(&mut self, table: QuietTable, path: &[Step]) -> Option<Quiet> {
        if table.is_empty() {
            return None;
        }
        let mut wrong = |key: &str, message: &str| {
            let path: Vec<_> = path.iter().cloned().chain([Step::Key(key.to_owned())]).collect();
            let place = self.place(&path);
            self.findings.push(Finding::fatal(place, tree::shown(&path), message));
            None
        };
        let Some(from) = table.from else {
            return wrong("from", "it is missing; expected a time such as `22:00`");
        };
        let Some(to) = table.to else {
            return wrong("to", "it is missing; expected a time such as `07:00`");
        };
        let mut days: Vec<Weekday> = table.days.0.into_iter().map(Weekday::from).collect();
        days.sort_unstable_by_key(|day| day.to_monday_one_offset());
        days.dedup();
        if from == to && (days.is_empty() || days.len() == EVERY_DAY) {
            return wrong("to", "it is the same as `from` on every day, so nothing would be told");
        }
        let zone = match table.time_zone {
            None => TimeZone::system(),
            Some(name) => match TimeZone::get(&name) {
                Ok(zone) => zone,
                Err(_) => return wrong("time_zone", "expected a zone such as `Europe/Berlin`"),
            },
        };
        let breaks_through = table.breaks_through.map_or(Level::Error, |level| level.0);
        Some(Quiet { from: from.0.0, to: to.0.0, days, breaks_through, zone })
    }

    fn tracing(&mut self, table: TracingTable) -> Tracing {
        let names = |contexts: Vec<super::file::Parsed<_>>| {
            contexts.into_iter().map(|context| context.0).collect()
        };
        for (index, rule) in table.targets.iter().enumerate() {
            let is_level =
                rule.name.strip_prefix(terminal::TARGET).is_some_and(|rest| rest.starts_with("::"));
            if is_level && filter::notice_level(&rule.name).is_none() {
                let path = [
                    Step::Key("tracing".to_owned()),
                    Step::Key("targets".to_owned()),
                    Step::Index(index),
                    Step::Key("name".to_owned()),
                ];
                let message =
                    "expected `llm_notify`, or a level behind it such as `llm_notify::warn`";
                self.findings.push(Finding::fatal(self.place(&path), tree::shown(&path), message));
            }
        }
        let rule = |rule: super::file::TargetTable| TracingTarget {
            name: rule.name,
            level: rule.level.0.0,
        };
        Tracing {
            targets: table.targets.into_iter().map(rule).collect(),
            contexts: names(table.contexts),
            hidden_contexts: names(table.hide_contexts),
            file: Some(self.log_file(table.file)),
        }
    }

    fn log_file(&mut self, table: LogFileTable) -> LogFile {
        self.expect(table.max_bytes >= LEAST_LOG_BYTES, "tracing.file.max_bytes", "at least 1024");
        self.expect(table.keep <= MOST_LOGS, "tracing.file.keep", "at most 100");
        let key = "tracing.file.path";
        let path = match table.path {
            None => self.sources.paths.log(),
            Some(path) => {
                let place = self.place(&dotted(key));
                let found = absolute(&path, &place, &self.sources.variables);
                self.expect(found.is_some(), key, "a path from the root or from `~/`");
                found.unwrap_or_else(|| self.sources.paths.log())
            }
        };
        LogFile { path, max_bytes: table.max_bytes, keep: table.keep as usize }
    }

    fn delivery(&mut self, table: &DeliveryTable) -> DeliveryOptions {
        let (timeout, update_interval) = (table.timeout.0.0, table.update_interval.0.0);
        self.expect(ATTEMPTS.contains(&table.attempts), "delivery.attempts", "1 to 100");
        let is_usable = !timeout.is_zero() && timeout <= LONGEST_TIMEOUT;
        self.expect(is_usable, "delivery.timeout", "more than nothing and at most 10m");
        DeliveryOptions { attempts: table.attempts, timeout, update_interval }
    }

    fn expect(&mut self, is_met: bool, key: &str, expected: &str) {
        if !is_met {
            let place = self.place(&dotted(key));
            self.findings.push(Finding::fatal(place, key, format!("expected {expected}")));
        }
    }

    /// Where `path` was written, or the nearest table on the way to it.
    pub(super) fn place(&self, path: &[Step]) -> Place {
        let written = (0..=path.len()).rev().find_map(|length| self.tree.at(path.get(..length)?));
        written.unwrap_or(self.tree).place.clone()
    }
}

fn channel_path(name: &str, key: Option<&str>) -> Vec<Step> {
    ["channels", name].into_iter().chain(key).map(|key| Step::Key(key.to_owned())).collect()
}

fn dotted(key: &str) -> Vec<Step> {
    key.split('.').map(|key| Step::Key(key.to_owned())).collect()
}

/// The options that every channel has, beside `url`.
pub(super) const COMMON: [&str; 7] =
    ["kind", "per_minute", "format", "overflow", "quiet", "stand_in", "enabled"];

/// Takes the options that every channel has out of `node`. Beside `kind`, `url` is an option of the kind.
fn take_common(node: &mut Node, has_kind: bool) -> Node {
    let mut common = Node::table(node.place.clone());
    let keys = COMMON.into_iter().chain((!has_kind).then_some("url"));
    for key in keys {
        if let Some(option) = node.take(key) {
            common.put(&[key.to_owned()], option);
        }
    }
    common
}

fn known_kinds() -> String {
    let names: Vec<_> = deskbell_channels::kinds().iter().map(|kind| kind.about.name).collect();
    format!("the kinds are {}", names.join(", "))
}

/// Whether the schema of a kind's options has a text at `key`, alone or in a list, so that `12` in a variable is one.
fn is_text(schema: &serde_json::Value, key: &str) -> bool {
    let option = schema.get("properties").and_then(|options| options.get(key));
    option.is_some_and(|option| takes_text(option, schema))
}

/// Whether `option` takes a text; `schema` is the whole that its references lead into.
fn takes_text(option: &serde_json::Value, schema: &serde_json::Value) -> bool {
    let named = option.get("$ref").and_then(serde_json::Value::as_str);
    if let Some(path) = named.and_then(|name| name.strip_prefix('#')) {
        return schema.pointer(path).is_some_and(|named| takes_text(named, schema));
    }
    let is_string = |kind: &serde_json::Value| kind == "string";
    let has_string = |kinds: &Vec<serde_json::Value>| kinds.iter().any(is_string);
    let choices = ["anyOf", "oneOf"].into_iter().filter_map(|name| option.get(name)?.as_array());
    option
        .get("type")
        .is_some_and(|kind| is_string(kind) || kind.as_array().is_some_and(has_string))
        || choices.flatten().any(|choice| takes_text(choice, schema))
}

/// Whether a text in `value` is no reference.
fn has_clear_text(value: &toml::Value) -> bool {
    match value {
        toml::Value::String(text) => !secrets::is_reference(text),
        toml::Value::Array(items) => items.iter().any(has_clear_text),
        toml::Value::Table(table) => table.values().any(has_clear_text),
        _ => false,
    }
}

/// The path that `path` means where it was written: below the home folder, or beside the file that names it.
pub(super) fn absolute(
    path: &Path,
    place: &Place,
    variables: &BTreeMap<String, String>,
) -> Option<PathBuf> {
    if path.is_absolute() {
        return Some(path.to_owned());
    }
    let found = match (path.strip_prefix("~"), &*place.source) {
        (Ok(below), _) => variables.get("HOME").map(|home| Path::new(home).join(below)),
        (Err(_), Source::File(file)) => file.parent().map(|folder| folder.join(path)),
        (Err(_), _) => None,
    };
    found.filter(|path| path.is_absolute())
}

#[cfg(unix)]
fn is_readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o044 != 0)
}

// On Windows a user's files are private by inheritance.
#[cfg(not(unix))]
fn is_readable_by_others(_path: &Path) -> bool {
    false
}
