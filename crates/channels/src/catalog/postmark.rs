use crate::{
    mail_api::{compact, mail_options, read, texts},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Postmark>(About {
    name: "postmark",
    title: "Postmark",
    docs: "https://postmarkapp.com/developer/api/email-api",
    transport: Transport::Http {
        accepted: r#"{"To":"ada@example.com","SubmittedAt":"2026-01-02T03:04:05.0000000-05:00","MessageID":"b7bc2f4a-e38e-4336-af7d-e6c392c2f817","ErrorCode":0,"Message":"OK"}"#,
        verdict: Verdict {
            code: Some("/ErrorCode"),
            reason: &["/Message"],
            // Maintenance, and too many requests.
            passing: &[Passing::soon("100"), Passing::soon("429")],
            hints: &[
                ("10", "set `token` to the token of a server, not of the account"),
                ("406", "activate the reader again in Postmark's suppressions"),
            ],
            // Not the code: "Message accepted, but delivery may be delayed." comes without one.
            ..Verdict::id("/MessageID")
        },
        refusals: &[
            Refusal::permanent(401, r#"{"ErrorCode":10,"Message":"No Account or Server API tokens were supplied in the HTTP headers."}"#),
            Refusal::permanent(422, r#"{"ErrorCode":300,"Message":"Invalid 'To' address: 'ada'."}"#),
            Refusal::permanent(422, r#"{"ErrorCode":406,"Message":"You tried to send to recipient(s) that have been marked as inactive. Found inactive addresses: ada@example.com. Inactive recipients are ones that have generated a hard bounce, a spam complaint, or a manual suppression."}"#),
            // The codes are documented, <https://postmarkapp.com/developer/api/overview#error-codes>, in other words.
            Refusal::temporary(429, r#"{"ErrorCode":429,"Message":"Rate limit exceeded"}"#),
            Refusal::temporary(503, r#"{"ErrorCode":100,"Message":"The Postmark API is offline for maintenance."}"#),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        token = "5f1a3c9e-7b2d-4e8f-a6c0-9d4b2e7f1a3c"
        from = "Deskbell <bell@example.com>"
        to = ["ada@example.com", "Grace <grace@example.com>"]
    "#,
})
// 10 MB for the whole mail, in which three bytes of a file are four.
.with_files(Files::Within(7_000_000))
.with_urls(Urls {
    schemes: &["postmark"],
    examples: &[
        "postmark://5f1a3c9e-7b2d-4e8f-a6c0-9d4b2e7f1a3c:bell@example.com",
        "postmark://5f1a3c9e-7b2d-4e8f-a6c0-9d4b2e7f1a3c:bell@example.com/ada@example.com?name=Deskbell&reply=joan@example.com",
        "postmark://5f1a3c9e-7b2d-4e8f-a6c0-9d4b2e7f1a3c:bell@example.com?to=ada@example.com&cc=grace@example.com&bcc=joan@example.com",
    ],
    read,
    ..Urls::NONE
});

mail_options! {
    /// Mail through [Postmark](https://postmarkapp.com).
    ///
    /// 1. Verify a sender signature or a domain and set `from` to an address of it.
    /// 2. Set `token` to the server's token: the server's page, API Tokens.
    /// 3. Set `to` to the readers; with those of `cc` and `bcc` at most 50.
    struct Postmark {
        /// Token of the server.
        token: Secret,
        /// Message stream to send in; without it the default one for transactional mail.
        stream: Option<String>,
    }
}

#[async_trait]
impl Channel for Postmark {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let letter = self.letter(message, cx);
        let headers =
            letter.headers.iter().map(|(name, value)| json!({ "Name": name, "Value": value }));
        let joined =
            |addresses: &[_]| Some(texts(addresses).join(",")).filter(|all| !all.is_empty());
        let files = letter.files.iter().map(|file| {
            json!({ "Name": file.name, "ContentType": file.media_type, "Content": file.base64 })
        });
        let mail = json!({
            "From": letter.from.to_string(),
            "To": joined(&letter.to),
            "Cc": joined(&letter.cc),
            "Bcc": joined(&letter.bcc),
            "ReplyTo": joined(&letter.reply_to),
            "Subject": letter.subject,
            "TextBody": letter.text,
            "HtmlBody": letter.html,
            "MessageStream": self.stream,
            "Headers": headers.collect::<Vec<_>>(),
            "Attachments": files.collect::<Vec<_>>(),
        });
        let server =
            Address::parse("https://api.postmarkapp.com/email").expect("a constant address");
        let request = cx.post(&server).header("x-postmark-server-token", self.token.expose());
        let request = request.slow_for(cx.files.len());
        request.header("accept", "application/json").json(&compact(mail)).delivered(&KIND).await
    }
}
