use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<WPush>(About {
    name: "wpush",
    title: "WPUSH",
    docs: "https://wpush.cn",
    transport: Transport::Http {
        accepted: r#"{"code":0,"message":"success","data":"m-4711"}"#,
        verdict: Verdict { reason: &["/message"], ..Verdict::field("/code", &["0"]) },
        // The fields are those of its SDKs; the codes and the words are not verified.
        refusals: &[
            Refusal::permanent(200, r#"{"code":400,"message":"apikey is invalid"}"#),
            Refusal::temporary(429, r#"{"code":429,"message":"too many requests"}"#),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits { title: 240, body: 10_000, unit: Unit::Characters, per_minute: None },
    edits: false,
    example: r#"
        key = "WPUSHTmOdH5xKp0Vw3cRf7s"
    "#,
})
.with_links()
.with_urls(Urls {
    schemes: &["wpush"],
    native: &["api.wpush.cn/api/v1/send"],
    examples: &[
        "wpush://WPUSHTmOdH5xKp0Vw3cRf7s",
        "wpush://WPUSHTmOdH5xKp0Vw3cRf7s/builds?channel=mail,wechat&url=https://ci.example.com",
        "wpush://WPUSHTmOdH5xKp0Vw3cRf7s?channel=qqbot&group=2",
        "https://api.wpush.cn/api/v1/send?apikey=WPUSHTmOdH5xKp0Vw3cRf7s",
    ],
    read,
    ..Urls::NONE
});

/// Messages to WeChat, mail and more through [WPUSH](https://wpush.cn).
///
/// 1. Log in on the site and set `key` to the API key it shows.
/// 2. To go another way than WeChat, set up that way on the site and set `channel`.
/// 3. To tell all who follow a topic, set `topic` to its code.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WPush {
    /// API key.
    key: Secret,
    /// Ways that messages take, with commas between them: `wechat`, `app`, `sms`, `mail`, `webhook`, `dingtalk`,
    /// `feishu`, `wechat_work`, `clawbot`, `qqbot`.
    #[serde(default = "wechat")]
    channel: String,
    /// Code of the topic whose followers are told. Several get a message each.
    topic: Option<Targets<String>>,
    /// Code of the group or instance that the way leads to; not beside `topic`.
    group: Option<String>,
    /// Address that a tap opens where a message has no link of its own.
    url: Option<String>,
}

fn wechat() -> String {
    "wechat".to_owned()
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let key = url.parameter("apikey");
    if url.is_native() {
        url.rest();
        url.authority();
    }
    let key = key.or_else(|| url.authority()).ok_or_else(|| url.wrong("names no key"))?;
    let topic = url.targets();
    let named = url.parameter("topic_code");
    let named = named.or(url.parameter("topic")).map(toml::Value::from);
    let option = url.parameter("option");
    let mut table = url.table(&[("channel", "channel"), ("url", "url")]);
    table.extend(url::options([
        ("key", Some(key.into())),
        ("topic", topic.or(named)),
        ("group", url.parameter("group").or(option).map(Into::into)),
    ]));
    Ok(table)
}

#[async_trait]
impl Channel for WPush {
    fn targets(&self) -> Vec<Mark> {
        Targets::marks_or_one(self.topic.as_ref())
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.group.is_some() && self.topic.is_some() {
            return Err(ConfigError("`group` is set beside `topic`; only one may be".to_owned()));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let title = message.title.as_deref().unwrap_or("Deskbell");
        let body = json!({
            "apikey": self.key.expose(),
            "title": format!("{}{title}", mark(message.level)),
            "content": KIND.about.dialect.body(message),
            "channel": self.channel,
            "topic_code": self.topic.as_ref().map(|topic| topic.at(cx)),
            "option": self.group,
            "url": message.link.as_ref().or(self.url.as_ref()),
        });
        let service =
            Address::parse("https://api.wpush.cn/api/v1/send").expect("a constant address");
        cx.post(&service)
            .header("x-api-key", self.key.expose())
            .header("x-idempotency-key", &cx.id())
            .json(&present(body))
            .delivered(&KIND)
            .await
    }
}
