//! A message's text in the dialect of a far end: escaped, so that it arrives as it was meant and nothing more.
//!
//! Text stays text, character for character. Markdown is read once (`render/markdown.rs`) and written with the marks
//! of the dialect; HTML inside it is text like any other, and only web and mail addresses become links.

mod code;
mod markdown;
mod marks;

use deskbell_core::{Level, Message, event::Format, text::Unit};

use marks::Marks;

/// How a far end wants text to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Without any marks; those of Markdown are taken out.
    Plain,
    /// Markdown as it was reported, for far ends that read all of it and are told whether it is.
    Markdown,
    /// The tags that Telegram knows.
    TelegramHtml,
    /// HTML for readers that colour code themselves.
    Html,
    /// HTML for mail, with code in colours.
    Mail,
    /// The part of Markdown that DingTalk knows, where a line break is a blank line. Plain text stays plain, because
    /// it is sent as such.
    DingTalk,
    /// Markdown as it was reported, for chats that read all of it, text included: text is escaped, and nobody is
    /// mentioned.
    ChatMarkdown,
    /// The Markdown of Discord, text included.
    Discord,
    /// The marks of Slack, `mrkdwn`, text included.
    Slack,
    /// The marks of Google Chat, text included.
    GoogleChat,
    /// The marks of WhatsApp, text included.
    WhatsApp,
    /// The Markdown of WeCom robots. Plain text stays plain, because it is sent as such.
    WeCom,
    /// The Markdown of Feishu's cards. Plain text stays plain, because it is sent as such.
    Feishu,
    /// The few tags of HTML that Pushover knows. Plain text stays plain, because it is sent as such.
    PushoverHtml,
    /// Markdown as it was reported, in which nobody is mentioned. Plain text stays plain, because it is sent as such.
    Webex,
    /// The `KMarkdown` of KOOK, text included.
    Kook,
    /// Markdown for pages, text included, where a line break is a blank line.
    PageMarkdown,
    /// The part of Markdown that Adaptive Cards know. Plain text stays plain, because it is sent as such.
    AdaptiveCard,
    /// Markdown as it was reported, for Zulip, which reads all of it, text included, and no backslashes.
    Zulip,
    /// The Markdown of Rocket.Chat, text included, which reads no backslashes.
    RocketChat,
    /// Without any marks, for networks in which `@name` calls somebody.
    Unmentioned,
    /// The little markup of desktop notifications, text included.
    Desktop,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 22] = [
        Self::Plain,
        Self::Markdown,
        Self::TelegramHtml,
        Self::Html,
        Self::Mail,
        Self::DingTalk,
        Self::ChatMarkdown,
        Self::Discord,
        Self::Slack,
        Self::GoogleChat,
        Self::WhatsApp,
        Self::WeCom,
        Self::Feishu,
        Self::PushoverHtml,
        Self::Webex,
        Self::Kook,
        Self::PageMarkdown,
        Self::AdaptiveCard,
        Self::Zulip,
        Self::RocketChat,
        Self::Unmentioned,
        Self::Desktop,
    ];

    /// The text of `message` in this dialect.
    pub fn body(self, message: &Message) -> String {
        self.render(message.format, &message.body)
    }

    /// The title of `message`, marked by its level, and its text, as one text in this dialect: for far ends that show
    /// no title of their own.
    pub fn titled(self, message: &Message) -> String {
        let (mark, body) = (mark(message.level), self.body(message));
        let Some(title) = &message.title else { return format!("{mark}{body}") };
        let (open, close) = match message.format {
            Format::Text if self.keeps_text() => ("", ""),
            _ => self.marks().heading,
        };
        let title = match message.format {
            Format::Text => self.render(Format::Text, title),
            Format::Markdown => self.escaped(title),
        };
        format!("{open}{mark}{title}{close}\n\n{body}")
    }

    /// The title of `message` and its text without a mark of the level, for text messages, where one emoji doubles what
    /// they cost.
    pub fn unmarked(self, message: &Message) -> String {
        let body = self.body(message);
        match &message.title {
            Some(title) => format!("{}\n{body}", self.escaped(title)),
            None => body,
        }
    }

    /// Whether a text without Markdown goes out as such, without marks or escapes.
    const fn keeps_text(self) -> bool {
        matches!(
            self,
            Self::Plain
                | Self::Markdown
                | Self::DingTalk
                | Self::WeCom
                | Self::Feishu
                | Self::PushoverHtml
                | Self::AdaptiveCard
                | Self::Webex
        )
    }

    /// `source` in this dialect.
    pub fn render(self, format: Format, source: &str) -> String {
        match (self, format) {
            (Self::WeCom, Format::Text) => marks::without_wecom_calls(source),
            (Self::Feishu, Format::Text) => marks::without_feishu_calls(source),
            (Self::Markdown, _) => source.to_owned(),
            (_, Format::Text) if self.keeps_text() => source.to_owned(),
            (Self::ChatMarkdown | Self::Zulip | Self::Webex, Format::Markdown) => {
                marks::unmentioned(source)
            }
            (_, Format::Text) => self.lines(source),
            (_, Format::Markdown) => {
                let rendered = markdown::render(source, self.marks());
                // A text that is nothing but marks is shown with them rather than not at all.
                if rendered.trim().is_empty() { self.lines(source) } else { rendered }
            }
        }
    }

    /// `line`, such as a title, with everything escaped that means something in this dialect.
    pub fn escaped(self, line: &str) -> String {
        match self {
            Self::Plain | Self::Markdown => line.to_owned(),
            _ => (self.marks().escape)(line),
        }
    }

    /// How long `source` is for the far end, which counts after it has read the escapes.
    pub(crate) fn length(self, unit: Unit, format: Format, source: &str) -> usize {
        let rendered = self.render(format, source);
        match self {
            Self::TelegramHtml => unit.length(&visible(&rendered)),
            // The limit is on the whole request, so what JSON adds counts.
            Self::DingTalk | Self::Feishu => {
                unit.length(&serde_json::Value::from(rendered).to_string())
            }
            _ => unit.length(&rendered),
        }
    }

    fn lines(self, source: &str) -> String {
        let marks = self.marks();
        let lines: Vec<_> = source.split('\n').map(|line| (marks.escape)(line)).collect();
        lines.join(marks.line)
    }

    const fn marks(self) -> &'static Marks {
        match self {
            Self::Plain | Self::Markdown => &marks::PLAIN,
            Self::TelegramHtml => &marks::TELEGRAM,
            Self::Html => &marks::HTML,
            Self::Mail => &marks::MAIL,
            Self::DingTalk => &marks::DINGTALK,
            Self::ChatMarkdown | Self::Webex => &marks::CHAT,
            Self::Discord => &marks::DISCORD,
            Self::Slack => &marks::SLACK,
            Self::GoogleChat => &marks::GOOGLE_CHAT,
            Self::WhatsApp => &marks::WHATSAPP,
            Self::WeCom => &marks::WECOM,
            Self::Feishu => &marks::FEISHU,
            Self::PushoverHtml => &marks::PUSHOVER,
            Self::Kook => &marks::KOOK,
            Self::PageMarkdown => &marks::PAGE,
            Self::AdaptiveCard => &marks::ADAPTIVE_CARD,
            Self::Zulip => &marks::ZULIP,
            Self::RocketChat => &marks::ROCKET_CHAT,
            Self::Unmentioned => &marks::UNMENTIONED,
            Self::Desktop => &marks::DESKTOP,
        }
    }
}

