use crate::{
    catalog::discord_bot::{self, Snowflake},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<DiscordWebhook>(About {
    name: "discord_webhook",
    title: "Discord",
    docs: "https://discord.com/developers/docs/resources/webhook#execute-webhook",
    transport: Transport::Http {
        accepted: r#"{"id":"1456789012345678901"}"#,
        verdict: Verdict {
            hints: &[
                ("10015", "the webhook was deleted; set `url` to another one"),
                ("50027", "check `url`"),
                ("220001", "the channel is a forum, so `thread` must be set"),
            ],
            ..discord_bot::VERDICT
        },
        refusals: &[
            Refusal::permanent(404, r#"{"message": "Unknown Webhook", "code": 10015}"#),
            Refusal::permanent(401, r#"{"message": "Invalid Webhook Token", "code": 50027}"#),
            Refusal::permanent(400, r#"{"message": "Invalid Form Body", "code": 50035, "errors": {}}"#),
            Refusal::after(2, 429, r#"{"message": "You are being rate limited.", "retry_after": 2.0, "global": false}"#),
        ],
    },
    dialect: Dialect::Discord,
    limits: discord_bot::LIMITS,
    edits: true,
    example: r#"
        url = "https://discord.com/api/webhooks/1456789012345678901/9f86d081884c7d659a2feaa0c55ad015"
    "#,
})
.with_files(discord_bot::FILES)
.with_urls(Urls {
    schemes: &["discord"],
    native: &[
        "discord.com/api/",
        "discordapp.com/api/",
        "ptb.discord.com/api/",
        "canary.discord.com/api/",
    ],
    examples: &[
        "discord://1456789012345678901/9f86d081884c7d659a2feaa0c55ad015",
        "discord://bell@1456789012345678901/9f86d081884c7d659a2feaa0c55ad015?thread=1456789012345678999",
    ],
    read,
    ..Urls::NONE
});

/// Messages to a Discord channel through a webhook.
///
/// 1. In Discord, open the channel's settings, then "Integrations", then "Webhooks", and create one.
/// 2. Choose "Copy Webhook URL" and set `url` to it.
///
/// The steps of a run edit one message in place.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DiscordWebhook {
    /// Address of the webhook.
    #[schemars(extend("writeOnly" = true))]
    url: Address,
    /// Number of the thread to write to; in a forum there must be one.
    thread: Option<Snowflake>,
    /// Name to write under, instead of the webhook's.
    username: Option<String>,
    /// Address of the picture to write under, instead of the webhook's.
    avatar_url: Option<Address>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // Those of Apprise's embeds, which the messages are not, and two that the level decides here.
    url.ignore(&[
        "href",
        "url",
        "footer_logo",
        "fields",
        "avatar",
        "tts",
        "flags",
        "batch",
        "template",
    ]);
    url.parameters(':');
    if url.parameter("ping").is_some() {
        return Err(url.wrong("names people to call, which channels do not do"));
    }
    let address = if url.is_native() {
        // The old name of Discord leads to the new one.
        url.native().replacen("://discordapp.com/", "://discord.com/", 1)
    } else {
        let id = url.authority().ok_or_else(|| url.wrong("names no webhook"))?;
        format!("https://discord.com/api/webhooks/{id}/{}", url.only("token")?)
    };
    let thread = url.parameter("thread").or_else(|| url.parameter("thread_id"));
    let username = url.parameter("botname").or_else(|| url.user.take());
    Ok(url::options([
        ("url", Some(address.into())),
        ("thread", thread.map(Into::into)),
        ("username", username.map(Into::into)),
        ("avatar_url", url.parameter("avatar_url").map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for DiscordWebhook {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let in_thread = |address: Address| match &self.thread {
            Some(thread) => address.with("thread_id", thread.as_str()),
            None => address,
        };
        let avatar = self.avatar_url.as_ref().map(|avatar| avatar.url().as_str());
        let name = json!({ "username": self.username, "avatar_url": avatar });
        // Without `wait` Discord answers before it has looked at the message, and gives no id.
        let new = in_thread(self.url.clone()).with("wait", "true");
        if let Some(file) = cx.files.first() {
            return discord_bot::with_file(cx.post(&new), file, &name).delivered(&KIND).await;
        }
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.as_deref());
        if let Some(id) = earlier {
            let address = in_thread(self.url.at(&["messages", id]));
            return cx.patch(&address).json(&discord_bot::edit(message)).delivered(&KIND).await;
        }
        let mut body = discord_bot::post(message);
        if let (Some(fields), Value::Object(name)) = (body.as_object_mut(), name) {
            fields.extend(name);
        }
        cx.post(&new).json_without_nulls(body).delivered(&KIND).await
    }
}

#[cfg(test)]
mod tests {
    use crate::catalog::from_url;

    #[test]
    fn discords_own_addresses_are_channels() {
        #[track_caller]
        fn check(address: &str, options: &str) {
            let read = from_url(address).unwrap();
            assert_eq!(
                (read.kind, read.options),
                ("discord_webhook", toml::from_str(options).unwrap())
            );
        }
        check(
            "https://discord.com/api/webhooks/123/abc?thread=9",
            "url = 'https://discord.com/api/webhooks/123/abc'\nthread = '9'",
        );
        check(
            "https://discordapp.com/api/webhooks/123/abc",
            "url = 'https://discord.com/api/webhooks/123/abc'",
        );
        check(
            "discord://bell@123/abc?thread=9&avatar_url=https://example.com/a.png&tts=no",
            "url = 'https://discord.com/api/webhooks/123/abc'\nthread = '9'\nusername = 'bell'\n\
             avatar_url = 'https://example.com/a.png'",
        );
    }
}
