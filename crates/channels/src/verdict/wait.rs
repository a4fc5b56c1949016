//! How long a far end asks to be left alone, in the many forms in which they say it.

use std::time::Duration;

use jiff::{Timestamp, fmt::rfc2822};
use serde_json::Value;

use crate::reply::Reply;

/// Where a refusal says how long to wait.
#[derive(Debug, Clone, Copy)]
pub enum Wait {
    /// In the `Retry-After` header or nowhere.
    Header,
    /// In seconds at a place in the body.
    Seconds(&'static str),
    /// In milliseconds at a place in the body.
    Milliseconds(&'static str),
    /// In seconds, in a header of the far end's own.
    SecondsIn(&'static str),
    /// As a moment, in a header of the far end's own: a Unix time in seconds or milliseconds, or a date.
    UntilIn(&'static str),
    /// As a moment at a place in the body.
    Until(&'static str),
}

impl Wait {
    /// How long `reply` asks to be left alone; `answer` is its body, if that is JSON.
    pub(super) fn told(self, reply: &Reply, answer: Option<&Value>) -> Option<Duration> {
        let number = |pointer| {
            let value: &Value = answer?.pointer(pointer)?;
            value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
        };
        let seconds = match self {
            Self::Header => None,
            Self::Seconds(pointer) => number(pointer),
            Self::Milliseconds(pointer) => {
                number(pointer).map(|milliseconds| milliseconds / 1_000.0)
            }
            Self::SecondsIn(header) => {
                reply.header(header).and_then(|told| told.trim().parse().ok())
            }
            Self::UntilIn(header) => {
                reply.header(header).and_then(moment).and_then(|until| left(until, reply.at()))
            }
            Self::Until(pointer) => {
                let told = answer.and_then(|answer| answer.pointer(pointer)?.as_str());
                told.and_then(moment).and_then(|until| left(until, reply.at()))
            }
        };
        let told = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        told.or_else(|| reply.retry_after())
    }
}

/// From here on a Unix time is in milliseconds; in seconds this is the year 5138.
const MILLISECONDS: i64 = 100_000_000_000;

/// The moment that `told` names: a Unix time, a timestamp (RFC 3339) or a date as headers have it.
fn moment(told: &str) -> Option<Timestamp> {
    let told = told.trim();
    match told.parse::<i64>() {
        Ok(milliseconds) if milliseconds >= MILLISECONDS => {
            Timestamp::from_millisecond(milliseconds).ok()
        }
        Ok(seconds) => Timestamp::from_second(seconds).ok(),
        Err(_) => told.parse().ok().or_else(|| {
            // Some write the zone as `UTC`, which headers call `GMT`.
            let date = rfc2822::parse(&told.replace("UTC", "GMT")).ok()?;
            Some(date.timestamp())
        }),
    }
}

/// The seconds from `now` until `until`, unless that is over.
fn left(until: Timestamp, now: Timestamp) -> Option<f64> {
    Duration::try_from(until.duration_since(now)).ok().map(|left| left.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use deskbell_core::delivery::Failure;
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;
    use crate::{channel::SendContext, http::Http, verdict::Verdict};

    #[test]
    fn moments_are_read_in_every_form_that_far_ends_write_them() {
        #[track_caller]
        fn check(told: &str, seconds: Option<f64>) {
            let now = "2026-01-02T03:04:05Z".parse().unwrap();
            assert_eq!(moment(told).and_then(|until| left(until, now)), seconds, "{told}");
        }
        check("1767323087", Some(42.0));
        check("1767323087500", Some(42.5));
        check("2026-01-02T03:04:47.5Z", Some(42.5));
        check("Fri, 02 Jan 2026 03:04:47 GMT", Some(42.0));
        check("Fri, 02 Jan 2026 03:04:47 UTC", Some(42.0));
        check("1767323000", None);
        check("soon", None);
        check("99999999999999999999", None);
    }

    #[test]
    fn the_wait_is_read_where_the_far_end_says_it() {
        const NOW: i64 = 1_790_000_000;
        #[track_caller]
        fn check(wait: Wait, headers: &[(&'static str, &'static str)], seconds: Option<u64>) {
            let of = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            let headers: HeaderMap = headers.iter().map(of).collect();
            let delivery = "019a9c2e-5f00-7000-8000-000000000000.team".parse().unwrap();
            let now = Timestamp::from_second(NOW).unwrap();
            let cx = SendContext::new(delivery, now, Http::default());
            let body = br#"{"wait":7,"ms":1500}"#.to_vec();
            let reply = Reply::new(429, &headers, Ok(body), &cx);
            let failure = Verdict { wait, ..Verdict::STATUS }.judge("Far end", &reply);
            let retry_after = seconds.map(Duration::from_secs);
            assert_eq!(failure.unwrap_err().failure, Failure::Temporary { retry_after });
        }
        let standard = ("retry-after", "42");
        check(Wait::Header, &[standard], Some(42));
        check(Wait::Seconds("/wait"), &[standard], Some(7));
        check(Wait::Seconds("/missing"), &[standard], Some(42));
        check(Wait::SecondsIn("x-reset"), &[("x-reset", "9"), standard], Some(9));
        check(Wait::UntilIn("x-reset"), &[("x-reset", "1790000030"), standard], Some(30));
        for wait in [Wait::SecondsIn("x-reset"), Wait::UntilIn("x-reset")] {
            check(wait, &[standard], Some(42));
            check(wait, &[("x-reset", "soon"), standard], Some(42));
            check(wait, &[], None);
        }
        // A time that has passed says nothing.
        check(Wait::UntilIn("x-reset"), &[("x-reset", "1789999999")], None);
    }
}
