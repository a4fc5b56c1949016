//! What each dialect writes for the parts of a text.

/// What a dialect writes for the parts of a text. Pairs stand before and after.
pub(super) struct Marks {
    pub bold: (&'static str, &'static str),
    pub italic: (&'static str, &'static str),
    pub strike: (&'static str, &'static str),
    pub code: (&'static str, &'static str),
    pub heading: (&'static str, &'static str),
    pub paragraph: (&'static str, &'static str),
    pub bullets: (&'static str, &'static str),
    pub numbers: (&'static str, &'static str),
    pub item: (&'static str, &'static str),
    /// What stands before an item of a list without numbers; `None` leaves bullets and numbers to the far end.
    pub bullet: Option<&'static str>,
    pub rule: &'static str,
    /// A line break inside of a part.
    pub line: &'static str,
    /// What stands between two parts.
    pub between: &'static str,
    /// A text, escaped.
    pub escape: fn(&str) -> String,
    /// A text inside of the marks of code, escaped.
    pub escape_code: fn(&str) -> String,
    /// A block of code, escaped, with its language.
    pub pre: fn(&str, &str) -> String,
    /// Whether blocks of code are coloured here, by styles, because nobody who shows them does.
    pub coloured: bool,
    /// Quoted parts, rendered.
    pub quote: fn(&str) -> String,
    /// A link, its label rendered, its address allowed.
    pub link: fn(&str, &str) -> String,
}

const NONE: (&str, &str) = ("", "");

pub(super) const PLAIN: Marks = Marks {
    bold: NONE,
    italic: NONE,
    strike: NONE,
    code: NONE,
    heading: NONE,
    paragraph: NONE,
    bullets: NONE,
    numbers: NONE,
    item: NONE,
    bullet: Some("- "),
    rule: "———",
    line: "\n",
    between: "\n\n",
    escape: str::to_owned,
    escape_code: str::to_owned,
    pre: |code, _| code.to_owned(),
    coloured: false,
    quote: |parts| prefixed(parts, "> "),
    link: |label, address| match label {
        label if label == address => label.to_owned(),
        "" => address.to_owned(),
        label => format!("{label} ({address})"),
    },
};

pub(super) const TELEGRAM: Marks = Marks {
    bold: ("<b>", "</b>"),
    italic: ("<i>", "</i>"),
    strike: ("<s>", "</s>"),
    code: ("<code>", "</code>"),
    heading: ("<b>", "</b>"),
    bullet: Some("• "),
    escape: html,
    escape_code: html,
    pre,
    quote: |parts| format!("<blockquote>{parts}</blockquote>"),
    link: anchor,
    ..PLAIN
};

pub(super) const HTML: Marks = Marks {
    bold: ("<strong>", "</strong>"),
    italic: ("<em>", "</em>"),
    strike: ("<s>", "</s>"),
    code: ("<code>", "</code>"),
    heading: ("<h3>", "</h3>"),
    paragraph: ("<p>", "</p>"),
    bullets: ("<ul>", "</ul>"),
    numbers: ("<ol>", "</ol>"),
    item: ("<li>", "</li>"),
    bullet: None,
    rule: "<hr>",
    line: "<br>\n",
    between: "\n",
    escape: html,
    escape_code: html,
    pre,
    coloured: false,
    quote: |parts| format!("<blockquote>{parts}</blockquote>"),
    link: anchor,
};

pub(super) const MAIL: Marks = Marks { coloured: true, ..HTML };

pub(super) const DINGTALK: Marks = Marks {
    bold: ("**", "**"),
    italic: ("*", "*"),
    heading: ("### ", ""),
    line: "\n\n",
    escape: dingtalk,
    escape_code: dingtalk,
    pre: |code, _| code.replace('\n', "\n\n"),
    link: |label, address| {
        let address = address.replace('(', "%28").replace(')', "%29").replace(' ', "%20");
        format!("[{label}]({address})")
    },
    ..PLAIN
};

/// Pages of services that turn Markdown into HTML, which is why `<` and `&` are written as HTML does.
pub(super) const PAGE: Marks = Marks {
    strike: ("~~", "~~"),
    code: ("`", "`"),
    escape_code: without_fences,
    pre: fenced,
    ..DINGTALK
};

pub(super) const CHAT: Marks = Marks {
    bold: ("**", "**"),
    italic: ("*", "*"),
    strike: ("~~", "~~"),
    code: ("`", "`"),
    heading: ("### ", ""),
    escape: |text| unmentioned(&markdown(text)),
    escape_code: |text| unmentioned(&without_fences(text)),
    pre: fenced,
    // Chats see addresses by themselves, and take a label that is one for a fraud.
    link: |label, address| {
        if label == address { label.to_owned() } else { bracketed(label, address) }
    },
    ..PLAIN
};

pub(super) const DISCORD: Marks = Marks { escape: discord, escape_code: without_fences, ..CHAT };

