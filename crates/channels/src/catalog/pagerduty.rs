use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    alert::{self, Step},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<PagerDuty>(About {
    name: "pagerduty",
    title: "PagerDuty",
    docs: "https://developer.pagerduty.com/docs/events-api-v2/trigger-events/",
    transport: Transport::Http {
        accepted: r#"{"status":"success","message":"Event processed","dedup_key":"samplekeyhere"}"#,
        verdict: Verdict {
            id: Some("/dedup_key"),
            reason: &["/errors/0", "/message"],
            ..Verdict::field("/status", &["success"])
        },
        refusals: &[
            Refusal::permanent(400, r#"{"status":"invalid event","message":"Event object is invalid","errors":["Length of 'routing_key' is incorrect (should be 32 characters)"]}"#),
            Refusal::permanent(200, r#"{"status":"invalid event","message":"Event object is invalid","errors":["'payload.source' is missing or blank"]}"#),
            Refusal::temporary(429, r#"{"status":"throttle exceeded","message":"Requests for this service are arriving too quickly. Please retry later."}"#),
        ],
    },
    dialect: Dialect::Plain,
    // The text goes into the details, for which there is room.
    limits: Limits { title: SUMMARY_LIMIT, ..Limits::NONE },
    edits: true,
    example: r#"
        key = "e93facc04764012d7bfb002500d5d1a6"
        component = "checkout"
    "#,
})
.with_links()
.with_urls(Urls {
    schemes: &["pagerduty"],
    examples: &[
        "pagerduty://e93facc04764012d7bfb002500d5d1a6@u+apikey",
        "pagerduty://e93facc04764012d7bfb002500d5d1a6@u+apikey/shop/checkout?region=eu&group=web&class=deploy&severity=error&click=https://ci.example.com&+team=a",
    ],
    read,
    ..Urls::NONE
});

/// The longest summary, in characters.
const SUMMARY_LIMIT: usize = 1_024;

/// Alerts in [PagerDuty](https://www.pagerduty.com), through its Events API.
///
/// 1. Open the service that is to be alerted, then its Integrations, and add one of the type Events API V2.
/// 2. Set `key` to its integration key, which has 32 characters. An account in Europe also needs `region = "eu"`.
///
/// The steps of a run are one alert: its `dedup_key` is the run's id, and a run that ends well resolves it. Every other
/// message is an alert of its own, unless `dedup_key` is set. An open alert calls nobody a second time, so route progress
/// elsewhere and failures here.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PagerDuty {
    /// Integration key of the service.
    key: Secret,
    /// Where the account is: `us` or `eu`.
    #[serde(default)]
    #[schemars(extend("default" = "us"))]
    region: Region,
    /// What is affected, instead of the project that reports.
    source: Option<String>,
    /// Part of it that is affected.
    component: Option<String>,
    /// Group that it belongs to.
    group: Option<String>,
    /// Kind of the event, such as `deploy`.
    class: Option<String>,
    /// Severity of every alert, instead of one that follows the level.
    severity: Option<Severity>,
    /// Key of the one alert that everything goes to, instead of one for each message or run.
    dedup_key: Option<String>,
    /// Address to link to where a message has none.
    link: Option<String>,
    /// More facts to show with every alert, by name.
    #[serde(default)]
    details: BTreeMap<String, String>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Region {
    #[default]
    Us,
    Eu,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Info,
    Warning,
    Error,
    Critical,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // Events need no key of the REST API, which Apprise asks for. What a message does to its alert follows from the
    // run that it is a step of.
    url.ignore(&["apikey", "action", "image"]);
    let _rest_key = url.authority();
    let key = url.parameter("integrationkey").or_else(|| url.user.take());
    let key = key.ok_or_else(|| url.wrong("names no integration key before the `@`"))?;
    let mut path = url.rest().into_iter();
    let source = url.parameter("source").or_else(|| path.next());
    let component = url.parameter("component").or_else(|| path.next());
    url.path = path.collect();
    let details: toml::Table =
        url.parameters('+').into_iter().map(|(name, value)| (name, value.into())).collect();
    Ok(url::options([
        ("key", Some(key.into())),
        ("region", url.parameter("region").map(Into::into)),
        ("source", source.map(Into::into)),
        ("component", component.map(Into::into)),
        ("group", url.parameter("group").map(Into::into)),
        ("class", url.parameter("class").map(Into::into)),
        ("severity", url.parameter("severity").map(Into::into)),
        ("dedup_key", url.parameter("dedup").map(Into::into)),
        ("link", url.parameter("click").map(Into::into)),
        ("details", Some(details).filter(|all| !all.is_empty()).map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for PagerDuty {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let host = match self.region {
            Region::Us => "https://events.pagerduty.com/v2/enqueue",
            Region::Eu => "https://events.eu.pagerduty.com/v2/enqueue",
        };
        let action = match alert::step(message, cx) {
            Step::Open | Step::Add => "trigger",
            Step::Close => "resolve",
        };
        let link = message.link.as_ref().or(self.link.as_ref());
        let event = json!({
            "routing_key": self.key.expose(),
            "event_action": action,
            "dedup_key": alert::key(self.dedup_key.as_deref(), message, cx),
            "payload": self.payload(message),
            "links": link.into_iter().map(|link| json!({ "href": link })).collect::<Vec<_>>(),
            "client": "Deskbell",
        });
        let address = Address::parse(host).expect("a constant address");
        cx.post(&address).json(&event).delivered(&KIND).await
    }
}

impl PagerDuty {
    fn payload(&self, message: &Message) -> Value {
        let severity = self.severity.unwrap_or(match message.level {
            Level::Debug | Level::Info | Level::Notice => Severity::Info,
            Level::Warning => Severity::Warning,
            Level::Error => Severity::Error,
            Level::Critical | Level::Alert | Level::Emergency => Severity::Critical,
        });
        let mut details: BTreeMap<&str, String> =
            self.details.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        details.insert("message", KIND.about.dialect.body(message));
        present(json!({
            "summary": alert::summary(message, SUMMARY_LIMIT),
            "severity": severity,
            "source": self.source.as_deref().unwrap_or_else(|| alert::source(message)),
            "timestamp": message.at.to_string(),
            "component": self.component,
            "group": self.group,
            "class": self.class,
            "custom_details": details,
        }))
    }
}
