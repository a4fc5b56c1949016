use std::{borrow::Cow, collections::BTreeMap};

use http::{HeaderValue, Method};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserializer, de::Error as _};
use serde_json::Map;

use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<WebhookTemplate>(About {
    name: "webhook_template",
    title: "the webhook",
    docs: "https://github.com/whyour/qinglong/blob/master/sample/config.sample.sh",
    transport: Transport::Http { accepted: "", verdict: Verdict::STATUS, refusals: &[] },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        url = "https://hooks.example.com/push/9f86d081884c7d65"
        method = "POST"
        body = '''
        msgtype: text
        text: {"content": "$title\n$content"}
        '''
        headers = { X-Team = "team-secret-77" }
    "#,
})
.with_variables(Variables {
    name: "webhook",
    needs: &["WEBHOOK_URL", "WEBHOOK_METHOD"],
    takes: &["WEBHOOK_BODY", "WEBHOOK_HEADERS", "WEBHOOK_CONTENT_TYPE"],
    read: variables,
});

/// Sends each message to any service, in the words that you give, as the custom webhook of mcp-push and Qinglong does.
///
/// 1. Set `url` to the address of the service, and `method` to `GET`, `POST` or `PUT`.
/// 2. Write `$title` and `$content` where the title and the text are to stand, in `url` or in `body`.
/// 3. Write `body` as lines of `name: value`, where a value may be JSON, or as JSON altogether. `content_type` says how
///    it is sent: as `application/json`, `application/x-www-form-urlencoded`, `multipart/form-data`, or with any other
///    as it stands.
///
/// Whatever a message says, it stays within its place: what means something in an address or in JSON is escaped.
/// Keep secrets in `url` and `headers`; a preview shows `body`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WebhookTemplate {
    /// Address, in which `$title` and `$content` may stand.
    url: Template,
    /// How the request is made: `GET`, `POST`, `PUT` or `PATCH`.
    #[serde(default)]
    method: Verb,
    /// What is sent, with `$title` and `$content` in it.
    #[serde(default)]
    #[schemars(extend("default" = ""))]
    body: String,
    /// How it is sent.
    #[serde(default = "json_type")]
    content_type: String,
    /// Further headers.
    #[serde(default)]
    headers: BTreeMap<String, Secret>,
}

/// An address with places that a message fills in.
struct Template(String);

impl Template {
    /// The address with `texts` in its places, escaped.
    fn filled(&self, texts: &Texts<'_>) -> Option<Address> {
        let escaped = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let (title, content) = (escaped(texts.title), escaped(texts.content));
        Address::parse(&Texts { title: &title, content: &content }.fill(&self.0))
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let template = Self(String::deserialize(deserializer)?);
        match template.filled(&Texts { title: "a", content: "b" }) {
            Some(_) => Ok(template),
            None => Err(D::Error::custom("not an address, expected one with http or https")),
        }
    }
}

impl JsonSchema for Template {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Template".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "writeOnly": true, "template": true })
    }
}

#[derive(Clone, Copy, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
enum Verb {
    Get,
    #[default]
    Post,
    Put,
    Patch,
}

fn json_type() -> String {
    "application/json".to_owned()
}

fn variables(set: &Set<'_>) -> Result<toml::Table, Wrong> {
    let says_something = |name| set.get(name).is_some_and(has_place);
    if !says_something("WEBHOOK_URL") && !says_something("WEBHOOK_BODY") {
        let reason = "neither it nor WEBHOOK_BODY has $title or $content";
        return Err(Wrong { variable: "WEBHOOK_URL", reason });
    }
    let mut table = set.table(&[
        ("url", "WEBHOOK_URL"),
        ("body", "WEBHOOK_BODY"),
        ("content_type", "WEBHOOK_CONTENT_TYPE"),
    ]);
    let method = set.get("WEBHOOK_METHOD").unwrap_or_default().to_ascii_uppercase();
    table.insert("method".to_owned(), method.into());
    let headers = set.get("WEBHOOK_HEADERS").unwrap_or_default();
    let headers: toml::Table = headers
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().into()))
        .collect();
    if !headers.is_empty() {
        table.insert("headers".to_owned(), headers.into());
    }
    Ok(table)
}

fn has_place(template: &str) -> bool {
    template.contains("$title") || template.contains("$content")
}

/// What fills the places of a template.
struct Texts<'a> {
    title: &'a str,
    content: &'a str,
}

impl Texts<'_> {
    /// `template` with the texts in its places. What the title says is no template any more.
    fn fill(&self, template: &str) -> String {
        let with_content = template.split("$title");
        let parts: Vec<_> =
            with_content.map(|part| part.replace("$content", self.content)).collect();
        parts.join(self.title)
    }

    /// The same in every text of `value`.
    fn fill_all(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.fill(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill_all(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.fill_all(field)),
            _ => {}
        }
    }
}

/// The fields that the lines of `template` describe, or the JSON that it is.
fn fields(template: &str) -> Value {
    if let Ok(whole @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(template) {
        return whole;
    }
    let mut fields = Map::new();
    for line in template.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let (name, value) = (name.trim(), value.trim());
        if !name.is_empty() && !fields.contains_key(name) {
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            fields.insert(name.to_owned(), value);
        }
    }
    Value::Object(fields)
}

