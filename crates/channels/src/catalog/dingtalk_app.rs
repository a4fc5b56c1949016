use crate::{alert, prelude::*, token::TokenCache};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<DingTalkApp>(About {
    name: "dingtalk_app",
    title: "DingTalk",
    docs: "https://open.dingtalk.com/document/orgapp/chatbots-send-one-on-one-chat-messages-in-batches",
    transport: Transport::Http {
        accepted: r#"{"accessToken":"fw8ef8we8f76e6f7s8dxxxx","expireIn":7200,"processQueryKey":"pDPAY12LHaJpbG-S0Q","invalidStaffIdList":[],"flowControlledStaffIdList":[]}"#,
        verdict: Verdict {
            id: None,
            code: Some("/code"),
            reason: &["/message"],
            ..Verdict::id("/processQueryKey")
        },
        refusals: &[
            Refusal::permanent(
                400,
                r#"{"code":"invalidClientIdOrSecret","message":"无效的clientId或者clientSecret","requestid":"A1"}"#,
            ),
            Refusal::permanent(
                400,
                r#"{"code":"staffId.notExisted","message":"所有接收者都不存在","requestid":"A2"}"#,
            ),
            Refusal::temporary(429, ""),
            Refusal::temporary(
                503,
                r#"{"code":"ServiceUnavailable","message":"The request has failed due to a temporary failure of the server.","requestid":"A3"}"#,
            ),
        ],
    },
    dialect: Dialect::DingTalk,
    // Not documented; that of the custom robots.
    limits: Limits { title: 1_000, body: 18_000, unit: Unit::Bytes, per_minute: None },
    edits: false,
    example: r#"
        app_key = "dingeqqpkv3example"
        app_secret = "nYkxSlOExampleSecret"
        users = ["manager4220"]
    "#,
});

/// Messages from a DingTalk app's robot to people or to a group.
///
/// 1. Create an app at <https://open-dev.dingtalk.com>, add the ability Robot to it and publish a version.
/// 2. Set `app_key` and `app_secret` to what its page Credentials shows.
/// 3. Under Permissions allow the app's robot to send messages.
/// 4. Set `users` to user ids of the organization, or add the robot to a group and set `conversation` to its
///    `openConversationId`, which comes with each message that the robot gets.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DingTalkApp {
    /// Key of the app, also called client id.
    app_key: String,
    /// Secret of the app, also called client secret.
    app_secret: Secret,
    /// Code of the robot, if it differs from the key of the app.
    robot_code: Option<String>,
    /// Ids of the people who get the message, at most 20.
    #[serde(default)]
    users: Vec<String>,
    /// Id of the group that gets the message.
    conversation: Option<String>,
    #[serde(skip)]
    token: TokenCache,
}

/// Most people in one request.
const USERS_LIMIT: usize = 20;

/// The longest title that is made of the first line, in characters.
const TITLE: usize = 60;

#[async_trait]
impl Channel for DingTalkApp {
    fn check(&self) -> Result<(), ConfigError> {
        if self.users.is_empty() == self.conversation.is_none() {
            return Err(ConfigError("either `users` or `conversation` is set".to_owned()));
        }
        if self.users.len() > USERS_LIMIT {
            return Err(ConfigError(format!(
                "`users` are too many, expected at most {USERS_LIMIT}"
            )));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let token = self.token(cx).await?;
        let dialect = KIND.about.dialect;
        let (template, parameters) = match message.format {
            Format::Text => ("sampleText", json!({ "content": dialect.titled(message) })),
            Format::Markdown => {
                let title = alert::summary(message, TITLE);
                ("sampleMarkdown", json!({ "title": title, "text": dialect.titled(message) }))
            }
        };
        let people = (!self.users.is_empty()).then_some(&self.users);
        let body = json!({
            "robotCode": self.robot_code.as_ref().unwrap_or(&self.app_key),
            "userIds": people,
            "openConversationId": self.conversation,
            "msgKey": template,
            "msgParam": parameters.to_string(),
        });
        let action =
            if people.is_some() { ["oToMessages", "batchSend"] } else { ["groupMessages", "send"] };
        let address = api().at(&["robot"]).at(&action);
        let request = cx.post(&address).header("x-acs-dingtalk-access-token", &token);
        let reply = request.json(&present(body)).answered().await?;
        let outcome = KIND.verdict().judge(KIND.about.title, &reply);
        if outcome.is_err() {
            // It may be the token that is no longer taken.
            self.token.forget();
        }
        let receipt = outcome?;
        let told = reply.json().unwrap_or_default();
        let unknown = told.get("invalidStaffIdList").and_then(Value::as_array);
        match unknown.map_or(0, Vec::len) {
            0 => Ok(receipt),
            unknown => {
                Err(SendError::permanent(format!("DingTalk does not know {unknown} of `users`")))
            }
        }
    }
}

impl DingTalkApp {
    async fn token(&self, cx: &SendContext) -> Result<String, SendError> {
        if let Some(token) = self.token.token(cx.now) {
            return Ok(token);
        }
        let app = json!({ "appKey": self.app_key, "appSecret": self.app_secret.expose() });
        let reply = cx.post(&api().at(&["oauth2", "accessToken"])).json(&app).answered().await?;
        let lent = reply.json().ok().filter(|_| reply.is_2xx());
        let lent = lent.unwrap_or_default();
        let Some(token) = lent.get("accessToken").and_then(Value::as_str) else {
            KIND.verdict().judge(KIND.about.title, &reply)?;
            return Err(SendError::temporary("DingTalk answered without a token"));
        };
        let seconds = lent.get("expireIn").and_then(Value::as_u64).unwrap_or_default();
        self.token.keep(token, cx.now, seconds);
        Ok(token.to_owned())
    }
}

fn api() -> Address {
    Address::parse("https://api.dingtalk.com/v1.0").expect("a constant address")
}
