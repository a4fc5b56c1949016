//! The variables by which mcp-push and Qinglong describe a channel, so that what works there works here unchanged.

use std::collections::BTreeMap;

use toml::Table;

/// How variables describe a channel of a kind.
#[derive(Debug, Clone, Copy)]
pub struct Variables {
    /// The name that the channel gets.
    pub name: &'static str,
    /// Those that must be set; the first of them alone says that the channel is wanted.
    pub needs: &'static [&'static str],
    /// Those that may be set.
    pub takes: &'static [&'static str],
    /// The options that they stand for.
    pub read: fn(&Set<'_>) -> Result<Table, Wrong>,
}

/// A variable that cannot be used, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrong {
    /// The variable.
    pub variable: &'static str,
    /// What is wrong with it, as a fragment.
    pub reason: &'static str,
}

/// The variables that are set, without those that say no.
#[derive(Debug, Default)]
pub struct Set<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Set<'a> {
    /// The value of `name`, trimmed.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }

    /// Whether `name` is set.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The value of `name`, which is a whole number.
    ///
    /// # Errors
    /// Says that it is none.
    pub fn number(&self, name: &'static str) -> Result<Option<i64>, Wrong> {
        let wrong = |_| Wrong { variable: name, reason: "expected a number" };
        self.get(name).map(|value| value.parse().map_err(wrong)).transpose()
    }

    /// A table of options, each the value of a variable, as far as they are set.
    pub fn table(&self, options: &[(&str, &str)]) -> Table {
        let set = options.iter().filter_map(|(option, name)| Some((*option, self.get(name)?)));
        set.map(|(option, value)| (option.to_owned(), value.into())).collect()
    }
}

/// A server and the key at the end of its address, where either may be written alone: `https://host/key` or `key`.
pub fn server_and_key(written: &str) -> (Option<&str>, &str) {
    let written = written.trim_end_matches('/');
    match written.rsplit_once('/') {
        Some((server, key)) if server.contains("://") => (Some(server), key),
        _ => (None, written),
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Set<'a> {
    /// Takes variables over; those that are empty or say no are as good as not set.
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(variables: I) -> Self {
        let trimmed = variables.into_iter().map(|(name, value)| (name, value.trim()));
        let says_no = |value: &str| value.eq_ignore_ascii_case("false") || value == "0";
        Self(trimmed.filter(|(_, value)| !value.is_empty() && !says_no(value)).collect())
    }
}
