use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_tungstenite::{
    WebSocketStream,
    tokio::{TokioAdapter, client_async_with_config},
    tungstenite::{self, Message as Frame, protocol::WebSocketConfig},
};
use futures_util::StreamExt as _;
use http::HeaderMap;
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::OwnedMutexGuard,
};
use tokio_rustls::TlsConnector;

use crate::{prelude::*, reply::REPLY_LIMIT, tls};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<WeComAiBot>(About {
    name: "wecom_aibot",
    title: "WeCom",
    docs: "https://developer.work.weixin.qq.com/document/path/101463",
    transport: Transport::WebSocket {
        verdict: Verdict {
            reason: &["/errmsg"],
            passing: &[Passing::soon("-1"), Passing::after(60, "45009"), Passing::soon("45033")],
            hints: &[("40001", "check `secret`")],
            ..Verdict::field("/errcode", &["0"])
        },
    },
    dialect: Dialect::WeCom,
    // Those of a group robot's Markdown; what this one takes is not documented.
    limits: Limits { title: 200, body: 3_800, unit: Unit::Bytes, per_minute: None },
    edits: false,
    example: r#"
        bot_id = "aibZ0qXv7Cd2-example"
        secret = "tF5exampleSecretOfTheBot0815"
        chat_id = "wrkSFfCgAAexampleChat"
    "#,
});

/// Messages through a smart robot (智能机器人) of WeCom (企业微信), which needs no address of its own.
///
/// 1. In WeCom, open the robot's settings, choose the API mode and in it the long connection (长连接).
/// 2. Set `bot_id` and `secret` to what it shows there.
/// 3. Set `chat_id` to the id of a group that the robot is in, or to the id of a member for a single chat.
///
/// A robot has one connection: each new one ends the one before. So give Deskbell a robot of its own; where another
/// program uses the same one, each disturbs the other. Which chats a robot may write to first is WeCom's decision.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WeComAiBot {
    /// Id of the robot.
    bot_id: String,
    /// Secret of the robot's long connection.
    secret: Secret,
    /// Id of a group or of a member, or several.
    chat_id: Targets<String>,
    /// Address of WeCom's gateway. Only on this machine it may be a `ws://` one.
    #[serde(default = "gateway")]
    #[schemars(extend("default" = "wss://openws.work.weixin.qq.com"))]
    server: ::url::Url,
}

fn gateway() -> ::url::Url {
    "wss://openws.work.weixin.qq.com".parse().expect("a constant address")
}

/// Messages of one robot take turns, because each connection would end the one before: by the robot's id the turn of
/// each robot that is connected or waited for.
static TURNS: Mutex<Option<HashMap<String, Arc<tokio::sync::Mutex<()>>>>> = Mutex::new(None);

/// Waits for the turn of the robot.
async fn turn(bot_id: &str) -> OwnedMutexGuard<()> {
    let turn = {
        let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = turns.get_or_insert_default();
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(bot_id.to_owned()).or_default())
    };
    turn.lock_owned().await
}

/// How long saying goodbye may take after the far end has answered.
const GOODBYE: Duration = Duration::from_secs(1);

#[async_trait]
impl Channel for WeComAiBot {
    fn targets(&self) -> Vec<Mark> {
        self.chat_id.marks()
    }

    fn check(&self) -> Result<(), ConfigError> {
        let is_local = matches!(self.server.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        if self.server.scheme() == "wss" || (self.server.scheme() == "ws" && is_local) {
            return Ok(());
        }
        Err(ConfigError("`server` is not right; expected an address with `wss://`".to_owned()))
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let login = json!({ "bot_id": self.bot_id, "secret": self.secret.expose() });
        let told = json!({
            "chatid": self.chat_id.at(cx),
            "msgtype": "markdown",
            "markdown": { "content": KIND.about.dialect.titled(message) },
        });
        let frames =
            [("aibot_subscribe", login), ("aibot_send_msg", told)].map(|(command, body)| {
                let id = format!("{command}_{}", cx.uuid());
                json!({ "cmd": command, "headers": { "req_id": id }, "body": body })
            });
        if let Some(preview) = &cx.preview {
            for frame in &frames {
                preview.note(json!({
                    "transport": "websocket",
                    "server": self.server,
                    "body": frame.to_string(),
                }));
            }
            return Ok(Receipt::default());
        }
        let turn = turn(&self.bot_id).await;
        let stream = self.connected(cx).await?;
        match self.tls()? {
            None => self.tell(stream, turn, &frames, cx).await,
            Some((name, connector)) => {
                let stream = connector.connect(name, stream).await.map_err(|error| {
                    SendError::temporary(format!("cannot reach WeCom: {error}"))
                })?;
                self.tell(stream, turn, &frames, cx).await
            }
        }
    }
}

impl WeComAiBot {
    async fn connected(&self, cx: &SendContext) -> Result<TcpStream, SendError> {
        let host = self.server.host_str().unwrap_or_default();
        let port = self.server.port_or_known_default().unwrap_or(443);
        let addresses = cx.resolve(host, port).await?;
        let stream = TcpStream::connect(&*addresses).await;
        stream.map_err(|error| SendError::temporary(format!("cannot reach WeCom: {error}")))
    }

