//! Reads Markdown and writes it with the marks of a dialect.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, TextMergeStream};

use super::{code, marks::Marks};

/// `source`, which is Markdown, written with `marks`.
pub(super) fn render(source: &str, marks: &'static Marks) -> String {
    let mut writer = Writer::new(marks);
    // In pieces, the text would hide what its whole means, such as `<@all>`.
    for event in TextMergeStream::new(Parser::new_ext(source, EXTENSIONS)) {
        writer.event(event);
    }
    writer.finish()
}

const EXTENSIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

struct Writer {
    marks: &'static Marks,
    /// What is written, and on top of it the insides of open quotes, items, links and blocks of code.
    open: Vec<String>,
    lists: Vec<List>,
    links: Vec<String>,
    /// The language of the open block of code.
    code: Option<String>,
}

struct List {
    /// The number of the next item, in a list with numbers.
    next: Option<u64>,
    first: bool,
}

impl Writer {
    fn new(marks: &'static Marks) -> Self {
        Self { marks, open: vec![String::new()], lists: Vec::new(), links: Vec::new(), code: None }
    }

    fn finish(mut self) -> String {
        let written = self.close();
        written.trim_end().to_owned()
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(code) => {
                let (before, after) = self.marks.code;
                self.write(before);
                self.write(&(self.marks.escape_code)(&code));
                self.write(after);
            }
            // HTML means nothing here: whoever writes `Vec<String>` wants to see it.
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::SoftBreak | Event::HardBreak => self.write(self.marks.line),
            Event::Rule => {
                self.part();
                self.write(self.marks.rule);
            }
            Event::TaskListMarker(done) => self.write(if done { "[x] " } else { "[ ] " }),
            Event::InlineMath(_) | Event::DisplayMath(_) | Event::FootnoteReference(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let marks = self.marks;
        match tag {
            Tag::Paragraph => self.begin(marks.paragraph),
            Tag::Heading { .. } => self.begin(marks.heading),
            Tag::HtmlBlock => self.begin(marks.paragraph),
            Tag::BlockQuote(_) => {
                self.part();
                self.open.push(String::new());
            }
            Tag::CodeBlock(kind) => {
                self.part();
                self.code = Some(language(&kind));
                self.open.push(String::new());
            }
            Tag::List(first) => {
                self.part();
                self.write(if first.is_some() { marks.numbers.0 } else { marks.bullets.0 });
                self.lists.push(List { next: first, first: true });
            }
            Tag::Item => self.open.push(String::new()),
            Tag::Table(_) => self.begin(marks.paragraph),
            Tag::TableRow => self.write(marks.line),
            Tag::TableCell if !self.at_line_start() => self.write(" | "),
            Tag::Emphasis => self.write(marks.italic.0),
            Tag::Strong => self.write(marks.bold.0),
            Tag::Strikethrough => self.write(marks.strike.0),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.into_string());
                self.open.push(String::new());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        let marks = self.marks;
        match tag {
            TagEnd::Paragraph | TagEnd::Table => self.write(marks.paragraph.1),
            TagEnd::HtmlBlock => {
                let trimmed = self.close().trim_end().to_owned();
                self.open.push(trimmed);
                self.write(marks.paragraph.1);
            }
            TagEnd::Heading(_) => self.write(marks.heading.1),
            TagEnd::BlockQuote(_) => {
                let quoted = self.close();
                self.write(&(marks.quote)(&quoted));
            }
            TagEnd::CodeBlock => {
                let code = self.close();
                let language = self.code.take().unwrap_or_default();
                let code = code.trim_end_matches('\n');
                let coloured = marks.coloured.then(|| code::coloured(code, &language)).flatten();
                let code = coloured.unwrap_or_else(|| (marks.escape_code)(code));
                self.write(&(marks.pre)(&code, &language));
            }
            TagEnd::List(numbered) => {
                self.lists.pop();
                self.write(if numbered { marks.numbers.1 } else { marks.bullets.1 });
            }
            TagEnd::Item => self.end_item(),
            TagEnd::Emphasis => self.write(marks.italic.1),
            TagEnd::Strong => self.write(marks.bold.1),
            TagEnd::Strikethrough => self.write(marks.strike.1),
            TagEnd::Link | TagEnd::Image => {
                let label = self.close();
                match self.links.pop().filter(|address| is_allowed(address)) {
                    Some(address) => self.write(&(marks.link)(&label, &address)),
                    None => self.write(&label),
                }
            }
            _ => {}
        }
    }

    fn end_item(&mut self) {
        let marks = self.marks;
        let item = self.close();
        self.write(marks.item.0);
        if let (Some(bullet), Some(list)) = (marks.bullet, self.lists.last_mut()) {
            let marker = match list.next.as_mut() {
                Some(next) => {
                    *next += 1;
                    format!("{}. ", *next - 1)
                }
                None => bullet.to_owned(),
            };
            let before = if list.first { "" } else { marks.line };
            list.first = false;
            let indented = item.trim_end().replace('\n', "\n  ").replace("\n  \n", "\n\n");
            self.write(&format!("{before}{marker}{indented}"));
        } else {
            self.write(&item);
        }
        self.write(marks.item.1);
    }

    /// Writes `text`, which means nothing but itself.
    fn text(&mut self, text: &str) {
        if self.code.is_some() {
            // It is escaped as a whole at its end.
            self.write(text);
        } else {
            self.write(&(self.marks.escape)(text).replace('\n', self.marks.line));
        }
    }

    fn begin(&mut self, (before, _): (&str, &str)) {
        self.part();
        self.write(before);
    }

    /// Sets the next part off from what is written before it.
    fn part(&mut self) {
        let tight = !self.lists.is_empty();
        let has_text = self.open.last().is_some_and(|written| !written.is_empty());
        if has_text && !(tight && self.marks.bullet.is_none()) {
            self.write(if tight { self.marks.line } else { self.marks.between });
        }
    }

    fn at_line_start(&self) -> bool {
        let (line, before) = (self.marks.line, self.marks.paragraph.0);
        self.open.last().is_none_or(|written| {
            written.is_empty()
                || written.ends_with(line)
                || (!before.is_empty() && written.ends_with(before))
        })
    }

    fn write(&mut self, text: &str) {
        if let Some(top) = self.open.last_mut() {
            top.push_str(text);
        }
    }

    fn close(&mut self) -> String {
        self.open.pop().unwrap_or_default()
    }
}

/// Whether a reader may be sent to `address`.
fn is_allowed(address: &str) -> bool {
    let scheme = address.split(':').next().unwrap_or_default().to_ascii_lowercase();
    address.contains(':') && matches!(scheme.as_str(), "http" | "https" | "mailto")
}

/// The language of a block of code, if it is a plain word.
fn language(kind: &CodeBlockKind<'_>) -> String {
    let CodeBlockKind::Fenced(info) = kind else {
        return String::new();
    };
    let word = info.split([' ', ',']).next().unwrap_or_default();
    let plain = |character: char| character.is_ascii_alphanumeric() || "+-#_".contains(character);
    if word.chars().all(plain) { word.to_owned() } else { String::new() }
}
