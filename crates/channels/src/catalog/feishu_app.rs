use http::Method;

use super::feishu_bot;
use crate::{prelude::*, token::TokenCache};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<FeishuApp>(About {
    name: "feishu_app",
    title: "Feishu",
    docs: "https://open.feishu.cn/document/server-docs/im-v1/message/create",
    transport: Transport::Http {
        accepted: r#"{"code":0,"msg":"success","tenant_access_token":"t-caecc734c2e3328a62489fe0648c4b98779515d3","expire":7200,"data":{"message_id":"om_dc13264520392913993dd051dba21dcf"}}"#,
        verdict: Verdict {
            id: Some("/data/message_id"),
            reason: &["/msg"],
            // The token has ended before its time; too many requests.
            passing: &[
                Passing::soon("99991663"),
                Passing::soon("99991400"),
                Passing::soon("11232"),
            ],
            hints: &[
                ("230002", "add the app to the group"),
                ("230013", "the person is not among those who may use the app"),
                (
                    "99991672",
                    "give the app the right to send messages, and publish a version of it",
                ),
            ],
            ..Verdict::field("/code", &["0"])
        },
        refusals: &[
            Refusal::permanent(200, r#"{"code":10014,"msg":"app secret invalid"}"#),
            Refusal::permanent(
                400,
                r#"{"code":230002,"msg":"Bot/User can NOT be out of the chat.","error":{"log_id":"2026"}}"#,
            ),
            Refusal::temporary(
                400,
                r#"{"code":99991663,"msg":"Invalid access token for authorization. Please make a request with token attached."}"#,
            ),
            Refusal::temporary(429, r#"{"code":99991400,"msg":"request trigger frequency limit"}"#),
        ],
    },
    dialect: Dialect::Feishu,
    // 30 KB for a card as it is sent.
    limits: Limits { title: 500, body: 24_000, unit: Unit::Bytes, per_minute: None },
    edits: true,
    example: r#"
        app_id = "cli_a1b2c3d4e5f6a7b8"
        app_secret = "dskLLdkasdjlasdKKExample"
        to = "oc_a0553eda9014c201e6969b478895c230"
    "#,
});

/// Messages from a Feishu or Lark app to groups and people.
///
/// 1. Create a custom app at <https://open.feishu.cn/app>, add the ability Bot, and set `app_id` and `app_secret` to
///    what its page Credentials shows.
/// 2. Under Permissions allow `im:message:send_as_bot`, then create a version and publish it.
/// 3. Add the bot to the group and set `to` to the group's id, which starts with `oc_`; or to somebody's open id
///    (`ou_…`), union id (`on_…`) or mail address.
/// 4. For Lark, set `server` to `https://open.larksuite.com`.
///
/// Markdown arrives as a card whose colour shows the level. The steps of a run edit one message in place.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FeishuApp {
    /// Id of the app.
    app_id: String,
    /// Secret of the app.
    app_secret: Secret,
    /// Group or person that gets the message: a group's id, an open id, a union id, a mail address, or a user id.
    /// Several get a message each.
    to: Targets<String>,
    /// Address of Feishu or Lark.
    #[serde(default = "feishu")]
    #[schemars(extend("default" = "https://open.feishu.cn"))]
    server: Address,
    #[serde(skip)]
    token: TokenCache,
}

fn feishu() -> Address {
    Address::parse("https://open.feishu.cn").expect("a constant address")
}

#[async_trait]
impl Channel for FeishuApp {
    fn targets(&self) -> Vec<Mark> {
        self.to.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let token = Secret::from(self.token(cx).await?);
        let outcome = self.tell(message, &token, cx).await;
        if outcome.is_err() {
            // It may be the token that is no longer taken.
            self.token.forget();
        }
        outcome
    }
}

impl FeishuApp {
    async fn token(&self, cx: &SendContext) -> Result<String, SendError> {
        if let Some(token) = self.token.token(cx.now) {
            return Ok(token);
        }
        let parts = ["open-apis", "auth", "v3", "tenant_access_token", "internal"];
        let app = json!({ "app_id": self.app_id, "app_secret": self.app_secret.expose() });
        let reply = cx.post(&self.server.at(&parts)).json(&app).answered().await?;
        KIND.verdict().judge(KIND.about.title, &reply)?;
        let answer = reply.json()?;
        let Some(token) = answer.get("tenant_access_token").and_then(Value::as_str) else {
            return Err(SendError::temporary("Feishu answered without a token"));
        };
        let seconds = answer.get("expire").and_then(Value::as_u64).unwrap_or_default();
        self.token.keep(token, cx.now, seconds);
        Ok(token.to_owned())
    }

    /// Sends `message`, or puts it in place of the one that `cx` names: a text by PUT, a card by PATCH.
    async fn tell(
        &self,
        message: &Message,
        token: &Secret,
        cx: &SendContext,
    ) -> Result<Receipt, SendError> {
        let (kind, edit) = match message.format {
            Format::Text => ("text", Method::PUT),
            Format::Markdown => ("interactive", Method::PATCH),
        };
        let mut content = feishu_bot::content(message);
        if let (Format::Markdown, Some(card)) = (message.format, content.as_object_mut()) {
            // Only cards that say so from the start can be edited.
            card.insert("config".to_owned(), json!({ "update_multi": true }));
        }
        let messages = self.server.at(&["open-apis", "im", "v1", "messages"]);
        let content = content.to_string();
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.as_deref());
        if let Some(id) = earlier {
            let request = cx.request(edit, &messages.at(&[id])).bearer(Some(token));
            let edited = json!({ "msg_type": kind, "content": content });
            request.json(&edited).delivered(&KIND).await?;
            return Ok(Receipt { message_id: Some(id.to_owned()) });
        }
        let to = self.to.at(cx);
        let body = json!({
            "receive_id": to,
            "msg_type": kind,
            "content": content,
            // The same id is taken once within an hour.
            "uuid": cx.uuid(),
        });
        let address = messages.with("receive_id_type", id_type(to));
        cx.post(&address).bearer(Some(token)).json(&body).delivered(&KIND).await
    }
}

/// What kind of id `to` is, which its first letters say.
fn id_type(to: &str) -> &'static str {
    match to {
        to if to.starts_with("oc_") => "chat_id",
        to if to.starts_with("ou_") => "open_id",
        to if to.starts_with("on_") => "union_id",
        to if to.contains('@') => "email",
        _ => "user_id",
    }
}
