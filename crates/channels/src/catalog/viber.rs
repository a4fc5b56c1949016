use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Viber>(About {
    name: "viber",
    title: "Viber",
    docs: "https://developers.viber.com/docs/api/rest-bot-api/#send-message",
    transport: Transport::Http {
        accepted: r#"{"status":0,"status_message":"ok","message_token":5741311803571721087}"#,
        verdict: Verdict {
            reason: &["/status_message"],
            passing: &[Passing::soon("12")],
            hints: &[
                ("2", "check `token`"),
                ("5", "check `to`"),
                ("6", "the reader has to write to the bot first"),
            ],
            ..Verdict::field("/status", &["0"])
        },
        refusals: &[
            Refusal::permanent(200, r#"{"status":2,"status_message":"invalidAuthToken"}"#),
            Refusal::permanent(200, r#"{"status":6,"status_message":"notSubscribed"}"#),
            Refusal::temporary(200, r#"{"status":12,"status_message":"tooManyRequests"}"#),
        ],
    },
    dialect: Dialect::Plain,
    // 7,000 in all.
    limits: Limits { title: 200, body: 6_700, unit: Unit::Characters, per_minute: None },
    edits: false,
    example: r#"
        token = "445da6az1s345z78-dazcczb2542zv51a-e0vc5fva17480im9"
        to = "01234567890A="
    "#,
})
.with_urls(Urls {
    schemes: &["viber"],
    examples: &[
        "viber://445da6az1s345z78-dazcczb2542zv51a-e0vc5fva17480im9/01234567890A=",
        "viber://445da6az1s345z78-dazcczb2542zv51a-e0vc5fva17480im9/01234567890A=/01234567890B=?from=Bell&avatar=https://example.com/bell.png",
    ],
    read,
    ..Urls::NONE
});

/// Messages from a Viber bot to its subscribers.
///
/// 1. Open the bot's "Edit Info" in Viber and set `token` to "Your app key". New bots need a contract with Viber.
/// 2. Let the reader write to the bot, and set `to` to the id that the bot's webhook gets then.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Viber {
    /// Token of the bot.
    token: Secret,
    /// Id of a reader, as this bot knows it. Several get a message each.
    to: Targets<String>,
    /// Name to write under, at most 28 characters.
    #[serde(default = "sender")]
    #[schemars(extend("default" = "Deskbell"))]
    from: String,
    /// Address of the picture to write under.
    avatar: Option<Address>,
}

fn sender() -> String {
    "Deskbell".to_owned()
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // With the token among the parameters the host is a reader.
    let first = url.authority();
    let token = match url.parameter("token") {
        Some(token) => {
            url.path.splice(0..0, first);
            Some(token)
        }
        None => first,
    };
    Ok(url::options([
        ("token", token.map(Into::into)),
        ("to", url.targets()),
        ("from", url.parameter("from").map(Into::into)),
        ("avatar", url.parameter("avatar").map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for Viber {
    fn targets(&self) -> Vec<Mark> {
        self.to.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let body = json!({
            "receiver": self.to.at(cx),
            "type": "text",
            "text": KIND.about.dialect.titled(message),
            "sender": { "name": self.from, "avatar": self.avatar.as_ref().map(|it| it.url().as_str()) },
        });
        let api = Address::parse("https://chatapi.viber.com/pa/send_message")
            .expect("a constant address");
        let request = cx.post(&api).header("x-viber-auth-token", self.token.expose());
        request.json(&body).delivered(&KIND).await
    }
}
