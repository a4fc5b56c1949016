use crate::{genie, prelude::*};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<JiraJsm>(About {
    name: "jira_jsm",
    title: "Jira Service Management",
    docs: "https://developer.atlassian.com/cloud/jira/service-desk-ops/rest/v1/api-group-integration-events",
    transport: genie::TRANSPORT,
    dialect: Dialect::Plain,
    limits: genie::LIMITS,
    edits: true,
    example: r##"
        key = "8b799edf-6f98-4d3a-9be7-2862fb4e5752"
        responders = ["#4513b7ea-3b91-438f-b7e4-e3e54af9147c"]
    "##,
})
.with_urls(Urls {
    schemes: &["jira"],
    examples: &[
        "jira://8b799edf-6f98-4d3a-9be7-2862fb4e5752",
        "jira://ada@8b799edf-6f98-4d3a-9be7-2862fb4e5752/#4513b7ea-3b91-438f-b7e4-e3e54af9147c?priority=1&alias=shop",
    ],
    read,
    ..Urls::NONE
});

/// Alerts in the operations of [Jira Service Management](https://www.atlassian.com/software/jira/service-management).
///
/// 1. In the team's Operations open Integrations and add an API integration that may create alerts.
/// 2. Set `key` to its API key.
/// 3. To call somebody else than the team of the integration, set `responders`; Jira knows them by their ids.
///
/// The steps of a run are one alert: its `alias` is the run's id, later steps are notes, and a run that ends well closes
/// it. Every other message is an alert of its own, unless `alias` is set. An open alert calls nobody a second time, so
/// route progress elsewhere and failures here.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
struct JiraJsm(genie::Genie);

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // One address serves all regions.
    url.ignore(&["region"]);
    genie::read(url)
}

#[async_trait]
impl Channel for JiraJsm {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        self.0.tell("https://api.atlassian.com/jsm/ops/integration", &KIND, message, cx).await
    }
}
