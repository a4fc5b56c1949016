use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Chanify>(About {
    name: "chanify",
    title: "Chanify",
    docs: "https://github.com/chanify/chanify",
    transport: Transport::Http { accepted: "{}", verdict: Verdict::NO_PAGE, refusals: &[] },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        token = "CIDfyKAGEiJBQkNE.TmOdH5xKp0Vw3cRf7s"
    "#,
})
.with_urls(Urls {
    schemes: &["chanify"],
    examples: &["chanify://CIDfyKAGEiJBQkNE.TmOdH5xKp0Vw3cRf7s"],
    read: |url| {
        let token = url.parameter("token").or_else(|| url.authority());
        let token = token.ok_or_else(|| url.wrong("names no token"))?;
        Ok(url::options([("token", Some(token.into()))]))
    },
    ..Urls::NONE
});

/// Push notifications to iPhones through [Chanify](https://github.com/chanify/chanify).
///
/// 1. Install the app and open the channel that is to be told.
/// 2. Set `token` to the token on the page about the channel.
/// 3. If you run a node of your own, set `server` to its address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Chanify {
    /// Token of the channel in the app.
    token: Secret,
    /// Address of the node.
    #[serde(default = "public_node")]
    #[schemars(extend("default" = "https://api.chanify.net"))]
    server: Address,
}

fn public_node() -> Address {
    Address::parse("https://api.chanify.net").expect("a constant address")
}

#[async_trait]
impl Channel for Chanify {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let title = message.title.as_ref().map(|title| format!("{}{title}", mark(message.level)));
        let body = KIND.about.dialect.body(message);
        // From warnings on it may be heard.
        let sound = if message.level >= Level::Warning { "1" } else { "0" };
        let mut fields = vec![("text", body.as_str()), ("sound", sound)];
        fields.extend(title.as_deref().map(|title| ("title", title)));
        let address = self.server.at(&["v1", "sender", self.token.expose()]);
        cx.post(&address).form(&fields).delivered(&KIND).await
    }
}
