//! What stands in for far ends, and attempts against it.

use std::time::Duration;

use deskbell_channels::{
    Channel, ChannelKind, Manner, SendContext, SendError, Transport, deliver, preview,
};
use deskbell_core::{Message, delivery::Receipt};
use serde_json::Value;
use wiremock::{
    Mock, MockServer, Request, ResponseTemplate,
    matchers::{any, body_string_contains},
};

use crate::sample::{context, now};

/// The example of a kind's declaration.
pub(crate) fn example(kind: &ChannelKind) -> toml::Table {
    toml::from_str(kind.about.example).unwrap()
}

/// The channel of the example.
pub(crate) fn channel(kind: &ChannelKind) -> Box<dyn Channel> {
    kind.build(example(kind)).unwrap()
}

/// The answer that means success.
pub(crate) fn accepted(kind: &ChannelKind) -> ResponseTemplate {
    let Transport::Http { accepted, .. } = kind.about.transport else {
        panic!("{} does not speak HTTP", kind.about.name);
    };
    ResponseTemplate::new(200).set_body_raw(accepted, "application/json")
}

/// Delivers `message` to a server that answers every request with `reply`.
pub(crate) fn attempt(
    kind: &'static ChannelKind,
    message: &Message,
    reply: ResponseTemplate,
) -> (Result<Receipt, SendError>, Vec<Request>) {
    attempt_in(kind, message, &[], reply, |_| {})
}

/// Delivers `message` to a server that gives `first` to requests that tell it, then only `rest`, with a context that `change` has changed.
pub(crate) fn attempt_in(
    kind: &'static ChannelKind,
    message: &Message,
    first: &[ResponseTemplate],
    rest: ResponseTemplate,
    change: impl FnOnce(&mut SendContext),
) -> (Result<Receipt, SendError>, Vec<Request>) {
    block_on(async {
        let server = MockServer::start().await;
        let told = message.body.split_whitespace().next().unwrap();
        for reply in first {
            Mock::given(body_string_contains(told))
                .respond_with(reply.clone())
                .up_to_n_times(1)
                .mount(&server)
                .await;
        }
        Mock::given(any()).respond_with(rest).mount(&server).await;
        let mut cx = context(message, Some(&server.uri()));
        change(&mut cx);
        let outcome = deliver(kind, &*channel(kind), message, &cx).await.first();
        (outcome, server.received_requests().await.unwrap())
    })
}

/// The requests that a preview of the example shows.
pub(crate) fn previewed(
    kind: &'static ChannelKind,
    message: &Message,
    show_secrets: bool,
) -> Vec<Value> {
    previewed_in(kind, message, Manner::default(), show_secrets)
}

/// The requests that a preview of the example shows, told in this manner.
pub(crate) fn previewed_in(
    kind: &'static ChannelKind,
    message: &Message,
    manner: Manner,
    show_secrets: bool,
) -> Vec<Value> {
    let shown = block_on(preview(kind, &*channel(kind), message, now(), manner, show_secrets));
    assert_eq!(shown["kind"], kind.about.name);
    let requests = shown["requests"].as_array().unwrap().clone();
    assert!(!requests.is_empty(), "nothing is sent");
    requests
}

/// Delivers to `port` of this machine, within `timeout`.
pub(crate) fn attempt_at_port(
    kind: &'static ChannelKind,
    message: &Message,
    port: u16,
    timeout: Duration,
) -> Result<Receipt, SendError> {
    attempt_with(kind, example(kind), message, port, timeout)
}

/// Delivers to `port` of this machine by a channel of `options`, within `timeout`.
pub(crate) fn attempt_with(
    kind: &'static ChannelKind,
    mut options: toml::Table,
    message: &Message,
    port: u16,
    timeout: Duration,
) -> Result<Receipt, SendError> {
    let mut stand_in = None;
    match kind.about.transport {
        Transport::Http { .. } => stand_in = Some(format!("http://127.0.0.1:{port}")),
        Transport::Smtp | Transport::Mqtt => {
            options.insert("host".to_owned(), toml::Value::from("127.0.0.1"));
            options.insert("port".to_owned(), toml::Value::from(i64::from(port)));
        }
        Transport::WebSocket { .. } => {
            options.insert("server".to_owned(), format!("ws://127.0.0.1:{port}").into());
        }
        Transport::Syslog | Transport::Local => panic!("{} has no network", kind.about.name),
    }
    let channel = kind.build(options).unwrap();
    let cx = SendContext { timeout, ..context(message, stand_in.as_deref()) };
    block_on(deliver(kind, &*channel, message, &cx)).first()
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}
