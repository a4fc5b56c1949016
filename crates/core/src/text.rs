//! Text from outside: cleaned of what deceives, counted in the far end's unit, cut where a reader would.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation as _;

/// What a length is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of UTF-8.
    Bytes,
    /// Unicode scalar values.
    Characters,
    /// UTF-16 code units, as Telegram counts.
    Utf16,
}

impl Unit {
    /// The length of `text` in this unit.
    pub fn length(self, text: &str) -> usize {
        match self {
            Self::Bytes => text.len(),
            Self::Characters => text.chars().count(),
            Self::Utf16 => text.encode_utf16().count(),
        }
    }
}

/// The mark at the end of a text that was cut.
pub const CUT_MARK: &str = "…";

/// Cuts `text` to at most `limit` units, on a grapheme boundary, with [`CUT_MARK`] where something is missing.
pub fn cut(text: &str, limit: usize, unit: Unit) -> String {
    if unit.length(text) <= limit {
        return text.to_owned();
    }
    let Some(room) = limit.checked_sub(unit.length(CUT_MARK)) else {
        return String::new();
    };
    let mut cut = prefix(text, room, unit).trim_end().to_owned();
    cut.push_str(CUT_MARK);
    cut
}

/// The longest start of `text` that has at most `room` units and ends on a grapheme boundary.
fn prefix(text: &str, room: usize, unit: Unit) -> &str {
    let mut used = 0;
    let end = text.grapheme_indices(true).find_map(|(index, grapheme)| {
        used += unit.length(grapheme);
        (used > room).then_some(index)
    });
    end.map_or(text, |end| text.get(..end).unwrap_or_default())
}

/// Splits `text` into parts of at most `limit` units each.
///
/// A part ends at a blank line if there is one in its second half, else at a line end, else at a space, else
/// anywhere between two graphemes. A fenced code block that is cut in two is closed and opened again, so that each
/// part renders by itself.
pub fn split(text: &str, limit: usize, unit: Unit) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text.to_owned();
    while unit.length(&rest) > limit {
        // Room for closing a fence that the part leaves open.
        let room = limit.saturating_sub(unit.length(FENCE_END)).max(1);
        let head = prefix(&rest, room, unit);
        let end = break_point(head);
        let (head, tail) = rest.split_at(end.max(first_grapheme(&rest)));
        let mut part = head.trim_end().to_owned();
        let mut next = tail.trim_start_matches(['\n', ' ']).to_owned();
        if let Some(opening) = open_fence(head) {
            let opening = if unit.length(opening) * 4 > limit { "```" } else { opening };
            part.push_str(FENCE_END);
            next = format!("{opening}\n{next}");
            // A fence whose repetition eats all the room would never end.
            if unit.length(&next) >= unit.length(&rest) {
                next = tail.to_owned();
            }
        }
        if !part.is_empty() {
            parts.push(prefix(&part, limit, unit).to_owned());
        }
        rest = next;
    }
    if !rest.is_empty() || parts.is_empty() {
        parts.push(rest);
    }
    parts
}

const FENCE_END: &str = "\n```";

fn first_grapheme(text: &str) -> usize {
    text.graphemes(true).next().map_or(0, str::len)
}

/// Where to break `head`: after a blank line, a line or a word, if one ends in its second half.
fn break_point(head: &str) -> usize {
    let late = |index: &usize| *index > head.len() / 2;
    let blank_line = head.rfind("\n\n").filter(late);
    let line = head.rfind('\n').filter(late);
    let word = head.rfind(' ').filter(late);
    blank_line.or(line).or(word).unwrap_or(head.len())
}

/// What ends the code fence that `text` leaves open; nothing, if it leaves none.
pub fn fence_end(text: &str) -> &'static str {
    open_fence(text).map_or("", |_| FENCE_END)
}

/// The opening line of the code fence that `text` leaves open, if it does.
fn open_fence(text: &str) -> Option<&str> {
    text.lines().fold(None, |open, line| match (open, line.trim_start().starts_with("```")) {
        (None, true) => Some(line),
        (Some(_), true) => None,
        (open, false) => open,
    })
}

