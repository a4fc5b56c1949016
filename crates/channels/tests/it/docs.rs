//! `docs/channels.md` is what the kinds say of themselves.

use std::{fmt::Write as _, fs, path::PathBuf};

use deskbell_channels::{
    ChannelKind, Limits, Transport,
    files::{Files, in_words},
    kinds,
};
use deskbell_core::{attachment::FILE_LIMIT, text::Unit};

const PREAMBLE: &str = "\
# Channels

A channel is a configured way to reach people: a table `[channels.NAME]` in the configuration with a `kind` and the options of that kind.
The name is yours to choose; routes and `--to` use it.
A secret is written as `env:NAME`, `file:PATH`, `keyring:NAME` or in the clear, and is never printed.

```toml
[channels.phone]
kind  = \"ntfy\"
topic = \"env:NTFY_TOPIC\"
```

Wherever a channel is set up, an address as [Apprise](https://github.com/caronc/apprise) writes it does as well: `url = \"ntfy://builds\"` instead of `kind` and options.

`deskbell channel preview NAME` shows the requests that a channel would send, with secrets masked; `deskbell channel test NAME` sends one for real.

A channel tries once and says whether a failure may pass.
Temporary failures (no connection, no answer in time, status 408, 425, 429 and 5xx) are tried again, not before the far end asks for it; everything else is given up at once.
Files that go out with a message are sent as each kind says below, up to 21.0 MB each and 26.2 MB together; what a far end does not take is named in the text, and the delivery says why.
Texts that are longer than a far end takes are split into at most ten messages, counted as the far end counts, after escaping.

This page is generated from the channels' own files.
`UPDATE_DOCS=1 cargo test --workspace --test it docs::` writes it anew.
";

#[test]
fn the_page_is_what_the_kinds_say() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/channels.md");
    let expected = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let page = fs::read_to_string(&path).unwrap_or_default();
    let differing =
        expected.lines().zip(page.lines().chain(std::iter::repeat(""))).find(|(a, b)| a != b);
    assert!(
        page == expected,
        "docs/channels.md is stale, first at: {differing:?}\n\
         regenerate it: UPDATE_DOCS=1 cargo test --workspace --test it docs::"
    );
}

fn page() -> String {
    let mut page = PREAMBLE.to_owned();
    page.push_str("\n| kind | told as | runs |\n|---|---|---|\n");
    for kind in kinds() {
        let name = kind.about.name;
        let runs =
            if kind.about.edits { "one message, edited in place" } else { "a message a step" };
        writeln!(page, "| [`{name}`](#{name}) | {} | {runs} |", transport(kind)).unwrap();
    }
    kinds().iter().for_each(|kind| section(&mut page, kind));
    page
}

fn section(page: &mut String, kind: &ChannelKind) {
    let about = &kind.about;
    write!(page, "\n## {}\n\n{}\n\n", about.name, kind.guide().trim()).unwrap();
    let options = kind.options();
    if !options.is_empty() {
        page.push_str("| option | default | meaning |\n|---|---|---|\n");
    }
    for option in options {
        let default = match (&option.default, option.required) {
            (_, true) => "required".to_owned(),
            (Some(default), false) => format!("`{default}`"),
            (None, false) => String::new(),
        };
        let secret = if option.secret { " Secret." } else { "" };
        let doc = option.doc.replace('\n', " ").replace('|', "\\|");
        writeln!(page, "| `{}` | {default} | {doc}{secret} |", option.name).unwrap();
    }
    writeln!(page, "\n```toml\n[channels.my-{}]", about.name.replace('_', "-")).unwrap();
    writeln!(page, "kind = \"{}\"", about.name).unwrap();
    for line in about.example.lines().map(str::trim).filter(|line| !line.is_empty()) {
        writeln!(page, "{line}").unwrap();
    }
    page.push_str("```\n");
    if let Some(urls) = kind.urls {
        let urls: Vec<_> = urls.examples.iter().map(|url| format!("`{url}`")).collect();
        writeln!(page, "\nAs an address: {}", urls.join(", ")).unwrap();
    }
    if let Some(variables) = kind.variables {
        let names: Vec<_> = variables.needs.iter().chain(variables.takes).collect();
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let name = variables.name;
        writeln!(page, "\nAs variables of mcp-push, named `{name}`: {}", names.join(", ")).unwrap();
    }
    writeln!(
        page,
        "\nLimits: {}.\nFiles: {}.\nSuccess: {}.\nThe far end's documentation: <{}>",
        limits(about.limits),
        attached(kind.files),
        success(kind),
        about.docs
    )
    .unwrap();
}

fn transport(kind: &ChannelKind) -> &'static str {
    match kind.about.transport {
        Transport::Http { .. } => "HTTP request",
        Transport::Smtp => "mail",
        Transport::Mqtt => "MQTT message",
        Transport::WebSocket { .. } => "WebSocket frame",
        Transport::Syslog => "record of syslog",
        Transport::Local => "something on this machine",
    }
}

fn limits(limits: Limits) -> String {
    let often = limits.per_minute.map(|often| format!(", {often} messages a minute"));
    if limits.body == usize::MAX {
        return format!("none{}", often.unwrap_or_default());
    }
    let unit = match limits.unit {
        Unit::Bytes => "bytes",
        Unit::Characters => "characters",
        Unit::Utf16 => "UTF-16 units",
    };
    let often = often.unwrap_or_default();
    format!("title {} and text {} {unit}{often}", limits.title, limits.body)
}

fn attached(files: Files) -> String {
    let size = |bytes: u64| in_words(bytes.min(FILE_LIMIT));
    match files {
        Files::Not => "named in the text".to_owned(),
        Files::Within(bytes) => format!("in the message, {} together", size(bytes)),
        Files::After(bytes) => format!("after the text, {} each", size(bytes)),
        Files::Pictures { most: 1, bytes } => format!("the first picture, {}", size(bytes)),
        Files::Pictures { most, bytes } => {
            format!("the first {most} pictures, {} each", size(bytes))
        }
    }
}

fn success(kind: &ChannelKind) -> String {
    match kind.about.transport {
        Transport::Http { verdict, .. } => verdict.described(),
        Transport::Smtp => "the server took the mail".to_owned(),
        Transport::Mqtt => "the broker acknowledged the message".to_owned(),
        Transport::WebSocket { .. } => "the far end acknowledged the message".to_owned(),
        Transport::Syslog => "it was handed over; syslog does not acknowledge".to_owned(),
        Transport::Local => "it was done".to_owned(),
    }
}
