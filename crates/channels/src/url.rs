//! Addresses that stand for a whole channel, as Apprise writes them: `ntfy://topic`, `tgram://TOKEN/CHAT`.
//!
//! They are read here once; what their parts mean is said in the file of the kind. Nothing of an address is ever
//! repeated in an error except a scheme that is known and the names of its parameters, because everything else may be
//! a token.

use std::net::Ipv6Addr;

use deskbell_core::{
    Invalid,
    event::Format,
    text::{self, Unit},
};
use percent_encoding::percent_decode_str;

use crate::{
    channel::{ChannelKind, ConfigError},
    manner::Manner,
};

/// The addresses that a kind takes.
#[derive(Debug, Clone, Copy)]
pub struct Urls {
    /// Their schemes.
    pub schemes: &'static [&'static str],
    /// How the service's own addresses begin, such as `hooks.slack.com/services/`, where one is a whole channel; or how
    /// their hosts end, such as `*.logic.azure.com`.
    pub native: &'static [&'static str],
    /// Whether an address of these schemes is one of this kind, for schemes that several kinds share.
    pub claims: fn(&ServiceUrl) -> bool,
    /// Some that must build, the simplest first.
    pub examples: &'static [&'static str],
    /// The options that an address stands for.
    pub read: fn(&mut ServiceUrl) -> Result<toml::Table, ConfigError>,
}

impl Urls {
    /// No address at all, to be filled in.
    pub const NONE: Self = Self {
        schemes: &[],
        native: &[],
        claims: |_| true,
        examples: &[],
        read: |url| Err(url.wrong("means nothing")),
    };

    fn take(&self, url: &ServiceUrl) -> bool {
        let is_native = |native: &&str| match native.strip_prefix('*') {
            Some(end) => url.host().is_ok_and(|(host, _)| host.ends_with(end)),
            None => url.written.starts_with(*native),
        };
        (url.is_native() && self.native.iter().any(is_native))
            || (self.schemes.contains(&url.scheme.as_str()) && (self.claims)(url))
    }
}

/// Whether the value of a parameter asks for nothing that Deskbell does not do.
type SaysNothing = fn(&str) -> bool;

/// Parameters that Apprise takes with every address and that mean nothing here, with the values under which Apprise
/// does what Deskbell does.
const GENERAL: &[(&str, SaysNothing)] = &[
    ("emojis", |value| !is_yes(value)),
    ("verify", is_yes),
    ("redirect", |value| !is_yes(value)),
    ("cto", |_| false),
    ("rto", |_| false),
    ("tz", |_| false),
    ("store", |_| true),
    ("tag", |_| false),
    ("tags", |_| false),
    ("retry", |value| value == "0"),
    ("wait", |_| false),
    ("optional", |value| !is_yes(value)),
    ("image", |_| true),
    ("footer", |_| true),
];

/// An address in its parts, each without percent escapes.
///
/// Not a `Url`: tokens stand where that has a host, in upper and lower case and with colons.
pub struct ServiceUrl {
    /// What stands before `://`, in lower case.
    pub scheme: String,
    /// What stands before the `@`, up to a colon.
    pub user: Option<String>,
    /// What follows the colon before the `@`.
    pub password: Option<String>,
    /// What stands between the `@` and the path: a host with or without a port, or a token.
    pub authority: String,
    /// The parts of the path that are not empty.
    pub path: Vec<String>,
    /// What stands after `://`, as it was written.
    written: String,
    query: Vec<(String, String)>,
}

/// The channel that an address stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct FromUrl {
    /// Its kind.
    pub kind: &'static str,
    /// The options of the kind.
    pub options: toml::Table,
    /// How it is to tell.
    pub manner: Manner,
    /// The parameters of the address that say something which no channel does.
    pub passed_over: Vec<&'static str>,
}

