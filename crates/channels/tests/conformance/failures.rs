//! What a failure means, whatever the kind.

use std::{
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use deskbell_channels::{
    ChannelKind, SendError, Transport, deliver, from_url,
    verdict::{Success, Wait},
};
use deskbell_core::{
    delivery::{Failure, Receipt},
    event::Format,
};
use tokio::net::TcpSocket;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate, matchers::any};

use crate::{
    sample::{context, message},
    stand_in::{accepted, attempt, attempt_at_port, attempt_with, block_on, example},
};

const TEMPORARY: Failure = Failure::Temporary { retry_after: None };

fn outcome(kind: &'static ChannelKind, reply: ResponseTemplate) -> Result<Receipt, SendError> {
    attempt(kind, &message("text", Format::Text), reply).0
}

#[track_caller]
fn fails_as(failure: Failure, outcome: Result<Receipt, SendError>) {
    let error = outcome.expect_err("a failure counted as success");
    assert_eq!(error.failure, failure, "{error}");
    assert!(!error.message.is_empty());
}

pub(crate) fn success_is_success(kind: &'static ChannelKind) {
    outcome(kind, accepted(kind)).unwrap();
}

pub(crate) fn server_errors_are_temporary(kind: &'static ChannelKind) {
    for status in [500, 502, 503, 504] {
        fails_as(TEMPORARY, outcome(kind, ResponseTemplate::new(status)));
    }
}

pub(crate) fn rejections_are_permanent(kind: &'static ChannelKind) {
    for status in [400, 401, 403, 404] {
        fails_as(Failure::Permanent, outcome(kind, ResponseTemplate::new(status)));
    }
}

/// A redirect could carry a token to another host.
pub(crate) fn redirects_are_not_followed(kind: &'static ChannelKind) {
    let elsewhere =
        ResponseTemplate::new(307).insert_header("location", "https://elsewhere.example.com/");
    let (outcome, requests) = attempt(kind, &message("text", Format::Text), elsewhere);
    fails_as(Failure::Permanent, outcome);
    assert_eq!(requests.len(), 1);
}

pub(crate) fn retry_after_is_honoured(kind: &'static ChannelKind) {
    let asked = Failure::Temporary { retry_after: Some(Duration::from_secs(42)) };
    for (status, body) in [(429, ""), (503, ""), (429, "{}")] {
        let reply = ResponseTemplate::new(status).set_body_raw(body, "application/json");
        fails_as(asked, outcome(kind, reply.clone().insert_header("retry-after", "42")));
        let date = "Fri, 02 Jan 2026 03:04:47 GMT";
        fails_as(asked, outcome(kind, reply.insert_header("retry-after", date)));
    }
}

/// Some far ends say in a way of their own how long to wait.
pub(crate) fn its_own_wait_is_honoured(kind: &'static ChannelKind) {
    let reply = ResponseTemplate::new(429);
    // 42 seconds from now on.
    let (moment, date) = ("1767323087", "Fri, 02 Jan 2026 03:04:47 GMT");
    let said_at = |pointer: &str, value: serde_json::Value| {
        let names = pointer.rsplit('/').filter(|name| !name.is_empty());
        names.fold(value, |inside, name| serde_json::json!({ name: inside }))
    };
    let reply = match kind.verdict().wait {
        Wait::Header => return,
        Wait::SecondsIn(header) => reply.insert_header(header, "42").set_body_string("{}"),
        Wait::UntilIn(header) => reply.insert_header(header, moment).set_body_string("{}"),
        Wait::Seconds(pointer) => reply.set_body_json(said_at(pointer, 42.into())),
        Wait::Milliseconds(pointer) => reply.set_body_json(said_at(pointer, 42_000.into())),
        Wait::Until(pointer) => reply.set_body_json(said_at(pointer, date.into())),
    };
    let asked = Failure::Temporary { retry_after: Some(Duration::from_secs(42)) };
    fails_as(asked, outcome(kind, reply));
}

