//! Fits a message into what a far end takes: cut, or split into several.

use deskbell_core::{
    Message,
    event::Format,
    text::{self, CUT_MARK, Unit},
};

use crate::{
    below::Line,
    channel::{About, Limits},
    manner::Overflow,
};

/// The most messages that one text becomes. What is left over is cut, and the reader sees that it was.
pub(crate) const PARTS_LIMIT: usize = 10;

/// Room that is kept in a title for the number of the part, such as ` (10/10)`.
const NUMBER_ROOM: usize = 8;

/// The least room that is tried for a part's source text.
const LEAST_ROOM: usize = 16;

/// What stands in for a text of which nothing can be seen.
const NOTHING_VISIBLE: &str = "(no visible text)";

/// `message` as one or more messages, each within the limits of the kind after rendering, with those of the lines
/// `below` that its text does not say.
///
/// A step of a run stays one message where runs are edited in place, because parts could not be edited together.
pub(crate) fn parts(
    about: &About,
    message: &Message,
    below: &[Line],
    overflow: Overflow,
) -> Vec<Message> {
    let limits = match overflow {
        Overflow::Upstream => Limits::NONE,
        Overflow::Split | Overflow::Truncate => about.limits,
    };
    let is_one = overflow == Overflow::Truncate || (about.edits && message.run.is_some());
    let room = Room {
        limit: limits.body,
        unit: limits.unit,
        format: message.format,
        measure: &|source: &str| about.dialect.length(limits.unit, message.format, source),
    };
    let text = if message.body.trim().is_empty() { NOTHING_VISIBLE } else { message.body.as_str() };
    let mut bodies = room.bodies(text, "", is_one);
    let is_said = |line: &&Line| bodies.iter().any(|body| line.is_in(body));
    let missing: Vec<_> = below.iter().filter(|line| !is_said(line)).collect();
    if !missing.is_empty() {
        let written: Vec<_> = missing.iter().map(|line| line.written.as_str()).collect();
        bodies = room.bodies(text, &written.join(between(message.format)), is_one);
    }
    let of = bodies.len();
    let title = message.title.as_deref().map(|title| fitting_title(about, limits, title));
    let numbered = |part: usize, title: &String| {
        if of == 1 { title.clone() } else { format!("{title} ({part}/{of})") }
    };
    (1..)
        .zip(bodies)
        .map(|(part, body)| Message {
            title: title.as_ref().map(|title| numbered(part, title)),
            body,
            ..message.clone()
        })
        .collect()
}

/// What stands between two lines below a text. In Markdown one line break would be none.
const fn between(format: Format) -> &'static str {
    match format {
        Format::Text => "\n",
        Format::Markdown => "\n\n",
    }
}

/// What one body may hold.
struct Room<'a> {
    limit: usize,
    unit: Unit,
    format: Format,
    /// How long a source is after rendering.
    measure: &'a dyn Fn(&str) -> usize,
}

impl Room<'_> {
    fn bodies(&self, text: &str, below: &str, is_one: bool) -> Vec<String> {
        if is_one {
            return vec![self.one(text, below)];
        }
        let mut bodies = split(text, self.limit, self.unit, self.measure);
        if !below.is_empty() {
            let last = bodies.last().map_or(String::new(), |last| self.joined(last, below));
            if (self.measure)(&last) <= self.limit {
                bodies.pop();
                bodies.push(last);
            } else {
                bodies.extend(split(below, self.limit, self.unit, self.measure));
            }
        }
        if bodies.len() > PARTS_LIMIT {
            bodies.truncate(PARTS_LIMIT);
            if let Some(last) = bodies.last_mut() {
                *last = self.one(&format!("{last}{CUT_MARK}"), below);
            }
        }
        bodies
    }

    /// `text` with what stands `below` it, cut where that is too long.
    fn one(&self, text: &str, below: &str) -> String {
        let length = |text: &str| (self.measure)(&self.joined(text, below));
        let shorter = cut(text, self.limit, self.unit, &length);
        if below.is_empty() || length(&shorter) <= self.limit {
            return self.joined(&shorter, below);
        }
        // There is hardly room for more than what stands below, so that comes first.
        cut(&self.joined(below, text), self.limit, self.unit, self.measure)
    }

    fn joined(&self, text: &str, below: &str) -> String {
        if below.is_empty() {
            return text.to_owned();
        }
        // In a block of code that the cut left open, what stands below it would be code.
        let end = match self.format {
            Format::Text => "",
            Format::Markdown => text::fence_end(text),
        };
        format!("{}{end}\n\n{below}", text.trim_end())
    }
}

