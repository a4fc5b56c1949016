use crate::{genie, prelude::*};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Opsgenie>(About {
    name: "opsgenie",
    title: "Opsgenie",
    docs: "https://docs.opsgenie.com/docs/alert-api",
    transport: genie::TRANSPORT,
    dialect: Dialect::Plain,
    limits: genie::LIMITS,
    edits: true,
    example: r##"
        key = "8b799edf-6f98-4d3a-9be7-2862fb4e5752"
        responders = ["#platform"]
    "##,
})
.with_urls(Urls {
    schemes: &["opsgenie"],
    examples: &[
        "opsgenie://8b799edf-6f98-4d3a-9be7-2862fb4e5752",
        "opsgenie://ada@8b799edf-6f98-4d3a-9be7-2862fb4e5752/#team/@ada?region=eu&priority=p2&tags=a,b&entity=shop&+d=v",
    ],
    read,
    ..Urls::NONE
});

/// Alerts in [Opsgenie](https://www.atlassian.com/software/opsgenie), which closes on 5 April 2027; Jira Service
/// Management goes on, with the kind `jira_jsm`.
///
/// 1. In the team's settings open Integrations and add an API integration that may create alerts.
/// 2. Set `key` to its API key. An account in Europe also needs `api = "https://api.eu.opsgenie.com"`.
///
/// The steps of a run are one alert: its `alias` is the run's id, later steps are notes, and a run that ends well closes
/// it. Every other message is an alert of its own, unless `alias` is set. An open alert calls nobody a second time, so
/// route progress elsewhere and failures here.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
struct Opsgenie(genie::Genie);

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let api = match url.parameter("region").as_deref() {
        None | Some("us") => None,
        Some("eu") => Some("https://api.eu.opsgenie.com"),
        Some(_) => return Err(url.wrong("has a `region` other than `us` and `eu`")),
    };
    let mut options = genie::read(url)?;
    options.extend(api.map(|api| ("api".to_owned(), api.into())));
    Ok(options)
}

#[async_trait]
impl Channel for Opsgenie {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        self.0.tell("https://api.opsgenie.com", &KIND, message, cx).await
    }
}
