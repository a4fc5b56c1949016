//! What is wrong with a body that could not be read: which field, what is in it, what was expected.
//!
//! The parser stops at a byte; the caller thinks in fields. So the body is read a second time, but only when it is
//! wrong.

use deskbell_core::{
    Invalid,
    event::Kind,
    field::{described, nearest},
    text,
};
use http::StatusCode;
use serde_json::{Map, Value};

use super::problem::Problem;
use crate::intake::timestamp;

/// What a field must look like.
struct Field {
    name: &'static str,
    fits: fn(&Value) -> bool,
    expected: &'static str,
}

const fn field(name: &'static str, fits: fn(&Value) -> bool, expected: &'static str) -> Field {
    Field { name, fits, expected }
}

/// What a body must look like.
pub(super) struct Shape {
    fields: &'static [Field],
    /// The fields that have to be there, with what is expected of them.
    required: &'static [(&'static str, &'static str)],
    /// The objects in it: name and shape. Their fields are named with the object's name before them.
    objects: &'static [(&'static str, Self)],
    /// The lists of objects in it: name, shape of an item, and what is expected of it. An item is named by its index.
    lists: &'static [(&'static str, Self, &'static str)],
}

/// The body of a report.
pub(super) const REPORT: Shape = Shape {
    fields: REPORT_FIELDS,
    required: &[],
    objects: &[
        (
            "run",
            Shape {
                fields: RUN_FIELDS,
                required: &[("id", "the run's id"), ("phase", "one of start, update, end, error")],
                objects: &[],
                lists: &[],
            },
        ),
        ("source", Shape { fields: SOURCE_FIELDS, required: &[], objects: &[], lists: &[] }),
    ],
    lists: &[(
        "attachments",
        Shape { fields: ATTACHMENT_FIELDS, required: &[], objects: &[], lists: &[] },
        "an object with `path` or `url`",
    )],
};

/// The body of a preview.
pub(super) const PREVIEW: Shape = Shape {
    fields: PREVIEW_FIELDS,
    required: &[("channel", "a channel or an address"), ("body", "a text")],
    objects: &[],
    lists: &[],
};

const REPORT_FIELDS: &[Field] = &[
    field("kind", Value::is_string, Kind::EXPECTED),
    field("text", Value::is_string, "a text"),
    field("message", Value::is_string, "a text"),
    field("title", Value::is_string, "a text"),
    field("level", Value::is_string, "the name of a level"),
    field("context", Value::is_string, "a category"),
    field("format", Value::is_string, "text or markdown"),
    field("data", |_| true, "anything"),
    field("link", Value::is_string, "a web address"),
    field(
        "attachments",
        Value::is_array,
        "a list of objects with `path` or `url`, `name` and `media_type`",
    ),
    field("to", is_list_of_texts, "a list of channel names"),
    field("run", Value::is_object, "an object with id and phase"),
    field("source", Value::is_object, "an object with client, session, project and host"),
    field("key", Value::is_string, "a text"),
];

const ATTACHMENT_FIELDS: &[Field] = &[
    field("name", Value::is_string, "a text"),
    field("media_type", Value::is_string, "a media type such as image/png"),
    field("path", Value::is_string, "an absolute path"),
    field("url", Value::is_string, "a web address"),
];

const RUN_FIELDS: &[Field] = &[
    field("run.id", Value::is_string, "a text"),
    field("run.phase", Value::is_string, "one of start, update, end, error"),
    field("run.step", Value::is_string, "a text"),
    field("run.progress", Value::is_number, "a number from 0 to 1"),
    field("run.timestamp", Value::is_string, timestamp::EXPECTED),
];

const SOURCE_FIELDS: &[Field] = &[
    field("source.client", Value::is_string, "a text"),
    field("source.session", Value::is_string, "a text"),
    field("source.project", Value::is_string, "a text"),
    field("source.host", Value::is_string, "a text"),
];

