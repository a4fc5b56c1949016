//! The variables of mcp-push and Qinglong, so that what works there works here without a configuration.
//!
//! They stand in the environment or in a `config.sh` of `export KEY=VALUE` lines, which is read and never run. A variable
//! goes before the file, and the words `false` and `0` are false, which they are not in mcp-push.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use deskbell_channels::{
    Manner, kinds,
    variables::{Set, Variables, Wrong},
};
use deskbell_core::ChannelName;

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
    /// Where each channel is written.
    pub places: BTreeMap<ChannelName, Place>,
    /// The variables that are set, with their values.
    pub values: BTreeMap<String, String>,
    /// Titles that are never pushed.
    pub skip_titles: Vec<String>,
    /// What is to be said about it.
    pub findings: Vec<Finding>,
}

/// The variable with titles that are never pushed, one on each line.
const SKIP_TITLES: &str = "SKIP_PUSH_TITLE";

/// Every variable that is looked at; lines of `config.sh` with other names are passed over.
fn known() -> impl Iterator<Item = &'static str> {
    let of_channels =
        described().flat_map(|(_, variables)| variables.needs.iter().chain(variables.takes));
    of_channels.copied().chain([SKIP_TITLES])
}

/// The kinds that variables can describe.
fn described() -> impl Iterator<Item = (&'static str, Variables)> {
    kinds().iter().filter_map(|kind| Some((kind.about.name, kind.variables?)))
}

/// The channels and titles that `variables` and the text of a `config.sh` describe.
pub fn import(variables: &BTreeMap<String, String>, config_sh: Option<(&Path, &str)>) -> Imported {
    let variables = Written::of(variables, config_sh);
    let set = variables.set();
    let mut imported = Imported { values: variables.values(), ..Imported::default() };
    for (kind, described) in described() {
        let Some((first, rest)) = described.needs.split_first() else {
            continue;
        };
        let Some(place) = variables.place(first).filter(|_| set.has(first)) else {
            continue;
        };
        let options = match rest.iter().find(|needed| !set.has(needed)) {
            Some(missing) => {
                Err(Wrong { variable: missing, reason: "it is not set, and the channel needs it" })
            }
            None => (described.read)(&set),
        };
        match (options, described.name.parse::<ChannelName>()) {
            (Ok(options), Ok(name)) => {
                let options = ChannelOptions {
                    quiet: None,
                    stand_in: None,
                    kind: kind.to_owned(),
                    options,
                    per_minute: None,
                    manner: Manner::default(),
                };
                imported.places.insert(name.clone(), place);
                imported.channels.insert(name, options);
            }
            (Err(Wrong { variable, reason }), _) => {
                let key = format!("channels.{}", described.name);
                let finding = Finding::problem(place, key, format!("{variable}: {reason}"));
                imported.findings.push(finding);
            }
            (Ok(_), Err(_)) => {}
        }
    }
    for (name, place) in &variables.open {
        let message = format!("{name}: the quotation mark before its value is never closed");
        imported.findings.push(Finding::problem(place.clone(), "", message));
    }
    let titles = set.get(SKIP_TITLES).unwrap_or_default();
    let titles = titles.lines().map(str::trim).filter(|title| !title.is_empty());
    imported.skip_titles.extend(titles.map(str::to_owned));
    imported
}

/// The known variables, and where each is written.
struct Written<'a> {
    found: BTreeMap<&'static str, (&'a str, Place)>,
    /// Those whose value begins with a quotation mark that nothing closes.
    open: Vec<(&'static str, Place)>,
}

impl<'a> Written<'a> {
    fn of(variables: &'a BTreeMap<String, String>, config_sh: Option<(&Path, &'a str)>) -> Self {
        let (mut found, mut open) = (BTreeMap::new(), Vec::new());
        if let Some((path, script)) = config_sh {
            let source = Arc::new(Source::File(path.to_owned()));
            let mut rest = script;
            let mut number = 1;
            while !rest.is_empty() {
                let place = Place { source: Arc::clone(&source), position: Some((number, 1)) };
                let length = match exported(rest) {
                    Some(Exported { name, value: Some(value), length }) => {
                        found.insert(name, (value, place));
                        length
                    }
                    Some(Exported { name, value: None, length }) => {
                        open.push((name, place));
                        length
                    }
                    None => line_of(rest).len(),
                };
                let (read, next) = rest.split_at_checked(length).unwrap_or((rest, ""));
                number += read.matches('\n').count();
                rest = next;
            }
        }
        for name in known() {
            if let Some(value) = variables.get(name).filter(|value| !value.is_empty()) {
                let place = Place::of(Source::Variable(name.to_owned()));
                found.insert(name, (value.as_str(), place));
            }
        }
        Self { found, open }
    }

    fn set(&self) -> Set<'a> {
        self.found.iter().map(|(name, (value, _))| (*name, *value)).collect()
    }

    fn values(&self) -> BTreeMap<String, String> {
        self.found
            .iter()
            .map(|(name, (value, _))| ((*name).to_owned(), value.trim().to_owned()))
            .collect()
    }

    fn place(&self, name: &str) -> Option<Place> {
        self.found.get(name).map(|(_, place)| place.clone())
    }
}

