//! A look at a template before it is parsed: bounds that the parser does not have, the names in it, and `{{ notify … }}`
//! as a tag.
//!
//! What is rewritten keeps its length, so that places in the one text are places in the other.

use std::collections::BTreeSet;

/// The longest tag, in bytes: conditions and chains of filters are taken apart by recursion.
const TAG_LIMIT: usize = 4 * 1024;

/// How deep blocks may lie in each other.
const NESTING_LIMIT: usize = 32;

/// How many branches the blocks may have that lie in each other: the parser goes one call deeper for each `elsif`.
const BRANCHES_LIMIT: usize = 200;

/// How deep indexes may lie in each other, as in `a[b[c]]`.
const INDEX_LIMIT: usize = 4;

/// How many digits a number may have: the parser cannot bear one that does not fit.
const DIGITS_LIMIT: usize = 18;

/// How many blanks and line ends may follow each other: at each of them the parser looks for the end of all.
const BLANKS_LIMIT: usize = 200;

/// How far from zero a range may go: its numbers are all made before the first is used.
pub(super) const RANGE_LIMIT: i64 = 10_000;

/// The tags that end with a tag of their own.
const BLOCKS: &[&str] = &["if", "unless", "case", "for", "capture"];

/// The tags that begin another branch of the block in which they stand.
const BRANCHES: &[&str] = &["elsif", "else", "when"];

/// What stands for each `{` between `{% raw %}` and `{% endraw %}`, so that the parser finds no tag there.
pub(super) const BRACE: char = '\u{1}';

const _: () = assert!(BRACE.len_utf8() == 1, "what is rewritten keeps its length");

/// What the parser takes for white space inside of a tag.
const BLANKS: [char; 3] = [' ', '\r', '\n'];

/// The words of the language that name no variable.
const KEYWORDS: &[&str] = &[
    "and", "or", "contains", "in", "true", "false", "nil", "null", "empty", "blank", "reversed",
    "limit", "offset", "forloop",
];

/// A template that may be parsed.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    /// The text, with each `{{ notify … }}` as `{% notify … %}`, and no tag within a comment or `raw`.
    pub(super) text: String,
    /// The variables that it uses and does not set, in order.
    pub(super) variables: Vec<String>,
    /// The variables at the ends of ranges.
    pub(super) range_ends: Vec<String>,
    /// Every word of a tag outside quotes, with its place.
    words: Vec<(String, usize)>,
}

/// What is wrong, and where in the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) at: usize,
    pub(super) message: String,
}

impl Wrong {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

impl Scanned {
    /// Looks through `text`.
    ///
    /// # Errors
    /// Says what is beyond the bounds, or never closed.
    pub(super) fn of(text: &str) -> Result<Self, Wrong> {
        check_blanks(text)?;
        let mut scan = Scan { text, made: text.as_bytes().to_vec(), ..Scan::default() };
        let mut rest = 0;
        while let Some(tag) = scan.next_tag(rest)? {
            rest = scan.take(&tag)?;
        }
        scan.finish()
    }

    /// Where `word` stands first.
    pub(super) fn place(&self, word: &str) -> Option<usize> {
        let root = word.split(['.', '[']).next().unwrap_or(word);
        self.words.iter().find(|(known, _)| known == root).map(|(_, at)| *at)
    }
}

fn check_blanks(text: &str) -> Result<(), Wrong> {
    let mut length = 0;
    for (at, byte) in text.bytes().enumerate() {
        length = if byte.is_ascii_whitespace() { length + 1 } else { 0 };
        if length > BLANKS_LIMIT {
            let message =
                format!("more than {BLANKS_LIMIT} blanks and line ends follow each other");
            return Err(Wrong::new(at - BLANKS_LIMIT, message));
        }
    }
    Ok(())
}

/// What stands between `{{` and `}}`, or `{%` and `%}`.
struct Tag {
    start: usize,
    end: usize,
    /// Behind the closing.
    after: usize,
    is_output: bool,
}

#[derive(Default)]
struct Scan<'a> {
    text: &'a str,
    /// The text as the parser gets it.
    made: Vec<u8>,
    /// How many branches each block has that is open, the innermost last.
    open: Vec<usize>,
    set: BTreeSet<String>,
    loops: BTreeSet<String>,
    used: Vec<String>,
    range_ends: Vec<(String, usize)>,
    words: Vec<(String, usize)>,
}

