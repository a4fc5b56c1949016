use deskbell_core::{attachment::FILE_LIMIT, text};

use crate::{files::ReadFile, prelude::*};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Zulip>(About {
    name: "zulip",
    title: "Zulip",
    docs: "https://zulip.com/api/send-message",
    transport: Transport::Http {
        accepted: r#"{"result":"success","msg":"","id":42,"url":"/user_uploads/2/1f/a-file.txt"}"#,
        verdict: Verdict {
            id: Some("/id"),
            code: Some("/code"),
            reason: &["/msg"],
            passing: &[Passing::soon("RATE_LIMIT_HIT")],
            wait: Wait::Seconds("/retry-after"),
            hints: &[
                ("UNAUTHORIZED", "check `email` and `key`"),
                ("STREAM_DOES_NOT_EXIST", "check `to`"),
            ],
            ..Verdict::field("/result", &["success"])
        },
        refusals: &[
            Refusal::permanent(401, r#"{"result":"error","msg":"Invalid API key","code":"UNAUTHORIZED"}"#),
            Refusal::permanent(400, r#"{"result":"error","msg":"Channel 'nonexistent' does not exist","code":"STREAM_DOES_NOT_EXIST","stream":"nonexistent"}"#),
            Refusal::permanent(200, r#"{"result":"error","msg":"Invalid email","code":"BAD_REQUEST"}"#),
            Refusal::after(28, 429, r#"{"result":"error","msg":"API usage exceeded rate limit","code":"RATE_LIMIT_HIT","retry-after":28}"#),
        ],
    },
    dialect: Dialect::Zulip,
    // A topic takes 60 characters, a message 10,000.
    limits: Limits { title: TOPIC, body: 9_800, unit: Unit::Characters, per_minute: None },
    edits: true,
    example: r#"
        server = "https://example.zulipchat.com"
        email = "bell-bot@example.zulipchat.com"
        key = "ItJ2wOQaCKtTlZNtwJPMvpnSJn2I1iNT"
        to = "builds"
    "#,
})
// 25 MB unless the server says otherwise.
.with_files(Files::After(FILE_LIMIT))
.with_urls(Urls {
    schemes: &["zulip"],
    examples: &[
        "zulip://bell@example/ItJ2wOQaCKtTlZNtwJPMvpnSJn2I1iNT/builds/ada@example.com",
        "zulip://bell-bot@example.zulip.org/ItJ2wOQaCKtTlZNtwJPMvpnSJn2I1iNT?to=%23builds",
        "zulip://bell-bot%40example.com@zulip.example.com/ItJ2wOQaCKtTlZNtwJPMvpnSJn2I1iNT",
    ],
    read,
    ..Urls::NONE
});

/// The longest topic.
const TOPIC: usize = 60;

/// Messages from a Zulip bot to channels and people.
///
/// 1. In Zulip, open the personal settings, then "Bots", and add an "Incoming webhook" bot, or a generic one to write
///    to people as well.
/// 2. Set `server` to the address of your organisation, `email` to the bot's address and `key` to its API key.
/// 3. Set `to` to the name of a channel. The bot must be subscribed to a private one.
///
/// The steps of a run edit one message in place, as long as the organisation allows edits, in a topic of the run's
/// name. The topic of other messages is their title.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Zulip {
    /// Address of the organisation.
    server: Address,
    /// Mail address of the bot.
    email: String,
    /// API key of the bot.
    key: Secret,
    /// Name of a channel, or the mail address of a person. Several get a message each.
    to: Targets<String>,
    /// Topic for all messages to channels.
    topic: Option<String>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let bot = url.user.take().ok_or_else(|| url.wrong("names no bot"))?;
    let (host, port) = url.host()?;
    let host = if host.contains('.') { host.to_owned() } else { format!("{host}.zulipchat.com") };
    // Apprise knows only names of bots; their mail addresses work everywhere.
    let email = match bot.strip_suffix("-bot").unwrap_or(&bot) {
        whole if whole.contains('@') => bot.clone(),
        name => format!("{name}-bot@{host}"),
    };
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let key = match url.parameter("token") {
        Some(key) => key,
        None => url.next("token")?,
    };
    let to = match url.targets() {
        Some(toml::Value::String(one)) => one.trim_start_matches('#').into(),
        Some(toml::Value::Array(all)) => {
            let names = all.iter().filter_map(toml::Value::as_str);
            names.map(|name| name.trim_start_matches('#')).collect::<Vec<_>>().into()
        }
        _ => "general".into(),
    };
    Ok(url::options([
        ("server", Some(format!("https://{host}{port}").into())),
        ("email", Some(email.into())),
        ("key", Some(key.into())),
        ("to", Some(to)),
    ]))
}

#[async_trait]
impl Channel for Zulip {
    fn targets(&self) -> Vec<Mark> {
        self.to.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let to = self.to.at(cx).as_str();
        let topic = self.topic(message);
        let dialect = KIND.about.dialect;
        // A title that is the topic stands above the message already.
        let content = if let Some(file) = cx.files.first() {
            self.upload(file, cx).await?
        } else if !to.contains('@') && message.title.as_deref() == Some(topic.as_str()) {
            format!("{}{}", mark(message.level), dialect.body(message))
        } else {
            dialect.titled(message)
        };
        let messages = self.server.at(&["api", "v1", "messages"]);
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.clone());
        // <https://zulip.com/api/update-message>
        if let Some(id) = earlier {
            let request = cx.patch(&messages.at(&[&id])).basic(&self.email, &self.key);
            request.form(&[("content", &content)]).delivered(&KIND).await?;
            return Ok(Receipt { message_id: Some(id) });
        }
        let people = json!([to]).to_string();
        // The names from before Zulip 7 and 9, which later ones know as well.
        let place = if to.contains('@') {
            [("type", "private"), ("to", &people)]
        } else {
            [("type", "stream"), ("to", to)]
        };
        let form = [&place[..], &[("topic", &topic), ("content", &content)]].concat();
        cx.post(&messages).basic(&self.email, &self.key).form(&form).delivered(&KIND).await
    }
}

impl Zulip {
    /// Uploads `file`, and gives the text that shows it: who sees the text sees the file.
    async fn upload(&self, file: &ReadFile, cx: &SendContext) -> Result<String, SendError> {
        let request = cx.post(&self.server.at(&["api", "v1", "user_uploads"]));
        let request = request.basic(&self.email, &self.key).form_with_file(&[], "filename", file);
        let reply = request.answered().await?;
        Verdict { id: None, ..*KIND.verdict() }.judge(KIND.about.title, &reply)?;
        let answer = reply.json()?;
        // Before Zulip 9 it was called `uri`.
        let place = answer.get("url").or_else(|| answer.get("uri")).and_then(Value::as_str);
        let place =
            place.ok_or_else(|| SendError::temporary("Zulip names no place of the file"))?;
        // Within a link Zulip reads no backslashes.
        let name = Dialect::Zulip.escaped(&file.name).replace(['[', ']'], "_");
        Ok(format!("[{name}]({place})"))
    }

    fn topic(&self, message: &Message) -> String {
        let run = message.run.as_ref().map(|run| run.id.to_string());
        let topic = self.topic.clone().or(run).or_else(|| message.title.clone());
        text::cut(topic.as_deref().unwrap_or("Deskbell"), TOPIC, Unit::Characters)
    }
}
