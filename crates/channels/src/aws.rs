//! What the channels of AWS have in common: credentials, Signature Version 4, and the addresses of services.

use std::fmt::Write as _;

use aws_lc_rs::{
    digest,
    hmac::{self, HMAC_SHA256},
};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    address::Address, channel::ConfigError, http::Request, secret::Secret, url::ServiceUrl,
};

/// Who signs for which service where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signer<'a> {
    pub(crate) access_key: &'a str,
    pub(crate) secret_key: &'a Secret,
    /// For credentials that end.
    pub(crate) session_token: Option<&'a Secret>,
    pub(crate) region: &'a str,
    pub(crate) service: &'a str,
    /// The service's address, if it is not the region's own.
    pub(crate) api: Option<&'a Address>,
}

impl Signer<'_> {
    /// The address of the service called `host`.
    pub(crate) fn server(&self, host: &str) -> Option<Address> {
        if let Some(api) = self.api {
            return Some(api.clone());
        }
        let suffix = if self.region.starts_with("cn-") { ".cn" } else { "" };
        Address::parse(&format!("https://{host}.{}.amazonaws.com{suffix}", self.region))
    }

    /// `request`, a POST of `body` to `address` at `now`, with its signature.
    pub(crate) fn sign<'r>(
        &self,
        request: Request<'r>,
        address: &Address,
        content_type: &str,
        body: &str,
        now: Timestamp,
    ) -> Request<'r> {
        let url = address.url();
        let name = url.host_str().unwrap_or_default();
        // As in the request, where the usual port is not said.
        let host = url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
        let mut signed = vec![("content-type", content_type), ("host", host.as_str())];
        let at = date(now);
        signed.push(("x-amz-date", &at));
        if let Some(token) = self.session_token {
            signed.push(("x-amz-security-token", token.expose()));
        }
        let authorization = self.authorization(url.path(), &signed, body, now);
        let mut request = request.header("x-amz-date", &at).header("authorization", &authorization);
        if let Some(token) = self.session_token {
            request = request.header("x-amz-security-token", token.expose());
        }
        request.body(content_type, body.to_owned())
    }

    /// The value of `Authorization` for a POST of `body` to `path`, which has nothing to escape, with `headers`, which
    /// are in lower case and in order.
    fn authorization(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
        now: Timestamp,
    ) -> String {
        let at = date(now);
        let day = at.split('T').next().unwrap_or_default();
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let lines: String =
            headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let request = format!("POST\n{path}\n\n{lines}\n{names}\n{}", hash(body));
        let to_sign = format!("AWS4-HMAC-SHA256\n{at}\n{scope}\n{}", hash(&request));
        let secret = format!("AWS4{}", self.secret_key.expose());
        let key = [day, self.region, self.service, "aws4_request"]
            .into_iter()
            .fold(secret.into_bytes(), |key, part| mac(&key, part));
        let signature = hex(&mac(&key, &to_sign));
        format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
            self.access_key
        )
    }
}

fn date(now: Timestamp) -> String {
    now.strftime("%Y%m%dT%H%M%SZ").to_string()
}

fn mac(key: &[u8], part: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(HMAC_SHA256, key), part.as_bytes()).as_ref().to_vec()
}

fn hash(text: &str) -> String {
    hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a text always succeeds.
        let _always = write!(text, "{byte:02x}");
        text
    })
}

/// The innermost elements of `xml` with their texts, which is all that AWS says of importance.
pub(crate) fn elements(xml: &str) -> Value {
    let mut found = Map::new();
    let mut tags = xml.split('<').peekable();
    while let Some(tag) = tags.next() {
        let Some((name, text)) = tag.split_once('>') else { continue };
        let end = tags.peek().and_then(|next| next.strip_prefix('/')?.split('>').next());
        if end == Some(name) {
            let text =
                [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
                    .iter()
                    .fold(text.to_owned(), |text, (escape, letter)| text.replace(escape, letter));
            found.insert(name.to_owned(), text.into());
        }
    }
    Value::Object(found)
}

/// Takes key, secret and region from the path of `url`, whose secret may hold slashes, and from its parameters.
/// `first` is the key where it stands elsewhere.
pub(crate) fn credentials(
    url: &mut ServiceUrl,
    first: Option<String>,
) -> Result<toml::Table, ConfigError> {
    let key = first.or_else(|| (!url.path.is_empty()).then(|| url.path.remove(0)));
    let path = url.rest();
    let (mut secret, mut region) = (Vec::new(), None);
    for part in path {
        if region.is_some() || part.contains('@') {
            url.path.push(part);
        } else if is_region(&part) {
            region = Some(part.to_ascii_lowercase());
        } else {
            secret.push(part);
        }
    }
    let key = url.parameter("access").or(url.parameter("key")).or(key);
    let key = key.ok_or_else(|| url.wrong("names no access key"))?;
    let secret = url.parameter("secret").or_else(|| Some(secret.join("/")));
    let secret = secret.filter(|secret| !secret.is_empty());
    let secret = secret.ok_or_else(|| url.wrong("names no secret key"))?;
    let region = url.parameter("region").or(region).ok_or_else(|| url.wrong("names no region"))?;
    Ok(crate::url::options([
        ("access_key", Some(key.into())),
        ("secret_key", Some(secret.into())),
        ("region", Some(region.into())),
        ("session_token", url.parameter("token").map(Into::into)),
    ]))
}

/// Whether `part` looks like a region, such as `eu-central-1`.
fn is_region(part: &str) -> bool {
    let mut words = part.split('-');
    let country = words.next().is_some_and(|word| word.len() == 2);
    let number = words.next_back().is_some_and(|word| word.parse::<u8>().is_ok());
    country && number && words.count() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the test suite that AWS publishes for Signature Version 4.
    #[test]
    fn requests_are_signed_as_aws_says() {
        let secret = Secret::from("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned());
        let signer = Signer {
            access_key: "AKIDEXAMPLE",
            secret_key: &secret,
            session_token: None,
            region: "us-east-1",
            service: "service",
            api: None,
        };
        #[track_caller]
        fn check(signer: &Signer<'_>, headers: &[(&str, &str)], body: &str, signature: &str) {
            let now = "2015-08-30T12:36:00Z".parse().unwrap();
            let told = signer.authorization("/", headers, body, now);
            let names: Vec<_> = headers.iter().map(|(name, _)| *name).collect();
            let expected = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
                 SignedHeaders={}, Signature={signature}",
                names.join(";")
            );
            assert_eq!(told, expected);
        }
        let host = ("host", "example.amazonaws.com");
        let at = ("x-amz-date", "20150830T123600Z");
        // post-x-www-form-urlencoded
        check(
            &signer,
            &[
                ("content-length", "13"),
                ("content-type", "application/x-www-form-urlencoded"),
                host,
                (
                    "x-amz-content-sha256",
                    "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e",
                ),
                at,
            ],
            "Param1=value1",
            "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
        );
        // post-sts-header-before
        let token = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
        check(
            &signer,
            &[host, at, ("x-amz-security-token", token)],
            "",
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
        );
    }

    #[test]
    fn answers_in_xml_are_read_as_far_as_they_say_something() {
        let answer = "<ErrorResponse xmlns=\"https://x/\">\n <Error><Type>Sender</Type>\
            <Code>NotFound</Code><Message>no &quot;a&amp;b&quot;</Message></Error></ErrorResponse>";
        let expected =
            serde_json::json!({ "Type": "Sender", "Code": "NotFound", "Message": "no \"a&b\"" });
        assert_eq!(elements(answer), expected);
        assert_eq!(elements("a < b > c </d"), serde_json::json!({}));
    }
}