fn fitting_title(about: &About, limits: Limits, title: &str) -> String {
    let room = limits.title.saturating_sub(NUMBER_ROOM);
    let measure = |title: &str| limits.unit.length(&about.dialect.escaped(title));
    cut(title, room, limits.unit, &measure)
}

/// Cuts `source` so that what `measure` says of it is at most `limit`.
fn cut(source: &str, limit: usize, unit: Unit, measure: &dyn Fn(&str) -> usize) -> String {
    let mut room = limit;
    loop {
        let shorter = text::cut(source, room, unit);
        let length = measure(&shorter);
        if length <= limit || room <= LEAST_ROOM {
            return shorter;
        }
        room = smaller(room, limit, length);
    }
}

/// Splits `source` so that what `measure` says of each part is at most `limit`.
fn split(source: &str, limit: usize, unit: Unit, measure: &dyn Fn(&str) -> usize) -> Vec<String> {
    split_in(source, limit, limit, unit, measure)
}

fn split_in(
    source: &str,
    room: usize,
    limit: usize,
    unit: Unit,
    measure: &dyn Fn(&str) -> usize,
) -> Vec<String> {
    let parts = text::split(source, room, unit).into_iter();
    parts
        .flat_map(|part| {
            let length = measure(&part);
            if length <= limit || room <= LEAST_ROOM {
                vec![part]
            } else {
                let room = smaller(unit.length(&part).min(room), limit, length);
                split_in(&part, room, limit, unit, measure)
            }
        })
        .collect()
}

/// Less room than `room`, which gave a text of `length` where only `limit` is allowed.
fn smaller(room: usize, limit: usize, length: usize) -> usize {
    (room.saturating_mul(limit) / length.max(1)).min(room.saturating_sub(1)).max(LEAST_ROOM)
}

#[cfg(test)]
mod tests {
    use deskbell_core::{
        Event, Source,
        event::{Content, EventIds, Kind},
        run::{Phase, RunStep},
    };
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use crate::{channel::Transport, render::Dialect};

    fn about(dialect: Dialect, limit: usize, unit: Unit) -> About {
        About {
            name: "test",
            title: "Test",
            docs: "",
            transport: Transport::Local,
            dialect,
            limits: Limits { title: 40, body: limit, unit, ..Limits::NONE },
            edits: true,
            example: "",
        }
    }

    fn message(text: &str, format: Format, run: bool) -> Message {
        let step = RunStep {
            run: "r".parse().unwrap(),
            phase: Phase::Update,
            step: None,
            progress: None,
            reported_at: Timestamp::UNIX_EPOCH,
        };
        Message::of(&Event {
            id: EventIds::default().next(Timestamp::UNIX_EPOCH, 0),
            at: Timestamp::UNIX_EPOCH,
            level: deskbell_core::Level::Info,
            context: deskbell_core::Context::default(),
            source: Source::default(),
            content: Content {
                title: Some("A title".to_owned()),
                text: text.to_owned(),
                format,
                ..Content::default()
            },
            kind: if run { Kind::Run(step) } else { Kind::Push },
            to: Vec::new(),
        })
    }

    #[test]
    fn a_short_text_stays_as_it_is() {
        let message = message("short", Format::Text, false);
        assert_eq!(
            parts(&about(Dialect::Plain, 100, Unit::Bytes), &message, &[], Overflow::Split),
            [message]
        );
    }

    #[test]
    fn parts_are_numbered_and_the_last_says_that_it_was_cut_row_114() {
        let parts = parts(
            &about(Dialect::Plain, 100, Unit::Characters),
            &message(&"word ".repeat(1_000), Format::Text, false),
            &[],
            Overflow::Split,
        );
        assert_eq!(parts.len(), PARTS_LIMIT);
        assert_eq!(parts[0].title.as_deref(), Some("A title (1/10)"));
        assert_eq!(parts[9].title.as_deref(), Some("A title (10/10)"));
        assert!(parts[9].body.ends_with(CUT_MARK));
    }

