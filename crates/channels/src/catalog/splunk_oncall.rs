use crate::{
    alert::{self, Step},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<SplunkOnCall>(About {
    name: "splunk_oncall",
    title: "Splunk On-Call",
    docs: "https://help.victorops.com/knowledge-base/rest-endpoint-integration-guide/",
    transport: Transport::Http {
        accepted: r#"{"result":"success","entity_id":"nightly-7"}"#,
        verdict: Verdict {
            id: Some("/entity_id"),
            reason: &["/message", "/messages/0"],
            ..Verdict::field("/result", &["success"])
        },
        refusals: &[
            Refusal::permanent(200, r#"{"result":"failure","message":"Invalid JSON"}"#),
            Refusal::permanent(404, ""),
            Refusal::temporary(429, ""),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits { title: TITLE_LIMIT, ..Limits::NONE },
    edits: true,
    example: r#"
        key = "558e7ebc-4b1d-4f0a-9c3e-7a9f5f6d2c1e"
        routing_key = "platform"
    "#,
})
.with_links()
.with_urls(Urls {
    schemes: &["splunk", "victorops"],
    native: &["alert.victorops.com/integrations/generic/"],
    examples: &[
        "splunk://platform@558e7ebc-4b1d-4f0a-9c3e-7a9f5f6d2c1e",
        "victorops://platform@558e7ebc-4b1d-4f0a-9c3e-7a9f5f6d2c1e/shop?action=map",
    ],
    read,
    ..Urls::NONE
});

/// The longest title, in characters. It is not documented; that of the other services is kept.
const TITLE_LIMIT: usize = 1_024;

/// Alerts in Splunk On-Call, which was VictorOps.
///
/// 1. Under Integrations turn on REST Generic and set `key` to the part of its address before `$routing_key`.
/// 2. Under Settings, Routing Keys, choose who is called and set `routing_key` to that key.
///
/// Errors and worse open an incident, which calls; warnings do so where Settings, Alert Configuration says it; what is
/// less only stands [on the timeline](https://help.splunk.com/en/splunk-observability-cloud/splunk-on-call/alerts/incident-fields-glossary).
/// The steps of a run are one incident: its `entity_id` is the run's id, and a run that ends well resolves it. Every other
/// message is an incident of its own, unless `entity_id` is set. An open incident calls nobody a second time, so route
/// progress elsewhere and failures here.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SplunkOnCall {
    /// Key of the REST integration.
    key: Secret,
    /// Routing key.
    routing_key: String,
    /// Key of the one incident that everything goes to, instead of one for each message or run.
    entity_id: Option<String>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // What a message does to its incident follows from its level and from the run that it is a step of.
    url.ignore(&["action"]);
    if !url.parameters(':').is_empty() {
        return Err(url.wrong("maps types to actions, which follow from the levels here"));
    }
    let (key, route) = if url.is_native() {
        for part in ["integrations", "generic", "version", "alert"] {
            url.next(part)?;
        }
        (Some(url.next("key")?), Some(url.next("routing key")?))
    } else {
        let key = url.parameter("apikey").or_else(|| url.authority());
        let route = url.parameter("routing_key").or_else(|| url.parameter("route"));
        (key, route.or_else(|| url.user.take()))
    };
    let entity = url.parameter("entity_id").or_else(|| {
        let path = url.rest().join("/");
        (!path.is_empty()).then_some(path)
    });
    Ok(url::options([
        ("key", key.map(Into::into)),
        ("routing_key", route.map(Into::into)),
        ("entity_id", entity.map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for SplunkOnCall {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let kind = match (alert::step(message, cx), message.level) {
            (Step::Close, _) => "RECOVERY",
            (_, Level::Debug | Level::Info | Level::Notice) => "INFO",
            (_, Level::Warning) => "WARNING",
            _ => "CRITICAL",
        };
        let alert = json!({
            "message_type": kind,
            "entity_id": alert::key(self.entity_id.as_deref(), message, cx),
            "entity_display_name": alert::summary(message, TITLE_LIMIT),
            "state_message": KIND.about.dialect.body(message),
            "monitoring_tool": "Deskbell",
            "alert_url": message.link,
        });
        let address =
            Address::parse("https://alert.victorops.com/integrations/generic/20131114/alert")
                .expect("a constant address")
                .at(&[self.key.expose(), &self.routing_key]);
        cx.post(&address).json(&present(alert)).delivered(&KIND).await
    }
}
