use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Pushsafer>(About {
    name: "pushsafer",
    title: "Pushsafer",
    docs: "https://www.pushsafer.com/en/pushapi",
    transport: Transport::Http {
        accepted: r#"{"status":1,"success":"message transmitted","available":983,"message_ids":"18265430:34011"}"#,
        verdict: Verdict {
            id: Some("/message_ids"),
            reason: &["/error"],
            ..Verdict::field("/status", &["1"])
        },
        refusals: &[
            Refusal::permanent(200, r#"{"status":250,"error":"private key is not valid"}"#),
            Refusal::temporary(429, ""),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits { title: 250, body: 5_000, unit: Unit::Characters, per_minute: None },
    edits: false,
    example: r#"
        key = "7Hd2kQm9Zt4wXc8Lp3Rv"
    "#,
})
.with_links()
.with_urls(Urls {
    schemes: &["psafer", "psafers"],
    examples: &["psafers://7Hd2kQm9Zt4wXc8Lp3Rv", "psafer://7Hd2kQm9Zt4wXc8Lp3Rv/52/gs23?priority=high&sound=8&vibration=2"],
    read,
    ..Urls::NONE
});

/// Push notifications through [Pushsafer](https://www.pushsafer.com).
///
/// 1. Install the app, log in and register the device.
/// 2. Set `key` to the private key that the web page shows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pushsafer {
    /// Private key, or the alias key of an application.
    key: Secret,
    /// Id of a device or, with `gs` before it, of a device group; without it all devices get the message. Several get
    /// a message each.
    device: Option<Targets<String>>,
    /// Priority of every message, from -2 to 2, instead of one that follows the level.
    priority: Option<i8>,
    /// Number of the sound, from 0 (none) to 62, instead of the one chosen on the device.
    sound: Option<u8>,
    /// How often the device vibrates, from 1 to 3, instead of what is chosen there.
    vibration: Option<u8>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    Ok(url::options([
        ("key", url.authority().map(Into::into)),
        ("device", url.targets()),
        ("priority", url.priority()?.map(Into::into)),
        ("sound", url.number("sound")?.map(Into::into)),
        ("vibration", url.number("vibration")?.map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for Pushsafer {
    fn targets(&self) -> Vec<Mark> {
        Targets::marks_or_one(self.device.as_ref())
    }

    fn check(&self) -> Result<(), ConfigError> {
        let wrong = |what: &str| Err(ConfigError(what.to_owned()));
        match self {
            Self { priority: Some(..=-3 | 3..), .. } => {
                wrong("`priority` is out of range, expected -2 to 2")
            }
            Self { sound: Some(63..), .. } => wrong("`sound` is out of range, expected 0 to 62"),
            Self { vibration: Some(0 | 4..), .. } => {
                wrong("`vibration` is out of range, expected 1 to 3")
            }
            _ => Ok(()),
        }
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let (priority, colour) = match message.level {
            Level::Debug => (-1, "#808080"),
            Level::Info | Level::Notice => (0, "#3AA3E3"),
            Level::Warning => (1, "#CACF29"),
            Level::Error => (1, "#A32037"),
            Level::Critical | Level::Alert | Level::Emergency => (2, "#A32037"),
        };
        let priority = self.priority.unwrap_or(priority).to_string();
        let (sound, vibration) = (
            self.sound.map(|number| number.to_string()),
            self.vibration.map(|times| times.to_string()),
        );
        let body = KIND.about.dialect.body(message);
        let fields = [
            ("k", Some(self.key.expose())),
            ("t", message.title.as_deref()),
            ("m", Some(body.as_str())),
            ("d", Some(self.device.as_ref().map_or("a", |device| device.at(cx).as_str()))),
            ("pr", Some(priority.as_str())),
            ("c", Some(colour)),
            ("s", sound.as_deref()),
            ("v", vibration.as_deref()),
            ("u", message.link.as_deref()),
        ];
        let fields: Vec<_> =
            fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let address = Address::parse("https://www.pushsafer.com/api").expect("a constant address");
        cx.post(&address).form(&fields).delivered(&KIND).await
    }
}
