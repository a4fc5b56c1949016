//! What a configuration comes to, and what may be in one, for `deskbell config show` and `schema`.

use std::fmt::Write as _;

use deskbell_core::{Context, text};
use schemars::schema_for;
use serde_json::{Value as Json, json};
use url::Url;

use super::{
    Config, ConfigErrors,
    file::{File, History, Parsed, Period},
    load::{Loaded, Sources, load},
    resolve::COMMON,
    secrets,
    tree::{Node, Place, Source, Step},
};

/// What stands where a secret was.
const MASK: &str = "***";

/// The configuration as TOML, each option with the place it comes from. Secrets are masked; references are not.
///
/// # Errors
/// Names everything that is wrong with a configuration that cannot be used.
pub fn show(sources: &Sources) -> Result<String, ConfigErrors> {
    let loaded = load(sources)?;
    let mut page = Page { loaded: &loaded, text: String::new() };
    page.options();
    page.channels();
    Ok(page.text)
}

struct Page<'a> {
    loaded: &'a Loaded,
    text: String,
}

impl<'a> Page<'a> {
    fn options(&mut self) {
        let Config { tracing, delivery, mcp, serve, keep_history, skip_titles, routes, .. } =
            &self.loaded.config;
        let names = |contexts: &[Context]| list(contexts.iter().map(Context::as_str));
        self.line(&[], "keep_history", Parsed(History(*keep_history)).0.to_string());
        self.line(&[], "skip_titles", list(skip_titles.iter().map(String::as_str)));
        self.head("[delivery]");
        self.line(&["delivery"], "attempts", i64::from(delivery.attempts));
        self.line(&["delivery"], "timeout", Period(delivery.timeout).to_string());
        self.line(&["delivery"], "update_interval", Period(delivery.update_interval).to_string());
        let quiet = self.node(&["quiet"]).and_then(Node::as_table);
        if let Some(quiet) = quiet.filter(|_| self.loaded.config.quiet.is_some()) {
            self.head("[quiet]");
            for (key, option) in quiet {
                self.put(key, &option.clone().plain(true), &option.place);
            }
        }
        self.head("[mcp]");
        self.line(&["mcp"], "profile", mcp.profile.as_deref().unwrap_or("unified"));
        if let Some(names) = &mcp.tool_names {
            self.line(&["mcp"], "tool_names", names.as_str());
        }
        if let Some(per_minute) = mcp.notifications_per_minute {
            self.line(&["mcp"], "notifications_per_minute", i64::from(per_minute));
        }
        self.head("[serve]");
        if let Some(listen) = serve.listen {
            self.line(&["serve"], "listen", listen.to_string());
        }
        self.line(
            &["serve"],
            "allowed_hosts",
            list(serve.allowed_hosts.iter().map(String::as_str)),
        );
        let origins = list(serve.allowed_origins.iter().map(String::as_str));
        self.line(&["serve"], "allowed_origins", origins);
        self.line(&["serve"], "anonymous_loopback", serve.anonymous_loopback);
        self.line(&["serve"], "attach_files", serve.attach_files);
        if !serve.tokens.is_empty() {
            self.head("[serve.tokens]");
            for name in serve.tokens.keys() {
                let written =
                    self.node(&["serve", "tokens", name]).map(|node| node.clone().plain(true));
                let shown = written.map_or_else(|| MASK.into(), |token| masked(token, true));
                self.line(&["serve", "tokens"], name, shown);
            }
        }
        self.head("[tracing]");
        let targets = tracing.targets.iter().map(|rule| {
            let level = rule.level.map_or("off", deskbell_core::Level::as_str);
            toml::Value::from(toml::Table::from_iter([
                ("name".to_owned(), rule.name.as_str().into()),
                ("level".to_owned(), level.into()),
            ]))
        });
        self.line(&["tracing"], "targets", targets.collect::<Vec<_>>());
        self.line(&["tracing"], "contexts", names(&tracing.contexts));
        self.line(&["tracing"], "hide_contexts", names(&tracing.hidden_contexts));
        if let Some(file) = &tracing.file {
            self.head("[tracing.file]");
            self.line(&["tracing", "file"], "path", file.path.display().to_string());
            let max_bytes = i64::try_from(file.max_bytes).unwrap_or(i64::MAX);
            self.line(&["tracing", "file"], "max_bytes", max_bytes);
            let keep = i64::try_from(file.keep).unwrap_or(i64::MAX);
            self.line(&["tracing", "file"], "keep", keep);
        }
        for (index, _) in routes.iter().enumerate() {
            let path = [Step::Key("routes".to_owned()), Step::Index(index)];
            self.head("[[routes]]");
            if let Some(route) = self.loaded.tree.at(&path).and_then(Node::as_table) {
                for (key, option) in route {
                    self.put(key, &option.clone().plain(true), &option.place);
                }
            }
        }
    }

