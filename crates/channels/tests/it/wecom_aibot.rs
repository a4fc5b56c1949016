//! WeCom's smart robot, against a gateway that behaves as the official SDK says.
#![expect(clippy::indexing_slicing, reason = "a test that cannot go on should say where")]

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use async_tungstenite::{
    WebSocketStream,
    tokio::{TokioAdapter, accept_async},
    tungstenite::Message as Frame,
};
use deskbell_channels::SendError;
use deskbell_core::{delivery::Failure, event::Format};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use crate::{
    Configured, configured,
    sample::{context, message},
};

const SECRET: &str = "aibot-secret-4711";

/// How a gateway answers a message.
#[derive(Clone)]
enum Manner {
    /// With this code.
    Code(i64),
    /// By telling that another program has connected.
    Displace,
    /// Not at all.
    Leave,
}

struct Gateway {
    port: u16,
    /// What was told.
    told: Arc<Mutex<Vec<Value>>>,
    /// The most connections that there were at a time.
    most: Arc<AtomicUsize>,
}

impl Gateway {
    async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (told, most, open) = (Arc::default(), Arc::default(), Arc::new(AtomicUsize::new(0)));
        let gateway = Self { port, told: Arc::clone(&told), most: Arc::clone(&most) };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                most.fetch_max(open.fetch_add(1, SeqCst) + 1, SeqCst);
                let (told, open, manner) = (Arc::clone(&told), Arc::clone(&open), manner.clone());
                tokio::spawn(async move {
                    serve(stream, manner, &told).await;
                    open.fetch_sub(1, SeqCst);
                });
            }
        });
        gateway
    }

    fn channel(&self, secret: &str) -> Configured {
        let options = format!(
            "bot_id = 'aib1'\nsecret = '{secret}'\nchat_id = ['chat-1', 'ada']\nserver = 'ws://127.0.0.1:{}'",
            self.port
        );
        configured("wecom_aibot", &options)
    }

    async fn deliver(&self, secret: &str) -> Result<(), SendError> {
        let text = message("**2** of 340 <@all>", Format::Markdown);
        self.channel(secret).deliver(&text, &context(&text, None)).await.map(drop)
    }
}

async fn serve(stream: TcpStream, manner: Manner, told: &Mutex<Vec<Value>>) {
    let mut socket = accept_async(stream).await.unwrap();
    let Some(login) = next(&mut socket).await else { return };
    assert_eq!(login["cmd"], "aibot_subscribe");
    assert_eq!(login["body"]["bot_id"], "aib1");
    let is_known = login["body"]["secret"] == SECRET;
    // Who does not answer a ping is taken for dead.
    socket.send(Frame::Ping("alive?".into())).await.unwrap();
    assert!(matches!(socket.next().await, Some(Ok(Frame::Pong(_)))));
    let secret = login["body"]["secret"].as_str().unwrap();
    let refusal = format!("invalid secret {secret}");
    let (code, text) = if is_known { (0, "ok") } else { (40001, refusal.as_str()) };
    answer(&mut socket, &login, code, text).await;
    if !is_known {
        return;
    }
    let Some(frame) = next(&mut socket).await else { return };
    told.lock().unwrap().push(frame.clone());
    // Somebody talks to the robot meanwhile.
    let callback = json!({ "cmd": "aibot_msg_callback", "headers": frame["headers"], "body": { "msgtype": "text" } });
    socket.send(Frame::text(callback.to_string())).await.unwrap();
    match manner {
        Manner::Code(code) => answer(&mut socket, &frame, code, "api freq or not").await,
        Manner::Displace => {
            let event = json!({
                "cmd": "aibot_event_callback",
                "headers": { "req_id": "1" },
                "body": { "event": { "eventtype": "disconnected_event" } },
            });
            socket.send(Frame::text(event.to_string())).await.unwrap();
        }
        Manner::Leave => {}
    }
    if !matches!(manner, Manner::Leave) {
        // Until the far end says goodbye.
        while socket.next().await.is_some_and(|frame| frame.is_ok()) {}
    }
}

async fn next(socket: &mut WebSocketStream<TokioAdapter<TcpStream>>) -> Option<Value> {
    match socket.next().await? {
        Ok(Frame::Text(text)) => Some(serde_json::from_str(&text).unwrap()),
        _ => None,
    }
}

