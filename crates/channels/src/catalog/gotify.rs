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
    examples: &[
        "gotifys://gotify.example.com/AKs9f0Qe1vGdx7c",
        "gotify://gotify.example.com:8080/behind/a/path/AKs9f0Qe1vGdx7c?priority=high",
    ],
    read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "gotify",
    needs: &["GOTIFY_URL", "GOTIFY_TOKEN"],
    takes: &["GOTIFY_PRIORITY"],
    read: |set| {
        let mut table = set.table(&[("server", "GOTIFY_URL"), ("token", "GOTIFY_TOKEN")]);
        let priority = set.number("GOTIFY_PRIORITY")?.map(toml::Value::from);
        table.extend(url::options([("priority", priority)]));
        Ok(table)
    },
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
    /// Priority whatever the level, from 0 to 10.
    priority: Option<u8>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let token = url.path.pop().ok_or_else(|| url.wrong("names no token"))?;
    let server = [&[url.web()?], url.rest().as_slice()].concat().join("/");
    let priority = url.parameter("priority").map(|priority| match priority.as_str() {
        "low" => Ok(0),
        "moderate" => Ok(3),
        "normal" => Ok(5),
        "high" => Ok(8),
        "emergency" => Ok(10),
        number => number.parse::<i64>().map_err(|_| url.wrong("has an unknown `priority`")),
    });
    Ok(url::options([
        ("server", Some(server.into())),
        ("token", Some(token.into())),
        ("priority", priority.transpose()?.map(toml::Value::from)),
    ]))
}

#[async_trait]
impl Channel for Gotify {
    fn check(&self) -> Result<(), ConfigError> {
        if self.priority.is_some_and(|priority| priority > 10) {
            return Err(ConfigError("`priority` is not right; expected 0 to 10".to_owned()));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let priority = self.priority.unwrap_or(match message.level {
            Level::Debug => 1,
            Level::Info | Level::Notice => 4,
            Level::Warning => 6,
            Level::Error => 8,
            Level::Critical | Level::Alert | Level::Emergency => 10,
        });
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
