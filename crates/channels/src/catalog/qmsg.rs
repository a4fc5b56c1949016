use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Qmsg>(About {
    name: "qmsg",
    title: "Qmsg",
    docs: "https://qmsg.zendee.cn/docs/",
    transport: Transport::Http {
        accepted: r#"{"success":true,"reason":"操作成功","code":0,"info":{}}"#,
        verdict: Verdict { reason: &["/reason"], ..Verdict::field("/code", &["0"]) },
        // Beyond the field, which mcp-push reads, not verified.
        refusals: &[Refusal::permanent(
            200,
            r#"{"success":false,"reason":"消息内容不能为空","code":500,"info":{}}"#,
        )],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        key = "8f14e45fceea167a5a36dedd4bea2543"
    "#,
})
.with_urls(Urls {
    schemes: &["qq"],
    native: &["qmsg.zendee.cn/send/", "qmsg.zendee.cn/group/"],
    examples: &[
        "qq://8f14e45fceea167a5a36dedd4bea2543",
        "https://qmsg.zendee.cn/send/8f14e45fceea167a5a36dedd4bea2543",
        "https://qmsg.zendee.cn/group/8f14e45fceea167a5a36dedd4bea2543",
    ],
    read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "qmsg",
    needs: &["QMSG_KEY", "QMSG_TYPE"],
    takes: &[],
    read: |set| Ok(set.table(&[("key", "QMSG_KEY"), ("to", "QMSG_TYPE")])),
});

/// Messages to QQ through [Qmsg](https://qmsg.zendee.cn) (Qmsg酱).
///
/// 1. Log in on the site, choose a bot, and add the QQ number or the group that it may tell.
/// 2. Set `key` to the key it shows.
/// 3. For a group, set `to` to `group`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Qmsg {
    /// The key.
    key: Secret,
    /// Whether a person or a group is told: `send` or `group`.
    #[serde(default)]
    to: Place,
    /// QQ numbers to tell instead of all that are set up on the site, with commas between them.
    qq: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Place {
    #[default]
    Send,
    Group,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let mut place = None;
    let mut key = url.parameter("token");
    if url.is_native() {
        url.authority();
        place = Some(url.next("kind of place")?);
        key = key.or(Some(url.next("key")?));
    }
    let key = key.or_else(|| url.authority()).ok_or_else(|| url.wrong("names no key"))?;
    Ok(url::options([("key", Some(key.into())), ("to", place.map(Into::into))]))
}

#[async_trait]
impl Channel for Qmsg {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        // `@at=…@` and its like call people there, and four dashes are refused, as mcp-push knows.
        let text = KIND.about.dialect.titled(message);
        let text = ["@at=", "@face=", "@image="]
            .iter()
            .fold(text, |text, code| text.replace(code, &code.replace('@', "@\u{2060}")));
        let text = text.replace("----", "-");
        let place = match self.to {
            Place::Send => "send",
            Place::Group => "group",
        };
        let service = Address::parse("https://qmsg.zendee.cn").expect("a constant address");
        let mut fields = vec![("msg", text.as_str())];
        fields.extend(self.qq.as_deref().map(|qq| ("qq", qq)));
        let request = cx.post(&service.at(&[place, self.key.expose()])).form(&fields);
        request.delivered(&KIND).await
    }
}
