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
    examples: &["psafers://7Hd2kQm9Zt4wXc8Lp3Rv", "psafer://7Hd2kQm9Zt4wXc8Lp3Rv/52/gs23?priority=high&sound=8&vibration=2", "psafers://7Hd2kQm9Zt4wXc8Lp3Rv?sound=windchime"],
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
        ("sound", sound(url)?.map(Into::into)),
        ("vibration", url.number("vibration")?.map(Into::into)),
    ]))
}

/// What Apprise calls the sounds of <https://www.pushsafer.com/en/pushapi>, in its order: the start of a name is enough.
#[rustfmt::skip]
const SOUNDS: &[(&str, i64)] = &[
    ("silent", 0),
    ("ahem", 1),
    ("applause", 2),
    ("arrow", 3),
    ("baby", 4),
    ("bell", 5),
    ("bicycle", 6),
    ("bike", 6),
    ("boing", 7),
    ("buzzer", 8),
    ("camera", 9),
    ("carhorn", 10),
    ("horn", 10),
    ("cashregister", 11),
    ("chime", 12),
    ("creakydoor", 13),
    ("cuckooclock", 14),
    ("cuckoo", 14),
    ("disconnect", 15),
    ("dog", 16),
    ("doorbell", 17),
    ("fanfare", 18),
    ("gunshot", 19),
    ("honk", 20),
    ("jawharp", 21),
    ("morse", 22),
    ("electric", 23),
    ("radiotuner", 24),
    ("sirens", 25),
    ("militarytrumpets", 26),
    ("military", 26),
    ("trumpets", 26),
    ("ufo", 27),
    ("whahwhah", 28),
    ("whah", 42),
    ("goodye", 29),
    ("goodbye", 29),
    ("hello", 30),
    ("no", 31),
    ("okay", 32),
    ("ok", 32),
    ("ooohhhweee", 33),
    ("warn", 34),
    ("warning", 34),
    ("welcome", 35),
    ("yeah", 36),
    ("yes", 37),
    ("beep", 38),
    ("beep1", 38),
    ("weee", 39),
    ("wee", 39),
    ("cutinout", 40),
    ("flickglass", 41),
    ("laser", 43),
    ("windchime", 44),
    ("echo", 45),
    ("zipper", 46),
    ("hihat", 47),
    ("beep2", 48),
    ("beep3", 49),
    ("beep4", 50),
    ("alarmarmed", 51),
    ("armed", 51),
    ("alarmdisarmed", 52),
    ("disarmed", 52),
    ("backupready", 53),
    ("dooropen", 55),
    ("dopen", 55),
    ("doorclosed", 54),
    ("dclosed", 54),
    ("windowopen", 57),
    ("wopen", 57),
    ("windowclosed", 56),
    ("wclosed", 56),
    ("lighton", 58),
    ("lon", 58),
    ("lightoff", 59),
    ("loff", 59),
    ("doorbellrang", 60),
];

/// Takes the parameter `sound`, a number or a name.
fn sound(url: &mut ServiceUrl) -> Result<Option<i64>, ConfigError> {
    let Some(sound) = url.parameter("sound") else { return Ok(None) };
    if let Ok(number) = sound.parse() {
        return Ok(Some(number));
    }
    let sound = sound.trim().to_ascii_lowercase();
    let known = SOUNDS.iter().find(|(name, _)| !sound.is_empty() && name.starts_with(&sound));
    known.map(|(_, number)| Some(*number)).ok_or_else(|| url.wrong("has an unknown `sound`"))
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
