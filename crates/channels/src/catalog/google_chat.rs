use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<GoogleChat>(About {
    name: "google_chat",
    title: "Google Chat",
    docs: "https://developers.google.com/workspace/chat/quickstart/webhooks",
    transport: Transport::Http {
        accepted: r#"{"name":"spaces/AAAAbcdefgh/messages/tV2J1c.tV2J1c"}"#,
        verdict: Verdict {
            code: Some("/error/status"),
            reason: &["/error/message"],
            hints: &[
                ("NOT_FOUND", "the webhook was deleted; set `url` to another one"),
                ("UNAUTHENTICATED", "check `url`"),
            ],
            ..Verdict::id("/name")
        },
        refusals: &[
            Refusal::permanent(400, r#"{"error":{"code":400,"message":"Message cannot be empty.","status":"INVALID_ARGUMENT"}}"#),
            Refusal::permanent(404, r#"{"error":{"code":404,"message":"Requested entity was not found.","status":"NOT_FOUND"}}"#),
            Refusal::temporary(429, r#"{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}"#),
        ],
    },
    dialect: Dialect::GoogleChat,
    // A space takes one message a second from all its webhooks together.
    limits: Limits { title: 200, body: 3_700, unit: Unit::Characters, per_minute: Some(60) },
    edits: false,
    example: r#"
        url = "https://chat.googleapis.com/v1/spaces/AAAAbcdefgh/messages?key=AIzaSyDdI0hCZtE6vySjMm&token=9f86d081884c7d65"
    "#,
})
.with_urls(Urls {
    schemes: &["gchat"],
    native: &["chat.googleapis.com/v1/spaces/"],
    examples: &[
        "gchat://AAAAbcdefgh/AIzaSyDdI0hCZtE6vySjMm/9f86d081884c7d65",
        "gchat://AAAAbcdefgh/AIzaSyDdI0hCZtE6vySjMm/9f86d081884c7d65/nightly",
        "gchat://?workspace=AAAAbcdefgh&key=AIzaSyDdI0hCZtE6vySjMm&token=9f86d081884c7d65&thread=nightly",
    ],
    read,
    ..Urls::NONE
});

/// Messages to a Google Chat space through a webhook.
///
/// 1. In Google Chat, open the menu of the space, then "Apps & integrations", then "Webhooks", and add one. Only
///    accounts of Google Workspace have it.
/// 2. Copy its address from its menu and set `url` to it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GoogleChat {
    /// Address of the webhook.
    #[schemars(extend("writeOnly" = true))]
    url: Address,
    /// A name of your own for the thread that all messages go to.
    thread: Option<String>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    if url.is_native() {
        let thread = url.look("threadkey").map(toml::Value::from);
        return Ok(url::options([("url", Some(url.native_whole().into())), ("thread", thread)]));
    }
    let space = url.parameter("workspace").or_else(|| url.authority());
    let space = space.ok_or_else(|| url.wrong("names no space"))?;
    let mut part = |name: &str, what: &str| match url.parameter(name) {
        Some(named) => Ok(named),
        None => url.next(what),
    };
    let (key, token) = (part("key", "key")?, part("token", "token")?);
    let thread = url.parameter("thread").or_else(|| url.parameter("threadkey"));
    let thread = match thread {
        None if !url.path.is_empty() => Some(url.only("thread")?),
        named => named,
    };
    let spaces =
        Address::parse("https://chat.googleapis.com/v1/spaces").expect("a constant address");
    let address = spaces.at(&[&space, "messages"]).with("key", &key).with("token", &token);
    Ok(url::options([
        ("url", Some(address.url().as_str().into())),
        ("thread", thread.map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for GoogleChat {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let text = KIND.about.dialect.titled(message);
        let request = match &self.thread {
            Some(thread) => {
                // The thread stands in the message; in the address Google calls it outdated.
                let option = "REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD";
                let address = self.url.without("threadKey").without("messageReplyOption");
                cx.post(&address.with("messageReplyOption", option))
                    .json(&json!({ "text": text, "thread": { "threadKey": thread } }))
            }
            None => cx.post(&self.url).json(&json!({ "text": text })),
        };
        request.delivered(&KIND).await
    }
}
