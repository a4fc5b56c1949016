use std::{
    borrow::Cow,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use aws_lc_rs::digest;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserializer, de::Error as _};

use crate::{
    below, files,
    prelude::*,
    web_push::{Reader, SenderKey},
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<WebPush>(About {
    name: "web_push",
    title: "The push service",
    docs: "https://www.rfc-editor.org/rfc/rfc8030",
    transport: Transport::Http {
        accepted: "",
        verdict: Verdict { success: Success::NoPage, ..Verdict::STATUS },
        refusals: &[
            Refusal::permanent(410, r#"{"code":410,"errno":106,"error":"Gone","message":"Request did not validate"}"#),
            Refusal::permanent(413, r#"{"code":413,"errno":104,"error":"Payload Too Large"}"#),
            Refusal::permanent(403, "the VAPID credentials in the authorization header do not correspond to the credentials used to create the subscriptions"),
            Refusal::temporary(429, ""),
        ],
    },
    dialect: Dialect::Plain,
    // All of it is one record of 4,096 bytes, in which JSON may write a character as two.
    limits: Limits { title: 100, body: 1_500, unit: Unit::Bytes, per_minute: None },
    edits: false,
    example: r#"
        subscription = '{"endpoint":"https://push.example.net/p/JzLQ3raZJfFBR0aqvOMsLrt5","keys":{"p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4","auth":"BTBZMqHH6r4Tts7J_aSIgg"}}'
        key = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
        subject = "mailto:ada@example.com"
    "#,
})
.with_links_up_to(LINK)
.with_urls(Urls {
    schemes: &["vapid"],
    examples: &[
        "vapid://ada@example.com?keyfile=/etc/deskbell/vapid.pem&subfile=/etc/deskbell/push.json",
        "vapid://ada@example.com/phone/laptop?keyfile=vapid.pem&subfile=push.json&ttl=60",
    ],
    read,
    ..Urls::NONE
});

/// Notifications of a browser, through a page of your own.
///
/// 1. Make a key: `openssl ecparam -name prime256v1 -genkey -noout -out vapid.pem`, and set `key` to
///    `file:/path/vapid.pem`. What the page needs of it:
///    `openssl ec -in vapid.pem -pubout -outform DER | tail -c 65 | basenc --base64url -w 0 | tr -d =`.
/// 2. On the page, register a service worker and subscribe:
///    `registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: "B…" })`.
/// 3. Save `JSON.stringify(subscription)` to a file and set `subscription` to `file:/path/push.json`. A file may also
///    have several of them: a list, or a table by names.
/// 4. In the service worker, show what comes:
///    `addEventListener("push", (event) => { const n = event.data.json().notification;
///    event.waitUntil(registration.showNotification(n.title, n)); })`. Safari shows it without one.
///
/// The push service sees that a message comes, not what it says. The steps of a run take one another's place.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WebPush {
    /// The subscription as the browser gives it, in JSON or as a table: `endpoint` and `keys` with `p256dh` and `auth`.
    /// Several, in a list or by names, get a message each.
    subscription: Option<Subscriptions>,
    /// File with the subscription, instead of `subscription`.
    subscription_file: Option<PathBuf>,
    /// Names of subscriptions that get messages, where not all of them do.
    #[serde(default)]
    to: Vec<String>,
    /// The private key that the page's subscriptions were made for (VAPID): PEM, or its number in Base64.
    key: Option<Key>,
    /// File with the key, instead of `key`.
    key_file: Option<PathBuf>,
    /// Where the push service reaches you: `mailto:` and a mail address, or an address with `https`.
    subject: String,
    /// How long the push service keeps a message for a browser that is away, in seconds.
    #[serde(default = "three_days")]
    ttl: u32,
    /// What the browser gets: `json`, as Declarative Web Push has it, or `text`.
    #[serde(default)]
    payload: Payload,
    /// What is read from the files, once it is right.
    #[serde(skip)]
    known: OnceLock<Known>,
}

const fn three_days() -> u32 {
    259_200
}

#[derive(Clone, Copy, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Payload {
    #[default]
    Json,
    Text,
}

/// A browser that asked for messages.
#[derive(Clone)]
struct Subscription(Arc<Browser>);

struct Browser {
    name: Option<String>,
    endpoint: Address,
    reader: Reader,
}

#[derive(Clone)]
struct Subscriptions(Vec<Subscription>);

#[derive(Clone)]
struct Key(Arc<SenderKey>);

struct Known {
    key: Key,
    subscriptions: Vec<Subscription>,
}

impl Subscriptions {
    /// Those in what a browser, a page or Apprise wrote.
    fn read(written: &Value) -> Option<Self> {
        let all = match written {
            Value::Array(all) => all.iter().map(|one| Subscription::read(None, one)).collect(),
            Value::Object(one) if one.contains_key("endpoint") => {
                Subscription::read(None, written).map(|one| vec![one])
            }
            Value::Object(all) => {
                all.iter().map(|(name, one)| Subscription::read(Some(name), one)).collect()
            }
            Value::String(text) => {
                let inner: Value = serde_json::from_str(text).ok()?;
                return if inner.is_string() { None } else { Self::read(&inner) };
            }
            _ => None,
        };
        all.filter(|all: &Vec<_>| !all.is_empty()).map(Self)
    }
}

impl Subscription {
    fn read(name: Option<&String>, written: &Value) -> Option<Self> {
        let text = |name: &str| written.get(name).and_then(Value::as_str);
        let key = |name: &str| {
            let key = written.get("keys").and_then(|keys| keys.get(name)).and_then(Value::as_str);
            key.or_else(|| text(name))
        };
        let endpoint = Address::parse(text("endpoint")?)?;
        let reader = Reader::parse(key("p256dh")?, key("auth")?)?;
        Some(Self(Arc::new(Browser { name: name.cloned(), endpoint, reader })))
    }
}

impl<'de> Deserialize<'de> for Subscriptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = "no subscription, expected `endpoint` and `keys` with `p256dh` and `auth`";
        Self::read(&Value::deserialize(deserializer)?).ok_or_else(|| D::Error::custom(wrong))
    }
}