/// What Telegram shows of `html`: its tags taken out, its escapes read.
fn visible(html: &str) -> String {
    let mut shown = String::with_capacity(html.len());
    let mut in_tag = false;
    for character in html.chars() {
        match character {
            '<' => in_tag = true,
            '>' => in_tag = false,
            other if !in_tag => shown.push(other),
            _ => {}
        }
    }
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")]
        .iter()
        .fold(shown, |text, (escape, character)| text.replace(escape, character))
}

/// What stands before a title whose level should be seen at a glance, for far ends without levels of their own.
pub const fn mark(level: Level) -> &'static str {
    match level {
        Level::Debug | Level::Info | Level::Notice => "",
        Level::Warning => "⚠️ ",
        Level::Error => "❌ ",
        Level::Critical | Level::Alert | Level::Emergency => "🚨 ",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(dialect: Dialect, source: &str, expected: &str) {
        assert_eq!(dialect.render(Format::Markdown, source), expected);
    }

    const SAMPLE: &str = "# Build *failed*\n\nSee **the log** at [CI](https://ci.example.com/a?b=1&c=2):\n\
        line two\n\n- one `x<y`\n- two\n  1. inner\n\n> quoted\n\n```rust\nlet a = 1 < 2;\n```\n";

    #[test]
    fn markdown_is_taken_out_of_plain_text_row_20() {
        check(
            Dialect::Plain,
            SAMPLE,
            "Build failed\n\nSee the log at CI (https://ci.example.com/a?b=1&c=2):\nline two\n\n\
             - one x<y\n- two\n  1. inner\n\n> quoted\n\nlet a = 1 < 2;",
        );
    }

    #[test]
    fn markdown_becomes_telegrams_tags_row_20() {
        check(
            Dialect::TelegramHtml,
            SAMPLE,
            "<b>Build <i>failed</i></b>\n\nSee <b>the log</b> at \
             <a href=\"https://ci.example.com/a?b=1&amp;c=2\">CI</a>:\nline two\n\n\
             • one <code>x&lt;y</code>\n• two\n  1. inner\n\n<blockquote>quoted</blockquote>\n\n\
             <pre><code class=\"language-rust\">let a = 1 &lt; 2;</code></pre>",
        );
    }

    #[test]
    fn markdown_becomes_html_for_mail_row_20() {
        check(
            Dialect::Html,
            SAMPLE,
            "<h3>Build <em>failed</em></h3>\n<p>See <strong>the log</strong> at \
             <a href=\"https://ci.example.com/a?b=1&amp;c=2\">CI</a>:<br>\nline two</p>\n\
             <ul><li>one <code>x&lt;y</code></li><li>two<ol><li>inner</li></ol></li></ul>\n\
             <blockquote><p>quoted</p></blockquote>\n\
             <pre><code class=\"language-rust\">let a = 1 &lt; 2;</code></pre>",
        );
    }

    #[test]
    fn code_is_coloured_in_mails_and_nowhere_else_row_115() {
        let source = "```rust\nlet a = \"<b>\"; // &\n```";
        check(
            Dialect::Mail,
            source,
            "<pre><code class=\"language-rust\"><span style=\"color:#8250df\">let</span> a = \
             <span style=\"color:#1a7f37\">&quot;&lt;b&gt;&quot;</span>; \
             <span style=\"color:#6e7781\">// &amp;</span></code></pre>",
        );
        let plain = "let a = &quot;&lt;b&gt;&quot;; // &amp;</code></pre>";
        check(Dialect::Html, source, &format!("<pre><code class=\"language-rust\">{plain}"));
        let unknown = source.replace("rust", "brainfog");
        check(Dialect::Mail, &unknown, &format!("<pre><code class=\"language-brainfog\">{plain}"));
    }

    #[test]
    fn line_breaks_are_blank_lines_in_dingtalk_row_113() {
        check(
            Dialect::DingTalk,
            SAMPLE,
            "### Build *failed*\n\nSee **the log** at [CI](https://ci.example.com/a?b=1&c=2):\n\nline two\n\n\
             - one x&lt;y\n\n- two\n\n  1. inner\n\n> quoted\n\nlet a = 1 &lt; 2;",
        );
        assert_eq!(Dialect::DingTalk.render(Format::Text, "a\nb*"), "a\nb*");
        assert_eq!(Dialect::TelegramHtml.render(Format::Text, "a\nb"), "a\nb");
    }

    #[test]
    fn html_arrives_as_text_row_115() {
        let source = "<script>alert(\"1\")</script> a Vec<String>";
        check(Dialect::Plain, source, "<script>alert(\"1\")</script> a Vec<String>");
        let escaped = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; a Vec&lt;String&gt;";
        check(Dialect::TelegramHtml, source, escaped);
        check(Dialect::Html, source, &format!("<p>{escaped}</p>"));
        assert_eq!(
            Dialect::TelegramHtml.render(Format::Text, "<b>&\"*x*"),
            "&lt;b&gt;&amp;&quot;*x*"
        );
        assert_eq!(Dialect::Html.render(Format::Text, "<b>\n&"), "&lt;b&gt;<br>\n&amp;");
    }

    #[test]
    fn only_web_and_mail_addresses_become_links_row_115() {
        check(Dialect::TelegramHtml, "[x](javascript:alert(1))", "x");
        check(Dialect::Html, "[x](data:text/html,y)", "<p>x</p>");
        check(
            Dialect::TelegramHtml,
            "[x](<https://h/\"onclick=>)",
            "<a href=\"https://h/&quot;onclick=\">x</a>",
        );
        check(
            Dialect::DingTalk,
            "[a](<https://h/) [b](dingtalk://x>)",
            "[a](https://h/%29%20[b]%28dingtalk://x)",
        );
        check(Dialect::DingTalk, "![img](dingtalk://x)", "img");
        check(Dialect::Html, "<https://h>", "<p><a href=\"https://h\">https://h</a></p>");
    }

    #[test]
    fn nobody_is_called_by_a_text_row_115() {
        let source = "@channel a@b.org <!here> `@all` <!DOCTYPE>";
        let expected = "@\u{2060}channel a@b.org <\u{2060}!here> `@\u{2060}all` <!DOCTYPE>";
        check(Dialect::ChatMarkdown, source, expected);
        assert_eq!(
            Dialect::ChatMarkdown.render(Format::Text, "@all <!channel>"),
            "@\u{2060}all <\u{2060}!channel>"
        );
        check(Dialect::Zulip, "@**all** @*ops* _x_", "@\u{2060}**all** @\u{2060}*ops* _x_");
        check(Dialect::RocketChat, "@here *x* `@all`", "@\u{2060}here _x_ `@\u{2060}all`");
        check(Dialect::GoogleChat, "<users/all>", "<\u{2060}users/all>");
        check(Dialect::GoogleChat, "[a](https://h/?a&b)", "<https://h/?a&b|a>");
    }

    #[test]
    fn addresses_in_a_text_stay_what_they_are_row_115() {
        let source = "a_b https://h/a_b*c~d, (http://h/_x) _y_ xhttp://h/_z";
        let expected = r"a\_b https://h/a_b*c~d, (http://h/_x) \_y\_ xhttp://h/\_z";
        for dialect in [Dialect::Discord, Dialect::ChatMarkdown, Dialect::Kook] {
            assert_eq!(dialect.render(Format::Text, source), expected);
        }
        check(Dialect::Discord, "<https://h/a_b>", "https://h/a_b");
        check(Dialect::Discord, "[x](https://h/a_b)", "[x](https://h/a_b)");
    }

    #[test]
    fn line_breaks_are_blank_lines_in_adaptive_cards() {
        check(
            Dialect::AdaptiveCard,
            SAMPLE,
            "**Build _failed_**\n\nSee **the log** at [CI](https://ci.example.com/a?b=1&c=2):\n\nline two\n\n\
             - one x<y\n\n- two\n\n  1. inner\n\nquoted\n\nlet a = 1 < 2;",
        );
        assert_eq!(Dialect::AdaptiveCard.render(Format::Text, "a\nb*"), "a\nb*");
    }

    #[test]
    fn tables_and_tasks_stay_readable() {
        check(
            Dialect::Plain,
            "| a | b |\n|---|---|\n| 1 | 2 |\n\n- [x] done\n- [ ] open\n\n---\n~~gone~~",
            "a | b\n1 | 2\n\n- [x] done\n- [ ] open\n\n———\n\ngone",
        );
    }

    #[test]
    fn desktops_know_bold_and_italic_row_20() {
        check(
            Dialect::Desktop,
            SAMPLE,
            "<b>Build <i>failed</i></b>\n\nSee <b>the log</b> at CI (https://ci.example.com/a?b=1&amp;c=2):\n\
             line two\n\n• one x&lt;y\n• two\n  1. inner\n\n&gt; quoted\n\nlet a = 1 &lt; 2;",
        );
        check(Dialect::Desktop, "<https://h/?a&b>", "https://h/?a&amp;b");
        assert_eq!(Dialect::Desktop.render(Format::Text, "*<b>*\n&"), "*&lt;b&gt;*\n&amp;");
    }

    #[test]
    fn nobody_is_called_in_kook_row_115() {
        check(
            Dialect::Kook,
            "# Hi\n\n**now** (met)all(met) a*b",
            "**Hi**\n\n**now** (\u{2060}met)all(\u{2060}met) a\\*b",
        );
        let text = Dialect::Kook.render(Format::Text, "(rol)1(rol) `x`\n");
        assert_eq!(text, "(\u{2060}rol)1(\u{2060}rol) \\`x\\`\n");
    }

    #[test]
    fn a_text_of_nothing_but_marks_is_shown_with_them() {
        check(Dialect::TelegramHtml, "[](javascript:x)", "[](javascript:x)");
    }

    proptest! {
        /// Telegram refuses a message whose tags do not match.
        #[test]
        fn telegrams_tags_match_and_nothing_else_is_a_tag_row_115(source in r##"([a-z<>&"*_~`\[\]()#|.\n -]{0,12}){0,12}"##) {
            for format in [Format::Text, Format::Markdown] {
                let html = Dialect::TelegramHtml.render(format, &source);
                let mut open: Vec<String> = Vec::new();
                for tag in html.split('<').skip(1) {
                    let tag = tag.split_once('>').expect("a tag that ends").0;
                    let name = tag.split(' ').next().unwrap_or_default();
                    match name.strip_prefix('/') {
                        Some(name) => prop_assert_eq!(open.pop(), Some(name.to_owned()), "{}", html),
                        None => open.push(name.to_owned()),
                    }
                }
                prop_assert!(open.is_empty(), "{html}");
                if format == Format::Text {
                    prop_assert_eq!(visible(&html), source.clone());
                }
            }
        }
    }
}
