//! Several events as one message: its headline, and a line for each different text.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    attachment::{Attachment, Place},
    event::Event,
    level::Level,
    message::Message,
    text,
};

/// How many different texts a digest tells; the others are counted.
pub const DIGEST_TEXTS: usize = 200;

/// The longest line of a digest of different texts, in characters.
const LINE: usize = 500;

/// The longest address in such a line, in bytes. A longer one is left to the history.
const LINK: usize = 500;

/// How many fields of an event's data such a line tells.
const FIELDS: usize = 4;

/// How much of a field's name and of its value such a line tells, in characters.
const FIELD: usize = 40;

/// Several events that are told as one message.
#[derive(Debug, Clone, PartialEq)]
pub struct Digest {
    /// How many there are.
    pub count: u64,
    /// How many of them are different.
    pub different: u64,
    /// When the first was reported.
    pub first_at: Timestamp,
    /// When the last was reported.
    pub last_at: Timestamp,
    /// The level of the most serious.
    pub level: Level,
    /// The latest of the different ones, at most [`DIGEST_TEXTS`], each with how many say the same, in order.
    pub texts: Vec<(u64, Event)>,
}

impl Digest {
    /// The headline.
    pub(crate) fn title(&self) -> String {
        match &self.texts[..] {
            [(count, one)] if self.different == 1 => match &one.content.title {
                Some(title) => format!("{count} × {}", text::one_line(title.trim())),
                None => format!("{count} times"),
            },
            _ => format!("{} messages in {}", self.count, self.span()),
        }
    }

    /// The texts, one a line with its count, unless all say the same. Where there are several projects, with its name.
    pub(crate) fn body(&self) -> String {
        if let [(_, one)] = &self.texts[..]
            && self.different == 1
        {
            return text::clean(&one.content.text).into_owned();
        }
        let projects = || self.texts.iter().map(|(_, event)| event.source.project.as_deref());
        let from_several = projects().zip(projects().skip(1)).any(|(one, next)| one != next);
        let mut lines: Vec<String> =
            self.texts.iter().map(|(count, event)| line(*count, event, from_several)).collect();
        let left = self.different.saturating_sub(self.texts.len() as u64);
        if left > 0 {
            lines.insert(0, format!("({left} earlier ones are in the history)"));
        }
        lines.join("\n")
    }

    fn span(&self) -> String {
        let seconds = self.last_at.duration_since(self.first_at).as_secs().max(1);
        match seconds {
            ..120 => format!("{seconds} s"),
            120..7_200 => format!("{} min", seconds / 60),
            _ => format!("{} h", seconds / 3_600),
        }
    }
}

/// What one of the different texts is told as: its text, then its fields, its files by name, and its link.
fn line(count: u64, event: &Event, with_project: bool) -> String {
    let folder = event.source.project.as_deref().filter(|_| with_project);
    let name = folder.and_then(|folder| folder.rsplit(['/', '\\']).find(|part| !part.is_empty()));
    let project = name.map(|name| format!("[{name}] ")).unwrap_or_default();
    let title = event.content.title.as_deref().map(|title| format!("{}: ", title.trim()));
    let said = format!("{project}{}{}", title.unwrap_or_default(), event.content.text.trim());
    let said = text::cut(&joined(&said), LINE, text::Unit::Characters);
    let link = Message::link_of(&event.content).filter(|link| link.len() <= LINK);
    let files = event.content.attachments.iter().map(file).collect::<Vec<_>>().join(", ");
    let beside = [
        fields(event, link.as_deref()).map(|fields| format!("({fields})")),
        (!files.is_empty()).then(|| format!("[{files}]")),
        link.filter(|link| !said.contains(link.as_str())),
    ];
    let said = beside.into_iter().flatten().fold(said, |said, beside| format!("{said} {beside}"));
    if count == 1 { said } else { format!("{count} × {said}") }
}

/// What a file is called, with its address if it has one that is short.
fn file(attachment: &Attachment) -> String {
    match &attachment.place {
        Place::Url(url) if url.len() <= LINK => format!("{} {url}", attachment.name),
        Place::Url(_) | Place::Path(_) => attachment.name.clone(),
    }
}

