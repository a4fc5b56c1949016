use std::collections::BTreeMap;

use crate::{
    alert::{self, Step},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Ilert>(About {
    name: "ilert",
    title: "ilert",
    docs: "https://docs.ilert.com/integrations/inbound-integrations/api",
    transport: Transport::Http {
        accepted: "",
        // 202; what stands in the body is not documented.
        verdict: Verdict::NO_PAGE,
        refusals: &[
            // `RestError` of its OpenAPI description, <https://docs.ilert.com/developer-docs/rest-api/api-reference>.
            Refusal::permanent(404, r#"{"status":404,"message":"The integration key is invalid"}"#),
            Refusal::temporary(429, ""),
        ],
    },
    dialect: Dialect::Plain,
    // Of one integration key: <https://docs.ilert.com/developer-docs/rest-api/alertsource-throttle>.
    limits: Limits { title: SUMMARY_LIMIT, per_minute: Some(50), ..Limits::NONE },
    edits: true,
    example: r#"
        key = "il1api0220cfc8ea5c7a45c1"
    "#,
})
.with_links()
.with_urls(Urls {
    schemes: &["ilert"],
    examples: &[
        "ilert://il1api0220cfc8ea5c7a45c1",
        "ilert://il1api0220cfc8ea5c7a45c1?priority=low&dedup=shop&route=web&click=https://ci.example.com&+team=a",
    ],
    read,
    ..Urls::NONE
});

/// The longest summary, in characters. It is not documented; that of the other services is kept.
const SUMMARY_LIMIT: usize = 1_024;

/// Alerts in [ilert](https://www.ilert.com).
///
/// 1. Create an alert source of the type API and set `key` to its integration key.
///
/// The steps of a run are one alert: its `alertKey` is the run's id, and a run that ends well resolves it. Every other
/// message is an alert of its own, unless `alert_key` is set. What comes to an open alert goes into its log and calls
/// nobody a second time, so route progress elsewhere and failures here.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Ilert {
    /// Integration key of the alert source.
    key: Secret,
    /// Priority of every alert, `high` or `low`, instead of one that follows the level.
    priority: Option<Priority>,
    /// Key of the one alert that everything goes to, instead of one for each message or run.
    alert_key: Option<String>,
    /// Key by which ilert chooses who is called.
    routing_key: Option<String>,
    /// Address to link to where a message has none.
    link: Option<String>,
    /// Labels of every alert, by name.
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Priority {
    High,
    Low,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // What a message does to its alert follows from the run that it is a step of.
    url.ignore(&["action", "image"]);
    let key = url.parameter("key").or_else(|| url.authority());
    let labels: toml::Table =
        url.parameters('+').into_iter().map(|(name, value)| (name, value.into())).collect();
    let mut options = url.table(&[
        ("alert_key", "dedup"),
        ("routing_key", "route"),
        ("link", "click"),
        ("priority", "priority"),
    ]);
    options.extend(url::options([
        ("key", key.map(Into::into)),
        ("labels", Some(labels).filter(|all| !all.is_empty()).map(Into::into)),
    ]));
    Ok(options)
}

#[async_trait]
impl Channel for Ilert {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let event = match alert::step(message, cx) {
            Step::Open | Step::Add => "ALERT",
            Step::Close => "RESOLVE",
        };
        let priority = self.priority.unwrap_or(match message.level {
            Level::Debug | Level::Info | Level::Notice | Level::Warning => Priority::Low,
            Level::Error | Level::Critical | Level::Alert | Level::Emergency => Priority::High,
        });
        let key = alert::key(self.alert_key.as_deref(), message, cx);
        let link = message.link.as_ref().or(self.link.as_ref());
        let body = json!({
            "integrationKey": self.key.expose(),
            "eventType": event,
            "summary": alert::summary(message, SUMMARY_LIMIT),
            "details": KIND.about.dialect.body(message),
            "alertKey": key,
            "priority": if matches!(priority, Priority::High) { "HIGH" } else { "LOW" },
            "routingKey": self.routing_key,
            "links": link.map(|link| [json!({ "href": link })]),
            "labels": (!self.labels.is_empty()).then_some(&self.labels),
        });
        let address =
            Address::parse("https://api.ilert.com/api/events").expect("a constant address");
        cx.post(&address).json(&present(body)).delivered(&KIND).await?;
        Ok(Receipt { message_id: Some(key) })
    }
}
