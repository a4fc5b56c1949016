use crate::{
    aws::{Signer, credentials},
    mail::MailAddress,
    mail_api::{compact, mail_options, people},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Ses>(About {
    name: "ses",
    title: "SES",
    docs: "https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html",
    transport: Transport::Http {
        accepted: r#"{"MessageId":"0107019b7c2e5f00-4711-000000"}"#,
        verdict: Verdict { reason: &["/message", "/Message"], ..Verdict::id("/MessageId") },
        // The words are those of <https://docs.aws.amazon.com/ses/latest/dg/troubleshoot-error-messages.html> and, of
        // the rate, of <https://docs.aws.amazon.com/ses/latest/dg/manage-sending-quotas-errors.html>.
        refusals: &[
            Refusal::permanent(400, r#"{"message":"Email address is not verified. The following identities failed the check in region EU-CENTRAL-1: bell@example.com"}"#),
            Refusal::permanent(403, r#"{"message":"The security token included in the request is invalid."}"#),
            Refusal::temporary(429, r#"{"message":"Maximum sending rate exceeded."}"#),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        access_key = "AKIAIOSFODNN7EXAMPLE"
        secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
        region = "eu-central-1"
        from = "Deskbell <bell@example.com>"
        to = ["ada@example.com", "Grace <grace@example.com>"]
    "#,
})
// 40 MB for the whole mail, in which three bytes of a file are four.
.with_files(Files::Within(25_000_000))
.with_urls(Urls {
    schemes: &["ses"],
    examples: &[
        "ses://bell@example.com/AKIAIOSFODNN7EXAMPLE/wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY/eu-central-1",
        "ses://bell@example.com/AKIAIOSFODNN7EXAMPLE/wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY/eu-central-1/ada@example.com?name=Deskbell&reply=joan@example.com",
        "ses://_?from=bell@example.com&access=AKIAIOSFODNN7EXAMPLE&secret=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY&region=eu-central-1&to=ada@example.com&cc=grace@example.com",
    ],
    read,
    ..Urls::NONE
});

mail_options! {
    /// Mail through AWS SES.
    ///
    /// 1. Verify the sender's address or domain in SES, in the region that you use. Set `from` and `region`.
    /// 2. In IAM create a user that may do `ses:SendEmail` and nothing else, with an access key. Set `access_key` and
    ///    `secret_key`.
    /// 3. Set `to` to the readers. An account in the sandbox reaches verified addresses only.
    struct Ses {
        /// Id of the access key.
        access_key: String,
        /// Secret of the access key.
        secret_key: Secret,
        /// Token of temporary credentials.
        session_token: Option<Secret>,
        /// Region, such as `eu-central-1`.
        region: String,
        /// Address of the service, if it is not the region's own: of an endpoint in your VPC, or of an emulator.
        api: Option<Address>,
    }
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let token = url.password.take();
    let user = url.user.take();
    let host = url.authority();
    let sender = user.zip(host).map(|(user, host)| format!("{user}@{host}"));
    let sender = url.parameter("from").or(sender).ok_or_else(|| url.wrong("names no sender"))?;
    let mut options = credentials(url, None)?;
    if let Some(token) = token {
        options.entry("session_token").or_insert_with(|| token.into());
    }
    let name = url.parameter("name");
    options.extend(people(url, &sender, name.as_deref(), None));
    Ok(options)
}

#[async_trait]
impl Channel for Ses {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let letter = self.letter(message, cx);
        let signer = Signer {
            access_key: &self.access_key,
            secret_key: &self.secret_key,
            session_token: self.session_token.as_ref(),
            region: &self.region,
            service: "ses",
            api: self.api.as_ref(),
        };
        let server =
            signer.server("email").ok_or_else(|| SendError::permanent("`region` is no region"))?;
        let address = server.at(&["v2", "email", "outbound-emails"]);
        let written = |addresses: &[&MailAddress]| -> Vec<String> {
            addresses.iter().map(|address| address.in_ascii()).collect()
        };
        let part = |text: &str| json!({ "Data": text, "Charset": "UTF-8" });
        let headers = letter.headers.iter();
        let headers = headers.map(|(name, value)| json!({ "Name": name, "Value": value }));
        let files = letter.files.iter().map(|file| {
            json!({
                "FileName": file.name,
                "ContentType": file.media_type,
                "ContentDisposition": "ATTACHMENT",
                // In the mail that SES writes; `SEVEN_BIT` is what it takes without it.
                "ContentTransferEncoding": "BASE64",
                "RawContent": file.base64,
            })
        });
        let simple = json!({
            "Subject": part(&letter.subject),
            "Body": { "Text": part(&letter.text), "Html": part(&letter.html) },
            "Headers": headers.collect::<Vec<_>>(),
            "Attachments": files.collect::<Vec<_>>(),
        });
        let destination = json!({
            "ToAddresses": written(&letter.to),
            "CcAddresses": written(&letter.cc),
            "BccAddresses": written(&letter.bcc),
        });
        let mail = json!({
            "FromEmailAddress": letter.from.in_ascii(),
            "Destination": compact(destination),
            "ReplyToAddresses": written(&letter.reply_to),
            "Content": { "Simple": compact(simple) },
        });
        let body = compact(mail).to_string();
        let request = cx.post(&address).slow_for(cx.files.len());
        let request = signer.sign(request, &address, "application/json", &body, cx.now);
        request.delivered(&KIND).await
    }
}