/// Makes `text` safe to show on one line of a log or terminal: what moves, colours or reorders is written out.
///
/// Line breaks become `\n`, other controls `\u{1b}`, so that the reader sees that they were there.
pub fn one_line(text: &str) -> Cow<'_, str> {
    rewrite(text, |character| match character {
        '\n' => Some("\\n".to_owned()),
        '\r' => Some("\\r".to_owned()),
        '\t' => Some("\\t".to_owned()),
        other => Some(format!("\\u{{{:x}}}", u32::from(other))),
    })
}

/// Makes `text` safe to show on several lines: line breaks and tabs stay, what deceives is dropped.
pub fn clean(text: &str) -> Cow<'_, str> {
    let kept = |character: char| matches!(character, '\n' | '\t').then(|| character.to_string());
    if text.contains('\u{1b}') {
        Cow::Owned(rewrite(&without_escapes(text), kept).into_owned())
    } else {
        rewrite(text, kept)
    }
}

/// Makes a line of JSON safe to show: what moves, colours or reorders is escaped as JSON does it, so that it reads as
/// the same value.
pub fn json_line(json: &str) -> Cow<'_, str> {
    // Between values stand only spaces, so all that is rewritten stands in a text.
    rewrite(json, |character| {
        let units = character.encode_utf16(&mut [0; 2]).to_vec();
        Some(units.iter().map(|unit| format!("\\u{unit:04x}")).collect())
    })
}

/// Whether a reader sees nothing at all of `text`.
pub fn is_blank(text: &str) -> bool {
    let is_unseen = |character: char| character.is_whitespace() || is_invisible(character);
    text.chars().all(is_unseen)
        || (text.contains('\u{1b}') && without_escapes(text).chars().all(is_unseen))
}

/// Whether `character` shows as nothing, or as room for nothing.
fn is_invisible(character: char) -> bool {
    is_suspect(character)
        || matches!(character,
            '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' // joiners and fillers
            | '\u{180b}'..='\u{180f}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}') // variation selectors
}

/// Rewrites each deceiving character by `written`, or drops it where that gives nothing.
fn rewrite(text: &str, written: impl Fn(char) -> Option<String>) -> Cow<'_, str> {
    if !text.chars().any(is_suspect) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len());
    let mut previous = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let joins = character == JOINER
            && previous.is_some_and(is_pictograph)
            && characters.peek().copied().is_some_and(is_pictograph);
        if !is_suspect(character) || joins {
            cleaned.push(character);
        } else {
            cleaned.push_str(&written(character).unwrap_or_default());
        }
        previous = Some(character);
    }
    Cow::Owned(cleaned)
}

/// The zero-width joiner, which holds 👩‍💻 together.
const JOINER: char = '\u{200d}';

/// Whether `character` can move the cursor, colour, reorder, hide or impersonate.
fn is_suspect(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}'                   // soft hyphen, Arabic letter mark, vowel separator
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' // zero width, line separators, bidi
            | '\u{2060}'..='\u{206f}' | '\u{feff}'              // invisible operators, bidi isolates, BOM
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}') // annotations, tag characters
}