/// The channel that `address` with `settings` stands for.
///
/// # Errors
/// Says which part of the address is wrong, and never repeats the rest.
pub(crate) fn read(
    kinds: &'static [ChannelKind],
    address: &str,
    settings: Vec<(String, String)>,
) -> Result<FromUrl, ConfigError> {
    let mut url = ServiceUrl::parse(address)?;
    url.take_parts();
    settings.into_iter().for_each(|(name, value)| url.set(name, value));
    let takes = |kind: &&ChannelKind| kind.urls.is_some_and(|urls| urls.take(&url));
    let Some((kind, urls)) = kinds.iter().find(takes).and_then(|kind| Some((kind, kind.urls?)))
    else {
        return Err(unknown_scheme(kinds, &url.scheme));
    };
    let manner = manner(&mut url)?;
    let options = (urls.read)(&mut url)?;
    if !url.path.is_empty() {
        return Err(url.wrong("has a path that goes on after all that it needs"));
    }
    if url.user.is_some() || url.password.is_some() {
        return Err(url.wrong("has a login, which means nothing there"));
    }
    let general = |name: &str| GENERAL.iter().find(|(known, _)| *known == name);
    let passed_over = url.query.iter().filter_map(|(name, value)| {
        let (name, is_same) = general(name)?;
        (!value.is_empty() && !is_same(value)).then_some(*name)
    });
    let passed_over = passed_over.collect();
    match url.query.iter().find(|(name, _)| general(name).is_none()) {
        None => Ok(FromUrl { kind: kind.about.name, options, manner, passed_over }),
        // A parameter without a value may be a key that stands there alone.
        Some((_, value)) if value.is_empty() => Err(url.wrong("has a parameter without a value")),
        Some((name, _)) => Err(url.wrong(&format!("has the unknown parameter {}", quoted(name)))),
    }
}

/// Takes the parameters that say how any channel is to tell.
fn manner(url: &mut ServiceUrl) -> Result<Manner, ConfigError> {
    let format = match url.parameter("format").as_deref() {
        None => None,
        // HTML arrives as the text that it is; what Apprise's users mean by it is that marks count.
        Some("html") => Some(Format::Markdown),
        Some(format) => Some(format.parse().map_err(|refusal: Invalid| {
            url.wrong(&format!("has a wrong `format`; expected {} or html", refusal.expected))
        })?),
    };
    let overflow = url.parameter("overflow").map(|overflow| overflow.parse());
    let overflow = overflow.transpose().map_err(|refusal: Invalid| {
        url.wrong(&format!("has a wrong `overflow`; expected {}", refusal.expected))
    })?;
    Ok(Manner { format, overflow: overflow.unwrap_or_default() })
}

fn unknown_scheme(kinds: &[ChannelKind], scheme: &str) -> ConfigError {
    let schemes = kinds.iter().filter_map(|kind| kind.urls).flat_map(|urls| urls.schemes);
    let is_known = schemes.clone().any(|known| *known == scheme);
    let near = schemes
        .filter(|_| !is_known)
        .map(|known| (strsim::jaro_winkler(known, scheme), known))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    // What is unknown is not repeated: it may be a secret in the wrong place.
    let refusal = "no kind of channel takes such an address";
    ConfigError(match near {
        Some((_, meant)) => format!("{refusal}; did you mean `{meant}://`?"),
        None => refusal.to_owned(),
    })
}

/// The name of a parameter, cleaned and cut.
fn quoted(name: &str) -> String {
    format!("`{}`", text::cut(&text::one_line(name), 40, Unit::Characters))
}

