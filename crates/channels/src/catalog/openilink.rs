use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<OpeniLink>(About {
    name: "openilink",
    title: "OpeniLink",
    docs: "https://github.com/openilink/openilink-hub",
    transport: Transport::Http {
        accepted: r#"{"ok":true,"client_id":"c-1","trace_id":"tr_0a1b2c"}"#,
        verdict: Verdict { reason: &["/error"], ..Verdict::field("/ok", &["true"]) },
        refusals: &[
            Refusal::permanent(401, r#"{"ok":false,"error":"invalid token"}"#),
            Refusal::permanent(403, r#"{"ok":false,"error":"missing scope: message:write"}"#),
            Refusal::permanent(409, r#"{"ok":false,"error":"暂无法发送：需要先收到用户消息"}"#),
            Refusal::temporary(503, r#"{"ok":false,"error":"bot not connected"}"#),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        token = "app_TmOdH5xKp0Vw3cRf7s"
    "#,
})
.with_variables(Variables {
    name: "openilink",
    needs: &["OPENILINK_APP_TOKEN"],
    takes: &["OPENILINK_HUB_URL", "OPENILINK_CONTEXT_TOKEN"],
    read: |set| {
        Ok(set.table(&[
            ("token", "OPENILINK_APP_TOKEN"),
            ("server", "OPENILINK_HUB_URL"),
            ("context_token", "OPENILINK_CONTEXT_TOKEN"),
        ]))
    },
});

/// Messages to WeChat through an OpeniLink hub, public or self-hosted.
///
/// 1. On the hub, connect WeChat as a bot, and install an app that may write messages.
/// 2. Set `token` to the app's token.
/// 3. If you run a hub of your own, set `server` to its address.
///
/// WeChat lets a bot send about ten messages in the 24 hours after you last wrote to it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OpeniLink {
    /// Token of the app.
    token: Secret,
    /// Address of the hub.
    #[serde(default = "public_hub")]
    #[schemars(extend("default" = "https://hub.openilink.com"))]
    server: Address,
    /// Token of the conversation to continue.
    context_token: Option<Secret>,
}

fn public_hub() -> Address {
    Address::parse("https://hub.openilink.com").expect("a constant address")
}

#[async_trait]
impl Channel for OpeniLink {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let body = json!({
            "type": "text",
            "content": KIND.about.dialect.titled(message),
            "context_token": self.context_token.as_ref().map(Secret::expose),
        });
        let request = cx.post(&self.server.at(&["bot", "v1", "message", "send"]));
        request.bearer(Some(&self.token)).json(&present(body)).delivered(&KIND).await
    }
}
