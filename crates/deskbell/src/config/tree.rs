//! Configuration as a tree of values that know where they were written, so that layers can be merged and whatever is
//! wrong can be named by file, line and column.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use deskbell_core::text;
use serde::Deserialize as _;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::finding::Finding;

/// Deepest nesting of tables and lists. Values are read by functions that call themselves.
const DEPTH_LIMIT: usize = 32;

/// A value and where it was written.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) place: Place,
}

#[derive(Clone)]
pub(super) enum Value {
    /// A string, number, boolean or date of a file.
    Scalar(toml::Value),
    /// Text of a variable or a flag; what it is meant to be shows when it is read.
    Text(String),
    Array(Vec<Node>),
    Table(BTreeMap<String, Node>),
    /// What was taken out because it is wrong. Its neighbours keep their numbers.
    Gone,
}

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, variable or flag.
    pub source: Arc<Source>,
    /// Line and column, counted from 1, in a file.
    pub position: Option<(usize, usize)>,
}

/// What a layer of the configuration was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// What holds where nothing is said.
    BuiltIn,
    /// A file.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
    /// A flag of the command line.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::File(path) => f.write_str(&text::one_line(&path.display().to_string())),
            Self::Variable(name) => write!(f, "variable {}", text::one_line(name)),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some((line, column)) => write!(f, "{}:{line}:{column}", self.source),
            None => self.source.fmt(f),
        }
    }
}

impl Place {
    /// Somewhere in `source`.
    pub(super) fn of(source: Source) -> Self {
        Self { source: Arc::new(source), position: None }
    }
}

impl Node {
    pub(super) fn table(place: Place) -> Self {
        Self { value: Value::Table(BTreeMap::new()), place }
    }

    pub(super) const fn as_table(&self) -> Option<&BTreeMap<String, Self>> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Takes an entry out of a table.
    pub(super) fn take(&mut self, key: &str) -> Option<Self> {
        match &mut self.value {
            Value::Table(table) => table.remove(key),
            _ => None,
        }
    }

    /// Puts `node` where `path` leads, making the tables on the way.
    pub(super) fn put(&mut self, path: &[String], node: Self) {
        let [key, rest @ ..] = path else {
            *self = node;
            return;
        };
        if self.as_table().is_none() {
            *self = Self::table(node.place.clone());
        }
        if let Value::Table(table) = &mut self.value {
            let place = node.place.clone();
            table.entry(key.clone()).or_insert_with(|| Self::table(place)).put(rest, node);
        }
    }

    /// Lays `over` on top: tables are merged, anything else is replaced.
    pub(super) fn overlay(&mut self, over: Self) {
        match (&mut self.value, over.value) {
            (Value::Table(table), Value::Table(entries)) => {
                for (key, node) in entries {
                    match table.get_mut(&key) {
                        Some(known) => known.overlay(node),
                        None => {
                            table.insert(key, node);
                        }
                    }
                }
            }
            (value, other) => {
                *value = other;
                self.place = over.place;
            }
        }
    }

    /// The node that `path` leads to.
    pub(super) fn at(&self, path: &[Step]) -> Option<&Self> {
        path.iter().try_fold(self, |node, step| match (&node.value, step) {
            (Value::Table(table), Step::Key(key)) => table.get(key),
            (Value::Array(items), Step::Index(index)) => items.get(*index),
            _ => None,
        })
    }

    /// Takes out what `path` leads to, and says where it was. Fails at the root.
    pub(super) fn cut(&mut self, path: &[Step]) -> Option<Place> {
        let (last, parents) = path.split_last()?;
        let parent = parents.iter().try_fold(self, |node, step| match (&mut node.value, step) {
            (Value::Table(table), Step::Key(key)) => table.get_mut(key),
            (Value::Array(items), Step::Index(index)) => items.get_mut(*index),
            _ => None,
        })?;
        match (&mut parent.value, last) {
            (Value::Table(table), Step::Key(key)) => table.remove(key).map(|node| node.place),
            (Value::Array(items), Step::Index(index)) => items.get_mut(*index).map(|node| {
                node.value = Value::Gone;
                node.place.clone()
            }),
            _ => None,
        }
    }

