use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Prowl>(About {
    name: "prowl",
    title: "Prowl",
    docs: "https://www.prowlapp.com/api.php",
    transport: Transport::Http {
        accepted: r#"<?xml version="1.0" encoding="UTF-8"?><prowl><success code="200" remaining="999" resetdate="1767326645"/></prowl>"#,
        verdict: Verdict { success: Success::Holding("<success code=\"200\""), ..Verdict::STATUS },
        refusals: &[Refusal::permanent(
            401,
            r#"<?xml version="1.0" encoding="UTF-8"?><prowl><error code="401">Invalid API key</error></prowl>"#,
        )],
    },
    dialect: Dialect::Plain,
    limits: Limits { title: 1_000, body: 10_000, unit: Unit::Bytes, per_minute: None },
    edits: false,
    example: r#"
        key = "8f14e45fceea167a5a36dedd4bea25438f14e45f"
    "#,
})
.with_links_up_to(URL)
.with_urls(Urls {
    schemes: &["prowl"],
    examples: &[
        "prowl://8f14e45fceea167a5a36dedd4bea25438f14e45f",
        "prowl://8f14e45fceea167a5a36dedd4bea25438f14e45f/a36dedd4bea25438f14e45f8f14e45fceea167a5?priority=high",
    ],
    read,
    ..Urls::NONE
});

/// Push notifications to iPhones through [Prowl](https://www.prowlapp.com).
///
/// 1. Log in on the site and create an API key.
/// 2. Set `key` to it.
///
/// Prowl takes 1,000 messages an hour from one address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Prowl {
    /// API key. Several get the message at once.
    key: Targets<Secret>,
    /// Key of a provider with a limit of its own.
    provider_key: Option<Secret>,
    /// Priority whatever the level, from -2 to 2.
    priority: Option<i8>,
}

/// The longest address, in bytes.
const URL: usize = 512;

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let key = url.authority().ok_or_else(|| url.wrong("names no key"))?;
    let provider = if url.path.is_empty() { None } else { Some(url.next("key")?) };
    let priority = url.parameter("priority").map(|priority| match priority.as_str() {
        "verylow" | "low" | "l" | "-2" => Ok(-2),
        "moderate" | "m" | "-1" => Ok(-1),
        "normal" | "n" | "0" => Ok(0),
        "high" | "h" | "1" => Ok(1),
        "emergency" | "e" | "2" => Ok(2),
        _ => Err(url.wrong("has an unknown `priority`")),
    });
    Ok(url::options([
        ("key", Some(key.into())),
        ("provider_key", provider.map(Into::into)),
        ("priority", priority.transpose()?.map(toml::Value::from)),
    ]))
}

#[async_trait]
impl Channel for Prowl {
    fn check(&self) -> Result<(), ConfigError> {
        if self.priority.is_some_and(|priority| !(-2..=2).contains(&priority)) {
            return Err(ConfigError("`priority` is not right; expected -2 to 2".to_owned()));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let priority = self.priority.unwrap_or(match message.level {
            Level::Debug => -2,
            Level::Info | Level::Notice => 0,
            Level::Warning | Level::Error => 1,
            Level::Critical | Level::Alert | Level::Emergency => 2,
        });
        let keys: Vec<_> = self.key.iter().map(Secret::expose).collect();
        let (keys, priority) = (keys.join(","), priority.to_string());
        let body = KIND.about.dialect.body(message);
        let mut fields = vec![
            ("apikey", keys.as_str()),
            ("application", "Deskbell"),
            ("description", &body),
            ("priority", &priority),
        ];
        fields.extend(message.title.as_deref().map(|title| ("event", title)));
        fields.extend(message.link.as_deref().map(|link| ("url", link)));
        fields.extend(self.provider_key.as_ref().map(|key| ("providerkey", key.expose())));
        let service =
            Address::parse("https://api.prowlapp.com/publicapi/add").expect("a constant address");
        cx.post(&service).form(&fields).delivered(&KIND).await
    }
}
