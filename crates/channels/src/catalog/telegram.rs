use deskbell_core::delivery::Failure;
use serde::Serialize;

use crate::{files::ReadFile, prelude::*};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Telegram>(About {
    name: "telegram",
    title: "Telegram",
    docs: "https://core.telegram.org/bots/api#sendmessage",
    transport: Transport::Http {
        accepted: r#"{"ok":true,"result":{"message_id":17}}"#,
        verdict: Verdict {
            id: Some("/result/message_id"),
            code: Some("/error_code"),
            reason: &["/description"],
            wait: Wait::Seconds("/parameters/retry_after"),
            hints: &[("404", "check `token`")],
            ..Verdict::field("/ok", &["true"])
        },
        refusals: &[
            Refusal::permanent(400, r#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#),
            Refusal::permanent(200, r#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#),
            Refusal::permanent(401, r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#),
            Refusal::permanent(403, r#"{"ok":false,"error_code":403,"description":"Forbidden: bot was blocked by the user"}"#),
            Refusal::after(7, 429, r#"{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 7","parameters":{"retry_after":7}}"#),
        ],
    },
    dialect: Dialect::TelegramHtml,
    // 4,096 UTF-16 units for title and body together, counted without tags.
    limits: Limits { title: 256, body: 3_800, unit: Unit::Utf16, per_minute: None },
    edits: true,
    example: r#"
        token = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
        chat_id = -1001234567890
    "#,
})
.with_files(Files::After(50_000_000))
.with_urls(Urls {
    schemes: &["tgram"],
    examples: &["tgram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/-1001234567890"],
    read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "telegram",
    needs: &["TG_BOT_TOKEN", "TG_USER_ID"],
    takes: &["TG_API_HOST", "TG_PROXY_HOST", "TG_PROXY_PORT", "TG_PROXY_AUTH"],
    read: variables,
});

/// Messages from a Telegram bot to a person, a group or a channel.
///
/// 1. Write `/newbot` to [@BotFather](https://t.me/BotFather) and set `token` to the token it gives you.
/// 2. Write to your bot, or add it to the group: it cannot write first.
/// 3. Open `https://api.telegram.org/bot<token>/getUpdates` and set `chat_id` to the `chat.id` you find there, or to
///    `@name` of a public channel.
///
/// The steps of a run edit one message in place.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Telegram {
    /// Token of the bot.
    token: Secret,
    /// The chat: its number, or `@name` of a public channel. Several get a message each.
    chat_id: Targets<ChatId>,
    /// Number of the topic, in a group that has topics.
    topic: Option<i64>,
    /// Whether messages make no sound whatever their level.
    #[serde(default)]
    #[schemars(extend("default" = false))]
    silent: bool,
    /// Whether a page that a text links to is shown.
    #[serde(default)]
    #[schemars(extend("default" = false))]
    preview: bool,
    /// Address of the Bot API.
    #[serde(default = "public_api")]
    #[schemars(extend("default" = "https://api.telegram.org"))]
    api: Address,
    /// Proxy to go through.
    proxy: Option<Proxy>,
}

/// A chat, as users write it: with quotes or without.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(untagged, expecting = "a chat, expected a number or `@name`")]
enum ChatId {
    Number(i64),
    Name(String),
}

fn public_api() -> Address {
    Address::parse("https://api.telegram.org").expect("a constant address")
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    url.ignore(&["detect", "album", "mdv", "content", "template"]);
    // What stands before the token names the bot for people.
    url.user = None;
    let topic = url.number("topic")?.or(url.number("thread")?);
    let chats = url.targets().ok_or_else(|| {
        // The one that wrote to the bot last could be anybody's.
        url.wrong("names no chat")
    })?;
    Ok(url::options([
        ("token", url.authority().map(Into::into)),
        ("chat_id", Some(chats)),
        ("topic", topic.map(Into::into)),
        ("silent", url.yes("silent").map(Into::into)),
        ("preview", url.yes("preview").map(Into::into)),
    ]))
}

fn variables(set: &Set<'_>) -> Result<toml::Table, Wrong> {
    let mut table =
        set.table(&[("token", "TG_BOT_TOKEN"), ("chat_id", "TG_USER_ID"), ("api", "TG_API_HOST")]);
    if let Some(host) = set.get("TG_PROXY_HOST") {
        let Some(port) = set.get("TG_PROXY_PORT") else {
            return Err(Wrong {
                variable: "TG_PROXY_PORT",
                reason: "it is not set, and TG_PROXY_HOST needs it",
            });
        };
        // Its login may stand in the host already.
        let login = set.get("TG_PROXY_AUTH").filter(|_| !host.contains('@'));
        let login = login.map(|login| format!("{login}@")).unwrap_or_default();
        table.insert("proxy".to_owned(), format!("http://{login}{host}:{port}").into());
    }
    Ok(table)
}

#[async_trait]
impl Channel for Telegram {
    fn targets(&self) -> Vec<Mark> {
        self.chat_id.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        if let Some(file) = cx.files.first() {
            return self.hand_over(file, cx).await;
        }
        let html = KIND.about.dialect.titled(message);
        match self.tell(message, html, Some("HTML"), cx).await {
            // Better without marks than not at all.
            Err(NotTaken::Marks(_)) => self
                .tell(message, Dialect::Plain.titled(message), None, cx)
                .await
                .map_err(SendError::from),
            outcome => outcome.map_err(SendError::from),
        }
    }
}

impl Telegram {
    /// Sends `text`, or edits the message that `cx` names.
    async fn tell(
        &self,
        message: &Message,
        text: String,
        parse_mode: Option<&str>,
        cx: &SendContext,
    ) -> Result<Receipt, NotTaken> {
        let mut call = Call {
            chat_id: self.chat_id.at(cx),
            text,
            parse_mode,
            link_preview_options: json!({ "is_disabled": !self.preview }),
            message_id: None,
            message_thread_id: self.topic,
            disable_notification: None,
        };
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.as_ref());
        if let Some(id) = earlier.and_then(|id| id.parse::<i64>().ok()) {
            (call.message_id, call.message_thread_id) = (Some(id), None);
            return match self.call("editMessageText", &call, cx).await {
                Err(NotTaken::Unchanged) => Ok(Receipt { message_id: Some(id.to_string()) }),
                outcome => outcome,
            };
        }
        let update = message.run.as_ref().is_some_and(|run| run.phase == Phase::Update);
        call.disable_notification = Some(self.silent || update || message.level == Level::Debug);
        self.call("sendMessage", &call, cx).await
    }

    /// Sends a picture to be seen at once, and any other file to be opened.
    async fn hand_over(&self, file: &ReadFile, cx: &SendContext) -> Result<Receipt, SendError> {
        let is_picture = matches!(file.media_type.as_str(), "image/png" | "image/jpeg")
            && file.bytes.len() <= PHOTO_LIMIT;
        if is_picture {
            match self.upload("sendPhoto", "photo", file, cx).await {
                // It is too wide or too high for a photo.
                Err(SendError { failure: Failure::Permanent, .. }) => {}
                outcome => return outcome,
            }
        }
        self.upload("sendDocument", "document", file, cx).await
    }

    async fn upload(
        &self,
        method: &str,
        part: &str,
        file: &ReadFile,
        cx: &SendContext,
    ) -> Result<Receipt, SendError> {
        let chat = match self.chat_id.at(cx) {
            ChatId::Number(number) => number.to_string(),
            ChatId::Name(name) => name.clone(),
        };
        let topic = self.topic.map(|topic| topic.to_string());
        // The text rang already.
        let mut fields = vec![("chat_id", chat.as_str()), ("disable_notification", "true")];
        fields.extend(topic.as_deref().map(|topic| ("message_thread_id", topic)));
        let address = self.api.at(&[&format!("bot{}", self.token.expose()), method]);
        let request = cx.post(&address).via(self.proxy.as_ref());
        request.form_with_file(&fields, part, file).delivered(&KIND).await
    }

    async fn call(
        &self,
        method: &str,
        call: &Call<'_>,
        cx: &SendContext,
    ) -> Result<Receipt, NotTaken> {
        let address = self.api.at(&[&format!("bot{}", self.token.expose()), method]);
        let reply = cx.post(&address).via(self.proxy.as_ref()).json(call).answered().await?;
        KIND.verdict().judge(KIND.about.title, &reply).map_err(|error| not_taken(&reply, error))
    }
}

/// The largest file that is sent as a photo, in bytes.
const PHOTO_LIMIT: usize = 10_000_000;

/// The parameters of `sendMessage` and `editMessageText`.
#[derive(Serialize)]
struct Call<'a> {
    chat_id: &'a ChatId,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parse_mode: Option<&'a str>,
    link_preview_options: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_thread_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disable_notification: Option<bool>,
}

/// Why the Bot API did not take a call.
enum NotTaken {
    /// It cannot read the marks in the text.
    Marks(SendError),
    /// The message says this already.
    Unchanged,
    /// Anything else.
    Other(SendError),
}

impl From<SendError> for NotTaken {
    fn from(error: SendError) -> Self {
        Self::Other(error)
    }
}

impl From<NotTaken> for SendError {
    fn from(refusal: NotTaken) -> Self {
        match refusal {
            NotTaken::Marks(error) | NotTaken::Other(error) => error,
            NotTaken::Unchanged => Self::permanent("the message is not modified"),
        }
    }
}

/// What can be done about `error`, which `reply` means.
fn not_taken(reply: &Reply, error: SendError) -> NotTaken {
    let answer = reply.json().unwrap_or_default();
    if let Some(chat) = answer.pointer("/parameters/migrate_to_chat_id") {
        let message = format!("the group became a supergroup; set `chat_id` to {chat}");
        return NotTaken::Other(SendError { message, ..error });
    }
    match answer.get("description").and_then(Value::as_str).unwrap_or_default() {
        told if told.contains("can't parse entities") => NotTaken::Marks(error),
        told if told.contains("message is not modified") => NotTaken::Unchanged,
        _ => NotTaken::Other(error),
    }
}
