use http::Method;

use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Webex>(About {
    name: "webex",
    title: "Webex",
    docs: "https://developer.webex.com/docs/api/v1/messages",
    transport: Transport::Http {
        accepted: r#"{"id":"Y2lzY29zcGFyazovL3VzL01FU1NBR0UvMQ","roomId":"Y2lzY29zcGFyazovL3VzL1JPT00vMQ"}"#,
        verdict: Verdict {
            reason: &["/message", "/errors/0/description"],
            ..Verdict::id("/id")
        },
        refusals: &[
            Refusal::permanent(401, r#"{"message":"The request requires a valid access token set in the Authorization request header.","errors":[{"description":"The request requires a valid access token set in the Authorization request header."}],"trackingId":"ROUTER_1"}"#),
            Refusal::permanent(404, r#"{"message":"Could not find a room with provided ID.","errors":[{"description":"Could not find a room with provided ID."}],"trackingId":"NA_1"}"#),
            Refusal::temporary(429, ""),
        ],
    },
    dialect: Dialect::Webex,
    // 7,439 bytes for title and text together.
    limits: Limits { title: 400, body: 6_900, unit: Unit::Bytes, per_minute: None },
    edits: true,
    example: r#"
        token = "ZDI3MGEyYzQtNmFlNS00NDNhExampleToken"
        to = "Y2lzY29zcGFyazovL3VzL1JPT00vYmJjZWIxYWQ"
    "#,
})
.with_urls(Urls {
    schemes: &["webex", "wxteams"],
    native: &["webexapis.com/v1/webhooks/incoming/", "api.ciscospark.com/v1/webhooks/incoming/"],
    examples: &[
        "webex://Y2lzY29zcGFyazovL3VzL1dFQkhPT0svMQ",
        "wxteams://ZDI3MGEyYzQtNmFlNS00NDNhExampleToken/Y2lzY29zcGFyazovL3VzL1JPT00vYmJjZWIxYWQ?mode=bot",
        "webex://ZDI3MGEyYzQtNmFlNS00NDNhExampleToken/ada@example.com",
    ],
    read,
    ..Urls::NONE
});

/// Messages to [Webex](https://www.webex.com) spaces and people, from a bot or through a space's webhook.
///
/// 1. Create a bot at <https://developer.webex.com/my-apps> and set `token` to its access token.
/// 2. Add the bot to the space and set `to` to the space's id, or set it to somebody's mail address.
/// 3. Or add the app Incoming Webhooks to the space, and set `webhook` to the last part of the address it gives you.
///
/// A bot edits one message for the steps of a run, and writes another one after ten edits, which is
/// [all that Webex allows](https://developer.webex.com/docs/api/v1/messages/edit-a-message); a webhook sends each step.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Webex {
    /// Access token of the bot.
    token: Option<Secret>,
    /// Id of a space, or somebody's mail address. Several get a message each.
    to: Option<Targets<String>>,
    /// Last part of the address of a space's incoming webhook.
    webhook: Option<Secret>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let mode = url.parameter("mode");
    let mode = mode.as_deref().unwrap_or_default();
    if url.is_native() {
        let webhook = url.path.pop();
        url.rest();
        return Ok(url::options([("webhook", webhook.map(Into::into))]));
    }
    let token = url.parameter("token").or_else(|| url.authority());
    let to = url.targets();
    if mode == "webhook" || (mode != "bot" && to.is_none()) {
        return match to {
            Some(_) => Err(url.wrong("names rooms, which a webhook does not take")),
            None => Ok(url::options([("webhook", token.map(Into::into))])),
        };
    }
    let to = to.ok_or_else(|| url.wrong("names no room"))?;
    Ok(url::options([("token", token.map(Into::into)), ("to", Some(to))]))
}

/// A webhook, which has nothing to say where it took a message.
const HOOK: ChannelKind = ChannelKind::of::<Webex>(About {
    transport: Transport::Http {
        accepted: "",
        verdict: Verdict { success: Success::NoPage, ..*KIND.verdict() },
        refusals: &[],
    },
    ..KIND.about
});

#[async_trait]
impl Channel for Webex {
    fn targets(&self) -> Vec<Mark> {
        Targets::marks_or_one(self.to.as_ref())
    }

    fn check(&self) -> Result<(), ConfigError> {
        match (&self.token, &self.to, &self.webhook) {
            (Some(_), Some(_), None) | (None, None, Some(_)) => Ok(()),
            _ => Err(ConfigError("`token` and `to` are set, or `webhook` alone".to_owned())),
        }
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let api = Address::parse("https://webexapis.com/v1").expect("a constant address");
        let text = KIND.about.dialect.titled(message);
        let field = if message.format == Format::Markdown { "markdown" } else { "text" };
        let (Some(token), Some(to)) = (&self.token, &self.to) else {
            let webhook = self.webhook.as_ref().map(Secret::expose).unwrap_or_default();
            let address = api.at(&["webhooks", "incoming", webhook]);
            return cx.post(&address).json(&json!({ field: text })).delivered(&HOOK).await;
        };
        let to = to.at(cx);
        let (edited, room) =
            match cx.edit.as_ref().and_then(|earlier| earlier.message_id.as_deref()) {
                Some(earlier) => {
                    let (id, room) = earlier.split_once(' ').unwrap_or((earlier, to));
                    (Some(id), room)
                }
                None => (None, to.as_str()),
            };
        let addressed = if room.contains('@') { "toPersonEmail" } else { "roomId" };
        let (method, address) = match edited {
            Some(id) => (Method::PUT, api.at(&["messages", id])),
            None => (Method::POST, api.at(&["messages"])),
        };
        let request = cx.request(method, &address).bearer(Some(token));
        let reply = request.json(&json!({ addressed: room, field: text })).answered().await?;
        let receipt = KIND.verdict().judge(KIND.about.title, &reply)?;
        // An edit needs the room, which is not known where the message went to a person.
        let told = reply.json().unwrap_or_default();
        let room = told.get("roomId").and_then(Value::as_str).filter(|room| *room != to);
        let message_id = match (receipt.message_id, room) {
            (Some(id), Some(room)) => Some(format!("{id} {room}")),
            (id, _) => id,
        };
        Ok(Receipt { message_id })
    }
}
