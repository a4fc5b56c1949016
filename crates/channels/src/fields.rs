//! The fields and the headers of a request, as far ends want them.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::{channel::ConfigError, secret::Secret};

/// `fields` without those that are null, for far ends that take a null for a value.
pub fn present(mut fields: Value) -> Value {
    if let Some(fields) = fields.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    fields
}

/// Headers that say how a request travels (RFC 9110, sections 7.2, 7.6 and 8.6). The client says them; another value
/// would lead it astray or let it wait for ever.
const TRAVEL: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Checks what a user sets as `headers`.
///
/// # Errors
/// Names the header that cannot be set, never its value.
pub(crate) fn check_headers(headers: &BTreeMap<String, Secret>) -> Result<(), ConfigError> {
    const NOT_ALLOWED: &str = "characters that HTTP does not allow";
    let wrong = |what: String| Err(ConfigError(format!("`headers`{what}")));
    for (name, value) in headers {
        match name.parse::<HeaderName>() {
            Err(_) => return wrong(format!(" has a name with {NOT_ALLOWED}")),
            Ok(name) if TRAVEL.contains(&name.as_str()) => {
                return wrong(format!(" has `{name}`, which each request says of itself"));
            }
            Ok(_) => {}
        }
        if HeaderValue::from_str(value.expose()).is_err() {
            return wrong(format!(": the value of `{name}` has {NOT_ALLOWED}"));
        }
    }
    Ok(())
}
