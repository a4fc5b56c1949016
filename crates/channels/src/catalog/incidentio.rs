use std::collections::BTreeMap;

use crate::{
    alert::{self, Step},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<IncidentIo>(About {
    name: "incidentio",
    title: "incident.io",
    docs: "https://api-docs.incident.io/tag/Alert-Events-V2",
    transport: Transport::Http {
        accepted: r#"{"deduplication_key":"nightly-7","message":"Event accepted for processing","status":"success"}"#,
        verdict: Verdict { reason: &["/errors/0/message", "/message"], ..Verdict::STATUS },
        refusals: &[
            Refusal::permanent(401, r#"{"type":"authentication_error","status":401,"errors":[{"code":"invalid_api_key","message":"Invalid API key"}]}"#),
            Refusal::permanent(404, r#"{"type":"not_found","status":404,"errors":[{"code":"not_found","message":"Not found"}]}"#),
            Refusal::temporary(429, ""),
            Refusal::temporary(200, "<!doctype html><title>Log in</title>"),
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
/// The steps of a run are one alert, with the run's id as its key, and a run that ends well resolves it.
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
        let key = alert::key(self.deduplication_key.as_deref(), message, cx);
        let mut metadata: BTreeMap<&str, &str> =
            self.metadata.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        // What it makes of a level is decided there, among the attributes of the source.
        metadata.entry("level").or_insert(message.level.as_str());
        metadata.entry("source").or_insert(alert::source(message));
        let event = json!({
            "title": alert::summary(message, 1_000),
            "description": KIND.about.dialect.body(message),
            "status": status,
            "deduplication_key": key,
            "source_url": message.link.as_ref().or(self.link.as_ref()),
            "metadata": metadata,
        });
        let address = Address::parse("https://api.incident.io/v2/alert_events/http")
            .expect("a constant address")
            .at(&[&self.source]);
        cx.post(&address).bearer(Some(&self.token)).json(&present(event)).taken(&KIND).await?;
        Ok(Receipt { message_id: Some(key) })
    }
}
