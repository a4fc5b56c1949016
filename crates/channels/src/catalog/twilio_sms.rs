use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Twilio>(About {
    name: "twilio_sms",
    title: "Twilio",
    docs: "https://www.twilio.com/docs/messaging/api/message-resource#create-a-message-resource",
    transport: Transport::Http {
        accepted: r#"{"sid":"SM1f0e8ae6ade43cb3c0ce4525424e404f","status":"queued","error_code":null}"#,
        verdict: Verdict {
            code: Some("/code"),
            passing: &[Passing::soon("20429"), Passing::soon("20500")],
            hints: &[
                ("20003", "`account_sid` and `token` do not belong together"),
                ("21608", "a trial account reaches numbers only that you have verified"),
                ("21610", "the reader has sent STOP and must send START first"),
            ],
            ..Verdict::id("/sid")
        },
        // The form is that of <https://www.twilio.com/docs/usage/twilios-response>, the codes those of
        // <https://www.twilio.com/docs/api/errors>.
        refusals: &[
            Refusal::permanent(401, r#"{"code":20003,"message":"Authenticate","more_info":"https://www.twilio.com/docs/errors/20003","status":401}"#),
            Refusal::permanent(400, r#"{"code":21211,"message":"The 'To' number 12345 is not a valid phone number.","more_info":"https://www.twilio.com/docs/errors/21211","status":400}"#),
            Refusal::permanent(400, r#"{"code":21610,"message":"Attempt to send to unsubscribed recipient","more_info":"https://www.twilio.com/docs/errors/21610","status":400}"#),
            Refusal::temporary(429, r#"{"code":20429,"message":"Too Many Requests","more_info":"https://www.twilio.com/docs/errors/20429","status":429}"#),
        ],
    },
    dialect: Dialect::Plain,
    // 1,600 in all. One emoji doubles what a message costs, so no mark stands before the title.
    limits: Limits { title: 160, body: 1_400, unit: Unit::Utf16, per_minute: None },
    edits: false,
    example: r#"
        account_sid = "AC2a5f0b7c9d1e3f4a6b8c0d2e4f6a8b0c"
        token = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"
        from = "+15005550006"
        to = "+14155552671"
    "#,
})
.with_urls(Urls {
    schemes: &["twilio"],
    examples: &[
        "twilio://AC2a5f0b7c9d1e3f4a6b8c0d2e4f6a8b0c:9f8e7d6c5b4a39281706f5e4d3c2b1a0@15005550006",
        "twilio://AC2a5f0b7c9d1e3f4a6b8c0d2e4f6a8b0c:9f8e7d6c5b4a39281706f5e4d3c2b1a0@15005550006/14155552671/w:14155552672",
        "twilio://_?sid=AC2a5f0b7c9d1e3f4a6b8c0d2e4f6a8b0c&token=9f8e7d6c5b4a39281706f5e4d3c2b1a0&from=15005550006&to=14155552671",
    ],
    read,
    ..Urls::NONE
});

/// Text messages through [Twilio](https://www.twilio.com), also by WhatsApp.
///
/// 1. Set `account_sid` and `token` to the Account SID and the Auth Token of the console's first page; or `api_key`
///    to the SID of an API key, and `token` to its secret.
/// 2. Buy a number and set `from` to it, or to the SID of a messaging service.
/// 3. Set `to`. A trial account reaches only numbers that you have verified.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Twilio {
    /// Account SID, which begins with `AC`.
    account_sid: String,
    /// Auth Token, or the secret of `api_key`.
    token: Secret,
    /// SID of an API key, which begins with `SK`.
    api_key: Option<String>,
    /// Sender: a number such as `+15005550006`, a short code, a name, `whatsapp:` and a number, or the SID of a
    /// messaging service, which begins with `MG`.
    from: String,
    /// Reader: a number such as `+14155552671`, or `whatsapp:` and a number. Several get a message each.
    to: Targets<String>,
}

/// Numbers with a plus sign and without what separates their digits; `w:` before one stands for `whatsapp:`.
fn number(written: &str) -> String {
    let (prefix, number) = match written.rsplit_once(':') {
        Some((mode, number)) if mode.to_ascii_lowercase().starts_with('w') => ("whatsapp:", number),
        _ => ("", written),
    };
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    // A short code is no number of the world.
    let plus = if digits.len() > 6 { "+" } else { "" };
    format!("{prefix}{plus}{digits}")
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    if url.parameter("method").is_some_and(|method| !method.to_ascii_lowercase().starts_with('s')) {
        return Err(url.wrong("asks for calls; this kind sends text messages"));
    }
    let account = url.user.take();
    let account = url.parameter("sid").or(account).ok_or_else(|| url.wrong("names no account"))?;
    let token = url.password.take();
    let token = url.parameter("token").or(token).ok_or_else(|| url.wrong("names no token"))?;
    let sender = url.authority();
    let sender = url.parameter("source").or(url.parameter("from")).or(sender);
    let sender =
        sender.map(|sender| number(&sender)).ok_or_else(|| url.wrong("names no sender"))?;
    let mut readers: Vec<String> = url.rest();
    let more = url.parameter("to").unwrap_or_default();
    readers.extend(more.split(',').map(str::to_owned).filter(|reader| !reader.trim().is_empty()));
    let mut readers: Vec<_> = readers.iter().map(|reader| number(reader)).collect();
    if readers.is_empty() {
        readers.push(sender.clone());
    }
    Ok(url::options([
        ("account_sid", Some(account.into())),
        ("token", Some(token.into())),
        ("api_key", url.parameter("apikey").map(Into::into)),
        ("from", Some(sender.into())),
        ("to", Some(readers.into())),
    ]))
}

#[async_trait]
impl Channel for Twilio {
    fn targets(&self) -> Vec<Mark> {
        self.to.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let text = KIND.about.dialect.unmarked(message);
        let to = self.to.at(cx);
        let by_service = self.from.starts_with("MG");
        let whatsapp =
            to.starts_with("whatsapp:") && !self.from.starts_with("whatsapp:") && !by_service;
        let from = if whatsapp { format!("whatsapp:{}", self.from) } else { self.from.clone() };
        let sender = if by_service { "MessagingServiceSid" } else { "From" };
        let server = Address::parse("https://api.twilio.com").expect("a constant address");
        let messages = server.at(&["2010-04-01", "Accounts", &self.account_sid, "Messages.json"]);
        let user = self.api_key.as_ref().unwrap_or(&self.account_sid);
        let request = cx.post(&messages).basic(user, &self.token);
        request.form(&[(sender, &from), ("To", to), ("Body", &text)]).delivered(&KIND).await
    }
}
