use std::borrow::Cow;

use aws_lc_rs::digest;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;

use crate::{files::ReadFile, prelude::*};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<DiscordBot>(About {
    name: "discord_bot",
    title: "Discord",
    docs: "https://discord.com/developers/docs/resources/message#create-message",
    transport: Transport::Http {
        accepted: r#"{"id":"1456789012345678901"}"#,
        verdict: Verdict {
            hints: &[
                ("0", "check `token`"),
                ("10003", "check `channel_id`"),
                ("50001", "let the bot see the channel"),
                ("50013", "let the bot write to the channel"),
            ],
            ..VERDICT
        },
        refusals: &[
            Refusal::permanent(401, r#"{"message": "401: Unauthorized", "code": 0}"#),
            Refusal::permanent(403, r#"{"message": "Missing Access", "code": 50001}"#),
            Refusal::permanent(404, r#"{"message": "Unknown Channel", "code": 10003}"#),
            Refusal::after(
                1,
                429,
                r#"{"message": "You are being rate limited.", "retry_after": 1.0, "global": true}"#,
            ),
        ],
    },
    dialect: Dialect::Discord,
    limits: LIMITS,
    edits: true,
    example: r#"
        token = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"
        channel_id = "1456789012345678901"
    "#,
})
.with_files(FILES);

/// What Discord's answers mean, to bots and to webhooks.
pub(super) const VERDICT: Verdict = Verdict {
    code: Some("/code"),
    reason: &["/message"],
    wait: Wait::Seconds("/retry_after"),
    ..Verdict::id("/id")
};

/// 2,000 characters for title and body together.
pub(super) const LIMITS: Limits =
    Limits { title: 200, body: 1_780, unit: Unit::Characters, per_minute: None };

/// Messages from a Discord bot to channels.
///
/// 1. On [discord.com/developers](https://discord.com/developers/applications) create an application.
/// 2. Under "Bot" choose "Reset Token" and set `token` to what it shows.
/// 3. Under "`OAuth2`" make an address with the scope `bot` and the permissions "View Channels" and "Send Messages", and
///    open it to add the bot to your server.
/// 4. In Discord's settings switch on "Developer Mode", right-click the channel, choose "Copy Channel ID" and set
///    `channel_id` to it.
///
/// The steps of a run edit one message in place.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DiscordBot {
    /// Token of the bot.
    token: Secret,
    /// Number of the channel or thread. Several get a message each.
    channel_id: Targets<Snowflake>,
}

/// Discord's numbers, as users write them: with quotes or without.
pub(super) struct Snowflake(String);

impl Snowflake {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Snowflake {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "not an id, expected a number")]
        enum Written {
            Number(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(number) => Ok(Self(number.to_string())),
            Written::Text(text) if text.parse::<u64>().is_ok() => Ok(Self(text)),
            Written::Text(_) => Err(D::Error::custom("not an id, expected a number")),
        }
    }
}

impl JsonSchema for Snowflake {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Snowflake".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"] })
    }
}

/// What every server takes, boosted or not.
pub(super) const FILES: Files = Files::After(10 * 1024 * 1024);

/// A new message that is nothing but a file.
pub(super) fn with_file<'a>(request: Request<'a>, file: &ReadFile, fields: &Value) -> Request<'a> {
    // The text rang already.
    let mut payload =
        json!({ "flags": SUPPRESS_NOTIFICATIONS, "allowed_mentions": { "parse": [] } });
    if let (Some(payload), Some(fields)) = (payload.as_object_mut(), fields.as_object()) {
        payload.extend(fields.clone().into_iter().filter(|(_, value)| !value.is_null()));
    }
    request.form_with_file(&[("payload_json", &payload.to_string())], "files[0]", file)
}

/// Shows no preview of links.
const SUPPRESS_EMBEDS: u32 = 1 << 2;

/// Arrives without a sound.
const SUPPRESS_NOTIFICATIONS: u32 = 1 << 12;

/// A new message.
pub(super) fn post(message: &Message) -> Value {
    let update = message.run.as_ref().is_some_and(|run| run.phase == Phase::Update);
    let is_quiet = update || message.level == Level::Debug;
    let flags = if is_quiet { SUPPRESS_EMBEDS | SUPPRESS_NOTIFICATIONS } else { SUPPRESS_EMBEDS };
    with_flags(message, flags)
}

/// What takes the place of a message. Whether it is quiet cannot be edited.
pub(super) fn edit(message: &Message) -> Value {
    with_flags(message, SUPPRESS_EMBEDS)
}

fn with_flags(message: &Message, flags: u32) -> Value {
    json!({
        "content": Dialect::Discord.titled(message),
        // Nobody is called by name, whatever the text says. Edits forget what the message allowed.
        "allowed_mentions": { "parse": [] },
        "flags": flags,
    })
}

#[async_trait]
impl Channel for DiscordBot {
    fn targets(&self) -> Vec<Mark> {
        self.channel_id.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let channel = self.channel_id.at(cx).as_str();
        let messages = Address::parse("https://discord.com/api/v10/channels")
            .expect("a constant address")
            .at(&[channel, "messages"]);
        let login = format!("Bot {}", self.token.expose());
        if let Some(file) = cx.files.first() {
            let id = format!("{} {channel} {}", message.event, cx.part);
            let fields = json!({ "nonce": nonce(&id), "enforce_nonce": true });
            let request = cx.post(&messages).header("authorization", &login);
            return with_file(request, file, &fields).delivered(&KIND).await;
        }
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.as_deref());
        let (request, body) = match earlier {
            Some(id) => (cx.patch(&messages.at(&[id])), edit(message)),
            None => {
                let mut body = post(message);
                if let Some(fields) = body.as_object_mut() {
                    // A repeat within minutes gets the message that is there. Discord compares those of all channels.
                    let id = format!("{} {channel} {}", message.event, cx.part);
                    fields.insert("nonce".to_owned(), nonce(&id).into());
                    fields.insert("enforce_nonce".to_owned(), true.into());
                }
                (cx.post(&messages), body)
            }
        };
        request.header("authorization", &login).json(&body).delivered(&KIND).await
    }
}

/// A short form of `id`: Discord takes at most 25 characters.
fn nonce(id: &str) -> String {
    let hash = digest::digest(&digest::SHA256, id.as_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(hash.as_ref().iter().copied().take(18).collect::<Vec<_>>())
}
