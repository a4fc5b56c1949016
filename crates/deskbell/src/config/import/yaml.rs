//! Values of a YAML file with their lines. Only this module knows the crate that reads YAML.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::{DuplicateKeyPolicy, Error, Spanned};

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Yaml {
    /// `null`, `~` or nothing at all.
    Null,
    /// A text, number or boolean, as text.
    Text(String),
    /// A list, each item with its line.
    List(Vec<(usize, Self)>),
    /// Keys and values in the order of the file; the last of equal keys counts.
    Map(Vec<(String, Self)>),
}

/// Why a file cannot be read, never with its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoYaml {
    /// The line at which it goes wrong.
    pub(crate) line: Option<usize>,
    /// What is wrong, as a sentence.
    pub(crate) reason: &'static str,
}

/// The value of a whole file.
///
/// # Errors
/// Says at which line it cannot be read, and why.
pub(crate) fn parse(text: &str) -> Result<Yaml, NoYaml> {
    // Names and tokens of digits stay as they are written. An alias may stand for a hundred others; the limits of the
    // crate end that.
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
    };
    let read: Result<Option<Yaml>, _> = serde_saphyr::from_str_with_options(text, options);
    match read {
        Ok(value) => Ok(value.unwrap_or(Yaml::Null)),
        Err(error) => {
            let line = error.location().map(|location| location.line());
            let mut cause = &error;
            while let Error::AliasError { error, .. } | Error::WithSnippet { error, .. } = cause {
                cause = error;
            }
            let reason = match cause {
                Error::AliasReplayCounterOverflow { .. }
                | Error::AliasReplayLimitExceeded { .. }
                | Error::AliasExpansionLimitExceeded { .. }
                | Error::AliasReplayStackDepthExceeded { .. } => {
                    "its aliases (`*name`) stand for more than can be read"
                }
                Error::Budget { .. } => "it has more values or levels than can be read",
                _ => "this is no YAML",
            };
            Err(NoYaml { line: line.and_then(|line| line.try_into().ok()), reason })
        }
    }
}

impl Yaml {
    /// The value under `key`.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => {
                entries.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// All texts in it, with the keys of maps.
    pub(crate) fn texts(&self) -> Vec<&str> {
        match self {
            Self::Null => Vec::new(),
            Self::Text(text) => vec![text],
            Self::List(items) => items.iter().flat_map(|(_, item)| item.texts()).collect(),
            Self::Map(entries) => entries.iter().map(|(key, _)| key.as_str()).collect(),
        }
    }
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

/// Methods that take a scalar over as text.
macro_rules! visit_texts {
    ($($method:ident: $type:ty),+ $(,)?) => {
        $(fn $method<E>(self, value: $type) -> Result<Yaml, E> {
            Ok(Yaml::Text(value.to_string()))
        })+
    };
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Yaml;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    visit_texts! {
        visit_bool: bool,
        visit_i64: i64,
        visit_i128: i128,
        visit_u64: u64,
        visit_u128: u128,
        visit_f64: f64,
        visit_str: &str,
    }

    fn visit_unit<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_none<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Yaml, D::Error> {
        Yaml::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Yaml, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Yaml>>()? {
            let line = usize::try_from(item.referenced.line()).unwrap_or_default();
            list.push((line, item.value));
        }
        Ok(Yaml::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Yaml, A::Error> {
        let mut map = Vec::new();
        while let Some((key, value)) = entries.next_entry::<Yaml, Yaml>()? {
            // A key that is a list or a map names nothing.
            if let Yaml::Text(key) = key {
                map.push((key, value));
            }
        }
        Ok(Yaml::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_lines_that_stand_for_billions_of_values_are_refused_for_that() {
        let level = |level: i32| {
            let below = vec![format!("*a{}", level - 1); 9].join(", ");
            format!("a{level}: &a{level} [{below}]\n")
        };
        let bomb = format!("a0: &a0 [x]\n{}", (1..12).map(level).collect::<String>());
        let reason = parse(&bomb).unwrap_err().reason;
        assert!(reason.ends_with("than can be read"), "{reason}");
        assert_eq!(parse("a: [").unwrap_err().reason, "this is no YAML");
    }
}
