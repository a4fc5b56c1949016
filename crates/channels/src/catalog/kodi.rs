use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Kodi>(About {
    name: "kodi",
    title: "Kodi",
    docs: "https://kodi.wiki/view/JSON-RPC_API/v13#GUI.ShowNotification",
    transport: Transport::Http {
        accepted: r#"{"id":1,"jsonrpc":"2.0","result":"OK"}"#,
        verdict: Verdict {
            code: Some("/error/code"),
            reason: &["/error/message"],
            id: None,
            ..Verdict::id("/result")
        },
        refusals: &[
            Refusal::permanent(
                200,
                r#"{"error":{"code":-32602,"message":"Invalid params."},"id":1,"jsonrpc":"2.0"}"#,
            ),
            Refusal::permanent(401, ""),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        server = "http://kodi:example-pw@living-room.local:8080"
    "#,
})
.with_urls(Urls {
    schemes: &["kodi", "kodis", "xbmc", "xbmcs"],
    examples: &[
        "kodi://living-room.local:8080",
        "xbmcs://kodi:example-pw@living-room.local?duration=5",
    ],
    read,
    ..Urls::NONE
});

/// Notes on the screen of [Kodi](https://kodi.tv).
///
/// 1. In Kodi's settings, under Services, Control, allow remote control via HTTP.
/// 2. Set `server` to its address with the port, user and password that stand there.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Kodi {
    /// Address of Kodi, with user and password.
    server: Address,
    /// How long a note stands on the screen, in seconds.
    #[serde(default = "a_while")]
    duration: u32,
}

const fn a_while() -> u32 {
    12
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    url.ignore(&["image"]);
    // Kodi answers at one place only, whatever the address says.
    url.rest();
    let mut server = url.web()?;
    // The old name stands for the port that Kodi listens on, the new one for that of the scheme.
    if url.scheme.starts_with("xbmc") && url.host()?.1.is_none() {
        server.push_str(":8080");
    }
    let server = Address::parse(&server).ok_or_else(|| url.wrong("names no host"))?;
    let (user, password) = (url.user.take(), url.password.take());
    let server = server.as_user(user.as_deref(), password.as_deref());
    Ok(url::options([
        ("server", Some(server.url().to_string().into())),
        ("duration", url.number("duration")?.map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for Kodi {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let image = match message.level {
            Level::Debug | Level::Info | Level::Notice => "info",
            Level::Warning => "warning",
            Level::Error | Level::Critical | Level::Alert | Level::Emergency => "error",
        };
        let call = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "method": "GUI.ShowNotification",
            "params": {
                "title": message.title.as_deref().unwrap_or("Deskbell"),
                "message": KIND.about.dialect.body(message),
                "image": image,
                "displaytime": u64::from(self.duration) * 1_000,
            },
        });
        cx.post(&self.server.at(&["jsonrpc"])).json(&call).delivered(&KIND).await
    }
}
