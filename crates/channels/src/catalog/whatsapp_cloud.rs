use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<WhatsApp>(About {
    name: "whatsapp_cloud",
    title: "WhatsApp",
    docs: "https://developers.facebook.com/docs/whatsapp/cloud-api/guides/send-messages",
    transport: Transport::Http {
        accepted: r#"{"messaging_product":"whatsapp","contacts":[{"input":"15551230002","wa_id":"15551230002"}],"messages":[{"id":"wamid.HBgLMTU1NTEyMzAwMDI="}]}"#,
        verdict: Verdict {
            code: Some("/error/code"),
            reason: &["/error/message"],
            // Too much at all, too much to one person: one message in six seconds.
            passing: &[Passing::soon("130429"), Passing::after(6, "131056")],
            hints: &[
                ("190", "the token has expired; create a permanent one"),
                ("131047", "they wrote more than 24 hours ago; set `template`"),
            ],
            ..Verdict::id("/messages/0/id")
        },
        refusals: &[
            Refusal::permanent(401, r#"{"error":{"message":"Error validating access token: Session has expired","type":"OAuthException","code":190,"fbtrace_id":"A1"}}"#),
            Refusal::permanent(400, r#"{"error":{"message":"(#131047) Re-engagement message","type":"OAuthException","code":131047,"fbtrace_id":"A2"}}"#),
            Refusal::temporary(400, r#"{"error":{"message":"(#130429) Rate limit hit","type":"OAuthException","code":130429,"fbtrace_id":"A3"}}"#),
            Refusal::after(6, 400, r#"{"error":{"message":"(#131056) (Business Account, Consumer Account) pair rate limit hit","type":"OAuthException","code":131056,"fbtrace_id":"A4"}}"#),
        ],
    },
    dialect: Dialect::WhatsApp,
    // 4,096 characters for title and text together.
    limits: Limits { title: 250, body: 3_800, unit: Unit::Characters, per_minute: None },
    edits: false,
    example: r#"
        token = "EAAGm0PX4ZCpsBAExampleToken"
        phone_number_id = "106540352242922"
        to = "+15551230002"
    "#,
})
.with_urls(Urls {
    schemes: &["whatsapp"],
    examples: &[
        "whatsapp://EAAGm0PX4ZCpsBAExampleToken@106540352242922/15551230002",
        "whatsapp://build_done:EAAGm0PX4ZCpsBAExampleToken@106540352242922/15551230002?lang=de&:2=type&:1=body",
    ],
    read,
    ..Urls::NONE
});

/// WhatsApp messages through the Cloud API of Meta.
///
/// 1. Create an app of the type Business with the product WhatsApp at <https://developers.facebook.com/apps>.
/// 2. On its page API Setup you find the `phone_number_id` of the number that sends.
/// 3. Set `token` to the token of a system user, which does not expire; the one on that page lasts a day.
///
/// WhatsApp takes free text only within 24 hours after somebody has written to the number. At other times it takes
/// templates that it has approved: set `template` and what goes into its places.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WhatsApp {
    /// Access token.
    token: Secret,
    /// Id of the number that sends; it is not the number itself.
    phone_number_id: String,
    /// Number that gets the message, with its country. Several get a message each.
    to: Targets<String>,
    /// Name of an approved template.
    template: Option<String>,
    /// Language of the template.
    #[serde(default = "english")]
    language: String,
    /// What goes into the places of the template, in order: `title`, `text`, `level`, or a fixed text.
    #[serde(default)]
    parameters: Vec<String>,
    /// Address of the Graph API, with its version.
    #[serde(default = "graph")]
    #[schemars(extend("default" = "https://graph.facebook.com/v21.0"))]
    api: Address,
}

fn english() -> String {
    "en_US".to_owned()
}

fn graph() -> Address {
    Address::parse("https://graph.facebook.com/v21.0").expect("a constant address")
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let (template, token) = match (url.user.take(), url.password.take()) {
        (template, Some(token)) => (template, Some(token)),
        (token, None) => (None, token),
    };
    let token = url.parameter("token").or(token);
    let from = url.parameter("from").or_else(|| url.parameter("source"));
    let from = from.or_else(|| url.authority());
    let language = url.parameter("lang").or_else(|| url.parameter("language"));
    let mut places = Vec::new();
    for (name, value) in url.parameters(':') {
        let place: usize =
            name.parse().map_err(|_| url.wrong("has a place of the template that is no number"))?;
        places.push((place, value));
    }
    places.sort_unstable();
    let parameters = places.into_iter().map(|(_, value)| match value.as_str() {
        "body" => "text".into(),
        "type" => "level".into(),
        _ => toml::Value::from(value),
    });
    let parameters: Vec<_> = parameters.collect();
    let to = url.targets().ok_or_else(|| url.wrong("names nobody"))?;
    Ok(url::options([
        ("token", token.map(Into::into)),
        ("phone_number_id", from.map(Into::into)),
        ("to", Some(to)),
        ("template", url.parameter("template").or(template).map(Into::into)),
        ("language", language.map(Into::into)),
        ("parameters", Some(parameters).filter(|all| !all.is_empty()).map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for WhatsApp {
    fn targets(&self) -> Vec<Mark> {
        self.to.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let (kind, content) = match &self.template {
            Some(template) => ("template", self.filled(template, message)),
            None => ("text", json!({ "body": KIND.about.dialect.titled(message) })),
        };
        let text = json!({
            "messaging_product": "whatsapp",
            "recipient_type": "individual",
            "to": self.to.at(cx),
            "type": kind,
            kind: content,
        });
        let address = self.api.at(&[&self.phone_number_id, "messages"]);
        cx.post(&address).bearer(Some(&self.token)).json(&text).delivered(&KIND).await
    }
}

impl WhatsApp {
    fn filled(&self, template: &str, message: &Message) -> Value {
        let places = self.parameters.iter().map(|parameter| {
            let text = match parameter.as_str() {
                "title" => message.title.clone().unwrap_or_default(),
                "text" => Dialect::Plain.body(message),
                "level" => message.level.to_string(),
                fixed => fixed.to_owned(),
            };
            // A place takes no line breaks.
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            json!({ "type": "text", "text": text })
        });
        let places: Vec<_> = places.collect();
        let body = (!places.is_empty()).then(|| json!({ "type": "body", "parameters": places }));
        json!({
            "name": template,
            "language": { "code": self.language },
            "components": body.into_iter().collect::<Vec<_>>(),
        })
    }
}
