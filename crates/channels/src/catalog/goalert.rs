use std::collections::BTreeMap;

use crate::{
    alert::{self, Step},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<GoAlert>(About {
    name: "goalert",
    title: "GoAlert",
    docs: "https://github.com/target/goalert/blob/master/docs/getting-started.md",
    transport: Transport::Http {
        accepted: "",
        // 204, with nothing.
        verdict: Verdict { success: Success::Empty, ..Verdict::STATUS },
        refusals: &[
            Refusal::permanent(401, "Unauthorized"),
            Refusal::permanent(400, "summary is required"),
        ],
    },
    dialect: Dialect::Markdown,
    limits: Limits { title: 1_024, body: 6_144, unit: Unit::Characters, per_minute: None },
    edits: true,
    example: r#"
        server = "https://goalert.example.com"
        key = "9b2d7c1e-3f4a-4c5d-8e6f-0a1b2c3d4e5f"
    "#,
})
.with_urls(Urls {
    schemes: &["goalert", "goalerts"],
    examples: &[
        "goalerts://goalert.example.com/9b2d7c1e-3f4a-4c5d-8e6f-0a1b2c3d4e5f",
        "goalert://localhost:8081/sub/9b2d7c1e-3f4a-4c5d-8e6f-0a1b2c3d4e5f/1c2d7c1e-3f4a-4c5d-8e6f-0a1b2c3d4e5f?dedup=shop&+team=a",
    ],
    read,
    ..Urls::NONE
});

/// Alerts in your own [GoAlert](https://goalert.me).
///
/// 1. Open the service that is to be alerted, then Integration Keys, and create one of the type Generic API.
/// 2. Set `key` to its `token`, and `server` to the address of the page.
///
/// The steps of a run are one alert: its `dedup` is the run's id, and a run that ends well closes it. Every other message
/// is an alert of its own, unless `dedup` is set. An open alert calls nobody a second time, so route progress elsewhere
/// and failures here.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GoAlert {
    /// Address of the server.
    server: Address,
    /// Integration key of the service. Several get the alert each.
    key: Targets<Secret>,
    /// Key of the one alert that everything goes to, instead of one for each message or run.
    dedup: Option<String>,
    /// More facts to send with every alert, by name.
    #[serde(default)]
    meta: BTreeMap<String, String>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // What a message does to its alert follows from the run that it is a step of.
    url.ignore(&["action"]);
    let more = url.parameter("token").unwrap_or_default();
    let more = more.split(',').filter(|key| !key.is_empty()).map(str::to_owned);
    let (mut keys, path): (Vec<_>, Vec<_>) =
        url.rest().into_iter().partition(|part| alert::is_uuid(part));
    keys.extend(more);
    let server = [&[url.web()?], path.as_slice()].concat().join("/");
    url.path = keys;
    let keys = url.targets().ok_or_else(|| url.wrong("names no integration key"))?;
    let meta: toml::Table =
        url.parameters('+').into_iter().map(|(name, value)| (name, value.into())).collect();
    Ok(url::options([
        ("server", Some(server.into())),
        ("key", Some(keys)),
        ("dedup", url.parameter("dedup").map(Into::into)),
        ("meta", Some(meta).filter(|all| !all.is_empty()).map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for GoAlert {
    fn targets(&self) -> Vec<Mark> {
        self.key.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let closes = alert::step(message, cx) == Step::Close;
        let key = alert::key(self.dedup.as_deref(), message, cx);
        let alert = json!({
            "summary": alert::summary(message, KIND.about.limits.title),
            "details": KIND.about.dialect.body(message),
            "action": closes.then_some("close"),
            "dedup": key,
            "meta": (!self.meta.is_empty()).then_some(&self.meta),
        });
        let address = self.server.at(&["api", "v2", "generic", "incoming"]);
        let request = cx.post(&address).bearer(Some(self.key.at(cx)));
        request.json(&present(alert)).delivered(&KIND).await?;
        Ok(Receipt { message_id: Some(key) })
    }
}
