//! Apprise's tags: words that services share, and groups of them.

use std::collections::{BTreeMap, BTreeSet};

/// The words of a list of tags, each once and in the order in which they are written.
pub(super) fn words(list: &str) -> impl Iterator<Item = String> {
    let is_between = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '/' | '\\' | '|');
    list.split(is_between).filter(|word| !word.is_empty()).map(str::to_owned)
}

/// The tag without the priority in front of it: `2:endpoint` is `endpoint`.
pub(super) fn without_priority(tag: &str) -> &str {
    match tag.split_once(':') {
        Some((priority, tag)) if is_number(priority) => tag,
        _ => tag,
    }
}

/// Whether a tag ends with a number of retries, which belongs into a filter: Apprise takes no service with such a tag.
pub(super) fn has_retries(tag: &str) -> bool {
    without_priority(tag).rsplit_once(':').is_some_and(|(_, retries)| is_number(retries))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Which tags each group has.
#[derive(Default)]
pub(super) struct Groups(BTreeMap<String, BTreeSet<String>>);

impl Groups {
    /// Puts `tags` into `group`.
    pub(super) fn add(&mut self, group: &str, tags: impl IntoIterator<Item = String>) {
        let members = self.0.entry(group.to_owned()).or_default();
        members.extend(tags.into_iter().filter(|tag| tag != group));
    }

    /// `tags`, with the groups that have one of them, and the groups that have one of those.
    pub(super) fn with_groups(&self, tags: Vec<String>) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for tag in tags {
            let tag = without_priority(&tag).to_owned();
            if !all.contains(&tag) {
                all.push(tag);
            }
        }
        // Whoever only has the name of a group as a tag does not join the groups that have that group.
        let mut pending: Vec<String> =
            all.iter().filter(|tag| !self.0.contains_key(*tag)).cloned().collect();
        let mut reached = BTreeSet::new();
        while let Some(tag) = pending.pop() {
            for (group, members) in &self.0 {
                if members.contains(&tag) && reached.insert(group.clone()) {
                    pending.push(group.clone());
                }
            }
        }
        let new: Vec<_> = reached.into_iter().filter(|group| !all.contains(group)).collect();
        all.extend(new);
        all
    }
}
