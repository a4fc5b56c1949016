use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Pushbullet>(About {
    name: "pushbullet",
    title: "Pushbullet",
    docs: "https://docs.pushbullet.com/#create-push",
    transport: Transport::Http {
        accepted: r#"{"active":true,"iden":"ujpah72o0sjAoRtnM0jc","type":"note"}"#,
        verdict: Verdict {
            code: Some("/error/code"),
            reason: &["/error/message"],
            wait: Wait::UntilIn("X-Ratelimit-Reset"),
            ..Verdict::id("/iden")
        },
        refusals: &[
            Refusal::permanent(401, r#"{"error":{"code":"invalid_access_token","type":"invalid_request","message":"Access token is missing or invalid.","cat":"(=^‥^=)"},"error_code":"invalid_access_token"}"#),
            Refusal::permanent(400, r#"{"error":{"type":"invalid_request","message":"The resource could not be found.","cat":"~(=^‥^)"}}"#),
            Refusal::temporary(429, r#"{"error":{"type":"ratelimited","message":"You have been ratelimited for making too many requests to the server."}}"#),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        token = "o.rXRn1bcDe6ivJyJHnzExampleToken"
    "#,
})
.with_links()
.with_urls(Urls {
    schemes: &["pbul"],
    examples: &[
        "pbul://o.rXRn1bcDe6ivJyJHnzExampleToken",
        "pbul://o.rXRn1bcDe6ivJyJHnzExampleToken/#builds/ada@example.com/ujpah72o0sjAoRtnM0jc",
    ],
    read: |url| {
        Ok(url::options([("token", url.authority().map(Into::into)), ("to", url.targets())]))
    },
    ..Urls::NONE
});

/// Push notifications through [Pushbullet](https://www.pushbullet.com).
///
/// 1. Install the app and log in.
/// 2. On the web page open Settings, then Account, create an access token and set `token` to it.
/// 3. Without `to`, all your devices get the message.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pushbullet {
    /// Access token of the account.
    token: Secret,
    /// A device by its `iden`, somebody else by mail address, or a channel as `#tag`. Several get a message each.
    to: Option<Targets<String>>,
}

#[async_trait]
impl Channel for Pushbullet {
    fn targets(&self) -> Vec<Mark> {
        Targets::marks_or_one(self.to.as_ref())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let to = self.to.as_ref().map(|to| to.at(cx).as_str());
        let (to_channel, to) =
            (to.and_then(|to| to.strip_prefix('#')), to.filter(|to| !to.starts_with('#')));
        let push = present(json!({
            "type": if message.link.is_some() { "link" } else { "note" },
            "title": message.title,
            "body": KIND.about.dialect.body(message),
            // With the same `guid`, a second push is the first one again.
            "guid": cx.id(),
            "url": message.link,
            "channel_tag": to_channel,
            "email": to.filter(|to| to.contains('@')),
            "device_iden": to.filter(|to| !to.contains('@')),
        }));
        let address =
            Address::parse("https://api.pushbullet.com/v2/pushes").expect("a constant address");
        let request = cx.post(&address).header("access-token", self.token.expose());
        request.json(&push).delivered(&KIND).await
    }
}
