use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<PushPlus>(About {
    name: "pushplus",
    title: "PushPlus",
    docs: "https://www.pushplus.plus/doc/guide/api.html",
    transport: Transport::Http {
        accepted: r#"{"code":200,"msg":"请求成功","data":"f7a1c0e5b8a14b0cb4e6d5a1c7d0e9f2"}"#,
        verdict: Verdict {
            reason: &["/msg"],
            // 900 would pass too, but not today, and each request in between prolongs it.
            passing: &[Passing::soon("500")],
            hints: &[
                ("900", "too many messages were sent; the account is locked for some days"),
                ("903", "check `token`"),
                ("905", "confirm your identity in PushPlus first"),
            ],
            ..Verdict::field("/code", &["200"])
        },
        refusals: &[
            Refusal::permanent(200, r#"{"code":903,"msg":"无效的用户token","data":null}"#),
            Refusal::permanent(200, r#"{"code":905,"msg":"账户未进行实名认证","data":null}"#),
            Refusal::permanent(200, r#"{"code":900,"msg":"用户账号使用受限","data":null}"#),
            Refusal::temporary(200, r#"{"code":500,"msg":"系统异常，请稍后再试","data":null}"#),
        ],
    },
    dialect: Dialect::Markdown,
    // A title has 100 characters with the mark of its level.
    limits: Limits { title: 96, body: 20_000, unit: Unit::Characters, per_minute: None },
    edits: false,
    example: r#"
        token = "f7a1c0e5b8a14b0cb4e6d5a1c7d0e9f2"
    "#,
})
.with_urls(Urls {
    schemes: &["pushplus", "wecom"],
    native: &["www.pushplus.plus/send"],
    examples: &[
        "pushplus://f7a1c0e5b8a14b0cb4e6d5a1c7d0e9f2",
        "pushplus://f7a1c0e5b8a14b0cb4e6d5a1c7d0e9f2/builds?channel=mail",
        "pushplus://hook@f7a1c0e5b8a14b0cb4e6d5a1c7d0e9f2",
        "wecom://f7a1c0e5b8a14b0cb4e6d5a1c7d0e9f2?name=app",
        "https://www.pushplus.plus/send?token=f7a1c0e5b8a14b0cb4e6d5a1c7d0e9f2&topic=builds",
    ],
    read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "pushplus",
    needs: &["PUSH_PLUS_TOKEN"],
    // The template is left to the message: text arrives as text and Markdown as Markdown.
    takes: &[
        "PUSH_PLUS_USER",
        "PUSH_PLUS_TEMPLATE",
        "PUSH_PLUS_CHANNEL",
        "PUSH_PLUS_WEBHOOK",
        "PUSH_PLUS_CALLBACKURL",
        "PUSH_PLUS_TO",
    ],
    read: |set| {
        Ok(set.table(&[
            ("token", "PUSH_PLUS_TOKEN"),
            ("topic", "PUSH_PLUS_USER"),
            ("channel", "PUSH_PLUS_CHANNEL"),
            ("webhook", "PUSH_PLUS_WEBHOOK"),
            ("callback_url", "PUSH_PLUS_CALLBACKURL"),
            ("to", "PUSH_PLUS_TO"),
        ]))
    },
});

/// Messages to WeChat, mail and more through [PushPlus](https://www.pushplus.plus).
///
/// 1. Log in with WeChat on the site and confirm your identity: PushPlus refuses messages before that.
/// 2. Set `token` to the token it shows under "one to one" messages.
/// 3. To reach a group, set `topic` to its code; to go another way than WeChat, set `channel`.
///
/// What PushPlus accepts is not delivered yet; its site shows what became of it. It locks accounts that send too much.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PushPlus {
    /// Token of the user.
    token: Secret,
    /// Code of the group to tell instead of yourself. Several get a message each.
    topic: Option<Targets<String>>,
    /// Way that messages take: `wechat`, `webhook`, `cp` (WeCom), `mail`, `sms`, `voice` or `extension`.
    #[serde(default)]
    channel: Way,
    /// Code of the webhook or WeCom application that you set up in PushPlus, for those ways.
    webhook: Option<String>,
    /// Tokens of friends, or WeCom users, to tell instead of yourself, with commas between them.
    to: Option<Secret>,
    /// Address that PushPlus tells what became of a message.
    callback_url: Option<Address>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Way {
    #[default]
    Wechat,
    Webhook,
    Cp,
    Mail,
    Sms,
    Voice,
    Extension,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let token = url.parameter("token");
    if url.is_native() {
        url.rest();
        url.authority();
    }
    let token = token.or_else(|| url.authority()).ok_or_else(|| url.wrong("names no token"))?;
    let topics = url.targets().or_else(|| url.parameter("topic").map(Into::into));
    let webhook = url.user.take();
    let mode = url.parameter("mode");
    let channel = match url.parameter("channel").or(mode) {
        Some(channel) if channel.eq_ignore_ascii_case("wecom") => Some("cp".to_owned()),
        Some(channel) => Some(channel.to_ascii_lowercase()),
        None if url.scheme == "wecom" => Some("cp".to_owned()),
        None => webhook.is_some().then(|| "webhook".to_owned()),
    };
    Ok(url::options([
        ("token", Some(token.into())),
        ("topic", topics),
        ("channel", channel.map(Into::into)),
        ("webhook", url.parameter("name").or(webhook).map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for PushPlus {
    fn targets(&self) -> Vec<Mark> {
        Targets::marks_or_one(self.topic.as_ref())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let template = if message.format == Format::Markdown { "markdown" } else { "txt" };
        let body = json!({
            "token": self.token.expose(),
            "title": message.title.as_ref().map(|title| format!("{}{title}", mark(message.level))),
            "content": KIND.about.dialect.body(message),
            "template": template,
            "channel": self.channel,
            "topic": self.topic.as_ref().map(|topic| topic.at(cx)),
            "webhook": self.webhook,
            "to": self.to.as_ref().map(Secret::expose),
            "callbackUrl": self.callback_url.as_ref().map(|address| address.url().as_str()),
        });
        let service = Address::parse("https://www.pushplus.plus/send").expect("a constant address");
        cx.post(&service).json(&present(body)).delivered(&KIND).await
    }
}
