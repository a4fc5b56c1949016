//! What a far end answered, and what that means: said here, once, for all channels.

use std::{sync::Arc, time::Duration};

use deskbell_core::delivery::{Failure, Receipt};
use http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use jiff::{Timestamp, fmt::rfc2822};
use serde_json::Value;

use crate::{
    channel::{SendContext, SendError},
    secret,
};

/// The longest answer that is read, in bytes.
pub const REPLY_LIMIT: usize = 1024 * 1024;

/// What a far end answered.
#[derive(Debug)]
pub struct Reply {
    status: u16,
    /// How long the far end asks to wait.
    retry_after: Option<Duration>,
    /// The body as far as it arrived. Where the status says everything, a body that breaks off changes nothing.
    body: Result<Vec<u8>, SendError>,
    secrets: Arc<[String]>,
    headers: HeaderMap,
    at: Timestamp,
}

impl Reply {
    pub(crate) fn new(
        status: u16,
        headers: &HeaderMap,
        body: Result<Vec<u8>, SendError>,
        cx: &SendContext,
    ) -> Self {
        let retry_after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = retry_after.and_then(|wish| wait(wish, cx.now));
        let (secrets, headers) = (Arc::clone(&cx.secrets), headers.clone());
        Self { status, retry_after, body, secrets, headers, at: cx.now }
    }

    /// Whether the status means success.
    pub fn is_2xx(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The header called `name`.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// How long the `Retry-After` header asks to wait.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// When it was asked for.
    pub(crate) const fn at(&self) -> Timestamp {
        self.at
    }

    /// The body, if it is text.
    pub fn text(&self) -> Option<&str> {
        str::from_utf8(self.body.as_ref().ok()?).ok()
    }

    /// What the far end told, fit for an error: without secrets, on one line, not too long.
    pub(crate) fn quoted(&self, told: &str) -> String {
        secret::excerpt(told, &self.secrets)
    }

    /// The status.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// This answer if it is 2xx.
    ///
    /// # Errors
    /// Says what another status means.
    pub fn accepted(self) -> Result<Self, SendError> {
        if self.is_2xx() { Ok(self) } else { Err(self.failure()) }
    }

    /// What the status means where it is not 2xx.
    pub fn failure(&self) -> SendError {
        let reason = StatusCode::from_u16(self.status)
            .ok()
            .and_then(|status| status.canonical_reason())
            .unwrap_or("unknown");
        let mut message = format!("the far end answered {} {reason}", self.status);
        if (300..400).contains(&self.status) {
            message.push_str("; redirects are not followed, set the final address");
        } else if let Some(excerpt) = self.excerpt() {
            message = format!("{message}: {excerpt}");
        }
        match self.status {
            408 | 425 | 429 | 500.. => {
                let failure = Failure::Temporary { retry_after: self.retry_after };
                SendError { failure, message }
            }
            _ => SendError::permanent(message),
        }
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// A far end that speaks JSON and answers something else was not reached: some proxy or login page was.
    pub fn json(&self) -> Result<Value, SendError> {
        let body = self.body.as_ref().map_err(Clone::clone)?;
        serde_json::from_slice(body).map_err(|_| {
            SendError::temporary(format!("the far end answered {} without JSON", self.status))
        })
    }

    /// This answer with a body that `read` makes of its text, for far ends that do not speak JSON.
    pub(crate) fn reading(self, read: impl FnOnce(&str) -> Value) -> Self {
        let body = match self.text().map(read) {
            Some(value) => Ok(value.to_string().into_bytes()),
            None => self.body,
        };
        Self { body, ..self }
    }

    /// The receipt whose message id is at `pointer` in the body.
    ///
    /// # Errors
    /// A far end that gives no id did not take the message.
    pub fn receipt(&self, pointer: &str) -> Result<Receipt, SendError> {
        let receipt = receipt(&self.json()?, pointer);
        match receipt.message_id {
            Some(_) => Ok(receipt),
            None => Err(SendError::temporary("the far end answered without a message id")),
        }
    }

    /// The start of a body that is text, on one line.
    fn excerpt(&self) -> Option<String> {
        let body = self.text()?.trim();
        // A page is made for browsers and says nothing in its first characters.
        let readable = !body.is_empty() && !body.starts_with('<');
        readable.then(|| self.quoted(body))
    }
}

/// The receipt whose message id is at `pointer` in `answer`, as text or number.
pub fn receipt(answer: &Value, pointer: &str) -> Receipt {
    let message_id = match answer.pointer(pointer) {
        Some(Value::String(id)) => Some(id.clone()),
        Some(Value::Number(id)) => Some(id.to_string()),
        _ => None,
    };
    Receipt { message_id }
}

/// How long a `Retry-After` header asks to wait: seconds, or a date (RFC 9110, section 10.2.3).
fn wait(wish: &str, now: Timestamp) -> Option<Duration> {
    let wish = wish.trim();
    if let Ok(seconds) = wish.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = rfc2822::parse(wish).ok()?.timestamp();
    Duration::try_from(until.duration_since(now)).ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::http::Http;

    fn reply(status: u16, retry_after: Option<&'static str>, body: &str) -> Reply {
        let mut headers = HeaderMap::new();
        if let Some(wish) = retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(wish));
        }
        let delivery = "019a9c2e-5f00-7000-8000-000000000000.team".parse().unwrap();
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let cx = SendContext::new(delivery, now, Http::default());
        Reply::new(status, &headers, Ok(body.as_bytes().to_vec()), &cx)
    }

    #[test]
    fn a_status_means_the_same_everywhere() {
        #[track_caller]
        fn check(status: u16, failure: Option<Failure>) {
            assert_eq!(reply(status, None, "").accepted().err().map(|e| e.failure), failure);
        }
        const TEMPORARY: Option<Failure> = Some(Failure::Temporary { retry_after: None });
        for status in [200, 201, 204] {
            check(status, None);
        }
        for status in [408, 425, 429, 500, 502, 503, 504, 507] {
            check(status, TEMPORARY);
        }
        for status in [301, 302, 307, 400, 401, 403, 404, 410, 413, 422] {
            check(status, Some(Failure::Permanent));
        }
    }

    #[test]
    fn retry_after_is_read_as_seconds_and_as_a_date() {
        #[track_caller]
        fn check(wish: &'static str, seconds: Option<u64>) {
            let expected = Failure::Temporary { retry_after: seconds.map(Duration::from_secs) };
            assert_eq!(reply(429, Some(wish), "").failure().failure, expected, "{wish}");
        }
        check("42", Some(42));
        check("Fri, 02 Jan 2026 03:05:05 GMT", Some(60));
        check("Fri, 02 Jan 2026 03:00:05 GMT", None);
        check("-5", None);
        check("soon", None);
        check("1e300", None);
    }

    #[test]
    fn refusals_are_quoted_on_one_line_and_pages_are_not() {
        assert_eq!(
            reply(400, None, "{\"error\":\"no\n\u{1b}[31m\"}").failure().message,
            r#"the far end answered 400 Bad Request: {"error":"no\n\u{1b}[31m"}"#
        );
        let page = reply(502, None, "<html>Bad Gateway</html>").failure().message;
        assert_eq!(page, "the far end answered 502 Bad Gateway");
    }

    #[test]
    fn a_page_is_not_json_row_109() {
        let error = reply(200, None, "<html>log in</html>").json().unwrap_err();
        assert_eq!(error.failure, Failure::Temporary { retry_after: None });
    }
}
