use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Gotify>(About {
    name: "gotify",
    title: "Gotify",
    docs: "https://gotify.net/docs/pushmsg",
    transport: Transport::Http {
        accepted: r#"{"id":25}"#,
        verdict: Verdict {
            reason: &["/errorDescription", "/error"],
            ..Verdict::id("/id")
        },
        refusals: &[
            Refusal::permanent(200, r#"{"error":"no"}"#),
            Refusal::permanent(401, r#"{"error":"Unauthorized","errorCode":401,"errorDescription":"you need to provide a valid access token or user credentials to access this api"}"#),
        ],
    },
    dialect: Dialect::Markdown,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        server = "https://gotify.example.com"
        token = "AKs9f0Qe1vGdx7c"
    "#,
})
.with_urls(Urls {
    schemes: &["gotify", "gotifys"],
    examples: &["gotifys://gotify.example.com/AKs9f0Qe1vGdx7c"],
    read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "gotify",
    needs: &["GOTIFY_URL", "GOTIFY_TOKEN"],
    takes: &["GOTIFY_PRIORITY"],
    read: |set| Ok(set.table(&[("server", "GOTIFY_URL"), ("token", "GOTIFY_TOKEN")])),
});

/// Push notifications through your own [Gotify](https://gotify.net) server.
///
/// 1. In Gotify's web page, create an application and set `token` to its token.
/// 2. Set `server` to the address of the page.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Gotify {
    /// Address of the server.
    server: Address,
    /// Token of the application.
    token: Secret,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let token = url.path.pop().ok_or_else(|| url.wrong("names no token"))?;
    let server = [&[url.web()?], url.rest().as_slice()].concat().join("/");
    Ok(url::options([("server", Some(server.into())), ("token", Some(token.into()))]))
}

#[async_trait]
impl Channel for Gotify {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let priority = match message.level {
            Level::Debug => 1,
            Level::Info | Level::Notice => 4,
            Level::Warning => 6,
            Level::Error => 8,
            Level::Critical | Level::Alert | Level::Emergency => 10,
        };
        let kind = if message.format == Format::Markdown { "markdown" } else { "plain" };
        let body = json!({
            "title": message.title,
            "message": KIND.about.dialect.body(message),
            "priority": priority,
            "extras": { "client::display": { "contentType": format!("text/{kind}") } },
        });
        let request = cx.post(&self.server.at(&["message"]));
        let request = request.header("x-gotify-key", self.token.expose()).json(&body);
        request.delivered(&KIND).await
    }
}
