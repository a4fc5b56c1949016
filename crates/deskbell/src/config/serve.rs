//! The HTTP door: what may be written under `[serve]`, and what would not do what it looks like.

use std::collections::BTreeMap;

use url::{Host, Url};

use super::{
    ServeOptions,
    file::ServeTable,
    finding::Finding,
    resolve::Parts,
    secrets,
    tree::{self, Step},
};

/// The shortest token that nobody warns of, in characters.
const SHORT_TOKEN: usize = 16;

/// What an entry of `allowed_hosts` is.
const HOST: &str = "the name of one host such as bell.example.com, without scheme and port";

/// What an entry of `allowed_origins` is.
const ORIGIN: &str = "one origin such as https://bell.example.com, without a path";

impl Parts<'_> {
    pub(super) fn serve(&mut self, table: ServeTable) -> ServeOptions {
        let mut tokens = BTreeMap::new();
        for (name, token) in table.tokens {
            let path = ["serve", "tokens", &name].map(|key| Step::Key(key.to_owned()));
            let place = self.place(&path);
            if !secrets::is_reference(&token) {
                self.secrets.note_clear(&place);
            }
            match self.secrets.resolve(&token, &place) {
                Ok(token) if token.trim().is_empty() => {
                    let message = "this token is empty; it is left out";
                    self.findings.push(Finding::problem(place, tree::shown(&path), message));
                }
                Ok(token) => {
                    if token.chars().count() < SHORT_TOKEN {
                        let message = format!(
                            "this token is short, expected {SHORT_TOKEN} characters or more"
                        );
                        let finding = Finding::warning(place, tree::shown(&path), message);
                        let hint = "make one with `openssl rand -hex 32`";
                        self.findings.push(finding.with_hint(hint));
                    }
                    tokens.insert(name, token);
                }
                Err(why) => {
                    let mut finding = Finding::unresolved(place, tree::shown(&path), &why);
                    finding.message.push_str("; this token is left out");
                    self.findings.push(finding);
                }
            }
        }
        let listen = table.listen.map(|listen| listen.0.0);
        if listen.is_some_and(|address| !address.ip().is_loopback()) && tokens.is_empty() {
            let message =
                "others can reach this address, so the daemon does not start without a token";
            let path = ["serve", "listen"].map(|key| Step::Key(key.to_owned()));
            let finding = Finding::problem(self.place(&path), "serve.listen", message);
            self.findings.push(finding.with_hint("add a token under `[serve.tokens]`"));
        }
        ServeOptions {
            listen,
            tokens,
            allowed_hosts: self.kept("allowed_hosts", table.allowed_hosts, is_host, HOST),
            allowed_origins: self.kept("allowed_origins", table.allowed_origins, is_origin, ORIGIN),
            anonymous_loopback: table.anonymous_loopback,
            attach_files: table.attach_files,
        }
    }

    /// The entries of a list that can be met at all; the others are told and left out.
    fn kept(
        &mut self,
        key: &str,
        entries: Vec<String>,
        is_right: fn(&str) -> bool,
        expected: &str,
    ) -> Vec<String> {
        let (right, wrong): (Vec<_>, Vec<_>) =
            entries.into_iter().enumerate().partition(|(_, entry)| is_right(entry));
        for (index, _) in wrong {
            let path =
                [Step::Key("serve".to_owned()), Step::Key(key.to_owned()), Step::Index(index)];
            let message = format!("expected {expected}; this one is left out");
            self.findings.push(Finding::problem(self.place(&path), tree::shown(&path), message));
        }
        right.into_iter().map(|(_, entry)| entry).collect()
    }
}

fn is_host(entry: &str) -> bool {
    !entry.contains('*') && Host::parse(entry).is_ok()
}

/// Whether a browser could send `entry` as its origin (RFC 6454, section 6.2); some end theirs with a slash here.
fn is_origin(entry: &str) -> bool {
    let entry = entry.trim_end_matches('/');
    // Schemes that browsers' own pages have, such as `chrome-extension:`, have no origin by that document.
    Url::parse(entry).is_ok_and(|url| match url.scheme() {
        "http" | "https" => !entry.contains('*') && url.origin().ascii_serialization() == entry,
        _ => url.has_host(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_request_can_name_is_a_host_or_an_origin() {
        for host in ["desk.example", "Desk.Example", "192.0.2.1", "[::1]", "box"] {
            assert!(is_host(host), "{host}");
        }
        for host in ["", "*", "*.example", "http://x", "x:80", "a b"] {
            assert!(!is_host(host), "{host}");
        }
        for origin in
            ["https://desk.example", "http://desk.example:8080/", "chrome-extension://abc"]
        {
            assert!(is_origin(origin), "{origin}");
        }
        for origin in ["", "*", "null", "desk.example", "https://*.example", "https://a.example/b"]
        {
            assert!(!is_origin(origin), "{origin}");
        }
    }
}
