use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::HeaderValue;
use std::{borrow::Cow, collections::BTreeMap};

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserializer, de::Error as _};

use crate::{envelope::Envelope, prelude::*};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<WebhookJson>(About {
    name: "webhook_json",
    title: "the webhook",
    docs: "https://www.standardwebhooks.com",
    transport: Transport::Http { accepted: "", verdict: Verdict::STATUS, refusals: &[] },
    dialect: Dialect::Markdown,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        url = "https://hooks.example.com/deskbell/9f86d081884c7d65"
        token = "bearer-3b1f0f6e"
        signing_secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
        headers = { X-Team = "team-secret-77" }
    "#,
})
.with_links();

/// Hands each message as JSON to a program of yours.
///
/// 1. Let your program accept a POST request and answer with any status from 200 to 299.
/// 2. Set `url` to its address.
/// 3. Drop repeats by `delivery_id`, which is also the header `Idempotency-Key`: a message is sent again when its
///    answer got lost.
/// 4. To be sure that a request is ours, set `signing_secret` and check the headers `webhook-id`, `webhook-timestamp`
///    and `webhook-signature` with a library for [Standard Webhooks](https://www.standardwebhooks.com).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WebhookJson {
    /// Address to post to.
    #[schemars(extend("writeOnly" = true))]
    url: Address,
    /// Token for `Authorization: Bearer`.
    token: Option<Secret>,
    /// Further headers.
    #[serde(default)]
    headers: BTreeMap<String, Secret>,
    /// Key that requests are signed with: `whsec_` and Base64.
    signing_secret: Option<SigningKey>,
    /// Proxy to go through.
    proxy: Option<Proxy>,
}

#[async_trait]
impl Channel for WebhookJson {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let (id, body) = (cx.id(), Envelope::of(message, cx).line());
        let mut request = cx
            .post(&self.url)
            .via(self.proxy.as_ref())
            .bearer(self.token.as_ref())
            .header("idempotency-key", &id);
        for (name, value) in &self.headers {
            request = request.header(name, value.expose());
        }
        if let Some(key) = &self.signing_secret {
            let timestamp = cx.now.as_second().to_string();
            request = request
                .header("webhook-id", &id)
                .header("webhook-timestamp", &timestamp)
                .header("webhook-signature", &key.signature(&id, &timestamp, &body));
        }
        request.body("application/json", body).accepted().await?;
        Ok(Receipt::default())
    }

    fn check(&self) -> Result<(), ConfigError> {
        let is_value = |value: &Secret| HeaderValue::from_str(value.expose()).is_ok();
        if self.token.as_ref().is_some_and(|token| !is_value(token)) {
            return Err(ConfigError(
                "`token` has characters that HTTP does not allow in a header".to_owned(),
            ));
        }
        check_headers(&self.headers)
    }
}

/// The key of a webhook's signature.
struct SigningKey(hmac::Key);

impl SigningKey {
    fn parse(text: &str) -> Option<Self> {
        let key = BASE64_STANDARD.decode(text.strip_prefix("whsec_").unwrap_or(text)).ok()?;
        (!key.is_empty()).then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// The signature as Standard Webhooks writes it.
    fn signature(&self, id: &str, timestamp: &str, body: &str) -> String {
        let tag = hmac::sign(&self.0, format!("{id}.{timestamp}.{body}").as_bytes());
        format!("v1,{}", BASE64_STANDARD.encode(tag))
    }
}

impl<'de> Deserialize<'de> for SigningKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("not a key, expected Base64"))
    }
}

impl JsonSchema for SigningKey {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SigningKey".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "writeOnly": true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with the reference implementation.
    #[test]
    fn requests_are_signed_as_standard_webhooks_says_row_112() {
        let key = SigningKey::parse("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3").unwrap();
        assert_eq!(
            key.signature("msg_1", "1767323045", r#"{"a":1}"#),
            "v1,qeGkQ6nqm3bx7gX/C+5XKpEnnrBmXyYx18VHKaBX7EY="
        );
        assert!(SigningKey::parse("whsec_not base64").is_none());
        assert!(SigningKey::parse("").is_none());
    }
}
