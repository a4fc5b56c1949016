use deskbell_core::attachment::FILE_LIMIT;

use crate::{files::ReadFile, prelude::*};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<SlackBot>(About {
    name: "slack_bot",
    title: "Slack",
    docs: "https://docs.slack.dev/reference/methods/chat.postMessage/",
    transport: Transport::Http {
        accepted: r#"{"ok":true,"channel":"C0123ABCD","ts":"1767323045.000100","upload_url":"https://files.slack.com/upload/v1/ABC123","file_id":"F0123ABCD"}"#,
        verdict: Verdict {
            id: Some("/ts"),
            code: Some("/error"),
            reason: &["/needed", "/response_metadata/messages/0"],
            passing: &[
                Passing::soon("ratelimited"),
                Passing::soon("internal_error"),
                Passing::soon("fatal_error"),
                Passing::soon("service_unavailable"),
                Passing::soon("request_timeout"),
            ],
            hints: &[
                ("invalid_auth", "check `token`"),
                ("not_authed", "check `token`"),
                ("channel_not_found", "invite the bot to the channel, and name a private one by its id"),
                ("not_in_channel", "invite the bot to the channel"),
            ],
            ..Verdict::field("/ok", &["true"])
        },
        refusals: &[
            Refusal::permanent(200, r#"{"ok":false,"error":"channel_not_found"}"#),
            Refusal::permanent(200, r#"{"ok":false,"error":"missing_scope","needed":"chat:write","provided":"commands"}"#),
            Refusal::permanent(200, r#"{"ok":false,"error":"invalid_auth"}"#),
            Refusal::temporary(200, r#"{"ok":false,"error":"fatal_error"}"#),
            Refusal::temporary(429, r#"{"ok":false,"error":"ratelimited"}"#),
        ],
    },
    dialect: Dialect::Slack,
    limits: LIMITS,
    edits: true,
    example: r#"
        token = "xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcBrzbqgy"
        channel = "C0123ABCD"
    "#,
})
// 1 GB; less is asked of whoever reads it.
.with_files(Files::After(FILE_LIMIT))
.with_urls(Urls {
    schemes: &["slack"],
    claims: is_bot,
    examples: &[
        "slack://xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcBrzbqgy/#builds",
        "slack://bell@xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcBrzbqgy/C0123ABCD/%23ops?mode=bot",
    ],
    read,
    ..Urls::NONE
});

/// Slack wants at most 4,000 characters in a message, and refuses longer ones in edits. One message a second may be
/// written to a channel.
pub(super) const LIMITS: Limits =
    Limits { title: 200, body: 3_700, unit: Unit::Characters, per_minute: Some(60) };

/// Messages from a Slack app to channels and people.
///
/// 1. On [api.slack.com/apps](https://api.slack.com/apps) create an app, or open yours.
/// 2. Under "OAuth & Permissions" add the bot scopes `chat:write` and, for attached files, `files:write`, then install
///    the app to your workspace.
/// 3. Set `token` to the "Bot User OAuth Token", which starts with `xoxb-`.
/// 4. In the channel write `/invite @your-app`, and set `channel` to the id at the end of the channel's details.
///
/// The steps of a run edit one message in place.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SlackBot {
    /// Token of the bot.
    token: Secret,
    /// The channel: its id, or `#name` of a public one, or the id of a person. Several get a message each. With a `:`
    /// and the time stamp of a message after it, it is the thread of that message.
    channel: Targets<String>,
    /// Name to write under; needs the scope `chat:write.customize`.
    username: Option<String>,
}

/// Whether an address names a bot; the others of the scheme name webhooks.
pub(super) fn is_bot(url: &ServiceUrl) -> bool {
    let mode = url.look("mode").unwrap_or_default();
    let token = url.look("token").unwrap_or(&url.authority);
    (token.starts_with("xo") && !url.is_native()) || (!mode.is_empty() && "bot".starts_with(mode))
}

pub(super) fn ignore(url: &mut ServiceUrl) {
    url.ignore(&["timestamp", "blocks", "template"]);
    url.parameters(':');
}

/// The channels that an address names, as Apprise writes them.
pub(super) fn channels(url: &mut ServiceUrl) -> Result<Option<toml::Value>, ConfigError> {
    match url.targets() {
        Some(toml::Value::String(one)) => Ok(Some(channel(url, &one)?)),
        Some(toml::Value::Array(all)) => {
            let all = all.iter().filter_map(toml::Value::as_str).map(|one| channel(url, one));
            Ok(Some(toml::Value::Array(all.collect::<Result<_, _>>()?)))
        }
        _ => Ok(None),
    }
}

/// A bare name is a public channel. Apprise takes a bare id for a name too, but names have no capital letters.
fn channel(url: &ServiceUrl, written: &str) -> Result<toml::Value, ConfigError> {
    let is_id = |text: &str| {
        let capitals = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
        text.len() >= 8 && text.split(':').next().is_some_and(|id| id.chars().all(capitals))
    };
    match (written.strip_prefix('+'), written) {
        (Some(id), _) => Ok(id.into()),
        (None, name) if name.starts_with('#') || is_id(name) => Ok(name.into()),
        (None, person) if person.starts_with('@') => Ok(person.into()),
        (None, mail) if mail.contains('@') => Err(url.wrong("names a person by mail, not by id")),
        (None, name) => Ok(format!("#{name}").into()),
    }
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    ignore(url);
    url.ignore(&["mode"]);
    let token = url.parameter("token").or_else(|| url.authority());
    Ok(url::options([
        ("token", token.map(Into::into)),
        ("channel", Some(channels(url)?.unwrap_or_else(|| "#general".into()))),
        ("username", url.user.take().map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for SlackBot {
    fn targets(&self) -> Vec<Mark> {
        self.channel.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let configured = self.channel.at(cx).as_str();
        let (channel, thread) = match configured.split_once(':') {
            Some((channel, thread)) => (channel, Some(thread)),
            None => (configured, None),
        };
        if let Some(file) = cx.files.first() {
            return self.hand_over(file, channel, thread, cx).await;
        }
        let text = KIND.about.dialect.titled(message);
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.as_deref());
        if let Some(id) = earlier {
            let (channel, stamp) = id.rsplit_once(':').unwrap_or((channel, id));
            // Here `parse` is `client` by default, which looks for names to call.
            let edit = json!({ "channel": channel, "ts": stamp, "text": text, "parse": "none", "link_names": false });
            return self.call("chat.update", edit, cx).await;
        }
        let post = json!({
            "channel": channel,
            "text": text,
            "thread_ts": thread,
            "username": self.username,
            "unfurl_links": false,
            "unfurl_media": false,
        });
        self.call("chat.postMessage", post, cx).await
    }
}

impl SlackBot {
    /// Uploads `file` to where Slack says, and shows it in the channel.
    async fn hand_over(
        &self,
        file: &ReadFile,
        channel: &str,
        thread: Option<&str>,
        cx: &SendContext,
    ) -> Result<Receipt, SendError> {
        let verdict = Verdict { id: None, ..*KIND.verdict() };
        let request = self.request("files.getUploadURLExternal", cx);
        let length = file.bytes.len().to_string();
        let reply =
            request.form(&[("filename", &file.name), ("length", &length)]).answered().await?;
        verdict.judge(KIND.about.title, &reply)?;
        let answer = reply.json()?;
        let text = |name| answer.get(name).and_then(Value::as_str);
        let place = text("upload_url").and_then(Address::parse).zip(text("file_id"));
        let Some((place, id)) = place else {
            return Err(SendError::temporary("Slack names no place for the file"));
        };
        cx.post(&place).file(file).accepted().await?;
        // Only an id names a channel here; the answer to the text told it.
        let told = cx.told.as_ref().and_then(|told| told.message_id.as_deref());
        let channel = told.and_then(|told| told.rsplit_once(':')).map_or(channel, |(id, _)| id);
        let share = json!({
            "files": [{ "id": id, "title": file.name }],
            "channel_id": channel,
            "thread_ts": thread,
        });
        let request = self.request("files.completeUploadExternal", cx).json_without_nulls(share);
        verdict.judge(KIND.about.title, &request.answered().await?)
    }

    fn request<'a>(&'a self, method: &str, cx: &'a SendContext) -> Request<'a> {
        let api =
            Address::parse("https://slack.com/api").expect("a constant address").at(&[method]);
        cx.post(&api).bearer(Some(&self.token))
    }

    async fn call(
        &self,
        method: &str,
        body: Value,
        cx: &SendContext,
    ) -> Result<Receipt, SendError> {
        let request = self.request(method, cx).json_without_nulls(body);
        // Without the charset Slack warns in every answer.
        let request = request.header("content-type", "application/json; charset=utf-8");
        let reply = request.answered().await?;
        let receipt = KIND.verdict().judge(KIND.about.title, &reply)?;
        // An edit needs the channel's id, which is not what the channel is called here.
        let answer = reply.json()?;
        let channel = answer.pointer("/channel").and_then(Value::as_str);
        let message_id = receipt.message_id.zip(channel).map(|(stamp, id)| format!("{id}:{stamp}"));
        Ok(Receipt { message_id })
    }
}
