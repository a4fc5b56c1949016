use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<MatrixWebhook>(About {
    name: "matrix_webhook",
    title: "Matrix",
    docs: "https://matrix-org.github.io/matrix-hookshot/latest/setup/webhooks.html",
    transport: Transport::Http {
        accepted: r#"{"ok":true}"#,
        verdict: Verdict { success: Success::NoPage, ..Verdict::STATUS },
        refusals: &[
            Refusal::permanent(404, r#"{"ok":false,"error":"Webhook not found"}"#),
            Refusal::temporary(429, r#"{"ok":false,"error":"Too many requests"}"#),
        ],
    },
    dialect: Dialect::Html,
    // As for `matrix`: 65,536 bytes for the event that the bridge makes of it, with and without HTML.
    limits: Limits { title: 500, body: 18_000, unit: Unit::Bytes, per_minute: None },
    edits: false,
    example: r#"
        url = "https://hookshot.example.org/webhook/2f8a3c4e-9b1d-4c55-8f0e-6a7b"
    "#,
})
.with_urls(Urls {
    schemes: &["matrix", "matrixs"],
    native: &["webhooks.t2bot.io/api/v1/matrix/hook/"],
    claims: is_webhook,
    examples: &[
        "matrixs://bell:2f8a3c4e9b1d@hookshot.example.org?mode=hookshot&path=/public-hooks",
        "matrixs://bell:2f8a3c4e9b1d@bridge.example.org:8448?mode=matrix",
        "matrix://2f8a3c4e9b1d@localhost?mode=slack",
        "matrix://bell@2f8a3c4e9b1d4c558f0e6a7b2f8a3c4e9b1d4c558f0e6a7b2f8a3c4e9b1d4c55",
        "https://webhooks.t2bot.io/api/v1/matrix/hook/2f8a3c4e9b1d4c558f0e6a7b2f8a3c4e9b1d4c558f0e6a7b2f8a3c4e9b1d4c55",
    ],
    read,
});

/// Messages to a Matrix room through a webhook of a bridge.
///
/// 1. Invite the bridge's bot to the room: [hookshot](https://matrix-org.github.io/matrix-hookshot) of your homeserver,
///    or [t2bot](https://t2bot.io/webhooks).
/// 2. Write `!hookshot webhook Deskbell` or, to t2bot, `!webhook`, and set `url` to the address that the bot answers
///    with.
/// 3. For another bridge than hookshot set `bridge`.
///
/// With a user of its own, `matrix` edits the steps of a run in place.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MatrixWebhook {
    /// Address of the webhook.
    #[schemars(extend("writeOnly" = true))]
    url: Address,
    /// What the webhook reads: `hookshot`, `matrix` (t2bot and matrix-appservice-webhooks) or `slack`.
    #[serde(default)]
    bridge: Bridge,
    /// Name to write under.
    #[serde(default = "deskbell")]
    #[schemars(extend("default" = "Deskbell"))]
    username: String,
}

#[derive(Clone, Copy, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Bridge {
    #[default]
    Hookshot,
    Matrix,
    Slack,
}

fn deskbell() -> String {
    "Deskbell".to_owned()
}

/// The length of t2bot's tokens.
const T2BOT_TOKEN: usize = 64;

/// Whether an address is a webhook's: it says so, or it is a token of t2bot and nothing else.
pub(super) fn is_webhook(url: &ServiceUrl) -> bool {
    let is_token = url.authority.len() == T2BOT_TOKEN
        && url.authority.chars().all(|character| character.is_ascii_alphanumeric());
    match url.look("mode").filter(|mode| !mode.is_empty()) {
        Some(mode) => !mode.eq_ignore_ascii_case("off"),
        None => is_token && url.path.is_empty() && url.look("to").is_none(),
    }
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // The rest of what Apprise has for rooms.
    url.ignore(&["discovery", "version", "v", "msgtype", "e2ee", "autoverify", "hsreq"]);
    if url.is_native() {
        let bridge = Some("matrix".into());
        return Ok(url::options([("url", Some(url.native().into())), ("bridge", bridge)]));
    }
    let mode = url.parameter("mode").map(|mode| mode.to_ascii_lowercase());
    let (path, token) = (url.parameter("path"), url.parameter("token"));
    let (user, password) = (url.user.take(), url.password.take());
    let (username, address, bridge) = match mode.as_deref() {
        Some("t2bot") | None => {
            let token = token.or_else(|| url.authority());
            (user, Address::parse("https://webhooks.t2bot.io").zip(token), "matrix")
        }
        Some(mode @ ("matrix" | "slack" | "hookshot")) => {
            // A user alone is the token.
            let (user, token) = match token.or(password) {
                Some(token) => (user, Some(token)),
                None => (None, user),
            };
            (user, Address::parse(&url.web()?).zip(token), mode)
        }
        Some(_) => return Err(url.wrong("has an unknown `mode`")),
    };
    let (server, token) = address.ok_or_else(|| url.wrong("names no token"))?;
    let path = match bridge {
        "hookshot" => path.unwrap_or_else(|| "webhook".to_owned()),
        _ => "api/v1/matrix/hook".to_owned(),
    };
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).chain([&*token]).collect();
    Ok(url::options([
        ("url", Some(server.at(&parts).url().as_str().into())),
        ("bridge", Some(bridge.into())),
        ("username", username.map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for MatrixWebhook {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let (plain, name) = (Dialect::Plain.titled(message), &self.username);
        let html = || KIND.about.dialect.titled(message);
        let body = match (self.bridge, message.format) {
            (Bridge::Hookshot, _) => json!({ "username": name, "text": plain, "html": html() }),
            (Bridge::Matrix, Format::Text) => {
                json!({ "displayName": name, "format": "plain", "text": plain })
            }
            (Bridge::Matrix, Format::Markdown) => {
                json!({ "displayName": name, "format": "html", "text": html() })
            }
            (Bridge::Slack, _) => json!({
                "username": name,
                "attachments": [{
                    "title": message.title.as_deref().map(|title| Dialect::Slack.escaped(title)),
                    "text": Dialect::Slack.body(message),
                    "fallback": plain,
                }],
            }),
        };
        cx.post(&self.url).json(&body).delivered(&KIND).await
    }
}