/// Whether `character` may stand beside a joiner: pictographs, their selectors and skin tones.
fn is_pictograph(character: char) -> bool {
    matches!(character, '\u{fe0f}' | '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// Drops ANSI escape sequences whole (ECMA-48, section 5.4; OSC as xterm writes it).
fn without_escapes(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '\u{1b}' {
            kept.push(character);
            continue;
        }
        match characters.next_if(|next| matches!(next, '[' | ']' | 'P' | 'X' | '^' | '_')) {
            Some('[') => {
                while characters
                    .next_if(|next| !('\u{40}'..='\u{7e}').contains(next) && !next.is_control())
                    .is_some()
                {}
            }
            Some(_) => {
                while characters
                    .next_if(|next| !matches!(next, '\u{7}' | '\u{1b}' | '\n'))
                    .is_some()
                {}
                characters.next_if(|next| *next != '\n');
                characters.next_if_eq(&'\\');
                continue;
            }
            None => {}
        }
        characters.next_if(|next| ('\u{30}'..='\u{7e}').contains(next));
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn log_lines_show_what_was_hidden_row_12() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(one_line(text), expected);
        }
        check("plain ä 漢字 👩‍💻", "plain ä 漢字 👩‍💻");
        check("a\nINFO forged\r", "a\\nINFO forged\\r");
        check("\u{1b}[31mred", "\\u{1b}[31mred");
        check("user\u{202e}gnp.exe", "user\\u{202e}gnp.exe");
        check("tag\u{e0041}", "tag\\u{e0041}");
        check("a\u{200d}b", "a\\u{200d}b");
    }

    #[test]
    fn json_stays_what_it_is_and_shows_what_was_hidden() {
        let value = serde_json::json!({ "a\u{9b}": "\u{7f}\u{202e}\u{2028}\u{e0041} ä 👩‍💻" });
        let json = value.to_string();
        let line = json_line(&json);
        assert_eq!(line, r#"{"a\u009b":"\u007f\u202e\u2028\udb40\udc41 ä 👩‍💻"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), value);
    }

    #[test]
    fn what_nobody_sees_is_blank() {
        for blank in [
            "",
            " \n",
            "\u{200b}",
            "\u{2800}",
            "\u{3164}\u{fe0f}",
            "\u{feff} ",
            "\u{1b}[31m\u{1b}[0m",
        ] {
            assert!(is_blank(blank), "{blank:?}");
        }
        for seen in [".", "❤\u{fe0f}", "\u{200b}a", "\u{1b}[31mred"] {
            assert!(!is_blank(seen), "{seen:?}");
        }
    }

    #[test]
    fn several_lines_stay_and_deceit_goes() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(clean(text), expected);
        }
        check("a\n\tb", "a\n\tb");
        check("\u{1b}[1;31mred\u{1b}[0m", "red");
        check("\u{1b}]8;;http://evil\u{1b}\\link\u{1b}]8;;\u{7}", "link");
        check("a\u{9b}31mb\u{0}", "a31mb");
        check("\u{202e}abc\u{202c}", "abc");
    }

    #[test]
    fn cutting_keeps_graphemes_whole() {
        assert_eq!(cut("👩‍💻👩‍💻", 6, Unit::Utf16), "👩‍💻…");
        assert_eq!(cut("äöü", 5, Unit::Bytes), "ä…");
        assert_eq!(cut("short", 5, Unit::Characters), "short");
        assert_eq!(cut("text", 0, Unit::Characters), "");
    }

    #[test]
    fn splitting_prefers_paragraphs() {
        assert_eq!(
            split("one two three\n\nfour five", 18, Unit::Characters),
            ["one two three", "four five"]
        );
    }

    #[test]
    fn a_fence_cut_in_two_is_closed_and_opened_again() {
        let text = format!("```rust\n{}```", "let x = 1;\n".repeat(20));
        let parts = split(&text, 100, Unit::Characters);
        assert!(parts.len() > 2);
        for part in &parts {
            assert!(part.starts_with("```rust\n") && part.ends_with("```"), "{part}");
        }
    }

    proptest! {
        #[test]
        fn no_part_is_longer_than_the_limit_and_no_word_is_lost(text in "([a-zä👍]{0,12}[ \n`]{0,3}){0,60}", limit in 24_usize..80) {
            for unit in [Unit::Bytes, Unit::Characters, Unit::Utf16] {
                let parts = split(&text, limit, unit);
                for part in &parts {
                    prop_assert!(unit.length(part) <= limit, "{} > {limit}: {part:?}", unit.length(part));
                }
                let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic() || *c == '👍').collect::<String>();
                if !text.contains("```") {
                    prop_assert_eq!(letters(&parts.concat()), letters(&text));
                }
                prop_assert!(unit.length(&cut(&text, limit, unit)) <= limit);
            }
        }

        #[test]
        fn cleaned_text_has_nothing_left_to_clean(text in any::<String>()) {
            let line = one_line(&text);
            prop_assert!(!line.chars().any(char::is_control));
            let cleaned = clean(&text).into_owned();
            prop_assert!(!cleaned.contains('\x1b'));
            prop_assert_eq!(clean(&cleaned).into_owned(), cleaned);
        }
    }
}
