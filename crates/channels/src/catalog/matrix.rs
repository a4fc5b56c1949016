use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use deskbell_core::attachment::FILE_LIMIT;

use super::matrix_webhook;
use crate::{files::ReadFile, prelude::*};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Matrix>(About {
    name: "matrix",
    title: "Matrix",
    docs: "https://spec.matrix.org/latest/client-server-api/#put_matrixclientv3roomsroomidsendeventtypetxnid",
    transport: Transport::Http {
        accepted: r#"{"event_id":"$4711abc","room_id":"!abc:example.org","user_id":"@bell:example.org","access_token":"a-token","content_uri":"mxc://example.org/AQwafuaFswefuhsfAFAgsw"}"#,
        verdict: Verdict {
            code: Some("/errcode"),
            reason: &["/error"],
            wait: Wait::Milliseconds("/retry_after_ms"),
            hints: &[
                ("M_UNKNOWN_TOKEN", "check `token`"),
                ("M_FORBIDDEN", "invite the user to the room"),
            ],
            ..Verdict::id("/event_id")
        },
        refusals: &[
            Refusal::permanent(401, r#"{"errcode":"M_UNKNOWN_TOKEN","error":"Invalid access token passed."}"#),
            Refusal::permanent(404, r#"{"errcode":"M_NOT_FOUND","error":"Unknown room"}"#),
            Refusal::permanent(413, r#"{"errcode":"M_TOO_LARGE","error":"event too large"}"#),
            Refusal::after(2, 429, r#"{"errcode":"M_LIMIT_EXCEEDED","error":"Too Many Requests","retry_after_ms":2000}"#),
        ],
    },
    dialect: Dialect::Html,
    // 65,536 bytes for the event, in which an edit has each text twice, with and without HTML.
    limits: Limits { title: 500, body: 9_000, unit: Unit::Bytes, per_minute: None },
    edits: true,
    example: r#"
        server = "https://matrix.example.org"
        token = "syt_YmVsbA_qXPvRmKZsNoYbLtWcDfE_0aBcDe"
        room = "!OEassajhhkcDTRkHXP:example.org"
    "#,
})
// Servers set it, to 50 MB or more as a rule.
.with_files(Files::After(FILE_LIMIT))
.with_urls(Urls {
    schemes: &["matrix", "matrixs"],
    claims: |url| !matrix_webhook::is_webhook(url),
    examples: &[
        "matrixs://bell:password-1@matrix.example.org/#builds:example.org?discovery=no",
        "matrixs://syt_YmVsbA_qXPvRmKZsNoYbLtWcDfE_0aBcDe@matrix.example.org:8448/!OEassaj:example.org/builds",
        "matrix://bell@localhost/!OEassaj?token=syt_YmVsbA_qXPvRmKZsNoYbLtWcDfE_0aBcDe&msgtype=notice",
    ],
    read,
    ..Urls::NONE
});

/// Messages from a Matrix user to rooms.
///
/// 1. Create a user for Deskbell on your homeserver, log in to it with a client such as Element and invite it to the
///    room, or take your own user.
/// 2. In Element open "Settings", then "Help & About", copy the access token and set `token` to it; or set `user` and
///    `password` instead. Logging out of that client ends the token.
/// 3. Set `room` to the room's id, which its settings show under "Advanced", or to an alias such as
///    `#builds:example.org`.
///
/// Messages are not encrypted: an encrypted room shows them with a warning.
/// The steps of a run edit one message in place.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Matrix {
    /// Address of the homeserver.
    server: Address,
    /// The room: its id or alias. Several get a message each.
    room: Targets<Room>,
    /// Access token of the user.
    token: Option<Secret>,
    /// Name of the user, to log in with `password`.
    user: Option<String>,
    /// Password of the user.
    password: Option<Secret>,
    /// Whether all messages are notices, which arrive without a sound.
    #[serde(default)]
    #[schemars(extend("default" = false))]
    notice: bool,
    /// Whether `server` is only the name of the homeserver, which tells its address under `/.well-known`.
    #[serde(default)]
    #[schemars(extend("default" = false))]
    discovery: bool,
    /// What the homeserver told.
    #[serde(skip)]
    known: Mutex<Known>,
    /// Held while the homeserver is asked who and where: each login ends the token of the one before.
    #[serde(skip)]
    asking: tokio::sync::Mutex<()>,
}

/// A room's id, with a `!`, or alias, with a `#`.
#[derive(JsonSchema)]
struct Room(String);

impl<'de> Deserialize<'de> for Room {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        if name.starts_with(['!', '#']) {
            Ok(Self(name))
        } else {
            Err(serde::de::Error::custom(
                "not a room, expected an id with `!` or an alias with `#`",
            ))
        }
    }
}

#[derive(Default)]
struct Known {
    server: Option<Address>,
    token: Option<Secret>,
    /// The ids of rooms that have only an alias in the configuration.
    rooms: BTreeMap<String, String>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    url.ignore(&["version", "v", "path", "autoverify"]);
    let says_yes = |answer: Option<String>| answer.is_some_and(|answer| url::is_yes(&answer));
    url.ignore(&["mode"]);
    if url.path.is_empty() && url.look("to").is_none() {
        return Err(url.wrong("names no room"));
    }
    if says_yes(url.parameter("e2ee")) {
        return Err(url.wrong("asks for encryption, which is not supported"));
    }
    if says_yes(url.parameter("hsreq")) {
        return Err(url.wrong("has `hsreq`; write the whole ids of rooms instead"));
    }
    // Only names need it; it does no harm to those that have no such page.
    let discovery = url.parameter("discovery").is_none_or(|answer| url::is_yes(&answer));
    let notice = url.parameter("msgtype").is_some_and(|kind| kind == "notice");
    let (mut user, mut password) = (url.user.take(), url.password.take());
    let mut token = url.parameter("token");
    if token.is_some() || password.is_none() {
        token = token.or(user);
        (user, password) = (None, None);
    }
    let server = url.web()?;
    let rooms = match url.targets() {
        Some(toml::Value::String(one)) => vec![one.into()],
        Some(toml::Value::Array(all)) => all,
        _ => Vec::new(),
    };
    let rooms =
        rooms.iter().filter_map(toml::Value::as_str).map(|room| match room.chars().next() {
            Some('@') => Err(url.wrong("names a person; only rooms are supported")),
            Some('!' | '#') => Ok(room.into()),
            _ => Ok(format!("#{room}").into()),
        });
    let rooms = rooms.collect::<Result<Vec<toml::Value>, _>>()?;
    Ok(url::options([
        ("server", Some(server.into())),
        ("room", Some(rooms.into())),
        ("token", token.map(Into::into)),
        ("user", user.map(Into::into)),
        ("password", password.map(Into::into)),
        ("notice", notice.then(|| true.into())),
        ("discovery", discovery.then(|| true.into())),
    ]))
}

#[async_trait]
impl Channel for Matrix {
    fn targets(&self) -> Vec<Mark> {
        self.room.marks()
    }

    fn check(&self) -> Result<(), ConfigError> {
        let has_password = self.user.is_some() && self.password.is_some();
        if self.token.is_some() == has_password || self.user.is_some() != self.password.is_some() {
            let needs = "either `token` or `user` and `password` must be set";
            return Err(ConfigError(needs.to_owned()));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let room = &self.room.at(cx).0;
        let (session, id) = {
            let _alone = self.asking.lock().await;
            let session = self.session(cx).await?;
            let id = self.room_id(room, &session, cx).await?;
            (session, id)
        };
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.as_deref());
        let content = match cx.files.first() {
            Some(file) => session.upload(file, cx).await?,
            None => self.content(message, earlier),
        };
        let mut reply = session.send(&id, &content, cx).await?;
        let answer = reply.json().unwrap_or_default();
        let error = answer.pointer("/errcode").and_then(Value::as_str);
        match error {
            // Invited, and not yet there.
            Some("M_FORBIDDEN") if id == *room => {
                session.join(room, cx).await?;
                reply = session.send(&id, &content, cx).await?;
            }
            Some("M_UNKNOWN_TOKEN") if self.forget(&session.token) => {
                return Err(SendError::temporary("Matrix ended the session; it is opened anew"));
            }
            _ => {}
        }
        let receipt = KIND.verdict().judge(KIND.about.title, &reply)?;
        // Every edit names the message that was there first.
        Ok(earlier.map_or(receipt, |id| Receipt { message_id: Some(id.to_owned()) }))
    }
}

/// A homeserver to which the user is logged in.
struct Session {
    /// The address of its interface.
    client: Address,
    /// The address of its files.
    media: Address,
    token: Secret,
}

impl Session {
    async fn send(
        &self,
        room: &str,
        content: &Value,
        cx: &SendContext,
    ) -> Result<Reply, SendError> {
        // The homeserver knows a repeat by the last part, and gives the event that is there. An edit that was refused
        // is followed by a message that is not one.
        let id = if cx.edit.is_some() { format!("{}.edit", cx.id()) } else { cx.id() };
        let address = self.client.at(&["rooms", room, "send", "m.room.message", &id]);
        cx.put(&address).bearer(Some(&self.token)).json(content).answered().await
    }

    /// Uploads `file`, and gives the message that shows it.
    async fn upload(&self, file: &ReadFile, cx: &SendContext) -> Result<Value, SendError> {
        let address = self.media.at(&["upload"]).with("filename", &file.name);
        let request = cx.post(&address).bearer(Some(&self.token)).file(file);
        let place = found("/content_uri", &request.answered().await?)?;
        let kind = match file.media_type.split('/').next() {
            Some("image") => "m.image",
            Some("video") => "m.video",
            Some("audio") => "m.audio",
            _ => "m.file",
        };
        Ok(json!({
            "msgtype": kind,
            "body": file.name,
            "filename": file.name,
            "url": place,
            "info": { "mimetype": file.media_type, "size": file.bytes.len() },
            "m.mentions": {},
        }))
    }

    /// Joins a room and gives its id.
    async fn join(&self, room: &str, cx: &SendContext) -> Result<String, SendError> {
        let request = cx.post(&self.client.at(&["join", room])).bearer(Some(&self.token));
        found("/room_id", &request.json(&json!({})).answered().await?)
    }
}

/// What stands at `pointer` in the answer to a request that is no message.
fn found(pointer: &'static str, reply: &Reply) -> Result<String, SendError> {
    let verdict =
        Verdict { success: Success::Present(pointer), id: Some(pointer), ..*KIND.verdict() };
    Ok(verdict.judge(KIND.about.title, reply)?.message_id.unwrap_or_default())
}

impl Matrix {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a token that has ended, unless it is the user's own. Another attempt may have a new one already.
    fn forget(&self, token: &Secret) -> bool {
        let known = &mut self.known().token;
        if known.as_ref().is_some_and(|known| known.expose() == token.expose()) {
            *known = None;
        }
        self.token.is_none()
    }

    async fn session(&self, cx: &SendContext) -> Result<Session, SendError> {
        let server = self.server(cx).await?;
        let client = server.at(&["_matrix", "client", "v3"]);
        let media = server.at(&["_matrix", "media", "v3"]);
        let known = self.token.clone().or_else(|| self.known().token.clone());
        if let Some(token) = known {
            return Ok(Session { client, media, token });
        }
        let login = json!({
            "type": "m.login.password",
            "identifier": { "type": "m.id.user", "user": self.user },
            "password": self.password.as_ref().map(Secret::expose),
            // Always the same, or every start would leave another device behind.
            "device_id": "DESKBELL",
            "initial_device_display_name": "Deskbell",
        });
        let reply = cx.post(&client.at(&["login"])).json(&login).answered().await?;
        let token = Secret::from(found("/access_token", &reply)?);
        self.known().token = Some(token.clone());
        Ok(Session { client, media, token })
    }

    async fn server(&self, cx: &SendContext) -> Result<Address, SendError> {
        if !self.discovery {
            return Ok(self.server.clone());
        }
        let known = self.known().server.clone();
        if let Some(server) = known {
            return Ok(server);
        }
        let page = self.server.at(&[".well-known", "matrix", "client"]);
        let answer = cx.get(&page).answered().await?.json().unwrap_or_default();
        let told = answer.get("m.homeserver").and_then(|server| server.get("base_url"));
        let told = told.and_then(Value::as_str).and_then(Address::parse);
        let server = told.clone().unwrap_or_else(|| self.server.clone());
        self.known().server = told;
        Ok(server)
    }

    async fn room_id(
        &self,
        room: &str,
        session: &Session,
        cx: &SendContext,
    ) -> Result<String, SendError> {
        let known = self.known().rooms.get(room).cloned();
        if let (Some(id), _) | (None, Some(id)) =
            (known, room.starts_with('!').then(|| room.to_owned()))
        {
            return Ok(id);
        }
        let alias = if room.contains(':') {
            room.to_owned()
        } else {
            let whoami = cx.get(&session.client.at(&["account", "whoami"]));
            let user = found("/user_id", &whoami.bearer(Some(&session.token)).answered().await?)?;
            format!("{room}:{}", user.split_once(':').map_or("", |(_, server)| server))
        };
        let id = session.join(&alias, cx).await?;
        self.known().rooms.insert(room.to_owned(), id.clone());
        Ok(id)
    }

    fn content(&self, message: &Message, earlier: Option<&str>) -> Value {
        let is_update = message.run.as_ref().is_some_and(|run| run.phase == Phase::Update);
        let is_quiet = self.notice || is_update || message.level == Level::Debug;
        let kind = if is_quiet { "m.notice" } else { "m.text" };
        let (plain, html) = (Dialect::Plain.titled(message), KIND.about.dialect.titled(message));
        let told = |before: &str| {
            json!({
                "msgtype": kind,
                "body": format!("{before}{plain}"),
                "format": "org.matrix.custom.html",
                "formatted_body": format!("{before}{html}"),
                // Nobody is called by name, whatever the text says: only this field does that.
                "m.mentions": {},
            })
        };
        let Some(id) = earlier else { return told("") };
        let mut edit = told("* ");
        if let Some(fields) = edit.as_object_mut() {
            fields.insert("m.new_content".to_owned(), told(""));
            let relation = json!({ "rel_type": "m.replace", "event_id": id });
            fields.insert("m.relates_to".to_owned(), relation);
        }
        edit
    }
}