impl JsonSchema for Subscriptions {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Subscriptions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "object", "array"], "writeOnly": true })
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = SenderKey::parse(&String::deserialize(deserializer)?);
        let wrong = "no key, expected one of the curve P-256, as PEM or in Base64";
        key.map(|key| Self(Arc::new(key))).ok_or_else(|| D::Error::custom(wrong))
    }
}

impl JsonSchema for Key {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Key".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "writeOnly": true })
    }
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // Whatever the service is called, its address is in the subscription.
    url.ignore(&["mode", "image"]);
    let host = url.authority();
    let named = url.user.take().zip(host.clone()).map(|(user, host)| format!("{user}@{host}"));
    let subject = match url.parameter("from") {
        Some(subject) => {
            let first = named.or(host);
            url.path.splice(0..0, first);
            Some(subject)
        }
        None => named,
    };
    let subject = subject.ok_or_else(|| url.wrong("names no mail address of the sender"))?;
    let names = url.targets().map(|names| match names {
        toml::Value::Array(names) => names,
        one => vec![one],
    });
    let mut table = url.table(&[("key_file", "keyfile"), ("subscription_file", "subfile")]);
    table.extend(url::options([
        ("subject", Some(format!("mailto:{subject}").into())),
        ("to", names.map(Into::into)),
        // Apprise's default: a browser that is away misses the message.
        ("ttl", Some(url.number("ttl")?.unwrap_or_default().into())),
        ("payload", Some("text".into())),
    ]));
    Ok(table)
}

/// The largest file that is read.
const FILE_LIMIT: u64 = 1 << 20;

/// The text of a file, or why there is none. A pipe or a device is none, because it may never end.
fn text_of(file: &Path) -> Result<String, String> {
    let read = || {
        let (file, size) = files::open(&fs::canonicalize(file)?)?;
        if size > FILE_LIMIT {
            return Err(io::Error::other("it is too large"));
        }
        let mut text = String::new();
        file.take(FILE_LIMIT).read_to_string(&mut text)?;
        Ok(text)
    };
    read().map_err(|error| error.to_string())
}

