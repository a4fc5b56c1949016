use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Ntfy>(About {
    name: "ntfy",
    docs: "https://docs.ntfy.sh/publish/#publish-as-json",
    transport: Transport::Http { accepted: r#"{"id":"x1"}"#, refused: Some(r#"{"code":40301}"#) },
    dialect: Dialect::Markdown,
    // The server turns longer messages into attached files.
    limits: Limits { title: 250, body: 4_096, unit: Unit::Bytes, per_minute: None },
    edits: true,
    example: r#"
        topic = "builds-7f3a"
        token = "tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2"
    "#,
})
.with_urls(Urls {
    schemes: &["ntfy", "ntfys"],
    examples: &["ntfy://builds-7f3a", "ntfys://user:password-1@push.example.com/builds"],
    read,
});

/// Push notifications through [ntfy](https://ntfy.sh), public or self-hosted.
///
/// 1. Choose a topic name nobody would guess: whoever knows it can read it.
/// 2. Subscribe to it in the ntfy app.
/// 3. For a protected topic, create an access token and set `token`, or set `user` and `password`.
///
/// The steps of a run replace each other in the app; servers older than 2.16 show each of them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Ntfy {
    /// Topic to publish to.
    topic: String,
    /// Address of the server.
    #[serde(default = "public_server")]
    #[schemars(extend("default" = "https://ntfy.sh"))]
    server: Address,
    /// Access token, for protected topics.
    token: Option<Secret>,
    /// User, for protected topics.
    user: Option<String>,
    /// Password of the user.
    password: Option<Secret>,
}

fn public_server() -> Address {
    Address::parse("https://ntfy.sh").expect("a constant address")
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    url.ignore(&["auth", "mode"]);
    let (topic, server) = match (url.parameter("to"), url.path.is_empty()) {
        (None, true) => (url.authority.clone(), None),
        (None, false) => (url.only("topic")?, Some(url.web()?)),
        (Some(topic), _) => (topic, Some(url.web()?)),
    };
    let (mut user, mut token) = (url.user.take(), url.parameter("token"));
    if url.password.is_none() {
        token = token.or(user.take());
    }
    Ok(url::options([
        ("topic", Some(topic.into())),
        ("server", server.map(Into::into)),
        ("token", token.map(Into::into)),
        ("user", user.map(Into::into)),
        ("password", url.password.take().map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for Ntfy {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let (priority, tag) = match message.level {
            Level::Debug => (2, None),
            Level::Info | Level::Notice => (3, None),
            Level::Warning => (4, Some("warning")),
            Level::Error => (4, Some("x")),
            Level::Critical | Level::Alert | Level::Emergency => (5, Some("rotating_light")),
        };
        // A message with the id of an earlier one takes its place, so a repeat is not seen twice.
        let own_id = format!("{}-{}", message.event, cx.part);
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.clone());
        let publication = json!({
            "topic": self.topic,
            "title": message.title,
            "message": KIND.about.dialect.body(message),
            "markdown": message.format == Format::Markdown,
            "priority": priority,
            "tags": tag.into_iter().chain([message.context.as_str()]).collect::<Vec<_>>(),
            "click": message.link,
            "sequence_id": earlier.unwrap_or(own_id),
        });
        let mut request = cx.post(&self.server).bearer(self.token.as_ref());
        if let (Some(user), Some(password)) = (&self.user, &self.password) {
            request = request.basic(user, password);
        }
        let reply = request.json(&publication).accepted().await?;
        reply.receipt("/id")?;
        // Servers that cannot replace a message do not tell this id.
        Ok(receipt(&reply.json()?, "/sequence_id"))
    }
}
