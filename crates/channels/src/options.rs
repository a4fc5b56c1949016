//! The options of a channel kind: read from the configuration, and described from their schema.

use deskbell_core::field::expected_in_words;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::channel::ConfigError;

/// What is known of one option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionDoc {
    /// Its name in the configuration.
    pub name: String,
    /// Whether it must be set.
    pub required: bool,
    /// Its value where it is not set, as TOML.
    pub default: Option<String>,
    /// Whether its value is never shown.
    pub secret: bool,
    /// What it means.
    pub doc: String,
}

/// The options that `schema` describes, those that must be set first.
pub(crate) fn documented(schema: &Value) -> Vec<OptionDoc> {
    let required: Vec<_> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().collect();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut options: Vec<_> = properties
        .map(|(name, option)| OptionDoc {
            name: name.clone(),
            required: required.iter().any(|required| *required == name),
            default: option.get("default").filter(|value| !value.is_null()).map(Value::to_string),
            secret: option.to_string().contains(r#""writeOnly":true"#),
            doc: option.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
        })
        .collect();
    options.sort_by_key(|option| !option.required);
    options
}

/// Reads `options` as a `C`, whose schema is `schema`.
///
/// The messages are our own: those of the parser repeat values, and a value may be a password in the wrong place.
pub(crate) fn read<C: DeserializeOwned>(
    schema: &Value,
    options: toml::Value,
) -> Result<C, ConfigError> {
    let known = documented(schema);
    let table = options.as_table();
    if let Some(unknown) = table.and_then(|table| {
        table.keys().find(|name| known.iter().all(|option| option.name != **name))
    }) {
        return Err(ConfigError(unknown_option(unknown, &known)));
    }
    let missing = known
        .iter()
        .filter(|option| option.required)
        .find(|option| table.is_none_or(|table| !table.contains_key(&option.name)));
    if let Some(missing) = missing {
        return Err(ConfigError(format!("`{}` is missing", missing.name)));
    }
    options.try_into().map_err(|error| ConfigError(wrong_value(&error.to_string())))
}

fn unknown_option(name: &str, known: &[OptionDoc]) -> String {
    let name: String = name.chars().filter(|character| !character.is_control()).take(40).collect();
    let nearest = known.iter().max_by(|a, b| {
        strsim::jaro_winkler(&a.name, &name).total_cmp(&strsim::jaro_winkler(&b.name, &name))
    });
    match nearest.filter(|option| strsim::jaro_winkler(&option.name, &name) > 0.7) {
        Some(option) => format!("unknown option `{name}`; did you mean `{}`?", option.name),
        None => {
            let names: Vec<_> = known.iter().map(|option| format!("`{}`", option.name)).collect();
            format!("unknown option `{name}`; the options are {}", names.join(", "))
        }
    }
}

/// What is wrong with an option: of the parser's message, which ends with ``in `PATH` ``, only the path and what it
/// expected there.
fn wrong_value(message: &str) -> String {
    let path = message.trim_end().rsplit_once("\nin ");
    let path = path.map_or_else(|| "an option".to_owned(), |(_, path)| path.to_owned());
    let expected = message.lines().next().unwrap_or_default().rsplit_once("expected ");
    match expected {
        Some((_, expected)) => {
            format!("{path} is not right; expected {}", expected_in_words(expected))
        }
        None => format!("{path} is not right"),
    }
}

#[cfg(test)]
mod tests {
    use schemars::{JsonSchema, schema_for};
    use serde::Deserialize;

    use super::*;
    use crate::{address::Address, secret::Secret};

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Options {
        /// Where to.
        server: Address,
        /// What for.
        token: Option<Secret>,
        /// Whom.
        #[serde(default)]
        names: Vec<String>,
        /// How often.
        #[serde(default = "three")]
        times: u8,
        /// How.
        #[serde(default)]
        way: Way,
    }

    const fn three() -> u8 {
        3
    }

    #[derive(Debug, Default, Deserialize, serde::Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Way {
        #[default]
        Long,
        Short,
    }

    fn refusal(options: &str) -> String {
        let options = toml::from_str(options).unwrap();
        read::<Options>(schema_for!(Options).as_value(), options).unwrap_err().0
    }

    #[test]
    fn refusals_name_the_option_and_never_its_value_row_116() {
        #[track_caller]
        fn check(options: &str, expected: &str) {
            assert_eq!(refusal(options), expected);
        }
        check("", "`server` is missing");
        check("server = 'h'\ntoken2 = 'hunter2'", "unknown option `token2`; did you mean `token`?");
        check(
            "server = 'h'\nzzz = 'hunter2'",
            "unknown option `zzz`; the options are `server`, `names`, `times`, `token`, `way`",
        );
        check(
            "server = 'h'\ntimes = 'hunter2'",
            "`times` is not right; expected a whole number from 0 to 255",
        );
        check("server = 'h'\nnames = ['a', 5]", "`names` is not right; expected a text");
        check("server = 'h'\ntoken = 5", "`token` is not right; expected a text");
        check("server = 'ftp://hunter2'", "`server` is not right; expected one with http or https");
        check(
            "server = 'h'\nway = 'hunter2, expected x'",
            "`way` is not right; expected `long` or `short`",
        );
    }

    #[test]
    fn options_are_described_by_their_schema() {
        let options = documented(schema_for!(Options).as_value());
        let told: Vec<_> = options
            .iter()
            .map(|option| {
                let default = option.default.as_deref().unwrap_or("-");
                format!(
                    "{} {} {} {} {default}",
                    option.name, option.doc, option.required, option.secret
                )
            })
            .collect();
        let expected = [
            "server Where to. true false -",
            "names Whom. false false []",
            "times How often. false false 3",
            "token What for. false true -",
            "way How. false false \"long\"",
        ];
        assert_eq!(told, expected);
    }
}
