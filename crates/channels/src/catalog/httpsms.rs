use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<HttpSms>(About {
    name: "httpsms",
    title: "httpSMS",
    docs: "https://docs.httpsms.com/",
    transport: Transport::Http {
        accepted: r#"{"data":{"id":"32343a19-da5e-4b1b-a767-3298a73703cb","status":"pending"},"message":"message added to queue","status":"success"}"#,
        verdict: Verdict {
            id: Some("/data/id"),
            reason: &["/message"],
            ..Verdict::field("/status", &["success"])
        },
        refusals: &[
            Refusal::permanent(401, r#"{"data":"Make sure your API key is set in the [X-API-Key] header in the request","message":"You are not authorized to carry out this request.","status":"error"}"#),
            Refusal::permanent(422, r#"{"data":{"from":["The from field must be a valid phone number"]},"message":"validation errors while sending message","status":"error"}"#),
            Refusal::temporary(500, r#"{"message":"We ran into an internal error while handling the request.","status":"error"}"#),
        ],
    },
    dialect: Dialect::Plain,
    // Not documented; ten SMS.
    limits: Limits { title: 100, body: 1_400, unit: Unit::Characters, per_minute: None },
    edits: false,
    example: r#"
        key = "uk_N8rQ2example"
        from = "+15551230001"
        to = "+15551230002"
    "#,
})
.with_urls(Urls {
    schemes: &["httpsms"],
    examples: &[
        "httpsms://uk_N8rQ2example@15551230001/15551230002",
        "httpsms://uk_N8rQ2example@15551230002?from=15551230001&to=15551230003",
    ],
    read,
    ..Urls::NONE
});

/// SMS from your own Android phone through [httpSMS](https://httpsms.com).
///
/// 1. Install the app on the phone and log in.
/// 2. Set `key` to the API key that the settings page shows, and `from` to the phone's number.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HttpSms {
    /// API key.
    key: Secret,
    /// Number of the phone, with its country, such as `+15551230001`.
    from: String,
    /// Number that gets the message. Several get a message each.
    to: Targets<String>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let key = url.parameter("key").or_else(|| url.user.take());
    let host = url.authority();
    // With `from` the host is one of those who get the message.
    let from = match (url.parameter("from"), host) {
        (Some(from), host) => {
            url.path.splice(0..0, host);
            from
        }
        (None, Some(from)) => from,
        (None, None) => return Err(url.wrong("names no number that sends")),
    };
    // Apprise sends to the phone itself where nobody else is named.
    let to = url.targets().unwrap_or_else(|| from.clone().into());
    let to = match to {
        toml::Value::Array(all) => all.iter().map(international).collect::<Vec<_>>().into(),
        one => international(&one),
    };
    let from = international(&from.into());
    Ok(url::options([("key", key.map(Into::into)), ("from", Some(from)), ("to", Some(to))]))
}

/// A number with the `+` that addresses leave out.
fn international(number: &toml::Value) -> toml::Value {
    let number = number.as_str().unwrap_or_default();
    format!("+{}", number.trim_start_matches('+')).into()
}

#[async_trait]
impl Channel for HttpSms {
    fn targets(&self) -> Vec<Mark> {
        self.to.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let sms = json!({
            "content": KIND.about.dialect.titled(message),
            "from": self.from,
            "to": self.to.at(cx),
            "request_id": cx.id(),
        });
        let address =
            Address::parse("https://api.httpsms.com/v1/messages/send").expect("a constant address");
        cx.post(&address).header("x-api-key", self.key.expose()).json(&sms).delivered(&KIND).await
    }
}
