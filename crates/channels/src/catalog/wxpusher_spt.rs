use super::wxpusher;
use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<WxPusherSpt>(About {
    name: "wxpusher_spt",
    title: "WxPusher",
    docs: "https://wxpusher.zjiecode.com/docs/",
    transport: Transport::Http {
        accepted: wxpusher::ACCEPTED,
        verdict: wxpusher::VERDICT,
        refusals: &[Refusal::permanent(
            200,
            r#"{"code":1001,"msg":"SPT不存在","data":null,"success":false}"#,
        )],
    },
    dialect: Dialect::Markdown,
    limits: wxpusher::LIMITS,
    edits: false,
    example: r#"
        token = "SPT_TmOdH5xKp0Vw3cRf7s"
    "#,
})
.with_links()
.with_variables(Variables {
    name: "wxpusher_spt",
    needs: &["WXPUSHER_SPT_LIST"],
    takes: &[],
    read: |set| {
        let tokens = set.get("WXPUSHER_SPT_LIST").unwrap_or_default().split([',', ';', '\n']);
        let tokens = tokens.map(str::trim).filter(|token| !token.is_empty());
        let tokens: Vec<_> = tokens.map(toml::Value::from).collect();
        Ok(url::options([("token", Some(tokens.into()))]))
    },
});

/// Messages to WeChat through WxPusher's simple push, which needs no application.
///
/// 1. Follow [WxPusher](https://wxpusher.zjiecode.com) in WeChat or install its app, and have it show your SPT.
/// 2. Set `token` to it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WxPusherSpt {
    /// The token, which starts with `SPT_`. Up to ten get the message at once.
    token: Targets<Secret>,
}

/// The most tokens that one request takes.
const TOKENS: usize = 10;

#[async_trait]
impl Channel for WxPusherSpt {
    fn check(&self) -> Result<(), ConfigError> {
        if self.token.count() > TOKENS {
            return Err(ConfigError(format!("`token` is not right; expected 1 to {TOKENS}")));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let mut body = wxpusher::fields(message);
        if let Some(fields) = body.as_object_mut() {
            let tokens: Vec<_> = self.token.iter().map(Secret::expose).collect();
            let (name, tokens) = match tokens.as_slice() {
                [one] => ("spt", json!(one)),
                several => ("sptList", json!(several)),
            };
            fields.insert(name.to_owned(), tokens);
        }
        let service = Address::parse("https://wxpusher.zjiecode.com/api/send/message/simple-push")
            .expect("a constant address");
        let reply = cx.post(&service).json(&body).answered().await?;
        let receipt = KIND.verdict().judge(KIND.about.title, &reply)?;
        wxpusher::every_place(cx, &reply.json()?)?;
        Ok(receipt)
    }
}
