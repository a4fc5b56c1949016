//! Fakes of the far ends, made from what the kinds declare: the other side of a channel.
//!
//! A fake learns how a request looks from previews of its kind's own example, checks what it gets against that and
//! against the declared limits, and answers with the declared bodies. A new kind has a fake by itself. It knows no
//! network; whoever serves it does.

mod learn;
mod leaves;
mod shape;

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use deskbell_core::{Message, text::Unit};
use jiff::Timestamp;
use serde_json::Value;
use toml::Table;

use self::shape::Shape;
pub use self::{leaves::Asked, shape::Told};
use crate::{
    channel::{ChannelKind, Transport},
    render::Dialect,
    verdict::{Meaning, Refusal},
};

/// How many ids are remembered for edits.
const IDS_LIMIT: usize = 10_000;

/// The longest a rate limit looks back.
const MINUTE: Duration = Duration::from_secs(60);

/// How long a fake wants its callers to wait where it only says that there were too many.
const SOON: Duration = Duration::from_secs(1);

/// Room beside the text and the title where both stand in one field: marks, an emoji, empty lines.
const FRAME: usize = 256;

/// What a fake does instead of what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    /// It refuses for good, under status 200 where its kind does so.
    Refuse,
    /// It says that there were too many messages, and how long to wait.
    TooMany,
    /// It says that there were too many messages, and nothing more.
    Busy,
    /// It fails.
    Error,
    /// It answers what means nothing.
    Garbage,
    /// It never answers.
    Hang,
    /// It ends the connection in the middle of its answer.
    Close,
}

impl Mishap {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Refuse,
        Self::TooMany,
        Self::Busy,
        Self::Error,
        Self::Garbage,
        Self::Hang,
        Self::Close,
    ];

    /// The word for it in addresses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::TooMany => "429",
            Self::Busy => "busy",
            Self::Error => "500",
            Self::Garbage => "garbage",
            Self::Hang => "hang",
            Self::Close => "close",
        }
    }

    /// The one that `word` stands for.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mishap| mishap.as_str() == word)
    }
}

/// What a fake says.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// How long to wait, for the `Retry-After` header.
    pub retry_after: Option<u64>,
    /// The body.
    pub body: String,
    /// What became of the request.
    pub outcome: Outcome,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A new message, with the id that it got.
    Taken(String),
    /// A message that took the place of an earlier one.
    Edited(String),
    /// A step that tells nothing, such as asking for a token.
    Passed,
    /// Nothing: the reason.
    Refused(String),
}

/// The far end of a kind.
pub struct Fake {
    /// The kind.
    pub kind: &'static ChannelKind,
    /// The options of a channel whose requests it knows.
    pub options: Table,
    shapes: Vec<Shape>,
    /// The messages taken, by the ids that stand for them; the oldest ids go first.
    known: BTreeMap<String, String>,
    order: VecDeque<String>,
    taken: u64,
    recent: VecDeque<Timestamp>,
}

impl Fake {
    /// The fake of `kind`, which stands for its far end wherever that is. `None` for a kind that is not reached by HTTP.
    /// `sample` is any message.
    pub async fn of(kind: &'static ChannelKind, sample: &Message) -> Option<Self> {
        if !kind.speaks_http() {
            return None;
        }
        let options: Table = kind.about.example.parse().ok()?;
        let shapes = learn::learn(kind, &options, sample).await;
        (!shapes.is_empty()).then(|| Self {
            kind,
            options,
            shapes,
            known: BTreeMap::new(),
            order: VecDeque::new(),
            taken: 0,
            recent: VecDeque::new(),
        })
    }

    /// What a request tells.
    pub fn told(&self, asked: &Asked) -> Told {
        self.shape_of(asked).map(|shape| shape.told(asked)).unwrap_or_default()
    }

    /// Answers as the service does, or as `mishap` says.
    pub fn answer(&mut self, asked: &Asked, mishap: Option<Mishap>, now: Timestamp) -> Answer {
        match mishap {
            Some(Mishap::TooMany) => return self.too_many("it was told to", SOON),
            Some(Mishap::Busy) => return declared(None, 429, "it was told to"),
            Some(Mishap::Refuse) => return self.refuse(None, "it was told to"),
            Some(other) => return broken(other),
            None => {}
        }
        let Some(shape) = self.shape_of(asked) else {
            return self.refuse(Some(404), "there is nothing at this address");
        };
        let checked = shape.missing(asked).or_else(|| self.too_long(shape, asked));
        let (told, key, earlier) = (shape.told(asked), shape.key(asked), shape.earlier(asked));
        if let Some(reason) = checked.filter(|_| !self.checks_nothing()) {
            return self.refuse(None, &reason);
        }
        if told.text.is_none() && earlier.is_none() {
            return self.accept(Outcome::Passed);
        }
        if self.is_too_often(now) {
            return self.too_many("there were more than it takes in a minute", MINUTE);
        }
        if let Some(earlier) = earlier {
            return match self.known(&earlier) {
                Some(id) => self.accept(Outcome::Edited(id)),
                None => self.refuse(None, &format!("there is no message `{earlier}` to edit")),
            };
        }
        if let Some(id) = key.as_deref().and_then(|key| self.known(key)) {
            return self.accept(Outcome::Edited(id));
        }
        self.taken += 1;
        let id = self.taken.to_string();
        self.remember(&id, &id);
        if let Some(key) = key.filter(|_| self.kind.about.edits) {
            self.remember(&key, &id);
        }
        self.accept(Outcome::Taken(id))
    }