/// Rows 108 and 109: what the service really answers means what the service means by it.
pub(crate) fn refusals_mean_what_the_far_end_means(kind: &'static ChannelKind) {
    let Transport::Http { refusals, .. } = kind.about.transport else { return };
    for refusal in refusals {
        let reply = ResponseTemplate::new(refusal.status);
        let reply = reply.set_body_raw(refusal.body, "application/json");
        let error = outcome(kind, reply).expect_err(refusal.body);
        assert_eq!(error.failure, refusal.meaning.failure(), "{}: {error}", refusal.body);
    }
}

/// Row 109: a proxy's login page answers 200 too.
pub(crate) fn a_page_under_200_is_a_failure(kind: &'static ChannelKind) {
    let other = ["", "ok", "[]", "null", "{}", "\u{0}\u{1}"].into_iter().filter(|body| match kind
        .verdict()
        .success
    {
        Success::NoPage => false,
        Success::Empty => !body.is_empty(),
        Success::Object => *body != "{}",
        Success::List => *body != "[]",
        Success::Body(words) => !words.contains(body),
        _ => true,
    });
    for body in other.chain(["<!doctype html><title>Log in</title>"]) {
        let reply = ResponseTemplate::new(200).set_body_raw(body, "text/html");
        assert!(outcome(kind, reply).is_err(), "{body:?} counted as success");
    }
}

/// Row 109: a far end that hangs is a time-out.
pub(crate) fn silence_is_temporary(kind: &'static ChannelKind) {
    // Connections wait in the queue of a listener that never takes them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let text = message("text", Format::Text);
    fails_as(TEMPORARY, attempt_at_port(kind, &text, port, Duration::from_millis(200)));
}

pub(crate) fn a_closed_port_is_temporary(kind: &'static ChannelKind) {
    let (_reserved, port) = closed_port();
    let text = message("text", Format::Text);
    fails_as(TEMPORARY, attempt_at_port(kind, &text, port, Duration::from_secs(10)));
}

/// A port that is taken, so that nobody else listens on it, and that nobody listens on.
fn closed_port() -> (TcpSocket, u16) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

/// Answers with everything it was sent, as some far ends do with what they do not like.
struct Echo(u16);

impl Respond for Echo {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let told = format!(
            "{} {:?} {}",
            request.url,
            request.headers,
            String::from_utf8_lossy(&request.body)
        );
        ResponseTemplate::new(self.0).set_body_json(serde_json::json!({
            "ok": false, "error_code": self.0, "description": told, "errcode": 310_000, "errmsg": told,
        }))
    }
}

/// Row 116: nothing of an error shows a secret, wherever it stands in the options or the address of a channel, not even
/// when the far end repeats it.
pub(crate) fn errors_keep_secrets(kind: &'static ChannelKind) {
    let text = message("text", Format::Text);
    let addresses = kind.urls.map_or_else(Default::default, |urls| urls.examples);
    let from_addresses = addresses.iter().map(|address| from_url(address).unwrap().options);
    for options in [example(kind)].into_iter().chain(from_addresses) {
        let secrets = kind.build(options.clone()).unwrap().secrets().to_vec();
        let (_reserved, port) = closed_port();
        let timeout = Duration::from_secs(10);
        let mut failures = vec![attempt_with(kind, options.clone(), &text, port, timeout)];
        if matches!(kind.about.transport, Transport::Http { .. }) {
            let echoes = [200, 401, 503].map(|status| echoed(kind, &options, status));
            failures.extend(echoes);
        }
        for failure in failures.into_iter().filter_map(Result::err) {
            let shown = format!("{failure} {failure:?}");
            let told = secrets.iter().find(|secret| shown.contains(secret.as_str()));
            assert_eq!(told, None, "it is in {shown}");
        }
    }
}

/// What becomes of a message to a far end that repeats all it gets.
fn echoed(
    kind: &'static ChannelKind,
    options: &toml::Table,
    status: u16,
) -> Result<Receipt, SendError> {
    let text = message("text", Format::Text);
    let channel = kind.build(options.clone()).unwrap();
    block_on(async {
        let server = MockServer::start().await;
        Mock::given(any()).respond_with(Echo(status)).mount(&server).await;
        let cx = context(&text, Some(&server.uri()));
        deliver(kind, &*channel, &text, &cx).await.first()
    })
}