    /// The value without its places; text of variables becomes what it looks like, unless `is_text` says otherwise.
    pub(super) fn plain(self, is_text: bool) -> toml::Value {
        match self.value {
            Value::Scalar(value) => value,
            Value::Text(text) if is_text => toml::Value::String(text),
            Value::Text(text) => guess(text),
            Value::Array(items) => {
                items.into_iter().map(|item| item.plain(is_text)).collect::<Vec<_>>().into()
            }
            Value::Table(table) => {
                let entries = table.into_iter().map(|(key, node)| (key, node.plain(is_text)));
                toml::Value::Table(entries.collect())
            }
            Value::Gone => toml::Value::Array(Vec::new()),
        }
    }
}

/// A step on the way to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// A way to a value as people write it: `routes[0].level`.
pub(super) fn shown(path: &[Step]) -> String {
    let mut shown = String::new();
    for step in path {
        let part = match step {
            Step::Key(key) => text::cut(&text::one_line(key), 60, text::Unit::Characters),
            Step::Index(index) => format!("[{index}]"),
        };
        if matches!(step, Step::Key(_)) && !shown.is_empty() {
            shown.push('.');
        }
        shown.push_str(&part);
    }
    shown
}

/// The value that a text looks like: what TOML makes of it, else a string.
pub(super) fn guess(text: String) -> toml::Value {
    let parsed = DeValue::parse(&text)
        .ok()
        .and_then(|value| toml::Value::deserialize(toml::de::ValueDeserializer::from(value)).ok());
    parsed.unwrap_or(toml::Value::String(text))
}

/// Reads the TOML of `source`.
///
/// # Errors
/// Says where the first thing is that is not TOML. What stands there is not repeated: it may be a secret.
pub(super) fn parse(text: &str, source: &Arc<Source>) -> Result<Node, Finding> {
    let lines = Lines::of(text);
    let place =
        |offset| Place { source: Arc::clone(source), position: Some(lines.position(offset)) };
    let not_toml = |error: &toml::de::Error| {
        let place = place(error.span().map_or(0, |span| span.start));
        Finding::fatal(place, "", format!("this is not TOML: {}", syntax_message(error.message())))
    };
    if let Some(offset) = too_deep_key(text) {
        return Err(Finding::fatal(place(offset), "", TOO_DEEP));
    }
    let table = DeTable::parse(text).map_err(|error| not_toml(&error))?;
    let span = table.span();
    let root = Spanned::new(span, DeValue::Table(table.into_inner()));
    convert(root, 0, DEPTH_LIMIT, &place)
}

const TOO_DEEP: &str = "this is nested too deeply; expected at most 32 levels";

/// A key with more parts than any of ours, which would overflow the stack of the parser.
fn too_deep_key(text: &str) -> Option<usize> {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let key = line.split('=').next().unwrap_or_default();
        if key.bytes().filter(|byte| *byte == b'.').count() > DEPTH_LIMIT * 4 {
            return Some(offset);
        }
        offset += line.len();
    }
    None
}

/// What the parser says of a syntax error, as far as it can hold nothing of the file.
fn syntax_message(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}

