use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<RocketChatWebhook>(About {
    name: "rocketchat_webhook",
    title: "Rocket.Chat",
    docs: "https://docs.rocket.chat/docs/integrations",
    transport: Transport::Http {
        accepted: r#"{"success":true}"#,
        verdict: VERDICT,
        refusals: &[
            Refusal::permanent(400, r#"{"success":false,"error":"Invalid integration id or token provided."}"#),
            Refusal::permanent(400, r#"{"success":false,"error":"invalid-channel"}"#),
            Refusal::temporary(429, r#"{"success":false,"error":"Error, too many requests. Please slow down. You must wait 42 seconds before trying this endpoint again. [error-too-many-requests]"}"#),
        ],
    },
    dialect: Dialect::RocketChat,
    limits: LIMITS,
    edits: false,
    example: r#"
        url = "https://chat.example.com/hooks/66f1a2b3c4d5/9f86d081884c7d659a2feaa0c55ad015"
    "#,
})
.with_urls(Urls {
    schemes: &["rocket", "rockets"],
    claims: is_webhook,
    examples: &[
        "rockets://66f1a2b3c4d5/9f86d081884c7d659a2f@chat.example.com",
        "rocket://bell:66f1a2b3c4d5%2F9f86d081884c7d659a2f@localhost:3000/#builds/@ada",
        "rockets://chat.example.com/#builds?webhook=66f1a2b3c4d5/9f86d081884c7d659a2f",
    ],
    read,
    ..Urls::NONE
});

/// What Rocket.Chat's answers mean, to bots and to webhooks.
pub(super) const VERDICT: Verdict = Verdict {
    code: Some("/errorType"),
    reason: &["/error", "/message"],
    passing: &[Passing::soon("error-too-many-requests")],
    // In milliseconds, unlike elsewhere.
    wait: Wait::UntilIn("x-ratelimit-reset"),
    ..Verdict::field("/success", &["true"])
};

/// 5,000 characters for title and body together, unless the server says otherwise.
pub(super) const LIMITS: Limits =
    Limits { title: 200, body: 4_700, unit: Unit::Characters, per_minute: None };

/// Messages to a Rocket.Chat room through an incoming webhook.
///
/// 1. In Rocket.Chat, as an administrator, open "Integrations", then "New" and "Incoming".
/// 2. Switch it on, name the room and the user who is to write, and save.
/// 3. Set `url` to the "Webhook URL" that appears.
///
/// For updates in place use `rocketchat_bot`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RocketChatWebhook {
    /// Address of the webhook.
    #[schemars(extend("writeOnly" = true))]
    url: Address,
    /// Where to write instead of the webhook's room: `#channel`, `@user` or the id of a room. Several get a message
    /// each.
    channel: Option<Targets<String>>,
    /// Name to write under.
    alias: Option<String>,
}

/// Whether an address names a webhook; the others of the schemes name users.
pub(super) fn is_webhook(url: &ServiceUrl) -> bool {
    let has_slash = |part: &Option<String>| part.as_ref().is_some_and(|part| part.contains('/'));
    if let Some(mode) = url.look("mode").filter(|mode| !mode.is_empty()) {
        return mode.eq_ignore_ascii_case("webhook");
    }
    url.look("webhook").is_some()
        || has_slash(&url.user)
        || has_slash(&url.password)
        || follows_slash(url)
}

/// Whether the host stands behind the second half of the token: `rocket://id/token@host`.
fn follows_slash(url: &ServiceUrl) -> bool {
    let first = url.path.first();
    url.user.is_none() && first.is_some_and(|part| !part.starts_with('@') && part.contains('@'))
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    url.ignore(&["mode", "avatar"]);
    let named = url.parameter("webhook");
    let token = if follows_slash(url) {
        let rest = url.next("host")?;
        let (token, host) = rest.rsplit_once('@').ok_or_else(|| url.wrong("names no host"))?;
        let written = url.authority().unwrap_or_default();
        // What stands before a colon is a user, who means nothing to a webhook.
        let id = written.rsplit(':').next().unwrap_or_default();
        host.clone_into(&mut url.authority);
        Some(format!("{id}/{token}"))
    } else {
        let user = url.user.take();
        url.password.take().or(user)
    };
    let token = named.or(token).ok_or_else(|| url.wrong("names no webhook"))?;
    Ok(url::options([
        ("url", Some(format!("{}/hooks/{token}", url.web()?).into())),
        ("channel", url.targets()),
    ]))
}

#[async_trait]
impl Channel for RocketChatWebhook {
    fn targets(&self) -> Vec<Mark> {
        Targets::marks_or_one(self.channel.as_ref())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let body = json!({
            "text": KIND.about.dialect.titled(message),
            "channel": self.channel.as_ref().map(|channel| channel.at(cx)),
            "alias": self.alias,
        });
        cx.post(&self.url).json_without_nulls(body).delivered(&KIND).await
    }
}
