use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Simplepush>(About {
    name: "simplepush",
    title: "Simplepush",
    docs: "https://simplepu.sh",
    transport: Transport::Http {
        // It answers with the task, or with the group of tasks where several people get it.
        accepted: r#"{"taskId":"tsk_01JGJ7"}"#,
        verdict: Verdict {
            success: Success::Object,
            code: Some("/error"),
            reason: &["/msg"],
            ..Verdict::STATUS
        },
        // The form is that of its SDKs, <https://github.com/simplepush/simplepush-python>; the words are not verified.
        refusals: &[
            Refusal::permanent(401, r#"{"error":"unauthorized","msg":"Invalid API token"}"#),
            Refusal::permanent(400, r#"{"error":"bad_request","msg":"Unknown topic"}"#),
        ],
    },
    dialect: Dialect::Markdown,
    limits: Limits { title: 500, body: 10_000, unit: Unit::Characters, per_minute: None },
    edits: false,
    example: r#"
        token = "sp_2nKgwZvExampleToken"
    "#,
})
.with_links()
.with_urls(Urls {
    schemes: &["simplepush", "spush"],
    examples: &[
        "spush://sp_2nKgwZvExampleToken",
        "simplepush://sp_2nKgwZvExampleToken/builds/deploys?priority=high&sptag=ci&links=https://ci.example.com&topic_auth_token=secret-1&shared=yes",
    ],
    read,
    ..Urls::NONE
});

/// Push notifications through [Simplepush](https://simplepu.sh), without its encryption.
///
/// 1. Log in to the app, open its settings and create an API token.
/// 2. Set `token` to it. The keys with six characters of the old service do not do.
/// 3. Without `topic`, your own devices get the message.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Simplepush {
    /// API token.
    token: Secret,
    /// Topic to send to. Several get a message each.
    topic: Option<Targets<String>>,
    /// Token of the topic, if it asks for one.
    topic_token: Option<Secret>,
    /// Priority of every message, from 1 to 5, instead of one that follows the level.
    priority: Option<u8>,
    /// Loudness of messages of priority 5 on iOS, from 0 to 1.
    critical_volume: Option<f64>,
    /// Tag of every message.
    tag: Option<String>,
    /// Address to link to where a message has none.
    link: Option<String>,
    /// Whether those who get the message share its state.
    #[serde(default)]
    shared: bool,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let password = url.user.take().or_else(|| url.password.take());
    if password.is_some() {
        return Err(url.wrong("has a password to encrypt with, which channels do not do"));
    }
    let topics = url.targets();
    let names = |topic: &toml::Value| topic.as_str().is_some_and(|name| name.starts_with('@'));
    let members = match &topics {
        Some(toml::Value::Array(all)) => all.iter().any(names),
        topic => topic.iter().any(names),
    };
    if members || url.yes("broadcast") == Some(true) {
        return Err(url.wrong("is for an organization, whose messages are encrypted"));
    }
    let priority = match url.parameter("priority").map(|name| name.to_ascii_lowercase()) {
        None => None,
        Some(name) => Some(match name.as_str() {
            "1" => 1,
            name if name.starts_with("mi") => 1,
            "2" => 2,
            name if name.starts_with('l') => 2,
            "3" => 3,
            name if name.starts_with(['d', 'n']) => 3,
            "4" => 4,
            name if name.starts_with('h') => 4,
            "5" => 5,
            name if name.starts_with("ma") || name.starts_with(['u', 'c', 'e']) => 5,
            _ => return Err(url.wrong("has a `priority` that is unknown")),
        }),
    };
    let volume = url.parameter("critical_volume").map(|volume| volume.parse::<f64>());
    let volume =
        volume.transpose().map_err(|_| url.wrong("has a `critical_volume` that is no number"))?;
    let mut options =
        url.table(&[("tag", "sptag"), ("link", "links"), ("topic_token", "topic_auth_token")]);
    options.extend(url::options([
        ("token", url.authority().map(Into::into)),
        ("topic", topics),
        ("priority", priority.map(toml::Value::Integer)),
        ("critical_volume", volume.map(Into::into)),
        ("shared", url.yes("shared").map(Into::into)),
    ]));
    Ok(options)
}

#[async_trait]
impl Channel for Simplepush {
    fn targets(&self) -> Vec<Mark> {
        Targets::marks_or_one(self.topic.as_ref())
    }

    fn check(&self) -> Result<(), ConfigError> {
        match self.priority {
            Some(0 | 6..) => {
                Err(ConfigError("`priority` is out of range, expected 1 to 5".to_owned()))
            }
            _ => Ok(()),
        }
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let priority = self.priority.unwrap_or(match message.level {
            Level::Debug => 2,
            Level::Info | Level::Notice => 3,
            Level::Warning => 4,
            Level::Error | Level::Critical | Level::Alert | Level::Emergency => 5,
        });
        let link = message.link.as_ref().or(self.link.as_ref());
        let task = json!({
            "title": message.title,
            "content": KIND.about.dialect.body(message),
            "contentFormat": (message.format == Format::Markdown).then_some("markdown"),
            "priority": priority,
            "criticalVolume": self.critical_volume.filter(|_| priority == 5),
            "topic": self.topic.as_ref().map(|topic| topic.at(cx)),
            "topicAuthToken": self.topic_token.as_ref().map(Secret::expose),
            "tag": self.tag,
            "links": link.map(|link| [link]),
            "shared": self.shared.then_some(true),
        });
        let address =
            Address::parse("https://api.simplepu.sh/v1/tasks/json").expect("a constant address");
        let request = cx.post(&address).header("api-token", self.token.expose());
        request.json(&present(task)).delivered(&KIND).await
    }
}
