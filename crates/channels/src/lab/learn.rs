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
    files::{Files, ReadFile},
    manner::Manner,
    preview::{preview, preview_of_edit, preview_with_file},
};

/// The id of an earlier message in previews of edits: a number, because some far ends count their messages.
const EARLIER: &str = "902104711";

/// How the requests of a channel with `options` look, edits last.
pub(super) async fn learn(kind: &ChannelKind, options: &Table, sample: &Message) -> Vec<Shape> {
    let Ok(channel) = kind.build(options.clone()) else { return Vec::new() };
    let messages = samples(sample);
    let event = sample.event.to_string();
    let mut shapes = Vec::new();
    for message in &messages {
        let shown = preview(kind, &*channel, message, message.at, Manner::default(), true).await;
        for asked in requests(&shown).iter().filter_map(Asked::previewed) {
            put(&mut shapes, Shape::of(&asked, &event));
        }
    }
    if kind.files != Files::Not {
        with_files(kind, &*channel, &messages, &event, &mut shapes).await;
    }
    if kind.about.edits {
        let edits = edits(kind, &*channel, &messages, &event, &shapes).await;
        shapes.extend(edits);
    }
    shapes
}

/// Adds to `shapes` how requests look that hand over a file: a picture and another one.
async fn with_files(
    kind: &ChannelKind,
    channel: &dyn Channel,
    messages: &[Message],
    event: &str,
    shapes: &mut Vec<Shape>,
) {
    let Some(message) = messages.first() else { return };
    for (end, media_type) in [("png", "image/png"), ("txt", "text/plain")] {
        let file = ReadFile {
            name: format!("{}.{end}", shape::FILE),
            media_type: media_type.to_owned(),
            bytes: b"sample".to_vec(),
        };
        for shown in preview_with_file(kind, channel, message, file).await {
            let asked: Vec<_> = requests(&shown).iter().filter_map(Asked::previewed).collect();
            // Of several requests for one file the last that names it tells it.
            let last = asked.iter().rposition(|asked| !shape::named(asked).is_empty());
            for (index, asked) in asked.iter().enumerate() {
                let shape = Shape::of(asked, event);
                let is_text = last.is_none() || !matches!(kind.files, Files::After(_));
                let shape = if is_text { shape } else { shape.of_file(asked, Some(index) == last) };
                put(shapes, shape);
            }
        }
    }
}

/// How requests look that change an earlier message, where those are not the ones that told it, with the same key.
async fn edits(
    kind: &ChannelKind,
    channel: &dyn Channel,
    messages: &[Message],
    event: &str,
    known: &[Shape],
) -> Vec<Shape> {
    let mut shapes = Vec::new();
    for message in messages {
        let earlier = Receipt { message_id: Some(EARLIER.to_owned()) };
        let shown = preview_of_edit(kind, channel, message, message.at, earlier).await;
        for asked in requests(&shown).iter().filter_map(Asked::previewed) {
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
