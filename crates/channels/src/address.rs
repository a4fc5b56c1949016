//! Addresses as users write them in options, checked when the configuration is read.

use std::{borrow::Cow, fmt, net::IpAddr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error as _};
use url::{Host, Url};

use crate::{secret::Secret, url::decoded};

/// A web address. Prints its host only, because the rest may be as good as a password.
#[derive(Clone)]
pub struct Address(Url);

impl Address {
    /// Reads an address; without a scheme it is `https`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let url = if text.contains("://") {
            Url::parse(text)
        } else {
            Url::parse(&format!("https://{text}"))
        };
        let url = url.ok()?;
        (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(Self(url))
    }

    /// This address with `segments` added to its path, each escaped.
    #[must_use]
    pub fn at(&self, segments: &[&str]) -> Self {
        let mut url = self.0.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        Self(url)
    }

    /// This address with a parameter added to its query, escaped.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut url = self.0.clone();
        url.query_pairs_mut().append_pair(name, value);
        Self(url)
    }

    /// This address without the parameter `name` in its query.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut url = self.0.clone();
        let left: Vec<_> = self.0.query_pairs().filter(|(known, _)| known != name).collect();
        if left.is_empty() {
            url.set_query(None);
        } else {
            url.query_pairs_mut().clear().extend_pairs(left);
        }
        Self(url)
    }

    /// This address with a user and a password, escaped.
    #[must_use]
    pub(crate) fn as_user(&self, user: Option<&str>, password: Option<&str>) -> Self {
        let mut url = self.0.clone();
        // Addresses with a host always take a user and a password.
        let _always = (url.set_username(user.unwrap_or_default()), url.set_password(password));
        Self(url)
    }

    /// This address with another one's scheme, host and port.
    pub(crate) fn on_host_of(&self, other: &Self) -> Option<Self> {
        let mut url = other.0.clone();
        url.set_path(self.0.path());
        url.set_query(self.0.query());
        Some(Self(url))
    }

    /// The address without user and password, and these.
    pub(crate) fn without_login(&self) -> (Self, Option<(String, Secret)>) {
        let user = decoded(self.0.username());
        let password = decoded(self.0.password().unwrap_or_default());
        if user.is_empty() && password.is_empty() {
            return (self.clone(), None);
        }
        (self.as_user(None, None), Some((user, Secret::from(password))))
    }

    /// Whether this is an address of this machine.
    pub(crate) fn is_this_machine(&self) -> bool {
        let is_loopback = self.number().is_some_and(|number| number.is_loopback());
        is_loopback || self.0.host_str() == Some("localhost")
    }

    /// The network address that this is written as, if it names no host.
    pub(crate) fn number(&self) -> Option<IpAddr> {
        match self.0.host()? {
            Host::Ipv4(number) => Some(IpAddr::V4(number)),
            Host::Ipv6(number) => Some(IpAddr::V6(number)),
            Host::Domain(_) => None,
        }
    }

    /// The address as a whole, for the one request that goes to it.
    pub(crate) const fn url(&self) -> &Url {
        &self.0
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.0.scheme(), self.0.host_str().unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| D::Error::custom("not an address, expected one with http or https"))
    }
}

impl JsonSchema for Address {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Address".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "uri" })
    }
}

/// The address of a proxy, which may hold a user and a password.
#[derive(Clone)]
pub struct Proxy(Url);

impl Proxy {
    /// The proxy's address as a whole.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The machine it runs on, and the port.
    pub(crate) fn host(&self) -> (String, u16) {
        /// The port of SOCKS (RFC 1928).
        const SOCKS: u16 = 1080;
        let host = decoded(self.0.host_str().unwrap_or_default());
        (host, self.0.port_or_known_default().unwrap_or(SOCKS))
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.0.scheme(), self.0.host_str().unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Proxy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let url = Url::parse(&String::deserialize(deserializer)?).ok();
        let known = |url: &Url| {
            url.has_host() && matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h")
        };
        url.filter(known).map(Self).ok_or_else(|| {
            D::Error::custom("not a proxy, expected an address with http, https, socks5 or socks5h")
        })
    }
}

impl JsonSchema for Proxy {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Proxy".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "uri", "writeOnly": true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_hosts_are_https_and_other_schemes_are_refused() {
        #[track_caller]
        fn check(text: &str, expected: Option<&str>) {
            assert_eq!(Address::parse(text).as_ref().map(|address| address.0.as_str()), expected);
        }
        check("https://ntfy.sh", Some("https://ntfy.sh/"));
        check("api.telegram.org", Some("https://api.telegram.org/"));
        check("localhost:8080/x", Some("https://localhost:8080/x"));
        check("http://[::1]:80/", Some("http://[::1]/"));
        check("ftp://example.com", None);
        check("file:///etc/passwd", None);
        check("javascript:alert(1)", None);
        check("https://", None);
    }

    #[test]
    fn parts_are_escaped_row_115() {
        let address = Address::parse("http://h/base/").unwrap();
        let made = address.at(&["bot1:a/b", "send me"]).with("q", "a&b=ü");
        assert_eq!(made.0.as_str(), "http://h/base/bot1:a%2Fb/send%20me?q=a%26b%3D%C3%BC");
    }

    #[test]
    fn only_the_host_prints_row_116() {
        let address = Address::parse("https://me:pw@example.com/token?key=x").unwrap();
        assert_eq!(format!("{address:?}"), "https://example.com");
        let (bare, login) = address.without_login();
        let (user, password) = login.unwrap();
        assert_eq!(bare.0.as_str(), "https://example.com/token?key=x");
        assert_eq!((user.as_str(), password.expose()), ("me", "pw"));
    }
}
