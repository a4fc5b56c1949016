//! One place or several that a channel tells, as options name them.

use std::borrow::Cow;

use deskbell_core::delivery::Mark;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::Value;

use crate::channel::SendContext;

/// Most places that one channel tells; for more there are routes to several channels.
const LIMIT: usize = 50;

/// One place or several; each gets the message for itself.
#[derive(Debug, Clone)]
pub struct Targets<T> {
    first: Target<T>,
    others: Vec<Target<T>>,
}

/// A place, and the mark of how the options name it.
#[derive(Debug, Clone)]
struct Target<T> {
    place: T,
    mark: Mark,
}

impl<T> Targets<T> {
    /// One place that is known without being named.
    pub const fn one(place: T) -> Self {
        Self { first: Target { place, mark: Mark::NONE }, others: Vec::new() }
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.others.len() + 1
    }

    /// The one that this attempt is for.
    pub fn at(&self, cx: &SendContext) -> &T {
        let other = cx.target.checked_sub(1).and_then(|index| self.others.get(index));
        &other.unwrap_or(&self.first).place
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all().map(|target| &target.place)
    }

    /// The marks of their names, in order.
    pub fn marks(&self) -> Vec<Mark> {
        self.all().map(|target| target.mark).collect()
    }

    /// The marks of `targets`, or that of the one place that needs no name.
    pub fn marks_or_one(targets: Option<&Self>) -> Vec<Mark> {
        targets.map_or_else(|| vec![Mark::NONE], Self::marks)
    }

    fn all(&self) -> impl Iterator<Item = &Target<T>> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Targets<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = match Value::deserialize(deserializer)? {
            Value::Array(several) => several,
            one => vec![one],
        };
        if written.is_empty() || written.len() > LIMIT {
            return Err(D::Error::custom(format_args!("expected 1 to {LIMIT}")));
        }
        let target = |written: Value| {
            let mark = Mark::of(&written.to_string());
            let place = T::deserialize(written).map_err(D::Error::custom)?;
            Ok(Target { place, mark })
        };
        let mut all = written.into_iter().map(target).collect::<Result<Vec<_>, _>>()?;
        let others = all.split_off(1);
        let first = all.pop().ok_or_else(|| D::Error::custom("expected one"))?;
        Ok(Self { first, others })
    }
}

impl<T: JsonSchema> JsonSchema for Targets<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Targets_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }
}
