use std::{collections::BTreeMap, fmt::Write as _};

use http::Method;
use serde_json::Map;

use super::apprise_api::severity;
use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<AppriseWebhook>(About {
    name: "apprise_webhook",
    title: "the webhook",
    docs: "https://appriseit.com/services/json/",
    transport: Transport::Http { accepted: "", verdict: Verdict::STATUS, refusals: &[] },
    dialect: Dialect::Markdown,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        url = "https://hooks.example.com/apprise/9f86d081884c7d65"
        headers = { X-Team = "team-secret-77" }
    "#,
})
.with_urls(Urls {
    schemes: &["json", "jsons", "form", "forms", "xml", "xmls"],
    examples: &[
        "jsons://hooks.example.com/apprise/9f86d081884c7d65?+X-Team=team-secret-77",
        "json://ada:password-1@localhost:8080/a/b/?-page=2&:message=text&:team=shop&method=put",
        "forms://hooks.example.com/apprise/9f86d081884c7d65?:title=subject&:version=",
        "form://localhost:8080/a?method=get&-page=2",
        "xmls://hooks.example.com/apprise/9f86d081884c7d65",
        "xml://localhost:8080?:message=text&:team=shop",
    ],
    read,
    ..Urls::NONE
});

/// Hands each message to a program that was made for [Apprise](https://appriseit.com), as its services `json`, `form`
/// and `xml` write it.
///
/// 1. Set `url` to the address of the program.
/// 2. Set `shape` to what it reads: JSON, a form or XML.
/// 3. Where it wants other names, set `names`: `{ message = "text" }` calls the text `text`.
///
/// For a program of your own take `webhook_json`, which tells more and can be signed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AppriseWebhook {
    /// Address to send to.
    #[schemars(extend("writeOnly" = true))]
    url: Address,
    /// How the message is written: `json`, `form` or `xml`.
    #[serde(default)]
    shape: Shape,
    /// How the request is made: `POST`, `GET`, `DELETE`, `PUT`, `HEAD`, `PATCH`, `UPDATE` or `OPTIONS`.
    #[serde(default)]
    method: Verb,
    /// Further headers.
    #[serde(default)]
    headers: BTreeMap<String, Secret>,
    /// Other names for `version`, `title`, `message` and `type`; an empty one leaves the field out.
    #[serde(default)]
    names: BTreeMap<String, String>,
    /// Further fields.
    #[serde(default)]
    fields: BTreeMap<String, Secret>,
}

#[derive(Clone, Copy, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Shape {
    #[default]
    Json,
    Form,
    Xml,
}

#[derive(Clone, Copy, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
enum Verb {
    #[default]
    Post,
    Get,
    Delete,
    Put,
    Head,
    Patch,
    Update,
    Options,
}

impl Verb {
    fn method(self) -> Method {
        match self {
            Self::Post => Method::POST,
            Self::Get => Method::GET,
            Self::Delete => Method::DELETE,
            Self::Put => Method::PUT,
            Self::Head => Method::HEAD,
            Self::Patch => Method::PATCH,
            Self::Update => Method::from_bytes(b"UPDATE").expect("a token is a method"),
            Self::Options => Method::OPTIONS,
        }
    }
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // It names the files of a form, and no message has any.
    url.ignore(&["attach-as"]);
    let shape = url.scheme.trim_end_matches('s').to_owned();
    let method = url.parameter("method").filter(|method| !method.is_empty());
    let mut path = url.rest();
    if url.ends_with_slash() {
        path.push(String::new());
    }
    let path: Vec<_> = path.iter().map(String::as_str).collect();
    let (user, password) = (url.user.take(), url.password.take());
    let web = Address::parse(&url.web()?).ok_or_else(|| url.wrong("names no host"))?;
    let mut address = web.at(&path).as_user(user.as_deref(), password.as_deref());
    for (name, value) in url.parameters('-') {
        address = address.with(&name, &value);
    }
    let table = |set: Vec<(String, String)>| -> Option<toml::Value> {
        let set: toml::Table = set.into_iter().map(|(name, value)| (name, value.into())).collect();
        (!set.is_empty()).then(|| set.into())
    };
    let (names, fields) =
        url.parameters(':').into_iter().partition(|(name, _)| OURS.contains(&name.as_str()));
    Ok(url::options([
        ("url", Some(address.url().as_str().into())),
        ("shape", (shape != "json").then(|| shape.into())),
        ("method", method.map(|method| method.to_ascii_uppercase().into())),
        ("headers", table(url.parameters('+'))),
        ("names", table(names)),
        ("fields", table(fields)),
    ]))
}

