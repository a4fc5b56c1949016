use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Revolt>(About {
    name: "revolt",
    title: "Revolt",
    docs: "https://developers.stoat.chat/api-reference#tag/messaging/post/channels/{target}/messages",
    transport: Transport::Http {
        accepted: r#"{"_id":"01JGR6Q2T9M7W3F8Z1K5X4C0VB"}"#,
        verdict: Verdict {
            code: Some("/type"),
            reason: &["/permission", "/error"],
            wait: Wait::Milliseconds("/retry_after"),
            hints: &[
                ("InvalidSession", "check `token`"),
                ("NotFound", "check `channel`"),
                ("MissingPermission", "let the bot write to the channel"),
            ],
            ..Verdict::id("/_id")
        },
        refusals: &[
            Refusal::permanent(401, r#"{"type":"InvalidSession"}"#),
            Refusal::permanent(404, r#"{"type":"NotFound"}"#),
            Refusal::permanent(403, r#"{"type":"MissingPermission","permission":"SendMessage"}"#),
            Refusal::after(3, 429, r#"{"retry_after":3000}"#),
        ],
    },
    dialect: Dialect::ChatMarkdown,
    // 2,000 for title and body together.
    limits: Limits { title: 200, body: 1_780, unit: Unit::Characters, per_minute: None },
    edits: true,
    example: r#"
        token = "bUvYqLXkWwJtRsHnFgDcPzMaKeTiOyBx"
        channel = "01JGR6Q2T9M7W3F8Z1K5X4C0VA"
    "#,
})
.with_urls(Urls {
    schemes: &["revolt"],
    examples: &[
        "revolt://bUvYqLXkWwJtRsHnFgDcPzMaKeTiOyBx/01JGR6Q2T9M7W3F8Z1K5X4C0VA",
        "revolt://bUvYqLXkWwJtRsHnFgDcPzMaKeTiOyBx/?channel=01JGR6Q2T9M7W3F8Z1K5X4C0VA,01JGR6Q2T9M7W3F8Z1K5X4C0VB",
    ],
    read,
    ..Urls::NONE
});

/// Messages from a Revolt bot to channels; the service is called Stoat now.
///
/// 1. In the app's settings, under "My Bots", create a bot and set `token` to its token.
/// 2. Add the bot to your server.
/// 3. Right-click the channel, choose "Copy channel ID" and set `channel` to it.
///
/// The steps of a run edit one message in place.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Revolt {
    /// Token of the bot.
    token: Secret,
    /// Id of the channel. Several get a message each.
    channel: Targets<String>,
    /// Address of the interface.
    #[serde(default = "public_api")]
    #[schemars(extend("default" = "https://api.revolt.chat"))]
    api: Address,
}

fn public_api() -> Address {
    Address::parse("https://api.revolt.chat").expect("a constant address")
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // Those of Apprise's embeds, which the messages are not.
    url.ignore(&["icon_url", "url"]);
    let token = url.parameter("bot_token").or_else(|| url.authority());
    let more = url.parameter("channel").unwrap_or_default();
    url.path.extend(more.split(',').filter(|id| !id.is_empty()).map(str::to_owned));
    Ok(url::options([("token", token.map(Into::into)), ("channel", url.targets())]))
}

#[async_trait]
impl Channel for Revolt {
    fn targets(&self) -> Vec<Mark> {
        self.channel.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let messages = self.api.at(&["channels", self.channel.at(cx), "messages"]);
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.as_deref());
        // The routes are those of the service's OpenAPI description, <https://docs.rs/revolt_api>.
        let request = match earlier {
            Some(id) => cx.patch(&messages.at(&[id])),
            None => cx.post(&messages),
        };
        let content = json!({ "content": KIND.about.dialect.titled(message) });
        request.header("x-bot-token", self.token.expose()).json(&content).delivered(&KIND).await
    }
}
