//! Web addresses that belong to an event: what a reader opens to see more.

use std::{borrow::Cow, net::Ipv6Addr};

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
        None => Err(Invalid::text(
            field,
            address,
            "an address of the web such as https://example.com/a",
        )),
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
    let (scheme, rest) = address.split_once("://")?;
    let scheme = ["https", "http"].into_iter().find(|known| scheme.eq_ignore_ascii_case(known))?;
    let address: Cow<'_, str> = match address.starts_with(scheme) {
        true => address.into(),
        false => format!("{scheme}://{rest}").into(),
    };
    let is_plain = has_host(rest)
        && text::one_line(&address) == address
        && !address.contains(char::is_whitespace);
    let escaped = |character: char| match character {
        '<' | '>' | '"' | '`' | '\\' | '|' => format!("%{:02X}", u32::from(character)),
        other => other.to_string(),
    };
    is_plain.then(|| address.chars().map(escaped).collect())
}

/// Whether what follows the scheme begins with a host and, if there is one, a port.
fn has_host(rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let (host, port) = match place.rsplit_once(':') {
        // The colons of a number such as `[::1]` belong to the host.
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (place, ""),
    };
    let number = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match number {
        Some(number) => number.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && !host.contains(['[', ']', ':']),
    };
    is_host && (port.is_empty() || port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_web_addresses_become_links() {
        for address in [
            "javascript:alert(1)",
            "https://a b",
            "https://a\nb",
            "s3://bucket",
            "https://",
            "https:///path",
            "https://:80/",
            "https://me@/",
            "https://[::1/",
            "https://[a]/",
            "https://a:99999/",
            "https://a:b/",
        ] {
            assert_eq!(named(&json!({ "artifact_url": address })), None, "{address}");
            assert!(check("link", address).is_err(), "{address}");
        }
        for (address, expected) in [
            ("https://h/a", "https://h/a"),
            ("HTTPS://H/a", "https://H/a"),
            ("Http://me:pw@[::1]:8080?a=:b", "http://me:pw@[::1]:8080?a=:b"),
            ("https://h:", "https://h:"),
        ] {
            assert_eq!(named(&json!({ "url": address })).as_deref(), Some(expected));
            assert_eq!(check("link", address), Ok(()));
        }
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
