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
        "lametrics://dev:8adaa0c98278dbb1ecb218d1c3e11f93@clock.local:4343?priority=critical&icon=i9184&cycles=2&icon_type=alert&sound=cat",
        "lametric://YjZlOWQyZTBkN2E4==@com.lametric.941c51dff3135bd87aa72db9d855dd50/2",
    ],
    native: &["developer.lametric.com/api/v1/dev/widget/update/"],
    read,
    ..Urls::NONE
});

/// Notes on the screen of a [LaMetric](https://lametric.com) clock in your own network.
///
/// 1. In the app open the device's settings; set `key` to its API key.
/// 2. Set `server` to `http://`, its IP address and `:8080`.
///
/// Or, from anywhere, on the page of an indicator app that you made at developer.lametric.com: set `app` to its push
/// address and `key` to its access token. An app has a text and an icon and nothing else.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LaMetric {
    /// Address of the clock.
    server: Option<Address>,
    /// Push address of an app, instead of `server`.
    app: Option<Address>,
    /// API key of the clock, or access token of the app.
    key: Secret,
    /// Priority of every note, `info`, `warning` or `critical`, instead of one that follows the level.
    priority: Option<Priority>,
    /// Icon beside the text: its number in the gallery with `i` before it, or `a` where it moves.
    icon: Option<String>,
    /// Sign that announces the note, `none`, `info` or `alert`, instead of one that follows the level.
    icon_type: Option<IconType>,
    /// Sound that announces the note, such as `cat`, `knock-knock` or `alarm1`.
    sound: Option<String>,
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
    let mode = url.parameter("mode");
    let is_cloud = url.authority.starts_with("com.lametric.") || !url.path.is_empty();
    if mode.map_or(is_cloud, |mode| mode == "cloud") {
        return read_app(url);
    }
    let (user, password) = (url.user.take(), url.password.take());
    let key = url.parameter("apikey").or(password).or(user);
    let mut server = url.web()?;
    if url.host()?.1.is_none() {
        server.push_str(if url.scheme == "lametric" { ":8080" } else { ":4343" });
    }
    let mut options = url.table(&[
        ("priority", "priority"),
        ("icon", "icon"),
        ("icon_type", "icon_type"),
        ("sound", "sound"),
    ]);
    trim_icon(&mut options);
    options.extend(url::options([
        ("server", Some(server.into())),
        ("key", key.map(Into::into)),
        ("cycles", url.number("cycles")?.map(Into::into)),
    ]));
    Ok(options)
}

/// The options of an address that is an app's. Of what else there may be, an app has nothing.
fn read_app(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    url.ignore(&["sound", "priority", "icon_type", "cycles"]);
    let mut options = url.table(&[("icon", "icon")]);
    trim_icon(&mut options);
    let token = ["app_token", "token"].into_iter().find_map(|name| url.parameter(name));
    let token = token.or_else(|| url.user.take());
    let address = if url.is_native() {
        url.native()
    } else {
        let named = ["app_id", "app"].into_iter().find_map(|name| url.parameter(name));
        let id = named.or_else(|| url.authority()).ok_or_else(|| url.wrong("names no app"))?;
        let id = id.trim_start_matches("com.lametric.");
        let version = url.parameter("app_ver").or_else(|| url.rest().into_iter().next());
        let version = version.as_deref().unwrap_or("1");
        format!(
            "https://developer.lametric.com/api/v1/dev/widget/update/com.lametric.{id}/{version}"
        )
    };
    options.extend(url::options([("app", Some(address.into())), ("key", token.map(Into::into))]));
    Ok(options)
}

/// Apprise's users may write a `#` before the number of an icon.
fn trim_icon(options: &mut toml::Table) {
    if let Some(toml::Value::String(icon)) = options.get_mut("icon") {
        *icon = icon.trim_start_matches(['#', ' ']).to_owned();
    }
}

/// A sound as a clock knows it.
fn sound(name: &str) -> Value {
    let category = if name.starts_with("alarm") { "alarms" } else { "notifications" };
    json!({ "category": category, "id": name })
}

#[async_trait]
impl Channel for LaMetric {
    fn check(&self) -> Result<(), ConfigError> {
        if self.server.is_some() == self.app.is_some() {
            return Err(ConfigError("either `server` or `app` must be set".to_owned()));
        }
        Ok(())
    }

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
        let frame = present(json!({ "icon": self.icon, "text": text }));
        let Some(server) = &self.server else { return self.tell_app(frame, cx).await };
        let note = json!({
            "priority": self.priority.unwrap_or(priority),
            "icon_type": self.icon_type.unwrap_or(icon_type),
            "model": present(json!({
                "cycles": self.cycles,
                "frames": [frame],
                "sound": self.sound.as_deref().map(sound),
            })),
        });
        let address = server.at(&["api", "v2", "device", "notifications"]);
        cx.post(&address).basic(USER, &self.key).json(&note).delivered(&KIND).await
    }
}

impl LaMetric {
    /// Puts `frame` in the place of what the app shows.
    async fn tell_app(&self, mut frame: Value, cx: &SendContext) -> Result<Receipt, SendError> {
        let Some(app) = &self.app else {
            return Err(SendError::permanent("neither `server` nor `app` is set"));
        };
        if let Some(frame) = frame.as_object_mut() {
            frame.insert("index".to_owned(), 0.into());
        }
        let request = cx.post(app).header("x-access-token", self.key.expose());
        let reply = request.json(&json!({ "frames": [frame] })).accepted().await?;
        if reply.text().is_some_and(|text| text.trim_start().starts_with('<')) {
            return Err(SendError::temporary("LaMetric answered without a verdict"));
        }
        Ok(Receipt::default())
    }
}
