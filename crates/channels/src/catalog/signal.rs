use deskbell_core::attachment::FILE_LIMIT;

use crate::{files::ReadFile, prelude::*};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Signal>(About {
    name: "signal",
    title: "Signal",
    docs: "https://github.com/bbernhard/signal-cli-rest-api",
    transport: Transport::Http {
        accepted: r#"{"timestamp":"1767323045123"}"#,
        verdict: Verdict { reason: &["/error"], ..Verdict::id("/timestamp") },
        refusals: &[
            Refusal::permanent(400, r#"{"error":"Unregistered user \"+15550000000\""}"#),
            // Waiting does not help: somebody has to solve a captcha.
            Refusal::permanent(429, r#"{"challenge_tokens":["6d1cb25c"],"error":"Failed to send message due to rate limiting"}"#),
            Refusal::temporary(500, r#"{"error":"Couldn't send message"}"#),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: true,
    example: r#"
        server = "http://localhost:8080"
        from = "+15551230001"
        to = "+15551230002"
    "#,
})
// 100 MB.
.with_files(Files::Within(FILE_LIMIT))
.with_urls(Urls {
    schemes: &["signal", "signals"],
    examples: &[
        "signal://localhost:8080/+15551230001/+15551230002",
        "signals://ada:secret-1@signal.example.com/+15551230001/@group.dGVhbQ==?to=+15551230003",
    ],
    read,
    ..Urls::NONE
});

/// Signal messages through your own [signal-cli-rest-api](https://github.com/bbernhard/signal-cli-rest-api).
///
/// 1. Run the service and register a number with it, or link it to the app as a device.
/// 2. Set `from` to that number and `to` to a number, a user name, or a group's id, which starts with `group.`.
///
/// The steps of a run edit one message in place.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Signal {
    /// Address of the service, with user and password if there is a login before it.
    server: Address,
    /// Number that sends, such as `+15551230001`.
    from: String,
    /// Number, user name or group that gets the message. Several get a message each.
    to: Targets<String>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    url.ignore(&["batch", "status"]);
    let server = with_login(url)?;
    let from = match url.parameter("from") {
        Some(from) => from,
        None => url.next("number that sends")?,
    };
    let to = match url.targets() {
        None => from.clone().into(),
        Some(toml::Value::Array(all)) => all.into_iter().map(group).collect::<Vec<_>>().into(),
        Some(one) => group(one),
    };
    Ok(url::options([
        ("server", Some(server.into())),
        ("from", Some(from.into())),
        ("to", Some(to)),
    ]))
}

/// Apprise writes groups as `@group.id` and as `@id`.
fn group(target: toml::Value) -> toml::Value {
    match target.as_str().and_then(|target| target.strip_prefix('@')) {
        Some(id) if id.starts_with("group.") => id.into(),
        Some(id) => format!("group.{id}").into(),
        None => target,
    }
}

/// The address of the server with the login that stands before its host.
fn with_login(url: &mut ServiceUrl) -> Result<String, ConfigError> {
    let server = Address::parse(&url.web()?).ok_or_else(|| url.wrong("names no host"))?;
    let (user, password) = (url.user.take(), url.password.take());
    Ok(server.as_user(user.as_deref(), password.as_deref()).url().to_string())
}

/// `file` as an address with its data (RFC 2397), with its name, in which nothing may look like what follows.
fn written(file: &ReadFile, cx: &SendContext) -> String {
    let name = file.name.replace([';', ','], "_");
    format!("data:{};filename={name};base64,{}", file.media_type, file.in_base64(cx))
}

#[async_trait]
impl Channel for Signal {
    fn targets(&self) -> Vec<Mark> {
        self.to.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.as_ref());
        let earlier = earlier.and_then(|time| time.parse::<i64>().ok());
        let files: Vec<_> = cx.files.iter().map(|file| written(file, cx)).collect();
        let text = json!({
            "message": KIND.about.dialect.titled(message),
            "number": self.from,
            "recipients": [self.to.at(cx)],
            "text_mode": "normal",
            "edit_timestamp": earlier,
            "base64_attachments": (!files.is_empty()).then_some(files),
        });
        let address = self.server.at(&["v2", "send"]);
        let reply =
            cx.post(&address).slow_for(cx.files.len()).json(&present(text)).answered().await?;
        let challenge = reply.json().is_ok_and(|answer| answer.get("challenge_tokens").is_some());
        if reply.status() == 429 && challenge {
            return Err(SendError::permanent(
                "Signal asks for a captcha; solve it for the number at `rate-limit-challenge`",
            ));
        }
        let receipt = KIND.verdict().judge(KIND.about.title, &reply)?;
        // Every edit names the first message.
        Ok(earlier.map_or(receipt, |time| Receipt { message_id: Some(time.to_string()) }))
    }
}
