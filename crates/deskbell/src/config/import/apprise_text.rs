//! Apprise's configuration in lines: an address, `tag1,tag2 = address`, `group = tag1,tag2`, `include file`.

use std::sync::Arc;

use super::{
    super::{Place, Source},
    gather::Gathered,
    tags::{self, Groups},
};

/// What a line says.
enum Line<'a> {
    Nothing,
    Address { tags: &'a str, address: &'a str },
    Group { groups: &'a str, tags: &'a str },
    Include(&'a str),
    Unknown,
}

/// Adds the channels of `text`, and returns the files that it includes.
pub(super) fn read(
    source: &Arc<Source>,
    text: &str,
    gathered: &mut Gathered,
) -> Vec<(Place, String)> {
    let mut includes = Vec::new();
    let mut addresses = Vec::new();
    let mut all_groups = Groups::default();
    for (index, line) in text.lines().enumerate() {
        let place = Place { source: Arc::clone(source), position: Some((index + 1, 1)) };
        match Line::of(line) {
            Line::Nothing => {}
            Line::Address { tags, address } => addresses.push((place, tags, address)),
            Line::Group { groups, tags } => {
                for group in tags::words(groups) {
                    all_groups.add(&group, tags::words(tags));
                }
            }
            Line::Include(file) => includes.push((place, file.to_owned())),
            Line::Unknown => {
                let reason = "this line is no address, no group of tags and no `include`";
                gathered.leave(place, Vec::new(), reason);
            }
        }
    }
    for (place, tags, address) in addresses {
        let tags: Vec<_> = tags::words(tags).collect();
        if tags.iter().any(|tag| tags::has_retries(tag)) {
            let reason =
                "a tag of an address has no number of retries, and Apprise takes none there either";
            gathered.leave(place, tags, reason);
            continue;
        }
        let read = deskbell_channels::from_url(address).map_err(|error| error.0);
        gathered.apprise(place, all_groups.with_groups(tags), read);
    }
    includes
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Self {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return Self::Nothing;
        }
        if let Some(file) =
            line.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t']))
        {
            return Self::Include(file.trim());
        }
        let (tags, rest) = match line.split_once('=') {
            Some((tags, rest)) if is_tags(tags) => (tags.trim(), rest.trim()),
            _ => ("", line),
        };
        if has_scheme(rest) {
            Self::Address { tags, address: rest }
        } else if !tags.is_empty() && !rest.is_empty() && is_tags(rest) {
            Self::Group { groups: tags, tags: rest }
        } else {
            Self::Unknown
        }
    }
}

fn is_tags(text: &str) -> bool {
    let is_part =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, ',' | '_' | ':' | '-' | ' ' | '\t');
    text.chars().all(is_part)
}

/// Whether `text` begins as an address does.
pub(super) fn has_scheme(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        (1..=32).contains(&scheme.len()) && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}
