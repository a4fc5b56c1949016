//! Addresses as users write them in options, checked when the configuration is read.

use std::{borrow::Cow, fmt, net::IpAddr, str::FromStr};

use deskbell_core::Invalid;
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

/// A server on this machine that stands for the far end of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandIn(Url);

impl StandIn {
    /// The address here that stands for `address` there: the path and the query of that one behind this one's path.
    pub(crate) fn instead_of(&self, address: &Address) -> Address {
        let mut url = self.0.clone();
        url.set_path(&format!("{}{}", self.0.path().trim_end_matches('/'), address.0.path()));
        url.set_query(address.0.query());
        Address(url)
    }
}

impl FromStr for StandIn {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let is_bare = |url: &Url| {
            let has_login = !url.username().is_empty() || url.password().is_some();
            !has_login && url.query().is_none() && url.fragment().is_none()
        };
        let address = Address::parse(text).filter(Address::is_this_machine);
        address.map(|address| Self(address.0)).filter(|stand_in| is_bare(&stand_in.0)).ok_or_else(
            || {
                let expected =
                    "an address of this machine such as `http://127.0.0.1:8390/slack_bot`";
                Invalid::text("stand_in", text, expected)
            },
        )
    }
}

impl fmt::Display for StandIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
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
    fn a_stand_in_is_on_this_machine_and_keeps_the_path() {
        #[track_caller]
        fn check(stand_in: &str, expected: Option<&str>) {
            let address = Address::parse("https://api.example.com:444/v1/a%2Fb?c=d").unwrap();
            let found = stand_in.parse::<StandIn>().ok().map(|it| it.instead_of(&address).0);
            assert_eq!(found.as_ref().map(Url::as_str), expected, "{stand_in}");
        }
        check("http://127.0.0.1:8390", Some("http://127.0.0.1:8390/v1/a%2Fb?c=d"));
        check("http://127.0.0.1:8390/ntfy/", Some("http://127.0.0.1:8390/ntfy/v1/a%2Fb?c=d"));
        check("http://[::1]:1/x", Some("http://[::1]:1/x/v1/a%2Fb?c=d"));
        check("http://localhost", Some("http://localhost/v1/a%2Fb?c=d"));
        for elsewhere in [
            "",
            "http://10.0.0.1",
            "http://0.0.0.0:1",
            "http://example.com",
            "http://localhost.example.com",
            "http://127.0.0.1@example.com",
            "http://me:pw@127.0.0.1",
            "http://127.0.0.1/?a=b",
            "http://127.0.0.1:99999",
            "file:///tmp/x",
        ] {
            check(elsewhere, None);
        }
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
