use std::collections::BTreeMap;

use aws_lc_rs::{digest, hmac};
use http::Method;

use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<NextcloudTalk>(About {
    name: "nextcloud_talk",
    title: "Nextcloud Talk",
    docs: "https://nextcloud-talk.readthedocs.io/en/latest/chat/#sending-a-new-chat-message",
    transport: Transport::Http {
        accepted: r#"{"ocs":{"meta":{"status":"ok","statuscode":201,"message":"OK"},"data":{"id":71}}}"#,
        verdict: Verdict {
            id: Some("/ocs/data/id"),
            code: Some("/ocs/data/error"),
            reason: &["/ocs/meta/message"],
            ..Verdict::field("/ocs/meta/status", &["ok"])
        },
        refusals: &[
            Refusal::permanent(401, r#"{"ocs":{"meta":{"status":"failure","statuscode":997,"message":"Current user is not logged in"},"data":[]}}"#),
            Refusal::permanent(404, r#"{"ocs":{"meta":{"status":"failure","statuscode":404,"message":""},"data":{"error":"actor"}}}"#),
            Refusal::temporary(429, ""),
        ],
    },
    dialect: Dialect::ChatMarkdown,
    limits: Limits { title: 400, body: 31_000, unit: Unit::Characters, per_minute: None },
    edits: true,
    example: r#"
        server = "https://cloud.example.com"
        room = "d8qzi4h2"
        user = "bell"
        password = "Xk3dS-a8Lq2-example"
    "#,
})
.with_urls(Urls {
    schemes: &["nctalk", "nctalks"],
    examples: &[
        "nctalks://bell:Xk3dS-a8Lq2@cloud.example.com/d8qzi4h2/room2?silent=yes&url_prefix=/nc&+X-Team=shop",
        "nctalk://cloud.example.com:8080/d8qzi4h2?secret=0123456789012345678901234567890123456789",
    ],
    read,
    ..Urls::NONE
});

/// Messages to conversations of [Nextcloud Talk](https://nextcloud.com/talk/), from a user or a bot.
///
/// 1. Set `room` to the last part of the conversation's address.
/// 2. Create an app password in the user's settings, under Security, and set `user` and `password`.
/// 3. Or have the administrator run `occ talk:bot:install` with a secret of 40 characters or more, allow the bot in
///    the conversation's settings, and set `secret`.
///
/// A user edits one message for the steps of a run; a bot sends each of them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NextcloudTalk {
    /// Address of the server.
    server: Address,
    /// Token of the conversation. Several get a message each.
    room: Targets<String>,
    /// User who sends.
    user: Option<String>,
    /// App password of the user.
    password: Option<Secret>,
    /// Secret of the bot that sends.
    secret: Option<Secret>,
    /// Whether messages arrive without a sound whatever their level.
    #[serde(default)]
    silent: bool,
    /// More headers, by name.
    #[serde(default)]
    headers: BTreeMap<String, Secret>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let prefix = url.parameter("url_prefix").unwrap_or_default();
    let server = format!("{}/{}", url.web()?, prefix.trim_matches('/'));
    let rooms = url.targets().ok_or_else(|| url.wrong("names no conversation"))?;
    let headers: toml::Table =
        url.parameters('+').into_iter().map(|(name, value)| (name, value.into())).collect();
    Ok(url::options([
        ("server", Some(server.trim_end_matches('/').into())),
        ("room", Some(rooms)),
        ("user", url.user.take().map(Into::into)),
        ("password", url.password.take().map(Into::into)),
        ("secret", url.parameter("secret").map(Into::into)),
        ("silent", url.yes("silent").map(Into::into)),
        ("headers", Some(headers).filter(|all| !all.is_empty()).map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for NextcloudTalk {
    fn targets(&self) -> Vec<Mark> {
        self.room.marks()
    }

    fn check(&self) -> Result<(), ConfigError> {
        match (&self.user, &self.password, &self.secret) {
            (Some(_), Some(_), None) | (None, None, Some(_)) => Ok(()),
            _ => Err(ConfigError("`user` and `password` are set, or `secret` alone".to_owned())),
        }
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        // A name with spaces is called in quotes.
        let text = KIND.about.dialect.titled(message).replace("@\"", "@\u{2060}\"");
        let update = message.run.as_ref().is_some_and(|run| run.phase == Phase::Update);
        let silent = self.silent || update || message.level == Level::Debug;
        let api = self.server.at(&["ocs", "v2.php", "apps", "spreed", "api", "v1"]);
        let room = self.room.at(cx);
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.as_deref());
        let mut request = match (&self.secret, earlier) {
            (Some(_), _) => cx.post(&api.at(&["bot", room, "message"])),
            (None, Some(id)) => cx.request(Method::PUT, &api.at(&["chat", room, id])),
            (None, None) => cx.post(&api.at(&["chat", room])),
        };
        request = request.header("ocs-apirequest", "true").header("accept", "application/json");
        if let (Some(user), Some(password)) = (&self.user, &self.password) {
            request = request.basic(user, password);
        }
        if let Some(secret) = &self.secret {
            let random = salt(&cx.id());
            let signature = signature(secret.expose(), &random, &text);
            request = request.header("x-nextcloud-talk-bot-random", &random);
            request = request.header("x-nextcloud-talk-bot-signature", &signature);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value.expose());
        }
        request.json(&json!({ "message": text, "silent": silent })).delivered(&KIND).await
    }
}

/// What is signed beside the text; it has to differ between messages, and nobody needs to be unable to guess it.
fn salt(id: &str) -> String {
    hex(digest::digest(&digest::SHA256, id.as_bytes()).as_ref())
}

fn signature(secret: &str, random: &str, text: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    hex(hmac::sign(&key, format!("{random}{text}").as_bytes()).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with Python's `hmac`.
    #[test]
    fn the_signature_is_the_one_talk_computes_row_112() {
        let secret = "0123456789012345678901234567890123456789";
        assert_eq!(
            signature(secret, "salt", "hello"),
            "1bd0ee354acc61d28654ee948862a51213c57fe988d3d1637fed46cc0204b8a5"
        );
    }
}
