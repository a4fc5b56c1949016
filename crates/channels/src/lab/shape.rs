//! How the requests of a kind look.

use std::collections::BTreeSet;

use super::leaves::{Asked, Place};

/// The text of the previews, in which no dialect escapes anything.
pub(super) const TEXT: &str = "plain words of a sample";

/// Their title.
pub(super) const TITLE: &str = "headline of a sample";

/// What their files are called, before the end that says of which sort they are.
pub(super) const FILE: &str = "file-of-a-sample";

/// How the requests to one address look.
#[derive(Debug)]
pub(super) struct Shape {
    method: String,
    path: Vec<String>,
    is_multipart: bool,
    /// Headers that every request has, such as the one with the token.
    headers: BTreeSet<String>,
    /// Values that every request has.
    required: BTreeSet<String>,
    /// Where the text may stand.
    texts: BTreeSet<String>,
    /// Where the title may stand.
    titles: BTreeSet<String>,
    /// Where the id of the event stands, if it does.
    key: Option<String>,
    /// Where the id of the message stands that is changed, if one is.
    earlier: Option<Place>,
}

/// What a request tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// The title, where it has a place of its own.
    pub title: Option<String>,
    /// The text, as it was written for the far end.
    pub text: Option<String>,
}

impl Shape {
    pub(super) fn of(asked: &Asked, event: &str) -> Self {
        let with = |words: &str| {
            let found = asked.leaves.iter().filter(|(_, value)| value.contains(words));
            found.map(|(name, _)| name.clone()).collect::<BTreeSet<_>>()
        };
        let is_own = |header: &&String| {
            // What is said of the body or by every client is no token.
            !matches!(header.as_str(), "content-type" | "content-length" | "accept" | "user-agent")
        };
        Self {
            method: asked.method.clone(),
            path: asked.path.clone(),
            is_multipart: asked.is_multipart,
            headers: asked.headers.iter().filter(is_own).cloned().collect(),
            required: filled(asked).map(|(name, _)| name.clone()).collect(),
            texts: with(TEXT),
            titles: with(TITLE),
            key: with(event).into_iter().next(),
            earlier: None,
        }
    }

    /// The shape of a request that hands over a file, which tells the file's name, or is a step on the way there.
    pub(super) fn of_file(mut self, asked: &Asked, is_told: bool) -> Self {
        // A file may look like anything.
        self.required.remove("body");
        if is_told {
            self.texts.extend(named(asked));
        } else {
            (self.texts, self.titles) = (BTreeSet::new(), BTreeSet::new());
        }
        self
    }

    /// The shape of a request that changes the message whose id stands at `place`.
    pub(super) fn of_edit(self, place: Place) -> Self {
        Self { earlier: Some(place), ..self }
    }

    /// Whether both are of requests to the same address, and change a message alike.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (&self.method, &self.path, &self.earlier) == (&other.method, &other.path, &other.earlier)
            && self.is_multipart == other.is_multipart
    }

    /// Whether every request has something at `place`.
    pub(super) fn has(&self, place: &Place) -> bool {
        match place {
            Place::Leaf(name) => self.required.contains(name),
            Place::Path(part) => *part < self.path.len(),
        }
    }

    /// Takes over what another request to the same address shows.
    pub(super) fn merge(&mut self, other: Self) {
        self.headers.retain(|header| other.headers.contains(header));
        self.required.retain(|name| other.required.contains(name));
        self.texts.extend(other.texts);
        self.titles.extend(other.titles);
        self.key = self.key.take().or(other.key);
    }

    /// How many parts of the path are the same; `None` for another address. Tokens stand in paths, so not all need be.
    pub(super) fn likeness(&self, asked: &Asked) -> Option<usize> {
        let is_possible = self.method == asked.method
            && self.is_multipart == asked.is_multipart
            && self.path.len() == asked.path.len()
            && self.earlier.as_ref().is_none_or(|place| asked.at(place).is_some());
        let is_same = |part: usize, ours: &String| {
            self.earlier == Some(Place::Path(part)) || asked.path.get(part) == Some(ours)
        };
        let same = self.path.iter().enumerate().filter(|(part, ours)| is_same(*part, ours)).count();
        (is_possible && (same > 0 || self.path.len() < 2)).then_some(same)
    }

    /// What a request lacks.
    pub(super) fn missing(&self, asked: &Asked) -> Option<String> {
        if let Some(header) = self.headers.iter().find(|header| !asked.headers.contains(header)) {
            return Some(format!("the header `{header}` is missing"));
        }
        let is_empty = |name: &&String| asked.leaves.get(*name).is_none_or(String::is_empty);
        let missing = self.required.iter().find(is_empty)?;
        Some(format!("`{missing}` is missing or empty"))
    }

    pub(super) fn told(&self, asked: &Asked) -> Told {
        let at = |places: &BTreeSet<String>| {
            filled(asked).find(|(name, _)| places.contains(*name)).map(|(_, text)| text.clone())
        };
        let own_titles = self.titles.difference(&self.texts).cloned().collect();
        Told { title: at(&own_titles), text: at(&self.texts) }
    }

    /// The texts of a request, and whether the title stands in them.
    pub(super) fn texts(&self, asked: &Asked) -> Vec<(String, bool)> {
        let found = self.texts.iter().filter_map(|place| Some((place, asked.leaves.get(place)?)));
        found.map(|(place, text)| (text.clone(), self.titles.contains(place))).collect()
    }

    /// The id of the message that a request changes, if it changes one.
    pub(super) fn earlier(&self, asked: &Asked) -> Option<String> {
        asked.at(self.earlier.as_ref()?).map(str::to_owned)
    }

    /// What the channel calls the message.
    pub(super) fn key(&self, asked: &Asked) -> Option<String> {
        asked.leaves.get(self.key.as_ref()?).cloned()
    }
}

/// Where a request of a preview names the file.
pub(super) fn named(asked: &Asked) -> BTreeSet<String> {
    let found = asked.leaves.iter().filter(|(_, value)| value.contains(FILE));
    found.map(|(name, _)| name.clone()).collect()
}

/// The values of a request that are not empty.
fn filled(asked: &Asked) -> impl Iterator<Item = (&String, &String)> {
    asked.leaves.iter().filter(|(_, value)| !value.is_empty())
}
