//! What a preview hides: any secret, wherever a request has it and however it is written there.
//!
//! Hiding knows the ways of writing a secret; this goes the other way and undoes them, so that a way that was forgotten
//! is found.

use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use deskbell_channels::{ChannelKind, Manner, from_url, preview};
use deskbell_core::event::Format;
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::Value;

use crate::{
    sample::{message, now},
    stand_in::{block_on, example},
};

/// How many secrets each kind is tried with.
const CASES: u32 = 12;

/// How deep texts stand in one another: JSON in a field of a form, a login in Base64 in a header.
const DEPTH: usize = 4;

/// Row 116: whatever the secrets of the example are replaced with, a preview does not show it.
pub(crate) fn previews_hide_any_secret(kind: &'static ChannelKind) {
    let odd = "[a-zA-Z0-9]{5}[ -~]{3,12}[a-zA-Z0-9]{5}";
    let plain = "[a-zA-Z0-9]{12,40}";
    let config = ProptestConfig { cases: CASES, failure_persistence: None, ..Default::default() };
    let outcome = TestRunner::new(config).run(&prop_oneof![odd, plain], |secret| {
        for option in kind.options().into_iter().filter(|option| option.secret) {
            let mut options = example(kind);
            let Some(value) = options.get_mut(&option.name) else { continue };
            replace(value, &secret);
            // Keys and numbers have forms of their own.
            let Ok(channel) = kind.build(options) else { continue };
            let text = message("text", Format::Text);
            let shown = preview(kind, &*channel, &text, now(), Manner::default(), false);
            let shown = block_on(shown);
            prop_assert!(!is_in(&shown, &secret), "{} is seen in {shown:#}", option.name);
        }
        Ok(())
    });
    outcome.unwrap();
}

/// Row 116: the same for the secrets of addresses.
pub(crate) fn previews_of_addresses_hide_secrets(kind: &'static ChannelKind) {
    for address in kind.urls.unwrap().examples {
        let channel = kind.build(from_url(address).unwrap().options).unwrap();
        let text = message("text", Format::Text);
        let shown = block_on(preview(kind, &*channel, &text, now(), Manner::default(), false));
        for secret in channel.secrets().iter().filter(|secret| secret.len() >= 4) {
            assert!(!is_in(&shown, secret), "{secret} is seen in {shown:#}");
        }
    }
}

fn replace(value: &mut toml::Value, secret: &str) {
    match value {
        toml::Value::String(text) => match url::Url::parse(text) {
            Ok(mut url) if url.has_host() => {
                url.path_segments_mut().unwrap().clear().push(secret);
                *text = url.to_string();
            }
            _ => secret.clone_into(text),
        },
        toml::Value::Array(items) => items.iter_mut().for_each(|item| replace(item, secret)),
        toml::Value::Table(table) => {
            table.iter_mut().for_each(|(_, value)| replace(value, secret));
        }
        _ => {}
    }
}

/// Whether `secret` is in a text of `value`, however it is written there.
fn is_in(value: &Value, secret: &str) -> bool {
    match value {
        Value::String(text) => is_in_text(text, secret, DEPTH),
        Value::Array(items) => items.iter().any(|item| is_in(item, secret)),
        Value::Object(fields) => fields.values().any(|field| is_in(field, secret)),
        _ => false,
    }
}

fn is_in_text(text: &str, secret: &str, depth: usize) -> bool {
    if text.contains(secret) {
        return true;
    }
    let Some(depth) = depth.checked_sub(1) else { return false };
    let mut read = vec![unescaped(text, false), unescaped(text, true)];
    let base64 = |character: char| character.is_ascii_alphanumeric() || "+/-_".contains(character);
    read.extend(text.split(|character| !base64(character)).flat_map(decoded));
    if let Ok(json) = serde_json::from_str::<Value>(text)
        && !json.is_string()
        && is_in(&json, secret)
    {
        return true;
    }
    read.iter().any(|read| read != text && is_in_text(read, secret, depth))
}

/// `text` without percent escapes; in forms a `+` is a space.
fn unescaped(text: &str, is_form: bool) -> String {
    let text = if is_form { text.replace('+', " ") } else { text.to_owned() };
    let pairs = text.bytes().collect::<Vec<_>>();
    let mut read = Vec::new();
    let mut at = 0;
    while let Some(byte) = pairs.get(at) {
        let digits = pairs.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(escaped) if *byte == b'%' => {
                read.push(escaped);
                at += 3;
            }
            _ => {
                read.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&read).into_owned()
}

/// What `word` holds, if it is Base64.
fn decoded(word: &str) -> Vec<String> {
    let any = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engines = [GeneralPurpose::new(&STANDARD, any), GeneralPurpose::new(&URL_SAFE, any)];
    let held = engines.iter().filter_map(|engine| engine.decode(word).ok());
    held.filter_map(|bytes| String::from_utf8(bytes).ok()).filter(|text| text.len() > 4).collect()
}
