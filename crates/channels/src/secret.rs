//! Options that must never be seen: tokens, passwords, addresses that are as good as a password.

use std::{borrow::Cow, fmt};

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
    prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE, BASE64_URL_SAFE_NO_PAD},
};
use deskbell_core::text::{self, Unit};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
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

/// The secret values among `options`: those whose schema is `writeOnly`, and the logins that are made with them. The
/// longest come first.
pub(crate) fn found_in(schema: &Value, options: &toml::Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(schema, options, &mut found);
    found.retain(|secret| !secret.is_empty());
    longest_first(&mut found);
    found
}

fn collect(schema: &Value, value: &toml::Value, found: &mut Vec<String>) {
    // One value or several, one of several forms: whichever it is, what may be secret is.
    for form in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        collect(form, value, found);
    }
    match value {
        toml::Value::String(text) if is_secret(schema) => {
            let parts = secret_parts(text);
            if schema.get("template") == Some(&Value::Bool(true)) {
                found.extend(parts.iter().flat_map(|part| pieces(part)));
            }
            // What a secret file in JSON holds is secret: far ends repeat its fields.
            if let Ok(json @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
                found.extend(leaves(&json).iter().flat_map(|leaf| secret_parts(leaf)));
            }
            found.extend(parts);
        }
        toml::Value::String(text) => found.extend(login_in(text)),
        toml::Value::Table(table) if is_secret(schema) => {
            table.values().for_each(|value| collect(schema, value, found));
        }
        toml::Value::Array(items) if is_secret(schema) => {
            items.iter().for_each(|item| collect(schema, item, found));
        }
        toml::Value::Table(table) => {
            let text = |name| table.get(name).and_then(toml::Value::as_str);
            if let (Some(user), Some(password)) = (text("user"), text("password")) {
                found.extend(logins(user, password));
            }
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

fn is_secret(schema: &Value) -> bool {
    schema.get("writeOnly") == Some(&Value::Bool(true))
}

/// The texts in `value`.
fn leaves(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        Value::Object(fields) => fields.values().flat_map(leaves).collect(),
        _ => Vec::new(),
    }
}

/// What of a secret option must not be seen. Of an address the host may be, or a preview would say nothing.
fn secret_parts(value: &str) -> Vec<String> {
    let Some(url) = Url::parse(value).ok().filter(Url::has_host) else {
        let mut parts = login_in(value);
        parts.extend(credentials(value).map(str::to_owned));
        parts.push(value.to_owned());
        return parts;
    };
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let path = path.trim_start_matches('/').to_owned();
    let mut parts = login_in(value);
    if path.len() >= PATH_MASKED_FROM {
        parts.push(path);
    }
    parts
}

/// What stands between the places of a template that a message fills in.
fn pieces(template: &str) -> Vec<String> {
    let pieces = template.split("$title").flat_map(|piece| piece.split("$content"));
    pieces.filter(|piece| piece.len() >= PATH_MASKED_FROM).map(str::to_owned).collect()
}

/// What stands behind the scheme in the value of an `Authorization` header: far ends repeat it alone.
fn credentials(value: &str) -> Option<&str> {
    let (scheme, credentials) = value.split_once(' ')?;
    ["Basic", "Bearer", "Token"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
        .then(|| credentials.trim())
}

/// The password in an address, as it is written there and as it is, and the login with it. A user without a password
/// is a token.
fn login_in(address: &str) -> Vec<String> {
    let address = address.trim();
    let url = if address.contains("://") {
        Url::parse(address).ok()
    } else {
        // Addresses may be written without a scheme; but what is only `user@host` is a mail address.
        let url = Url::parse(&format!("https://{address}")).ok();
        url.filter(|url| url.password().is_some())
    };
    let Some(url) = url else {
        return Vec::new();
    };
    let user = decoded(url.username());
    let (secret, password) = match url.password() {
        Some(password) => (password, decoded(password)),
        None => (url.username(), String::new()),
    };
    if secret.is_empty() {
        return Vec::new();
    }
    let [basic, plain] = logins(&user, &password);
    vec![secret.to_owned(), decoded(secret), basic, plain]
}

/// A login as HTTP's `Basic` (RFC 7617) and as SASL's `PLAIN` (RFC 4616) write it, before Base64.
fn logins(user: &str, password: &str) -> [String; 2] {
    [format!("{user}:{password}"), format!("\0{user}\0{password}")]
}

/// Puts the longest first: where one secret begins another, what is left of the longer one would stay.
fn longest_first(texts: &mut Vec<String>) {
    texts.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    texts.dedup();
}

/// Replaces each of `secrets` in `text`, however it was written there.
pub(crate) fn mask(text: &str, secrets: &[String]) -> String {
    let known = || secrets.iter().filter(|secret| secret.len() >= MASKED_FROM);
    let mut written: Vec<String> = known().flat_map(|secret| forms(secret)).collect();
    for word in known().flat_map(|secret| in_base64(text, secret)) {
        written.extend([format!("{word}=="), format!("{word}="), word]);
    }
    longest_first(&mut written);
    written.iter().fold(text.to_owned(), |masked, form| masked.replace(form, MASK))
}

/// The ways in which far ends write `secret`: as it is, in JSON, in an address, and in Base64.
fn forms(secret: &str) -> Vec<String> {
    let json = Value::from(secret).to_string();
    let json = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(secret);
    let mut plain = vec![secret.to_owned(), json.to_owned()];
    for base64 in [BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE, BASE64_URL_SAFE_NO_PAD]
    {
        plain.push(base64.encode(secret));
    }
    let mut escaped = vec![url::form_urlencoded::byte_serialize(secret.as_bytes()).collect()];
    escaped.push(in_path(secret));
    escaped
        .extend(plain.iter().map(|text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()));
    let lower: Vec<_> = escaped.iter().map(|text| with_lower_escapes(text)).collect();
    // Some writers of JSON escape the slash as well.
    let slashes: Vec<_> = plain.iter().map(|text| text.replace('/', "\\/")).collect();
    plain.into_iter().chain(escaped).chain(lower).chain(slashes).collect()
}

/// `text` with `%2f` for `%2F`.
fn with_lower_escapes(text: &str) -> String {
    let mut digits = 0;
    let lowered = text.chars().map(|character| match character {
        '%' => {
            digits = 2;
            character
        }
        _ if digits > 0 => {
            digits -= 1;
            character.to_ascii_lowercase()
        }
        _ => character,
    });
    lowered.collect()
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

/// Replaces each of `secrets` in `text` where it stands alone, and is no part of a word.
fn mask_words(text: &str, secrets: &[String]) -> String {
    let mut written: Vec<String> = secrets
        .iter()
        .filter(|secret| !secret.is_empty())
        .flat_map(|secret| forms(secret))
        .collect();
    longest_first(&mut written);
    written.iter().fold(text.to_owned(), |text, form| mask_word(&text, form))
}

fn mask_word(text: &str, word: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(word) {
        masked.push_str(before);
        let is_open = !masked.ends_with(char::is_alphanumeric);
        let is_alone = is_open && !after.starts_with(char::is_alphanumeric);
        masked.push_str(if is_alone { MASK } else { word });
        rest = after;
    }
    masked + rest
}

/// Replaces each of `secrets` in every text of `value`, also those that are too short to be told from a part of a word.
pub(crate) fn mask_all(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => {
            let short: Vec<_> =
                secrets.iter().filter(|it| it.len() < MASKED_FROM).cloned().collect();
            *text = mask_words(&mask(text, secrets), &short);
        }
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
        let found = found_in(&schema, &toml::Value::Table(options));
        let expected = [
            "services/T0/B1?key=x",
            "\0user\0passw0rd",
            "user:passw0rd",
            "\0me\0p@ssword",
            "me:p@ssword",
            "p%40ssword",
            "k1-secret",
            "h-secret",
            "p@ssword",
            "passw0rd",
            "t0ken",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn logins_are_masked_in_every_form_that_far_ends_repeat_row_116() {
        let schema = json!({ "properties": {
            "user": { "type": "string" }, "password": { "type": "string", "writeOnly": true },
        }});
        #[track_caller]
        fn check(schema: &Value, user: &str, password: &str) {
            let options = toml::Table::from_iter([
                ("user".to_owned(), user.into()),
                ("password".to_owned(), password.into()),
            ]);
            let secrets = found_in(schema, &options.into());
            for secret in
                [format!("{user}:{password}"), format!("\0{user}\0{password}"), password.to_owned()]
            {
                let base64 = BASE64_STANDARD.encode(&secret);
                let escaped = utf8_percent_encode(&base64, NON_ALPHANUMERIC).to_string();
                let told = format!(
                    "535 {base64} /{base64}/x {} {escaped} {} {}",
                    base64.replace('/', "\\/"),
                    with_lower_escapes(&escaped),
                    utf8_percent_encode(&secret, NON_ALPHANUMERIC),
                );
                assert_eq!(mask(&told, &secrets), "535 *** /***/x *** *** *** ***", "{secret:?}");
            }
        }
        check(&schema, "bell", "hunter2?>?/~~~");
        check(&schema, "bell@example.com", "app-password-4711");
        // The password alone is too short to be told from a word, the login is not.
        let short = toml::Table::from_iter([
            ("user".to_owned(), "bell".into()),
            ("password".to_owned(), "pw1".into()),
        ]);
        let secrets = found_in(&schema, &short.into());
        assert_eq!(mask("Basic YmVsbDpwdzE=", &secrets), "Basic ***");
    }

    #[test]
    fn logins_in_addresses_are_found_however_they_are_written_row_116() {
        #[track_caller]
        fn check(address: &str, told: &str, masked: &str) {
            assert_eq!(mask(told, &login_in(address)), masked, "{address}");
        }
        check("http://me:hunter2@host/x", "Basic bWU6aHVudGVyMg==", "Basic ***");
        check("me:hunter2@host/x", "Basic bWU6aHVudGVyMg==", "Basic ***");
        check("https://token-0815@host/x", "Basic dG9rZW4tMDgxNTo= token-0815", "Basic *** ***");
        check("bell@example.com", "bell@example.com", "bell@example.com");
        let headers = json!({ "additionalProperties": { "writeOnly": true } });
        let options = toml::Table::from_iter([("X".to_owned(), "Basic eA-opaque-1".into())]);
        assert_eq!(mask("eA-opaque-1 no", &found_in(&headers, &options.into())), "*** no");
    }

    #[test]
    fn a_secret_that_begins_another_leaves_no_tail_row_116() {
        let secrets = ["hunter2".to_owned(), "hunter2-tail".to_owned()];
        assert_eq!(mask("a hunter2-tail, hunter2", &secrets), "a ***, ***");
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
        check("Basic bWU6YS9iICJjIg==", "Basic ***");
        check("abc stays, it is too short", "abc stays, it is too short");
    }

    #[test]
    fn what_is_previewed_hides_short_secrets_too_row_116() {
        let mut request = json!({
            "url": "https://far.example/bot/ab/send?key=p%26q", "body": r#"{"token":"ab","text":"abc cab"}"#,
            "headers": { "x-key": "ab" },
        });
        mask_all(&mut request, &["ab".to_owned(), "p&q".to_owned(), String::new()]);
        let hidden = json!({
            "url": "https://far.example/bot/***/send?key=***", "body": r#"{"token":"***","text":"abc cab"}"#,
            "headers": { "x-key": "***" },
        });
        assert_eq!(request, hidden);
    }
}
