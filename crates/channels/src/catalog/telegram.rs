use std::time::Duration;

use deskbell_core::delivery::Failure;
use serde::Serialize;

use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Telegram>(About {
    name: "telegram",
    docs: "https://core.telegram.org/bots/api#sendmessage",
    transport: Transport::Http {
        accepted: r#"{"ok":true,"result":{"message_id":17}}"#,
        refused: Some(
            r#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#,
        ),
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
.with_urls(Urls {
    schemes: &["tgram"],
    examples: &["tgram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/-1001234567890"],
    read,
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
    /// The chat: its number, or `@name` of a public channel.
    chat_id: ChatId,
    /// Number of the topic, in a group that has topics.
    topic: Option<i64>,
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
    url.ignore(&["detect", "silent", "preview", "album", "mdv", "content", "template"]);
    let topic = url.parameter("topic").or_else(|| url.parameter("thread"));
    let topic = topic.map(|topic| topic.parse::<i64>()).transpose();
    let topic = topic.map_err(|_| url.wrong("has a `topic` that is no number"))?;
    let chat = match url.parameter("to") {
        Some(chat) => chat,
        None => url.only("chat")?,
    };
    Ok(url::options([
        ("token", Some(url.authority.clone().into())),
        ("chat_id", Some(chat.into())),
        ("topic", topic.map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for Telegram {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let html = text(message, KIND.about.dialect);
        match self.tell(message, html, Some("HTML"), cx).await {
            // Better without marks than not at all.
            Err(Refusal::Marks(_)) => self
                .tell(message, text(message, Dialect::Plain), None, cx)
                .await
                .map_err(SendError::from),
            outcome => outcome.map_err(SendError::from),
        }
    }
}

/// The title, marked by its level, and the body, in `dialect`.
fn text(message: &Message, dialect: Dialect) -> String {
    let body = dialect.body(message);
    let mark = mark(message.level);
    match &message.title {
        Some(title) if dialect == Dialect::Plain => format!("{mark}{title}\n\n{body}"),
        Some(title) => format!("<b>{mark}{}</b>\n\n{body}", dialect.escaped(title)),
        None => format!("{mark}{body}"),
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
    ) -> Result<Receipt, Refusal> {
        let mut call = Call {
            chat_id: &self.chat_id,
            text,
            parse_mode,
            link_preview_options: json!({ "is_disabled": true }),
            message_id: None,
            message_thread_id: self.topic,
            disable_notification: None,
        };
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.as_ref());
        if let Some(id) = earlier.and_then(|id| id.parse::<i64>().ok()) {
            (call.message_id, call.message_thread_id) = (Some(id), None);
            return match self.call("editMessageText", &call, cx).await {
                Err(Refusal::Unchanged) => Ok(Receipt { message_id: Some(id.to_string()) }),
                outcome => outcome,
            };
        }
        let update = message.run.as_ref().is_some_and(|run| run.phase == Phase::Update);
        call.disable_notification = Some(update || message.level == Level::Debug);
        self.call("sendMessage", &call, cx).await
    }

    async fn call(
        &self,
        method: &str,
        call: &Call<'_>,
        cx: &SendContext,
    ) -> Result<Receipt, Refusal> {
        let address = self.api.at(&[&format!("bot{}", self.token.expose()), method]);
        let reply = cx.post(&address).via(self.proxy.as_ref()).json(call).answered().await?;
        let Ok(answer) = reply.json() else {
            // Without a verdict the status decides, and 2xx alone is not success.
            reply.accepted()?.json()?;
            return Ok(Receipt::default());
        };
        if answer.get("ok") == Some(&Value::Bool(true)) {
            Ok(receipt(&answer, "/result/message_id"))
        } else {
            Err(refusal(&answer, &reply.failure(), cx))
        }
    }
}

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
enum Refusal {
    /// It cannot read the marks in the text.
    Marks(SendError),
    /// The message says this already.
    Unchanged,
    /// Anything else.
    Other(SendError),
}

impl From<SendError> for Refusal {
    fn from(error: SendError) -> Self {
        Self::Other(error)
    }
}

impl From<Refusal> for SendError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Marks(error) | Refusal::Other(error) => error,
            Refusal::Unchanged => Self::permanent("the message is not modified"),
        }
    }
}

/// What a refusal means; `by_status` is what its status says.
fn refusal(answer: &Value, by_status: &SendError, cx: &SendContext) -> Refusal {
    let told = answer.get("description").and_then(Value::as_str).unwrap_or("no description");
    let code = answer.get("error_code").and_then(Value::as_u64).unwrap_or_default();
    let mut message = format!("Telegram refused with {code}: {}", cx.excerpt(told));
    if let Some(chat) = answer.pointer("/parameters/migrate_to_chat_id") {
        message = format!("the group became a supergroup; set `chat_id` to {chat}");
    }
    let asked = answer.pointer("/parameters/retry_after").and_then(Value::as_u64);
    let failure = match asked {
        Some(seconds) => Failure::Temporary { retry_after: Some(Duration::from_secs(seconds)) },
        None => by_status.failure,
    };
    let error = SendError { failure, message };
    match told {
        told if told.contains("can't parse entities") => Refusal::Marks(error),
        told if told.contains("message is not modified") => Refusal::Unchanged,
        _ => Refusal::Other(error),
    }
}
