use std::collections::BTreeMap;

use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<AppriseApi>(About {
    name: "apprise_api",
    title: "Apprise",
    docs: "https://github.com/caronc/apprise-api#persistent-storage-solution",
    transport: Transport::Http {
        accepted: r#"{"error":null,"details":[]}"#,
        verdict: Verdict { reason: &["/error"], ..Verdict::NO_PAGE },
        refusals: &[
            // Some of its services took the message, so a repeat would reach those again.
            Refusal::permanent(
                424,
                r#"{"error":"One or more notification could not be sent","details":[]}"#,
            ),
            Refusal::permanent(400, r#"{"error":"Payload lacks minimum requirements"}"#),
            Refusal::permanent(204, ""),
            Refusal::permanent(200, r#"{"error":"There was no configuration found"}"#),
        ],
    },
    dialect: Dialect::Markdown,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        server = "https://apprise.example.com"
        key = "team-builds"
    "#,
})
.with_urls(Urls {
    schemes: &["apprise", "apprises", "http", "https"],
    native: &[],
    claims: |url| match (url.scheme.as_str(), url.path.as_slice()) {
        ("apprise" | "apprises", _) => true,
        (_, [.., notify, _]) => notify == "notify",
        _ => false,
    },
    examples: &[
        "apprise://localhost:8000/team-builds?tags=a,b",
        "apprises://ada:secret-1@apprise.example.com/sub/team-builds?+X-Team=shop",
        "https://apprise.example.com/notify/team-builds",
    ],
    read,
});

/// Whatever your own [Apprise API](https://github.com/caronc/apprise-api) server can reach: more than a hundred
/// services.
///
/// 1. On the page of the server add a configuration with the addresses of the services.
/// 2. Set `server` to the address of the page and `key` to the key of the configuration.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AppriseApi {
    /// Address of the server, with user and password if it asks for them.
    server: Address,
    /// Key of the configuration.
    key: Secret,
    /// Tags of the services that get the message; each one counts for itself.
    #[serde(default)]
    tags: Vec<String>,
    /// More headers, by name.
    #[serde(default)]
    headers: BTreeMap<String, Secret>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // Both ways of sending and both versions of the interface say the same.
    url.ignore(&["method", "version", "v"]);
    let is_native = url.is_native();
    let (token, to) = (url.parameter("token"), url.parameter("to"));
    let key = token.or(to).or_else(|| url.path.pop());
    let key = key.ok_or_else(|| url.wrong("names no configuration key"))?;
    if is_native {
        url.path.pop();
    }
    let mut server = [&[url.web()?], url.rest().as_slice()].concat().join("/");
    if let Some(user) = url.user.take() {
        let parsed = Address::parse(&server).ok_or_else(|| url.wrong("names no host"))?;
        let login = parsed.as_user(Some(&user), url.password.take().as_deref());
        server = login.url().to_string();
    }
    let tags = url.parameter("tags").map(|tags| {
        let tags = tags.split([',', ' ']).filter(|tag| !tag.is_empty());
        tags.map(toml::Value::from).collect::<Vec<_>>()
    });
    let headers: toml::Table =
        url.parameters('+').into_iter().map(|(name, value)| (name, value.into())).collect();
    Ok(url::options([
        ("server", Some(server.into())),
        ("key", Some(key.into())),
        ("tags", tags.map(Into::into)),
        ("headers", Some(headers).filter(|all| !all.is_empty()).map(Into::into)),
    ]))
}

/// What Apprise calls the type of a notification.
pub(super) fn severity(message: &Message) -> &'static str {
    let run = message.run.as_ref();
    let is_success = run.is_some_and(|run| run.phase == Phase::End);
    match message.level {
        Level::Debug | Level::Info | Level::Notice if is_success => "success",
        Level::Debug | Level::Info | Level::Notice => "info",
        Level::Warning => "warning",
        Level::Error | Level::Critical | Level::Alert | Level::Emergency => "failure",
    }
}

#[async_trait]
impl Channel for AppriseApi {
    fn check(&self) -> Result<(), ConfigError> {
        check_headers(&self.headers)
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let notification = present(json!({
            "title": message.title.as_deref().unwrap_or_default(),
            "body": KIND.about.dialect.body(message),
            "type": severity(message),
            "format": if message.format == Format::Markdown { "markdown" } else { "text" },
            "tag": (!self.tags.is_empty()).then(|| self.tags.join(",")),
        }));
        let address = self.server.at(&["notify", self.key.expose()]);
        let mut request = cx.post(&address).header("accept", "application/json");
        for (name, value) in &self.headers {
            request = request.header(name, value.expose());
        }
        let reply = request.json(&notification).answered().await?;
        let receipt = KIND.verdict().judge(KIND.about.title, &reply)?;
        if reply.status() == 204 {
            return Err(SendError::permanent("Apprise has nothing to notify; check `key`"));
        }
        // Servers before 1.0 answer with a sentence.
        let answer = reply.json().unwrap_or_default();
        match answer.get("error").and_then(Value::as_str) {
            Some(reason) => {
                Err(SendError::permanent(format!("Apprise refused: {}", cx.excerpt(reason))))
            }
            None => Ok(receipt),
        }
    }
}
