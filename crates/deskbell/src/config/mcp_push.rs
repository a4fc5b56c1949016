//! The variables of mcp-push and Qinglong, so that what works there works here without a configuration.
//!
//! They stand in the environment or in a `config.sh` of `export KEY=VALUE` lines, which is read and never run. A variable
//! goes before the file, and the words `false` and `0` are false, which they are not in mcp-push.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use deskbell_core::ChannelName;
use toml::Table;

use super::{
    ChannelOptions,
    finding::Finding,
    tree::{Place, Source},
};

/// What the variables say.
#[derive(Default)]
pub struct Imported {
    /// The channels, by the name of their kind there.
    pub channels: BTreeMap<ChannelName, ChannelOptions>,
    /// Titles that are never pushed.
    pub skip_titles: Vec<String>,
    /// What is to be said about it.
    pub findings: Vec<Finding>,
}

/// A channel that variables can describe: its name here, its kind, the variables that must be set, and the rest.
struct Described {
    name: &'static str,
    kind: &'static str,
    needs: &'static [&'static str],
    options: fn(&Variables<'_>) -> Result<Table, (&'static str, &'static str)>,
}

const CHANNELS: &[Described] = &[
    Described {
        name: "console",
        kind: "console",
        needs: &["CONSOLE"],
        options: |_| Ok(Table::new()),
    },
    Described {
        name: "dingtalk",
        kind: "dingtalk_bot",
        needs: &["DD_BOT_TOKEN"],
        options: |variables| {
            Ok(variables.table(&[("token", "DD_BOT_TOKEN"), ("secret", "DD_BOT_SECRET")]))
        },
    },
    Described { name: "ntfy", kind: "ntfy", needs: &["NTFY_TOPIC"], options: ntfy },
    Described {
        name: "smtp",
        kind: "smtp",
        needs: &["SMTP_SERVER", "SMTP_EMAIL", "SMTP_PASSWORD"],
        options: smtp,
    },
    Described {
        name: "telegram",
        kind: "telegram",
        needs: &["TG_BOT_TOKEN", "TG_USER_ID"],
        options: telegram,
    },
    Described { name: "webhook", kind: "webhook_json", needs: &["WEBHOOK_URL"], options: webhook },
];

/// Every variable that is looked at; lines of `config.sh` with other names are passed over.
const KNOWN: &[&str] = &[
    "CONSOLE",
    "DD_BOT_TOKEN",
    "DD_BOT_SECRET",
    "NTFY_TOPIC",
    "NTFY_URL",
    "NTFY_TOKEN",
    "NTFY_USERNAME",
    "NTFY_PASSWORD",
    "SMTP_SERVER",
    "SMTP_SSL",
    "SMTP_EMAIL",
    "SMTP_PASSWORD",
    "SMTP_NAME",
    "SMTP_EMAIL_TO",
    "SMTP_TO",
    "TG_BOT_TOKEN",
    "TG_USER_ID",
    "TG_API_HOST",
    "TG_PROXY_HOST",
    "TG_PROXY_PORT",
    "TG_PROXY_AUTH",
    "WEBHOOK_URL",
    "WEBHOOK_METHOD",
    "WEBHOOK_BODY",
    "WEBHOOK_HEADERS",
    "SKIP_PUSH_TITLE",
];

/// The channels and titles that `variables` and the text of a `config.sh` describe.
pub fn import(variables: &BTreeMap<String, String>, config_sh: Option<(&Path, &str)>) -> Imported {
    let variables = Variables::of(variables, config_sh);
    let mut imported = Imported::default();
    for described in CHANNELS {
        let Some((first, rest)) = described.needs.split_first() else {
            continue;
        };
        let Some(place) = variables.place(first) else {
            continue;
        };
        let options = match rest.iter().find(|needed| variables.get(needed).is_none()) {
            Some(missing) => Err((*missing, "it is not set, and the channel needs it")),
            None => (described.options)(&variables),
        };
        match (options, described.name.parse()) {
            (Ok(options), Ok(name)) => {
                let kind = described.kind.to_owned();
                let options = ChannelOptions { kind, options, per_minute: None };
                imported.channels.insert(name, options);
            }
            (Err((variable, message)), _) => {
                let key = format!("channels.{}", described.name);
                let finding = Finding::problem(place, key, format!("{variable}: {message}"));
                imported.findings.push(finding);
            }
            (Ok(_), Err(_)) => {}
        }
    }
    let titles = variables.get("SKIP_PUSH_TITLE").unwrap_or_default();
    let titles = titles.lines().map(str::trim).filter(|title| !title.is_empty());
    imported.skip_titles.extend(titles.map(str::to_owned));
    imported
}

