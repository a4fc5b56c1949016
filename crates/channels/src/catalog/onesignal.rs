use std::collections::BTreeMap;

use base64::{Engine as _, prelude::BASE64_STANDARD};

use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<OneSignal>(About {
    name: "onesignal",
    title: "OneSignal",
    docs: "https://documentation.onesignal.com/reference/push-notification",
    transport: Transport::Http {
        accepted: r#"{"id":"458dcec4-cf53-11e3-add2-000c2940e62c","external_id":null}"#,
        verdict: Verdict { reason: &["/errors/0"], ..Verdict::id("/id") },
        refusals: &[
            Refusal::permanent(200, r#"{"id":"","errors":["All included players are not subscribed"]}"#),
            Refusal::permanent(400, r#"{"errors":["app_id not found. You may be missing a Content-Type: application/json header."]}"#),
            Refusal::temporary(429, r#"{"errors":["API rate limit exceeded"]}"#),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits { title: 250, body: 2_000, unit: Unit::Bytes, per_minute: None },
    edits: false,
    example: r##"
        app_id = "5eb5a37e-b458-11e3-ac11-000c2940e62c"
        key = "os_v2_app_example0key"
        to = ["#Subscribed Users"]
    "##,
})
.with_links()
.with_urls(Urls {
    schemes: &["onesignal"],
    examples: &[
        "onesignal://5eb5a37e@os_v2_app_example0key/#segment",
        "onesignal://template-1:5eb5a37e@os_v2_app_example0key/1dd608f2/@ada?subtitle=CI&language=de&+team=a&:build=7",
    ],
    read,
    ..Urls::NONE
});

/// Push notifications of your own app through [OneSignal](https://onesignal.com).
///
/// 1. In the app's settings open Keys & IDs; set `app_id` to its id, and `key` to an API key of the app.
/// 2. Set `to` to segments (`#Subscribed Users`), to people by your own ids (`@ada`), or to ids of subscriptions.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneSignal {
    /// Id of the app.
    app_id: String,
    /// API key of the app.
    key: Secret,
    /// Who gets the message: `#segment`, `@` and an external id, or the id of a subscription.
    to: Vec<String>,
    /// Id of a template whose texts are replaced.
    template: Option<String>,
    /// Second title, for iOS.
    subtitle: Option<String>,
    /// Language that the texts are sent as.
    #[serde(default = "english")]
    language: String,
    /// Data that the app gets, by name.
    #[serde(default)]
    data: BTreeMap<String, String>,
    /// Values that the template fills in, by name.
    #[serde(default)]
    values: BTreeMap<String, String>,
}

fn english() -> String {
    "en".to_owned()
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    url.ignore(&["image", "batch", "contents", "body"]);
    let decodes = url.yes("decode").unwrap_or_default();
    let values: toml::Table = url
        .parameters(':')
        .into_iter()
        .map(|(name, value)| (name, if decodes { plain(value) } else { value }.into()))
        .collect();
    let (template, app) = match (url.user.take(), url.password.take()) {
        (template, Some(app)) => (template, Some(app)),
        (app, None) => (None, app),
    };
    let app = url.parameter("app").or(app);
    let key = url.parameter("apikey").or_else(|| url.authority());
    let language = url.parameter("language").or_else(|| url.parameter("lang"));
    let to = match url.targets() {
        None => return Err(url.wrong("names nobody")),
        Some(toml::Value::Array(all)) => all,
        Some(one) => vec![one],
    };
    let data: toml::Table =
        url.parameters('+').into_iter().map(|(name, value)| (name, value.into())).collect();
    Ok(url::options([
        ("app_id", app.map(Into::into)),
        ("key", key.map(Into::into)),
        ("to", Some(to.into())),
        ("template", url.parameter("template").or(template).map(Into::into)),
        ("subtitle", url.parameter("subtitle").map(Into::into)),
        ("language", language.map(Into::into)),
        ("data", Some(data).filter(|all| !all.is_empty()).map(Into::into)),
        ("values", Some(values).filter(|all| !all.is_empty()).map(Into::into)),
    ]))
}

/// What `value` stands for: Base64 behind `b64:`, or itself.
fn plain(value: String) -> String {
    let decoded = value.strip_prefix("b64:").and_then(|coded| BASE64_STANDARD.decode(coded).ok());
    decoded.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or(value)
}

/// The ways to name those who get a message; a request takes one of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Segments,
    People,
    Subscriptions,
}

impl Way {
    fn of(to: &str) -> Self {
        match to {
            to if to.starts_with('#') => Self::Segments,
            to if to.starts_with('@') => Self::People,
            _ => Self::Subscriptions,
        }
    }
}

impl OneSignal {
    /// The ways that are needed, each once.
    fn ways(&self) -> Vec<Way> {
        let all = [Way::Segments, Way::People, Way::Subscriptions];
        all.into_iter().filter(|way| self.to.iter().any(|to| Way::of(to) == *way)).collect()
    }
}

#[async_trait]
impl Channel for OneSignal {
    fn targets(&self) -> Vec<Mark> {
        let mark = |way| match way {
            Way::Segments => "segments",
            Way::People => "people",
            Way::Subscriptions => "subscriptions",
        };
        self.ways().into_iter().map(|way| Mark::of(mark(way))).collect()
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.to.is_empty() {
            return Err(ConfigError("`to` is empty, expected one or several".to_owned()));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let way = self.ways().get(cx.target).copied().unwrap_or(Way::Subscriptions);
        let named = self.to.iter().filter(|to| Way::of(to) == way);
        let named: Vec<_> = named.map(|to| to.trim_start_matches(['#', '@'])).collect();
        let text = |text: &str| json!({ self.language.as_str(): text });
        let notification = json!({
            "app_id": self.app_id,
            "headings": message.title.as_deref().map(text),
            "subtitle": self.subtitle.as_deref().map(text),
            "contents": text(&KIND.about.dialect.body(message)),
            "url": message.link,
            "template_id": self.template,
            "data": (!self.data.is_empty()).then_some(&self.data),
            "custom_data": (!self.values.is_empty()).then_some(&self.values),
            "included_segments": (way == Way::Segments).then_some(&named),
            "include_aliases": (way == Way::People).then(|| json!({ "external_id": named })),
            "include_subscription_ids": (way == Way::Subscriptions).then_some(&named),
            "target_channel": (way == Way::People).then_some("push"),
            "idempotency_key": cx.uuid(),
        });
        // Keys of the old kind are no `Key` yet.
        let key = self.key.expose();
        let scheme = if key.starts_with("os_v2_") { "Key" } else { "Basic" };
        let address =
            Address::parse("https://api.onesignal.com/notifications").expect("a constant address");
        let request = cx.post(&address).header("authorization", &format!("{scheme} {key}"));
        request.json(&present(notification)).delivered(&KIND).await
    }
}
