use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<LaMetric>(About {
    name: "lametric",
    title: "LaMetric",
    docs: "https://lametric-documentation.readthedocs.io/en/latest/reference-docs/device-notifications.html",
    transport: Transport::Http {
        accepted: r#"{"success":{"id":"1"}}"#,
        verdict: Verdict { reason: &["/errors/0/message"], ..Verdict::id("/success/id") },
        refusals: &[
            Refusal::permanent(401, r#"{"errors":[{"message":"Authorization is required"}]}"#),
            Refusal::permanent(400, r#"{"errors":[{"message":"Cannot parse JSON"}]}"#),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        server = "http://192.168.2.20:8080"
        key = "8adaa0c98278dbb1ecb218d1c3e11f9312317ba474ab3361f80c0bd4f13a6749"
    "#,
})
.with_urls(Urls {
    schemes: &["lametric", "lametrics"],
    examples: &[
        "lametric://8adaa0c98278dbb1ecb218d1c3e11f93@192.168.2.20",
        "lametrics://dev:8adaa0c98278dbb1ecb218d1c3e11f93@clock.local:4343?priority=critical&icon=i9184&cycles=2&icon_type=alert",
    ],
    read,
    ..Urls::NONE
});

/// Notes on the screen of a [LaMetric](https://lametric.com) clock in your own network.
///
/// 1. In the app open the device's settings; set `key` to its API key.
/// 2. Set `server` to `http://`, its IP address and `:8080`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LaMetric {
    /// Address of the clock.
    server: Address,
    /// API key of the clock.
    key: Secret,
    /// Priority of every note, `info`, `warning` or `critical`, instead of one that follows the level.
    priority: Option<Priority>,
    /// Icon beside the text: its number in the gallery with `i` before it, or `a` where it moves.
    icon: Option<String>,
    /// Sign that announces the note, `none`, `info` or `alert`, instead of one that follows the level.
    icon_type: Option<IconType>,
    /// How often the note passes; 0 leaves it there until somebody dismisses it.
    #[serde(default = "once")]
    cycles: u32,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Priority {
    Info,
    Warning,
    Critical,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum IconType {
    None,
    Info,
    Alert,
}

const fn once() -> u32 {
    1
}

/// Who logs in; the password is the key.
const USER: &str = "dev";

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let is_cloud = url.authority.starts_with("com.lametric.") || !url.path.is_empty();
    if is_cloud || url.parameter("mode").is_some_and(|mode| mode == "cloud") {
        return Err(url.wrong("is for LaMetric's cloud; channels tell the device itself"));
    }
    if url.parameter("sound").is_some() {
        return Err(url.wrong("has a `sound`, which channels do not play"));
    }
    let (user, password) = (url.user.take(), url.password.take());
    let key = url.parameter("apikey").or(password).or(user);
    let mut server = url.web()?;
    if url.host()?.1.is_none() {
        server.push_str(if url.scheme == "lametric" { ":8080" } else { ":4343" });
    }
    let mut options =
        url.table(&[("priority", "priority"), ("icon", "icon"), ("icon_type", "icon_type")]);
    options.extend(url::options([
        ("server", Some(server.into())),
        ("key", key.map(Into::into)),
        ("cycles", url.number("cycles")?.map(Into::into)),
    ]));
    Ok(options)
}

#[async_trait]
impl Channel for LaMetric {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let (priority, icon_type) = match message.level {
            Level::Debug => (Priority::Info, IconType::None),
            Level::Info | Level::Notice => (Priority::Info, IconType::Info),
            Level::Warning | Level::Error => (Priority::Warning, IconType::Alert),
            Level::Critical | Level::Alert | Level::Emergency => {
                (Priority::Critical, IconType::Alert)
            }
        };
        // The text runs along one line.
        let text = KIND.about.dialect.titled(message);
        let text = text.split('\n').filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        let note = json!({
            "priority": self.priority.unwrap_or(priority),
            "icon_type": self.icon_type.unwrap_or(icon_type),
            "model": {
                "cycles": self.cycles,
                "frames": [present(json!({ "icon": self.icon, "text": text }))],
            },
        });
        let address = self.server.at(&["api", "v2", "device", "notifications"]);
        cx.post(&address).basic(USER, &self.key).json(&note).delivered(&KIND).await
    }
}