fn ntfy(variables: &Variables<'_>) -> Result<Table, (&'static str, &'static str)> {
    Ok(variables.table(&[
        ("topic", "NTFY_TOPIC"),
        ("server", "NTFY_URL"),
        ("token", "NTFY_TOKEN"),
        ("user", "NTFY_USERNAME"),
        ("password", "NTFY_PASSWORD"),
    ]))
}

fn telegram(variables: &Variables<'_>) -> Result<Table, (&'static str, &'static str)> {
    let mut table = variables.table(&[
        ("token", "TG_BOT_TOKEN"),
        ("chat_id", "TG_USER_ID"),
        ("api", "TG_API_HOST"),
    ]);
    if let Some(host) = variables.get("TG_PROXY_HOST") {
        let Some(port) = variables.get("TG_PROXY_PORT") else {
            return Err(("TG_PROXY_PORT", "it is not set, and TG_PROXY_HOST needs it"));
        };
        // Its login may stand in the host already.
        let login = variables.get("TG_PROXY_AUTH").filter(|_| !host.contains('@'));
        let login = login.map(|login| format!("{login}@")).unwrap_or_default();
        table.insert("proxy".to_owned(), format!("http://{login}{host}:{port}").into());
    }
    Ok(table)
}

/// Mail to oneself unless it says to whom. Without SSL from the first byte the connection is upgraded, where mcp-push
/// would send the password for everybody to read.
fn smtp(variables: &Variables<'_>) -> Result<Table, (&'static str, &'static str)> {
    let mut table = variables.table(&[("user", "SMTP_EMAIL"), ("password", "SMTP_PASSWORD")]);
    let server = variables.get("SMTP_SERVER").unwrap_or_default();
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port)) => {
            let Ok(port) = port.parse::<u16>() else {
                return Err(("SMTP_SERVER", "expected a host, or a host and a port"));
            };
            (host, Some(port))
        }
        None => (server, None),
    };
    table.insert("host".to_owned(), host.into());
    if let Some(port) = port {
        table.insert("port".to_owned(), i64::from(port).into());
    }
    let security = if variables.is_set("SMTP_SSL") { "tls" } else { "starttls" };
    table.insert("security".to_owned(), security.into());
    let address = variables.get("SMTP_EMAIL").unwrap_or_default();
    let from = match variables.get("SMTP_NAME") {
        Some(name) => format!("\"{}\" <{address}>", name.replace(['"', '\\'], "")),
        None => address.to_owned(),
    };
    table.insert("from".to_owned(), from.into());
    let readers = variables.get("SMTP_EMAIL_TO").or_else(|| variables.get("SMTP_TO"));
    let readers: Vec<_> = readers
        .unwrap_or(address)
        .split([';', '；'])
        .map(str::trim)
        .filter(|reader| !reader.is_empty())
        .map(toml::Value::from)
        .collect();
    table.insert("to".to_owned(), readers.into());
    Ok(table)
}

/// The address and headers of a custom webhook. One with a text of its own would get ours instead, which nothing there
/// expects, so it is left out.
fn webhook(variables: &Variables<'_>) -> Result<Table, (&'static str, &'static str)> {
    if variables.get("WEBHOOK_BODY").is_some() {
        return Err(("WEBHOOK_BODY", "templates are not supported"));
    }
    if variables.get("WEBHOOK_METHOD").is_some_and(|method| !method.eq_ignore_ascii_case("post")) {
        return Err(("WEBHOOK_METHOD", "expected POST"));
    }
    let address = variables.get("WEBHOOK_URL").unwrap_or_default();
    if address.contains("$title") || address.contains("$content") {
        return Err(("WEBHOOK_URL", "templates are not supported"));
    }
    let mut table = variables.table(&[("url", "WEBHOOK_URL")]);
    let headers = variables.get("WEBHOOK_HEADERS").unwrap_or_default();
    let headers: Table = headers
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().into()))
        .collect();
    if !headers.is_empty() {
        table.insert("headers".to_owned(), headers.into());
    }
    Ok(table)
}

