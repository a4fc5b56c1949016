use std::collections::BTreeMap;

use crate::{
    mail_api::{mail_options, people, texts},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Mailgun>(About {
    name: "mailgun",
    title: "Mailgun",
    docs: "https://documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/messages",
    transport: Transport::Http {
        accepted: r#"{"id":"<20260102030405.1.4711@mg.example.com>","message":"Queued. Thank you."}"#,
        verdict: Verdict::id("/id"),
        // The statuses are those of <https://documentation.mailgun.com/docs/mailgun/quickstart-guide/responses>.
        refusals: &[
            Refusal::permanent(401, "Forbidden"),
            Refusal::permanent(400, r#"{"message":"'to' parameter is not a valid address. please check documentation"}"#),
            Refusal::permanent(404, r#"{"message":"Domain not found: mg.example.com"}"#),
            Refusal::temporary(429, ""),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        token = "key-3ax6xnjp29jd6fds4gc373sgvjxteol0"
        domain = "mg.example.com"
        from = "Deskbell <bell@mg.example.com>"
        to = ["ada@example.com", "Grace <grace@example.com>"]
    "#,
})
// 25 MB for the whole mail.
.with_files(Files::Within(18_000_000))
.with_urls(Urls {
    schemes: &["mailgun"],
    examples: &[
        "mailgun://bell@mg.example.com/key-3ax6xnjp29jd6fds4gc373sgvjxteol0",
        "mailgun://bell@mg.example.com/key-3ax6xnjp29jd6fds4gc373sgvjxteol0/ada@example.com?name=Deskbell&region=eu",
        "mailgun://bell@mg.example.com/key-3ax6xnjp29jd6fds4gc373sgvjxteol0?to=ada@example.com&from=bell@example.com&cc=grace@example.com&+X-Team=shop&:team=shop",
    ],
    read,
    ..Urls::NONE
});

mail_options! {
    /// Mail through [Mailgun](https://www.mailgun.com).
    ///
    /// 1. Add a domain under Send → Sending → Domains and set `domain` to it; `region` is where you added it.
    /// 2. Create a sending key in the domain's settings and set `token` to it.
    /// 3. Set `from` to an address at the domain, and `to` to the readers. A sandbox domain reaches authorized
    ///    recipients only.
    struct Mailgun {
        /// Sending key or API key.
        token: Secret,
        /// Domain that Mailgun sends for.
        domain: String,
        /// Where the domain lives: `us` or `eu`.
        #[serde(default)]
        region: Region,
        /// Headers to add to each mail.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// Variables to attach to each mail, for templates and webhooks.
        #[serde(default)]
        variables: BTreeMap<String, String>,
    }
}

#[derive(Debug, Clone, Copy, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Region {
    #[default]
    Us,
    Eu,
}

impl Region {
    fn server(self) -> Address {
        let server = match self {
            Self::Us => "https://api.mailgun.net",
            Self::Eu => "https://api.eu.mailgun.net",
        };
        Address::parse(server).expect("a constant address")
    }
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // Mailgun is told all readers at once, in batches or not.
    url.ignore(&["batch"]);
    let user = url.user.take().ok_or_else(|| url.wrong("names no sender"))?;
    let domain = url.authority().ok_or_else(|| url.wrong("names no domain"))?;
    let token = url.next("key")?;
    let (sender, name) = match (url.parameter("from"), url.parameter("name")) {
        (Some(from), name) if from.contains('@') => (from, name),
        (from, name) => (format!("{user}@{domain}"), from.or(name)),
    };
    let region = url.parameter("region").map(|region| region.to_ascii_lowercase().into());
    let mut named = |prefix| {
        let table: toml::Table =
            url.parameters(prefix).into_iter().map(|(name, value)| (name, value.into())).collect();
        (!table.is_empty()).then(|| table.into())
    };
    let (headers, variables) = (named('+'), named(':'));
    let mut options = people(url, &sender, name.as_deref(), None);
    options.extend(url::options([
        ("token", Some(token.into())),
        ("domain", Some(domain.into())),
        ("region", region),
        ("headers", headers),
        ("variables", variables),
    ]));
    Ok(options)
}

#[async_trait]
impl Channel for Mailgun {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let letter = self.letter(message, cx);
        let (to, cc, bcc) = (
            texts(&letter.to).join(","),
            texts(&letter.cc).join(","),
            texts(&letter.bcc).join(","),
        );
        let from = letter.from.to_string();
        let mut headers: Vec<_> = letter
            .headers
            .iter()
            .map(|(name, value)| (format!("h:{name}"), value.as_str()))
            .collect();
        let reply_to = texts(&letter.reply_to).join(",");
        headers.push(("h:Reply-To".to_owned(), &reply_to));
        headers
            .extend(self.headers.iter().map(|(name, value)| (format!("h:{name}"), value.as_str())));
        headers.extend(
            self.variables.iter().map(|(name, value)| (format!("v:{name}"), value.as_str())),
        );
        let mut fields = vec![
            ("from", from.as_str()),
            ("to", &to),
            ("cc", &cc),
            ("bcc", &bcc),
            ("subject", &letter.subject),
            ("text", &letter.text),
            ("html", &letter.html),
        ];
        fields.extend(headers.iter().map(|(name, value)| (name.as_str(), *value)));
        fields.retain(|(_, value)| !value.is_empty());
        let request = cx.post(&self.region.server().at(&["v3", &self.domain, "messages"]));
        let request = request.basic("api", &self.token);
        let files: Vec<_> = cx.files.iter().map(|file| &**file).collect();
        let request = match files.is_empty() {
            true => request.form(&fields),
            false => request.form_with_files(&fields, "attachment", &files),
        };
        request.delivered(&KIND).await
    }
}
