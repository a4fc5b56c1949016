use std::collections::BTreeMap;

use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<SynologyChat>(About {
    name: "synology_chat",
    title: "Synology Chat",
    docs: "https://kb.synology.com/en-us/DSM/help/Chat/chat_integration",
    transport: Transport::Http {
        accepted: r#"{"data":{"succ":{"user_id_post_map":{"1":123456}}},"success":true}"#,
        verdict: Verdict {
            code: Some("/error/code"),
            reason: &["/error/errors"],
            hints: &[("407", "check `token`")],
            ..Verdict::field("/success", &["true"])
        },
        refusals: &[
            Refusal::permanent(200, r#"{"error":{"code":410,"errors":"msg too long"},"success":false}"#),
            Refusal::permanent(200, r#"{"error":{"code":407,"errors":"record is not valid"},"success":false}"#),
        ],
    },
    dialect: Dialect::Plain,
    // What is too long is refused; how long that is, nobody documents.
    limits: Limits { title: 200, body: 1_800, unit: Unit::Characters, per_minute: None },
    edits: false,
    example: r#"
        server = "https://nas.example.com:5001"
        token = "TmOdH5xKp0Vw3cRf7s"
    "#,
})
.with_urls(Urls {
    schemes: &["synology", "synologys"],
    examples: &[
        "synologys://nas.example.com:5001/TmOdH5xKp0Vw3cRf7s",
        "synology://bell:password-1@nas.example.com/TmOdH5xKp0Vw3cRf7s/behind/a/path?+X-Team=team-secret-77",
    ],
    read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "synology_chat",
    needs: &["CHAT_URL", "CHAT_TOKEN"],
    takes: &[],
    read: variables,
});

/// Messages to a channel of Synology Chat, on your own NAS.
///
/// 1. In Chat, open the integrations in your profile's menu, and create an incoming webhook for the channel.
/// 2. It shows an address: set `server` to what stands before `/webapi`, and `token` to what follows `token=`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SynologyChat {
    /// Address of the NAS, up to `/webapi`.
    server: Address,
    /// Token of the webhook, with or without the `%22` around it.
    token: Secret,
    /// User, for a proxy in front of the NAS.
    user: Option<String>,
    /// Password of the user.
    password: Option<Secret>,
    /// Address of a file that Chat fetches and shows with each message.
    file_url: Option<Address>,
    /// Further headers.
    #[serde(default)]
    headers: BTreeMap<String, Secret>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let token = match url.parameter("token") {
        Some(token) => token,
        None => url.next("token")?,
    };
    let server = [&[url.web()?], url.rest().as_slice()].concat().join("/");
    let password = url.password.take().or_else(|| url.user.as_ref().map(|_| String::new()));
    let headers: toml::Table =
        url.parameters('+').into_iter().map(|(name, value)| (name, value.into())).collect();
    Ok(url::options([
        ("server", Some(server.into())),
        ("token", Some(token.into())),
        ("user", url.user.take().map(Into::into)),
        ("password", password.map(Into::into)),
        ("file_url", url.parameter("file_url").map(Into::into)),
        ("headers", (!headers.is_empty()).then(|| headers.into())),
    ]))
}

/// The address there ends with `token=`, where the token follows.
fn variables(set: &Set<'_>) -> Result<toml::Table, Wrong> {
    let address = set.get("CHAT_URL").unwrap_or_default();
    if !address.contains("method=incoming") {
        let reason = "expected the address of an incoming webhook up to token=";
        return Err(Wrong { variable: "CHAT_URL", reason });
    }
    let server = address.split_once("/webapi/").map_or(address, |(server, _)| server);
    let mut table = set.table(&[("token", "CHAT_TOKEN")]);
    table.insert("server".to_owned(), server.into());
    Ok(table)
}

#[async_trait]
impl Channel for SynologyChat {
    fn check(&self) -> Result<(), ConfigError> {
        if self.user.is_some() != self.password.is_some() {
            let lone = "`user` and `password` are set together or not at all";
            return Err(ConfigError(lone.to_owned()));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let text = KIND.about.dialect.titled(message);
        let file = self.file_url.as_ref().map(|file| file.url().as_str());
        let payload = present(json!({ "text": text, "file_url": file })).to_string();
        // DSM shows the token as it stands in an address, quotes included.
        let token = self.token.expose().replace("%22", "\"");
        let hook = self
            .server
            .at(&["webapi", "entry.cgi"])
            .with("api", "SYNO.Chat.External")
            .with("method", "incoming")
            .with("version", "2")
            .with("token", &token);
        let mut request = cx.post(&hook).form(&[("payload", &payload)]);
        if let (Some(user), Some(password)) = (&self.user, &self.password) {
            request = request.basic(user, password);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value.expose());
        }
        request.delivered(&KIND).await
    }
}