/// What a line exports.
struct Exported<'a> {
    /// The variable.
    name: &'static str,
    /// Its value, unless a quotation mark before it is never closed.
    value: Option<&'a str>,
    /// How far it reaches: a text between quotation marks may go over several lines.
    length: usize,
}

/// The first line of `script`, with its end.
fn line_of(script: &str) -> &str {
    script.split_inclusive('\n').next().unwrap_or_default()
}

/// The known variable that the first line of `script` exports. Quotes go; nothing is expanded.
fn exported(script: &str) -> Option<Exported<'_>> {
    let line = line_of(script);
    let assignment = line.trim().strip_prefix("export")?;
    let (name, value) = assignment.strip_prefix([' ', '\t'])?.split_once('=')?;
    let name = known().find(|known| *known == name.trim())?;
    let value = value.trim();
    let Some(quote) = value.chars().next().filter(|first| matches!(first, '"' | '\'')) else {
        let plain = value.split_once(" #").map_or(value, |(value, _)| value.trim_end());
        return Some(Exported { name, value: Some(plain), length: line.len() });
    };
    let (before, quoted) = script.split_once(quote)?;
    // What has another assignment in it was not meant to go on that far.
    let closed = quoted.split_once(quote).filter(|(value, _)| !value.contains("\nexport "));
    let Some((value, _)) = closed else {
        return Some(Exported { name, value: None, length: line.len() });
    };
    let closed = before.len() + value.len() + 2 * quote.len_utf8();
    let after = script.get(closed..).map_or(0, |rest| line_of(rest).len());
    Some(Exported { name, value: Some(value), length: closed + after })
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
        let expected: toml::Table = toml::from_str(options).unwrap();
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
            "topic = 'a'\nserver = 'https://n.example'\npriority = 3",
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
            &[
                ("WEBHOOK_URL", "https://h.example/x"),
                ("WEBHOOK_METHOD", "post"),
                ("WEBHOOK_BODY", "text: $title $content"),
                ("WEBHOOK_HEADERS", "A: 1\nB: x:y"),
            ],
            "webhook",
            "webhook_template",
            "url = 'https://h.example/x'\nmethod = 'POST'\nbody = 'text: $title $content'
            headers = { A = '1', B = 'x:y' }",
        );
    }

    #[test]
    fn chinese_push_services_are_read_as_qinglong_reads_them_row_111() {
        let bark = "key = 'k1'\nserver = 'https://bark.example'\ngroup = 'ci'\narchive = true";
        check(
            &[
                ("BARK_PUSH", "https://bark.example/k1/"),
                ("BARK_GROUP", "ci"),
                ("BARK_ARCHIVE", "1"),
            ],
            "bark",
            "bark",
            bark,
        );
        check(&[("BARK_PUSH", "k1")], "bark", "bark", "key = 'k1'");
        check(&[("FSKEY", "k")], "feishu", "feishu_bot", "key = 'k'");
        check(
            &[("FSKEY", "https://open.larksuite.com/open-apis/bot/v2/hook/k"), ("FSSECRET", "s")],
            "feishu",
            "feishu_bot",
            "key = 'k'\nserver = 'https://open.larksuite.com'\nsecret = 's'",
        );
        check(
            &[("QYWX_KEY", "k"), ("QYWX_ORIGIN", "https://proxy.example")],
            "wecom_bot",
            "wecom_bot",
            "key = 'k'\nserver = 'https://proxy.example'",
        );
        check(
            &[
                ("PUSH_PLUS_TOKEN", "t"),
                ("PUSH_PLUS_USER", "builds"),
                ("PUSH_PLUS_TEMPLATE", "html"),
            ],
            "pushplus",
            "pushplus",
            "token = 't'\ntopic = 'builds'",
        );
        check(&[("PUSH_KEY", "SCT1")], "serverchan", "serverchan", "key = 'SCT1'");
        for server in ["https://deer.example", "https://deer.example/message/push"] {
            check(
                &[("DEER_KEY", "a,b"), ("DEER_URL", server)],
                "pushdeer",
                "pushdeer",
                "key = ['a', 'b']\nserver = 'https://deer.example'",
            );
        }
        check(
            &[
                ("WXPUSHER_APP_TOKEN", "AT_1"),
                ("WXPUSHER_UIDS", "UID_a; UID_b"),
                ("WXPUSHER_TOPIC_IDS", "7;"),
            ],
            "wxpusher",
            "wxpusher",
            "token = 'AT_1'\nusers = ['UID_a', 'UID_b']\ntopics = [7]",
        );
    }

    #[test]
    fn chinese_chats_are_read_as_qinglong_reads_them_row_111() {
        check(
            &[("QYWX_AM", "corp,secret,ada|grace,1000002,0")],
            "wecom_app",
            "wecom_app",
            "corp_id = 'corp'\nsecret = 'secret'\nusers = ['ada', 'grace']\nagent = 1000002",
        );
        check(
            &[("QYWX_AM", "corp,secret,,7,m3d1a"), ("QYWX_ORIGIN", "https://proxy.example")],
            "wecom_app",
            "wecom_app",
            "corp_id = 'corp'\nsecret = 'secret'\nusers = ['@all']\nagent = 7\nthumb_media_id = 'm3d1a'\nserver = 'https://proxy.example'",
        );
        check(&[("IGOT_PUSH_KEY", "k")], "igot", "igot", "key = 'k'");
        check(&[("PUSHME_KEY", "k")], "pushme", "pushme", "key = 'k'");
        check(
            &[("AIBOTK_KEY", "k"), ("AIBOTK_TYPE", "room"), ("AIBOTK_NAME", "builds")],
            "aibotk",
            "aibotk",
            "key = 'k'\nroom = 'builds'",
        );
        check(
            &[("WE_PLUS_BOT_TOKEN", "t"), ("WE_PLUS_BOT_VERSION", "personal")],
            "weplusbot",
            "weplusbot",
            "token = 't'\nversion = 'personal'",
        );
        check(
            &[("WXPUSHER_SPT_LIST", "SPT_a, SPT_b")],
            "wxpusher_spt",
            "wxpusher_spt",
            "token = ['SPT_a', 'SPT_b']",
        );
        check(
            &[("OPENILINK_APP_TOKEN", "t"), ("OPENILINK_CONTEXT_TOKEN", "c")],
            "openilink",
            "openilink",
            "token = 't'\ncontext_token = 'c'",
        );
        check(
            &[
                (
                    "CHAT_URL",
                    "https://nas.example/webapi/entry.cgi?api=SYNO.Chat.External&method=incoming&version=2&token=",
                ),
                ("CHAT_TOKEN", "%22t%22"),
            ],
            "synology_chat",
            "synology_chat",
            "server = 'https://nas.example'\ntoken = '%22t%22'",
        );
    }

    #[test]
    fn qq_bots_are_read_as_qinglong_reads_them_row_111() {
        check(
            &[("QMSG_KEY", "k"), ("QMSG_TYPE", "group")],
            "qmsg",
            "qmsg",
            "key = 'k'\nto = 'group'",
        );
        check(
            &[
                ("GOBOT_URL", "http://127.0.0.1:5700/send_group_msg"),
                ("GOBOT_QQ", "group_id=7"),
                ("GOBOT_TOKEN", "t"),
            ],
            "gobot",
            "onebot",
            "server = 'http://127.0.0.1:5700'\nusers = []\ngroups = [7]\ntoken = 't'",
        );
        check(
            &[
                ("CHRONOCAT_URL", "http://127.0.0.1:16530"),
                ("CHRONOCAT_QQ", "user_id=1;group_id=2;user_id=3"),
                ("CHRONOCAT_TOKEN", "t"),
            ],
            "chronocat",
            "chronocat",
            "server = 'http://127.0.0.1:16530'\ntoken = 't'\nusers = [1, 3]\ngroups = [2]",
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
            assert_eq!(exported(line).and_then(|exported| exported.value), value, "{line}");
        }
        check("export NTFY_TOPIC=a", Some("a"));
        check("export NTFY_TOPIC=\"a b\"  # why", Some("a b"));
        check("  export\tNTFY_TOPIC='$HOME'\r", Some("$HOME"));
        check("export NTFY_TOPIC=`id`$(id)", Some("`id`$(id)"));
        check("export NTFY_TOPIC=a#b # c", Some("a#b"));
        check("export NTFY_TOPIC=\"open", None);
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
    fn a_webhook_that_would_say_nothing_is_left_out() {
        let set = [("WEBHOOK_URL", "https://h.example"), ("WEBHOOK_METHOD", "POST")];
        let imported = imported(&set, "");
        assert!(imported.channels.is_empty());
        assert_eq!(
            imported.findings[0].to_string(),
            "variable WEBHOOK_URL: `channels.webhook`: WEBHOOK_URL: neither it nor WEBHOOK_BODY has $title or $content"
        );
    }

    #[test]
    fn titles_to_skip_stand_on_lines_row_118() {
        let imported = imported(&[("SKIP_PUSH_TITLE", "one\n two \n\n")], "");
        assert_eq!(imported.skip_titles, ["one", "two"]);
    }

    #[test]
    fn a_quoted_value_may_have_several_lines_and_an_open_quote_is_told() {
        let script = "export SKIP_PUSH_TITLE=\"one\ntwo\" # note\nexport PUSH_KEY='SCT1'\nexport QMSG_KEY=\"open\nexport IGOT_PUSH_KEY=\"k\"\n";
        let imported = imported(&[], script);
        assert_eq!(imported.skip_titles, ["one", "two"]);
        let names: Vec<_> = imported.channels.keys().map(ToString::to_string).collect();
        assert_eq!(names, ["igot", "serverchan"]);
        let said: Vec<_> = imported.findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            ["config.sh:4:1: QMSG_KEY: the quotation mark before its value is never closed"]
        );
    }
}