    #[test]
    fn a_step_that_is_edited_in_place_is_cut() {
        let message = message(&"word ".repeat(1_000), Format::Text, true);
        let parts =
            parts(&about(Dialect::Plain, 100, Unit::Characters), &message, &[], Overflow::Split);
        assert_eq!(parts.len(), 1);
        assert!(parts[0].body.ends_with(CUT_MARK));
    }

    #[test]
    fn a_user_may_have_long_texts_cut_or_sent_as_they_are() {
        let message = message(&"word ".repeat(100), Format::Text, false);
        let about = about(Dialect::Plain, 100, Unit::Characters);
        let cut = parts(&about, &message, &[], Overflow::Truncate);
        assert!(cut.len() == 1 && cut[0].body.ends_with(CUT_MARK), "{cut:?}");
        assert_eq!(parts(&about, &message, &[], Overflow::Upstream), [message]);
    }

    #[test]
    fn a_text_of_which_nothing_can_be_seen_says_so() {
        let message = message("\u{200b}", Format::Text, false);
        let parts = parts(&about(Dialect::Plain, 100, Unit::Bytes), &message, &[], Overflow::Split);
        assert_eq!(parts[0].body, NOTHING_VISIBLE);
    }

    /// The link of the tests.
    const LINK: &str = "https://ci.example.com/a_b/7?x=1";

    #[test]
    fn a_link_stands_below_the_text_unless_the_text_says_it() {
        #[track_caller]
        fn check(format: Format, text: &str, expected: &str) {
            let about = about(Dialect::Plain, 100, Unit::Characters);
            let below = [Line::link(LINK, format)];
            let parts = parts(&about, &message(text, format, false), &below, Overflow::Split);
            let bodies: Vec<_> = parts.into_iter().map(|part| part.body).collect();
            assert_eq!(bodies, [expected]);
        }
        check(Format::Text, "short", &format!("short\n\n{LINK}"));
        check(Format::Markdown, "short", &format!("short\n\n<{LINK}>"));
        check(Format::Markdown, "```\nopen", &format!("```\nopen\n```\n\n<{LINK}>"));
        let said = format!("see {LINK}.");
        check(Format::Text, &said, &said);
    }

    #[test]
    fn a_link_that_would_be_cut_off_with_the_end_of_the_text_stands_below_it() {
        let about = about(Dialect::Plain, 100, Unit::Characters);
        let text = format!("{}\nurl: {LINK}", "word ".repeat(100));
        let below = [Line::link(LINK, Format::Text)];
        let step = message(&text, Format::Text, true);
        let [part] = parts(&about, &step, &below, Overflow::Split).try_into().unwrap();
        let (text, link) = part.body.split_once("…\n\n").unwrap();
        assert!(text.starts_with("word word") && link == LINK, "{}", part.body);
    }

    #[test]
    fn where_there_is_hardly_room_the_link_comes_first() {
        let about = about(Dialect::Plain, 40, Unit::Characters);
        let step = message(&"word ".repeat(100), Format::Text, true);
        let below = [Line::link(LINK, Format::Text)];
        let [part] = parts(&about, &step, &below, Overflow::Split).try_into().unwrap();
        assert_eq!(part.body, format!("{LINK}\n\nword…"));
    }

    proptest! {
        #[test]
        fn every_part_is_within_the_limit_after_escaping_and_one_has_the_link_row_114(
            text in r##"([a-zä漢👍]{0,9}[ \n*_`<>&"#.@\[\]\\-]{0,4}){1,120}"##,
            limit in 120_usize..200,
            is_run: bool,
        ) {
            for dialect in Dialect::ALL {
                for (unit, format) in [(Unit::Bytes, Format::Text), (Unit::Utf16, Format::Markdown)] {
                    let about = about(dialect, limit, unit);
                    let below = [Line::link(LINK, format)];
                    let parts = parts(&about, &message(&text, format, is_run), &below, Overflow::Split);
                    prop_assert!(parts.iter().any(|part| below[0].is_in(&part.body)), "{parts:?}");
                    for part in parts {
                        let length = dialect.length(unit, format, &part.body);
                        prop_assert!(length <= limit, "{dialect:?} {length} > {limit}: {part:?}");
                        let title = part.title.map(|title| unit.length(&dialect.escaped(&title)));
                        prop_assert!(title.is_none_or(|length| length <= about.limits.title));
                    }
                }
            }
        }
    }
}
