use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use deskbell_core::text;

use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<DingTalkBot>(About {
    name: "dingtalk_bot",
    title: "DingTalk",
    docs: "https://open.dingtalk.com/document/robots/custom-robot-access",
    transport: Transport::Http {
        accepted: r#"{"errcode":0,"errmsg":"ok"}"#,
        verdict: Verdict {
            reason: &["/errmsg"],
            // It does not say how long; facing it again too early prolongs the pause.
            passing: &[Passing::soon("-1"), Passing::after(60, "130101")],
            hints: &[("310000", "check `secret`, or the robot's keywords and addresses")],
            ..Verdict::field("/errcode", &["0"])
        },
        refusals: &[
            Refusal::permanent(200, r#"{"errcode":300001,"errmsg":"token is not exist"}"#),
            Refusal::permanent(200, r#"{"errcode":310000,"errmsg":"sign not match"}"#),
            Refusal::after(
                60,
                200,
                r#"{"errcode":130101,"errmsg":"send too fast, exceed 20 times per minute"}"#,
            ),
            Refusal::temporary(200, r#"{"errcode":-1,"errmsg":"system busy"}"#),
        ],
    },
    dialect: Dialect::DingTalk,
    // 20,000 bytes for the whole request. Who sends more than 20 a minute is shut out for ten minutes.
    limits: Limits { title: 1_000, body: 18_000, unit: Unit::Bytes, per_minute: Some(20) },
    edits: false,
    example: r#"
        token = "8f14e45fceea167a5a36dedd4bea2543"
        secret = "SECabcdef0123456789"
    "#,
})
.with_urls(Urls {
    schemes: &["dingtalk"],
    examples: &[
        "dingtalk://8f14e45fceea167a5a36dedd4bea2543",
        "dingtalk://SECabcdef0123@8f14e45fceea167a",
        "dingtalk://8f14e45fceea167a5a36dedd4bea2543/13800138000/13900139000",
    ],
    read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "dingtalk",
    needs: &["DD_BOT_TOKEN"],
    takes: &["DD_BOT_SECRET"],
    read: |set| Ok(set.table(&[("token", "DD_BOT_TOKEN"), ("secret", "DD_BOT_SECRET")])),
});

/// Messages to a DingTalk group through a custom robot.
///
/// 1. In the group, open the settings, then Bots, and add a custom robot.
/// 2. Under its security settings choose the signature, and set `secret` to the text that starts with `SEC`. With
///    keywords instead, make sure that every message has one.
/// 3. Set `token` to what follows `access_token=` in the robot's address.
///
/// A robot takes 20 messages a minute.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DingTalkBot {
    /// Token of the robot.
    token: Secret,
    /// Key of the signature, if the robot asks for one.
    secret: Option<Secret>,
    /// Mobile numbers of members whom every message calls.
    #[serde(default)]
    mobiles: Vec<String>,
    /// Proxy to go through.
    proxy: Option<Proxy>,
}

/// The longest title of a Markdown message that is made of its first line, in characters.
const TITLE: usize = 60;

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let token = url.parameter("token");
    let secret = url.parameter("secret").or_else(|| url.user.take());
    let authority = url.authority();
    if let (Some(_), Some(mobile)) = (&token, &authority) {
        url.path.insert(0, mobile.clone());
    }
    let mobiles = url.targets().map(|mobiles| match mobiles {
        toml::Value::Array(all) => all,
        one => vec![one],
    });
    Ok(url::options([
        ("token", token.or(authority).map(Into::into)),
        ("secret", secret.map(Into::into)),
        ("mobiles", mobiles.map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for DingTalkBot {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        cx.post(&self.address(cx.now.as_millisecond()))
            .via(self.proxy.as_ref())
            .json(&content(message, &self.mobiles))
            .delivered(&KIND)
            .await
    }
}

impl DingTalkBot {
    fn address(&self, now_ms: i64) -> Address {
        let robot = Address::parse("https://oapi.dingtalk.com/robot/send")
            .expect("a constant address")
            .with("access_token", self.token.expose());
        match &self.secret {
            Some(secret) => {
                let timestamp = now_ms.to_string();
                let sign = signature(secret.expose(), &timestamp);
                robot.with("timestamp", &timestamp).with("sign", &sign)
            }
            None => robot,
        }
    }
}

fn signature(secret: &str, timestamp: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    BASE64_STANDARD.encode(hmac::sign(&key, format!("{timestamp}\n{secret}").as_bytes()))
}

fn content(message: &Message, mobiles: &[String]) -> Value {
    let text = KIND.about.dialect.titled(message);
    // Nobody else is called by name, whatever the text says: only this field does that.
    let at = json!({ "atMobiles": mobiles, "atUserIds": [], "isAtAll": false });
    if message.format == Format::Text {
        return json!({ "msgtype": "text", "text": { "content": text }, "at": at });
    }
    let first_line = || {
        let plain = Dialect::Plain.body(message);
        text::cut(plain.lines().next().unwrap_or("Deskbell"), TITLE, Unit::Characters)
    };
    let title = message.title.clone().unwrap_or_else(first_line);
    json!({ "msgtype": "markdown", "markdown": { "title": title, "text": text }, "at": at })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with Python's `hmac`.
    #[test]
    fn the_signature_is_the_one_dingtalk_computes_row_112() {
        let (secret, now_ms) = ("SECabcdef0123456789", 1_767_323_045_000_i64);
        assert_eq!(
            signature(secret, &now_ms.to_string()),
            "LAKJs2BAVIP9mHrah0uFq5ePVbvTz7zuivNUFnIatA4="
        );
        let robot = DingTalkBot {
            token: Secret::from("t".to_owned()),
            secret: Some(Secret::from(secret.to_owned())),
            mobiles: Vec::new(),
            proxy: None,
        };
        assert_eq!(
            robot.address(now_ms).url().query(),
            Some(
                "access_token=t&timestamp=1767323045000&sign=LAKJs2BAVIP9mHrah0uFq5ePVbvTz7zuivNUFnIatA4%3D"
            )
        );
    }
}
