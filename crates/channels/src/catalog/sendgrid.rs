use std::collections::BTreeMap;

use crate::{
    mail_api::{compact, mail_options, object, objects, read as read_mail},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<SendGrid>(About {
    name: "sendgrid",
    title: "SendGrid",
    docs: "https://www.twilio.com/docs/sendgrid/api-reference/mail-send/mail-send",
    transport: Transport::Http {
        accepted: "",
        verdict: Verdict {
            success: Success::Empty,
            reason: &["/errors/0/message"],
            wait: Wait::UntilIn("x-ratelimit-reset"),
            ..Verdict::STATUS
        },
        // The form is that of
        // <https://www.twilio.com/docs/sendgrid/api-reference/how-to-use-the-sendgrid-v3-api/errors>.
        refusals: &[
            Refusal::permanent(401, r#"{"errors":[{"message":"The provided authorization grant is invalid, expired, or revoked","field":null,"help":null}]}"#),
            Refusal::permanent(403, r#"{"errors":[{"message":"The from address does not match a verified Sender Identity. Mail cannot be sent until this error is resolved.","field":"from","help":null}]}"#),
            Refusal::permanent(400, r#"{"errors":[{"message":"Does not contain a valid address.","field":"personalizations.0.to.0.email","help":null}]}"#),
            Refusal::temporary(429, r#"{"errors":[{"field":null,"message":"too many requests"}]}"#),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        token = "SG.Yx0kq8sVQ1.h5m2Wd7Rj4Lp9Zt3"
        from = "Deskbell <bell@example.com>"
        to = ["ada@example.com", "Grace <grace@example.com>"]
    "#,
})
// 30 MB for the whole mail, in which three bytes of a file are four.
.with_files(Files::Within(20_000_000))
.with_urls(Urls {
    schemes: &["sendgrid"],
    examples: &[
        "sendgrid://SG.Yx0kq8sVQ1.h5m2Wd7Rj4Lp9Zt3:bell@example.com/ada@example.com",
        "sendgrid://SG.Yx0kq8sVQ1.h5m2Wd7Rj4Lp9Zt3:bell@example.com?to=ada@example.com&cc=grace@example.com&bcc=joan@example.com",
        "sendgrid://SG.Yx0kq8sVQ1.h5m2Wd7Rj4Lp9Zt3:bell@example.com/ada@example.com?template=d-4711&+team=shop",
    ],
    read,
    ..Urls::NONE
});

mail_options! {
    /// Mail through [SendGrid](https://sendgrid.com).
    ///
    /// 1. Verify the sender: Settings → Sender Authentication, a domain or a single sender. Set `from` to it.
    /// 2. Settings → API Keys → Create API Key, with Restricted Access to Mail Send. Set `token` to the key.
    /// 3. Set `to` to the readers.
    struct SendGrid {
        /// API key, which begins with `SG.`.
        token: Secret,
        /// Where the account lives: `global` or `eu`.
        #[serde(default)]
        region: Region,
        /// Id of a dynamic template that makes the mail; it finds the message in `title`, `text` and `html`.
        template: Option<String>,
        /// More for the template to find.
        #[serde(default)]
        template_data: BTreeMap<String, String>,
    }
}

#[derive(Debug, Clone, Copy, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Region {
    #[default]
    Global,
    Eu,
}

impl Region {
    fn server(self) -> Address {
        let server = match self {
            Self::Global => "https://api.sendgrid.com",
            Self::Eu => "https://api.eu.sendgrid.com",
        };
        Address::parse(server).expect("a constant address")
    }
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let template = url.parameter("template");
    let data: toml::Table =
        url.parameters('+').into_iter().map(|(name, value)| (name, value.into())).collect();
    let mut options = read_mail(url)?;
    options.extend(url::options([
        ("template", template.map(Into::into)),
        ("template_data", (!data.is_empty()).then(|| data.into())),
    ]));
    Ok(options)
}

#[async_trait]
impl Channel for SendGrid {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let letter = self.letter(message, cx);
        let html = Dialect::Mail.body(message);
        let data = self.template.as_ref().map(|_| {
            let ours = [("title", &letter.subject), ("text", &letter.text), ("html", &html)];
            let own = self.template_data.iter().map(|(name, value)| (name.as_str(), value));
            ours.into_iter().chain(own).collect::<BTreeMap<_, _>>()
        });
        let readers = json!({
            "to": objects(&letter.to),
            "cc": objects(&letter.cc),
            "bcc": objects(&letter.bcc),
            "dynamic_template_data": data,
        });
        let headers: BTreeMap<_, _> = letter.headers.iter().cloned().collect();
        let files = letter.files.iter().map(|file| {
            json!({
                "content": file.base64,
                "type": file.media_type,
                "filename": file.name,
                "disposition": "attachment",
            })
        });
        let mail = json!({
            "personalizations": [compact(readers)],
            "from": object(letter.from),
            "reply_to_list": objects(&letter.reply_to),
            "subject": letter.subject,
            // SendGrid wants them in this order.
            "content": [
                { "type": "text/plain", "value": letter.text },
                { "type": "text/html", "value": letter.html },
            ],
            "attachments": files.collect::<Vec<_>>(),
            "headers": headers,
            "template_id": self.template,
        });
        let request = cx.post(&self.region.server().at(&["v3", "mail", "send"]));
        let request = request.bearer(Some(&self.token)).slow_for(cx.files.len());
        request.json(&compact(mail)).delivered(&KIND).await
    }
}
