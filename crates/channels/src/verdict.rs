//! What a far end's answer means: declared by the kind as data, and read here.
//!
//! Many far ends refuse under status 200, so the status alone is no success where the body says more.

mod wait;

use std::time::Duration;

use deskbell_core::delivery::{Failure, Receipt};
use serde_json::Value;

pub use self::wait::Wait;
use crate::{
    channel::{ChannelKind, SendError, Transport},
    reply::{Reply, receipt},
};

/// How a far end says that it took a message, and what its refusals mean.
///
/// Places in a body are JSON pointers (RFC 6901).
#[derive(Debug, Clone, Copy)]
pub struct Verdict {
    /// What an answer has that means success, beside a status of 2xx.
    pub success: Success,
    /// Where an accepted answer has the id of the message, if an edit needs one.
    pub id: Option<&'static str>,
    /// Where a refusal has its code, if that is not the field that means success.
    pub code: Option<&'static str>,
    /// Where a refusal explains itself; the first place that has a text counts.
    pub reason: &'static [&'static str],
    /// The codes of refusals that pass by themselves, whatever the status.
    pub passing: &'static [Passing],
    /// Where a refusal says how long to wait, beside the `Retry-After` header.
    pub wait: Wait,
    /// What a user can do about a code.
    pub hints: &'static [(&'static str, &'static str)],
}

