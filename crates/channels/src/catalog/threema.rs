use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Threema>(About {
    name: "threema",
    title: "Threema",
    docs: "https://gateway.threema.ch/en/developer/api",
    transport: Transport::Http {
        // It answers with the id of the message and nothing else.
        accepted: "0123456789abcdef",
        verdict: Verdict { success: Success::Hex(16), ..Verdict::STATUS },
        refusals: &[
            Refusal::permanent(401, ""),
            // No credits are left.
            Refusal::permanent(402, ""),
            Refusal::permanent(404, ""),
        ],
    },
    dialect: Dialect::Plain,
    // 3,500 bytes for title and text together.
    limits: Limits { title: 400, body: 3_000, unit: Unit::Bytes, per_minute: None },
    edits: false,
    example: r#"
        from = "*DESKBEL"
        secret = "s3cr3tOfTheGatewayId"
        to = "ECHOECHO"
    "#,
})
.with_urls(Urls {
    schemes: &["threema"],
    examples: &["threema://*DESKBEL@s3cr3tOfTheGatewayId/ECHOECHO/41791234567?to=ada@example.com"],
    read,
    ..Urls::NONE
});

/// Messages through the [Threema Gateway](https://gateway.threema.ch).
///
/// 1. Request a Threema ID of the basic mode, and buy credits.
/// 2. Set `from` to the ID, which starts with `*`, and `secret` to its secret.
/// 3. Set `to` to a Threema ID, or to the phone number or mail address that somebody has linked to theirs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Threema {
    /// ID that sends.
    from: String,
    /// Secret of the ID.
    secret: Secret,
    /// Threema ID, phone number with its country, or mail address. Several get a message each.
    to: Targets<String>,
}

/// How many characters an ID has.
const ID: usize = 8;

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let secret = url.parameter("secret").or_else(|| url.authority());
    let from = url.parameter("from").or_else(|| url.parameter("gwid")).or_else(|| url.user.take());
    let to = url.targets().ok_or_else(|| url.wrong("names nobody"))?;
    Ok(url::options([
        ("from", from.map(Into::into)),
        ("secret", secret.map(Into::into)),
        ("to", Some(to)),
    ]))
}

#[async_trait]
impl Channel for Threema {
    fn targets(&self) -> Vec<Mark> {
        self.to.marks()
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.from.chars().count() == ID {
            Ok(())
        } else {
            Err(ConfigError(format!("`from` is not an ID, expected {ID} characters")))
        }
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let to = self.to.at(cx);
        let number: String = to.chars().filter(char::is_ascii_digit).collect();
        let is_number = to.chars().all(|c| c.is_ascii_digit() || " +-()".contains(c));
        let (place, to) = match to.as_str() {
            mail if mail.contains('@') => ("email", mail),
            _ if is_number && number.len() > ID => ("phone", number.as_str()),
            id => ("to", id),
        };
        let text = KIND.about.dialect.titled(message);
        let fields = [
            ("from", self.from.as_str()),
            (place, to),
            ("secret", self.secret.expose()),
            ("text", &text),
        ];
        let address =
            Address::parse("https://msgapi.threema.ch/send_simple").expect("a constant address");
        let reply = cx.post(&address).form(&fields).answered().await?;
        KIND.verdict().judge(KIND.about.title, &reply)?;
        let message_id = reply.text().map(|id| id.trim().to_owned());
        Ok(Receipt { message_id })
    }
}
