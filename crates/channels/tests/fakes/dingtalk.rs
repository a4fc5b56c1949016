//! A custom robot that behaves as DingTalk's documentation and its users say: every answer has status 200.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use aws_lc_rs::hmac;
use axum::{
    Json, Router,
    extract::{Query, State},
    routing::post,
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

/// The robot's token.
pub(crate) const TOKEN: &str = "8f14e45fceea167a5a36dedd4bea2543";

/// The robot's key.
pub(crate) const SECRET: &str = "SECabcdef0123456789";

/// The longest request, in bytes.
const LONGEST: usize = 20_000;

/// How many messages a minute there may be.
pub(crate) const A_MINUTE: usize = 20;

/// A robot on a port of this machine.
pub(crate) struct DingTalk {
    /// Where it is.
    pub(crate) address: String,
    messages: Arc<Mutex<Vec<Value>>>,
}

impl DingTalk {
    /// A robot whose group is empty, and whose minute has just begun.
    pub(crate) async fn start() -> Self {
        let messages = Arc::new(Mutex::new(Vec::new()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let app =
            Router::new().route("/robot/send", post(answer)).with_state(Arc::clone(&messages));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, messages }
    }

    /// What was sent to the group.
    pub(crate) fn messages(&self) -> Vec<Value> {
        self.messages.lock().unwrap().clone()
    }
}

async fn answer(
    State(messages): State<Arc<Mutex<Vec<Value>>>>,
    Query(query): Query<HashMap<String, String>>,
    body: String,
) -> Json<Value> {
    let mut messages = messages.lock().unwrap();
    let (code, reason) = verdict(&messages, &query, &body);
    if code == 0 {
        messages.push(serde_json::from_str(&body).unwrap_or_default());
    }
    Json(json!({ "errcode": code, "errmsg": reason }))
}

fn verdict(messages: &[Value], query: &HashMap<String, String>, body: &str) -> (i64, &'static str) {
    let given = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    if given("access_token") != TOKEN {
        (300_001, "token is not exist")
    } else if given("sign") != signature(given("timestamp")) {
        (310_000, "sign not match")
    } else if messages.len() >= A_MINUTE {
        (130_101, "send too fast, exceed 20 times per minute")
    } else if body.len() > LONGEST {
        (460_101, "message too long")
    } else if !has_content(&message) {
        (400_001, "content is empty")
    } else {
        (0, "ok")
    }
}

fn signature(timestamp: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    BASE64_STANDARD.encode(hmac::sign(&key, format!("{timestamp}\n{SECRET}").as_bytes()))
}

fn has_content(message: &Value) -> bool {
    let text = |pointer: &str| {
        message.pointer(pointer).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
    };
    match message["msgtype"].as_str() {
        Some("text") => text("/text/content"),
        Some("markdown") => text("/markdown/title") && text("/markdown/text"),
        _ => false,
    }
}
