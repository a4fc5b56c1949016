use std::sync::{Mutex, PoisonError};

use deskbell_core::attachment::FILE_LIMIT;

use crate::{
    catalog::rocketchat_webhook::{self, is_webhook},
    files::ReadFile,
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<RocketChatBot>(About {
    name: "rocketchat_bot",
    title: "Rocket.Chat",
    docs: "https://developer.rocket.chat/apidocs/post-message",
    transport: Transport::Http {
        accepted: r#"{"success":true,"message":{"_id":"jC9chsFddTvsbFQG7","rid":"GENERAL"},"file":{"_id":"69424442ddfe6ceaf280f93f"},"status":"success","data":{"authToken":"a-token","userId":"a-user"}}"#,
        verdict: Verdict { id: Some("/message/_id"), ..rocketchat_webhook::VERDICT },
        refusals: &[
            Refusal::permanent(401, r#"{"status":"error","message":"You must be logged in to do this."}"#),
            Refusal::permanent(400, r#"{"success":false,"error":"[error-not-allowed]","errorType":"error-not-allowed"}"#),
            Refusal::permanent(400, r#"{"success":false,"error":"invalid-channel"}"#),
            Refusal::temporary(429, r#"{"success":false,"error":"Error, too many requests. Please slow down. You must wait 42 seconds before trying this endpoint again. [error-too-many-requests]"}"#),
        ],
    },
    dialect: Dialect::RocketChat,
    limits: rocketchat_webhook::LIMITS,
    edits: true,
    example: r##"
        server = "https://chat.example.com"
        user_id = "aobEdbYhXfu5hkeqG"
        token = "9HqLlyZOugoStsXCUfD_0YdwnNnunAJF8V47U3QHXSq"
        channel = "#builds"
    "##,
})
// 100 MB unless the server says otherwise.
.with_files(Files::After(FILE_LIMIT))
.with_urls(Urls {
    schemes: &["rocket", "rockets"],
    claims: |url| !is_webhook(url),
    examples: &[
        "rockets://aobEdbYhXfu5hkeqG:9HqLlyZOugoStsXCUfD_0YdwnNnunAJF8V47U3QHXSq@chat.example.com/#builds",
        "rocket://bell:password-1@localhost:3000/66f1a2b3c4d5/%23ops?mode=basic",
        "rockets://bell:pass%2Fword-1@chat.example.com/#builds?mode=basic",
    ],
    read,
    ..Urls::NONE
});

/// Messages from a Rocket.Chat user to rooms.
///
/// 1. Create a user with the role `bot`, or take your own, and add it to the room.
/// 2. Logged in as that user, open "Profile", then "Personal Access Tokens", and add one without two-factor.
/// 3. Set `token` and `user_id` to what it shows; or set `user` and `password` instead.
/// 4. Set `channel` to `#name` of the room.
///
/// The steps of a run edit one message in place, where the server lets the user edit its messages.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RocketChatBot {
    /// Address of the server.
    server: Address,
    /// Where to write: `#channel`, `@user` or the id of a room. Several get a message each.
    channel: Targets<String>,
    /// Id of the user that `token` belongs to.
    user_id: Option<String>,
    /// Personal access token.
    token: Option<Secret>,
    /// Name of the user, to log in with `password`.
    user: Option<String>,
    /// Password of the user.
    password: Option<Secret>,
    /// Id of a message in whose thread to write.
    thread: Option<String>,
    /// What the last login gave.
    #[serde(skip)]
    login: Mutex<Option<Login>>,
}

#[derive(Clone)]
struct Login {
    user_id: String,
    token: Secret,
}

/// From here on a password is a token to Apprise, and so it is here.
const TOKEN: usize = 33;

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    url.ignore(&["avatar"]);
    let mode = url.parameter("mode");
    let user: Option<toml::Value> = url.user.take().map(Into::into);
    let password = url.password.take().ok_or_else(|| url.wrong("has no password or token"))?;
    let is_token = match mode.as_deref().map(str::to_ascii_lowercase).as_deref() {
        None => password.len() >= TOKEN,
        Some("token") => true,
        Some("basic") => false,
        Some(_) => return Err(url.wrong("has an unknown `mode`; expected basic, token or webhook")),
    };
    let password = Some(password.into());
    let server = url.web()?;
    let channel = url.targets().ok_or_else(|| url.wrong("names no channel"))?;
    let [user_as, password_as] = if is_token { ["user_id", "token"] } else { ["user", "password"] };
    Ok(url::options([
        ("server", Some(server.into())),
        ("channel", Some(channel)),
        (user_as, user),
        (password_as, password),
    ]))
}

#[async_trait]
impl Channel for RocketChatBot {
    fn targets(&self) -> Vec<Mark> {
        self.channel.marks()
    }

    fn check(&self) -> Result<(), ConfigError> {
        let has_token = self.user_id.is_some() && self.token.is_some();
        let has_password = self.user.is_some() && self.password.is_some();
        if has_token == has_password {
            let needs = "either `user_id` and `token` or `user` and `password` must be set";
            return Err(ConfigError(needs.to_owned()));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let login = self.login(cx).await?;
        let channel = self.channel.at(cx).as_str();
        if let Some(file) = cx.files.first() {
            return self.hand_over(file, channel, &login, cx).await;
        }
        let text = KIND.about.dialect.titled(message);
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.as_deref());
        // <https://developer.rocket.chat/apidocs/update-message>
        let (method, body) = if let Some(id) = earlier {
            let (room, id) = id.rsplit_once(':').unwrap_or((channel, id));
            ("chat.update", json!({ "roomId": room, "msgId": id, "text": text }))
        } else {
            let by_name = channel.starts_with(['#', '@']);
            let room = if by_name { "channel" } else { "roomId" };
            ("chat.postMessage", json!({ room: channel, "text": text, "tmid": self.thread }))
        };
        let request = self.request(&[method], &login, cx);
        let reply = request.json_without_nulls(body).answered().await?;
        if reply.status() == 401 && self.forget() {
            return Err(SendError::temporary("Rocket.Chat ended the session; it is opened anew"));
        }
        let receipt = KIND.verdict().judge(KIND.about.title, &reply)?;
        // An edit needs the room's id, which is not what the room is called here.
        let answer = reply.json()?;
        let room = answer.pointer("/message/rid").and_then(Value::as_str);
        let message_id = receipt.message_id.zip(room).map(|(id, room)| format!("{room}:{id}"));
        Ok(Receipt { message_id })
    }
}

impl RocketChatBot {
    fn request<'a>(&self, method: &[&str], login: &Login, cx: &'a SendContext) -> Request<'a> {
        let request = cx.post(&self.server.at(&["api", "v1"]).at(method));
        let request = request.header("x-user-id", &login.user_id);
        request.header("x-auth-token", login.token.expose())
    }

    /// Uploads `file` and shows it in the room. Servers before 6.10 cannot.
    async fn hand_over(
        &self,
        file: &ReadFile,
        channel: &str,
        login: &Login,
        cx: &SendContext,
    ) -> Result<Receipt, SendError> {
        // Only an id names a room here; the answer to the text told it.
        let told = cx.told.as_ref().and_then(|told| told.message_id.as_deref());
        let room = told.and_then(|told| told.rsplit_once(':')).map_or(channel, |(room, _)| room);
        let upload = self.request(&["rooms.media", room], login, cx);
        let reply = upload.form_with_file(&[], "file", file).answered().await?;
        let verdict = Verdict { id: Some("/file/_id"), ..*KIND.verdict() };
        let id = verdict.judge(KIND.about.title, &reply)?.message_id.unwrap_or_default();
        let confirm = self.request(&["rooms.mediaConfirm", room, &id], login, cx);
        confirm.json_without_nulls(json!({ "tmid": self.thread })).delivered(&KIND).await
    }

    async fn login(&self, cx: &SendContext) -> Result<Login, SendError> {
        if let (Some(user_id), Some(token)) = (&self.user_id, &self.token) {
            return Ok(Login { user_id: user_id.clone(), token: token.clone() });
        }
        let known = self.login.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(login) = known {
            return Ok(login);
        }
        let password = self.password.as_ref().map(Secret::expose);
        let request = cx.post(&self.server.at(&["api", "v1", "login"]));
        let request = request.json(&json!({ "user": self.user, "password": password }));
        let verdict =
            Verdict { id: Some("/data/userId"), ..Verdict::field("/status", &["success"]) };
        let reply = request.answered().await?;
        let user_id = verdict.judge(KIND.about.title, &reply)?.message_id.unwrap_or_default();
        let answer = reply.json()?;
        let token = answer.pointer("/data/authToken").and_then(Value::as_str).unwrap_or_default();
        let login = Login { user_id, token: Secret::from(token.to_owned()) };
        *self.login.lock().unwrap_or_else(PoisonError::into_inner) = Some(login.clone());
        Ok(login)
    }

    /// Forgets the last login; whether there was one.
    fn forget(&self) -> bool {
        self.login.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }
}