    fn shape_of(&self, asked: &Asked) -> Option<&Shape> {
        let likely = self.shapes.iter().filter_map(|shape| Some((shape.likeness(asked)?, shape)));
        // A text and a file may go to one address; what a request has says which it is.
        let fits = |shape: &Shape| shape.missing(asked).is_none();
        likely.max_by_key(|(likeness, shape)| (*likeness, fits(shape))).map(|(_, shape)| shape)
    }

    /// The user's own far end takes what the user wants to send.
    fn checks_nothing(&self) -> bool {
        self.kind.about.name.starts_with("webhook")
    }

    /// The message that `key` stands for: its key, or the id that the far end gave it.
    fn known(&self, key: &str) -> Option<String> {
        self.known.get(key.strip_prefix(ID).unwrap_or(key)).cloned()
    }

    fn remember(&mut self, key: &str, id: &str) {
        if self.order.len() >= IDS_LIMIT
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.order.push_back(key.to_owned());
        self.known.insert(key.to_owned(), id.to_owned());
    }

    fn is_too_often(&mut self, now: Timestamp) -> bool {
        let Some(limit) = self.kind.about.limits.per_minute else { return false };
        let is_old = |at: &Timestamp| now.duration_since(*at).unsigned_abs() > MINUTE;
        while self.recent.front().is_some_and(is_old) {
            self.recent.pop_front();
        }
        if self.recent.len() >= limit as usize {
            return true;
        }
        self.recent.push_back(now);
        false
    }

    fn too_long(&self, shape: &Shape, asked: &Asked) -> Option<String> {
        let limits = self.kind.about.limits;
        let length = |text: &str| match self.kind.about.dialect {
            Dialect::TelegramHtml => limits.unit.length(&without_tags(text)),
            _ => limits.unit.length(text),
        };
        let unit = match limits.unit {
            Unit::Characters => "characters",
            Unit::Bytes => "bytes",
            Unit::Utf16 => "UTF-16 units",
        };
        shape.texts(asked).into_iter().find_map(|(text, has_title)| {
            let frame = if has_title { limits.title.saturating_add(FRAME) } else { FRAME };
            let limit = limits.body.saturating_add(frame);
            let length = length(&text);
            (length > limit).then(|| format!("the text has {length} {unit}; it takes {limit}"))
        })
    }

    fn http(&self) -> (&'static str, &'static [Refusal]) {
        match self.kind.about.transport {
            Transport::Http { accepted, refusals, .. } => (accepted, refusals),
            Transport::Smtp
            | Transport::Mqtt
            | Transport::WebSocket { .. }
            | Transport::Syslog
            | Transport::Local => ("", &[]),
        }
    }

    /// The declared answer, with an id of its own where the kind reads one.
    fn accept(&self, outcome: Outcome) -> Answer {
        let (accepted, _) = self.http();
        let mut body = accepted.to_owned();
        if let (Outcome::Taken(id) | Outcome::Edited(id), Some(pointer)) =
            (&outcome, self.kind.verdict().id)
            && let Ok(mut answer) = serde_json::from_str::<Value>(accepted)
            && let Some(place) = answer.pointer_mut(pointer)
        {
            let id = format!("{ID}{id}");
            *place = match place {
                Value::Number(_) => id.parse::<u64>().map_or(Value::Null, Value::from),
                _ => Value::String(id),
            };
            body = answer.to_string();
        }
        Answer { status: 200, retry_after: None, body, outcome }
    }

    /// The declared refusal for good with `status`, else the first one that looks like success, else any.
    fn refuse(&self, status: Option<u16>, reason: &str) -> Answer {
        let (_, refusals) = self.http();
        let is_permanent = |refusal: &&Refusal| refusal.meaning == Meaning::Permanent;
        let permanent = || refusals.iter().filter(is_permanent);
        let of = |status| permanent().find(|refusal| refusal.status == status);
        let found = status.map_or_else(|| of(200).or_else(|| permanent().next()), of);
        declared(found, status.unwrap_or(400), reason)
    }

    fn too_many(&self, reason: &str, wait: Duration) -> Answer {
        let (_, refusals) = self.http();
        let passes = |refusal: &&Refusal| refusal.meaning != Meaning::Permanent;
        let timed = refusals.iter().find(|refusal| matches!(refusal.meaning, Meaning::After(_)));
        let found = timed.or_else(|| refusals.iter().filter(passes).find(|r| r.status == 429));
        let answer = declared(found, 429, reason);
        let retry_after = found.is_none().then_some(wait.as_secs());
        Answer { retry_after, ..answer }
    }
}

/// What ids begin with, so that no other number in a request is taken for one.
const ID: &str = "90210";

fn declared(refusal: Option<&Refusal>, status: u16, reason: &str) -> Answer {
    let (status, body) = refusal.map_or((status, "{}"), |refusal| (refusal.status, refusal.body));
    let outcome = Outcome::Refused(reason.to_owned());
    Answer { status, retry_after: None, body: body.to_owned(), outcome }
}

fn broken(mishap: Mishap) -> Answer {
    let (status, body) = match mishap {
        Mishap::Garbage => (200, "<!doctype html><title>Log in to this network</title>\u{0}"),
        _ => (500, "it is broken"),
    };
    let outcome = Outcome::Refused("it was told to".to_owned());
    Answer { status, retry_after: None, body: body.to_owned(), outcome }
}

fn without_tags(html: &str) -> String {
    let mut is_tag = false;
    html.chars()
        .filter(|character| {
            let was_tag = is_tag;
            is_tag = match character {
                '<' => true,
                '>' => false,
                _ => is_tag,
            };
            !was_tag && !is_tag
        })
        .collect()
}
