//! How a fake learns the requests of its kind: from previews.

use deskbell_core::{
    Level, Message, delivery::Receipt, event::Format, message::RunFacts, run::Phase,
};
use serde_json::Value;
use toml::Table;

use super::{
    leaves::Asked,
    shape::{self, Shape},
};
use crate::{
    channel::{Channel, ChannelKind},
    manner::Manner,
    preview::{preview, preview_of_edit},
};

/// The id of an earlier message in previews of edits: a number, because some far ends count their messages.
const EARLIER: &str = "902104711";

/// Options with the address `base` as `name`: only those that must be set, and the whole example.
pub(super) fn pointed(kind: &ChannelKind, name: &str, base: &str) -> Vec<Table> {
    let Some(example) = example(kind) else { return Vec::new() };
    let written = example.get(name).and_then(toml::Value::as_str).unwrap_or_default();
    let path = written.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
    let address = match path {
        Some((_, path)) if !path.is_empty() => format!("{base}/{path}"),
        _ => base.to_owned(),
    };
    let required: Vec<_> =
        kind.options().into_iter().filter_map(|o| o.required.then_some(o.name)).collect();
    let mut least = example.clone();
    least.retain(|name, _| required.iter().any(|known| known == name));
    let with = |mut table: Table| {
        table.insert(name.to_owned(), address.clone().into());
        table
    };
    vec![with(least), with(example)]
}

pub(super) fn example(kind: &ChannelKind) -> Option<Table> {
    kind.about.example.parse().ok()
}

/// Where the requests of a channel with `options` go: scheme and host.
pub(super) async fn home(kind: &ChannelKind, options: &Table, sample: &Message) -> Option<String> {
    let channel = kind.build(options.clone()).ok()?;
    let shown = preview(kind, &*channel, sample, sample.at, Manner::default(), true).await;
    let address = shown.pointer("/requests/0/url")?.as_str()?;
    let address = ::url::Url::parse(address).ok()?;
    Some(address.origin().ascii_serialization())
}

/// How requests to `base` look, edits last; none if those options do not lead there.
pub(super) async fn learn(
    kind: &ChannelKind,
    options: &Table,
    base: &str,
    sample: &Message,
) -> Vec<Shape> {
    let Ok(channel) = kind.build(options.clone()) else { return Vec::new() };
    let messages = samples(sample);
    let event = sample.event.to_string();
    let mut shapes = Vec::new();
    for message in &messages {
        let shown = preview(kind, &*channel, message, message.at, Manner::default(), true).await;
        for request in requests(&shown) {
            let Some(asked) = Asked::previewed(request, base) else { return Vec::new() };
            put(&mut shapes, Shape::of(&asked, &event));
        }
    }
    if kind.about.edits {
        let edits = edits(kind, &*channel, &messages, base, &event, &shapes).await;
        shapes.extend(edits);
    }
    shapes
}

/// How requests look that change an earlier message, where those are not the ones that told it, with the same key.
async fn edits(
    kind: &ChannelKind,
    channel: &dyn Channel,
    messages: &[Message],
    base: &str,
    event: &str,
    known: &[Shape],
) -> Vec<Shape> {
    let mut shapes = Vec::new();
    for message in messages {
        let earlier = Receipt { message_id: Some(EARLIER.to_owned()) };
        let shown = preview_of_edit(kind, channel, message, message.at, earlier).await;
        for asked in requests(&shown).iter().filter_map(|request| Asked::previewed(request, base)) {
            let shape = Shape::of(&asked, event);
            if let Some(place) = asked.place_of(EARLIER)
                && !known.iter().any(|known| known.is_same(&shape) && known.has(&place))
            {
                put(&mut shapes, shape.of_edit(place));
            }
        }
    }
    shapes
}

fn put(shapes: &mut Vec<Shape>, shape: Shape) {
    match shapes.iter_mut().find(|known| known.is_same(&shape)) {
        Some(known) => known.merge(shape),
        None => shapes.push(shape),
    }
}

fn requests(shown: &Value) -> &[Value] {
    shown.get("requests").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Messages that bring out what a kind may send.
fn samples(sample: &Message) -> Vec<Message> {
    let titled = |level, format, phase: Option<Phase>| Message {
        level,
        format,
        title: Some(shape::TITLE.to_owned()),
        body: shape::TEXT.to_owned(),
        link: None,
        attachments: Vec::new(),
        data: None,
        run: phase.map(|phase| RunFacts {
            id: "sample-run".parse().expect("a plain word is the id of a run"),
            phase,
            step: None,
            progress: None,
        }),
        ..sample.clone()
    };
    let plain = titled(Level::Info, Format::Text, None);
    vec![
        Message { title: None, ..plain.clone() },
        plain,
        titled(Level::Emergency, Format::Text, None),
        titled(Level::Warning, Format::Markdown, None),
        titled(Level::Info, Format::Text, Some(Phase::Update)),
        titled(Level::Info, Format::Text, Some(Phase::End)),
    ]
}
