use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<ServerChan>(About {
    name: "serverchan",
    title: "ServerChan",
    docs: "https://github.com/easychen/serverchan-sdk",
    transport: Transport::Http {
        accepted: r#"{"code":0,"message":"","data":{"pushid":"24410","readkey":"SCTpX6lLk","error":"SUCCESS","errno":0}}"#,
        verdict: Verdict {
            reason: &["/message", "/data/error"],
            ..Verdict::field("/code", &["0"])
        },
        refusals: &[
            Refusal::permanent(200, r#"{"code":40001,"message":"[AUTH]错误的Key","info":"错误的Key","args":[null]}"#),
            Refusal::permanent(400, r#"{"message":"[AUTH]用户不存在或者权限不足","code":40001,"info":"用户不存在或者权限不足","args":[null],"scode":461}"#),
        ],
    },
    dialect: Dialect::PageMarkdown,
    // A title has 32 characters with the mark of its level. The limits are not documented; what is longer is cut there.
    limits: Limits { title: 28, body: 30_000, unit: Unit::Characters, per_minute: None },
    edits: false,
    example: r#"
        key = "SCT24410TmOdH5xKp0Vw3cRf7s"
    "#,
})
.with_urls(Urls {
    schemes: &["schan"],
    examples: &["schan://SCT24410TmOdH5xKp0Vw3cRf7s", "schan://sctp1024tmOdH5xKp0Vw3cRf7s"],
    read: |url| {
        let key = url.authority().ok_or_else(|| url.wrong("names no key"))?;
        Ok(url::options([("key", Some(key.into()))]))
    },
    ..Urls::NONE
})
.with_variables(Variables {
    name: "serverchan",
    needs: &["PUSH_KEY"],
    takes: &[],
    read: |set| Ok(set.table(&[("key", "PUSH_KEY")])),
});

/// Messages to WeChat or to an app through ServerChan (Server酱), Turbo or 3.
///
/// 1. Log in to [ServerChan Turbo](https://sct.ftqq.com) or [ServerChan 3](https://sc3.ft07.com).
/// 2. Set `key` to the key it shows; Turbo's starts with `SCT`, that of 3 with `sctp`.
///
/// Free accounts may send only a few messages a day.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ServerChan {
    /// The key.
    key: Secret,
    /// Ways that messages take, by their numbers in Turbo, with `|` between them.
    channel: Option<String>,
    /// Tags of messages in ServerChan 3, with `|` between them.
    tags: Option<String>,
    /// Readers to tell as well, by their ids in Turbo, with commas between them.
    openid: Option<String>,
}

#[async_trait]
impl Channel for ServerChan {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let body = KIND.about.dialect.body(message);
        let level = mark(message.level);
        // A message without a title is refused.
        let title = message.title.as_deref().unwrap_or("Deskbell");
        let mut fields = vec![("title", format!("{level}{title}")), ("desp", body)];
        let options = [("channel", &self.channel), ("tags", &self.tags), ("openid", &self.openid)];
        fields.extend(options.into_iter().filter_map(|(name, set)| Some((name, set.clone()?))));
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        cx.post(&address(self.key.expose())).form(&fields).delivered(&KIND).await
    }
}

/// Where messages with `key` go: the keys of ServerChan 3 name a host of their own, `sctp<number>t…`.
fn address(key: &str) -> Address {
    let send = format!("{key}.send");
    let lower = key.to_ascii_lowercase();
    let number = lower.strip_prefix("sctp").and_then(|rest| rest.split_once('t'));
    let number = number.map(|(number, _)| number).filter(|number| {
        !number.is_empty() && number.chars().all(|character| character.is_ascii_digit())
    });
    let own = number.and_then(|number| Address::parse(&format!("https://{number}.push.ft07.com")));
    match own {
        Some(host) => host.at(&["send", &send]),
        None => Address::parse("https://sctapi.ftqq.com").expect("a constant address").at(&[&send]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_the_version_that_they_are_of() {
        #[track_caller]
        fn check(key: &str, expected: &str) {
            assert_eq!(address(key).url().as_str(), expected);
        }
        check("SCT1x", "https://sctapi.ftqq.com/SCT1x.send");
        check("sctp1024tAbc", "https://1024.push.ft07.com/send/sctp1024tAbc.send");
        check("SCTP1024TAbc", "https://1024.push.ft07.com/send/SCTP1024TAbc.send");
        check("sctp.evil.example/t", "https://sctapi.ftqq.com/sctp.evil.example%2Ft.send");
        check("sctpt", "https://sctapi.ftqq.com/sctpt.send");
    }
}