impl<'a> Scan<'a> {
    fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    fn next_tag(&self, from: usize) -> Result<Option<Tag>, Wrong> {
        let rest = self.slice(from, self.text.len());
        let Some(start) = [rest.find("{{"), rest.find("{%")].into_iter().flatten().min() else {
            return Ok(None);
        };
        let start = from + start;
        let is_output = self.slice(start, self.text.len()).starts_with("{{");
        let (opening, closing) = if is_output { ("{{", "}}") } else { ("{%", "%}") };
        let mut quote = None;
        let inside = self.slice(start + opening.len(), self.text.len());
        for (at, character) in inside.char_indices() {
            if at > TAG_LIMIT {
                let message = format!(
                    "what stands here has more than {TAG_LIMIT} bytes before its `{closing}`"
                );
                return Err(Wrong::new(start, message));
            }
            match quote {
                Some(open) if open == character => quote = None,
                Some(_) => {}
                None if matches!(character, '"' | '\'') => quote = Some(character),
                None if inside.get(at..).is_some_and(|rest| rest.starts_with(closing)) => {
                    let end = start + opening.len() + at;
                    return Ok(Some(Tag { start, end, after: end + closing.len(), is_output }));
                }
                None => {}
            }
        }
        Err(Wrong::new(start, format!("`{opening}` is never closed with `{closing}`")))
    }

    /// Looks at a tag, and says where the next may begin.
    fn take(&mut self, tag: &Tag) -> Result<usize, Wrong> {
        let from = tag.start + 2;
        let content = self.slice(from, tag.end);
        Self::check_values(content, tag.start)?;
        let words = words(content, from);
        if tag.is_output {
            if is_notice(content) {
                // As a tag it would end here, and what follows would be a template that nobody looked at.
                if let Some((at, _)) = outside_quotes(content).find(|(_, it)| *it == '%') {
                    let message = "a notice has no `%` outside quotes";
                    return Err(Wrong::new(from + at, message));
                }
                self.rewrite(tag.start + 1, tag.start + 2, |_| b'%');
                self.rewrite(tag.end, tag.end + 1, |_| b'%');
                self.note(words.get(1..).unwrap_or_default(), content, from);
            } else {
                self.note(&words, content, from);
            }
            return Ok(tag.after);
        }
        let Some(((name, _), arguments)) = words.split_first() else { return Ok(tag.after) };
        match name.as_str() {
            "raw" => return self.take_raw(tag.after),
            "comment" => return Ok(self.take_comment(tag.after)),
            _ => self.count(name, tag.start)?,
        }
        if name == "for" {
            self.take_range(content, from)?;
        }
        let target = arguments.first().map(|(target, _)| target.clone());
        match (name.as_str(), target) {
            ("assign" | "capture" | "increment" | "decrement", Some(target)) => {
                self.set.insert(target);
                self.note(arguments.get(1..).unwrap_or_default(), content, from);
            }
            ("for", Some(target)) => {
                self.loops.insert(target);
                self.note(arguments.get(1..).unwrap_or_default(), content, from);
            }
            _ => self.note(arguments, content, from),
        }
        Ok(tag.after)
    }

    /// Counts the blocks that lie in each other, and their branches.
    fn count(&mut self, name: &str, at: usize) -> Result<(), Wrong> {
        if BLOCKS.contains(&name) {
            self.open.push(0);
        } else if BRANCHES.contains(&name) {
            if let Some(branches) = self.open.last_mut() {
                *branches += 1;
            }
        } else if name.starts_with("end") {
            self.open.pop();
        }
        if self.open.len() > NESTING_LIMIT {
            let message = format!("blocks lie in each other more than {NESTING_LIMIT} deep");
            return Err(Wrong::new(at, message));
        }
        if self.open.iter().sum::<usize>() > BRANCHES_LIMIT {
            let message =
                format!("the blocks around this have more than {BRANCHES_LIMIT} branches");
            return Err(Wrong::new(at, message));
        }
        Ok(())
    }

