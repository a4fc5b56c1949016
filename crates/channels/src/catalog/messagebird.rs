use crate::{
    catalog::vonage::{digits, readers},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<MessageBird>(About {
    name: "messagebird",
    title: "MessageBird",
    docs: "https://developers.messagebird.com/api/sms-messaging/#send-outbound-sms",
    transport: Transport::Http {
        accepted: r#"{"id":"e8077d803532c0b5937c639b60216938","originator":"15005550006"}"#,
        verdict: Verdict {
            code: Some("/errors/0/code"),
            reason: &["/errors/0/description"],
            hints: &[("2", "check `key`"), ("25", "the account has no credit left")],
            ..Verdict::id("/id")
        },
        refusals: &[
            Refusal::permanent(401, r#"{"errors":[{"code":2,"description":"Request not allowed (incorrect access_key)","parameter":"access_key"}]}"#),
            Refusal::permanent(422, r#"{"errors":[{"code":9,"description":"no (correct) recipients found","parameter":"recipients"}]}"#),
        ],
    },
    dialect: Dialect::Plain,
    // 1,377 in all, as nine text messages.
    limits: Limits { title: 160, body: 1_200, unit: Unit::Utf16, per_minute: None },
    edits: false,
    example: r#"
        key = "bQzPvRmKZsNoYbLtWcDfE0aBc"
        from = "+15005550006"
        to = "+14155552671"
    "#,
})
.with_urls(Urls {
    schemes: &["msgbird"],
    examples: &[
        "msgbird://bQzPvRmKZsNoYbLtWcDfE0aBc/15005550006",
        "msgbird://bQzPvRmKZsNoYbLtWcDfE0aBc/15005550006/14155552671/14155552672",
    ],
    read,
    ..Urls::NONE
});

/// Text messages through MessageBird, now [Bird](https://bird.com).
///
/// 1. In the dashboard, under "Developers", make a live API access key and set `key` to it.
/// 2. Set `from` to a number of yours, or to a name where the country allows it, and set `to`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MessageBird {
    /// Access key.
    key: Secret,
    /// Sender: a number such as `+15005550006`, or a name of at most 11 letters and digits.
    from: String,
    /// Reader: a number such as `+14155552671`. Several get a message each.
    to: Targets<String>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let key = url.authority();
    let sender = match url.parameter("from") {
        Some(sender) => sender,
        None => url.next("sender")?,
    };
    let sender = digits(&sender);
    let readers = readers(url, &sender).into_iter();
    let readers: Vec<toml::Value> =
        readers.filter_map(|reader| Some(format!("+{}", reader.as_str()?).into())).collect();
    Ok(url::options([
        ("key", key.map(Into::into)),
        ("from", Some(format!("+{sender}").into())),
        ("to", Some(readers.into())),
    ]))
}

#[async_trait]
impl Channel for MessageBird {
    fn targets(&self) -> Vec<Mark> {
        self.to.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let text = KIND.about.dialect.unmarked(message);
        let to = self.to.at(cx);
        let form = [
            ("originator", self.from.as_str()),
            ("recipients", to),
            ("body", &text),
            ("datacoding", "auto"),
        ];
        let api =
            Address::parse("https://rest.messagebird.com/messages").expect("a constant address");
        let login = format!("AccessKey {}", self.key.expose());
        cx.post(&api).header("authorization", &login).form(&form).delivered(&KIND).await
    }
}
