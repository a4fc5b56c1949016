use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<OneBot>(About {
    name: "onebot",
    title: "OneBot",
    docs: "https://github.com/botuniverse/onebot-11/blob/master/api/public.md",
    transport: Transport::Http {
        accepted: r#"{"status":"ok","retcode":0,"data":{"message_id":123456}}"#,
        verdict: Verdict {
            id: Some("/data/message_id"),
            reason: &["/wording", "/message", "/msg"],
            // 1 is accepted, and what becomes of it is not told.
            ..Verdict::field("/retcode", &["0", "1"])
        },
        refusals: &[
            Refusal::permanent(
                200,
                r#"{"status":"failed","retcode":100,"data":null,"wording":"消息体无法解析"}"#,
            ),
            Refusal::permanent(
                200,
                r#"{"status":"failed","retcode":1400,"data":null,"message":"bad request"}"#,
            ),
            Refusal::permanent(403, ""),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits { title: 200, body: 4_200, unit: Unit::Characters, per_minute: None },
    edits: false,
    example: r#"
        server = "http://127.0.0.1:5700"
        token = "onebot-token-1"
        users = [10001]
        groups = [20001]
    "#,
})
.with_urls(Urls {
    schemes: &["onebot", "onebots"],
    examples: &[
        "onebot://onebot-token-1@127.0.0.1:5700/10001/%2320001",
        "onebots://bot.example.com/10001?token=onebot-token-1&to=@10002",
    ],
    read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "gobot",
    needs: &["GOBOT_URL", "GOBOT_QQ"],
    takes: &["GOBOT_TOKEN"],
    read: variables,
});

/// Messages from a QQ bot that speaks OneBot 11, such as NapCat, LLOneBot, Lagrange or go-cqhttp.
///
/// 1. In the bot's settings, turn its HTTP server on, and set `server` to its address.
/// 2. If you set an access token there, set `token` to it.
/// 3. Set `users` and `groups` to the QQ numbers to tell.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneBot {
    /// Address of the bot's HTTP server.
    server: Address,
    /// Access token, if the bot asks for one.
    token: Option<Secret>,
    /// QQ numbers of people. Each gets a message.
    #[serde(default)]
    users: Vec<u64>,
    /// Numbers of groups. Each gets a message.
    #[serde(default)]
    groups: Vec<u64>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let token = url.parameter("token").or_else(|| url.user.take());
    let places = match url.targets() {
        Some(toml::Value::Array(places)) => places,
        Some(place) => vec![place],
        None => return Err(url.wrong("names no QQ number")),
    };
    let (mut users, mut groups) = (Vec::new(), Vec::new());
    for place in places.iter().filter_map(toml::Value::as_str) {
        let (known, digits) = match place.strip_prefix('#') {
            Some(digits) => (&mut groups, digits),
            None => (&mut users, place.trim_start_matches('@')),
        };
        let number: Result<i64, _> = digits.parse();
        known.push(number.map_err(|_| url.wrong("has a target that is no QQ number"))?.into());
    }
    Ok(url::options([
        ("server", Some(url.web()?.into())),
        ("token", token.map(Into::into)),
        ("users", Some(toml::Value::Array(users))),
        ("groups", Some(toml::Value::Array(groups))),
    ]))
}

/// The address there names the action already, and the numbers say what they are.
fn variables(set: &Set<'_>) -> Result<toml::Table, Wrong> {
    let mut server = set.get("GOBOT_URL").unwrap_or_default().trim_end_matches('/');
    for action in ["/send_private_msg", "/send_group_msg", "/send_msg"] {
        server = server.strip_suffix(action).unwrap_or(server);
    }
    let mut table = places("GOBOT_QQ", set)?;
    table.extend(set.table(&[("token", "GOBOT_TOKEN")]));
    table.insert("server".to_owned(), server.into());
    Ok(table)
}

/// The people and groups that `variable` names: `user_id=1;group_id=2`.
pub(super) fn places(variable: &'static str, set: &Set<'_>) -> Result<toml::Table, Wrong> {
    let (mut users, mut groups) = (Vec::new(), Vec::new());
    let written = set.get(variable).unwrap_or_default();
    let wrong = Wrong { variable, reason: "expected user_id=… or group_id=… with a number" };
    for place in written.split([';', '&', ',']).map(str::trim).filter(|place| !place.is_empty()) {
        let (known, digits) = match place.split_once('=') {
            Some(("user_id", digits)) => (&mut users, digits),
            Some(("group_id", digits)) => (&mut groups, digits),
            _ => return Err(wrong),
        };
        known.push(digits.trim().parse::<i64>().map_err(|_| wrong)?.into());
    }
    Ok(url::options([
        ("users", Some(toml::Value::Array(users))),
        ("groups", Some(toml::Value::Array(groups))),
    ]))
}

#[async_trait]
impl Channel for OneBot {
    fn targets(&self) -> Vec<Mark> {
        let users = self.users.iter().map(|user| format!("user {user}"));
        let groups = self.groups.iter().map(|group| format!("group {group}"));
        users.chain(groups).map(|place| Mark::of(&place)).collect()
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.users.is_empty() && self.groups.is_empty() {
            return Err(ConfigError("`users` and `groups` name nobody".to_owned()));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        // As segments, because in a plain string `[CQ:at,qq=all]` would call everybody.
        let text = KIND.about.dialect.titled(message);
        let segments = json!([{ "type": "text", "data": { "text": text } }]);
        let group = cx.target.checked_sub(self.users.len());
        let (action, body) = match (self.users.get(cx.target), group) {
            (Some(user), _) => {
                ("send_private_msg", json!({ "user_id": user, "message": segments }))
            }
            (None, group) => {
                let group = group.and_then(|index| self.groups.get(index));
                ("send_group_msg", json!({ "group_id": group, "message": segments }))
            }
        };
        let request = cx.post(&self.server.at(&[action])).bearer(self.token.as_ref());
        request.json(&body).delivered(&KIND).await
    }
}
