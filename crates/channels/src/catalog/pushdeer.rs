use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<PushDeer>(About {
    name: "pushdeer",
    title: "PushDeer",
    docs: "https://github.com/easychen/pushdeer",
    transport: Transport::Http {
        accepted: r#"{"code":0,"content":{"result":["{\"counts\":1,\"logs\":[],\"success\":\"ok\"}"]}}"#,
        verdict: Verdict {
            reason: &["/error"],
            passing: &[Passing::soon("80502")],
            ..Verdict::field("/code", &["0"])
        },
        refusals: &[
            Refusal::permanent(200, r#"{"code":80501,"error":"The pushkey field is required."}"#),
            Refusal::permanent(200, r#"{"code":80403,"error":"auth failed"}"#),
            Refusal::permanent(200, r#"{"code":0,"content":{"result":[]}}"#),
            Refusal::temporary(200, r#"{"code":80502,"error":"push failed"}"#),
            Refusal::temporary(429, r#"{"message":"Too Many Attempts."}"#),
        ],
    },
    dialect: Dialect::Markdown,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        key = "PDU1TmOdH5xKp0Vw3cRf7s"
    "#,
})
.with_urls(Urls {
    schemes: &["pushdeer", "pushdeers"],
    examples: &[
        "pushdeer://PDU1TmOdH5xKp0Vw3cRf7s",
        "pushdeers://deer.example.com:8800/PDU1TmOdH5xKp0Vw3cRf7s",
    ],
    read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "pushdeer",
    needs: &["DEER_KEY"],
    takes: &["DEER_URL"],
    read: variables,
});

/// Push notifications through [PushDeer](https://www.pushdeer.com), public or self-hosted.
///
/// 1. Log in to the PushDeer app, register the device, and create a key on its page of keys.
/// 2. Set `key` to it.
/// 3. If you run a server of your own, set `server` to its address.
///
/// PushDeer's authors do not maintain it any more.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PushDeer {
    /// Key of the user. Several get the message at once.
    key: Targets<Secret>,
    /// Address of the server.
    #[serde(default = "public_server")]
    #[schemars(extend("default" = "https://api2.pushdeer.com"))]
    server: Address,
}

fn public_server() -> Address {
    Address::parse("https://api2.pushdeer.com").expect("a constant address")
}

/// A key alone means the public server, which speaks HTTPS, whatever the scheme says.
fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let (key, server) = match url.path.pop() {
        Some(key) => (Some(key), Some(url.web()?.into())),
        None => (url.authority(), None),
    };
    let key = key.ok_or_else(|| url.wrong("names no key"))?;
    Ok(url::options([("key", Some(key.into())), ("server", server)]))
}

/// `DEER_URL` is a server there, or the whole address to post to.
fn variables(set: &Set<'_>) -> Result<toml::Table, Wrong> {
    let mut table = url::options([]);
    let keys = set.get("DEER_KEY").unwrap_or_default().split(',').map(str::trim);
    table.insert("key".to_owned(), keys.map(toml::Value::from).collect::<Vec<_>>().into());
    if let Some(server) = set.get("DEER_URL") {
        let server = server.trim_end_matches('/').trim_end_matches("/message/push");
        table.insert("server".to_owned(), server.into());
    }
    Ok(table)
}

#[async_trait]
impl Channel for PushDeer {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let kind = if message.format == Format::Markdown { "markdown" } else { "text" };
        let keys: Vec<_> = self.key.iter().map(Secret::expose).collect();
        let body = KIND.about.dialect.body(message);
        let title = message.title.as_ref().map(|title| format!("{}{title}", mark(message.level)));
        // The text is the headline, and what follows it may be missing.
        let (text, more) = match &title {
            Some(title) => (title.as_str(), body.as_str()),
            None => (body.as_str(), ""),
        };
        let request = cx.post(&self.server.at(&["message", "push"])).form(&[
            ("pushkey", &keys.join(",")),
            ("type", kind),
            ("text", text),
            ("desp", more),
        ]);
        let reply = request.answered().await?;
        let receipt = KIND.verdict().judge(KIND.about.title, &reply)?;
        // Keys without a device are no error there.
        if reply.json()?.pointer("/content/result/0").is_none() {
            let refusal = "PushDeer knows no device for `key`; register one in the app";
            return Err(SendError::permanent(refusal));
        }
        Ok(receipt)
    }
}