    fn channels(&mut self) {
        for (name, channel) in &self.loaded.config.channels {
            self.head(&format!("[channels.{name}]"));
            let kind = deskbell_channels::kind(&channel.kind);
            let open: Vec<_> = kind
                .map(|kind| kind.options())
                .unwrap_or_default()
                .into_iter()
                .filter_map(|option| (!option.secret).then_some(option.name))
                .chain(COMMON.map(str::to_owned))
                .collect();
            let written = self.node(&["channels", name.as_str()]).and_then(Node::as_table);
            match written {
                Some(options) => {
                    for (key, option) in options {
                        let is_secret = !open.contains(key);
                        let value = masked(option.clone().plain(false), is_secret);
                        self.put(key, &value, &option.place);
                    }
                }
                None => {
                    let place = Place::of(Source::Variable("of mcp-push".to_owned()));
                    self.put("kind", &channel.kind.as_str().into(), &place);
                    for (key, value) in &channel.options {
                        let value = masked(value.clone(), !open.contains(key));
                        self.put(key, &value, &place);
                    }
                }
            }
        }
    }

    fn head(&mut self, head: &str) {
        self.text.push_str(if self.text.is_empty() { "" } else { "\n" });
        self.text.push_str(head);
        self.text.push('\n');
    }

    fn line(&mut self, section: &[&str], key: &str, value: impl Into<toml::Value>) {
        let path: Vec<_> = section.iter().copied().chain([key]).collect();
        let place = self.node(&path).map(|node| node.place.clone());
        let place = place.unwrap_or_else(|| Place::of(Source::BuiltIn));
        self.put(key, &value.into(), &place);
    }

    fn put(&mut self, key: &str, value: &toml::Value, place: &Place) {
        let key = toml::Value::from(key).to_string();
        let bare = key.trim_matches('"');
        let is_bare =
            bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let key = if is_bare && !bare.is_empty() { bare } else { &key };
        let option = format!("{key} = {}", without_logins(value.clone()));
        // Writing to a string cannot fail.
        let _infallible = writeln!(self.text, "{option:<40} # {place}");
    }

    fn node(&self, path: &[&str]) -> Option<&'a Node> {
        let path: Vec<_> = path.iter().map(|key| Step::Key((*key).to_owned())).collect();
        self.loaded.tree.at(&path)
    }
}

fn list<'a>(items: impl Iterator<Item = &'a str>) -> Vec<toml::Value> {
    items.map(toml::Value::from).collect()
}

/// The value as it may be shown: of a secret only whether it is a reference.
fn masked(value: toml::Value, is_secret: bool) -> toml::Value {
    match value {
        toml::Value::String(value) if secrets::is_reference(&value) => {
            text::one_line(&value).into_owned().into()
        }
        toml::Value::Array(items) => {
            items.into_iter().map(|item| masked(item, is_secret)).collect::<Vec<_>>().into()
        }
        toml::Value::Table(table) => {
            let entries = table.into_iter().map(|(key, value)| (key, masked(value, is_secret)));
            toml::Value::Table(entries.collect())
        }
        _ if is_secret => MASK.into(),
        open => open,
    }
}

/// `value` with the user and password masked in every address.
fn without_logins(value: toml::Value) -> toml::Value {
    match value {
        toml::Value::String(text) if !secrets::is_reference(&text) => {
            without_login(&text).unwrap_or(text).into()
        }
        toml::Value::Array(items) => {
            items.into_iter().map(without_logins).collect::<Vec<_>>().into()
        }
        toml::Value::Table(table) => {
            let entries = table.into_iter().map(|(key, value)| (key, without_logins(value)));
            toml::Value::Table(entries.collect())
        }
        other => other,
    }
}

