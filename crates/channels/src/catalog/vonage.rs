use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Vonage>(About {
    name: "vonage",
    title: "Vonage",
    docs: "https://developer.vonage.com/en/api/sms",
    transport: Transport::Http {
        accepted: r#"{"message-count":"1","messages":[{"to":"447700900000","message-id":"0C000000217B7F02","status":"0"}]}"#,
        verdict: Verdict {
            reason: &["/messages/0/error-text"],
            passing: &[Passing::soon("1"), Passing::soon("5"), Passing::soon("10")],
            hints: &[("4", "check `api_key` and `api_secret`"), ("9", "the account has no credit left")],
            ..Verdict::field("/messages/0/status", &["0"])
        },
        refusals: &[
            Refusal::permanent(200, r#"{"message-count":"1","messages":[{"status":"4","error-text":"Bad Credentials"}]}"#),
            Refusal::permanent(200, r#"{"message-count":"1","messages":[{"status":"2","error-text":"Missing to param"}]}"#),
            Refusal::temporary(200, r#"{"message-count":"1","messages":[{"status":"1","error-text":"Throughput Rate Exceeded - please wait [ 250 ] and retry"}]}"#),
        ],
    },
    dialect: Dialect::Plain,
    // A long text goes out as several text messages, each of which costs.
    limits: Limits { title: 160, body: 1_400, unit: Unit::Utf16, per_minute: None },
    edits: false,
    example: r#"
        api_key = "a1b2c3d4"
        api_secret = "Zm9vYmFyYmF6cXV4"
        from = "15005550006"
        to = "14155552671"
    "#,
})
.with_urls(Urls {
    schemes: &["vonage", "nexmo"],
    examples: &[
        "vonage://a1b2c3d4:Zm9vYmFyYmF6cXV4@15005550006",
        "nexmo://a1b2c3d4:Zm9vYmFyYmF6cXV4@15005550006/14155552671/14155552672?ttl=120000",
    ],
    read,
    ..Urls::NONE
});

/// Text messages through [Vonage](https://www.vonage.com/communications-apis/), once Nexmo.
///
/// 1. Set `api_key` and `api_secret` to what the dashboard's first page shows.
/// 2. Rent a number and set `from` to it.
/// 3. Set `to`. A trial account reaches only numbers that you have verified.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Vonage {
    /// API key of the account.
    api_key: String,
    /// API secret of the account.
    api_secret: Secret,
    /// Sender: a number with its country's code, or a name where the country allows it.
    from: String,
    /// Reader: a number with its country's code. Several get a message each.
    to: Targets<String>,
    /// How long the message is tried, in milliseconds.
    ttl_ms: Option<u64>,
}

/// The numbers that an address names, its sender's where it names no other.
pub(super) fn readers(url: &mut ServiceUrl, sender: &str) -> Vec<toml::Value> {
    let mut readers: Vec<toml::Value> = match url.targets() {
        Some(toml::Value::String(one)) => vec![digits(&one).into()],
        Some(toml::Value::Array(all)) => {
            all.iter().filter_map(toml::Value::as_str).map(|one| digits(one).into()).collect()
        }
        _ => Vec::new(),
    };
    if readers.is_empty() {
        readers.push(sender.into());
    }
    readers
}

pub(super) fn digits(number: &str) -> String {
    number.chars().filter(char::is_ascii_digit).collect()
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let (user, password, host) = (url.user.take(), url.password.take(), url.authority());
    let sender = url.parameter("source").or_else(|| url.parameter("from")).or(host);
    let sender = digits(&sender.ok_or_else(|| url.wrong("names no sender"))?);
    let readers = readers(url, &sender);
    Ok(url::options([
        ("api_key", url.parameter("key").or(user).map(Into::into)),
        ("api_secret", url.parameter("secret").or(password).map(Into::into)),
        ("from", Some(sender.into())),
        ("to", Some(readers.into())),
        ("ttl_ms", url.number("ttl")?.map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for Vonage {
    fn targets(&self) -> Vec<Mark> {
        self.to.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let text = KIND.about.dialect.unmarked(message);
        let ttl = self.ttl_ms.map(|ttl| ttl.to_string());
        let mut form = vec![
            ("api_key", self.api_key.as_str()),
            ("api_secret", self.api_secret.expose()),
            ("from", &self.from),
            ("to", self.to.at(cx)),
            ("text", &text),
        ];
        // Otherwise a question mark stands for every letter that the oldest phones do not know.
        if !text.is_ascii() {
            form.push(("type", "unicode"));
        }
        form.extend(ttl.as_deref().map(|ttl| ("ttl", ttl)));
        let api = Address::parse("https://rest.nexmo.com/sms/json").expect("a constant address");
        cx.post(&api).form(&form).delivered(&KIND).await
    }
}