    fn tls(&self) -> Result<Option<(ServerName<'static>, TlsConnector)>, SendError> {
        if self.server.scheme() == "ws" {
            return Ok(None);
        }
        let host = self.server.host_str().unwrap_or_default().to_owned();
        let name = ServerName::try_from(host)
            .map_err(|_| SendError::permanent("`server` is no name of a certificate"))?;
        let config =
            tls::client_config(None).map_err(|error| SendError::permanent(error.to_string()))?;
        Ok(Some((name, TlsConnector::from(Arc::new(config)))))
    }

    /// Logs in and tells the message; each frame is answered before the next one goes.
    async fn tell<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        turn: OwnedMutexGuard<()>,
        frames: &[Value],
        cx: &SendContext,
    ) -> Result<Receipt, SendError> {
        let config = WebSocketConfig::default()
            .max_message_size(Some(REPLY_LIMIT))
            .max_frame_size(Some(REPLY_LIMIT));
        let opened = client_async_with_config(self.server.as_str(), stream, Some(config)).await;
        let (mut socket, _) = opened.map_err(|error| broken(error, cx))?;
        let mut outcome = Ok(Receipt::default());
        for frame in frames {
            outcome = answered(&mut socket, frame, cx).await;
            if outcome.is_err() {
                break;
            }
        }
        // What happens to the goodbye changes nothing, so nobody waits for it but the robot's next message, which should
        // find the robot without a connection.
        tokio::spawn(async move {
            let goodbye = async {
                if socket.close(None).await.is_ok() {
                    while let Some(Ok(_)) = socket.next().await {}
                }
            };
            tokio::time::timeout(GOODBYE, goodbye).await.unwrap_or_default();
            drop((socket, turn));
        });
        outcome
    }
}

/// Sends `frame` and waits for its answer. What the robot is told meanwhile is for nobody here.
async fn answered<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<TokioAdapter<S>>,
    frame: &Value,
    cx: &SendContext,
) -> Result<Receipt, SendError> {
    let sent = socket.send(Frame::text(frame.to_string())).await;
    sent.map_err(|error| broken(error, cx))?;
    loop {
        let told = match socket.next().await {
            Some(Ok(Frame::Text(told))) => told,
            Some(Ok(Frame::Close(_))) | None => {
                return Err(SendError::temporary("WeCom ended the connection without an answer"));
            }
            // The library answers pings.
            Some(Ok(_)) => continue,
            Some(Err(error)) => return Err(broken(error, cx)),
        };
        let Ok(answer) = serde_json::from_str::<Value>(&told) else { continue };
        let event = answer.pointer("/body/event/eventtype").and_then(Value::as_str);
        if event == Some("disconnected_event") {
            let displaced = "another program connected as the same robot, which has one connection";
            return Err(SendError::temporary(displaced));
        }
        let id = |frame: &Value| frame.pointer("/headers/req_id").cloned();
        if answer.get("cmd").is_none() && id(&answer) == id(frame) {
            let reply = Reply::new(200, &HeaderMap::new(), Ok(told.as_bytes().to_vec()), cx);
            return KIND.verdict().judge(KIND.about.title, &reply);
        }
    }
}

fn broken(error: tungstenite::Error, cx: &SendContext) -> SendError {
    match error {
        // Somebody in between, or the gateway before it speaks WebSocket.
        tungstenite::Error::Http(answer) => {
            let (status, body) = (answer.status().as_u16(), answer.body().clone());
            Reply::new(status, answer.headers(), Ok(body.unwrap_or_default()), cx).failure()
        }
        error => SendError::temporary(format!(
            "lost the connection to WeCom: {}",
            cx.excerpt(&error.to_string())
        )),
    }
}
