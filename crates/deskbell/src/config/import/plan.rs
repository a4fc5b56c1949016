//! Under which names the gathered channels are to be written, and with which options.

use std::collections::{BTreeMap, BTreeSet};

use deskbell_channels::{ChannelKind, Overflow};
use deskbell_core::ChannelName;
use toml::{Table, Value};

use super::{
    super::{ChannelOptions, Place},
    gather::{Found, Gathered, Left},
};

/// How secrets are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Secrets {
    /// As they are.
    #[default]
    Clear,
    /// As references to variables of the environment.
    Variables,
}

/// What is to be written.
#[derive(Debug)]
pub struct Plan {
    /// The channels, in the order in which they were found.
    pub channels: Vec<Planned>,
    /// What cannot be taken.
    pub left: Vec<Left>,
    /// Titles that are never pushed.
    pub skip_titles: Vec<String>,
    /// Channels that share a tag.
    pub groups: Vec<TagGroup>,
}

/// A channel under its name.
#[derive(Debug)]
pub struct Planned {
    /// The name.
    pub name: ChannelName,
    /// Where it is written.
    pub place: Place,
    /// Further names that it has there.
    pub tags: Vec<String>,
    /// What `[channels.NAME]` holds.
    pub table: Table,
    /// The kind.
    pub kind: String,
    /// What its address says and no channel does.
    pub passed_over: Vec<&'static str>,
    /// Whether a secret stands in it as it is.
    pub has_clear_secrets: bool,
    /// The variables that it refers to.
    pub variables: Vec<String>,
}

/// Channels that share a tag.
#[derive(Debug)]
pub struct TagGroup {
    /// The tag.
    pub tag: String,
    /// The channels, more than one.
    pub channels: Vec<ChannelName>,
}

impl Plan {
    /// Gives each of the gathered channels a name that none of `existing` has. What is there already, option for option, is left.
    pub fn new(gathered: Gathered, existing: &BTreeMap<String, Table>, secrets: Secrets) -> Self {
        let Gathered { found, mut left, skip_titles, variables, .. } = gathered;
        let mut channels: Vec<Planned> = Vec::new();
        let mut tagged: Vec<(String, Vec<ChannelName>)> = Vec::new();
        for found in found {
            let written = existing.iter().map(|(name, table)| (name.as_str(), table));
            let planned = channels.iter().map(|channel| (channel.name.as_str(), &channel.table));
            let mut known: BTreeMap<&str, &Table> = written.chain(planned).collect();
            known.retain(|name, table| {
                let is_same =
                    || Options::of(&found.channel, name, secrets, &variables).table == **table;
                table.get("kind").and_then(Value::as_str) == Some(&found.channel.kind) && is_same()
            });
            if let Some(name) = known.keys().next() {
                let reason = format!("channel `{name}` is the same");
                left.push(Left { place: found.place, names: found.names, reason });
                continue;
            }
            let is_free = |name: &str| {
                !existing.contains_key(name)
                    && channels.iter().all(|channel| channel.name.as_str() != name)
            };
            let Some(name) = free_name(&found, is_free) else { continue };
            for tag in &found.names {
                match tagged.iter_mut().find(|(known, _)| known == tag) {
                    Some((_, names)) => names.push(name.clone()),
                    None => tagged.push((tag.clone(), vec![name.clone()])),
                }
            }
            let options = Options::of(&found.channel, name.as_str(), secrets, &variables);
            channels.push(Planned {
                place: found.place,
                tags: found.names.into_iter().filter(|tag| tag != name.as_str()).collect(),
                table: options.table,
                kind: found.channel.kind,
                passed_over: found.passed_over,
                has_clear_secrets: options.has_clear_secrets,
                variables: options.variables,
                name,
            });
        }
        let groups = tagged
            .into_iter()
            .filter(|(_, channels)| channels.len() > 1)
            .map(|(tag, channels)| TagGroup { tag, channels })
            .collect();
        Self { channels, left, skip_titles, groups }
    }

    /// Whether there is nothing to write.
    pub const fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.skip_titles.is_empty()
    }

    /// Whether a secret is written as it is.
    pub fn has_clear_secrets(&self) -> bool {
        self.channels.iter().any(|channel| channel.has_clear_secrets)
    }

    /// The variables that have to be set.
    pub fn variables(&self) -> BTreeSet<&str> {
        self.channels.iter().flat_map(|channel| &channel.variables).map(String::as_str).collect()
    }
}

