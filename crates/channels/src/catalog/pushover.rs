use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Pushover>(About {
    name: "pushover",
    title: "Pushover",
    docs: "https://pushover.net/api",
    transport: Transport::Http {
        accepted: r#"{"status":1,"request":"647d2300-702c-4b38-8b2f-d56326ae460b"}"#,
        verdict: Verdict {
            reason: &["/errors/0"],
            // When the month's messages are used up, this says when the next month begins.
            wait: Wait::UntilIn("X-Limit-App-Reset"),
            ..Verdict::field("/status", &["1"])
        },
        refusals: &[
            Refusal::permanent(400, r#"{"user":"invalid","errors":["user identifier is not a valid user, group, or subscribed user key"],"status":0,"request":"5042853c-402d-4a18-abcb-168734a801de"}"#),
            Refusal::permanent(400, r#"{"token":"invalid","errors":["application token is invalid"],"status":0,"request":"5042853c-402d-4a18-abcb-168734a801de"}"#),
            Refusal::permanent(200, r#"{"errors":["message cannot be blank"],"status":0,"request":"5042853c"}"#),
            Refusal::temporary(429, ""),
        ],
    },
    dialect: Dialect::PushoverHtml,
    limits: Limits { title: 250, body: 1_024, unit: Unit::Characters, per_minute: None },
    edits: false,
    example: r#"
        token = "azGDORePK8gMaC0QOYAMyEEuzJnyUi"
        user = "uQiRzpo4DXghDmr9QzzfQu27cmVRsG"
    "#,
})
.with_files(Files::Pictures { most: 1, bytes: 5 * 1024 * 1024 })
.with_links_up_to(URL_LIMIT)
.with_urls(Urls {
    schemes: &["pover"],
    examples: &[
        "pover://uQiRzpo4DXghDmr9QzzfQu27cmVRsG@azGDORePK8gMaC0QOYAMyEEuzJnyUi",
        "pover://uQiRzpo4DXghDmr9QzzfQu27cmVRsG@azGDORePK8gMaC0QOYAMyEEuzJnyUi/phone/watch?priority=emergency&sound=siren&interval=60&expire=600",
        "pover://uQiRzpo4DXghDmr9QzzfQu27cmVRsG@azGDORePK8gMaC0QOYAMyEEuzJnyUi/#gznej3rKEVAvPUxu9vvNnqpmZpokzF?url=https://ci.example.com&url_title=CI",
    ],
    read,
    ..Urls::NONE
});

/// Push notifications through [Pushover](https://pushover.net).
///
/// 1. Log in, and set `user` to the user key that the first page shows.
/// 2. Create an application there and set `token` to its API token.
///
/// From the level `critical` on, a message repeats every `retry` seconds until somebody confirms it in the app, for
/// `expire` seconds at most.
/// The first picture that is attached is shown.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pushover {
    /// API token of the application.
    token: Secret,
    /// Key of a user or of a delivery group. Several get a message each.
    user: Targets<Secret>,
    /// Names of the devices that get the message, instead of all of them.
    #[serde(default)]
    devices: Vec<String>,
    /// Priority of every message, from -2 (no sound) to 2 (repeats until it is confirmed), instead of one that
    /// follows the level.
    priority: Option<i8>,
    /// Seconds between two repeats of a message that must be confirmed, at least 30.
    #[serde(default = "a_minute")]
    retry: u32,
    /// Seconds after which such a message is no longer repeated, at most 10,800.
    #[serde(default = "an_hour")]
    expire: u32,
    /// Name of the sound, instead of the one chosen in the app.
    sound: Option<String>,
    /// Address to link to where a message has none.
    url: Option<String>,
    /// What stands in place of the address.
    url_title: Option<String>,
}

const fn a_minute() -> u32 {
    60
}

const fn an_hour() -> u32 {
    3_600
}

/// The longest address to link to, in characters.
const URL_LIMIT: usize = 512;

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    url.ignore(&["e2ee"]);
    if url.parameter("key").is_some() {
        return Err(url.wrong("has a `key` to encrypt with, which channels do not do"));
    }
    let user = url.user.take().ok_or_else(|| url.wrong("names no user key before the `@`"))?;
    let places = match url.targets() {
        Some(toml::Value::Array(all)) => all,
        one => one.into_iter().collect(),
    };
    let is_group = |place: &toml::Value| place.as_str().is_some_and(|name| name.starts_with('#'));
    let (groups, devices): (Vec<_>, Vec<_>) = places.into_iter().partition(is_group);
    let groups: Vec<toml::Value> = groups
        .iter()
        .filter_map(|group| Some(group.as_str()?.trim_start_matches('#').into()))
        .collect();
    if !groups.is_empty() && !devices.is_empty() {
        return Err(url.wrong("names groups and devices; a group needs a channel of its own"));
    }
    let priority = match url.parameter("priority") {
        Some(name) => Some(
            priority_named(&name).ok_or_else(|| url.wrong("has a `priority` that is unknown"))?,
        ),
        None => None,
    };
    Ok(url::options([
        ("token", url.authority().map(Into::into)),
        ("user", Some(if groups.is_empty() { user.into() } else { groups.into() })),
        ("devices", Some(devices).filter(|all| !all.is_empty()).map(Into::into)),
        ("priority", priority.map(Into::into)),
        ("retry", url.number("interval")?.map(Into::into)),
        ("expire", url.number("expire")?.map(Into::into)),
        ("sound", url.parameter("sound").map(Into::into)),
        ("url", url.parameter("url").map(Into::into)),
        ("url_title", url.parameter("url_title").map(Into::into)),
    ]))
}

/// A priority as addresses name it: a number, or a word of which the first letter counts.
fn priority_named(name: &str) -> Option<i64> {
    match name.to_ascii_lowercase().chars().next()? {
        'l' => Some(-2),
        'm' => Some(-1),
        'n' => Some(0),
        'h' => Some(1),
        'e' => Some(2),
        _ => name.parse().ok(),
    }
}

#[async_trait]
impl Channel for Pushover {
    fn targets(&self) -> Vec<Mark> {
        self.user.marks()
    }

    fn check(&self) -> Result<(), ConfigError> {
        let wrong = |what: &str| Err(ConfigError(what.to_owned()));
        match self {
            Self { priority: Some(priority), .. } if !(-2..=2).contains(priority) => {
                wrong("`priority` is out of range, expected -2 to 2")
            }
            Self { retry: ..30, .. } => wrong("`retry` is too short, expected at least 30 seconds"),
            Self { expire: 10_801.., .. } => {
                wrong("`expire` is too long, expected at most 10800 seconds")
            }
            _ => Ok(()),
        }
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let priority = self.priority.unwrap_or(match message.level {
            Level::Debug => -1,
            Level::Info | Level::Notice => 0,
            Level::Warning | Level::Error => 1,
            Level::Critical | Level::Alert | Level::Emergency => 2,
        });
        let body = KIND.about.dialect.body(message);
        let (priority_text, devices) = (priority.to_string(), self.devices.join(","));
        let (retry, expire) = (self.retry.to_string(), self.expire.to_string());
        let link = message.link.as_ref().or(self.url.as_ref());
        let emergency = priority == 2;
        let fields = [
            ("token", Some(self.token.expose())),
            ("user", Some(self.user.at(cx).expose())),
            ("title", message.title.as_deref()),
            ("message", Some(body.as_str())),
            ("html", (message.format == Format::Markdown).then_some("1")),
            ("priority", Some(priority_text.as_str())),
            ("retry", emergency.then_some(retry.as_str())),
            ("expire", emergency.then_some(expire.as_str())),
            ("device", Some(devices.as_str()).filter(|names| !names.is_empty())),
            ("sound", self.sound.as_deref()),
            ("url", link.map(String::as_str)),
            ("url_title", link.and(self.url_title.as_deref())),
        ];
        let fields: Vec<_> =
            fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let address =
            Address::parse("https://api.pushover.net/1/messages.json").expect("a constant address");
        let request = match cx.files.first() {
            Some(picture) => cx.post(&address).form_with_file(&fields, "attachment", picture),
            None => cx.post(&address).form(&fields),
        };
        request.delivered(&KIND).await
    }
}
