use std::collections::BTreeMap;

use crate::{
    mail_api::{compact, mail_options, object, objects, read},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Brevo>(About {
    name: "brevo",
    title: "Brevo",
    docs: "https://developers.brevo.com/reference/sendtransacemail",
    transport: Transport::Http {
        accepted: r#"{"messageId":"<202601020304.12345678901@smtp-relay.mailin.fr>"}"#,
        verdict: Verdict {
            code: Some("/code"),
            wait: Wait::SecondsIn("x-sib-ratelimit-reset"),
            ..Verdict::id("/messageId")
        },
        refusals: &[
            Refusal::permanent(401, r#"{"message":"Key not found","code":"unauthorized"}"#),
            Refusal::permanent(400, r#"{"code":"invalid_parameter","message":"email is not valid in to"}"#),
            Refusal::permanent(402, r#"{"code":"not_enough_credits","message":"Not enough credits to send the email"}"#),
            Refusal::temporary(429, r#"{"code":"too_many_requests","message":"The expected rate limit is exceeded."}"#),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        token = "xkeysib-7c1f4e9a2b8d6035-Qw3Er5Ty7Ui9"
        from = "Deskbell <bell@example.com>"
        to = ["ada@example.com", "Grace <grace@example.com>"]
    "#,
})
// 20 MB for the whole mail, in which three bytes of a file are four. Which sorts of files it takes, it says.
.with_files(Files::Within(14_000_000))
.with_urls(Urls {
    schemes: &["brevo"],
    examples: &[
        "brevo://xkeysib-7c1f4e9a2b8d6035-Qw3Er5Ty7Ui9:bell@example.com",
        "brevo://xkeysib-7c1f4e9a2b8d6035-Qw3Er5Ty7Ui9:bell@example.com/ada@example.com?reply=joan@example.com",
        "brevo://xkeysib-7c1f4e9a2b8d6035-Qw3Er5Ty7Ui9:bell@example.com?to=ada@example.com&cc=grace@example.com&bcc=joan@example.com",
    ],
    read,
    ..Urls::NONE
});

mail_options! {
    /// Mail through [Brevo](https://www.brevo.com), which was called Sendinblue.
    ///
    /// 1. Verify a sender or a domain under Senders, Domains & Dedicated IPs. Set `from` to an address of it.
    /// 2. SMTP & API → API Keys → Generate a new API key. Set `token` to the key, which begins with `xkeysib-`; the
    ///    SMTP key is another one.
    /// 3. Set `to` to the readers.
    struct Brevo {
        /// API key.
        token: Secret,
    }
}

#[async_trait]
impl Channel for Brevo {
    fn check(&self) -> Result<(), ConfigError> {
        match &self.reply_to {
            Some(several) if several.count() > 1 => Err(ConfigError(
                "`reply_to` names more than one address; Brevo takes one".to_owned(),
            )),
            _ => Ok(()),
        }
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let letter = self.letter(message, cx);
        // No `idempotencyKey`: Brevo refuses a repeat without saying whether the first one was sent.
        let headers: BTreeMap<_, _> = letter.headers.iter().cloned().collect();
        let files = letter.files.iter();
        let files = files.map(|file| json!({ "name": file.name, "content": file.base64 }));
        let mail = json!({
            "sender": object(letter.from),
            "to": objects(&letter.to),
            "cc": objects(&letter.cc),
            "bcc": objects(&letter.bcc),
            "replyTo": letter.reply_to.first().map(|address| object(address)),
            "subject": letter.subject,
            "textContent": letter.text,
            "htmlContent": letter.html,
            "headers": headers,
            "attachment": files.collect::<Vec<_>>(),
        });
        let server =
            Address::parse("https://api.brevo.com/v3/smtp/email").expect("a constant address");
        let request = cx.post(&server).header("api-key", self.token.expose());
        let request = request.slow_for(cx.files.len());
        request.header("accept", "application/json").json(&compact(mail)).delivered(&KIND).await
    }
}
