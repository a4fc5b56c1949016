use std::collections::BTreeMap;

use crate::{
    mail_api::{compact, mail_options, read, texts},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Resend>(About {
    name: "resend",
    title: "Resend",
    docs: "https://resend.com/docs/api-reference/emails/send-email",
    transport: Transport::Http {
        accepted: r#"{"id":"49a3999c-0ce1-4ea6-ab68-afcd6dc2e794"}"#,
        verdict: Verdict {
            code: Some("/name"),
            passing: &[
                Passing::soon("concurrent_idempotent_requests"),
                Passing::soon("rate_limit_exceeded"),
                Passing::after(3_600, "daily_quota_exceeded"),
            ],
            ..Verdict::id("/id")
        },
        refusals: &[
            Refusal::permanent(401, r#"{"statusCode":401,"message":"API key is invalid","name":"validation_error"}"#),
            Refusal::permanent(403, r#"{"statusCode":403,"message":"The example.com domain is not verified. Please, add and verify your domain on https://resend.com/domains","name":"validation_error"}"#),
            Refusal::permanent(422, r#"{"statusCode":422,"message":"Invalid `to` field. The email address needs to follow the `email@example.com` or `Name <email@example.com>` format.","name":"validation_error"}"#),
            Refusal::temporary(429, r#"{"statusCode":429,"message":"Too many requests. You can only make 2 requests per second.","name":"rate_limit_exceeded"}"#),
            Refusal::temporary(409, r#"{"statusCode":409,"message":"Same idempotency key used while original request is still in progress.","name":"concurrent_idempotent_requests"}"#),
            Refusal::after(3_600, 429, r#"{"statusCode":429,"message":"You have reached your daily email sending quota.","name":"daily_quota_exceeded"}"#),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        token = "re_K4t7gh9f_2Lw8Zb5Nq1Xc6Vm3"
        from = "Deskbell <bell@example.com>"
        to = ["ada@example.com", "Grace <grace@example.com>"]
    "#,
})
// 40 MB for the whole mail, in which three bytes of a file are four.
.with_files(Files::Within(25_000_000))
.with_urls(Urls {
    schemes: &["resend"],
    examples: &[
        "resend://re_K4t7gh9f_2Lw8Zb5Nq1Xc6Vm3:bell@example.com",
        "resend://re_K4t7gh9f_2Lw8Zb5Nq1Xc6Vm3:bell@example.com/ada@example.com?name=Deskbell&reply=joan@example.com",
        "resend://ada@example.com?apikey=re_K4t7gh9f_2Lw8Zb5Nq1Xc6Vm3&to=grace@example.com&cc=joan@example.com",
    ],
    read,
    ..Urls::NONE
});

mail_options! {
    /// Mail through [Resend](https://resend.com).
    ///
    /// 1. Add your domain under Domains and verify it. Set `from` to an address there.
    /// 2. API Keys → Create API Key, with sending access. Set `token` to the key.
    /// 3. Set `to` to the readers.
    ///
    /// A mail that is sent again within a day arrives once.
    struct Resend {
        /// API key, which begins with `re_`.
        token: Secret,
    }
}

#[async_trait]
impl Channel for Resend {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let letter = self.letter(message, cx);
        let headers: BTreeMap<_, _> = letter.headers.iter().cloned().collect();
        let files = letter.files.iter().map(|file| {
            json!({ "filename": file.name, "content_type": file.media_type, "content": file.base64 })
        });
        let mail = json!({
            "from": letter.from.to_string(),
            "to": texts(&letter.to),
            "cc": texts(&letter.cc),
            "bcc": texts(&letter.bcc),
            "reply_to": texts(&letter.reply_to),
            "subject": letter.subject,
            "text": letter.text,
            "html": letter.html,
            "headers": headers,
            "attachments": files.collect::<Vec<_>>(),
        });
        let server = Address::parse("https://api.resend.com/emails").expect("a constant address");
        let request = cx.post(&server).bearer(Some(&self.token)).slow_for(cx.files.len());
        request.header("idempotency-key", &cx.id()).json(&compact(mail)).delivered(&KIND).await
    }
}
