use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<SpugPush>(About {
    name: "spugpush",
    title: "Spug",
    docs: "https://push.spug.dev",
    transport: Transport::Http { accepted: "{}", verdict: Verdict::NO_PAGE, refusals: &[] },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        token = "TmOdH5xKp0Vw3cRf7sTmOdH5xKp0Vw3c"
    "#,
})
.with_urls(Urls {
    schemes: &["spugpush"],
    native: &["push.spug.dev/send/"],
    examples: &[
        "spugpush://TmOdH5xKp0Vw3cRf7sTmOdH5xKp0Vw3c",
        "https://push.spug.dev/send/TmOdH5xKp0Vw3cRf7sTmOdH5xKp0Vw3c",
    ],
    read,
    ..Urls::NONE
});

/// Messages to phone, mail, WeChat and more through Spug's push helper (推送助手).
///
/// 1. Log in on [the site](https://push.spug.dev), and create a template whose text shows `title` and `content`.
/// 2. Set `token` to the last part of the template's address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SpugPush {
    /// Last part of the template's address.
    token: Secret,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let mut token = url.parameter("token");
    if url.is_native() {
        token = token.or(url.rest().pop());
        url.authority();
    }
    let token = token.or_else(|| url.authority()).ok_or_else(|| url.wrong("names no token"))?;
    Ok(url::options([("token", Some(token.into()))]))
}

#[async_trait]
impl Channel for SpugPush {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let title = message.title.as_deref().unwrap_or("Deskbell");
        let body = json!({
            "title": format!("{}{title}", mark(message.level)),
            "content": KIND.about.dialect.body(message),
        });
        let service = Address::parse("https://push.spug.dev/send").expect("a constant address");
        cx.post(&service.at(&[self.token.expose()])).json(&body).delivered(&KIND).await
    }
}