/// The address `text` with its login masked, if it is one and has one.
fn without_login(text: &str) -> Option<String> {
    /// What an address without a scheme is read with.
    const SCHEME: &str = "https://";
    let text = text.trim();
    let has_scheme = text.contains("://");
    let mut url =
        if has_scheme { Url::parse(text) } else { Url::parse(&format!("{SCHEME}{text}")) }.ok()?;
    // Without a scheme, `user@host` is a mail address.
    let has_login = url.password().is_some() || (has_scheme && !url.username().is_empty());
    if !has_login {
        return None;
    }
    url.set_username(MASK).ok()?;
    url.set_password(None).ok()?;
    let shown = url.as_str();
    Some(if has_scheme { shown } else { shown.strip_prefix(SCHEME)? }.to_owned())
}

/// The JSON Schema of the configuration file, with the options of every kind of channel.
pub fn schema() -> Json {
    let mut schema = schema_for!(File).to_value();
    let common = schema.pointer("/$defs/ChannelTable").cloned().unwrap_or_default();
    let kinds: Vec<_> =
        deskbell_channels::kinds().iter().map(|kind| channel_schema(&common, kind)).collect();
    let address = json!({
        "type": "object",
        "description": common.get("description"),
        "properties": common.get("properties"),
        "required": ["url"],
        "not": { "required": ["kind"] },
        "additionalProperties": false,
    });
    if let Some(channel) = schema.pointer_mut("/$defs/ChannelTable") {
        let alternatives: Vec<_> = kinds.into_iter().chain([address]).collect();
        *channel = json!({ "description": common.get("description"), "anyOf": alternatives });
    }
    schema
}

fn channel_schema(common: &Json, kind: &deskbell_channels::ChannelKind) -> Json {
    let mut schema = kind.schema().to_value();
    if let Some(schema) = schema.as_object_mut() {
        // They are whole documents by themselves; here they are parts of one.
        schema.remove("$schema");
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        if let Some(properties) = properties.as_object_mut() {
            for name in COMMON.into_iter().filter(|name| *name != "kind") {
                let option = common.pointer(&format!("/properties/{name}"));
                properties.insert(name.to_owned(), option.cloned().unwrap_or_default());
            }
            let text = common.pointer("/properties/kind/description");
            let name = json!({ "const": kind.about.name, "description": text });
            properties.insert("kind".to_owned(), name);
        }
        let required = schema.entry("required").or_insert_with(|| json!([]));
        if let Some(required) = required.as_array_mut() {
            required.push("kind".into());
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_values_keep_references_and_what_is_no_secret_row_116() {
        let check = |value: &str, is_secret: bool| masked(value.into(), is_secret).to_string();
        assert_eq!(check("hunter2", true), "\"***\"");
        assert_eq!(check("env:TOKEN", true), "\"env:TOKEN\"");
        assert_eq!(check("topic", false), "\"topic\"");
        let headers: toml::Table = toml::from_str("a = 'x'\nb = ['env:B', 'y']").unwrap();
        let expected: toml::Table = toml::from_str("a = '***'\nb = ['env:B', '***']").unwrap();
        assert_eq!(masked(headers.into(), true), expected.into());
        assert_eq!(masked(toml::Value::Integer(5), true), MASK.into());
    }

    #[test]
    fn the_login_in_an_address_is_masked_row_116() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(without_logins(text.into()).as_str(), Some(expected));
        }
        check("http://user:hunter2@host:80/x?y", "http://***@host/x?y");
        check("https://hunter2@host/", "https://***@host/");
        check("socks5://u:hunter2@host:1080", "socks5://***@host:1080");
        check("user:hunter2@host/x", "***@host/x");
        check("http://u:hunter2@x@host/", "http://***@host/");
        check("https://host/a@b", "https://host/a@b");
        check("Bell <bell@example.com>", "Bell <bell@example.com>");
        check("env:TOKEN", "env:TOKEN");
        let list = toml::Value::from(vec!["http://u:hunter2@host/", "plain"]);
        assert_eq!(without_logins(list).to_string(), r#"["http://***@host/", "plain"]"#);
    }

    #[test]
    fn the_schema_knows_every_kind_of_channel() {
        let schema = schema();
        let alternatives = schema.pointer("/$defs/ChannelTable/anyOf").unwrap().as_array().unwrap();
        assert_eq!(alternatives.len(), deskbell_channels::kinds().len() + 1);
        for (kind, alternative) in deskbell_channels::kinds().iter().zip(alternatives) {
            let name = alternative.pointer("/properties/kind/const").unwrap();
            assert_eq!(name, kind.about.name);
            assert!(alternative.get("description").is_some());
        }
    }
}
