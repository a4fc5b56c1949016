//! One thing that was reported.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    attachment::{ATTACHMENTS_LIMIT, Attachment},
    context::Context,
    delivery::ChannelName,
    field::Invalid,
    level::Level,
    link,
    run::RunStep,
    source::Source,
    text,
};

/// Longest text of an event, in bytes. Longer reports are refused.
pub const TEXT_LIMIT: usize = 256 * 1024;

/// Longest title of an event, in characters. Longer titles are refused.
pub const TITLE_LIMIT: usize = 1_000;

/// Longest `data` of an event, in bytes of compact JSON. Larger reports are refused.
pub const DATA_LIMIT: usize = 64 * 1024;

/// Deepest nesting of an event's `data`.
pub const DATA_DEPTH: usize = 32;

/// One thing that was reported: what the journal keeps and every viewer sees.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The event's id, made at acceptance.
    pub id: EventId,
    /// When it was accepted.
    pub at: Timestamp,
    /// How serious it is.
    pub level: Level,
    /// Its category.
    pub context: Context,
    /// Who reported it.
    pub source: Source,
    /// What was said.
    pub content: Content,
    /// What sort of event it is, with what only that sort has.
    pub kind: Kind,
    /// The channels the reporter named; empty means that the routes decide.
    pub to: Vec<ChannelName>,
}

/// The sorts of event.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A line for whoever watches; pushed when the routes say so.
    Notice,
    /// A message that was meant for the channels (`notify.send`).
    Push,
    /// A step of a run (`notify.event`).
    Run(RunStep),
}

impl Kind {
    /// The names of all sorts.
    pub const NAMES: [&str; 3] = ["notice", "push", "run"];

    /// What is expected where a sort is named.
    pub const EXPECTED: &str = "one of notice, push, run";

    /// The sort's name on every wire.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Push => "push",
            Self::Run(_) => "run",
        }
    }

    /// How serious an event of this sort is, where its reporter does not say.
    pub const fn level(&self) -> Level {
        match self {
            Self::Notice | Self::Push => Level::Info,
            Self::Run(step) => step.phase.level(),
        }
    }
}

/// What was said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Content {
    /// Headline, one line.
    pub title: Option<String>,
    /// The text as it was reported; every sink cleans it for itself.
    pub text: String,
    /// How the text is written.
    pub format: Format,
    /// Structured data beside the text.
    pub data: Option<Value>,
    /// The address that belongs to it.
    pub link: Option<String>,
    /// The files that belong to it.
    pub attachments: Vec<Attachment>,
}

impl Content {
    /// Checks the bounds of title, text, link, attachments and data; `text_field` is what the caller calls the text.
    ///
    /// # Errors
    /// Names the first field that is empty, too long or too deep.
    pub fn check(&self, text_field: &str) -> Result<(), Invalid> {
        if text::is_blank(&self.text) {
            return Err(Invalid::text(text_field, &self.text, "a text that is not blank"));
        }
        if self.text.len() > TEXT_LIMIT {
            return Err(Invalid::too_long(text_field, self.text.len(), TEXT_LIMIT, "bytes"));
        }
        if let Some(title) = &self.title {
            let length = title.chars().count();
            if text::is_blank(title) {
                return Err(Invalid::text("title", title, "a text that is not blank"));
            }
            if length > TITLE_LIMIT {
                return Err(Invalid::too_long("title", length, TITLE_LIMIT, "characters"));
            }
        }
        if let Some(link) = &self.link {
            link::check("link", link)?;
        }
        if self.attachments.len() > ATTACHMENTS_LIMIT {
            let given = format!("{} items long", self.attachments.len());
            let expected = format!("at most {ATTACHMENTS_LIMIT} items");
            return Err(Invalid::value("attachments", given, expected));
        }
        for (index, attachment) in self.attachments.iter().enumerate() {
            attachment.check(&format!("attachments[{index}]"))?;
        }
        self.data.as_ref().map_or(Ok(()), check_data)
    }
}

fn check_data(data: &Value) -> Result<(), Invalid> {
    if depth(data, DATA_DEPTH) > DATA_DEPTH {
        return Err(Invalid::value(
            "data",
            "nested too deeply",
            format!("at most {DATA_DEPTH} levels"),
        ));
    }
    let size = data.to_string().len();
    if size > DATA_LIMIT {
        return Err(Invalid::too_long("data", size, DATA_LIMIT, "bytes of JSON"));
    }
    Ok(())
}

/// How deep `value` is nested, looked at no further than `limit + 1` levels.
fn depth(value: &Value, limit: usize) -> usize {
    if limit == 0 {
        return 1;
    }
    let below = match value {
        Value::Array(items) => items.iter().map(|item| depth(item, limit - 1)).max(),
        Value::Object(fields) => fields.values().map(|item| depth(item, limit - 1)).max(),
        _ => return 0,
    };
    1 + below.unwrap_or(0)
}

