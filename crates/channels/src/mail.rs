//! A message as a mail: addresses as users write them, and the MIME text.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    time::{Duration, SystemTime},
};

use aws_lc_rs::digest;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use deskbell_core::{
    Level, Message,
    text::{self, Unit},
};
use lettre::message::{
    Attachment, Mailbox, MultiPart, SinglePart,
    header::{ContentType, HeaderName, HeaderValue},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::{
    channel::{SendContext, SendError},
    files::ReadFile,
    render::Dialect,
};

/// The longest subject that is made of a text's first line, in characters.
const SUBJECT: usize = 78;

/// A mail address, with or without a name: `Deskbell <bell@example.com>`.
#[derive(Clone, PartialEq, Eq)]
pub struct MailAddress(Mailbox);

impl MailAddress {
    /// Reads an address.
    pub fn parse(text: &str) -> Option<Self> {
        text.trim().parse().ok().map(Self)
    }

    /// What stands after the `@`.
    fn domain(&self) -> &str {
        self.0.email.domain()
    }

    /// The address without the name.
    pub(crate) fn address(&self) -> &str {
        self.0.email.as_ref()
    }

    /// The address with its name, where other letters than those of ASCII are encoded (RFC 2047).
    pub(crate) fn in_ascii(&self) -> String {
        match self.name() {
            Some(name) if !name.is_ascii() => {
                format!("=?UTF-8?B?{}?= <{}>", BASE64_STANDARD.encode(name), self.address())
            }
            _ => self.to_string(),
        }
    }

    /// The name, if there is one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }
}

impl fmt::Display for MailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for MailAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).ok_or_else(|| {
            D::Error::custom("not a mail address, expected one such as `Bell <bell@example.com>`")
        })
    }
}

impl JsonSchema for MailAddress {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "MailAddress".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// The id that the mail for `cx` carries. It is the same in every attempt, so that servers and readers see a repeat.
pub(crate) fn message_id(cx: &SendContext, from: &MailAddress) -> String {
    format!("<{}@{}>", cx.id(), from.domain())
}

/// Who writes to whom, and what else the head of each mail is to say.
pub(crate) struct Head<'a> {
    pub(crate) from: &'a MailAddress,
    pub(crate) to: &'a [MailAddress],
    pub(crate) cc: &'a [MailAddress],
    pub(crate) bcc: &'a [MailAddress],
    pub(crate) reply_to: &'a [MailAddress],
    pub(crate) headers: &'a BTreeMap<String, String>,
}

/// `message` as a mail, as text and as HTML.
pub(crate) fn compose(
    message: &Message,
    cx: &SendContext,
    head: &Head<'_>,
) -> Result<lettre::Message, SendError> {
    let from = head.from;
    let mut mail = lettre::Message::builder()
        .from(from.0.clone())
        .subject(subject(message))
        .date(date(cx))
        .message_id(Some(message_id(cx, from)));
    for (name, value) in headers(message, cx, from) {
        mail = mail.raw_header(header(name, &value));
    }
    for (name, value) in head.headers {
        let wrong = |_| SendError::permanent("`headers` has a name that mails do not allow");
        let name = HeaderName::new_from_ascii(name.clone()).map_err(wrong)?;
        mail = mail.raw_header(HeaderValue::new(name, text::one_line(value).into_owned()));
    }
    mail = head.to.iter().fold(mail, |mail, to| mail.to(to.0.clone()));
    mail = head.cc.iter().fold(mail, |mail, to| mail.cc(to.0.clone()));
    // These are in the envelope and not in the mail.
    mail = head.bcc.iter().fold(mail, |mail, to| mail.bcc(to.0.clone()));
    mail = head.reply_to.iter().fold(mail, |mail, to| mail.reply_to(to.0.clone()));
    let part = |kind, body: String| SinglePart::builder().header(kind).body(body);
    let boundary = format!("deskbell-{}", fingerprint(&cx.id()));
    let body = MultiPart::alternative()
        .boundary(boundary.clone())
        .singlepart(part(ContentType::TEXT_PLAIN, Dialect::Plain.body(message)))
        .singlepart(part(ContentType::TEXT_HTML, page(message)));
    let body = if cx.files.is_empty() {
        body
    } else {
        let mixed =
            MultiPart::mixed().boundary(boundary.replacen('-', "-files-", 1)).multipart(body);
        cx.files.iter().fold(mixed, |mixed, file| mixed.singlepart(attachment(file)))
    };
    mail.multipart(body)
        .map_err(|error| SendError::permanent(format!("cannot write a mail: {error}")))
}

fn attachment(file: &ReadFile) -> SinglePart {
    let kind = ContentType::parse(&file.media_type).ok();
    let kind = kind.or_else(|| ContentType::parse("application/octet-stream").ok());
    let kind = kind.unwrap_or(ContentType::TEXT_PLAIN);
    Attachment::new(file.name.clone()).body(file.bytes.clone(), kind)
}

/// What the head of a mail says beside who writes to whom, when and on what.
pub(crate) fn headers(
    message: &Message,
    cx: &SendContext,
    from: &MailAddress,
) -> Vec<(&'static str, String)> {
    let (urgency, importance) = match message.level {
        Level::Debug | Level::Info | Level::Notice => ("3", "normal"),
        Level::Warning => ("2", "high"),
        Level::Error | Level::Critical | Level::Alert | Level::Emergency => ("1", "high"),
    };
    let mut headers = vec![
        ("X-Priority", urgency.to_owned()),
        ("Importance", importance.to_owned()),
        // Answering machines stay quiet (RFC 3834).
        ("Auto-Submitted", "auto-generated".to_owned()),
    ];
    if let Some(run) = &message.run {
        // No mail has this id; it is what holds the mails of a run together.
        let run = fingerprint(&format!("{} {}", cx.delivery.channel, run.id));
        let thread = format!("<run.{run}@{}>", from.domain());
        headers.extend([("In-Reply-To", thread.clone()), ("References", thread)]);
    }
    headers
}

/// The title, or the beginning of the text.
pub(crate) fn subject(message: &Message) -> String {
    let title = message.title.clone().unwrap_or_else(|| {
        let plain = Dialect::Plain.body(message);
        let line = plain.lines().find(|line| !line.trim().is_empty()).unwrap_or("Deskbell");
        text::cut(line.trim(), SUBJECT, Unit::Characters)
    });
    // A line break in a header would begin another one.
    text::one_line(&title).into_owned()
}

/// The text as a page.
pub(crate) fn page(message: &Message) -> String {
    format!(
        "<!doctype html>\n<html><head><meta charset=\"utf-8\"></head><body>\n{}\n</body></html>\n",
        Dialect::Mail.body(message)
    )
}

fn date(cx: &SendContext) -> SystemTime {
    let seconds = u64::try_from(cx.now.as_second()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Whether `name` may stand before a colon in the head of a mail, and is none that the mail has anyway.
pub(crate) fn is_header(name: &str) -> bool {
    const OURS: [&str; 10] = [
        "from",
        "to",
        "cc",
        "bcc",
        "subject",
        "date",
        "message-id",
        "mime-version",
        "content-type",
        "content-transfer-encoding",
    ];
    HeaderName::new_from_ascii(name.to_owned()).is_ok()
        && !OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours))
}

fn header(name: &'static str, value: &str) -> HeaderValue {
    HeaderValue::new(HeaderName::new_from_ascii_str(name), value.to_owned())
}

/// A short name for `text` that is always the same.
fn fingerprint(text: &str) -> String {
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    digest.as_ref().iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}
