//! Apprise's configuration in YAML: `urls` with options below or beside each, `tag`, `groups` and `include`.
//!
//! Options go before those in the address, and options below an address before those beside it. `asset` says how
//! Apprise looks and means nothing here.

use std::{iter, sync::Arc};

use super::{
    super::{Place, Source},
    apprise_text::has_scheme,
    gather::Gathered,
    tags::{self, Groups},
    yaml::{self, NoYaml, Yaml},
};

/// Options of one address, by name; the later ones count.
type Settings = Vec<(String, Yaml)>;

/// Adds the channels of `text`, and returns the files that it includes.
pub(super) fn read(
    source: &Arc<Source>,
    text: &str,
    gathered: &mut Gathered,
) -> Vec<(Place, String)> {
    let place = |line: Option<usize>| Place {
        source: Arc::clone(source),
        position: line.map(|line| (line, 1)),
    };
    let root = match yaml::parse(text) {
        Ok(root) => root,
        Err(NoYaml { line, reason }) => {
            gathered.leave(place(line), Vec::new(), reason);
            return Vec::new();
        }
    };
    if root.get("version").is_some_and(|version| *version != Yaml::Text("1".to_owned())) {
        gathered.leave(place(None), Vec::new(), "its `version` is not 1, the only one there is");
        return Vec::new();
    }
    let groups = groups(root.get("groups"));
    let everywhere = words(root.get("tag").or_else(|| root.get("tags")));
    let urls = match root.get("urls") {
        Some(Yaml::List(urls)) => urls.as_slice(),
        Some(Yaml::Null) => &[],
        None if root.get("include").is_some() => &[],
        _ => {
            gathered.leave(place(None), Vec::new(), "it has no list `urls`");
            &[]
        }
    };
    for (line, entry) in urls {
        let place = place(Some(*line));
        let Some((address, settings)) = services(entry) else {
            gathered.leave(place, Vec::new(), "this entry of `urls` has no address");
            continue;
        };
        if settings.is_empty() {
            gathered.leave(place.clone(), Vec::new(), "the list below the address has no options");
        }
        for settings in settings {
            service(gathered, place.clone(), address, settings, &everywhere, &groups);
        }
    }
    let includes = root.get("include").map(Yaml::texts).unwrap_or_default();
    let includes = includes.into_iter().flat_map(|list| list.split([',', ' ']));
    let includes = includes.map(str::trim).filter(|include| !include.is_empty());
    includes.map(|include| (place(None), include.to_owned())).collect()
}

/// The address of an entry, and the options of each of its services.
fn services(entry: &Yaml) -> Option<(&str, Vec<Settings>)> {
    let entries = match entry {
        Yaml::Text(address) if has_scheme(address) => return Some((address, vec![Vec::new()])),
        Yaml::Map(entries) => entries,
        _ => return None,
    };
    let at = entries.iter().position(|(key, _)| has_scheme(key))?;
    let (address, below) = entries.get(at)?;
    let beside: Settings = entries
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != at)
        .map(|(_, entry)| entry.clone())
        .collect();
    let with = |below: &Settings| beside.iter().chain(below).cloned().collect::<Settings>();
    let each = match below {
        Yaml::Map(below) => vec![with(below)],
        // Every item is a service of its own.
        Yaml::List(items) => items
            .iter()
            .filter_map(|(_, item)| match item {
                Yaml::Map(below) => Some(with(below)),
                _ => None,
            })
            .collect(),
        Yaml::Null | Yaml::Text(_) => vec![beside],
    };
    Some((address, each))
}

fn service(
    gathered: &mut Gathered,
    place: Place,
    address: &str,
    settings: Settings,
    everywhere: &[String],
    groups: &Groups,
) {
    let own = settings.iter().rev().find(|(name, _)| name == "tag");
    let own = own.or_else(|| settings.iter().rev().find(|(name, _)| name == "tags"));
    let mut tags = words(own.map(|(_, tags)| tags));
    tags.extend(everywhere.iter().cloned());
    if tags.iter().any(|tag| tags::has_retries(tag)) {
        let reason =
            "a tag of an address has no number of retries, and Apprise takes none there either";
        return gathered.leave(place, tags, reason);
    }
    let tags = groups.with_groups(tags);
    let mut parameters = Vec::new();
    for (name, value) in settings {
        if matches!(name.as_str(), "tag" | "tags" | "schema") {
            continue;
        }
        match parameter(value) {
            Some(value) => parameters.push((name, value)),
            None => {
                let reason = "one of its options is a table, which no address has";
                return gathered.leave(place, tags, reason);
            }
        }
    }
    let read = deskbell_channels::from_url_with(address, parameters).map_err(|error| error.0);
    gathered.apprise(place, tags, read);
}

/// An option as it stands in an address: a list with commas.
fn parameter(value: Yaml) -> Option<String> {
    match value {
        Yaml::Null => Some(String::new()),
        Yaml::Text(text) => Some(text),
        Yaml::List(items) => {
            let items = items.into_iter().map(|(_, item)| parameter(item));
            items.collect::<Option<Vec<_>>>().map(|items| items.join(","))
        }
        Yaml::Map(_) => None,
    }
}

fn words(list: Option<&Yaml>) -> Vec<String> {
    list.map(Yaml::texts).unwrap_or_default().into_iter().flat_map(tags::words).collect()
}

/// Groups, as a table of lists or as a list of such tables.
fn groups(written: Option<&Yaml>) -> Groups {
    let tables: Vec<&Yaml> = match written {
        Some(Yaml::List(tables)) => tables.iter().map(|(_, table)| table).collect(),
        Some(table) => iter::once(table).collect(),
        None => Vec::new(),
    };
    let mut groups = Groups::default();
    for table in tables {
        let Yaml::Map(entries) = table else { continue };
        for (names, tags) in entries {
            for group in tags::words(names) {
                groups.add(&group, words(Some(tags)));
            }
        }
    }
    groups
}
