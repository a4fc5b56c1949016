use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<MattermostWebhook>(About {
    name: "mattermost_webhook",
    title: "Mattermost",
    docs: "https://developers.mattermost.com/integrate/webhooks/incoming/",
    transport: Transport::Http {
        accepted: "ok",
        verdict: Verdict { success: Success::Body(&["ok"]), ..Verdict::STATUS },
        refusals: &[
            Refusal::permanent(400, r#"{"id":"web.incoming_webhook.invalid.app_error","message":"Invalid webhook.","detailed_error":"","status_code":400}"#),
            Refusal::permanent(404, r#"{"id":"web.incoming_webhook.channel.app_error","message":"Couldn't find the channel.","detailed_error":"","status_code":404}"#),
            Refusal::temporary(429, "limit exceeded"),
        ],
    },
    dialect: Dialect::ChatMarkdown,
    limits: LIMITS,
    edits: false,
    example: r#"
        url = "https://mattermost.example.com/hooks/hhtmtn3a6tyq3eqk5smqrq7cwo"
    "#,
})
.with_urls(Urls {
    schemes: &["mmost", "mmosts"],
    native: &["mattermost."],
    claims: |url| !is_bot(url),
    examples: &[
        "mmosts://mattermost.example.com/hhtmtn3a6tyq3eqk5smqrq7cwo",
        "mmost://bell@localhost:8065/sub/hhtmtn3a6tyq3eqk5smqrq7cwo?channels=builds,ops",
    ],
    read,
});

/// 16,383 characters for title and body together.
pub(super) const LIMITS: Limits =
    Limits { title: 300, body: 16_000, unit: Unit::Characters, per_minute: None };

/// Messages to a Mattermost channel through an incoming webhook.
///
/// 1. In Mattermost, open "Integrations" in the main menu, then "Incoming Webhooks", and add one for the channel. Where
///    the menu lacks it, an administrator has to switch them on.
/// 2. Set `url` to the address that appears.
///
/// For updates in place use `mattermost_bot`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MattermostWebhook {
    /// Address of the webhook.
    #[schemars(extend("writeOnly" = true))]
    url: Address,
    /// Channel to write to instead of the webhook's: its name as in addresses, or `@name` of a person. Several get a
    /// message each.
    channel: Option<Targets<String>>,
    /// Name to write under, where the server allows it.
    username: Option<String>,
    /// Address of the picture to write under, where the server allows it.
    icon_url: Option<Address>,
    /// Whether errors are marked as important and worse as urgent. Some servers refuse marked messages.
    #[serde(default)]
    #[schemars(extend("default" = false))]
    priority: bool,
}

/// Whether an address names a bot; the others of the schemes name webhooks.
pub(super) fn is_bot(url: &ServiceUrl) -> bool {
    match url.look("mode") {
        Some(mode) if !mode.is_empty() => "bot".starts_with(&mode.to_ascii_lowercase()),
        _ => url.look("team").is_some_and(|team| !team.is_empty()),
    }
}

/// The channels that an address names; they have a parameter, because the path belongs to the server.
pub(super) fn channels(url: &mut ServiceUrl) -> Vec<String> {
    let written = ["to", "channel", "channels"].map(|name| url.parameter(name).unwrap_or_default());
    let names = written.iter().flat_map(|names| names.split([',', ' ']));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// How Mattermost marks what is serious.
pub(super) const fn priority(level: Level) -> Option<&'static str> {
    match level {
        Level::Debug | Level::Info | Level::Notice | Level::Warning => None,
        Level::Error => Some("important"),
        Level::Critical | Level::Alert | Level::Emergency => Some("urgent"),
    }
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    if !"webhook".starts_with(&url.parameter("mode").unwrap_or_default().to_ascii_lowercase()) {
        return Err(url.wrong("has an unknown `mode`"));
    }
    let address = if url.is_native() {
        if url.path.first().is_none_or(|first| first != "hooks") {
            return Err(url.wrong("is no webhook, which has `/hooks/`"));
        }
        url.native()
    } else {
        let token = url.path.pop().ok_or_else(|| url.wrong("names no token"))?;
        let path = [url.rest(), vec!["hooks".to_owned(), token]].concat().join("/");
        format!("{}/{path}", url.web()?)
    };
    let channels: Vec<toml::Value> =
        channels(url).iter().map(|name| name.trim_start_matches(['#', '+']).into()).collect();
    let username = url.parameter("botname").or_else(|| url.user.take());
    Ok(url::options([
        ("url", Some(address.into())),
        ("channel", (!channels.is_empty()).then(|| channels.into())),
        ("username", username.map(Into::into)),
        ("icon_url", url.parameter("icon_url").map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for MattermostWebhook {
    fn targets(&self) -> Vec<Mark> {
        Targets::marks_or_one(self.channel.as_ref())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let priority = priority(message.level).filter(|_| self.priority);
        let body = json!({
            "text": KIND.about.dialect.titled(message),
            "channel": self.channel.as_ref().map(|channel| channel.at(cx)),
            "username": self.username,
            "icon_url": self.icon_url.as_ref().map(|icon| icon.url().as_str()),
            "priority": priority.map(|priority| json!({ "priority": priority })),
        });
        cx.post(&self.url).json_without_nulls(body).delivered(&KIND).await
    }
}
