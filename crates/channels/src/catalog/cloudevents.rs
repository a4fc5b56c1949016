use std::collections::BTreeMap;

use crate::{envelope::Envelope, prelude::*};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<CloudEvents>(About {
    name: "cloudevents",
    title: "the receiver",
    docs: "https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md",
    transport: Transport::Http { accepted: "", verdict: Verdict::STATUS, refusals: &[] },
    dialect: Dialect::Markdown,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        url = "https://broker.example.com/events/9f86d081884c7d65"
        token = "bearer-3b1f0f6e"
        source = "https://desk.example.com/ada"
    "#,
})
.with_links();

/// Posts each message as a [`CloudEvent`](https://cloudevents.io), in structured mode: to Knative, Azure Event Grid,
/// Argo Events or a program of yours.
///
/// 1. Set `url` to the address of a broker or a sink that takes `application/cloudevents+json`.
/// 2. Set `source` to an address or a path that says where events come from.
///
/// `type` is `deskbell.message` or, for the steps of a run, `deskbell.run.start` to `deskbell.run.error`; `subject` is
/// the id of the run; `data` is the message as `webhook_json` has it. Drop repeats by `source` and `id`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CloudEvents {
    /// Address to post to.
    #[schemars(extend("writeOnly" = true))]
    url: Address,
    /// Where events come from, as a URI or a path.
    #[serde(default = "here")]
    source: String,
    /// Token for `Authorization: Bearer`.
    token: Option<Secret>,
    /// Further headers.
    #[serde(default)]
    headers: BTreeMap<String, Secret>,
    /// Proxy to go through.
    proxy: Option<Proxy>,
}

fn here() -> String {
    "/deskbell".to_owned()
}

#[async_trait]
impl Channel for CloudEvents {
    fn check(&self) -> Result<(), ConfigError> {
        if self.source.trim().is_empty() {
            return Err(ConfigError("`source` is empty; expected a URI or a path".to_owned()));
        }
        check_headers(&self.headers)
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let kind = match &message.run {
            Some(run) => format!("deskbell.run.{}", run.phase.as_str()),
            None => "deskbell.message".to_owned(),
        };
        let mut event = json!({
            "specversion": "1.0",
            "id": message.event.to_string(),
            "source": self.source,
            "type": kind,
            "time": message.at.to_string(),
            "datacontenttype": "application/json",
            // The extension `severity` of the specification, with the numbers of OpenTelemetry.
            "severitytext": message.level.as_str(),
            "severitynumber": severity(message.level),
            "data": Envelope::of(message, cx),
        });
        if let (Some(run), Some(event)) = (&message.run, event.as_object_mut()) {
            event.insert("subject".to_owned(), run.id.as_str().into());
        }
        let mut request = cx.post(&self.url).via(self.proxy.as_ref()).bearer(self.token.as_ref());
        for (name, value) in &self.headers {
            request = request.header(name, value.expose());
        }
        let request =
            request.body("application/cloudevents+json; charset=utf-8", event.to_string());
        request.delivered(&KIND).await
    }
}

const fn severity(level: Level) -> u8 {
    match level {
        Level::Debug => 5,
        Level::Info => 9,
        Level::Notice => 10,
        Level::Warning => 13,
        Level::Error => 17,
        Level::Critical => 18,
        Level::Alert => 19,
        Level::Emergency => 21,
    }
}
