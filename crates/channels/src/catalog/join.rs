use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Join>(About {
    name: "join",
    title: "Join",
    docs: "https://joaoapps.com/join/api/",
    transport: Transport::Http {
        accepted: r#"{"success":true,"userAuthError":false}"#,
        verdict: Verdict { reason: &["/errorMessage"], ..Verdict::field("/success", &["true"]) },
        refusals: &[
            Refusal::permanent(200, r#"{"success":false,"errorMessage":"User authentication failed","userAuthError":true}"#),
            Refusal::temporary(429, ""),
        ],
    },
    dialect: Dialect::Plain,
    // The text stands in the address, which must not grow too long.
    limits: Limits { title: 200, body: 1_500, unit: Unit::Bytes, per_minute: None },
    edits: false,
    example: r#"
        key = "0123456789abcdef0123456789abcdef"
        device = "group.all"
    "#,
})
.with_urls(Urls {
    schemes: &["join"],
    examples: &[
        "join://0123456789abcdef0123456789abcdef",
        "join://0123456789abcdef0123456789abcdef/fedcba9876543210fedcba9876543210/group.chrome?priority=high",
    ],
    read,
    ..Urls::NONE
});

/// Push notifications through [Join](https://joaoapps.com/join/).
///
/// 1. Open <https://joinjoaomgcd.appspot.com>, click on Join API, and set `key` to the API key it shows.
/// 2. To tell one device only, set `device` to its id, which that page shows as well.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Join {
    /// API key.
    key: Secret,
    /// Id or name of a device, or a group such as `group.all`, `group.android` or `group.chrome`. Several get a message each.
    #[serde(default = "all_devices")]
    #[schemars(extend("default" = "group.all"))]
    device: Targets<String>,
    /// Priority of every message, from -2 to 2, instead of one that follows the level.
    priority: Option<i8>,
}

fn all_devices() -> Targets<String> {
    Targets::one("group.all".to_owned())
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    url.ignore(&["image"]);
    let host = url.authority();
    let key = match url.user.take() {
        Some(key) => {
            url.path.splice(0..0, host);
            Some(key)
        }
        None => host,
    };
    let devices = url.targets().map(|devices| match devices {
        toml::Value::Array(all) => all.into_iter().map(in_full).collect::<Vec<_>>().into(),
        one => in_full(one),
    });
    Ok(url::options([
        ("key", key.map(Into::into)),
        ("device", devices),
        ("priority", url.priority()?.map(Into::into)),
    ]))
}

/// The groups that there are.
const GROUPS: [&str; 7] = ["all", "android", "chrome", "windows10", "phone", "tablet", "pc"];

/// `device`, or the group that is named without what all of them start with.
fn in_full(device: toml::Value) -> toml::Value {
    match device.as_str() {
        Some(name) if GROUPS.contains(&name) => format!("group.{name}").into(),
        _ => device,
    }
}

/// The parameter that names `device`: ids are 32 digits, and groups take their place.
fn names_device(device: &str) -> &'static str {
    let is_id = device.len() == 32 && device.chars().all(|c| c.is_ascii_hexdigit());
    if is_id || device.starts_with("group.") { "deviceId" } else { "deviceNames" }
}

#[async_trait]
impl Channel for Join {
    fn targets(&self) -> Vec<Mark> {
        self.device.marks()
    }

    fn check(&self) -> Result<(), ConfigError> {
        match self.priority {
            Some(..=-3 | 3..) => {
                Err(ConfigError("`priority` is out of range, expected -2 to 2".to_owned()))
            }
            _ => Ok(()),
        }
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let priority = self.priority.unwrap_or(match message.level {
            Level::Debug => -1,
            Level::Info | Level::Notice => 0,
            Level::Warning => 1,
            Level::Error | Level::Critical | Level::Alert | Level::Emergency => 2,
        });
        let device = self.device.at(cx);
        let address =
            Address::parse("https://joinjoaomgcd.appspot.com/_ah/api/messaging/v1/sendPush")
                .expect("a constant address")
                .with("apikey", self.key.expose())
                .with(names_device(device), device)
                .with("title", message.title.as_deref().unwrap_or("Deskbell"))
                .with("text", &KIND.about.dialect.body(message))
                .with("priority", &priority.to_string());
        cx.post(&address).delivered(&KIND).await
    }
}
