use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Line>(About {
    name: "line",
    title: "LINE",
    docs: "https://developers.line.biz/en/reference/messaging-api/#send-push-message",
    transport: Transport::Http {
        accepted: r#"{"sentMessages":[{"id":"461230966842064897","quoteToken":"IStG5h1Tz7b"}]}"#,
        verdict: Verdict {
            reason: &["/details/0/message", "/message"],
            hints: &[("401", "check `token`; tokens of LINE Notify, which is closed, do not do")],
            ..Verdict::id("/sentMessages/0/id")
        },
        refusals: &[
            Refusal::permanent(400, r#"{"message":"The property, 'to', in the request body is invalid (line: -, column: -)"}"#),
            Refusal::permanent(401, r#"{"message":"Authentication failed. Confirm that the access token in the authorization header is valid."}"#),
            Refusal::temporary(429, r#"{"message":"You have reached your monthly limit."}"#),
            Refusal::temporary(500, r#"{"message":"Internal server error"}"#),
        ],
    },
    dialect: Dialect::Plain,
    // 5,000 UTF-16 units for title and text together.
    limits: Limits { title: 400, body: 4_500, unit: Unit::Utf16, per_minute: None },
    edits: false,
    example: r#"
        token = "4bvFZ8hNcExample0Token"
        to = "U4af4980629c1b0a1d3c2e5f6a7b8c9d0"
    "#,
})
.with_urls(Urls {
    schemes: &["line"],
    examples: &[
        "line://4bvFZ8hNcExample0Token/U4af4980629c1b0a1d3c2e5f6a7b8c9d0",
        "line://abc/def+token=/U4af4980629c1b0a1d3c2e5f6a7b8c9d0?to=C0ffee0c0ffee0c0ffee0c0ffee0c0ff",
    ],
    read,
    ..Urls::NONE
});

/// Messages from a [LINE](https://www.line.me) official account to people and groups.
///
/// 1. In the LINE Developers Console create a Messaging API channel and set `token` to its channel access token.
/// 2. Add the account as a friend, or to the group.
/// 3. Set `to` to the id that its webhook tells for a message: it starts with `U` for a person, `C` for a group, `R`
///    for a room. Your own user id stands among the basic settings of the channel.
///
/// An account has a number of messages a month, which depends on its plan.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Line {
    /// Channel access token.
    token: Secret,
    /// Id of a person, a group or a room. Several get a message each.
    to: Targets<String>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let mut token = url.parameter("token").or_else(|| url.authority());
    // Tokens may have slashes, and end with `=` then.
    let end = url.path.iter().position(|part| part.ends_with('='));
    if let (Some(token), Some(end)) = (token.as_mut().filter(|token| !token.ends_with('=')), end) {
        let mut targets = url.rest();
        url.path = targets.split_off(end + 1);
        *token =
            std::iter::once(std::mem::take(token)).chain(targets).collect::<Vec<_>>().join("/");
    }
    let to = url.targets().ok_or_else(|| url.wrong("names nobody"))?;
    Ok(url::options([("token", token.map(Into::into)), ("to", Some(to))]))
}

#[async_trait]
impl Channel for Line {
    fn targets(&self) -> Vec<Mark> {
        self.to.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let update = message.run.as_ref().is_some_and(|run| run.phase == Phase::Update);
        let push = json!({
            "to": self.to.at(cx),
            "messages": [{ "type": "text", "text": KIND.about.dialect.titled(message) }],
            "notificationDisabled": update || message.level == Level::Debug,
        });
        let address =
            Address::parse("https://api.line.me/v2/bot/message/push").expect("a constant address");
        let request = cx.post(&address).bearer(Some(&self.token));
        let reply = request.header("x-line-retry-key", &cx.uuid()).json(&push).answered().await?;
        // The same key was taken before, so the message has arrived.
        if reply.status() == 409 && reply.header("x-line-accepted-request-id").is_some() {
            return Ok(Receipt::default());
        }
        KIND.verdict().judge(KIND.about.title, &reply)
    }
}