    /// Hides the braces of a `raw` whose content begins at `from`: what ends it here must end it for the parser, which
    /// would pass over an end in quotes.
    fn take_raw(&mut self, from: usize) -> Result<usize, Wrong> {
        let (end, after) = self.end_of("raw", from);
        if let Some(at) = self.slice(from, end).find(BRACE) {
            let message = "the control character U+0001 cannot stand in `raw`";
            return Err(Wrong::new(from + at, message));
        }
        let brace = u8::try_from(BRACE).unwrap_or_default();
        self.rewrite(from, end, |byte| if byte == b'{' { brace } else { byte });
        Ok(after)
    }

    /// Strikes out a comment whose content begins at `from`: the parser would go into every block of it, however deep.
    ///
    /// Not with blanks, as the parser tries each of a row of blanks with all that follow.
    fn take_comment(&mut self, from: usize) -> usize {
        let (end, after) = self.end_of("comment", from);
        self.rewrite(from, end, |byte| if byte == b'\n' { byte } else { b'x' });
        after
    }

    fn rewrite(&mut self, from: usize, to: usize, with: impl Fn(u8) -> u8) {
        for byte in self.made.get_mut(from..to).into_iter().flatten() {
            *byte = with(*byte);
        }
    }

    /// Where the end of a block stands whose content is no template, and what is behind it. Comments lie in each other.
    fn end_of(&self, name: &str, from: usize) -> (usize, usize) {
        let end = format!("end{name}");
        let rest = self.slice(from, self.text.len());
        let mut open = 1_usize;
        for (at, _) in rest.match_indices("{%") {
            let here = rest.get(at..).unwrap_or_default();
            if let Some(length) = length_of(here, &end) {
                open -= 1;
                if open == 0 {
                    return (from + at, from + at + length);
                }
            } else if name == "comment" && length_of(here, name).is_some() {
                open += 1;
            }
        }
        (self.text.len(), self.text.len())
    }

