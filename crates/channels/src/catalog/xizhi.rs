use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Xizhi>(About {
    name: "xizhi",
    title: "Xizhi",
    docs: "https://xz.qqoq.net",
    transport: Transport::Http {
        accepted: r#"{"code":200,"msg":"推送成功"}"#,
        verdict: Verdict { reason: &["/msg"], ..Verdict::field("/code", &["200"]) },
        // Beyond the fields, not verified.
        refusals: &[Refusal::permanent(200, r#"{"code":10000,"msg":"key不存在"}"#)],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        key = "XZTmOdH5xKp0Vw3cRf7s"
    "#,
});

/// Messages to WeChat through Xizhi (息知).
///
/// 1. Log in on [the site](https://xz.qqoq.net) with WeChat.
/// 2. Set `key` to the part of the address it shows before `.send`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Xizhi {
    /// The key.
    key: Secret,
}

#[async_trait]
impl Channel for Xizhi {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let title = message.title.as_deref().unwrap_or("Deskbell");
        let title = format!("{}{title}", mark(message.level));
        let body = KIND.about.dialect.body(message);
        let service = Address::parse("https://xizhi.qqoq.net").expect("a constant address");
        cx.post(&service.at(&[&format!("{}.send", self.key.expose())]))
            .form(&[("title", &title), ("content", &body)])
            .delivered(&KIND)
            .await
    }
}
