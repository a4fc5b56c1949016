use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Techulus>(About {
    name: "techulus",
    title: "Push by Techulus",
    docs: "https://docs.push.techulus.com/api-documentation",
    transport: Transport::Http {
        accepted: r#"{"success":true,"message":"","responses":[{"success":true,"message":""}]}"#,
        verdict: Verdict { reason: &["/message"], ..Verdict::field("/success", &["true"]) },
        // The fields are documented, the words are not verified.
        refusals: &[
            Refusal::permanent(
                200,
                r#"{"success":false,"message":"No devices found","responses":[]}"#,
            ),
            Refusal::permanent(401, r#"{"success":false,"message":"Invalid API key"}"#),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        key = "9b2d7c1e-3f4a-4c5d-8e6f-0a1b2c3d4e5f"
    "#,
})
.with_links()
.with_urls(Urls {
    schemes: &["push"],
    examples: &["push://9b2d7c1e-3f4a-4c5d-8e6f-0a1b2c3d4e5f"],
    read: |url| Ok(url::options([("key", url.authority().map(Into::into))])),
    ..Urls::NONE
});

/// Push notifications through [Push by Techulus](https://push.techulus.com).
///
/// 1. Install the app and log in on its web page.
/// 2. Set `key` to the API key that the page shows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Techulus {
    /// API key.
    key: Secret,
}

#[async_trait]
impl Channel for Techulus {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let notification = json!({
            "title": message.title.as_deref().unwrap_or("Deskbell"),
            "body": KIND.about.dialect.body(message),
            "link": message.link,
        });
        let address =
            Address::parse("https://push.techulus.com/api/v1/notify").expect("a constant address");
        let request = cx.post(&address).header("x-api-key", self.key.expose());
        request.json(&present(notification)).delivered(&KIND).await
    }
}
