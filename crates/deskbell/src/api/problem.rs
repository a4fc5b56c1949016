//! What the API answers when it does not do what it was asked: RFC 9457 problem details.

use std::{borrow::Cow, time::Duration};

use axum::response::{IntoResponse, Response};
use deskbell_core::{Invalid, run::RunRefusal};
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{intake::Refusal, journal::JournalError};

/// The sort of a problem that only a new start of the daemon solves, because its environment lacks a variable.
pub(super) const VARIABLE_MISSING: &str = "variable-missing";

/// Why a request was not done.
#[derive(Debug, Clone)]
pub struct Problem {
    body: Box<ProblemBody>,
    /// How the client can prove who it is, for a 401.
    challenge: Option<&'static str>,
}

/// A problem as it is written.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct ProblemBody {
    /// What sort of problem it is.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The sort in words.
    pub title: Cow<'static, str>,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong this time.
    pub detail: String,
    /// The field that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Its value, cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What would have been accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// How long to wait before the next try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// What the names of all sorts begin with.
const SORTS: &str = "urn:deskbell:problem:";

impl ProblemBody {
    /// Whether only a new start of the daemon solves it.
    pub(crate) fn is_of_environment(&self) -> bool {
        self.kind.strip_prefix(SORTS) == Some(VARIABLE_MISSING)
    }
}

impl Problem {
    /// A problem of the sort `urn:deskbell:problem:{name}`.
    pub fn new(status: StatusCode, name: &str, detail: impl Into<String>) -> Self {
        let body = ProblemBody {
            kind: format!("{SORTS}{name}").into(),
            title: status.canonical_reason().unwrap_or("Problem").into(),
            status: status.as_u16(),
            detail: detail.into(),
            field: None,
            value: None,
            expected: None,
            retry_after_ms: None,
        };
        Self { body: Box::new(body), challenge: None }
    }

    /// There is no such thing.
    pub fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", what)
    }

    /// The request does not prove who sent it.
    pub fn unauthorized(detail: &str, challenge: &'static str) -> Self {
        let problem = Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail);
        Self { challenge: Some(challenge), ..problem }
    }

    /// The same, worth another try after `wait`.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.body.retry_after_ms = Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// What is written.
    pub fn body(&self) -> &ProblemBody {
        &self.body
    }

    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.body.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<Invalid> for Problem {
    fn from(refusal: Invalid) -> Self {
        let mut problem =
            Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", refusal.to_string());
        problem.body.field = Some(refusal.field);
        problem.body.value = Some(refusal.value);
        problem.body.expected = Some(refusal.expected);
        problem
    }
}

impl From<RunRefusal> for Problem {
    fn from(refusal: RunRefusal) -> Self {
        Self::new(StatusCode::CONFLICT, "run-order", refusal.to_string())
    }
}

impl From<JournalError> for Problem {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Busy { retry_after } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", error.to_string())
                    .retry_after(retry_after)
            }
            error => Self::new(StatusCode::SERVICE_UNAVAILABLE, "journal", error.to_string()),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid(invalid) => invalid.into(),
            Refusal::Run(refusal) => refusal.into(),
            Refusal::Journal(error) => error.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.body).unwrap_or_default();
        let mut response = (self.status_code(), body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(millis) = self.body.retry_after_ms {
            headers.insert(header::RETRY_AFTER, millis.div_ceil(1_000).max(1).into());
        }
        if let Some(challenge) = self.challenge {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        response
    }
}

/// The answer where there is nothing.
pub async fn not_found(uri: http::Uri) -> Problem {
    Problem::not_found(format!("there is nothing at {}", deskbell_core::text::one_line(uri.path())))
}

/// The answer to a method that a path does not know.
pub async fn method_not_allowed(method: http::Method, uri: http::Uri) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method",
        format!(
            "{} does not know {method}; see /openapi.json",
            deskbell_core::text::one_line(uri.path())
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_journal_says_when_to_come_back_and_a_broken_one_does_not() {
        let busy = JournalError::Busy { retry_after: Duration::from_millis(1_200) };
        let response = Problem::from(busy).into_response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()[header::RETRY_AFTER], "2");
        for error in [
            JournalError::Full("a".to_owned()),
            JournalError::ReadOnly("a".to_owned()),
            JournalError::Failed("a".to_owned()),
        ] {
            let response = Problem::from(error).into_response();
            assert_eq!(response.status(), 503);
            assert!(!response.headers().contains_key(header::RETRY_AFTER));
        }
    }
}
