use std::borrow::Cow;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use deskbell_core::attachment::Place;

use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Ntfy>(About {
    name: "ntfy",
    title: "ntfy",
    docs: "https://docs.ntfy.sh/publish/#publish-as-json",
    transport: Transport::Http {
        accepted: r#"{"id":"x1","sequence_id":"x1"}"#,
        // Servers that cannot replace a message do not tell a `sequence_id`.
        verdict: Verdict { id: Some("/sequence_id"), ..Verdict::id("/id") },
        refusals: &[
            Refusal::permanent(200, r#"{"code":40301,"error":"forbidden"}"#),
            Refusal::permanent(403, r#"{"code":40301,"http":403,"error":"forbidden","link":"https://ntfy.sh/docs/publish/#authentication"}"#),
            Refusal::temporary(429, r#"{"code":42901,"http":429,"error":"limit reached: too many requests"}"#),
            Refusal::permanent(413, r#"{"code":41301,"http":413,"error":"attachment too large"}"#),
        ],
    },
    dialect: Dialect::Markdown,
    // The server turns longer messages into attached files.
    limits: Limits { title: 250, body: 4_096, unit: Unit::Bytes, per_minute: None },
    edits: true,
    example: r#"
        topic = "builds-7f3a"
        token = "tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2"
    "#,
})
.with_files(Files::After(15_000_000))
.with_file_urls(1)
.with_links()
.with_urls(Urls {
    schemes: &["ntfy", "ntfys"],
    native: &["ntfy.sh/"],
    examples: &["ntfy://builds-7f3a", "ntfys://user:password-1@push.example.com/builds?priority=high&xtags=ci,tada&delay=10m", "https://ntfy.sh/builds-7f3a?priority=high"],
    read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "ntfy",
    needs: &["NTFY_TOPIC"],
    takes: &[
        "NTFY_URL",
        "NTFY_TOKEN",
        "NTFY_USERNAME",
        "NTFY_PASSWORD",
        "NTFY_PRIORITY",
        "NTFY_ACTIONS",
    ],
    read: |set| {
        let mut table = set.table(&[
            ("topic", "NTFY_TOPIC"),
            ("server", "NTFY_URL"),
            ("token", "NTFY_TOKEN"),
            ("user", "NTFY_USERNAME"),
            ("password", "NTFY_PASSWORD"),
            ("actions", "NTFY_ACTIONS"),
        ]);
        let priority = set.number("NTFY_PRIORITY")?.map(toml::Value::from);
        table.extend(url::options([("priority", priority)]));
        Ok(table)
    },
});

/// Push notifications through [ntfy](https://ntfy.sh), public or self-hosted.
///
/// 1. Choose a topic name nobody would guess: whoever knows it can read it.
/// 2. Subscribe to it in the ntfy app.
/// 3. For a protected topic, create an access token and set `token`, or set `user` and `password`.
///
/// The steps of a run replace each other in the app; servers older than 2.16 show each of them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Ntfy {
    /// Topic to publish to. Several get a message each.
    topic: Targets<Topic>,
    /// Address of the server.
    #[serde(default = "public_server")]
    #[schemars(extend("default" = "https://ntfy.sh"))]
    server: Address,
    /// Access token, for protected topics.
    token: Option<Secret>,
    /// User, for protected topics.
    user: Option<String>,
    /// Password of the user.
    password: Option<Secret>,
    /// Priority whatever the level, from 1 to 5.
    priority: Option<u8>,
    /// Further tags; those that are names of emoji stand before the title.
    #[serde(default)]
    tags: Vec<String>,
    /// Address that a tap opens where a message has no link of its own.
    click: Option<String>,
    /// Address of a picture to show beside the message.
    icon: Option<Address>,
    /// Address of a file to attach.
    attach: Option<Address>,
    /// Name of that file.
    filename: Option<String>,
    /// Mail address that gets the message too.
    email: Option<String>,
    /// How long the server holds messages back, such as `30m`, or until when.
    delay: Option<String>,
    /// Buttons below the message, as in ntfy's header `Actions`: `view, Open, https://example.com; …`.
    actions: Option<String>,
}

/// The name of a topic, as ntfy allows it.
#[derive(JsonSchema)]
struct Topic(String);

impl<'de> Deserialize<'de> for Topic {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if (1..=64).contains(&name.len()) && name.chars().all(is_plain) {
            Ok(Self(name))
        } else {
            let wrong = "not a topic, expected 1 to 64 letters, digits, `-` and `_`";
            Err(serde::de::Error::custom(wrong))
        }
    }
}

fn public_server() -> Address {
    Address::parse("https://ntfy.sh").expect("a constant address")
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    url.ignore(&["image"]);
    let is_public = match url.parameter("mode").as_deref() {
        Some("cloud") => true,
        Some("private") => false,
        _ if url.is_native() => true,
        _ => url.path.is_empty() && url.look("to").is_none_or(str::is_empty),
    };
    let server = if is_public { None } else { Some(url.web()?) };
    // On the public server the first topic stands where the host does.
    let first = url.authority().filter(|first| is_public && first != "ntfy.sh");
    url.path.splice(0..0, first);
    let topics = url.targets().ok_or_else(|| url.wrong("names no topic"))?;
    let (mut user, mut password) = (url.user.take(), url.password.take());
    let mut token = url.parameter("token");
    if url.parameter("auth").is_some_and(|auth| auth == "token") {
        token = token.or(password.take()).or(user.take());
        user = None;
    } else if user.as_ref().is_some_and(|user| user.starts_with("tk_")) && password.is_none() {
        token = token.or(user.take());
    } else if user.is_some() {
        password = password.or_else(|| Some(String::new()));
    }
    let priority = url.parameter("priority").map(|priority| match priority.as_str() {
        "min" => Ok(1),
        "low" => Ok(2),
        "default" => Ok(3),
        "high" => Ok(4),
        "max" => Ok(5),
        number => number.parse::<i64>().map_err(|_| url.wrong("has an unknown `priority`")),
    });
    let priority = priority.transpose()?;
    let tags = url.parameter("xtags").or_else(|| url.parameter("tags")).map(|tags| {
        let tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty());
        tags.map(toml::Value::from).collect::<Vec<_>>()
    });
    let mut table = url.table(&[
        ("click", "click"),
        ("icon", "avatar_url"),
        ("attach", "attach"),
        ("filename", "filename"),
        ("email", "email"),
        ("delay", "delay"),
        ("actions", "actions"),
    ]);
    table.extend(url::options([
        ("priority", priority.map(toml::Value::from)),
        ("tags", tags.map(Into::into)),
        ("topic", Some(topics)),
        ("server", server.map(Into::into)),
        ("token", token.map(Into::into)),
        ("user", user.map(Into::into)),
        ("password", password.map(Into::into)),
    ]));
    Ok(table)
}

/// `text` as it may stand in a header: with other letters than those of ASCII it is encoded (RFC 2047).
fn in_header(text: &str) -> Cow<'_, str> {
    match text.is_ascii() {
        true => text.into(),
        false => format!("=?UTF-8?B?{}?=", BASE64_STANDARD.encode(text)).into(),
    }
}