impl WebPush {
    fn known(&self) -> Result<&Known, SendError> {
        if let Some(known) = self.known.get() {
            return Ok(known);
        }
        let known = self.load().map_err(SendError::permanent)?;
        Ok(self.known.get_or_init(|| known))
    }

    fn load(&self) -> Result<Known, String> {
        let from = |option: &str, file: Option<&PathBuf>| {
            let file = file.ok_or_else(|| format!("`{option}` is missing"))?;
            text_of(file).map_err(|error| format!("`{option}_file` cannot be read: {error}"))
        };
        let key = match &self.key {
            Some(key) => key.clone(),
            None => {
                let key = SenderKey::parse(&from("key", self.key_file.as_ref())?);
                Key(Arc::new(key.ok_or("`key_file` has no private key of the curve P-256")?))
            }
        };
        let all = match &self.subscription {
            Some(all) => all.clone(),
            None => {
                let text = from("subscription", self.subscription_file.as_ref())?;
                let all = Subscriptions::read(&Value::String(text));
                all.ok_or("`subscription_file` has no subscription of a browser")?
            }
        };
        let is_meant = |one: &Subscription| {
            let name = one.0.name.as_ref();
            self.to.is_empty()
                || name.is_some_and(|name| self.to.iter().any(|to| to.eq_ignore_ascii_case(name)))
        };
        let subscriptions: Vec<_> = all.0.into_iter().filter(is_meant).collect();
        if subscriptions.is_empty() {
            return Err("`to` names none of the subscriptions".to_owned());
        }
        Ok(Known { key, subscriptions })
    }
}

#[async_trait]
impl Channel for WebPush {
    fn targets(&self) -> Vec<Mark> {
        let mark = |one: &Subscription| Mark::of(one.0.endpoint.url().as_str());
        match self.known() {
            Ok(known) => known.subscriptions.iter().map(mark).collect(),
            Err(_) => vec![Mark::NONE],
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let wrong = |what: &str| Err(ConfigError(what.to_owned()));
        if self.subscription.is_some() == self.subscription_file.is_some() {
            return wrong("either `subscription` or `subscription_file` must be set");
        }
        if self.key.is_some() == self.key_file.is_some() {
            return wrong("either `key` or `key_file` must be set");
        }
        if !self.subject.starts_with("mailto:") && !self.subject.starts_with("https://") {
            return wrong("`subject` is not right; expected `mailto:` or `https://`");
        }
        if self.subscription.is_some() && self.key.is_some() {
            // What is in files is read when it is needed.
            self.load().map_err(ConfigError)?;
        }
        Ok(())
    }

    fn unseen(&self) -> Option<String> {
        self.known().err().map(|error| error.message)
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let known = self.known()?;
        let one = known.subscriptions.get(cx.target).or_else(|| known.subscriptions.first());
        let Subscription(browser) =
            one.ok_or_else(|| SendError::permanent("there is no subscription"))?;
        let text = match self.payload {
            Payload::Json => notification(message, cx).to_string(),
            Payload::Text => KIND.about.dialect.titled(&below::whole(message)),
        };
        let failed = |_| SendError::permanent("the keys of the subscription cannot be used");
        let sealed = browser.reader.seal(text.as_bytes()).map_err(failed)?;
        let key = &known.key.0;
        let token = key.token(&browser.endpoint, &self.subject, cx.now).map_err(failed)?;
        let mut hidden = vec![token.clone(), browser.endpoint.url().path().to_owned()];
        if let Some(preview) = &cx.preview {
            preview.hide(&hidden);
        }
        hidden.extend(cx.secrets.iter().cloned());
        let cx = &SendContext { secrets: hidden.into(), ..cx.clone() };
        let mut request = cx
            .post(&browser.endpoint)
            .header("authorization", &key.authorization(&token))
            .header("ttl", &self.ttl.to_string())
            .header("urgency", urgency(message.level));
        if message.run.is_some() {
            // A step that has not been fetched gives way to the next one.
            request = request.header("topic", &tag(message, cx));
        }
        let reply = request.sealed("aes128gcm", text, sealed).answered().await?;
        if matches!(reply.status(), 404 | 410) {
            let gone = "the browser has ended the subscription; subscribe again";
            return Err(SendError::permanent(gone));
        }
        KIND.verdict().judge(KIND.about.title, &reply)
    }
}

/// How soon a browser that saves its battery is to show it (RFC 8030, section 5.3).
const fn urgency(level: Level) -> &'static str {
    match level {
        Level::Debug => "very-low",
        Level::Info => "low",
        Level::Notice => "normal",
        Level::Warning | Level::Error | Level::Critical | Level::Alert | Level::Emergency => "high",
    }
}

