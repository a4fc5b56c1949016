//! One place or several that a channel tells, as options name them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::channel::SendContext;

/// Most places that one channel tells; for more there are routes to several channels.
const LIMIT: usize = 50;

/// One place or several; each gets the message for itself.
#[derive(Debug, Clone)]
pub struct Targets<T> {
    first: T,
    others: Vec<T>,
}

impl<T> Targets<T> {
    /// One place.
    pub const fn one(first: T) -> Self {
        Self { first, others: Vec::new() }
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.others.len() + 1
    }

    /// The one that this attempt is for.
    pub fn at(&self, cx: &SendContext) -> &T {
        let other = cx.target.checked_sub(1).and_then(|index| self.others.get(index));
        other.unwrap_or(&self.first)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Targets<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "one value or a list, expected one or several")]
        enum Written<T> {
            One(T),
            Several(Vec<T>),
        }
        let mut all = match Written::deserialize(deserializer)? {
            Written::One(one) => vec![one],
            Written::Several(several) => several,
        };
        if all.is_empty() || all.len() > LIMIT {
            return Err(D::Error::custom(format_args!("expected 1 to {LIMIT}")));
        }
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
