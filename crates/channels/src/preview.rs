//! What a channel would send, written down instead of sent.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use deskbell_core::{
    DeliveryId, Message,
    delivery::{Mark, Receipt},
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    channel::{Channel, ChannelKind, SendContext, Transport},
    deliver::{Piece, pieces},
    files::{self, Gathered, ReadFile},
    http::Http,
    manner::Manner,
    secret,
};

/// Takes requests down. Every transport asks for it before it sends.
#[derive(Clone)]
pub struct Preview(Arc<Mutex<Notes>>);

struct Notes {
    requests: Vec<Value>,
    /// What must not be seen of them beside the secrets of the channel, such as a token that was made for one.
    hidden: Vec<String>,
    /// The answer that an HTTP far end is taken to give.
    answer: &'static str,
}

impl Preview {
    fn of(kind: &ChannelKind) -> Self {
        let answer = match kind.about.transport {
            Transport::Http { accepted, .. } => accepted,
            Transport::Smtp
            | Transport::Mqtt
            | Transport::WebSocket { .. }
            | Transport::Syslog
            | Transport::Local => "",
        };
        Self(Arc::new(Mutex::new(Notes { requests: Vec::new(), hidden: Vec::new(), answer })))
    }

    /// Takes a request down.
    pub(crate) fn note(&self, request: Value) {
        self.with(|notes| notes.requests.push(request));
    }

    /// Takes an HTTP request down, and gives the answer that the far end would give.
    pub(crate) fn answer(&self, request: Value) -> &'static str {
        self.with(|notes| {
            notes.requests.push(request);
            notes.answer
        })
    }

    /// What was written down, with its secrets or without those and `secrets`.
    fn written_down(&self, kind: &ChannelKind, secrets: Option<&[String]>) -> Value {
        self.with(|notes| {
            let mut requests = Value::Array(std::mem::take(&mut notes.requests));
            if let Some(secrets) = secrets {
                notes.hidden.extend_from_slice(secrets);
                secret::mask_all(&mut requests, &notes.hidden);
            }
            json!({ "kind": kind.about.name, "requests": requests })
        })
    }

    /// Keeps `texts` from being seen, as the secrets of the channel are.
    pub(crate) fn hide(&self, texts: &[String]) {
        self.with(|notes| notes.hidden.extend_from_slice(texts));
    }

    fn with<T>(&self, look: impl FnOnce(&mut Notes) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Preview")
    }
}

/// What `channel` would send for `message`: `{"kind": …, "requests": […]}`, secrets masked unless `show_secrets`. Where
/// it would send nothing, `failure` says why.
pub async fn preview(
    kind: &ChannelKind,
    channel: &dyn Channel,
    message: &Message,
    now: Timestamp,
    manner: Manner,
    show_secrets: bool,
) -> Value {
    let preview = Preview::of(kind);
    let attached = files::gather(kind, message, manner).await;
    let mut failure = None;
    for piece in pieces(kind, channel, message, &attached, manner) {
        let Piece { target, part, message, files, .. } = piece;
        let cx = SendContext {
            target,
            part,
            files,
            preview: Some(preview.clone()),
            ..SendContext::new(delivery(&message), now, Http::default())
        };
        // What counts is what was written down; nothing answers for real.
        failure = failure.or(channel.send(&message, &cx).await.err());
    }
    let mut shown = preview.written_down(kind, (!show_secrets).then(|| channel.secrets()));
    let is_empty = shown.pointer("/requests/0").is_none();
    if let (Some(failure), true, Some(fields)) = (failure, is_empty, shown.as_object_mut()) {
        fields.insert("failure".to_owned(), failure.message.into());
    }
    shown
}

/// What `channel` would send for `message` with `file`, secrets shown: for each `send` what it is.
pub(crate) async fn preview_with_file(
    kind: &ChannelKind,
    channel: &dyn Channel,
    message: &Message,
    file: ReadFile,
) -> Vec<Value> {
    let attached = Gathered { files: vec![(Mark::NONE, Arc::new(file))], ..Gathered::default() };
    let mut shown = Vec::new();
    for piece in pieces(kind, channel, message, &attached, Manner::default()) {
        let preview = Preview::of(kind);
        let Piece { target, part, message, files, .. } = piece;
        let cx = SendContext {
            target,
            part,
            files,
            preview: Some(preview.clone()),
            ..SendContext::new(delivery(&message), message.at, Http::default())
        };
        // As above.
        let _told = channel.send(&message, &cx).await;
        shown.push(preview.written_down(kind, None));
    }
    shown
}

/// What `channel` would send to put `message` in the place of the one with the receipt `earlier`, secrets shown.
pub(crate) async fn preview_of_edit(
    kind: &ChannelKind,
    channel: &dyn Channel,
    message: &Message,
    now: Timestamp,
    earlier: Receipt,
) -> Value {
    let preview = Preview::of(kind);
    let (attached, manner) =
        (files::gather(kind, message, Manner::default()).await, Manner::default());
    for Piece { target, part, message, .. } in pieces(kind, channel, message, &attached, manner) {
        let cx = SendContext {
            target,
            part,
            preview: Some(preview.clone()),
            edit: Some(earlier.clone()),
            ..SendContext::new(delivery(&message), now, Http::default())
        };
        // As above.
        let _told = channel.send(&message, &cx).await;
    }
    preview.written_down(kind, None)
}

/// The id that a delivery of `message` to a channel named `preview` would have.
fn delivery(message: &Message) -> DeliveryId {
    let channel = "preview".parse().expect("a plain word is a channel name");
    DeliveryId { event: message.event, channel }
}
