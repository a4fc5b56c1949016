use std::time::Duration;

use deskbell_core::{delivery::Failure, text};

use crate::{prelude::*, secret};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<WeComApp>(About {
    name: "wecom_app",
    title: "WeCom",
    docs: "https://developer.work.weixin.qq.com/document/path/90236",
    transport: Transport::Http {
        accepted: r#"{"errcode":0,"errmsg":"ok","access_token":"lent-token-1","expires_in":7200,"msgid":"m1"}"#,
        verdict: Verdict {
            id: Some("/msgid"),
            reason: &["/errmsg"],
            passing: &[Passing::soon("-1"), Passing::after(60, "45009"), Passing::after(60, "45033")],
            hints: &[
                ("40001", "check `secret`"),
                ("40013", "check `corp_id`"),
                ("40056", "check `agent`"),
                ("60020", "add the address of this machine to the application's trusted ones"),
                ("301002", "check `agent`"),
            ],
            ..Verdict::field("/errcode", &["0"])
        },
        refusals: &[
            Refusal::permanent(200, r#"{"errcode":40013,"errmsg":"invalid corpid, hint: [1767323045]"}"#),
            Refusal::permanent(200, r#"{"errcode":60020,"errmsg":"not allow to access from your ip, hint: [1767323045], from ip: 192.0.2.1"}"#),
            Refusal::permanent(200, r#"{"errcode":81013,"errmsg":"user & party & tag all invalid","access_token":"lent-token-1","expires_in":7200}"#),
            Refusal::after(60, 200, r#"{"errcode":45009,"errmsg":"api freq out of limit"}"#),
            Refusal::temporary(200, r#"{"errcode":-1,"errmsg":"system error"}"#),
        ],
    },
    dialect: Dialect::WeCom,
    // 2,048 bytes for a text with its title.
    limits: Limits { title: 128, body: 1_800, unit: Unit::Bytes, per_minute: None },
    edits: false,
    example: r#"
        corp_id = "ww1f8de6a7c0"
        secret = "m1TmOdH5xKp0Vw3cRf7s"
        agent = 1000002
        users = ["ada"]
    "#,
})
.with_urls(Urls {
    schemes: &["wechat"],
    examples: &[
        "wechat://ww1f8de6a7c0:m1TmOdH5xKp0Vw3cRf7s@1000002/@all",
        "wechat://ww1f8de6a7c0:m1TmOdH5xKp0Vw3cRf7s@1000002/ada/%232/%2B3",
    ],
    read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "wecom_app",
    needs: &["QYWX_AM"],
    takes: &["QYWX_ORIGIN"],
    read: variables,
});

/// Messages from an application of your own to members of your company in WeCom (企业微信).
///
/// 1. In WeCom's administration, under applications, create one; set `agent` to its `AgentId` and `secret` to its secret.
/// 2. Set `corp_id` to the company's id, on the page about the company.
/// 3. Add the address that this machine has on the internet to the application's trusted addresses.
/// 4. Set `users` to the accounts to tell, `["@all"]` for everybody, or `departments` or `tags` to their numbers.
///
/// Markdown is shown in WeCom only, not to those who read in WeChat.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WeComApp {
    /// Id of the company.
    corp_id: String,
    /// Secret of the application.
    secret: Secret,
    /// Number of the application.
    agent: u64,
    /// Accounts of the members to tell; `@all` is everybody.
    #[serde(default)]
    users: Vec<String>,
    /// Numbers of the departments to tell.
    #[serde(default)]
    departments: Vec<u64>,
    /// Numbers of the tags whose members are told.
    #[serde(default)]
    tags: Vec<u64>,
    /// Id of an uploaded picture; with it, messages are articles under that picture.
    thumb_media_id: Option<String>,
    /// Address of WeCom, or of a proxy in front of it.
    #[serde(default = "wecom")]
    #[schemars(extend("default" = "https://qyapi.weixin.qq.com"))]
    server: Address,
    #[serde(skip)]
    token: LentToken,
}

fn wecom() -> Address {
    Address::parse("https://qyapi.weixin.qq.com").expect("a constant address")
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let agent = url.authority().and_then(|agent| agent.parse::<i64>().ok());
    let agent = agent.ok_or_else(|| url.wrong("names no agent, which is a number"))?;
    let mut users: Vec<toml::Value> = Vec::new();
    let (mut departments, mut tags) = (Vec::new(), Vec::new());
    let places = match url.targets() {
        Some(toml::Value::Array(places)) => places,
        Some(place) => vec![place],
        None => return Err(url.wrong("names nobody; add `/@all` for everybody")),
    };
    for place in places.iter().filter_map(toml::Value::as_str) {
        let number = |digits: &str| digits.parse::<i64>().ok().map(toml::Value::from);
        let wrong = || url.wrong("has a `#` or `+` without a number behind it");
        match place.split_at_checked(1) {
            Some(("#", digits)) => departments.push(number(digits).ok_or_else(wrong)?),
            Some(("+", digits)) => tags.push(number(digits).ok_or_else(wrong)?),
            _ if matches!(place, "@all" | "all") => users.push("@all".into()),
            Some(("@", name)) => users.push(name.into()),
            _ => users.push(place.into()),
        }
    }
    let (corp, secret) = (url.user.take(), url.password.take());
    let corp = corp.ok_or_else(|| url.wrong("names no company before the `@`"))?;
    let secret = secret.ok_or_else(|| url.wrong("names no secret before the `@`"))?;
    Ok(url::options([
        ("corp_id", Some(corp.into())),
        ("secret", Some(secret.into())),
        ("agent", Some(agent.into())),
        ("users", Some(users.into())),
        ("departments", Some(departments.into())),
        ("tags", Some(tags.into())),
    ]))
}

/// `corpid,corpsecret,touser,agentid[,media]`. A media of `0` asks for a card and `1` for a text; both become texts.
fn variables(set: &Set<'_>) -> Result<toml::Table, Wrong> {
    let wrong = |reason| Wrong { variable: "QYWX_AM", reason };
    let mut parts = set.get("QYWX_AM").unwrap_or_default().split(',').map(str::trim);
    let mut next = || parts.next().filter(|part| !part.is_empty());
    let expected = "expected corpid,corpsecret,touser,agentid";
    let (Some(corp), Some(secret)) = (next(), next()) else { return Err(wrong(expected)) };
    let users = parts.next().filter(|users| !users.is_empty()).unwrap_or("@all");
    let users: Vec<_> = users.split('|').map(toml::Value::from).collect();
    let agent = parts.next().and_then(|agent| agent.parse::<i64>().ok());
    let agent = agent.ok_or_else(|| wrong(expected))?;
    let media = parts.next().filter(|media| !matches!(*media, "" | "0" | "1"));
    let mut table = set.table(&[("server", "QYWX_ORIGIN")]);
    table.extend(url::options([
        ("corp_id", Some(corp.into())),
        ("secret", Some(secret.into())),
        ("users", Some(users.into())),
        ("agent", Some(agent.into())),
        ("thumb_media_id", media.map(Into::into)),
    ]));
    Ok(table)
}

/// The longest digest of an article, in characters.
const DIGEST: usize = 120;

/// The codes of a token that is not taken any more: another one has to be asked for.
const WORN: [i64; 3] = [40_001, 40_014, 42_001];

#[async_trait]
impl Channel for WeComApp {
    fn check(&self) -> Result<(), ConfigError> {
        if self.users.is_empty() && self.departments.is_empty() && self.tags.is_empty() {
            let nobody = "`users`, `departments` and `tags` name nobody";
            return Err(ConfigError(nobody.to_owned()));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let token = self.token.get(cx.now, self.lent_token(cx)).await?;
        let address = self.server.at(&["cgi-bin", "message", "send"]);
        let request = cx.post(&address.with("access_token", token.expose()));
        let reply = request.json(&self.content(message)).answered().await?;
        let judged = KIND.verdict().judge(KIND.about.title, &reply).map_err(|error| {
            // It is secret as well, and no option.
            let message = error.message.replace(token.expose(), secret::MASK);
            SendError { message, ..error }
        });
        let answer = reply.json().unwrap_or_default();
        if answer.get("errcode").and_then(Value::as_i64).is_some_and(|code| WORN.contains(&code)) {
            self.token.forget().await;
            let failure = Failure::Temporary { retry_after: None };
            return judged.map_err(|error| SendError { failure, ..error });
        }
        let receipt = judged?;
        let unknown = ["invaliduser", "invalidparty", "invalidtag"]
            .into_iter()
            .find_map(|name| answer.get(name)?.as_str().filter(|places| !places.is_empty()));
        match unknown {
            // The others were told, so it is not to be tried again.
            Some(places) => {
                let places = cx.excerpt(places);
                Err(SendError::permanent(format!("WeCom does not reach {places}; check the names")))
            }
            None => Ok(receipt),
        }
    }
}

impl WeComApp {
    async fn lent_token(&self, cx: &SendContext) -> Result<(Secret, Duration), SendError> {
        let address = self.server.at(&["cgi-bin", "gettoken"]);
        let address =
            address.with("corpid", &self.corp_id).with("corpsecret", self.secret.expose());
        let reply = cx.get(&address).answered().await?;
        let judged = KIND.verdict().judge(KIND.about.title, &reply);
        let answer = reply.json().unwrap_or_default();
        let token = answer.get("access_token").and_then(Value::as_str);
        match token {
            Some(token) => {
                let holds = answer.get("expires_in").and_then(Value::as_u64).unwrap_or(7_200);
                Ok((Secret::from(token.to_owned()), Duration::from_secs(holds)))
            }
            None => Err(judged
                .err()
                .unwrap_or_else(|| SendError::temporary("WeCom answered without an access token"))),
        }
    }

    fn content(&self, message: &Message) -> Value {
        let text = KIND.about.dialect.titled(message);
        let joined = |numbers: &[u64]| {
            let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
            Some(numbers.join("|")).filter(|numbers| !numbers.is_empty())
        };
        let kind = match (&self.thumb_media_id, message.format) {
            (Some(_), _) => "mpnews",
            (None, Format::Markdown) => "markdown",
            (None, Format::Text) => "text",
        };
        let content = match &self.thumb_media_id {
            Some(media) => json!({ "articles": [{
                "title": message.title.as_deref().unwrap_or("Deskbell"),
                "thumb_media_id": media,
                "content": Dialect::Html.body(message),
                "digest": text::cut(&Dialect::Plain.body(message), DIGEST, Unit::Characters),
            }] }),
            None => json!({ "content": text }),
        };
        present(json!({
            "touser": Some(self.users.join("|")).filter(|users| !users.is_empty()),
            "toparty": joined(&self.departments),
            "totag": joined(&self.tags),
            "agentid": self.agent,
            "msgtype": kind,
            kind: content,
        }))
    }
}