/// The first fields of the data that are no tables and no lists, shortened, without the one that is the `link`.
fn fields(event: &Event, link: Option<&str>) -> Option<String> {
    let fields = event.content.data.as_ref()?.as_object()?.iter();
    let shown = fields.filter_map(|(name, value)| {
        let value = match value {
            Value::String(text) if Some(text.as_str()) != link => joined(text),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return None,
        };
        let short = |text: &str| text::cut(text, FIELD, text::Unit::Characters);
        Some(format!("{}: {}", short(&joined(name)), short(&value)))
    });
    let shown = shown.take(FIELDS).collect::<Vec<_>>().join(", ");
    (!shown.is_empty()).then_some(shown)
}

/// `text` on one line, with a space for each break.
fn joined(text: &str) -> String {
    text::clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        event::{Content, EventIds, Kind},
        source::Source,
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn event(title: Option<&str>, text: &str) -> Event {
        Event {
            id: EventIds::default().next(at(0), 0),
            at: at(0),
            level: Level::Info,
            context: crate::context::Context::default(),
            source: Source::default(),
            content: Content {
                title: title.map(str::to_owned),
                text: text.to_owned(),
                ..Content::default()
            },
            kind: Kind::Push,
            to: Vec::new(),
        }
    }

    fn digest(texts: Vec<(u64, Event)>, more: u64) -> Digest {
        let different = texts.len() as u64 + more;
        let count = texts.iter().map(|(count, _)| count).sum::<u64>() + more;
        let (first_at, last_at) = (at(0), at(150));
        Digest { count, different, first_at, last_at, level: Level::Error, texts }
    }

    #[test]
    fn a_digest_counts_what_is_the_same_and_lists_what_is_not() {
        let same = digest(vec![(50, event(Some(" Build "), "it\nfailed"))], 0);
        assert_eq!((same.title(), same.body()), ("50 × Build".to_owned(), "it\nfailed".to_owned()));
        assert_eq!(digest(vec![(3, event(None, "x"))], 0).title(), "3 times");
        let mixed = digest(vec![(1, event(Some("T"), "a\nb")), (2, event(None, "c"))], 7);
        assert_eq!(mixed.title(), "10 messages in 2 min");
        assert_eq!(mixed.body(), "(7 earlier ones are in the history)\nT: a b\n2 × c");
        let of = |project: &str| Event {
            source: Source { project: Some(project.to_owned()), ..Source::default() },
            ..event(None, "done")
        };
        let two = digest(vec![(1, of("/home/me/shop/")), (2, of("C:\\work\\site"))], 0);
        assert_eq!(two.body(), "[shop] done\n2 × [site] done");
    }

    #[test]
    fn a_line_keeps_link_files_and_short_fields() {
        let told = |link: Option<&str>, data: Value, attachments: Vec<Attachment>| {
            let mut event = event(None, "disk\nfull");
            let link = link.map(str::to_owned);
            event.content = Content { link, data: Some(data), attachments, ..event.content };
            line(1, &event, false)
        };
        assert_eq!(
            told(Some("https://h/7"), json!({ "url": "https://h/8", "used": 0.95 }), Vec::new()),
            "disk full (url: https://h/8, used: 0.95) https://h/7"
        );
        assert_eq!(
            told(None, json!({ "url": "https://h/8" }), Vec::new()),
            "disk full https://h/8"
        );
        let attached = |place| Attachment::new(place, None, None);
        let files = vec![
            attached(Place::Path("/home/a/df.log".to_owned())),
            attached(Place::Url("https://h/top.png".to_owned())),
        ];
        assert_eq!(told(None, json!([1]), files), "disk full [df.log, top.png https://h/top.png]");
        let long = json!({ "a": "x".repeat(400), "b\n": 1, "c": [], "d": true, "e": 2, "f": 3 });
        let line = told(None, long, Vec::new());
        assert!(line.ends_with("…, b: 1, d: true, e: 2)") && line.len() < 90, "{line}");
        let said = Event {
            content: Content {
                text: "see https://h/7".to_owned(),
                link: Some("https://h/7".to_owned()),
                ..Content::default()
            },
            ..event(None, "")
        };
        assert_eq!(super::line(1, &said, false), "see https://h/7");
    }
}
