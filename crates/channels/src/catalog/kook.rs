use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Kook>(About {
    name: "kook",
    title: "KOOK",
    docs: "https://developer.kookapp.cn/doc/http/message",
    transport: Transport::Http {
        accepted: r#"{"code":0,"message":"操作成功","data":{"msg_id":"e8d3f0c1-7b5a-4c7e-8f60-5a0c3f7f9a11","msg_timestamp":1767323045123,"nonce":""}}"#,
        verdict: Verdict {
            id: Some("/data/msg_id"),
            reason: &["/message"],
            // <https://developer.kookapp.cn/doc/rate-limit>; who does not wait is shut out.
            wait: Wait::SecondsIn("X-Rate-Limit-Reset"),
            ..Verdict::field("/code", &["0"])
        },
        refusals: &[
            Refusal::permanent(401, r#"{"code":401,"message":"你的用户凭证不正确","data":{}}"#),
            Refusal::permanent(200, r#"{"code":40000,"message":"target_id不能为空","data":{}}"#),
            Refusal::temporary(429, r#"{"code":429,"message":"请求太频繁","data":{}}"#),
        ],
    },
    dialect: Dialect::Kook,
    // 5,000 characters for title and text together.
    limits: Limits { title: 400, body: 4_500, unit: Unit::Characters, per_minute: None },
    edits: true,
    example: r#"
        token = "1/MTA2OTU=/2nKgwZvExampleToken=="
        to = "4368214932810000"
    "#,
})
.with_urls(Urls {
    schemes: &["kook"],
    native: &["www.kookapp.cn/api/v3/incoming/"],
    examples: &[
        "kook://1%2FMTA2OTU=%2F2nKgwZvExampleToken==/4368214932810000/@2418200000?to=4368214932810001",
        "kook://1/MTA2OTU=/2nKgwZvExampleToken==/4368214932810000",
        "kook://MTA2OTUexample?mode=webhook",
    ],
    read,
    ..Urls::NONE
});

/// Messages to [KOOK](https://www.kookapp.cn) channels and people, from a bot or through a webhook.
///
/// 1. Create an app at <https://developer.kookapp.cn>, open its Bot page and set `token` to the bot's token.
/// 2. Invite the bot to the server.
/// 3. Turn on the developer mode in KOOK's advanced settings, copy the id of the channel and set `to` to it; a person
///    is written as `@` and the id.
/// 4. Or set `webhook` to the last part of a webhook's address.
///
/// A bot edits one message for the steps of a run; a webhook sends each of them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Kook {
    /// Token of the bot.
    token: Option<Secret>,
    /// Id of a channel, or `@` and that of a person. Several get a message each.
    to: Option<Targets<String>>,
    /// Last part of the address of a webhook.
    webhook: Option<Secret>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    if url.is_native() {
        let webhook = url.path.pop();
        url.rest();
        return Ok(url::options([("webhook", webhook.map(Into::into))]));
    }
    let mut token = url.parameter("token").or_else(|| url.authority());
    // A token has two slashes, which may stand in the address as they are.
    if token.as_deref() == Some("1") && url.path.len() > 2 {
        let mut targets = url.rest();
        url.path = targets.split_off(2);
        token = Some(format!("1/{}", targets.join("/")));
    }
    let mode = url.parameter("mode").unwrap_or_default();
    if !mode.is_empty() && "webhook".starts_with(&mode) {
        return Ok(url::options([("webhook", token.map(Into::into))]));
    }
    let to = url.targets().ok_or_else(|| url.wrong("names no channel"))?;
    Ok(url::options([("token", token.map(Into::into)), ("to", Some(to))]))
}

/// The number of `KMarkdown` among the types of messages.
const KMARKDOWN: u8 = 9;

#[async_trait]
impl Channel for Kook {
    fn targets(&self) -> Vec<Mark> {
        Targets::marks_or_one(self.to.as_ref())
    }

    fn check(&self) -> Result<(), ConfigError> {
        match (&self.token, &self.to, &self.webhook) {
            (Some(_), Some(_), None) | (None, None, Some(_)) => Ok(()),
            _ => Err(ConfigError("`token` and `to` are set, or `webhook` alone".to_owned())),
        }
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let api = Address::parse("https://www.kookapp.cn/api/v3").expect("a constant address");
        let text = KIND.about.dialect.titled(message);
        let (Some(token), Some(to)) = (&self.token, &self.to) else {
            let webhook = self.webhook.as_ref().map(Secret::expose).unwrap_or_default();
            let address = api.at(&["incoming", webhook]);
            let body = json!({ "type": KMARKDOWN, "content": text });
            return cx.post(&address).json(&body).delivered(&KIND).await;
        };
        let to = to.at(cx);
        let place = if to.starts_with('@') { "direct-message" } else { "message" };
        let login = format!("Bot {}", token.expose());
        let post = |action| cx.post(&api.at(&[place, action])).header("authorization", &login);
        if let Some(id) = cx.edit.as_ref().and_then(|receipt| receipt.message_id.clone()) {
            let update = json!({ "msg_id": id, "content": text });
            post("update").json(&update).delivered(&KIND).await?;
            return Ok(Receipt { message_id: Some(id) });
        }
        let target = to.trim_start_matches(['@', '#']);
        let body = json!({ "type": KMARKDOWN, "target_id": target, "content": text });
        post("create").json(&body).delivered(&KIND).await
    }
}