pub(super) const SLACK: Marks = Marks {
    bold: ("*", "*"),
    italic: ("_", "_"),
    strike: ("~", "~"),
    code: ("`", "`"),
    heading: ("*", "*"),
    bullet: Some("• "),
    escape: slack,
    escape_code: slack,
    pre: |code, _| fenced(code, ""),
    link: |label, address| match label {
        "" => format!("<{}>", slack_address(address)),
        label if label == slack(address) => format!("<{}>", slack_address(address)),
        label => format!("<{}|{}>", slack_address(address), label.replace('|', "¦")),
    },
    ..PLAIN
};

/// Google Chat reads `<` only where a link or a mention follows, and knows no escapes.
pub(super) const GOOGLE_CHAT: Marks = Marks {
    escape: |text| text.replace("<users/", "<\u{2060}users/"),
    escape_code: str::to_owned,
    link: |label, address| {
        let address = address.replace('|', "%7C").replace('>', "%3E");
        match label {
            "" => address,
            label if label == address => address,
            label => format!("<{address}|{}>", label.replace('|', "¦").replace('>', "›")),
        }
    },
    ..SLACK
};

pub(super) const WHATSAPP: Marks = Marks {
    bold: ("*", "*"),
    italic: ("_", "_"),
    strike: ("~", "~"),
    code: ("```", "```"),
    heading: ("*", "*"),
    pre: |code, _| fenced(code, ""),
    ..PLAIN
};

pub(super) const WECOM: Marks = Marks {
    bold: ("**", "**"),
    code: ("`", "`"),
    heading: ("### ", ""),
    escape: |text| without_wecom_calls(text).replace("<font", "<\u{2060}font"),
    escape_code: without_wecom_calls,
    link: bracketed,
    ..PLAIN
};

pub(super) const FEISHU: Marks = Marks {
    bold: ("**", "**"),
    italic: ("*", "*"),
    strike: ("~~", "~~"),
    heading: ("**", "**"),
    escape: feishu,
    escape_code: feishu,
    pre: fenced,
    link: bracketed,
    ..PLAIN
};

/// KOOK calls people, roles and channels by tags such as `(met)all(met)`, and has no headings.
pub(super) const KOOK: Marks = Marks {
    heading: ("**", "**"),
    escape: |text| without_kook_tags(&markdown(text)),
    escape_code: |text| without_kook_tags(&without_fences(text)),
    link: bracketed,
    ..CHAT
};

pub(super) const PUSHOVER: Marks = Marks {
    bold: ("<b>", "</b>"),
    italic: ("<i>", "</i>"),
    heading: ("<b>", "</b>"),
    bullet: Some("• "),
    escape: html,
    escape_code: html,
    link: anchor,
    ..PLAIN
};

/// What everybody reads who reads markup at all: some show links as nothing (Desktop Notifications Specification,
/// "Markup").
pub(super) const DESKTOP: Marks = Marks {
    bold: ("<b>", "</b>"),
    italic: ("<i>", "</i>"),
    heading: ("<b>", "</b>"),
    bullet: Some("• "),
    escape: html,
    escape_code: html,
    quote: |parts| prefixed(parts, "&gt; "),
    link: |label, address| (PLAIN.link)(label, &html(address)),
    ..PLAIN
};

pub(super) const ROCKET_CHAT: Marks = Marks {
    italic: ("_", "_"),
    escape: unmentioned,
    escape_code: |text| unmentioned(&without_fences(text)),
    ..CHAT
};

pub(super) const ZULIP: Marks = Marks { italic: ("*", "*"), heading: ("**", "**"), ..ROCKET_CHAT };

pub(super) const UNMENTIONED: Marks =
    Marks { escape: unmentioned, escape_code: unmentioned, ..PLAIN };

/// Cards know no code, quotes or headings (learn.microsoft.com, "Text features in Adaptive Cards").
pub(super) const ADAPTIVE_CARD: Marks = Marks {
    bold: ("**", "**"),
    italic: ("_", "_"),
    heading: ("**", "**"),
    line: "\n\n",
    escape: markdown,
    escape_code: markdown,
    pre: |code, _| code.replace('\n', "\n\n"),
    quote: str::to_owned,
    link: bracketed,
    ..PLAIN
};

pub(super) fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A block of code with its language, as HTML names it (HTML, "The code element").
fn pre(code: &str, language: &str) -> String {
    if language.is_empty() {
        format!("<pre>{code}</pre>")
    } else {
        format!("<pre><code class=\"language-{language}\">{code}</code></pre>")
    }
}

fn anchor(label: &str, address: &str) -> String {
    let label = if label.is_empty() { html(address) } else { label.to_owned() };
    format!("<a href=\"{}\">{label}</a>", html(address))
}

/// DingTalk reads some HTML, `<font>` for one, beside its Markdown.
fn dingtalk(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '>' => escaped.extend(['\\', character]),
            other => escaped.push(other),
        }
    }
    escaped
}

