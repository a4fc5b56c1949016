//! What is said about a value from outside that cannot be accepted.
//!
//! Every door (tools, HTTP, command line) answers with the same three facts: the field, its value, what was expected.

use serde_json::Value;

use crate::text;

/// Longest excerpt of a refused value that is repeated to the caller, in characters.
const EXCERPT: usize = 80;

/// A value that was refused.
///
/// Reads as a sentence: ``` `progress` is 7; expected a number from 0 to 1 ```.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is {value}; expected {expected}")]
pub struct Invalid {
    /// The field as the caller wrote it.
    pub field: String,
    /// The value, cleaned and cut to an excerpt.
    pub value: String,
    /// What would have been accepted.
    pub expected: String,
}

impl Invalid {
    /// Refuses a text value, which is quoted, cleaned and cut.
    pub fn text(field: &str, value: &str, expected: impl Into<String>) -> Self {
        let value = if value.is_empty() {
            "empty".to_owned()
        } else if value.trim().is_empty() {
            "only white space".to_owned()
        } else if text::is_blank(value) {
            "only invisible characters".to_owned()
        } else {
            format!("\"{}\"", text::cut(&text::one_line(value), EXCERPT, text::Unit::Characters))
        };
        Self { field: field.to_owned(), value, expected: expected.into() }
    }

    /// Refuses a value by a description of it, such as `7` or `missing`.
    pub fn value(field: &str, value: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { field: field.to_owned(), value: value.into(), expected: expected.into() }
    }

    /// Refuses a text for its length.
    pub fn too_long(field: &str, length: usize, limit: usize, unit: &str) -> Self {
        Self::value(field, format!("{length} {unit} long"), format!("at most {limit} {unit}"))
    }
}

/// Says what a value is, without repeating more of it than a number. The value itself may be huge or secret.
pub fn described(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(_) => "a text".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// The one of the `known` names that is nearest to `name`, if one is near.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// How alike two names have to be, by Jaro and Winkler.
    const LIKENESS: f64 = 0.7;
    let likely = known.into_iter().map(|known| (strsim::jaro_winkler(name, known), known));
    let nearest = likely.max_by(|one, other| one.0.total_cmp(&other.0));
    nearest.filter(|(likeness, _)| *likeness > LIKENESS).map(|(_, known)| known)
}

/// What a parser says that it expected, in the words of users rather than of Rust.
pub fn expected_in_words(expected: &str) -> String {
    let words = match expected {
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        "a string" | "path string" => "a text",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        name if name.starts_with("struct ") => "a table",
        other => other,
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_field_value_and_expectation() {
        let refusal = Invalid::text("event", "stop", "one of start, update, end, error");
        assert_eq!(
            refusal.to_string(),
            "`event` is \"stop\"; expected one of start, update, end, error"
        );
    }

    #[test]
    fn hostile_values_are_defused_and_cut() {
        let refusal = Invalid::text("event", &"\u{1b}[31m\n".repeat(500), "a word");
        assert!(!refusal.to_string().contains(['\u{1b}', '\n']));
        assert!(refusal.to_string().chars().count() < 150);
    }

    #[test]
    fn the_nearest_name_is_found_if_one_is_near() {
        let known = ["level", "title", "text"];
        assert_eq!(nearest("levle", known), Some("level"));
        assert_eq!(nearest("pigeon", known), None);
        assert_eq!(nearest("level", []), None);
    }

    #[test]
    fn blank_values_are_described() {
        assert_eq!(Invalid::text("m", "", "text").value, "empty");
        assert_eq!(Invalid::text("m", " \t", "text").value, "only white space");
        assert_eq!(Invalid::text("m", "\u{200b}", "text").value, "only invisible characters");
    }

    #[test]
    fn what_a_parser_expected_is_said_without_names_of_rust() {
        for (expected, words) in [
            ("u16", "a whole number from 0 to 65535"),
            ("struct Options", "a table"),
            ("0, 1 or 2", "0, 1 or 2"),
        ] {
            assert_eq!(expected_in_words(expected), words);
        }
    }
}
