use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<WePlusBot>(About {
    name: "weplusbot",
    title: "WePlusBot",
    docs: "https://www.weplusbot.com",
    transport: Transport::Http {
        accepted: r#"{"code":200,"msg":"success"}"#,
        verdict: Verdict { reason: &["/msg"], ..Verdict::field("/code", &["200"]) },
        // Beyond the field, which mcp-push reads, not verified.
        refusals: &[Refusal::permanent(200, r#"{"code":400,"msg":"token error"}"#)],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        token = "TmOdH5xKp0Vw3cRf7s"
    "#,
})
.with_variables(Variables {
    name: "weplusbot",
    needs: &["WE_PLUS_BOT_TOKEN"],
    takes: &["WE_PLUS_BOT_RECEIVER", "WE_PLUS_BOT_VERSION"],
    read: |set| {
        Ok(set.table(&[
            ("token", "WE_PLUS_BOT_TOKEN"),
            ("receiver", "WE_PLUS_BOT_RECEIVER"),
            ("version", "WE_PLUS_BOT_VERSION"),
        ]))
    },
});

/// Messages to WeChat from a robot of [WePlusBot](https://www.weplusbot.com) (微加机器人).
///
/// 1. Set up a robot on the site and set `token` to its token.
/// 2. To tell somebody else than yourself, set `receiver` to the id that the site shows for them.
/// 3. With the personal edition, set `version` to `personal`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WePlusBot {
    /// Token of the robot.
    token: Secret,
    /// Who is told, if not yourself.
    receiver: Option<String>,
    /// Edition of the robot: `pro` or `personal`.
    #[serde(default)]
    version: Edition,
}

#[derive(Clone, Copy, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Edition {
    #[default]
    Pro,
    Personal,
}

/// The longest message of the chat, in characters; what is longer is sent as a page.
const CHAT: usize = 800;

#[async_trait]
impl Channel for WePlusBot {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let text = KIND.about.dialect.body(message);
        let (template, content) = if Unit::Characters.length(&text) > CHAT {
            ("html", Dialect::Html.body(message))
        } else {
            ("txt", text)
        };
        let body = json!({
            "token": self.token.expose(),
            "title": message.title.as_ref().map(|title| format!("{}{title}", mark(message.level))),
            "template": template,
            "content": content,
            "receiver": self.receiver,
            "version": self.version,
        });
        let service = Address::parse("https://www.weplusbot.com/send").expect("a constant address");
        cx.post(&service).json(&present(body)).delivered(&KIND).await
    }
}