#[async_trait]
impl Channel for AppriseWebhook {
    fn check(&self) -> Result<(), ConfigError> {
        let wrong = |what: &str| Err(ConfigError(what.to_owned()));
        check_headers(&self.headers)?;
        if self.names.keys().any(|name| !OURS.contains(&name.as_str())) {
            let ours = OURS.join(", ");
            return wrong(&format!("`names` has a field that is none of {ours}"));
        }
        if !matches!(self.shape, Shape::Xml) {
            return Ok(());
        }
        let is_element = |name: &String| name.is_empty() || is_element(name);
        if !self.names.values().all(is_element) {
            return wrong("`names` has a name that no element of XML can have");
        }
        match self.fields.keys().all(is_element) {
            true => Ok(()),
            false => wrong("`fields` has a name that no element of XML can have"),
        }
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let fields = self.named(message);
        let method = self.method.method();
        let pairs: Vec<_> =
            fields.iter().map(|(n, v)| (n.as_str(), v.as_str().unwrap_or_default())).collect();
        let mut request = match (self.shape, self.method) {
            (Shape::Json, _) => {
                let fields: Map<String, Value> = fields.into_iter().collect();
                cx.request(method, &self.url).json(&fields)
            }
            (Shape::Form, Verb::Get) => {
                let with =
                    |address: Address, (name, value): &(&str, &str)| address.with(name, value);
                cx.get(&pairs.iter().fold(self.url.clone(), with))
            }
            (Shape::Form, _) => cx.request(method, &self.url).form(&pairs),
            (Shape::Xml, _) => {
                let follows_schema = self.names.is_empty() && self.fields.is_empty();
                let body = xml(&pairs, follows_schema);
                cx.request(method, &self.url).body("application/xml", body)
            }
        };
        for (name, value) in &self.headers {
            request = request.header(name, value.expose());
        }
        request.accepted().await?;
        Ok(Receipt::default())
    }
}

/// The names that Apprise gives to the fields of a message.
const OURS: [&str; 5] = ["version", "title", "message", "attachments", "type"];

impl AppriseWebhook {
    /// The fields of the message under the names that they are to have, and the further ones.
    fn named(&self, message: &Message) -> Vec<(String, Value)> {
        let is_json = matches!(self.shape, Shape::Json);
        let values = [
            json!(if matches!(self.shape, Shape::Xml) { "1.1" } else { "1.0" }),
            json!(message.title.as_deref().unwrap_or_default()),
            json!(message.body),
            // A message has no files.
            json!([]),
            json!(severity(message)),
        ];
        let ours = OURS.into_iter().zip(values).filter(|(_, value)| is_json || value.is_string());
        let named = ours.filter_map(|(name, value)| {
            let name = self.names.get(name).map_or(name, String::as_str);
            (!name.is_empty()).then(|| (name.to_owned(), value))
        });
        let further = self.fields.iter().map(|(name, value)| (name.clone(), json!(value.expose())));
        named.chain(further).collect()
    }
}

/// Whether an element of XML may be called `name`, in letters and digits of ASCII.
fn is_element(name: &str) -> bool {
    let begins = |character: char| character.is_ascii_alphabetic() || character == '_';
    let goes_on = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
    name.starts_with(begins) && name.chars().all(goes_on)
}

/// The schema of what is sent under the names that Apprise gives.
const SCHEMA: &str =
    "https://raw.githubusercontent.com/caronc/apprise/master/apprise/assets/NotifyXML-1.1.xsd";

/// The SOAP envelope in which Apprise puts a notification; with other fields it follows no schema.
fn xml(fields: &[(&str, &str)], follows_schema: bool) -> String {
    let mut core = String::new();
    for (name, value) in fields {
        // Writing to a text never fails.
        let _always = write!(core, "<{name}>{}</{name}>", escaped(value));
    }
    let schema = match follows_schema {
        true => format!(" xmlns:xsi=\"{SCHEMA}\""),
        false => String::new(),
    };
    format!(
        "<?xml version='1.0' encoding='utf-8'?>\n\
         <soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\" \
         xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">\
         <soapenv:Body><Notification{schema}>{core}</Notification></soapenv:Body></soapenv:Envelope>"
    )
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&apos;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_the_request_is_refused() {
        #[track_caller]
        fn check(address: &str, expected: &str) {
            let options = crate::from_url(address).unwrap().options;
            let refusal = KIND.build(options).map(drop).unwrap_err();
            assert_eq!(refusal.to_string(), expected);
        }
        let says = |name| format!("`headers` has `{name}`, which each request says of itself");
        check("json://h/?+Content-Length=5", &says("content-length"));
        check("form://h/?+transfer-encoding=chunked", &says("transfer-encoding"));
        check("xml://h/?+Host=example.com", &says("host"));
        let names = "`headers` has a name with characters that HTTP does not allow";
        check("json://h/?+X%20Y=1", names);
        let element = "`fields` has a name that no element of XML can have";
        check("xml://h/?:<1>=x", element);
        check("xml://h/?:1a=x", element);
        check("xml://h/?:a%20b=x", element);
        let renamed = "`names` has a name that no element of XML can have";
        check("xml://h/?:message=<m>", renamed);
        let fine = crate::from_url("json://h/?:<1>=x&+X-Y=z").unwrap().options;
        KIND.build(fine).map(drop).unwrap();
    }

    #[test]
    fn a_text_stays_within_its_element_of_xml_row_115() {
        assert_eq!(
            xml(&[("title", "a</title>&<b \"c\" 'd'>"), ("my-x", "1")], false)
                .split_once("<Notification>")
                .map(|(_, rest)| rest),
            Some(
                "<title>a&lt;/title&gt;&amp;&lt;b &quot;c&quot; &apos;d&apos;&gt;</title>\
                 <my-x>1</my-x></Notification></soapenv:Body></soapenv:Envelope>"
            )
        );
    }
}
