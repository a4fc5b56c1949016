use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_STANDARD};

use crate::{prelude::*, variables};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<FeishuBot>(About {
    name: "feishu_bot",
    title: "Feishu",
    docs: "https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot",
    transport: Transport::Http {
        accepted: r#"{"StatusCode":0,"StatusMessage":"success","code":0,"data":{},"msg":"success"}"#,
        verdict: Verdict {
            reason: &["/msg"],
            // It comes at full hours too, when everybody sends; it does not say how long.
            passing: &[Passing::after(60, "11232")],
            hints: &[("19021", "check `secret`, and the clock of this machine")],
            ..Verdict::field("/code", &["0"])
        },
        refusals: &[
            Refusal::permanent(400, r#"{"code":9499,"msg":"Bad Request","data":{}}"#),
            Refusal::permanent(200, r#"{"code":19021,"msg":"sign match fail or timestamp is not within one hour from current time","data":{}}"#),
            Refusal::permanent(200, r#"{"code":19024,"msg":"Key Words Not Found","data":{}}"#),
            Refusal::after(60, 200, r#"{"code":11232,"msg":"frequency limited psm[lark.oapi.app_platform_runtime]appID[1500]","data":{}}"#),
        ],
    },
    dialect: Dialect::Feishu,
    // 20 KB for the whole request.
    limits: Limits { title: 500, body: 18_000, unit: Unit::Bytes, per_minute: Some(100) },
    edits: false,
    example: r#"
        key = "8f14e45f-ceea-167a-5a36-dedd4bea2543"
        secret = "feishuSecret0123"
    "#,
})
.with_urls(Urls {
    schemes: &["feishu", "lark"],
    native: &["open.feishu.cn/open-apis/bot/v2/hook/", "open.larksuite.com/open-apis/bot/v2/hook/"],
    examples: &[
        "feishu://8f14e45f-ceea-167a-5a36-dedd4bea2543",
        "lark://8f14e45f-ceea-167a-5a36-dedd4bea2543",
        "lark://open.larksuite.com/8f14e45f-ceea-167a-5a36-dedd4bea2543?secret=feishuSecret0123",
        "https://open.larksuite.com/open-apis/bot/v2/hook/8f14e45f-ceea-167a-5a36-dedd4bea2543",
    ],
    read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "feishu",
    needs: &["FSKEY"],
    takes: &["FSSECRET"],
    read: variables,
});

/// Messages to a Feishu or Lark group through a custom bot.
///
/// 1. In the group, open the settings, then Bots, and add a custom bot.
/// 2. Set `key` to the last part of the bot's webhook address.
/// 3. If you choose the signature among its security settings, set `secret` to its key. With keywords instead, make
///    sure that every message has one.
/// 4. For Lark, set `server` to `https://open.larksuite.com`.
///
/// Markdown arrives as a card whose colour shows the level. A bot takes 100 messages a minute.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FeishuBot {
    /// Last part of the bot's webhook address.
    key: Secret,
    /// Key of the signature, if the bot asks for one.
    secret: Option<Secret>,
    /// Address of Feishu or Lark.
    #[serde(default = "feishu")]
    #[schemars(extend("default" = "https://open.feishu.cn"))]
    server: Address,
}

const LARK: &str = "https://open.larksuite.com";

fn feishu() -> Address {
    Address::parse("https://open.feishu.cn").expect("a constant address")
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let token = url.parameter("token");
    // A key alone stands where the host does; in a native address and in shoutrrr's it is the last part.
    let (key, server) = match (token.or_else(|| url.path.pop()), url.scheme.as_str()) {
        (Some(key), "feishu") => (Some(key), None),
        (Some(key), "lark") if url.authority.is_empty() => (Some(key), Some(LARK.to_owned())),
        (Some(key), _) => (Some(key), Some(format!("https://{}", url.authority))),
        (None, "lark") => (url.authority(), Some(LARK.to_owned())),
        (None, _) => (url.authority(), None),
    };
    if url.is_native() {
        url.rest();
    }
    let key = key.ok_or_else(|| url.wrong("names no key"))?;
    Ok(url::options([
        ("key", Some(key.into())),
        ("secret", url.parameter("secret").map(Into::into)),
        ("server", server.map(Into::into)),
    ]))
}

fn variables(set: &Set<'_>) -> Result<toml::Table, Wrong> {
    let mut table = set.table(&[("secret", "FSSECRET")]);
    // Qinglong takes the whole address as well.
    let (hook, key) = variables::server_and_key(set.get("FSKEY").unwrap_or_default());
    let server = hook.map(|hook| hook.trim_end_matches("/open-apis/bot/v2/hook"));
    table.extend(url::options([("key", Some(key.into())), ("server", server.map(Into::into))]));
    Ok(table)
}

#[async_trait]
impl Channel for FeishuBot {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let (timestamp, sign) = match &self.secret {
            Some(secret) => {
                let timestamp = cx.now.as_second().to_string();
                let sign = signature(secret.expose(), &timestamp);
                (Some(timestamp), Some(sign))
            }
            None => (None, None),
        };
        let (kind, place) = match message.format {
            Format::Text => ("text", "content"),
            Format::Markdown => ("interactive", "card"),
        };
        let body = json!({
            "timestamp": timestamp,
            "sign": sign,
            "msg_type": kind,
            place: content(message),
        });
        let hook = self.server.at(&["open-apis", "bot", "v2", "hook", self.key.expose()]);
        cx.post(&hook).json(&present(body)).delivered(&KIND).await
    }
}

/// A text, or a card.
pub(super) fn content(message: &Message) -> Value {
    let dialect = KIND.about.dialect;
    if message.format == Format::Text {
        return json!({ "text": dialect.titled(message) });
    }
    let colour = match message.level {
        Level::Debug => "grey",
        Level::Info | Level::Notice => "blue",
        Level::Warning => "orange",
        Level::Error | Level::Critical | Level::Alert | Level::Emergency => "red",
    };
    // The title of a card is plain text.
    let header = message.title.as_ref().map(|title| {
        let title = format!("{}{title}", mark(message.level));
        json!({ "title": { "tag": "plain_text", "content": title }, "template": colour })
    });
    let body = json!({ "tag": "markdown", "content": dialect.body(message) });
    present(json!({ "header": header, "elements": [body] }))
}

/// The key is what other services sign, and nothing is signed with it.
fn signature(secret: &str, timestamp: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, format!("{timestamp}\n{secret}").as_bytes());
    BASE64_STANDARD.encode(hmac::sign(&key, b""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with Python's `hmac`.
    #[test]
    fn the_signature_is_the_one_feishu_computes_row_112() {
        assert_eq!(
            signature("feishuSecret0123", "1767323045"),
            "hGFdgqR7hVnJeGRjhNgmUHyi6X4ECNsgo4iAoe454vg="
        );
    }
}
