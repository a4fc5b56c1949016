//! Options that must never be seen: tokens, passwords, addresses that are as good as a password.

use std::{borrow::Cow, fmt};

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use deskbell_core::text::{self, Unit};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::url::decoded;

/// What stands where a secret was.
pub const MASK: &str = "***";

/// The shortest secret that is masked in texts. Masking shorter ones would blot out ordinary words.
const MASKED_FROM: usize = 4;

/// The shortest path of a secret address that is masked in texts.
const PATH_MASKED_FROM: usize = 8;

/// The longest excerpt of what a far end said, in characters.
const EXCERPT: usize = 300;

/// A value that never prints.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The value itself, to be sent to the far end and nowhere else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl JsonSchema for Secret {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // `writeOnly` is how JSON Schema marks what is set and never shown again; `found_in` looks for it.
        json_schema!({ "type": "string", "writeOnly": true })
    }
}

/// The secret values among `options`: those whose schema is `writeOnly`.
pub(crate) fn found_in(schema: &Value, options: &toml::Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(schema, options, &mut found);
    found.retain(|secret| !secret.is_empty());
    found
}

fn collect(schema: &Value, value: &toml::Value, found: &mut Vec<String>) {
    match value {
        toml::Value::String(text) if schema.get("writeOnly") == Some(&Value::Bool(true)) => {
            found.extend(secret_parts(text));
        }
        toml::Value::String(text) => found.extend(passwords(text)),
        toml::Value::Table(table) => {
            for (name, value) in table {
                let property = schema.get("properties").and_then(|known| known.get(name));
                if let Some(schema) = property.or_else(|| schema.get("additionalProperties")) {
                    collect(schema, value, found);
                }
            }
        }
        toml::Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter().for_each(|item| collect(schema, item, found));
            }
        }
        _ => {}
    }
}

/// What of a secret option must not be seen. Of an address the host may be, or a preview would say nothing.
fn secret_parts(value: &str) -> Vec<String> {
    let Some(url) = Url::parse(value).ok().filter(Url::has_host) else {
        return vec![value.to_owned()];
    };
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let path = path.trim_start_matches('/').to_owned();
    let mut parts = passwords(value);
    if path.len() >= PATH_MASKED_FROM {
        parts.push(path);
    }
    parts
}

/// The password in an address, as it is written there and as it is.
fn passwords(address: &str) -> Vec<String> {
    let url = Url::parse(address).ok();
    let password = url.as_ref().and_then(Url::password).unwrap_or_default();
    let mut found = vec![password.to_owned(), decoded(password)];
    found.dedup();
    found
}

/// Replaces each of `secrets` in `text`, however it was written there.
pub(crate) fn mask(text: &str, secrets: &[String]) -> String {
    let mut masked = text.to_owned();
    for secret in secrets.iter().filter(|secret| secret.len() >= MASKED_FROM) {
        let form: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        let json = Value::from(secret.as_str()).to_string();
        let json = json.strip_prefix('"').and_then(|json| json.strip_suffix('"'));
        for written in [secret.as_str(), &form, json.unwrap_or(secret), &in_path(secret)] {
            masked = masked.replace(written, MASK);
        }
        for encoded in in_base64(&masked, secret) {
            masked = masked.replace(&encoded, MASK);
        }
    }
    masked
}

/// What a far end said, fit for an error: without secrets, on one line, not too long.
///
/// Secrets go first: a cut could leave half of one, which nobody would recognise any more.
pub(crate) fn excerpt(told: &str, secrets: &[String]) -> String {
    text::cut(&text::one_line(mask(told, secrets).trim()), EXCERPT, Unit::Characters)
}

/// The words of `text` that are Base64 and hold `secret`, such as the user and password of a login.
fn in_base64(text: &str, secret: &str) -> Vec<String> {
    // A word in Base64 is a third longer than what it holds.
    let least = secret.len() * 4 / 3;
    text.split(|character: char| !character.is_ascii_alphanumeric() && !"+/-_".contains(character))
        .filter(|word| word.len() >= least)
        .filter(|word| {
            let decoded = BASE64_ANY.decode(word.replace('-', "+").replace('_', "/"));
            decoded.is_ok_and(|decoded| String::from_utf8_lossy(&decoded).contains(secret))
        })
        .map(str::to_owned)
        .collect()
}

/// Base64 with or without padding.
const BASE64_ANY: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A secret as it stands in the path of an address.
fn in_path(secret: &str) -> String {
    let Ok(mut url) = Url::parse("http://host") else {
        return secret.to_owned();
    };
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.push(secret);
    }
    url.path().trim_start_matches('/').to_owned()
}

/// Replaces each of `secrets` in every text of `value`.
pub(crate) fn mask_all(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => *text = mask(text, secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| mask_all(item, secrets)),
        Value::Object(fields) => fields.values_mut().for_each(|field| mask_all(field, secrets)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_do_not_print_row_116() {
        assert_eq!(format!("{:?}", Secret("hunter2".to_owned())), "***");
    }

    #[test]
    fn secrets_are_found_wherever_the_schema_has_them_row_116() {
        let secret = json!({ "type": ["string", "null"], "writeOnly": true });
        let schema = json!({ "properties": {
            "token": secret, "topic": { "type": "string" }, "server": { "type": "string" },
            "headers": { "additionalProperties": secret }, "keys": { "items": secret },
            "url": secret,
        }});
        let options: toml::Table = toml::from_str(
            r#"
                token = "t0ken"
                topic = "open"
                server = "http://me:p%40ssword@push.example.com/a/long/path"
                keys = ["k1-secret"]
                url = "https://user:passw0rd@hooks.example.com/services/T0/B1?key=x"
                [headers]
                x = "h-secret"
            "#,
        )
        .unwrap();
        let mut found = found_in(&schema, &toml::Value::Table(options));
        found.sort();
        let expected = [
            "h-secret",
            "k1-secret",
            "p%40ssword",
            "p@ssword",
            "passw0rd",
            "services/T0/B1?key=x",
            "t0ken",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn no_half_of_a_secret_is_left_by_a_cut_row_116() {
        let secrets = ["hunter2-hunter2".to_owned()];
        for before in 270..310 {
            let told = format!("{} hunter2-hunter2 after", "x".repeat(before));
            assert!(!excerpt(&told, &secrets).contains("hunter"), "{before}");
        }
    }

    #[test]
    fn secrets_are_masked_however_they_are_written_row_116() {
        #[track_caller]
        fn check(text: &str, masked: &str) {
            assert_eq!(mask(text, &["a/b \"c\"".to_owned(), "abc".to_owned()]), masked);
        }
        check("token a/b \"c\" end", "token *** end");
        check("?key=a%2Fb+%22c%22", "?key=***");
        check("/a%2Fb%20%22c%22/send", "/***/send");
        check(r#"{"token":"a/b \"c\""}"#, r#"{"token":"***"}"#);
        check("Basic bWU6YS9iICJjIg==", "Basic ***==");
        check("abc stays, it is too short", "abc stays, it is too short");
    }
}