    /// Checks indexes and numbers.
    fn check_values(content: &str, at: usize) -> Result<(), Wrong> {
        let (mut depth, mut digits) = (0_usize, 0_usize);
        for character in outside_quotes(content).map(|(_, character)| character) {
            digits = if character.is_ascii_digit() { digits + 1 } else { 0 };
            if digits > DIGITS_LIMIT {
                let message = format!("a number has more than {DIGITS_LIMIT} digits");
                return Err(Wrong::new(at, message));
            }
            match character {
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > INDEX_LIMIT {
                let message = format!("indexes lie in each other more than {INDEX_LIMIT} deep");
                return Err(Wrong::new(at, message));
            }
        }
        Ok(())
    }

    /// Checks the range of a loop, if it goes over one.
    fn take_range(&mut self, content: &str, from: usize) -> Result<(), Wrong> {
        let find = |wanted| outside_quotes(content).find(|(_, it)| *it == wanted).map(|(at, _)| at);
        let Some(open) = find('(') else { return Ok(()) };
        let close = find(')').unwrap_or(content.len());
        let at = from + open;
        let Some((start, end)) = content.get(open + 1..close).and_then(|it| it.split_once(".."))
        else {
            return Ok(());
        };
        for bound in [start.trim(), end.trim()] {
            match bound.parse::<i64>() {
                Ok(number) if number.unsigned_abs() <= RANGE_LIMIT.unsigned_abs() => {}
                Ok(_) => return Err(Wrong::new(at, range_message())),
                Err(_) if is_plain(bound) => {
                    self.range_ends.push((bound.to_owned(), at));
                }
                Err(_) => {
                    let message = "a range goes from one whole number or plain variable to another";
                    return Err(Wrong::new(at, message));
                }
            }
        }
        Ok(())
    }

    /// Keeps the words of a tag, and which of them are variables.
    fn note(&mut self, words: &[(String, usize)], content: &str, from: usize) {
        for (word, at) in words {
            let before = content.get(..at - from).unwrap_or_default().trim_end();
            let after = content.get(at - from + word.len()..).unwrap_or_default().trim_start();
            let is_part = before.ends_with('.') && !before.ends_with("..");
            let is_filter = before.ends_with('|');
            if !is_part
                && !is_filter
                && !after.starts_with(':')
                && !KEYWORDS.contains(&word.as_str())
            {
                self.used.push(word.clone());
            }
            self.words.push((word.clone(), *at));
        }
    }

    fn finish(self) -> Result<Scanned, Wrong> {
        // A loop's own variable may hold any number, and is not looked up where ranges are watched.
        for (end, at) in &self.range_ends {
            let root = end.split('.').next().unwrap_or(end);
            if self.loops.contains(root) || root == "forloop" {
                let message = format!("a range cannot end at `{root}`, which a loop sets");
                return Err(Wrong::new(*at, message));
            }
        }
        let mut seen = BTreeSet::new();
        let is_free = |name: &String| !self.set.contains(name) && !self.loops.contains(name);
        let variables = self
            .used
            .into_iter()
            .filter(is_free)
            .filter(|name| seen.insert(name.clone()))
            .collect();
        Ok(Scanned {
            // Whole characters were replaced, each of their bytes by one character.
            text: String::from_utf8(self.made).unwrap_or_default(),
            variables,
            range_ends: self.range_ends.into_iter().map(|(end, _)| end).collect(),
            words: self.words,
        })
    }
}

/// How long the tag `name` is that `text` begins with, if it does: nothing else stands in it.
fn length_of(text: &str, name: &str) -> Option<usize> {
    let inside = text.strip_prefix("{%")?;
    let inside = inside.strip_prefix('-').unwrap_or(inside).trim_start_matches(BLANKS);
    let end = inside.strip_prefix(name)?.trim_start_matches(BLANKS);
    let after = end.strip_prefix('-').unwrap_or(end).strip_prefix("%}")?;
    Some(text.len() - after.len())
}

/// Whether `bound` is a variable or a field of one, without an index.
fn is_plain(bound: &str) -> bool {
    bound.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
        && bound.chars().all(|it| it.is_ascii_alphanumeric() || "_-.".contains(it))
}

/// What is said of a range that is too long.
pub(super) fn range_message() -> String {
    format!("a range may go from -{RANGE_LIMIT} to {RANGE_LIMIT}")
}

/// Whether the content of `{{ … }}` is a notice and no variable that is called `notify`.
fn is_notice(content: &str) -> bool {
    let content = content.trim_start_matches('-').trim_start();
    let Some(rest) = content.strip_prefix("notify") else { return false };
    let argument = rest.trim_start();
    let is_apart = argument.len() < rest.len() || argument.starts_with(['"', '\'']);
    is_apart
        && argument
            .starts_with(|it: char| matches!(it, '"' | '\'' | '_') || it.is_ascii_alphabetic())
}

/// The characters of a tag that do not stand in quotes.
fn outside_quotes(content: &str) -> impl Iterator<Item = (usize, char)> {
    let mut quote = None;
    content.char_indices().filter(move |(_, character)| match quote {
        Some(open) => {
            if open == *character {
                quote = None;
            }
            false
        }
        None if matches!(character, '"' | '\'') => {
            quote = Some(*character);
            false
        }
        None => true,
    })
}

/// The words of a tag outside quotes, with their places in the text in which it begins at `from`.
fn words(content: &str, from: usize) -> Vec<(String, usize)> {
    let mut words: Vec<(String, usize)> = Vec::new();
    let mut end = None;
    for (at, character) in outside_quotes(content) {
        let continues = end == Some(at);
        let is_letter = character.is_ascii_alphabetic() || character == '_';
        let is_further = character.is_ascii_digit() || character == '-';
        match words.last_mut().filter(|_| continues) {
            Some((word, _)) if is_letter || is_further => word.push(character),
            _ if is_letter => words.push((character.to_string(), from + at)),
            _ => continue,
        }
        end = Some(at + character.len_utf8());
    }
    for (word, _) in &mut words {
        // The hyphen of `-%}` belongs to the tag.
        word.truncate(word.trim_end_matches('-').len());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn rewritten(text: &str, expected: &str) {
        assert_eq!(Scanned::of(text).unwrap().text, expected);
    }

    #[test]
    fn a_notice_becomes_a_tag_in_its_place_and_a_variable_stays_row_14() {
        rewritten(r#"a {{ notify "b" }} c"#, r#"a {% notify "b" %} c"#);
        rewritten(r#"{{- notify "deep }} quote %}" -}}"#, r#"{%- notify "deep }} quote %}" -%}"#);
        rewritten("{{notify'b'}}{{ notify who }}", "{%notify'b'%}{% notify who %}");
        for same in [
            "{{ notify }}",
            "{{ notify | upcase }}",
            "{{ notifyx }}",
            "{{ notify.a }}",
            "no tag { at } all, 任",
        ] {
            rewritten(same, same);
        }
    }

    #[test]
    fn nothing_in_a_comment_or_in_raw_is_a_tag_for_the_parser() {
        rewritten(
            r#"{% raw %}{{ notify "b" }} 任{%- endraw -%}{{ a }}"#,
            "{% raw %}\u{1}\u{1} notify \"b\" }} 任{%- endraw -%}{{ a }}",
        );
        rewritten(
            "{%- comment -%}{{ a\n任{%- endcomment -%}b",
            "{%- comment -%}xxxx\nxxx{%- endcomment -%}b",
        );
        rewritten(
            "{% comment %}{%comment%}{% if %}{%endcomment%}{% endcomment %}{{ a }}",
            &format!("{{% comment %}}{}{{% endcomment %}}{{{{ a }}}}", "x".repeat(33)),
        );
        // What the parser does not take for the end is not one.
        let odd = "{%--endcomment%}{%\tendcomment%}{% endcomment a %}";
        rewritten(
            &format!("{{% comment %}}{odd}{{% endcomment %}}"),
            &format!("{{% comment %}}{}{{% endcomment %}}", "x".repeat(odd.len())),
        );
        rewritten("{% raw %}{%", "{% raw %}\u{1}%");
    }

    #[test]
    fn variables_are_those_that_nothing_sets() {
        let text = "{% if complexity > 5 and who contains 'x' %}{{ user.name | append: end, by: \"no\" }}\
            {% assign a = b | plus: 1 %}{{ a }}{% for item in list limit:2 %}{{ item }}{{ forloop.index }}\
            {% endfor %}{% notify text, level: level %}{{ who }}{%- endif -%}";
        let scanned = Scanned::of(text).unwrap();
        assert_eq!(
            scanned.variables,
            ["complexity", "who", "user", "end", "b", "list", "text", "level"]
        );
        assert_eq!(scanned.place("who").and_then(|at| text.get(at..at + 3)), Some("who"));
    }

    #[test]
    fn what_the_parser_could_not_bear_is_refused_with_its_place() {
        #[track_caller]
        fn check(text: &str, at: usize, message: &str) {
            let wrong = Scanned::of(text).unwrap_err();
            assert_eq!(wrong.at, at, "{wrong:?}");
            assert!(wrong.message.contains(message), "{wrong:?}");
        }
        check("ab {{ c", 3, "`{{` is never closed with `}}`");
        check("{% if 'a %}", 0, "never closed");
        check(&format!("a{}", "\n ".repeat(101)), 1, "more than 200 blanks");
        check(&format!("{{% if {} %}}", "a or ".repeat(2_000)), 0, "more than 4096 bytes");
        check(&"{% if a %}".repeat(40), 320, "more than 32 deep");
        check(
            &format!("{{% if a %}}{}", "{% elsif a %}".repeat(201)),
            2_610,
            "more than 200 branches",
        );
        let inner = format!("{{% if a %}}{}", "{% elsif a %}".repeat(101));
        check(&inner.repeat(2), 2_620, "more than 200 branches");
        check("{% raw %}a\u{1}{% endraw %}", 10, "U+0001");
        check("{{ notify a %}{% for i in (1..1000000000) %}{% notify b }}", 12, "no `%` outside");
        check(&format!("x{{{{ a{}1{} }}}}", "[b".repeat(9), "]".repeat(9)), 1, "more than 4 deep");
        check("{% for i in (1..1000000000) %}{% endfor %}", 12, "from -10000 to 10000");
        check("{% for i in (1..99999999999999999999) %}{% endfor %}", 0, "more than 18 digits");
        check("{{ 99999999999999999999 }}", 0, "more than 18 digits");
        check("{% for i in a %}{% for j in (1..i) %}", 28, "which a loop sets");
        check("{% for i in (1..a[0]) %}", 12, "plain variable");
        assert_eq!(Scanned::of("{% for i in (1..n.m) %}").unwrap().range_ends, ["n.m"]);
    }
}