/// What means success, beside a status of 2xx.
#[derive(Debug, Clone, Copy)]
pub enum Success {
    /// The status alone.
    Status,
    /// A body without a word: what a page of somebody in between never is.
    Empty,
    /// The status, unless the body is a page: somebody in between answered then.
    NoPage,
    /// A body that is a JSON object, whatever its fields.
    Object,
    /// A body that is a JSON list, whatever it holds.
    List,
    /// A body that is this many hexadecimal digits.
    Hex(usize),
    /// A body that is one of these words.
    Body(&'static [&'static str]),
    /// A body with this text in it.
    Holding(&'static str),
    /// A field of the body that is one of these values, as JSON writes them without quotes.
    Field(&'static str, &'static [&'static str]),
    /// A field of the body that is there, usually the id of the message.
    Present(&'static str),
}

/// A refusal that passes by itself.
#[derive(Debug, Clone, Copy)]
pub struct Passing {
    /// Its code.
    pub code: &'static str,
    /// How long to wait, in seconds, where the far end does not say; 0 leaves it to the retry.
    pub wait_s: u64,
}

impl Passing {
    /// A refusal that passes at some time.
    pub const fn soon(code: &'static str) -> Self {
        Self { code, wait_s: 0 }
    }

    /// A refusal that passes after `wait_s` seconds.
    pub const fn after(wait_s: u64, code: &'static str) -> Self {
        Self { code, wait_s }
    }
}

/// A real answer that is no success, for the conformance suite.
#[derive(Debug, Clone, Copy)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: &'static str,
    /// What it means.
    pub meaning: Meaning,
}

/// What a refusal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// It does not pass: a bad token, an unknown chat.
    Permanent,
    /// It passes at some time.
    Temporary,
    /// It passes after this many seconds.
    After(u64),
}

impl Refusal {
    /// A refusal for good.
    pub const fn permanent(status: u16, body: &'static str) -> Self {
        Self { status, body, meaning: Meaning::Permanent }
    }

    /// A refusal that passes.
    pub const fn temporary(status: u16, body: &'static str) -> Self {
        Self { status, body, meaning: Meaning::Temporary }
    }

    /// A refusal that passes after `seconds`.
    pub const fn after(seconds: u64, status: u16, body: &'static str) -> Self {
        Self { status, body, meaning: Meaning::After(seconds) }
    }
}

impl Meaning {
    /// The failure that stands for it.
    pub const fn failure(self) -> Failure {
        match self {
            Self::Permanent => Failure::Permanent,
            Self::Temporary => Failure::Temporary { retry_after: None },
            Self::After(seconds) => {
                Failure::Temporary { retry_after: Some(Duration::from_secs(seconds)) }
            }
        }
    }
}

impl Verdict {
    /// A far end whose status says everything.
    pub const STATUS: Self = Self {
        success: Success::Status,
        id: None,
        code: None,
        reason: &["/message", "/error", "/detail", "/description"],
        passing: &[],
        wait: Wait::Header,
        hints: &[],
    };

    /// A far end whose answers are not documented: its status says everything, unless the body is a page.
    pub const NO_PAGE: Self = Self { success: Success::NoPage, ..Self::STATUS };

    /// A far end that says `value` at `pointer` when it took a message.
    pub const fn field(pointer: &'static str, values: &'static [&'static str]) -> Self {
        Self { success: Success::Field(pointer, values), ..Self::STATUS }
    }

    /// A far end that gives the message an id, at `pointer`.
    pub const fn id(pointer: &'static str) -> Self {
        Self { success: Success::Present(pointer), id: Some(pointer), ..Self::STATUS }
    }

    /// What `reply` means, as an answer of the far end called `title`.
    ///
    /// # Errors
    /// Says why the message was not taken.
    pub fn judge(&self, title: &str, reply: &Reply) -> Result<Receipt, SendError> {
        let answer = reply.json();
        let code = self.code_of(reply, answer.as_ref().ok());
        let passing = self.passing.iter().find(|passing| code.as_deref() == Some(passing.code));
        if let Some(passing) = passing {
            let usual = (passing.wait_s > 0).then(|| Duration::from_secs(passing.wait_s));
            let retry_after = self.wait.told(reply, answer.as_ref().ok()).or(usual);
            let message = self.refused(title, reply, code.as_deref(), answer.as_ref().ok());
            return Err(SendError { failure: Failure::Temporary { retry_after }, message });
        }
        if !reply.is_2xx() {
            let by_status = reply.failure();
            let Ok(answer) = &answer else { return Err(by_status) };
            let failure = match by_status.failure {
                Failure::Temporary { .. } => {
                    Failure::Temporary { retry_after: self.wait.told(reply, Some(answer)) }
                }
                Failure::Permanent => Failure::Permanent,
            };
            let message = match self.reason_of(reply, answer) {
                Some(_) => self.refused(title, reply, code.as_deref(), Some(answer)),
                None => by_status.message,
            };
            return Err(SendError { failure, message });
        }
        let is_success = match self.success {
            Success::Status => true,
            Success::Empty => reply.text().is_some_and(|text| text.trim().is_empty()),
            Success::NoPage => reply.text().is_some_and(|text| !text.trim_start().starts_with('<')),
            Success::Object => answer.as_ref().is_ok_and(Value::is_object),
            Success::List => answer.as_ref().is_ok_and(Value::is_array),
            Success::Hex(digits) => reply.text().map(str::trim).is_some_and(|text| {
                text.len() == digits && text.chars().all(|c| c.is_ascii_hexdigit())
            }),
            Success::Body(words) => reply.text().is_some_and(|text| words.contains(&text.trim())),
            Success::Holding(text) => reply.text().is_some_and(|body| body.contains(text)),
            Success::Field(pointer, values) => {
                let found = answer.clone()?.pointer(pointer).and_then(written);
                let Some(found) = found else { return Err(Self::without_verdict(title)) };
                values.contains(&found.as_str())
            }
            Success::Present(pointer) => {
                let answer = answer.clone()?;
                if answer.pointer(pointer).and_then(written).is_some() {
                    true
                } else if self.reason_of(reply, &answer).is_some() {
                    false
                } else {
                    return Err(Self::without_verdict(title));
                }
            }
        };
        if !is_success {
            let answer = answer.ok();
            // Without a word of the far end's own, it is a page of somebody in between.
            let has_code =
                code.as_deref().is_some_and(|code| !code.is_empty() && !code.starts_with('<'));
            let reason = answer.as_ref().and_then(|answer| self.reason_of(reply, answer));
            if !has_code && reason.is_none() {
                return Err(Self::without_verdict(title));
            }
            return Err(SendError::permanent(self.refused(
                title,
                reply,
                code.as_deref(),
                answer.as_ref(),
            )));
        }
        Ok(match (self.id, answer) {
            (Some(pointer), Ok(answer)) => receipt(&answer, pointer),
            _ => Receipt::default(),
        })
    }

    /// A far end that did not say what it says was not reached: some proxy or login page was.
    fn without_verdict(title: &str) -> SendError {
        SendError::temporary(format!("{title} answered without a verdict"))
    }

    fn code_of(&self, reply: &Reply, answer: Option<&Value>) -> Option<String> {
        let pointer = match (self.code, self.success) {
            (Some(pointer), _) | (None, Success::Field(pointer, _)) => pointer,
            (None, Success::Body(_)) => return reply.text().map(|text| text.trim().to_owned()),
            (
                None,
                Success::Status
                | Success::Empty
                | Success::NoPage
                | Success::Object
                | Success::List
                | Success::Hex(_)
                | Success::Holding(_)
                | Success::Present(_),
            ) => return None,
        };
        answer?.pointer(pointer).and_then(written)
    }

    fn reason_of(&self, reply: &Reply, answer: &Value) -> Option<String> {
        let told = self.reason.iter().find_map(|pointer| answer.pointer(pointer)?.as_str())?;
        Some(reply.quoted(told))
    }

    fn refused(
        &self,
        title: &str,
        reply: &Reply,
        code: Option<&str>,
        answer: Option<&Value>,
    ) -> String {
        let mut message = match code {
            Some(code) if !code.is_empty() => {
                format!("{title} refused with {}", reply.quoted(code))
            }
            _ => format!("{title} refused"),
        };
        match answer.and_then(|answer| self.reason_of(reply, answer)) {
            Some(reason) if Some(reason.as_str()) != code => message.extend([": ", &reason]),
            _ => {}
        }
        if let Some((_, hint)) = self.hints.iter().find(|(known, _)| Some(*known) == code) {
            message.extend(["; ", hint]);
        }
        message
    }

    /// What means success, for the documentation.
    pub fn described(&self) -> String {
        let field =
            |pointer: &str| format!("`{}`", pointer.trim_start_matches('/').replace('/', "."));
        let quoted = |words: &[&str]| {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ")
        };
        match self.success {
            Success::Status => "status 200 to 299".to_owned(),
            Success::Empty => "status 200 to 299 and an empty body".to_owned(),
            Success::NoPage => "status 200 to 299 and no web page".to_owned(),
            Success::Object => "status 200 to 299 and a JSON object".to_owned(),
            Success::List => "status 200 to 299 and a JSON list".to_owned(),
            Success::Hex(digits) => {
                format!("status 200 to 299 and {digits} hexadecimal digits")
            }
            Success::Body(words) => format!("status 200 to 299 and the body {}", quoted(words)),
            Success::Holding(text) => format!("status 200 to 299 and a body with `{text}`"),
            Success::Field(pointer, values) => {
                format!("status 200 to 299 and {} is {}", field(pointer), quoted(values))
            }
            Success::Present(pointer) => {
                format!("status 200 to 299 and a body with {}", field(pointer))
            }
        }
    }
}

impl ChannelKind {
    /// How this kind's far end says that it took a message; the status where nothing is declared.
    pub const fn verdict(&self) -> &Verdict {
        match &self.about.transport {
            Transport::Http { verdict, .. } | Transport::WebSocket { verdict } => verdict,
            _ => &Verdict::STATUS,
        }
    }
}

/// A value as text: what JSON writes, without quotes; nothing for what is missing or empty.
fn written(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Array(_) | Value::Object(_) => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::{catalog, channel::SendContext, http::Http};

    /// What becomes of a message to which the far end of `kind` answers 200 with `body`.
    fn judged(kind: &str, body: &str) -> Result<Receipt, SendError> {
        let delivery = "019a9c2e-5f00-7000-8000-000000000000.team".parse().unwrap();
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let cx = SendContext::new(delivery, now, Http::default());
        let reply = Reply::new(200, &HeaderMap::new(), Ok(body.as_bytes().to_vec()), &cx);
        catalog::kind(kind).unwrap().verdict().judge(kind, &reply)
    }

    /// Rows 108 and 109: what was taken is not sent again.
    #[test]
    fn a_mail_that_may_be_late_is_taken() {
        let delayed = r#"{"Message":"Message accepted, but delivery may be delayed.","MessageID":"38360f97"}"#;
        assert_eq!(judged("postmark", delayed).unwrap().message_id.as_deref(), Some("38360f97"));
        let refused = r#"{"ErrorCode":406,"Message":"inactive"}"#;
        assert_eq!(judged("postmark", refused).unwrap_err().failure, Failure::Permanent);
    }

    #[test]
    fn a_far_end_that_says_neither_yes_nor_no_was_not_reached() {
        for (kind, body) in [("signl4", "[]"), ("home_assistant", "{}"), ("threema", "0123")] {
            let failure = judged(kind, body).unwrap_err().failure;
            assert_eq!(failure, Failure::Temporary { retry_after: None }, "{kind}");
        }
    }
}
