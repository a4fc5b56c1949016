//! A Bot API that behaves as Telegram's documentation and its users say.

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    routing::post,
};
use serde_json::{Value, json};

/// The token of the one bot there is.
pub(crate) const TOKEN: &str = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw";

/// The one chat there is.
pub(crate) const CHAT: i64 = -1_001_234_567_890;

/// The longest text, in UTF-16 units, counted after the tags are read.
const LONGEST: usize = 4_096;

/// How long callers are asked to wait, in seconds.
pub(crate) const FLOOD_WAIT: u64 = 7;

/// A message as it stands in the chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) id: i64,
    /// The text as a reader sees it.
    pub(crate) text: String,
    /// How often it was changed.
    pub(crate) edits: usize,
}

/// A Bot API on a port of this machine.
pub(crate) struct Telegram {
    /// Where it is.
    pub(crate) address: String,
    chat: Arc<Mutex<Chat>>,
}

#[derive(Default)]
struct Chat {
    messages: Vec<Shown>,
    next_id: i64,
    calls: usize,
    /// How many calls are turned away for being too many.
    flood: usize,
}

impl Telegram {
    /// A Bot API with an empty chat.
    pub(crate) async fn start() -> Self {
        let chat = Arc::new(Mutex::new(Chat { next_id: 1, ..Chat::default() }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let app =
            Router::new().route("/{bot}/{method}", post(answer)).with_state(Arc::clone(&chat));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, chat }
    }

    /// What stands in the chat.
    pub(crate) fn messages(&self) -> Vec<Shown> {
        self.chat.lock().unwrap().messages.clone()
    }

    /// How often the API was called.
    pub(crate) fn calls(&self) -> usize {
        self.chat.lock().unwrap().calls
    }

    /// Somebody deletes all messages.
    pub(crate) fn clear(&self) {
        self.chat.lock().unwrap().messages.clear();
    }

    /// Turns the next `calls` away.
    pub(crate) fn flood(&self, calls: usize) {
        self.chat.lock().unwrap().flood = calls;
    }
}

async fn answer(
    State(chat): State<Arc<Mutex<Chat>>>,
    Path((bot, method)): Path<(String, String)>,
    Json(call): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let mut chat = chat.lock().unwrap();
    chat.calls += 1;
    match take(&mut chat, &bot, &method, &call) {
        Ok(id) => (StatusCode::OK, Json(json!({ "ok": true, "result": { "message_id": id } }))),
        Err((code, description)) => {
            let status = StatusCode::from_u16(code).unwrap();
            let parameters =
                if code == 429 { json!({ "retry_after": FLOOD_WAIT }) } else { json!({}) };
            let body = json!({
                "ok": false, "error_code": code, "description": description, "parameters": parameters,
            });
            (status, Json(body))
        }
    }
}

type Refusal = (u16, String);

fn refuse<T>(description: &str) -> Result<T, Refusal> {
    Err((400, format!("Bad Request: {description}")))
}

fn take(chat: &mut Chat, bot: &str, method: &str, call: &Value) -> Result<i64, Refusal> {
    let Some(token) = bot.strip_prefix("bot").filter(|token| token.contains(':')) else {
        return Err((404, "Not Found".to_owned()));
    };
    if token != TOKEN {
        return Err((401, "Unauthorized".to_owned()));
    }
    if chat.flood > 0 {
        chat.flood -= 1;
        return Err((429, format!("Too Many Requests: retry after {FLOOD_WAIT}")));
    }
    if call["chat_id"] != CHAT {
        return refuse("chat not found");
    }
    let text = call["text"].as_str().unwrap_or_default();
    let text = if call["parse_mode"] == "HTML" { read_html(text)? } else { text.to_owned() };
    if text.trim().is_empty() {
        return refuse("message text is empty");
    }
    if text.encode_utf16().count() > LONGEST {
        return refuse("message is too long");
    }
    match method {
        "sendMessage" => {
            let id = chat.next_id;
            chat.next_id += 1;
            chat.messages.push(Shown { id, text, edits: 0 });
            Ok(id)
        }
        "editMessageText" => {
            let id = call["message_id"].as_i64().unwrap_or_default();
            let Some(message) = chat.messages.iter_mut().find(|message| message.id == id) else {
                return refuse("message to edit not found");
            };
            if message.text == text {
                return refuse(
                    "message is not modified: specified new message content and reply markup are exactly the same \
                     as a current content and reply markup of the message",
                );
            }
            message.text = text;
            message.edits += 1;
            Ok(id)
        }
        _ => Err((404, "Not Found".to_owned())),
    }
}

/// The text of `html`, whose tags must be known and match.
fn read_html(html: &str) -> Result<String, Refusal> {
    const TAGS: [&str; 7] = ["b", "i", "s", "code", "pre", "a", "blockquote"];
    let mut text = String::new();
    let mut open = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find(['<', '>']) {
        let (before, tag) = rest.split_at(start);
        text.push_str(before);
        let Some(end) = tag.find('>').filter(|_| tag.starts_with('<')) else {
            return refuse("can't parse entities: unexpected `>` or unclosed start tag");
        };
        let name = tag[1..end].split(' ').next().unwrap_or_default();
        match name.strip_prefix('/') {
            Some(name) if open.pop() == Some(name) => {}
            None if TAGS.contains(&name) => open.push(name),
            _ => {
                return refuse("can't parse entities: unsupported start tag or unexpected end tag");
            }
        }
        rest = &tag[end + 1..];
    }
    text.push_str(rest);
    if !open.is_empty() {
        return refuse("can't parse entities: can't find end tag");
    }
    let escapes = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    Ok(escapes.iter().fold(text, |text, (escape, sign)| text.replace(escape, sign)))
}
