use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<WxPusher>(About {
    name: "wxpusher",
    title: "WxPusher",
    docs: "https://wxpusher.zjiecode.com/docs/",
    transport: Transport::Http {
        accepted: ACCEPTED,
        verdict: VERDICT,
        refusals: &[
            Refusal::permanent(200, r#"{"code":1001,"msg":"应用不存在","data":null,"success":false}"#),
            Refusal::permanent(200, r#"{"code":1000,"msg":"处理成功","data":[{"uid":"UID_x","topicId":null,"code":1001,"status":"用户不存在"}],"success":true}"#),
        ],
    },
    dialect: Dialect::Markdown,
    limits: LIMITS,
    edits: false,
    example: r#"
        token = "AT_TmOdH5xKp0Vw3cRf7s"
        users = ["UID_ada"]
        topics = [1234]
    "#,
})
.with_links()
.with_urls(Urls {
    schemes: &["wxpusher"],
    examples: &[
        "wxpusher://AT_TmOdH5xKp0Vw3cRf7s/UID_ada",
        "wxpusher://AT_TmOdH5xKp0Vw3cRf7s/UID_ada/1234?to=UID_grace",
    ],
    read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "wxpusher",
    needs: &["WXPUSHER_APP_TOKEN"],
    takes: &["WXPUSHER_TOPIC_IDS", "WXPUSHER_UIDS"],
    read: variables,
});

pub(super) const ACCEPTED: &str = r#"{"code":1000,"msg":"处理成功","data":[{"uid":"UID_ada","topicId":null,"messageId":121,"code":1000,"status":"创建发送任务成功"}],"success":true}"#;

pub(super) const VERDICT: Verdict =
    Verdict { reason: &["/msg"], ..Verdict::field("/code", &["1000"]) };

/// A summary of more than 100 characters, the mark of its level included, is refused. 20 requests in 10 seconds are
/// allowed.
pub(super) const LIMITS: Limits =
    Limits { title: 96, body: 40_000, unit: Unit::Characters, per_minute: Some(120) };

/// Messages to WeChat and to an app through [WxPusher](https://wxpusher.zjiecode.com).
///
/// 1. Create an application on the site and set `token` to its token, which starts with `AT_`.
/// 2. Scan the application's code with WeChat, and set `users` to the ids that its page of users shows.
/// 3. To tell all who follow a topic, set `topics` to its number.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WxPusher {
    /// Token of the application.
    token: Secret,
    /// Users to tell, by the ids that start with `UID_`.
    #[serde(default)]
    users: Vec<String>,
    /// Topics whose followers are told, by their numbers.
    #[serde(default)]
    topics: Vec<u64>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let (token, first) = (url.parameter("token"), url.authority());
    let token = match token {
        Some(token) => {
            // The host is a place then.
            url.path.splice(0..0, first);
            token
        }
        None => first.ok_or_else(|| url.wrong("names no token"))?,
    };
    let places = match url.targets() {
        Some(toml::Value::Array(places)) => places,
        place => place.into_iter().collect(),
    };
    let (topics, users) = split(places.iter().filter_map(toml::Value::as_str));
    Ok(url::options([
        ("token", Some(token.into())),
        ("users", Some(users.into())),
        ("topics", Some(topics.into())),
    ]))
}

/// Topics and users among `places`: topics are numbers.
fn split<'a>(places: impl Iterator<Item = &'a str>) -> (Vec<toml::Value>, Vec<toml::Value>) {
    let (mut topics, mut users) = (Vec::new(), Vec::new());
    for place in places.map(str::trim).filter(|place| !place.is_empty()) {
        match place.parse::<i64>() {
            Ok(topic) => topics.push(topic.into()),
            Err(_) => users.push(place.into()),
        }
    }
    (topics, users)
}

fn variables(set: &Set<'_>) -> Result<toml::Table, Wrong> {
    let places = ["WXPUSHER_TOPIC_IDS", "WXPUSHER_UIDS"];
    let places = places.iter().filter_map(|name| set.get(name));
    let (topics, users) = split(places.flat_map(|places| places.split(';')));
    if topics.is_empty() && users.is_empty() {
        let reason = "it is not set and neither is WXPUSHER_TOPIC_IDS; the channel needs one";
        return Err(Wrong { variable: "WXPUSHER_UIDS", reason });
    }
    let mut table = set.table(&[("token", "WXPUSHER_APP_TOKEN")]);
    table.extend(url::options([("users", Some(users.into())), ("topics", Some(topics.into()))]));
    Ok(table)
}

#[async_trait]
impl Channel for WxPusher {
    fn check(&self) -> Result<(), ConfigError> {
        if self.users.is_empty() && self.topics.is_empty() {
            return Err(ConfigError("`users` and `topics` name nobody".to_owned()));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let mut body = fields(message);
        if let Some(fields) = body.as_object_mut() {
            fields.insert("appToken".to_owned(), self.token.expose().into());
            fields.insert("uids".to_owned(), self.users.clone().into());
            fields.insert("topicIds".to_owned(), self.topics.clone().into());
        }
        let service = Address::parse("https://wxpusher.zjiecode.com/api/send/message")
            .expect("a constant address");
        let reply = cx.post(&service).json(&body).answered().await?;
        let receipt = KIND.verdict().judge(KIND.about.title, &reply)?;
        every_place(cx, &reply.json()?)?;
        Ok(receipt)
    }
}

/// What a message says, whoever gets it.
pub(super) fn fields(message: &Message) -> Value {
    present(json!({
        "content": KIND.about.dialect.body(message),
        "summary": message.title.as_ref().map(|title| format!("{}{title}", mark(message.level))),
        "contentType": if message.format == Format::Markdown { 3 } else { 1 },
        "url": message.link,
    }))
}

/// Whether all places were told. Where one was not, another try would tell the others twice, so it is none for good.
pub(super) fn every_place(cx: &SendContext, answer: &Value) -> Result<(), SendError> {
    let places = answer.get("data").and_then(Value::as_array).into_iter().flatten();
    let mut refused = places
        .filter(|place| place.get("code").and_then(Value::as_i64).is_some_and(|code| code != 1000));
    let Some(place) = refused.next() else { return Ok(()) };
    let told = place.get("status").and_then(Value::as_str).unwrap_or("without a reason");
    let others = refused.count();
    let more = if others > 0 { format!(", and {others} more places") } else { String::new() };
    Err(SendError::permanent(format!("WxPusher refused a place: {}{more}", cx.excerpt(told))))
}
