//! The arguments of a call, read one by one; what nobody asked for is left over.

use deskbell_core::{Invalid, field::described, text};
use rmcp::model::JsonObject;
use serde_json::Value;

/// Longest excerpt of an argument's name that is repeated to the caller, in characters.
const NAME_EXCERPT: usize = 80;

/// Most names of ignored arguments that are repeated to the caller.
const IGNORED_LIMIT: usize = 20;

/// The arguments of a call. Reading one takes it out; `null` counts as absent.
pub(in crate::mcp) struct Arguments(JsonObject);

impl Arguments {
    pub(in crate::mcp) const fn new(arguments: JsonObject) -> Self {
        Self(arguments)
    }

    /// Whether `name` was given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !value.is_null())
    }

    /// Takes an argument of any type.
    pub(super) fn value(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// Takes a text.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Invalid> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(Invalid::value(name, described(&other), "a text")),
        }
    }

    /// Leaves an argument that was taken among those that are ignored.
    pub(super) fn leave(&mut self, name: &str, text: String) {
        self.0.insert(name.to_owned(), Value::String(text));
    }

    /// Takes a text that has to be there.
    pub(super) fn required_text(&mut self, name: &str) -> Result<String, Invalid> {
        self.text(name)?.ok_or_else(|| Invalid::value(name, "missing", "a text that is not blank"))
    }

    /// Takes an object.
    pub(super) fn object(&mut self, name: &str) -> Result<Option<JsonObject>, Invalid> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(fields)),
            Some(other) => Err(Invalid::value(name, described(&other), "an object")),
        }
    }

    /// Takes a list of texts.
    pub(super) fn texts(&mut self, name: &str) -> Result<Vec<String>, Invalid> {
        let wrong = |value: &Value| Invalid::value(name, described(value), "a list of texts");
        match self.value(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .into_iter()
                .map(|item| match item {
                    Value::String(text) => Ok(text),
                    other => Err(wrong(&other)),
                })
                .collect(),
            Some(other) => Err(wrong(&other)),
        }
    }

    /// The names of what was not taken, cleaned and cut.
    pub(super) fn ignored(self) -> Vec<String> {
        let excerpt =
            |name: &str| text::cut(&text::one_line(name), NAME_EXCERPT, text::Unit::Characters);
        self.0.keys().take(IGNORED_LIMIT).map(|name| excerpt(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(value: Value) -> Arguments {
        let Value::Object(fields) = value else { panic!("an object") };
        Arguments::new(fields)
    }

    #[test]
    fn wrong_types_are_named_with_value_and_expectation() {
        let mut wrong = arguments(json!({ "a": 7, "b": [], "c": ["x", 1] }));
        let sentence = |result: Result<(), Invalid>| result.unwrap_err().to_string();
        assert_eq!(sentence(wrong.text("a").map(drop)), "`a` is 7; expected a text");
        assert_eq!(sentence(wrong.object("b").map(drop)), "`b` is a list; expected an object");
        assert_eq!(sentence(wrong.texts("c").map(drop)), "`c` is 1; expected a list of texts");
        assert_eq!(
            sentence(wrong.required_text("d").map(drop)),
            "`d` is missing; expected a text that is not blank"
        );
    }

    #[test]
    fn null_is_absent_and_the_rest_is_ignored() {
        let mut given = arguments(json!({ "a": null, "b": "x", "odd\nname": 1 }));
        assert!(!given.has("a"));
        assert_eq!(given.text("a"), Ok(None));
        assert_eq!(given.text("b"), Ok(Some("x".to_owned())));
        assert_eq!(given.ignored().len(), 1);
    }
}
