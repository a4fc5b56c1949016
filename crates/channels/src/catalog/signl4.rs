use crate::{
    alert::{self, Step},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Signl4>(About {
    name: "signl4",
    title: "SIGNL4",
    docs: "https://connect.signl4.com/webhook/docs/index.html",
    transport: Transport::Http {
        // The id of the event, as <https://www.signl4.com/outbound-webhooks/> says.
        accepted: r#"{"eventId":"2518079347013039138_d36c9ff2"}"#,
        verdict: Verdict { success: Success::Object, ..Verdict::STATUS },
        // What it says when it refuses is not documented.
        refusals: &[Refusal::permanent(404, "")],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    // Nothing of an alert can be changed but its state.
    edits: false,
    example: r#"
        secret = "tu4x8kqnexample"
    "#,
})
.with_links()
.with_urls(Urls {
    schemes: &["signl4"],
    examples: &[
        "signl4://tu4x8kqnexample",
        "signl4://tu4x8kqnexample?service=shop&location=52.5,13.4&alerting_scenario=single_ack&filtering=yes&dedup=shop",
    ],
    read,
    ..Urls::NONE
});

/// Alerts in [SIGNL4](https://www.signl4.com).
///
/// 1. Set `secret` to the team secret: the part of the team's mail address before the `@`, or the last part of a
///    webhook integration's address.
///
/// SIGNL4 takes each message for [a new alert](https://docs.signl4.com/integrations/webhook/), the steps of a run as well,
/// and calls each time: route progress elsewhere and failures here. All steps have the run's id as their
/// `X-S4-ExternalID`, so a run that ends well resolves what it raised.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Signl4 {
    /// Secret of the team or the integration.
    secret: Secret,
    /// Service or category that the alert belongs to.
    service: Option<String>,
    /// Where it happens: latitude and longitude, with a comma between them.
    location: Option<String>,
    /// How it is told: `single_ack` (one has to confirm), `multi_ack` (all have to) or `emergency`.
    alerting_scenario: Option<String>,
    /// Whether the filters of the services are applied.
    filtering: Option<bool>,
    /// Id that all alerts have, so that the end of any run resolves them, instead of one for each message or run.
    external_id: Option<String>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // What a message does to its alert follows from the run that it is a step of.
    url.ignore(&["action", "status"]);
    let secret = url.parameter("secret").or_else(|| url.authority());
    let external_id = url.parameter("external_id").or_else(|| url.parameter("dedup"));
    let mut options = url.table(&[
        ("service", "service"),
        ("location", "location"),
        ("alerting_scenario", "alerting_scenario"),
    ]);
    options.extend(url::options([
        ("secret", secret.map(Into::into)),
        ("external_id", external_id.map(Into::into)),
        ("filtering", url.yes("filtering").map(Into::into)),
    ]));
    Ok(options)
}

#[async_trait]
impl Channel for Signl4 {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let closes = alert::step(message, cx) == Step::Close;
        let id = alert::key(self.external_id.as_deref(), message, cx);
        let alert = json!({
            "title": message.title,
            "body": KIND.about.dialect.body(message),
            "link": message.link,
            "X-S4-SourceSystem": "Deskbell",
            "X-S4-ExternalID": id,
            "X-S4-Status": if closes { "resolved" } else { "new" },
            "X-S4-Service": self.service,
            "X-S4-Location": self.location,
            "X-S4-AlertingScenario": self.alerting_scenario,
            "X-S4-Filtering": self.filtering,
        });
        let address = Address::parse("https://connect.signl4.com/webhook")
            .expect("a constant address")
            .at(&[self.secret.expose(), ""]);
        cx.post(&address).json(&present(alert)).delivered(&KIND).await?;
        Ok(Receipt { message_id: Some(id) })
    }
}
