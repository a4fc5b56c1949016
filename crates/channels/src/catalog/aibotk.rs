use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Aibotk>(About {
    name: "aibotk",
    title: "Aibotk",
    docs: "https://help.aibotk.com",
    transport: Transport::Http {
        accepted: r#"{"code":0,"error":null}"#,
        verdict: Verdict { reason: &["/error", "/msg"], ..Verdict::field("/code", &["0"]) },
        // Beyond the field, which mcp-push reads, not verified.
        refusals: &[Refusal::permanent(200, r#"{"code":1,"error":"apiKey错误"}"#)],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        key = "TmOdH5xKp0Vw3cRf7s"
        room = "builds"
    "#,
})
.with_variables(Variables {
    name: "aibotk",
    needs: &["AIBOTK_KEY", "AIBOTK_TYPE", "AIBOTK_NAME"],
    takes: &[],
    read: |set| {
        let place = match set.get("AIBOTK_TYPE") {
            Some("room") => "room",
            Some("contact") => "contact",
            _ => return Err(Wrong { variable: "AIBOTK_TYPE", reason: "expected room or contact" }),
        };
        Ok(set.table(&[("key", "AIBOTK_KEY"), (place, "AIBOTK_NAME")]))
    },
});

/// Messages to WeChat from a robot of Aibotk (智能微秘书).
///
/// 1. Set up a robot on Aibotk's site, and set `key` to the API key on the page about you.
/// 2. Set `room` to the name of a group, or `contact` to the name of a friend of the robot.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Aibotk {
    /// API key.
    key: Secret,
    /// Name of the group to tell.
    room: Option<String>,
    /// Name of the friend to tell.
    contact: Option<String>,
}

#[async_trait]
impl Channel for Aibotk {
    fn check(&self) -> Result<(), ConfigError> {
        if self.room.is_some() == self.contact.is_some() {
            return Err(ConfigError("either `room` or `contact` is set".to_owned()));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let place = if self.room.is_some() { "room" } else { "contact" };
        let body = present(json!({
            "apiKey": self.key.expose(),
            "roomName": self.room,
            "name": self.contact,
            "message": { "type": 1, "content": KIND.about.dialect.titled(message) },
        }));
        let service = Address::parse("https://api-bot.aibotk.com/openapi/v1/chat")
            .expect("a constant address");
        cx.post(&service.at(&[place])).json(&body).delivered(&KIND).await
    }
}