async fn answer(
    socket: &mut WebSocketStream<TokioAdapter<TcpStream>>,
    to: &Value,
    code: i64,
    text: &str,
) {
    let answer = json!({ "headers": to["headers"], "errcode": code, "errmsg": text });
    socket.send(Frame::text(answer.to_string())).await.unwrap();
}

#[tokio::test]
async fn a_robot_logs_in_and_tells_each_chat() {
    let gateway = Gateway::start(Manner::Code(0)).await;
    gateway.deliver(SECRET).await.unwrap();
    let told = gateway.told.lock().unwrap().clone();
    let chats: Vec<_> = told.iter().map(|frame| frame["body"]["chatid"].clone()).collect();
    assert_eq!(chats, ["chat-1", "ada"]);
    for frame in &told {
        assert_eq!(frame["cmd"], "aibot_send_msg");
        assert_eq!(frame["body"]["msgtype"], "markdown");
        let content = frame["body"]["markdown"]["content"].as_str().unwrap();
        assert!(content.contains("Build failed") && content.contains("**2** of 340"), "{content}");
        assert!(!content.contains("<@all>"), "{content}");
    }
}

#[tokio::test]
async fn a_refused_login_is_for_good_and_keeps_the_secret() {
    let gateway = Gateway::start(Manner::Code(0)).await;
    let error = gateway.deliver("wrong-secret-4712").await.unwrap_err();
    assert_eq!(error.failure, Failure::Permanent, "{error}");
    assert!(error.message.contains("40001") && error.message.contains("check `secret`"), "{error}");
    assert!(!error.message.contains("4712"), "{error}");
    assert!(gateway.told.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_an_answer_or_none_means() {
    let minute = Some(std::time::Duration::from_mins(1));
    for (manner, failure) in [
        (Manner::Code(45009), Failure::Temporary { retry_after: minute }),
        (Manner::Code(-1), Failure::Temporary { retry_after: None }),
        (Manner::Code(40058), Failure::Permanent),
        (Manner::Displace, Failure::Temporary { retry_after: None }),
        (Manner::Leave, Failure::Temporary { retry_after: None }),
    ] {
        let gateway = Gateway::start(manner).await;
        let error = gateway.deliver(SECRET).await.unwrap_err();
        assert_eq!(error.failure, failure, "{error}");
    }
}

#[tokio::test]
async fn messages_of_one_robot_take_turns() {
    let gateway = Gateway::start(Manner::Code(0)).await;
    let deliver = || gateway.deliver(SECRET);
    let (one, two, three) = tokio::join!(deliver(), deliver(), deliver());
    one.and(two).and(three).unwrap();
    assert_eq!(gateway.told.lock().unwrap().len(), 6);
    assert_eq!(gateway.most.load(SeqCst), 1);
}

#[tokio::test]
async fn a_dead_robot_holds_up_no_other() {
    let dead = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = dead.local_addr().unwrap().port();
    let options = format!(
        "bot_id = 'dead'\nsecret = 'x'\nchat_id = 'chat-1'\nserver = 'ws://127.0.0.1:{port}'"
    );
    let (dead, text) = (configured("wecom_aibot", &options), message("a", Format::Text));
    let cx = context(&text, None);
    let gateway = Gateway::start(Manner::Code(0)).await;
    tokio::select! {
        biased;
        outcome = dead.deliver(&text, &cx) => panic!("the dead one was first: {outcome:?}"),
        outcome = gateway.deliver(SECRET) => outcome.unwrap(),
    }
}

#[tokio::test]
async fn a_secret_goes_over_no_network_in_the_clear() {
    let kind = deskbell_channels::kind("wecom_aibot").unwrap();
    let build = |server: &str| {
        let options = format!("bot_id = 'a'\nsecret = 'b'\nchat_id = 'c'\nserver = '{server}'");
        kind.build(toml::from_str(&options).unwrap()).map(drop)
    };
    build("wss://gateway.example.com").unwrap();
    assert!(build("ws://gateway.example.com").unwrap_err().to_string().contains("`server`"));
    assert!(build("https://gateway.example.com").unwrap_err().to_string().contains("`server`"));
}
