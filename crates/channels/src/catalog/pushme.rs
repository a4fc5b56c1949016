use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<PushMe>(About {
    name: "pushme",
    title: "PushMe",
    docs: "https://push.i-i.me/docs/index",
    transport: Transport::Http {
        accepted: "success",
        verdict: Verdict { success: Success::Body(&["success"]), ..Verdict::STATUS },
        // Whatever is not `success` says what is wrong; these words are not verified.
        refusals: &[Refusal::permanent(200, "push_key error")],
    },
    dialect: Dialect::Markdown,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        key = "TmOdH5xKp0Vw3cRf7s"
    "#,
})
.with_urls(Urls {
    schemes: &["pushme"],
    examples: &["pushme://TmOdH5xKp0Vw3cRf7s", "pushme://?token=TmOdH5xKp0Vw3cRf7s"],
    read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "pushme",
    needs: &["PUSHME_KEY"],
    takes: &["PUSHME_URL"],
    read: |set| Ok(set.table(&[("key", "PUSHME_KEY"), ("server", "PUSHME_URL")])),
});

/// Push notifications to Android through [PushMe](https://push.i-i.me).
///
/// 1. Install the app and open it.
/// 2. Set `key` to the key it shows.
/// 3. If you run a server of your own, set `server` to its address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PushMe {
    /// Key of the device.
    key: Secret,
    /// Address of the server.
    #[serde(default = "public_server")]
    #[schemars(extend("default" = "https://push.i-i.me"))]
    server: Address,
}

fn public_server() -> Address {
    Address::parse("https://push.i-i.me").expect("a constant address")
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // It would put a mark of its own before the title; ours is there anyway.
    url.ignore(&["status"]);
    let (token, key) = (url.parameter("token"), url.parameter("push_key"));
    let host = url.authority();
    let key = token.or(key).or(host).ok_or_else(|| url.wrong("names no key"))?;
    Ok(url::options([("key", Some(key.into()))]))
}

#[async_trait]
impl Channel for PushMe {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let kind = if message.format == Format::Markdown { "markdown" } else { "text" };
        let body = json!({
            "push_key": self.key.expose(),
            "title": message.title.as_ref().map(|title| format!("{}{title}", mark(message.level))),
            "content": KIND.about.dialect.body(message),
            "type": kind,
        });
        cx.post(&self.server).json(&present(body)).delivered(&KIND).await
    }
}