/// How a text is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// As it stands.
    #[default]
    Text,
    /// `CommonMark`.
    Markdown,
}

impl Format {
    /// The format's name on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Markdown => "markdown",
        }
    }
}

impl FromStr for Format {
    type Err = Invalid;

    fn from_str(name: &str) -> Result<Self, Invalid> {
        match name.to_ascii_lowercase().as_str() {
            "text" | "plain" => Ok(Self::Text),
            "markdown" | "md" => Ok(Self::Markdown),
            _ => Err(Invalid::text("format", name, "text or markdown")),
        }
    }
}

/// The id of an event: a version 7 UUID (RFC 9562, section 5.7), increasing within a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(Uuid);

impl EventId {
    /// The id with the value `uuid`, such as one read from the journal.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The id as a UUID.
    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for EventId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Uuid::try_parse(text.trim()).map(Self).map_err(|_| {
            Invalid::text("event id", text, "a UUID such as 019a9c2e-5f00-7000-8000-000000000000")
        })
    }
}

/// Makes event ids that increase even when the clock stands still or goes back.
#[derive(Debug, Default)]
pub struct EventIds {
    millis: u64,
    tail: u128,
}

impl EventIds {
    /// Bits of a version 7 UUID that are neither time, version nor variant.
    const TAIL_BITS: u32 = 74;

    /// The next id at `now`; `random` fills what is not time.
    pub fn next(&mut self, now: Timestamp, random: u128) -> EventId {
        let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
        // The top bit of a fresh tail stays clear, so that there is room to count up within a millisecond.
        let fresh = random & ((1 << (Self::TAIL_BITS - 1)) - 1);
        if millis > self.millis {
            (self.millis, self.tail) = (millis, fresh);
        } else {
            self.tail += 1 + (random & 0xffff);
            if self.tail >> Self::TAIL_BITS != 0 {
                (self.millis, self.tail) = (self.millis + 1, fresh);
            }
        }
        let time = u128::from(self.millis & 0xffff_ffff_ffff) << 80;
        let high = (self.tail >> 62) << 64;
        let low = self.tail & ((1 << 62) - 1);
        EventId(Uuid::from_u128(time | (0x7 << 76) | high | (0b10 << 62) | low))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::attachment::Place;

    proptest! {
        #[test]
        fn ids_increase_whatever_the_clock_does(times in prop::collection::vec((0_i64..3, any::<u128>()), 1..200)) {
            let mut ids = EventIds::default();
            let mut last = None;
            for (millis, random) in times {
                let id = ids.next(Timestamp::from_millisecond(1_790_000_000_000 + millis).unwrap(), random);
                prop_assert_eq!(id.uuid().get_version_num(), 7);
                prop_assert_eq!(id.uuid().get_variant(), uuid::Variant::RFC4122);
                prop_assert!(last < Some(id));
                last = Some(id);
            }
        }
    }

    #[test]
    fn what_is_expected_of_a_sort_is_its_names() {
        assert_eq!(Kind::EXPECTED, format!("one of {}", Kind::NAMES.join(", ")));
    }

    #[test]
    fn an_id_carries_its_time() {
        let now = Timestamp::from_millisecond(1_790_000_000_123).unwrap();
        let id = EventIds::default().next(now, u128::MAX);
        let (seconds, nanos) = id.uuid().get_timestamp().unwrap().to_unix();
        assert_eq!((seconds, nanos), (1_790_000_000, 123_000_000));
    }

    #[test]
    fn bounds_are_checked() {
        #[track_caller]
        fn check(content: &Content, field: Option<&str>) {
            assert_eq!(
                content.check("message").err().map(|refusal| refusal.field).as_deref(),
                field
            );
        }
        let content = |text: &str| Content { text: text.to_owned(), ..Content::default() };
        check(&content("a"), None);
        check(&content(" \n\t"), Some("message"));
        check(&content(&"x".repeat(TEXT_LIMIT + 1)), Some("message"));
        check(&Content { title: Some(String::new()), ..content("a") }, Some("title"));
        check(&Content { title: Some("ä".repeat(TITLE_LIMIT)), ..content("a") }, None);
        check(
            &Content { data: Some(json!({ "a": "x".repeat(DATA_LIMIT) })), ..content("a") },
            Some("data"),
        );
        check(
            &Content { link: Some("file:///etc/passwd".to_owned()), ..content("a") },
            Some("link"),
        );
        let file = Attachment::new(Place::Path("/a".to_owned()), None, None);
        let attached = |count| Content { attachments: vec![file.clone(); count], ..content("a") };
        check(&attached(ATTACHMENTS_LIMIT), None);
        check(&attached(ATTACHMENTS_LIMIT + 1), Some("attachments"));
        let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
        check(&Content { data: Some(deep), ..content("a") }, Some("data"));
    }
}
