//! Reads a tree into typed options, and goes on after whatever is wrong, so that everything wrong is told at once.

use std::fmt;

use deskbell_core::field::expected_in_words;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};

use super::{
    finding::{Finding, did_you_mean},
    tree::{self, Node, Step, Value},
};

/// How much can be wrong before the rest is not looked at.
const WRONG_LIMIT: usize = 100;

/// Reads `tree` as a `T`. What is wrong is left out, as if it had not been written, and told in `findings`; `key` is
/// the way to the tree.
pub(super) fn read<T: DeserializeOwned + Default>(
    mut tree: Node,
    key: &[Step],
    findings: &mut Vec<Finding>,
) -> T {
    let mut cut = Vec::new();
    for _ in 0..WRONG_LIMIT {
        let error = match T::deserialize(Reader(&tree)) {
            Ok(options) => return options,
            Err(error) => error,
        };
        let missing = error.missing.map(|name| [error.path.clone(), vec![name]].concat());
        let is_known = missing.is_some_and(|path| cut.contains(&path));
        let whole: Vec<_> = key.iter().chain(&error.path).cloned().collect();
        let root = tree.place.clone();
        let place = tree.cut(&error.path);
        let is_root = place.is_none();
        cut.push(error.path);
        let mut finding = Finding::fatal(place.unwrap_or(root), tree::shown(&whole), error.message);
        finding.hint = error.hint;
        // What was left out because it is wrong is not missing on top of it.
        if !is_known {
            findings.push(finding);
        }
        if is_root {
            break;
        }
    }
    T::default()
}

/// What is wrong with a value. Never the value itself: it may be a password in the wrong place.
#[derive(Debug)]
struct Wrong {
    path: Vec<Step>,
    message: String,
    hint: Option<String>,
    /// The key of the table at `path` that is not there.
    missing: Option<Step>,
}

impl Wrong {
    fn new(message: impl Into<String>) -> Self {
        Self { path: Vec::new(), message: message.into(), hint: None, missing: None }
    }

    /// What was expected, in the words of users rather than of Rust.
    fn expected(expected: &dyn de::Expected) -> Self {
        Self::new(format!("expected {}", expected_in_words(&expected.to_string())))
    }

    fn below(mut self, step: Step) -> Self {
        self.path.insert(0, step);
        self
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Wrong {}

/// The default messages of serde repeat the value; these do not. Whoever calls `custom` must not either.
impl de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::expected(expected)
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::expected(expected)
    }

    fn invalid_length(_: usize, expected: &dyn de::Expected) -> Self {
        Self::expected(expected)
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Self {
        Self::new(format!("expected one of {}", known.join(", ")))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        let hint = did_you_mean(field, known.iter().copied())
            .unwrap_or_else(|| format!("the keys here are {}", known.join(", ")));
        Self { hint: Some(hint), ..Self::new("there is no such key") }
    }

    fn missing_field(field: &'static str) -> Self {
        let missing = Some(Step::Key(field.to_owned()));
        Self { missing, ..Self::new(format!("`{field}` is missing")) }
    }
}

#[derive(Clone, Copy)]
struct Reader<'a>(&'a Node);

/// Reads a value whose text, in a variable or a flag, has a form of its own.
macro_rules! read_texts {
    ($($method:ident => $parse:expr),+ $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
            match &self.0.value {
                Value::Text(text) => {
                    let parse: fn(&str) -> Option<toml::Value> = $parse;
                    match parse(text.trim()) {
                        Some(value) => visit(&value, visitor),
                        None => Err(de::Error::invalid_type(Unexpected::Str(""), &visitor)),
                    }
                }
                _ => self.deserialize_any(visitor),
            }
        })+
    };
}

fn integer(text: &str) -> Option<toml::Value> {
    text.parse().ok().map(toml::Value::Integer)
}

fn float(text: &str) -> Option<toml::Value> {
    text.parse().ok().map(toml::Value::Float)
}