impl ServiceUrl {
    fn parse(address: &str) -> Result<Self, ConfigError> {
        let Some((scheme, rest)) = address.trim().split_once("://") else {
            return Err(ConfigError("the address has no scheme, such as `ntfy://`".to_owned()));
        };
        let scheme = scheme.to_ascii_lowercase();
        let written = match is_web(&scheme) {
            true => with_plain_host(rest),
            false => rest.to_owned(),
        };
        let (rest, query) = written.split_once('?').unwrap_or((&written, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, authority) = match authority.rsplit_once('@') {
            Some((login, authority)) => (Some(login), authority),
            None => (None, authority),
        };
        let (user, password) = match login.map(|login| login.split_once(':')) {
            Some(Some((user, password))) => (Some(user), Some(password)),
            Some(None) => (login, None),
            None => (None, None),
        };
        let part = |part: Option<&str>| part.filter(|part| !part.is_empty()).map(decoded);
        let path = path.split('/').filter(|part| !part.is_empty()).map(decoded).collect();
        let query = query.split('&').filter(|pair| !pair.is_empty()).map(pair).collect();
        let (user, password, authority) = (part(user), part(password), decoded(authority));
        Ok(Self { scheme, user, password, authority, path, query, written })
    }

    /// Takes over the parts that stand behind the `?`, as all of Apprise's addresses may have them. What stood in the
    /// place of such a user is the password.
    fn take_parts(&mut self) {
        if self.is_native() {
            return;
        }
        if let Some(password) = self.parameter("password").or_else(|| self.parameter("pass")) {
            self.password = Some(password);
        }
        if let Some(user) = self.parameter("user") {
            let before = self.user.replace(user);
            self.password = self.password.take().or(before);
        }
        if let Some(port) = self.parameter("port") {
            self.set("port".to_owned(), port);
        }
    }

    /// Sets a part that has a name of its own, or the parameter `name`.
    fn set(&mut self, name: String, value: String) {
        match name.as_str() {
            "user" => self.user = Some(value),
            "pass" | "password" => self.password = Some(value),
            "host" | "hostname" => {
                self.authority = match self.authority.rsplit_once(':') {
                    Some((_, port)) if !port.ends_with(']') => format!("{value}:{port}"),
                    _ => value,
                };
            }
            "port" => {
                let host = match self.authority.rsplit_once(':') {
                    Some((host, port)) if !port.ends_with(']') => host,
                    _ => &self.authority,
                };
                self.authority = format!("{host}:{value}");
            }
            _ => {
                let name = if name == "targets" { "to".to_owned() } else { name };
                self.query.retain(|(known, _)| *known != name);
                self.query.push((name, value));
            }
        }
    }

    /// Takes the places that the address names: what is left of its path, and its parameter `to`, with commas between
    /// them. One is a text, several are a list.
    pub fn targets(&mut self) -> Option<toml::Value> {
        let more = self.parameter("to").unwrap_or_default();
        let more = more.split([',', ' ']).map(str::trim).filter(|target| !target.is_empty());
        let mut all: Vec<toml::Value> = self.path.drain(..).map(Into::into).collect();
        all.extend(more.map(Into::into));
        match all.len() {
            0 | 1 => all.pop(),
            _ => Some(all.into()),
        }
    }

    /// Takes the first part of the path; `what` says what it is.
    ///
    /// # Errors
    /// Says that there is none.
    pub fn next(&mut self, what: &str) -> Result<String, ConfigError> {
        if self.path.is_empty() {
            return Err(self.wrong(&format!("names no {what}")));
        }
        Ok(self.path.remove(0))
    }

    /// Whether the path ends with a slash, which is no part of its own.
    pub fn ends_with_slash(&self) -> bool {
        self.written.split('?').next().is_some_and(|address| address.ends_with('/'))
    }

    /// Takes what is left of the path.
    pub fn rest(&mut self) -> Vec<String> {
        std::mem::take(&mut self.path)
    }

    /// Takes the host, or the token that stands in its place.
    pub fn authority(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.authority)).filter(|authority| !authority.is_empty())
    }

    /// The parameter `name`, which stays where it is.
    pub fn look(&self, name: &str) -> Option<&str> {
        let mut named = self.query.iter().filter(|(known, _)| known == name);
        named.next().map(|(_, value)| value.as_str())
    }

    /// Takes the address of the service's own as it is, without what stands after its path.
    pub fn native(&mut self) -> String {
        let scheme = &self.scheme;
        let written = self.written.split('?').next().unwrap_or_default();
        self.path.clear();
        format!("{scheme}://{written}")
    }

    /// Takes the address of the service's own as it is, with what stands after its path.
    pub fn native_whole(&mut self) -> String {
        self.path.clear();
        self.query.clear();
        format!("{}://{}", self.scheme, self.written)
    }

    /// Takes the parameter `name`; without a value it is as good as not there.
    pub fn parameter(&mut self, name: &str) -> Option<String> {
        let place = self.query.iter().position(|(known, _)| known == name)?;
        Some(self.query.remove(place).1).filter(|value| !value.is_empty())
    }

    /// The parameter `priority` as a number, where Apprise has five words for -2 to 2, of which the first letter counts.
    ///
    /// # Errors
    /// Says that it is no such word and no number.
    pub fn priority(&mut self) -> Result<Option<i64>, ConfigError> {
        let Some(name) = self.parameter("priority") else { return Ok(None) };
        let priority = match name.to_ascii_lowercase().chars().next() {
            Some('l') => -2,
            Some('m') => -1,
            Some('n') => 0,
            Some('h') => 1,
            Some('e') => 2,
            _ => name.parse().map_err(|_| self.wrong("has a `priority` that is unknown"))?,
        };
        Ok(Some(priority))
    }

    /// Takes the parameter `name`, a whole number.
    ///
    /// # Errors
    /// Says that it is none.
    pub fn number(&mut self, name: &str) -> Result<Option<i64>, ConfigError> {
        let number = self.parameter(name).map(|number| number.parse()).transpose();
        number.map_err(|_| self.wrong(&format!("has a `{name}` that is no number")))
    }

    /// Takes the parameter `name`, which says yes or no.
    pub fn yes(&mut self, name: &str) -> Option<bool> {
        self.parameter(name).map(|value| is_yes(&value))
    }

    /// Takes parameters that are options word for word: pairs of the option's name and the parameter's.
    pub fn table(&mut self, names: &[(&str, &str)]) -> toml::Table {
        let taken = names.iter().filter_map(|(option, name)| {
            Some(((*option).to_owned(), self.parameter(name)?.into()))
        });
        taken.collect()
    }

    /// Whether the address is the service's own rather than one of ours.
    pub fn is_native(&self) -> bool {
        is_web(&self.scheme)
    }

    /// Takes the parameters whose names start with `prefix`, and gives their names without it.
    pub fn parameters(&mut self, prefix: char) -> Vec<(String, String)> {
        let (taken, left) = std::mem::take(&mut self.query)
            .into_iter()
            .partition(|(name, _)| name.starts_with(prefix));
        self.query = left;
        let taken: Vec<(String, String)> = taken;
        taken
            .into_iter()
            .map(|(name, value)| (name.trim_start_matches(prefix).to_owned(), value))
            .collect()
    }

    /// Takes parameters that change nothing here.
    pub fn ignore(&mut self, names: &[&str]) {
        self.query.retain(|(name, _)| !names.contains(&name.as_str()));
    }

    /// The host and the port, if one is given.
    ///
    /// # Errors
    /// Says that there is no host, that it is not written as one, or that the port is no port.
    pub fn host(&self) -> Result<(&str, Option<u16>), ConfigError> {
        let (host, port) = match self.authority.rsplit_once(':') {
            // The colons of a number such as `[::1]` belong to the host.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (self.authority.as_str(), None),
        };
        if host.is_empty() {
            return Err(self.wrong("names no host"));
        }
        let number = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_number = number.is_some_and(|number| number.parse::<Ipv6Addr>().is_ok());
        if host.contains(['[', ']']) && !is_number {
            return Err(self.wrong("has brackets around what is no address of IPv6"));
        }
        match port.map(str::parse).transpose() {
            Ok(port) if port != Some(0) => Ok((host, port)),
            _ => Err(self.wrong("has a port that is no number from 1 to 65535")),
        }
    }

    /// `http://` or, where the scheme ends with an `s`, `https://`, with the host and port.
    ///
    /// # Errors
    /// As [`Self::host`].
    pub fn web(&self) -> Result<String, ConfigError> {
        self.host()?;
        let scheme = if self.scheme.ends_with('s') { "https" } else { "http" };
        Ok(format!("{scheme}://{}", self.authority))
    }

    /// The one part of the path; `what` says what it is.
    ///
    /// # Errors
    /// Says that there is none, or more than one.
    pub fn only(&mut self, what: &str) -> Result<String, ConfigError> {
        match std::mem::take(&mut self.path).as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(self.wrong(&format!("names no {what}"))),
            _ => Err(self.wrong(&format!("names more than one {what}; a channel has one"))),
        }
    }

    /// What is wrong with this address, as a sentence.
    pub fn wrong(&self, what: &str) -> ConfigError {
        ConfigError(format!("the `{}` address {what}", self.scheme))
    }
}

/// Whether addresses of `scheme` are those of the web.
fn is_web(scheme: &str) -> bool {
    matches!(scheme, "https" | "http")
}

/// An address without its scheme, with its host in lower case: there is no other difference between `Discord.com` and
/// `discord.com`, but there may be between tokens.
fn with_plain_host(rest: &str) -> String {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let (login, host) = match authority.rsplit_once('@') {
        Some((login, host)) => (format!("{login}@"), host),
        None => (String::new(), authority),
    };
    format!("{login}{}{behind}", host.to_ascii_lowercase())
}

/// A parameter's name and value. Apprise writes `+X-Key=…` for a header, so a `+` is no space here; and only the names
/// that such a sign begins are told from one another by their case.
fn pair(text: &str) -> (String, String) {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let name = decoded(name);
    let name = if name.starts_with(['+', '-', ':']) { name } else { name.to_lowercase() };
    (name, decoded(value))
}

/// `text` without percent escapes.
pub(crate) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Whether a parameter says yes.
pub fn is_yes(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "yes" | "true" | "on" | "1")
}

/// The options `set`, without those that are not there.
pub fn options<const N: usize>(set: [(&str, Option<toml::Value>); N]) -> toml::Table {
    set.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

#[cfg(test)]
mod tests;
