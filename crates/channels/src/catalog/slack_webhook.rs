use crate::{catalog::slack_bot, prelude::*};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<SlackWebhook>(About {
    name: "slack_webhook",
    title: "Slack",
    docs: "https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks/",
    transport: Transport::Http {
        accepted: "ok",
        verdict: Verdict {
            // The second is what the webhooks of workflows answer.
            success: Success::Body(&["ok", r#"{"ok":true}"#]),
            ..Verdict::STATUS
        },
        refusals: &[
            Refusal::permanent(400, "invalid_payload"),
            Refusal::permanent(403, "action_prohibited"),
            Refusal::permanent(404, "no_service"),
            Refusal::permanent(410, "channel_is_archived"),
            Refusal::temporary(500, "rollup_error"),
        ],
    },
    dialect: Dialect::Slack,
    limits: slack_bot::LIMITS,
    edits: false,
    example: r#"
        url = "https://hooks.slack.com/services/T0123ABCD/B0456EFGH/9f86d081884c7d659a2f"
    "#,
})
.with_urls(Urls {
    schemes: &["slack"],
    native: &[
        "hooks.slack.com/services/",
        "hooks.slack-gov.com/services/",
        "hooks.slack.com/workflows/",
        "hooks.slack.com/triggers/",
    ],
    claims: |url| !slack_bot::is_bot(url),
    examples: &[
        "slack://T0123ABCD/B0456EFGH/9f86d081884c7d659a2f",
        "slack://bell@T0123ABCD/B0456EFGH/9f86d081884c7d659a2f/#builds?mode=gov-hook",
        "slack://T0123ABCD/X0456EFGH/9f86d081884c7d659a2f?mode=trigger",
    ],
    read,
});

/// Messages to a Slack channel through an incoming webhook.
///
/// 1. On [api.slack.com/apps](https://api.slack.com/apps) create an app, or open yours.
/// 2. Under "Incoming Webhooks" switch them on, choose "Add New Webhook" and pick the channel.
/// 3. Set `url` to the address that appears.
///
/// The address of a workflow that starts "From a webhook" works as well; give the workflow a variable `text`.
/// For updates in place use `slack_bot`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SlackWebhook {
    /// Address of the webhook.
    #[schemars(extend("writeOnly" = true))]
    url: Address,
    /// Channel to write to, such as `#builds` or `@ada`; only webhooks from before apps take it. Several get a message
    /// each.
    channel: Option<Targets<String>>,
    /// Name to write under; only webhooks from before apps take it.
    username: Option<String>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    slack_bot::ignore(url);
    let mode = url.parameter("mode").unwrap_or_default();
    let is = |whole: &str| !mode.is_empty() && whole.starts_with(&mode);
    let address = if url.is_native() {
        url.native()
    } else {
        let base = match () {
            () if is("gov-hook") => "https://hooks.slack-gov.com/services",
            () if is("workflow") => "https://hooks.slack.com/workflows",
            () if is("trigger") => "https://hooks.slack.com/triggers",
            () if is("hook") || mode.is_empty() => "https://hooks.slack.com/services",
            () => return Err(url.wrong("has an unknown `mode`")),
        };
        let mut parts = match url.parameter("token") {
            Some(token) => token.split(['/', ',', ' ']).map(str::to_owned).collect(),
            None => url.authority().into_iter().collect::<Vec<_>>(),
        };
        if is("workflow") || is("trigger") {
            parts.extend(url.rest());
        }
        while parts.len() < 3 {
            parts.push(url.next("token of three parts")?);
        }
        format!("{base}/{}", parts.join("/"))
    };
    Ok(url::options([
        ("url", Some(address.into())),
        ("channel", slack_bot::channels(url)?),
        ("username", url.user.take().map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for SlackWebhook {
    fn targets(&self) -> Vec<Mark> {
        Targets::marks_or_one(self.channel.as_ref())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let path = self.url.url().path();
        let body = if path.starts_with("/workflows/") || path.starts_with("/triggers/") {
            // A workflow takes its variables and nothing else, and shows them as they are.
            json!({ "text": Dialect::Plain.titled(message) })
        } else {
            json!({
                "text": KIND.about.dialect.titled(message),
                "unfurl_links": false,
                "unfurl_media": false,
                "channel": self.channel.as_ref().map(|channel| channel.at(cx)),
                "username": self.username,
            })
        };
        cx.post(&self.url).json_without_nulls(body).delivered(&KIND).await
    }
}

#[cfg(test)]
mod tests {
    use crate::catalog::from_url;

    #[test]
    fn slacks_own_addresses_are_channels() {
        #[track_caller]
        fn check(address: &str, options: &str) {
            let read = from_url(address).unwrap();
            assert_eq!(
                (read.kind, read.options),
                ("slack_webhook", toml::from_str(options).unwrap())
            );
        }
        for address in [
            "https://hooks.slack.com/services/T1/B1/x1",
            "https://hooks.slack.com/workflows/T1/F1/x1/y1",
            "https://hooks.slack-gov.com/services/T1/B1/x1",
        ] {
            check(address, &format!("url = '{address}'"));
        }
        check("slack://T1/B1/x1", "url = 'https://hooks.slack.com/services/T1/B1/x1'");
        check("slack://?token=T1/B1/x1", "url = 'https://hooks.slack.com/services/T1/B1/x1'");
        check(
            "slack://bell@T1/B1/x1/#a/+C0123ABCD/@ada?to=b",
            "url = 'https://hooks.slack.com/services/T1/B1/x1'\nusername = 'bell'\n\
             channel = ['#a', 'C0123ABCD', '@ada', '#b']",
        );
        check(
            "slack://T1/X1/y1/z1?mode=trigger",
            "url = 'https://hooks.slack.com/triggers/T1/X1/y1/z1'",
        );
    }
}