/// The name that a channel has where it comes from, as far as a channel may be called so, with a number where it is
/// taken.
fn free_name(found: &Found, is_free: impl Fn(&str) -> bool) -> Option<ChannelName> {
    // Room for the number.
    const LONGEST: usize = ChannelName::LIMIT - 8;
    let wanted = found.names.first().unwrap_or(&found.channel.kind);
    let clean = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let wanted: String = wanted.chars().map(clean).take(LONGEST).collect();
    let wanted = match wanted.trim_matches('-') {
        "" => &found.channel.kind,
        wanted => wanted,
    };
    let numbered = (2..).map(|number: u32| format!("{wanted}-{number}"));
    std::iter::once(wanted.to_owned()).chain(numbered).find(|name| is_free(name))?.parse().ok()
}

/// What `[channels.NAME]` holds for a channel.
struct Options<'a> {
    kind: Option<&'static ChannelKind>,
    name: &'a str,
    /// Variables by their values.
    known: &'a BTreeMap<String, String>,
    secrets: Secrets,
    table: Table,
    has_clear_secrets: bool,
    variables: Vec<String>,
}

impl<'a> Options<'a> {
    fn of(
        channel: &ChannelOptions,
        name: &'a str,
        secrets: Secrets,
        known: &'a BTreeMap<String, String>,
    ) -> Self {
        let kind = deskbell_channels::kind(&channel.kind);
        let mut options = Self {
            kind,
            name,
            known,
            secrets,
            table: Table::new(),
            has_clear_secrets: false,
            variables: Vec::new(),
        };
        let table = options.table_at(&[], channel.options.clone());
        options.table = table;
        options.table.insert("kind".to_owned(), channel.kind.clone().into());
        if let Some(format) = channel.manner.format {
            options.table.insert("format".to_owned(), format.as_str().into());
        }
        if channel.manner.overflow != Overflow::default() {
            options.table.insert("overflow".to_owned(), channel.manner.overflow.as_str().into());
        }
        options
    }

    fn table_at(&mut self, path: &[&str], table: Table) -> Table {
        let entries = table.into_iter().map(|(key, value)| {
            let value = self.value_at(&[path, &[key.as_str()]].concat(), value);
            (key, value)
        });
        entries.collect()
    }

    fn value_at(&mut self, path: &[&str], value: Value) -> Value {
        match value {
            Value::Table(table) => Value::Table(self.table_at(path, table)),
            Value::Array(items) => {
                let is_one = items.len() == 1;
                let item = |(index, item)| {
                    // An only item needs no number in the name of its variable.
                    let number = if is_one { String::new() } else { format!("{}", index + 1) };
                    self.value_at(&[path, &[number.as_str()]].concat(), item)
                };
                Value::Array(items.into_iter().enumerate().map(item).collect())
            }
            Value::String(text) if self.is_secret(path, &text) => self.secret_at(path, text),
            other => other,
        }
    }

    /// Whether `text` would be secret at `path`, where numbers and nothing at all are places in lists.
    fn is_secret(&self, path: &[&str], text: &str) -> bool {
        let innermost = Value::String(text.to_owned());
        let lone = path.iter().rev().fold(innermost, |value, key| {
            if key.bytes().all(|byte| byte.is_ascii_digit()) {
                Value::Array(vec![value])
            } else {
                Value::Table([((*key).to_owned(), value)].into_iter().collect())
            }
        });
        match (self.kind, lone) {
            (Some(kind), Value::Table(lone)) => kind.has_secrets(&lone),
            _ => false,
        }
    }

    fn secret_at(&mut self, path: &[&str], text: String) -> Value {
        if self.secrets == Secrets::Clear {
            self.has_clear_secrets = true;
            return Value::String(text);
        }
        let variable = match self.known.get(&text) {
            Some(variable) => variable.clone(),
            None => variable(self.name, path),
        };
        let reference = Value::String(format!("env:{variable}"));
        self.variables.push(variable);
        reference
    }
}

/// The variable for an option of a channel. Two underscores would make it an option of the program.
fn variable(name: &str, path: &[&str]) -> String {
    let words = [&["DESKBELL", name], path].concat().join("_").to_ascii_uppercase();
    let words = words.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_")
}