/// The known variables that are set, and where.
struct Variables<'a>(BTreeMap<&'static str, (&'a str, Place)>);

impl<'a> Variables<'a> {
    fn of(variables: &'a BTreeMap<String, String>, config_sh: Option<(&Path, &'a str)>) -> Self {
        let mut found = BTreeMap::new();
        if let Some((path, script)) = config_sh {
            let source = Arc::new(Source::File(path.to_owned()));
            for (index, line) in script.lines().enumerate() {
                if let Some((name, value)) = exported(line) {
                    let position = Some((index + 1, 1));
                    let place = Place { source: Arc::clone(&source), position };
                    found.insert(name, (value, place));
                }
            }
        }
        for name in KNOWN {
            if let Some(value) = variables.get(*name).filter(|value| !value.is_empty()) {
                let place = Place::of(Source::Variable((*name).to_owned()));
                found.insert(name, (value.as_str(), place));
            }
        }
        found.retain(|_, (value, _)| !value.trim().is_empty() && !is_false(value));
        Self(found)
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).map(|(value, _)| value.trim())
    }

    fn place(&self, name: &str) -> Option<Place> {
        self.0.get(name).map(|(_, place)| place.clone())
    }

    fn is_set(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A table of options, each from a variable, as far as they are set.
    fn table(&self, options: &[(&str, &str)]) -> Table {
        let set = options.iter().filter_map(|(option, name)| Some((*option, self.get(name)?)));
        set.map(|(option, value)| (option.to_owned(), value.into())).collect()
    }
}

fn is_false(value: &str) -> bool {
    matches!(value.trim().to_ascii_lowercase().as_str(), "false" | "0")
}

