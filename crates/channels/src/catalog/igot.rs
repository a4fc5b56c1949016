use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<IGot>(About {
    name: "igot",
    title: "iGot",
    docs: "https://push.hellyw.com/#/api",
    transport: Transport::Http {
        accepted: r#"{"ret":0,"data":{"id":"5f1a"},"errMsg":""}"#,
        verdict: Verdict { reason: &["/errMsg"], ..Verdict::field("/ret", &["0"]) },
        // Beyond the field, which mcp-push reads, not verified.
        refusals: &[Refusal::permanent(200, r#"{"ret":201,"data":{},"errMsg":"用户不存在"}"#)],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        key = "5f1ad3e8c0b1a2d3e4f50617"
    "#,
})
.with_links()
.with_variables(Variables {
    name: "igot",
    needs: &["IGOT_PUSH_KEY"],
    takes: &[],
    read: |set| Ok(set.table(&[("key", "IGOT_PUSH_KEY")])),
});

/// Messages to WeChat and more through [iGot](https://push.hellyw.com).
///
/// 1. Open iGot's mini program in WeChat.
/// 2. Set `key` to the key it shows.
///
/// Whether the service is still there, we could not find out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IGot {
    /// The key.
    key: Secret,
}

#[async_trait]
impl Channel for IGot {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let title = message.title.as_deref().unwrap_or("Deskbell");
        let title = format!("{}{title}", mark(message.level));
        let body = KIND.about.dialect.body(message);
        let mut fields = vec![("title", title.as_str()), ("content", &body)];
        fields.extend(message.link.as_deref().map(|link| ("url", link)));
        let service = Address::parse("https://push.hellyw.com").expect("a constant address");
        cx.post(&service.at(&[self.key.expose()])).form(&fields).delivered(&KIND).await
    }
}
