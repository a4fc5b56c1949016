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
    /// A block of code, escaped, with its language.
    pub pre: fn(&str, &str) -> String,
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
    pre: |code, _| code.to_owned(),
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
    pre: |code, language| {
        if language.is_empty() {
            format!("<pre>{code}</pre>")
        } else {
            format!("<pre><code class=\"language-{language}\">{code}</code></pre>")
        }
    },
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
    pre: |code, _| format!("<pre>{code}</pre>"),
    quote: |parts| format!("<blockquote>{parts}</blockquote>"),
    link: anchor,
};

pub(super) const DINGTALK: Marks = Marks {
    bold: ("**", "**"),
    italic: ("*", "*"),
    heading: ("### ", ""),
    line: "\n\n",
    escape: dingtalk,
    pre: |code, _| code.replace('\n', "\n\n"),
    link: |label, address| {
        let address = address.replace('(', "%28").replace(')', "%29").replace(' ', "%20");
        format!("[{label}]({address})")
    },
    ..PLAIN
};

fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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