#[async_trait]
impl Channel for Ntfy {
    fn targets(&self) -> Vec<Mark> {
        self.topic.marks()
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.priority.is_some_and(|priority| !(1..=5).contains(&priority)) {
            return Err(ConfigError("`priority` is not right; expected 1 to 5".to_owned()));
        }
        if self.user.is_some() != self.password.is_some() {
            return Err(ConfigError(
                "`user` and `password` are set together or not at all".to_owned(),
            ));
        }
        if self.user.is_some() && self.token.is_some() {
            return Err(ConfigError(
                "`token` is set beside `user`; one of them is enough".to_owned(),
            ));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let (priority, tag) = match message.level {
            Level::Debug => (2, None),
            Level::Info | Level::Notice => (3, None),
            Level::Warning => (4, Some("warning")),
            Level::Error => (4, Some("x")),
            Level::Critical | Level::Alert | Level::Emergency => (5, Some("rotating_light")),
        };
        if let Some(file) = cx.files.first() {
            let address = self.server.at(&[&self.topic.at(cx).0]).with("filename", &file.name);
            // The text rang already.
            let address = address.with("priority", "2");
            return self.logged_in(cx.put(&address)).file(file).delivered(&KIND).await;
        }
        // A message with the id of an earlier one takes its place, so a repeat is not seen twice.
        let own_id = format!("{}-{}", message.event, cx.part);
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.clone());
        let own_tags = self.tags.iter().map(String::as_str);
        let attached = message.attachments.iter().find_map(|attachment| match &attachment.place {
            Place::Url(url) => Some((url.as_str(), attachment.name.as_str())),
            Place::Path(_) => None,
        });
        let publication = present(json!({
            "topic": self.topic.at(cx).0,
            "title": message.title,
            "message": KIND.about.dialect.body(message),
            "markdown": message.format == Format::Markdown,
            "priority": self.priority.unwrap_or(priority),
            "tags": tag.into_iter().chain([message.context.as_str()]).chain(own_tags).collect::<Vec<_>>(),
            "click": message.link.as_ref().or(self.click.as_ref()),
            "icon": self.icon.as_ref().map(|icon| icon.url().as_str()),
            "attach": attached.map(|(url, _)| url).or(self.attach.as_ref().map(|file| file.url().as_str())),
            "filename": attached.map(|(_, name)| name).or(self.filename.as_deref()),
            "email": self.email,
            "delay": self.delay,
            "sequence_id": earlier.unwrap_or(own_id),
        }));
        let mut request = self.logged_in(cx.post(&self.server));
        if let Some(actions) = &self.actions {
            // In the body it would have to be JSON.
            request = request.header("x-actions", &in_header(actions));
        }
        request.json(&publication).delivered(&KIND).await
    }
}

impl Ntfy {
    fn logged_in<'a>(&self, request: Request<'a>) -> Request<'a> {
        match (&self.user, &self.password) {
            (Some(user), Some(password)) => request.basic(user, password),
            _ => request.bearer(self.token.as_ref()),
        }
    }
}