fn boolean(text: &str) -> Option<toml::Value> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true.into()),
        "false" | "0" | "no" | "off" => Some(false.into()),
        _ => None,
    }
}

/// A list as TOML writes it, or words between commas.
fn list(text: &str) -> Option<toml::Value> {
    if text.starts_with('[') {
        return Some(tree::guess(text.to_owned())).filter(toml::Value::is_array);
    }
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    Some(words.map(toml::Value::from).collect::<Vec<_>>().into())
}

impl<'de> de::Deserializer<'de> for Reader<'_> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.0.value {
            Value::Scalar(value) => visit(value, visitor),
            Value::Text(text) => visitor.visit_str(text),
            Value::Array(items) => visitor.visit_seq(Items(items.iter().enumerate())),
            Value::Table(table) => visitor.visit_map(Entries { rest: table.iter(), entry: None }),
            Value::Gone => visitor.visit_unit(),
        }
    }

    read_texts! {
        deserialize_bool => boolean,
        deserialize_i8 => integer,
        deserialize_i16 => integer,
        deserialize_i32 => integer,
        deserialize_i64 => integer,
        deserialize_u8 => integer,
        deserialize_u16 => integer,
        deserialize_u32 => integer,
        deserialize_u64 => integer,
        deserialize_f32 => float,
        deserialize_f64 => float,
        deserialize_seq => list,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_enum(self)
    }

    serde::forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct tuple tuple_struct map struct identifier ignored_any
    }
}

fn visit<'de, V: Visitor<'de>>(value: &toml::Value, visitor: V) -> Result<V::Value, Wrong> {
    match value {
        toml::Value::String(text) => visitor.visit_str(text),
        toml::Value::Integer(number) => visitor.visit_i64(*number),
        toml::Value::Float(number) => visitor.visit_f64(*number),
        toml::Value::Boolean(is) => visitor.visit_bool(*is),
        toml::Value::Datetime(_) => Err(de::Error::invalid_type(Unexpected::Other(""), &visitor)),
        toml::Value::Array(items) => {
            let mut items = de::value::SeqDeserializer::new(
                items
                    .iter()
                    .filter_map(toml::Value::as_str)
                    .map(IntoDeserializer::into_deserializer),
            );
            visitor.visit_seq(&mut items)
        }
        toml::Value::Table(_) => Err(de::Error::invalid_type(Unexpected::Map, &visitor)),
    }
}

/// An enum of plain words.
impl<'de> EnumAccess<'de> for Reader<'_> {
    type Error = Wrong;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Wrong> {
        Ok((seed.deserialize(self)?, self))
    }
}

impl<'de> VariantAccess<'de> for Reader<'_> {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Wrong> {
        Err(Wrong::new("expected a word"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Wrong> {
        Err(Wrong::new("expected a word"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Wrong> {
        Err(Wrong::new("expected a word"))
    }
}

struct Items<'a>(std::iter::Enumerate<std::slice::Iter<'a, Node>>);

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Wrong> {
        let next = self.0.by_ref().find(|(_, node)| !matches!(node.value, Value::Gone));
        let Some((index, node)) = next else {
            return Ok(None);
        };
        seed.deserialize(Reader(node)).map(Some).map_err(|wrong| wrong.below(Step::Index(index)))
    }
}

struct Entries<'a> {
    rest: std::collections::btree_map::Iter<'a, String, Node>,
    entry: Option<(&'a String, &'a Node)>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Wrong> {
        self.entry = self.rest.next();
        let Some((key, _)) = self.entry else {
            return Ok(None);
        };
        let read = seed.deserialize(key.as_str().into_deserializer());
        read.map(Some).map_err(|wrong: Wrong| wrong.below(Step::Key(key.clone())))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Wrong> {
        let Some((key, node)) = self.entry.take() else {
            return Err(Wrong::new("expected a value"));
        };
        let read = seed.deserialize(Reader(node));
        read.map_err(|wrong| wrong.below(Step::Key(key.clone())))
    }
}