const PREVIEW_FIELDS: &[Field] = &[
    field("channel", Value::is_string, "a channel or an address"),
    field("title", Value::is_string, "a text"),
    field("body", Value::is_string, "a text"),
    field("level", Value::is_string, "the name of a level"),
    field("format", Value::is_string, "text or markdown"),
    field("link", Value::is_string, "a web address"),
];

fn is_list_of_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

/// Says what is wrong with `body`, which could not be read for `error`.
pub(super) fn explain(body: &[u8], error: &serde_json::Error, shape: &Shape) -> Problem {
    let value = match serde_json::from_slice::<Value>(body) {
        Ok(value) => value,
        // This is about JSON alone; what the first reading failed with may be about types.
        Err(error) => {
            let detail = format!("the body is not JSON: {error}");
            return Problem::new(StatusCode::BAD_REQUEST, "not-json", detail);
        }
    };
    let Some(fields) = value.as_object() else {
        return Invalid::value("body", described(&value), "a JSON object").into();
    };
    wrong(fields, shape, "").unwrap_or_else(|| twice(error)).into()
}

/// A field given twice is the one thing that a `Value` does not show.
fn twice(error: &serde_json::Error) -> Invalid {
    let message = error.to_string();
    let name = message.strip_prefix("duplicate field `").and_then(|rest| rest.split('`').next());
    match name {
        Some(name) => Invalid::value(name, "given twice", "it once"),
        None => Invalid::value("body", "not understood", "what the API's description says"),
    }
}

fn wrong(given: &Map<String, Value>, shape: &Shape, prefix: &str) -> Option<Invalid> {
    wrong_field(given, shape.fields, prefix)
        .or_else(|| missing_field(given, shape.required, prefix))
        .or_else(|| {
            shape.objects.iter().find_map(|(name, shape)| {
                wrong(given.get(*name)?.as_object()?, shape, &format!("{name}."))
            })
        })
        .or_else(|| {
            shape.lists.iter().find_map(|(name, shape, expected)| {
                let items = given.get(*name)?.as_array()?.iter().enumerate();
                items
                    .map(|(index, item)| (format!("{name}[{index}]"), item))
                    .find_map(|(item_name, item)| wrong_item(&item_name, item, shape, expected))
            })
        })
}

/// What is wrong with an item of a list, which is called `name`.
fn wrong_item(name: &str, item: &Value, shape: &Shape, expected: &str) -> Option<Invalid> {
    let Some(fields) = item.as_object() else {
        return Some(Invalid::value(name, described(item), expected));
    };
    let wrong = wrong(fields, shape, "")?;
    Some(Invalid { field: format!("{name}.{}", wrong.field), ..wrong })
}

fn wrong_field(given: &Map<String, Value>, known: &[Field], prefix: &str) -> Option<Invalid> {
    given.iter().find_map(|(name, value)| {
        let name = format!("{prefix}{name}");
        let Some(field) = known.iter().find(|field| field.name == name) else {
            return Some(unknown_field(&name, known));
        };
        let fits = value.is_null() || (field.fits)(value);
        (!fits).then(|| Invalid::value(field.name, described(value), field.expected))
    })
}

fn unknown_field(name: &str, known: &[Field]) -> Invalid {
    let expected = match nearest(name, known.iter().map(|field| field.name)) {
        Some(near) => format!("`{near}`?"),
        None => {
            let names: Vec<_> = known.iter().map(|field| field.name).collect();
            format!("only the fields {}", names.join(", "))
        }
    };
    let name = text::cut(&text::one_line(name), 80, text::Unit::Characters);
    Invalid::value(&name, "an unknown field", expected)
}

fn missing_field(
    given: &Map<String, Value>,
    required: &[(&str, &str)],
    prefix: &str,
) -> Option<Invalid> {
    let is_missing = |name: &str| given.get(name).is_none_or(Value::is_null);
    let (name, expected) = required.iter().find(|(name, _)| is_missing(name))?;
    Some(Invalid::value(&format!("{prefix}{name}"), "missing", *expected))
}
