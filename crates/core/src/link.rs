//! Web addresses that belong to an event: what a reader opens to see more.

use crate::{field::Invalid, text};

/// Longest address, in bytes. Longer ones are refused.
pub const LINK_LIMIT: usize = 2_048;

/// The fields of an event's data that name an address, the first one that is there first.
const FIELDS: [&str; 3] = ["artifact_url", "url", "link"];

/// Checks an address that somebody gave as `field`.
///
/// # Errors
/// Names the field, its value and what was expected.
pub fn check(field: &str, address: &str) -> Result<(), Invalid> {
    if address.len() > LINK_LIMIT {
        return Err(Invalid::too_long(field, address.len(), LINK_LIMIT, "bytes"));
    }
    match opened(address) {
        Some(_) => Ok(()),
        None => {
            Err(Invalid::text(field, address, "an address that starts with https:// or http://"))
        }
    }
}

/// The address of what was made, if `data` names one that a reader can open.
pub(crate) fn named(data: &serde_json::Value) -> Option<String> {
    let address = FIELDS.iter().find_map(|name| data.get(name)?.as_str())?;
    opened(address).filter(|address| address.len() <= LINK_LIMIT)
}

/// `address` as a reader can open it, if it is one of the web. What would end it in a text is written as addresses
/// write it (RFC 3986, section 2.1).
pub(crate) fn opened(address: &str) -> Option<String> {
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"))?;
    let is_plain = !rest.is_empty()
        && text::one_line(address) == address
        && !address.contains(char::is_whitespace);
    let escaped = |character: char| match character {
        '<' | '>' | '"' | '`' | '\\' | '|' => format!("%{:02X}", u32::from(character)),
        other => other.to_string(),
    };
    is_plain.then(|| address.chars().map(escaped).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_web_addresses_become_links() {
        for address in
            ["javascript:alert(1)", "https://a b", "https://a\nb", "s3://bucket", "https://"]
        {
            assert_eq!(named(&json!({ "artifact_url": address })), None, "{address}");
            assert!(check("link", address).is_err(), "{address}");
        }
        assert_eq!(named(&json!({ "url": "https://h/a" })).as_deref(), Some("https://h/a"));
    }

    #[test]
    fn what_would_end_a_link_in_a_text_is_escaped() {
        assert_eq!(opened("https://h/<a>|\"b\"").as_deref(), Some("https://h/%3Ca%3E%7C%22b%22"));
    }

    #[test]
    fn a_link_has_a_limit() {
        let long = format!("https://h/{}", "a".repeat(LINK_LIMIT));
        assert!(check("link", &long).unwrap_err().to_string().contains("2048"));
        assert_eq!(named(&json!({ "url": long })), None);
    }
}
