use std::collections::BTreeMap;

use crate::{
    alert::{self, Step},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<IncidentIo>(About {
    name: "incidentio",
    title: "incident.io",
    docs: "https://docs.incident.io/api-reference/alert-events-v2/createhttp",
    transport: Transport::Http {
        accepted: r#"{"deduplication_key":"nightly-7","message":"Event accepted for processing","status":"success"}"#,
        verdict: Verdict {
            id: Some("/deduplication_key"),
            code: Some("/errors/0/code"),
            reason: &["/errors/0/message", "/message"],
            wait: Wait::Until("/rate_limit/retry_after"),
            ..Verdict::field("/status", &["success"])
        },
        // As <https://docs.incident.io/api-reference/introduction> has them.
        refusals: &[
            Refusal::permanent(422, r#"{"type":"validation_error","status":422,"request_id":"631766c4-4afd-4803-997c-cd700928fa4b","errors":[{"code":"is_required","message":"A title is required","source":{"field":"title"}}]}"#),
            Refusal::after(42, 429, r#"{"type":"too_many_requests","status":429,"request_id":"b839a403-7704-41c1-bf6a-39a2d68caefa","rate_limit":{"name":"api_key_name","limit":1200,"remaining":0,"retry_after":"Fri, 02 Jan 2026 03:04:47 UTC"},"errors":[{"code":"too_many_requests","message":"Too many requests. We recommend exponential backoff."}]}"#),
        ],
    },
    dialect: Dialect::Markdown,
    limits: Limits::NONE,
    edits: true,
    example: r#"
        source = "01GW2G3V0S59R238FAHPDS1R66"
        token = "dGhpcyBpcyBhbiBleGFtcGxl"
    "#,
})
.with_links()
.with_urls(Urls {
    schemes: &["incidentio"],
    native: &["api.incident.io/v2/alert_events/http/"],
    examples: &[
        "incidentio://01GW2G3V0S59R238FAHPDS1R66/dGhpcyBpcyBhbiBleGFtcGxl",
        "incidentio://01GW2G3V0S59R238FAHPDS1R66/dGhpcyBpcyBhbiBleGFtcGxl?dedup=shop&click=https://ci.example.com&+team=a",
    ],
    read,
    ..Urls::NONE
});

/// Alerts in [incident.io](https://incident.io).
///
/// 1. Create an alert source of the type HTTP.
/// 2. Set `source` to the last part of the address it gives you, and `token` to its token.
///
/// The steps of a run are one alert: its `deduplication_key` is the run's id, and a run that ends well resolves it. Every
/// other message is an alert of its own, unless `deduplication_key` is set. What comes while an alert is firing
/// [makes no second one](https://docs.incident.io/alerts/deduplication) and calls nobody, so route progress elsewhere and
/// failures here.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IncidentIo {
    /// Id of the alert source.
    source: String,
    /// Token of the alert source.
    token: Secret,
    /// Key of the one alert that everything goes to, instead of one for each message or run.
    deduplication_key: Option<String>,
    /// Address to link to where a message has none.
    link: Option<String>,
    /// More facts to send with every alert, by name.
    #[serde(default)]
    metadata: BTreeMap<String, String>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // What a message does to its alert follows from the run that it is a step of.
    url.ignore(&["action"]);
    let (source, token) = if url.is_native() {
        let source = url.path.pop();
        url.rest();
        (source, url.parameter("token"))
    } else {
        let source = url.parameter("source").or_else(|| url.authority());
        let token = url.parameter("token");
        (source, if token.is_some() { token } else { Some(url.next("token")?) })
    };
    let metadata: toml::Table =
        url.parameters('+').into_iter().map(|(name, value)| (name, value.into())).collect();
    let mut options = url.table(&[("deduplication_key", "dedup"), ("link", "click")]);
    options.extend(url::options([
        ("source", source.map(Into::into)),
        ("token", token.map(Into::into)),
        ("metadata", Some(metadata).filter(|all| !all.is_empty()).map(Into::into)),
    ]));
    Ok(options)
}

#[async_trait]
impl Channel for IncidentIo {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let status = match alert::step(message, cx) {
            Step::Open | Step::Add => "firing",
            Step::Close => "resolved",
        };
        let mut metadata: BTreeMap<&str, &str> =
            self.metadata.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        // What it makes of a level is decided there, among the attributes of the source.
        metadata.entry("level").or_insert(message.level.as_str());
        metadata.entry("source").or_insert(alert::source(message));
        let event = json!({
            "title": alert::summary(message, 1_000),
            "description": KIND.about.dialect.body(message),
            "status": status,
            "deduplication_key": alert::key(self.deduplication_key.as_deref(), message, cx),
            "source_url": message.link.as_ref().or(self.link.as_ref()),
            "metadata": metadata,
        });
        let address = Address::parse("https://api.incident.io/v2/alert_events/http")
            .expect("a constant address")
            .at(&[&self.source]);
        cx.post(&address).bearer(Some(&self.token)).json(&present(event)).delivered(&KIND).await
    }
}
