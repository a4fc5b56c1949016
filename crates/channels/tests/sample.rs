//! Messages and contexts to try channels with, always the same.

use deskbell_channels::{Http, SendContext};
use deskbell_core::{
    Event, EventId, Level, Message, Source,
    event::{Content, Format, Kind},
    run::{Phase, Progress, RunStep},
};
use jiff::Timestamp;

/// When everything happens.
pub(crate) fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().expect("a constant time")
}

/// A warning that was pushed.
pub(crate) fn message(text: &str, format: Format) -> Message {
    titled("Build failed", text, format)
}

/// A warning that was pushed, with a title.
pub(crate) fn titled(title: &str, text: &str, format: Format) -> Message {
    Message::of(&event(Some(title), text, format, Kind::Push))
}

/// An update of a run at 40 percent.
pub(crate) fn step(text: &str) -> Message {
    Message::of(&event(
        None,
        text,
        Format::Text,
        Kind::Run(RunStep {
            run: "nightly-7".parse().expect("a constant id"),
            phase: Phase::Update,
            step: Some("upload".to_owned()),
            progress: Progress::new("progress", 0.4).ok(),
            reported_at: now(),
        }),
    ))
}

fn event(title: Option<&str>, text: &str, format: Format, kind: Kind) -> Event {
    Event {
        id: EventId::from_uuid(uuid::Uuid::from_u128(0x019b_7c2e_5f00_7000_8000_0000_0000_0001)),
        at: now(),
        level: Level::Warning,
        context: "workflow".parse().expect("a constant word"),
        source: Source {
            client: Some("claude-code".to_owned()),
            project: Some("shop".to_owned()),
            ..Source::default()
        },
        content: Content {
            title: title.map(str::to_owned),
            text: text.to_owned(),
            format,
            data: Some(serde_json::json!({ "url": "https://ci.example.com/7" })),
            ..Content::default()
        },
        kind,
        to: Vec::new(),
    }
}

/// The first attempt of `message`; all HTTP requests go to `stand_in` if there is one.
pub(crate) fn context(message: &Message, stand_in: Option<&str>) -> SendContext {
    let stand_in = stand_in.map(|base| base.parse().expect("the address of a stand-in"));
    let http = Http::default().leading_to(stand_in);
    let channel = "team".parse().expect("a constant name");
    SendContext::new(deskbell_core::DeliveryId { event: message.event, channel }, now(), http)
}