fn prefixed(parts: &str, prefix: &str) -> String {
    let lines: Vec<_> = parts
        .split('\n')
        .map(|line| if line.is_empty() { String::new() } else { format!("{prefix}{line}") })
        .collect();
    lines.join("\n")
}

/// Text with everything escaped that Markdown reads, as far as it could mean something where it stands.
fn markdown(text: &str) -> String {
    escaped(text, |character, next| match character {
        '\\' | '`' | '*' | '_' | '~' | '|' => true,
        // What makes it a link follows.
        ']' => matches!(next, Some('(' | '[' | ':')),
        _ => false,
    })
}

/// Discord reads Markdown, and mentions and emoji between `<` and `>`.
fn discord(text: &str) -> String {
    escaped(text, |character, next| match character {
        '\\' | '`' | '*' | '_' | '~' | '|' => true,
        '<' => next.is_some_and(|next| matches!(next, '@' | '#' | ':' | 'a' | 't' | '/')),
        _ => false,
    })
}

/// Text with a backslash before each character that `means` something before the one that follows it. At the start of
/// a line the marks of headings, quotes and lists mean something too.
///
/// In a web address the marks of emphasis stay as they are: chats take it as a whole, a backslash with it.
fn escaped(text: &str, means: impl Fn(char, Option<char>) -> bool) -> String {
    let mut written = String::with_capacity(text.len());
    let (mut at_start, mut in_address, mut previous) = (true, false, ' ');
    for (index, character) in text.char_indices() {
        let rest = text.get(index..).unwrap_or_default();
        let next = rest.chars().nth(1);
        let begins = ["https://", "http://"].iter().any(|scheme| rest.starts_with(scheme));
        let ends = character.is_whitespace() || "<>\"'()[]|`".contains(character);
        in_address = (in_address && !ends) || (begins && !previous.is_alphanumeric());
        previous = character;
        if in_address && matches!(character, '_' | '*' | '~') {
            written.push(character);
            continue;
        }
        let opens_line = at_start
            && (matches!(character, '#' | '>')
                || (matches!(character, '-' | '+') && next == Some(' ')));
        if opens_line || means(character, next) {
            written.push('\\');
        }
        written.push(character);
        at_start = character == '\n' || (at_start && character == ' ');
    }
    written
}

/// Text in which nobody is called: an invisible joiner takes the meaning of an `@` before a name, and of Slack's
/// `<!channel>`, which Mattermost reads too, and of Revolt's roles.
pub(super) fn unmentioned(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut previous = ' ';
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        written.push(character);
        let names = characters.peek().is_some_and(|next| next.is_alphanumeric() || *next == '*');
        // An address of mail is no mention.
        if character == '@' && names && !previous.is_alphanumeric() {
            written.push('\u{2060}');
        }
        previous = character;
    }
    ["<!channel", "<!here", "<!all", "<!everyone", "<%0"].iter().fold(written, |text, call| {
        if text.contains(call) { text.replace(call, &call.replace('<', "<\u{2060}")) } else { text }
    })
}

/// Slack reads these three as what they stand for (docs.slack.dev, "Formatting message text").
fn slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn slack_address(address: &str) -> String {
    slack(address).replace('|', "%7C")
}

/// Text in which no member of WeCom is called, which `<@name>` would do.
pub(super) fn without_wecom_calls(text: &str) -> String {
    text.replace("<@", "<\u{2060}@")
}

/// Text in which no member of Feishu is called, which `<at user_id="…">` would do.
pub(super) fn without_feishu_calls(text: &str) -> String {
    text.replace("<at", "<\u{2060}at")
}

/// Feishu reads these as what they stand for, and knows tags such as `<at>`.
fn feishu(text: &str) -> String {
    let entities = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    ["*", "~", "[", "]", "`"]
        .iter()
        .zip(["&#42;", "&#126;", "&#91;", "&#93;", "&#96;"])
        .fold(entities, |text, (character, entity)| text.replace(character, entity))
}

fn without_kook_tags(text: &str) -> String {
    ["met", "rol", "chn", "emj", "ins", "spl"].iter().fold(text.to_owned(), |text, tag| {
        text.replace(&format!("({tag})"), &format!("(\u{2060}{tag})"))
    })
}

/// A block of code between fences.
fn fenced(code: &str, language: &str) -> String {
    format!("```{language}\n{code}\n```")
}

/// Code that cannot end the block or the marks that it stands in.
fn without_fences(code: &str) -> String {
    code.replace('`', "\u{2cb}")
}

fn bracketed(label: &str, address: &str) -> String {
    let address = address.replace('(', "%28").replace(')', "%29").replace(' ', "%20");
    let label = if label.is_empty() { address.clone() } else { label.to_owned() };
    format!("[{label}]({address})")
}