/// The known variable that a line exports, with its value. Quotes go; nothing is expanded.
fn exported(line: &str) -> Option<(&'static str, &str)> {
    let assignment = line.trim().strip_prefix("export")?;
    let (name, value) = assignment.strip_prefix([' ', '\t'])?.split_once('=')?;
    let name = KNOWN.iter().find(|known| **known == name.trim())?;
    let value = value.trim();
    let quoted = ['"', '\''].into_iter().find_map(|quote| {
        let inside = value.strip_prefix(quote)?;
        inside.split_once(quote).map(|(inside, _)| inside)
    });
    let plain = || value.split_once(" #").map_or(value, |(value, _)| value.trim_end());
    Some((name, quoted.unwrap_or_else(plain)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imported(variables: &[(&str, &str)], script: &str) -> Imported {
        let variables = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        import(&variables, Some((Path::new("config.sh"), script)))
    }

    #[track_caller]
    fn check(variables: &[(&str, &str)], name: &str, kind: &str, options: &str) {
        let imported = imported(variables, "");
        let expected: Table = toml::from_str(options).unwrap();
        let channel = &imported.channels[&name.parse().unwrap()];
        assert_eq!((channel.kind.as_str(), &channel.options), (kind, &expected));
        let kind = deskbell_channels::kind(kind);
        if let Some(Err(error)) = kind.map(|kind| kind.build(channel.options.clone())) {
            panic!("the channel does not build: {error}");
        }
    }

    #[test]
    fn variables_make_channels_row_111() {
        check(&[("CONSOLE", "true")], "console", "console", "");
        check(
            &[("DD_BOT_TOKEN", "t"), ("DD_BOT_SECRET", "s")],
            "dingtalk",
            "dingtalk_bot",
            "token = 't'\nsecret = 's'",
        );
        check(
            &[("NTFY_TOPIC", "a"), ("NTFY_URL", "https://n.example"), ("NTFY_PRIORITY", "3")],
            "ntfy",
            "ntfy",
            "topic = 'a'\nserver = 'https://n.example'",
        );
        check(
            &[
                ("TG_BOT_TOKEN", "1:a"),
                ("TG_USER_ID", "42"),
                ("TG_API_HOST", "tg.example"),
                ("TG_PROXY_HOST", "p.example"),
                ("TG_PROXY_PORT", "3128"),
                ("TG_PROXY_AUTH", "me:pw"),
            ],
            "telegram",
            "telegram",
            "token = '1:a'\nchat_id = '42'\napi = 'tg.example'\nproxy = 'http://me:pw@p.example:3128'",
        );
        check(
            &[("WEBHOOK_URL", "https://h.example/x"), ("WEBHOOK_HEADERS", "A: 1\nB: x:y")],
            "webhook",
            "webhook_json",
            "url = 'https://h.example/x'\nheaders = { A = '1', B = 'x:y' }",
        );
    }

    #[test]
    fn mail_goes_to_oneself_unless_it_says_to_whom() {
        let login = [("SMTP_EMAIL", "me@a.example"), ("SMTP_PASSWORD", "pw")];
        let with = |more: &[(&'static str, &'static str)]| [&login, more].concat();
        check(
            &with(&[("SMTP_SERVER", "m.example:465"), ("SMTP_SSL", "true"), ("SMTP_NAME", "Bell")]),
            "smtp",
            "smtp",
            "host = 'm.example'\nport = 465\nsecurity = 'tls'\nuser = 'me@a.example'\npassword = 'pw'
            from = '\"Bell\" <me@a.example>'\nto = ['me@a.example']",
        );
        check(
            &with(&[
                ("SMTP_SERVER", "m.example"),
                ("SMTP_SSL", "false"),
                ("SMTP_EMAIL_TO", "a@b.example；c@d.example; "),
            ]),
            "smtp",
            "smtp",
            "host = 'm.example'\nsecurity = 'starttls'\nuser = 'me@a.example'\npassword = 'pw'
            from = 'me@a.example'\nto = ['a@b.example', 'c@d.example']",
        );
    }

    #[test]
    fn the_words_false_and_0_are_false() {
        for value in ["false", "0", "False", ""] {
            assert!(imported(&[("CONSOLE", value)], "").channels.is_empty(), "{value}");
        }
    }

    #[test]
    fn the_environment_goes_before_the_file_row_111() {
        let script = "export NTFY_TOPIC=file\nexport NTFY_TOKEN=kept\n";
        let imported = imported(&[("NTFY_TOPIC", "env"), ("NTFY_TOKEN", "")], script);
        let options = &imported.channels[&"ntfy".parse().unwrap()].options;
        assert_eq!(options["topic"].as_str(), Some("env"));
        assert_eq!(options["token"].as_str(), Some("kept"));
    }

    #[test]
    fn only_exports_of_known_names_are_read_and_nothing_is_expanded_row_111() {
        #[track_caller]
        fn check(line: &str, value: Option<&str>) {
            assert_eq!(exported(line).map(|(_, value)| value), value, "{line}");
        }
        check("export NTFY_TOPIC=a", Some("a"));
        check("export NTFY_TOPIC=\"a b\"  # why", Some("a b"));
        check("  export\tNTFY_TOPIC='$HOME'\r", Some("$HOME"));
        check("export NTFY_TOPIC=`id`$(id)", Some("`id`$(id)"));
        check("export NTFY_TOPIC=a#b # c", Some("a#b"));
        check("export NTFY_TOPIC=\"open", Some("\"open"));
        check("export NTFY_TOPIC=", Some(""));
        check("NTFY_TOPIC=a", None);
        check("# export NTFY_TOPIC=a", None);
        check("exportNTFY_TOPIC=a", None);
        check("export PATH=/evil", None);
    }

    #[test]
    fn what_is_missing_is_named_and_no_value_is_row_116() {
        let imported = imported(&[("TG_BOT_TOKEN", "hunter2")], "");
        let [finding] = &imported.findings[..] else { panic!("{:?}", imported.findings) };
        assert_eq!(
            finding.to_string(),
            "variable TG_BOT_TOKEN: `channels.telegram`: TG_USER_ID: it is not set, and the channel needs it"
        );
        assert!(imported.channels.is_empty());
    }

    #[test]
    fn webhooks_with_templates_are_left_out() {
        for (name, value) in [
            ("WEBHOOK_BODY", "text: $title"),
            ("WEBHOOK_METHOD", "GET"),
            ("WEBHOOK_URL", "https://h.example/$title"),
        ] {
            let imported = imported(&[("WEBHOOK_URL", "https://h.example"), (name, value)], "");
            assert!(imported.channels.is_empty() && imported.findings.len() == 1, "{name}");
        }
    }

    #[test]
    fn titles_to_skip_stand_on_lines_row_118() {
        let imported = imported(&[("SKIP_PUSH_TITLE", "one\n two \n\n")], "");
        assert_eq!(imported.skip_titles, ["one", "two"]);
    }
}