fn convert(
    value: Spanned<DeValue<'_>>,
    start: usize,
    depth: usize,
    place: &impl Fn(usize) -> Place,
) -> Result<Node, Finding> {
    let Some(below) = depth.checked_sub(1) else {
        return Err(Finding::fatal(place(start), "", TOO_DEEP));
    };
    let span = value.span();
    let value = match value.into_inner() {
        DeValue::Table(table) => {
            let entries = table.into_iter().map(|(key, value)| {
                let start = key.span().start;
                Ok((key.into_inner().into_owned(), convert(value, start, below, place)?))
            });
            Value::Table(entries.collect::<Result<_, _>>()?)
        }
        DeValue::Array(items) => {
            let items = items.into_iter().map(|item| {
                let start = item.span().start;
                convert(item, start, below, place)
            });
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        scalar => {
            let scalar = Spanned::new(span, scalar);
            let read = toml::Value::deserialize(toml::de::ValueDeserializer::from(scalar));
            let message = "this number or date is not one that can be used";
            Value::Scalar(read.map_err(|_| Finding::fatal(place(start), "", message))?)
        }
    };
    Ok(Node { value, place: place(start) })
}

/// Where the lines of a text begin.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let breaks = text.match_indices('\n').map(|(index, _)| index + 1);
        Self { text, starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// Line and column of a byte, counted from 1; columns count characters.
    fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|index| self.starts.get(index)).copied();
        let start = start.unwrap_or_default();
        let before = self.text.get(start..offset.min(self.text.len())).unwrap_or_default();
        (line.max(1), before.chars().count() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Arc<Source> {
        Arc::new(Source::File("config.toml".into()))
    }

    fn read(text: &str) -> Node {
        parse(text, &source()).unwrap()
    }

    fn key(path: &str) -> Vec<Step> {
        path.split('.').map(|key| Step::Key(key.to_owned())).collect()
    }

    #[test]
    fn values_know_their_line_and_column() {
        let tree =
            read("x = \"ä\"\n[serve]\n  listen = \"x\"\n[[routes]]\nchannels = [\"ä\", \"b\"]\n");
        let place = |path: &[Step]| tree.at(path).unwrap().place.to_string();
        assert_eq!(place(&key("x")), "config.toml:1:1");
        assert_eq!(place(&key("serve.listen")), "config.toml:3:3");
        let mut path = vec![Step::Key("routes".into()), Step::Index(0)];
        path.push(Step::Key("channels".into()));
        assert_eq!(place(&path), "config.toml:5:1");
        path.push(Step::Index(1));
        assert_eq!(place(&path), "config.toml:5:18", "columns count characters");
        assert_eq!(shown(&path), "routes[0].channels[1]");
    }

    #[test]
    fn a_later_layer_replaces_values_and_merges_tables() {
        let mut tree = read("a = 1\nb = [1, 2]\n[t]\nx = 1\ny = 1\n");
        tree.overlay(read("b = [3]\n[t]\ny = 2\nz = 2\n"));
        let expected: toml::Table =
            toml::from_str("a = 1\nb = [3]\n[t]\nx = 1\ny = 2\nz = 2\n").unwrap();
        assert_eq!(tree.clone().plain(false), toml::Value::Table(expected));
        assert_eq!(tree.at(&key("t.x")).unwrap().place.to_string(), "config.toml:4:1");
        assert_eq!(tree.at(&key("t.y")).unwrap().place.to_string(), "config.toml:3:1");
    }

    #[test]
    fn a_syntax_error_says_where_and_repeats_nothing_row_116() {
        for text in [
            "a = 1\ntoken = hunter2\n",
            "a = 1\ntoken = \"hunter2\n",
            "a = 1\ntoken hunter2\n",
            "a = 1\ntoken = \"hunter2\" \"\n",
            "a = 1\ntoken = \"\\hunter2\"\n",
            "a = 1\ntoken = 12hunter2\n",
            "a = 1\ntoken = \"x\"\ntoken = \"hunter2\"\n",
        ] {
            let Err(finding) = parse(text, &source()) else { panic!("{text:?} was read") };
            let shown = finding.to_string();
            assert!(shown.starts_with("config.toml:2:") || shown.starts_with("config.toml:3:"));
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        let dotted = format!("{}a = 1", "a.".repeat(100_000));
        let header = format!("[{}a]", "a.".repeat(100_000));
        let lists = format!("a = {}{}", "[".repeat(5_000), "]".repeat(5_000));
        let tables = format!("a = {}1{}", "{ a = ".repeat(40), " }".repeat(40));
        for text in [dotted, header, lists, tables] {
            assert!(parse(&text, &source()).is_err());
        }
    }

    #[test]
    fn texts_of_variables_become_what_they_look_like() {
        #[track_caller]
        fn check(text: &str, expected: impl Into<toml::Value>) {
            assert_eq!(guess(text.to_owned()), expected.into());
        }
        check("true", true);
        check("12", 12);
        check("[\"a\"]", vec!["a"]);
        check("a b", "a b");
        check("12:34x", "12:34x");
        check("", "");
    }
}