/// `fields` as pairs of texts, for forms.
fn pairs(fields: &Value) -> Vec<(String, String)> {
    let written = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let fields = fields.as_object().into_iter().flatten();
    fields.map(|(name, value)| (name.clone(), written(value))).collect()
}

/// `fields` as the parts of a form (RFC 7578), between lines that no text can know.
fn multipart(fields: &[(String, String)], boundary: &str) -> String {
    let mut body = String::new();
    for (name, value) in fields {
        let name = name.replace('"', "%22").replace(['\r', '\n'], " ");
        body.extend(["--", boundary, "\r\nContent-Disposition: form-data; name=\"", &name]);
        body.extend(["\"\r\n\r\n", value, "\r\n"]);
    }
    format!("{body}--{boundary}--\r\n")
}

#[async_trait]
impl Channel for WebhookTemplate {
    fn check(&self) -> Result<(), ConfigError> {
        let wrong = |what: String| Err(ConfigError(what));
        if !has_place(&self.url.0) && !has_place(&self.body) {
            return wrong("neither `url` nor `body` has `$title` or `$content`".to_owned());
        }
        if HeaderValue::from_str(&self.content_type).is_err() {
            return wrong("`content_type` has characters that HTTP does not allow".to_owned());
        }
        check_headers(&self.headers)
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let title = message.title.as_deref().unwrap_or("Deskbell");
        let title = format!("{}{title}", mark(message.level));
        let content = KIND.about.dialect.body(message);
        let texts = Texts { title: &title, content: &content };
        let address = self.url.filled(&texts);
        let address = address.ok_or_else(|| SendError::permanent("`url` is not usable"))?;
        let method = match self.method {
            Verb::Get => Method::GET,
            Verb::Post => Method::POST,
            Verb::Put => Method::PUT,
            Verb::Patch => Method::PATCH,
        };
        let mut request = self.filled(cx.request(method, &address), &texts, cx);
        for (name, value) in &self.headers {
            request = request.header(name, value.expose());
        }
        request.delivered(&KIND).await
    }
}

impl WebhookTemplate {
    /// `request` with the body, if there is one.
    fn filled<'a>(&self, request: Request<'a>, texts: &Texts<'_>, cx: &SendContext) -> Request<'a> {
        if self.body.trim().is_empty() {
            return request;
        }
        let mut fields = fields(&self.body);
        texts.fill_all(&mut fields);
        let media = self.content_type.split(';').next().unwrap_or_default().trim();
        match media.to_ascii_lowercase().as_str() {
            "application/json" => request.json(&fields),
            "application/x-www-form-urlencoded" => {
                let pairs = pairs(&fields);
                let pairs: Vec<_> = pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
                request.form(&pairs)
            }
            "multipart/form-data" => {
                let boundary = format!("deskbell-{}", cx.delivery.event);
                let body = multipart(&pairs(&fields), &boundary);
                request.body(&format!("multipart/form-data; boundary={boundary}"), body)
            }
            _ => request.body(&self.content_type, texts.fill(&self.body)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: Texts<'_> =
        Texts { title: "a: \"b\" $content", content: "line: 1\n{\"x\": [1]}\r\n--end" };

    fn filled(template: &str) -> Value {
        let mut fields = fields(template);
        TEXTS.fill_all(&mut fields);
        fields
    }

    #[test]
    fn lines_become_fields_and_json_in_them_stays_json() {
        let template = "msgtype: text\ntext: {\"content\": \"$title|$content\", \"n\": 1}\n\
            url: https://h/x\nmsgtype: other\nno field";
        assert_eq!(
            filled(template),
            json!({
                "msgtype": "text",
                "text": { "content": format!("{}|{}", TEXTS.title, TEXTS.content), "n": 1 },
                "url": "https://h/x",
            })
        );
        assert_eq!(filled(r#"{"a": ["$title"]}"#), json!({ "a": [TEXTS.title] }));
    }

    /// mcp-push puts the texts in first, so that a line of them becomes a field.
    #[test]
    fn what_a_message_says_stays_in_its_place_row_115() {
        assert_eq!(filled("text: $content"), json!({ "text": TEXTS.content }));
        assert_eq!(filled("text: $title"), json!({ "text": TEXTS.title }));
        let url = Template("https://h/$title?c=$content".to_owned());
        let texts = Texts { title: "a/../b", content: "x&admin=1#y" };
        assert_eq!(
            url.filled(&texts).unwrap().url().as_str(),
            "https://h/a%2F%2E%2E%2Fb?c=x%26admin%3D1%23y"
        );
    }

    #[test]
    fn a_multipart_form_has_a_part_for_each_field() {
        let parts = [("a\"b".to_owned(), "1\n2".to_owned()), ("c".to_owned(), "3".to_owned())];
        assert_eq!(
            multipart(&parts, "line"),
            "--line\r\nContent-Disposition: form-data; name=\"a%22b\"\r\n\r\n1\n2\r\n\
             --line\r\nContent-Disposition: form-data; name=\"c\"\r\n\r\n3\r\n--line--\r\n"
        );
    }
}
