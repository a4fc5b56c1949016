//! A request in its parts: every value that it carries, under a name.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::url::decoded;

/// The header that only requests with a sealed body have.
const SEALED: &str = "content-encoding";

/// A request.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The method.
    pub method: String,
    /// The parts of the path behind the address of the fake, without percent escapes.
    pub path: Vec<String>,
    /// The names of the headers, in lower case.
    pub headers: Vec<String>,
    /// Each value of query and body that is no table and no list: by `?name`, by `name` of a form, by the JSON pointer.
    pub leaves: BTreeMap<String, String>,
    /// Whether the body is a form that may hold files; of those the value is the name.
    pub is_multipart: bool,
}

impl Asked {
    /// A request. `path_and_query` is what follows the address of the fake.
    pub fn new(method: &str, path_and_query: &str, headers: Vec<String>, body: &str) -> Self {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        let mut leaves = BTreeMap::new();
        for (name, value) in pairs(query).filter(|(name, _)| name != "lab") {
            leaves.insert(format!("?{name}"), value);
        }
        let parts = multipart(body);
        let is_multipart = parts.is_some();
        match serde_json::from_str(body) {
            // What is sealed has no parts that anybody but its reader could tell.
            _ if headers.iter().any(|name| name == SEALED) => {
                leaves.insert("body".to_owned(), body.to_owned());
            }
            _ if is_multipart => leaves.extend(parts.unwrap_or_default()),
            Ok(value) => collect(&value, String::new(), &mut leaves),
            Err(_) if is_form(body) => leaves.extend(pairs(body)),
            Err(_) if body.is_empty() => {}
            Err(_) => {
                leaves.insert("body".to_owned(), body.to_owned());
            }
        }
        let path = path.split('/').filter(|part| !part.is_empty()).map(decoded).collect();
        Self { method: method.to_owned(), path, headers, leaves, is_multipart }
    }

    /// A request that a preview shows.
    pub(super) fn previewed(request: &Value) -> Option<Self> {
        let text = |name| request.get(name).and_then(Value::as_str);
        let url = ::url::Url::parse(text("url")?).ok()?;
        let rest = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let headers = request.get("headers").and_then(Value::as_object);
        let headers = headers.map(|headers| headers.keys().cloned().collect()).unwrap_or_default();
        Some(Self::new(text("method")?, &rest, headers, text("body").unwrap_or_default()))
    }

    /// Where `id` stands, if it does.
    pub(super) fn place_of(&self, id: &str) -> Option<Place> {
        let leaf = self.leaves.iter().find(|(_, value)| *value == id);
        let part = || self.path.iter().position(|part| part == id).map(Place::Path);
        leaf.map(|(name, _)| Place::Leaf(name.clone())).or_else(part)
    }

    /// What stands at `place`.
    pub(super) fn at(&self, place: &Place) -> Option<&str> {
        let found = match place {
            Place::Leaf(name) => self.leaves.get(name),
            Place::Path(part) => self.path.get(*part),
        };
        found.map(String::as_str)
    }
}

/// A place in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// A value, by its name.
    Leaf(String),
    /// A part of the path, by its number.
    Path(usize),
}

fn collect(value: &Value, pointer: String, leaves: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                collect(field, format!("{pointer}/{name}"), leaves);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, format!("{pointer}/{index}"), leaves);
            }
        }
        Value::Null => {}
        Value::String(text) => {
            leaves.insert(pointer, text.clone());
        }
        other => {
            leaves.insert(pointer, other.to_string());
        }
    }
}

/// The parts of a form by their names, if `body` is one (RFC 7578): of a file its name, of anything else what it holds.
fn multipart(body: &str) -> Option<Vec<(String, String)>> {
    let (boundary, _) = body.split_once("\r\n").filter(|(line, _)| line.starts_with("--"))?;
    let parts = body.split(boundary).filter_map(|part| {
        let (head, content) = part.strip_prefix("\r\n")?.split_once("\r\n\r\n")?;
        let said = |what: &str| head.split(what).nth(1)?.split('"').next().map(str::to_owned);
        let value = said("; filename=\"").unwrap_or_else(|| content.trim_end().to_owned());
        Some((said("; name=\"")?, value))
    });
    Some(parts.collect())
}

/// Whether a body is `name=value&…`.
fn is_form(body: &str) -> bool {
    !body.contains(char::is_whitespace) && body.contains('=') && !body.starts_with(['{', '[', '<'])
}

fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let plain = |text: &str| decoded(&text.replace('+', " "));
        (plain(name), plain(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_by_its_parts_and_a_file_by_its_name() {
        let body = "--b\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n7\r\n\
            --b\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"a.png\"\r\n\
            Content-Type: image/png\r\n\r\n\u{fffd}PNG\r\n\r\n--b--\r\n";
        let asked = Asked::new("POST", "/sendPhoto?x=1", Vec::new(), body);
        let expected = [("?x", "1"), ("chat_id", "7"), ("photo", "a.png")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(asked.leaves, BTreeMap::from(expected));
        assert!(asked.is_multipart);
        assert!(!Asked::new("POST", "/", Vec::new(), "a -- b").is_multipart);
    }
}