/// The longest address that fits beside the texts.
const LINK: usize = 500;

/// What the browser shows, as Declarative Web Push writes it; its version is the number of RFC 8030.
fn notification(message: &Message, cx: &SendContext) -> Value {
    json!({
        "web_push": 8030,
        "notification": present(json!({
            "title": message.title.as_deref().unwrap_or("Deskbell"),
            "body": KIND.about.dialect.body(message),
            "tag": tag(message, cx),
            "navigate": message.link,
            "silent": (message.level == Level::Debug).then_some(true),
        })),
    })
}

/// What notifications have in common that take one another's place: the run, else nothing.
fn tag(message: &Message, cx: &SendContext) -> String {
    let named = match &message.run {
        Some(run) => format!("{} {} {}", cx.delivery.channel, run.id, cx.part),
        None => cx.id(),
    };
    let hash = digest::digest(&digest::SHA256, named.as_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(hash.as_ref().iter().copied().take(TAG).collect::<Vec<_>>())
}

/// The bytes of a tag; in Base64 they are 24 of the 32 characters that a topic may have.
const TAG: usize = 18;

#[cfg(test)]
mod tests {
    use super::*;

    const BROWSER: &str = r#"{"endpoint":"https://push.example.net/p/1","keys":{"p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4","auth":"BTBZMqHH6r4Tts7J_aSIgg"}}"#;

    #[test]
    fn subscriptions_are_read_as_browsers_and_apprise_write_them() {
        let count = |text: String| Subscriptions::read(&Value::String(text)).map(|all| all.0.len());
        assert_eq!(count(BROWSER.to_owned()), Some(1));
        assert_eq!(count(format!("[{BROWSER},{BROWSER}]")), Some(2));
        assert_eq!(count(format!(r#"{{"phone":{BROWSER},"laptop":{BROWSER}}}"#)), Some(2));
        assert_eq!(count("[]".to_owned()), None);
        assert_eq!(count(BROWSER.replace("BTBZ", "")), None);
        assert_eq!(count("\"x\"".to_owned()), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_is_no_file_of_keys() {
        let reason = text_of(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(reason, "it is no file");
    }

    #[test]
    fn what_is_in_files_is_read_and_names_choose_among_it() {
        let folder = tempfile::tempdir().unwrap();
        let (key, all) = (folder.path().join("key"), folder.path().join("all"));
        fs::write(&key, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw\n").unwrap();
        fs::write(&all, format!(r#"{{"phone":{BROWSER},"Laptop":{BROWSER}}}"#)).unwrap();
        let built = |to: &str| {
            let address = format!(
                "vapid://ada@example.com{to}?keyfile={}&subfile={}",
                key.display(),
                all.display()
            );
            KIND.build(crate::from_url(&address).unwrap().options).unwrap()
        };
        assert_eq!(built("").targets().len(), 2);
        assert_eq!(built("/laptop").targets().len(), 1);
        assert_eq!(built("/tablet").unseen().unwrap(), "`to` names none of the subscriptions");
        fs::remove_file(&key).unwrap();
        let channel = built("");
        let missing = channel.unseen().unwrap();
        assert!(missing.starts_with("`key_file` cannot be read: "), "{missing}");
        fs::write(&key, "no key").unwrap();
        let broken = channel.unseen().unwrap();
        assert_eq!(broken, "`key_file` has no private key of the curve P-256");
        fs::write(&key, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw\n").unwrap();
        assert_eq!(channel.unseen(), None);
    }
}
