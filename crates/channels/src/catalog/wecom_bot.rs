use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<WeComBot>(About {
    name: "wecom_bot",
    title: "WeCom",
    docs: "https://developer.work.weixin.qq.com/document/path/91770",
    transport: Transport::Http {
        accepted: r#"{"errcode":0,"errmsg":"ok"}"#,
        verdict: Verdict {
            reason: &["/errmsg"],
            passing: &[Passing::soon("-1"), Passing::after(60, "45009"), Passing::soon("45033")],
            hints: &[("93000", "check `key`")],
            ..Verdict::field("/errcode", &["0"])
        },
        refusals: &[
            Refusal::permanent(200, r#"{"errcode":93000,"errmsg":"invalid webhook url, hint: [1767323045], from ip: 192.0.2.1"}"#),
            Refusal::permanent(200, r#"{"errcode":40058,"errmsg":"text.content exceed max length 2048. invalid Request Parameter"}"#),
            Refusal::after(60, 200, r#"{"errcode":45009,"errmsg":"api freq out of limit, hint: [1767323045]"}"#),
            Refusal::temporary(200, r#"{"errcode":-1,"errmsg":"system error"}"#),
        ],
    },
    dialect: Dialect::WeCom,
    // A text has 2,048 bytes with its title; Markdown would have 4,096.
    limits: Limits { title: 200, body: 1_800, unit: Unit::Bytes, per_minute: Some(20) },
    edits: false,
    example: r#"
        key = "693a91f6-7xxx-4bc4-97a0-0ec2sifa5aaa"
    "#,
})
.with_urls(Urls {
    schemes: &["wecombot"],
    native: &["qyapi.weixin.qq.com/cgi-bin/webhook/send"],
    examples: &[
        "wecombot://693a91f6-7xxx-4bc4-97a0-0ec2sifa5aaa",
        "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=693a91f6-7xxx-4bc4-97a0-0ec2sifa5aaa",
    ],
    read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "wecom_bot",
    needs: &["QYWX_KEY"],
    takes: &["QYWX_ORIGIN"],
    read: |set| Ok(set.table(&[("key", "QYWX_KEY"), ("server", "QYWX_ORIGIN")])),
});

/// Messages to a WeCom (企业微信) group through a group robot.
///
/// 1. In the group, open the settings and add a group robot.
/// 2. Set `key` to what follows `key=` in the robot's webhook address.
///
/// A robot takes 20 messages a minute.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WeComBot {
    /// Key of the robot.
    key: Secret,
    /// Address of WeCom, or of a proxy in front of it.
    #[serde(default = "wecom")]
    #[schemars(extend("default" = "https://qyapi.weixin.qq.com"))]
    server: Address,
}

fn wecom() -> Address {
    Address::parse("https://qyapi.weixin.qq.com").expect("a constant address")
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let key = url.parameter("key");
    if url.is_native() {
        url.rest();
        url.authority();
    }
    let key = key.or_else(|| url.authority()).ok_or_else(|| url.wrong("names no key"))?;
    Ok(url::options([("key", Some(key.into()))]))
}

#[async_trait]
impl Channel for WeComBot {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let kind = if message.format == Format::Markdown { "markdown" } else { "text" };
        let text = KIND.about.dialect.titled(message);
        let robot = self.server.at(&["cgi-bin", "webhook", "send"]);
        cx.post(&robot.with("key", self.key.expose()))
            .json(&json!({ "msgtype": kind, kind: { "content": text } }))
            .delivered(&KIND)
            .await
    }
}
