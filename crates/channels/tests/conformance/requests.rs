//! What goes out.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use deskbell_channels::{ChannelKind, Manner, Overflow, render::Dialect};
use deskbell_core::{
    Message,
    delivery::{Arrived, Receipt},
    event::Format,
    text::Unit,
};
use serde_json::Value;
use wiremock::{Request, ResponseTemplate};

use crate::{
    sample::{message, step, titled},
    stand_in::{accepted, attempt_in, channel, example, previewed, previewed_in},
};

const TEXT: &str = "2 of 340 tests failed:\n- <Cart> & \"Basket\"\n- *Checkout*";

const MARKDOWN: &str = "**2 of 340** tests failed:\n- `<Cart>` & \"Basket\"\n- [Checkout](https://ci.example.com/7?a=1&b=2)";

/// The requests of a kind as they were when somebody last read them against its documentation.
pub(crate) fn sends_the_recorded_requests(kind: &'static ChannelKind) {
    let shown = |message: Message| {
        let mut requests = previewed(kind, &message, false);
        for request in &mut requests {
            // The version of the program is in it.
            if let Some(headers) = request.get_mut("headers").and_then(Value::as_object_mut) {
                assert!(
                    headers
                        .remove("user-agent")
                        .is_some_and(|agent| agent.to_string().contains("deskbell"))
                );
            }
        }
        requests
    };
    let recorded = serde_json::json!({
        "text": shown(message(TEXT, Format::Text)),
        "markdown": shown(message(MARKDOWN, Format::Markdown)),
        "step of a run": shown(step("uploading")),
    });
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_json_snapshot!(kind.about.name, recorded));
}

/// What a preview shows is what is sent.
pub(crate) fn previews_tell_the_truth(kind: &'static ChannelKind) {
    let message = message(TEXT, Format::Text);
    // The name of the channel is in ids, and a preview has none of its own.
    let (outcome, sent) = attempt_in(kind, &message, &[], accepted(kind), |cx| {
        cx.delivery.channel = "preview".parse().unwrap();
    });
    outcome.unwrap();
    let shown = previewed(kind, &message, true);
    assert_eq!(shown.len(), sent.len());
    for (shown, sent) in shown.iter().zip(&sent) {
        assert_eq!(shown["method"], sent.method.as_str());
        // The stand-in takes the place of the host.
        let (_, shown_path) = after_host(shown["url"].as_str().unwrap());
        assert_eq!(shown_path, after_host(sent.url.as_str()).1);
        let is_sealed = shown["headers"]["content-encoding"] == "aes128gcm";
        for (name, value) in shown["headers"].as_object().unwrap() {
            // These are signed anew each time.
            if name != "webhook-signature" && !(is_sealed && name == "authorization") {
                assert_eq!(value.as_str().unwrap(), header(sent, name), "{name}");
            }
        }
        let body = shown["body"].as_str().unwrap();
        if is_sealed {
            // The head with a salt and a key, and the tag (RFC 8188).
            assert_eq!(body.len() + 103, sent.body.len());
        } else {
            assert_eq!(body, String::from_utf8_lossy(&sent.body));
        }
    }
}

fn after_host(url: &str) -> (&str, &str) {
    let (_, rest) = url.split_once("://").unwrap();
    rest.split_once('/').unwrap()
}

fn header(request: &Request, name: &str) -> String {
    request.headers.get(name).unwrap().to_str().unwrap().to_owned()
}

/// Row 116.
pub(crate) fn previews_keep_secrets(kind: &'static ChannelKind) {
    let channel = channel(kind);
    let set = kind
        .options()
        .into_iter()
        .filter(|option| option.secret && example(kind).contains_key(&option.name));
    assert!(channel.secrets().len() >= set.count(), "a secret of the example is not known as one");
    let message = message(TEXT, Format::Text);
    let masked = serde_json::to_string(&previewed(kind, &message, false)).unwrap();
    let shown = serde_json::to_string(&previewed(kind, &message, true)).unwrap();
    for secret in channel.secrets() {
        assert!(!masked.contains(secret.as_str()), "{secret} is in {masked}");
    }
    let logins = logins(&shown);
    let is_sent = |secret: &&String| shown.contains(*secret) || logins.contains(*secret);
    let sent = channel.secrets().iter().filter(is_sent).count();
    assert_eq!(sent > 0, shown != masked, "secrets that are sent are masked, and nothing else is");
}

/// What `Basic` logins in `requests` hold.
fn logins(requests: &str) -> String {
    let logins = requests.split("\"Basic ").skip(1).filter_map(|rest| rest.split('"').next());
    logins
        .map(|login| String::from_utf8(BASE64_STANDARD.decode(login).unwrap()).unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}

/// What an agent may have been told to say.
const ODD: &str =
    r#"<script>alert("1")</script>&amp; @everyone @all <@U1> {"a":"b"} \" \\ %s ${x} `y` 'q' #1"#;

/// Row 115: odd text arrives literally, and what deceives does not arrive.
pub(crate) fn odd_text_arrives_literally(kind: &'static ChannelKind) {
    let hostile = format!("\u{1b}[31m\u{202e}\u{0}{ODD}\u{7}\u{200b}\nTo: x@example.com\r\n");
    let odd = titled("a\r\nBcc: x@example.com <b>", &hostile, Format::Text);
    let requests = previewed(kind, &odd, true);
    let texts: Vec<String> = requests.iter().flat_map(texts).collect();
    for text in &texts {
        let deceives =
            |c: char| (c.is_control() && !"\n\r\t".contains(c)) || "\u{202e}\u{200b}".contains(c);
        assert!(!text.contains(deceives), "{text:?}");
        assert!(!text.contains("\nBcc:"), "a header was forged: {text}");
    }
    assert!(texts.iter().any(|text| read(kind, text).contains(ODD)), "{texts:#?}");
    if kind.about.dialect == Dialect::TelegramHtml {
        assert!(!texts.iter().any(|text| text.contains("<script>")), "{texts:#?}");
    }
}

/// `text` as somebody reads it who is shown what the kind sends.
pub(crate) fn read(kind: &ChannelKind, text: &str) -> String {
    let entities = |text: &str| {
        text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
    };
    match kind.about.dialect {
        Dialect::TelegramHtml | Dialect::Html | Dialect::Slack | Dialect::Desktop => entities(text),
        Dialect::Discord => unescaped(text),
        Dialect::ChatMarkdown | Dialect::Kook => unescaped(&text.replace('\u{2060}', "")),
        Dialect::PageMarkdown => entities(&unescaped(text)),
        Dialect::WeCom | Dialect::Zulip | Dialect::RocketChat | Dialect::Unmentioned => {
            text.replace('\u{2060}', "")
        }
        _ => text.to_owned(),
    }
}

/// `text` without the backslashes that escape what follows them in Markdown.
fn unescaped(text: &str) -> String {
    let mut read = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let escapes =
            character == '\\' && characters.peek().is_some_and(char::is_ascii_punctuation);
        read.push(if escapes { characters.next().unwrap() } else { character });
    }
    read
}

/// Row 20: Markdown is shown where the far end knows it, and taken out where it does not.
pub(crate) fn markdown_arrives_as_the_far_end_reads_it(kind: &'static ChannelKind) {
    let requests = previewed(kind, &message("it is **bold** here", Format::Markdown), true);
    let texts: Vec<_> = requests.iter().flat_map(texts).collect();
    let written = match kind.about.dialect {
        // Its payload says beside the text that it is Markdown.
        Dialect::Plain if kind.about.name == "mqtt" => "it is **bold** here",
        Dialect::Plain | Dialect::Unmentioned => "it is bold here",
        Dialect::Html => "it is <strong>bold</strong> here",
        Dialect::TelegramHtml | Dialect::PushoverHtml | Dialect::Desktop => {
            "it is <b>bold</b> here"
        }
        Dialect::Slack | Dialect::GoogleChat | Dialect::WhatsApp => "it is *bold* here",
        _ => "it is **bold** here",
    };
    assert!(texts.iter().any(|text| text.contains(written)), "{texts:#?}");
}

/// Row 113: a line break arrives as one, and as a blank line only where the far end reads no other.
pub(crate) fn line_breaks_arrive(kind: &'static ChannelKind) {
    for format in [Format::Text, Format::Markdown] {
        let requests = previewed(kind, &message("first line\nsecond line", format), true);
        let texts: Vec<_> = requests.iter().flat_map(texts).collect();
        let line_break = match (kind.about.dialect, format) {
            (Dialect::PageMarkdown, _)
            | (Dialect::DingTalk | Dialect::AdaptiveCard, Format::Markdown) => "\n\n",
            _ => "\n",
        };
        let written = format!("first line{line_break}second line");
        let written = match kind.about.name {
            // Where a record is one line, its breaks are written out.
            "syslog_local" | "syslog_remote" => written.replace('\n', "\\n"),
            // Further lines are set off from the next message.
            "console" => written.replace('\n', "\n    "),
            // A frame of the clock is one line.
            "lametric" => written.replace('\n', " "),
            _ => written,
        };
        let told = |text: &String| text.replace("\r\n", "\n").contains(&written);
        assert!(texts.iter().any(told), "{format:?}: {texts:#?}");
    }
}

/// What stands between the words of a long text, and how much of such a text ten messages hold, in lengths of the
/// longest body: what must be escaped, and what takes more than a unit a character.
const FILLS: [(&str, usize); 2] = [(" <&> \"q\" ", 8), ("字🚀 ", 4)];

/// Row 114: 10,000 characters, each part within the limit, as the far end counts.
pub(crate) fn long_text_stays_within_limits(kind: &'static ChannelKind) {
    let limits = kind.about.limits;
    let counted = |text: &String| match kind.about.dialect {
        Dialect::TelegramHtml => limits.unit.length(&visible(text)),
        _ => limits.unit.length(text),
    };
    for ((fill, _), format) in
        FILLS.into_iter().flat_map(|fill| [(fill, Format::Text), (fill, Format::Markdown)])
    {
        let requests = previewed(kind, &message(&words(10_000, fill), format), false);
        for request in &requests {
            let longest = texts(request).iter().map(counted).max().unwrap();
            assert!(longest <= limits.title + limits.body + 16, "{longest} {:?}", limits.unit);
        }
    }
}

/// Row 114: however it is split, nothing of a long text is lost.
pub(crate) fn long_text_goes_out_whole(kind: &'static ChannelKind) {
    for (fill, bodies) in FILLS {
        // A text becomes ten messages at most, which for the shortest ones is less.
        let length = kind.about.limits.body.saturating_mul(bodies).min(10_000);
        goes_out_whole(kind, &words(length, fill));
    }
}

fn goes_out_whole(kind: &'static ChannelKind, text: &str) {
    let requests = previewed(kind, &message(text, Format::Text), false);
    let told =
        requests.iter().flat_map(texts).map(|text| visible(&text)).collect::<Vec<_>>().join("\n");
    // Where everything stands on one line, line breaks are written out.
    let told = told.replace("\\n", "\n");
    let told: Vec<_> = told
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.starts_with("word"))
        .collect();
    let expected =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.starts_with("word"));
    let missing: Vec<_> = expected.filter(|word| !told.contains(word)).collect();
    assert_eq!(missing, [""; 0]);
    if limits_nothing(kind) {
        assert_eq!(requests.len(), 1);
    }
}

fn limits_nothing(kind: &ChannelKind) -> bool {
    kind.about.limits.body == usize::MAX
}

/// A text of at least `length` characters, in which every word is another one, with `fill` between them.
fn words(length: usize, fill: &str) -> String {
    let mut text = String::new();
    let mut number = 0;
    while Unit::Characters.length(&text) < length {
        text.extend([&format!("word{number}"), fill]);
        number += 1;
        if number % 7 == 0 {
            text.push('\n');
        }
    }
    text
}

/// Every text in a request: the leaves of its JSON body, the fields of its form, or the body.
pub(crate) fn texts(request: &Value) -> Vec<String> {
    fn leaves(value: &Value, found: &mut Vec<String>) {
        match value {
            // Some far ends want JSON inside of JSON.
            Value::String(text) => match serde_json::from_str::<Value>(text) {
                Ok(json) if json.is_object() => leaves(&json, found),
                _ => found.push(text.clone()),
            },
            Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
            Value::Object(fields) => fields.values().for_each(|field| leaves(field, found)),
            _ => {}
        }
    }
    let body = request["body"].as_str().unwrap();
    let mut found = Vec::new();
    if body.is_empty() {
        let url = url::Url::parse(request["url"].as_str().unwrap()).unwrap();
        found.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
    }
    match serde_json::from_str(body) {
        Ok(json) => leaves(&json, &mut found),
        Err(_) if request["transport"] == "smtp" => found.push(decoded(body)),
        Err(_) if request["headers"]["content-type"] == "application/x-www-form-urlencoded" => {
            for (_, value) in url::form_urlencoded::parse(body.as_bytes()) {
                match serde_json::from_str::<Value>(&value) {
                    Ok(json) if json.is_object() => leaves(&json, &mut found),
                    _ => found.push(value.into_owned()),
                }
            }
        }
        Err(_) => found.push(body.to_owned()),
    }
    found
}

/// `mail` without the encodings of its parts, quoted-printable and Base64 (RFC 2045, sections 6.7 and 6.8).
fn decoded(mail: &str) -> String {
    let mut read = unquoted(mail);
    for part in mail.split("Content-Transfer-Encoding: base64").skip(1) {
        let (_, body) = part.split_once("\r\n\r\n").unwrap();
        let lines = body.split("\r\n--").next().unwrap().replace("\r\n", "");
        // A part may be a file of any bytes.
        read.push_str(&String::from_utf8_lossy(&BASE64_STANDARD.decode(lines).unwrap()));
    }
    read
}

fn unquoted(mail: &str) -> String {
    let mut parts = mail.split('=');
    let mut read = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part.get(..2).unwrap_or_default();
        match (code, u8::from_str_radix(code, 16)) {
            ("\r\n", _) => {}
            (_, Ok(byte)) => read.push(byte),
            _ => read.extend(["=", code].concat().bytes()),
        }
        read.extend(part.get(2..).unwrap_or_default().bytes());
    }
    String::from_utf8_lossy(&read).into_owned()
}

/// `text` as a reader of HTML sees it, and any other text as it is apart from tags.
fn visible(text: &str) -> String {
    let mut shown = text.to_owned();
    for tag in ["<b>", "</b>", "<i>", "</i>", "<code>", "</code>"] {
        shown = shown.replace(tag, "");
    }
    shown.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// Where the far end has no place of its own for it, the text says it.
pub(crate) fn a_link_is_told(kind: &'static ChannelKind) {
    const LINK: &str = "https://ci.example.com/a_b*c/7?x=1";
    for (text, format) in [
        (TEXT.to_owned(), Format::Text),
        (MARKDOWN.to_owned(), Format::Markdown),
        (words(10_000, FILLS[0].0), Format::Text),
    ] {
        for overflow in [Overflow::Split, Overflow::Truncate] {
            let manner = Manner { overflow, ..Manner::default() };
            let linked = Message { link: Some(LINK.to_owned()), ..message(&text, format) };
            let requests = previewed_in(kind, &linked, manner, false);
            let texts: Vec<String> = requests.iter().flat_map(texts).collect();
            let is_told = texts.iter().any(|text| read(kind, text).contains(LINK));
            assert!(is_told, "{overflow:?} {format:?} {texts:#?}");
        }
    }
}

/// The pieces of an earlier step, one at each place.
fn earlier(kind: &'static ChannelKind) -> Vec<Arrived> {
    let receipt = Receipt { message_id: Some("4711".to_owned()) };
    let places = channel(kind).targets().into_iter();
    places.map(|place| Arrived { place, receipt: receipt.clone(), ..Arrived::default() }).collect()
}

pub(crate) fn a_step_takes_the_place_of_the_last(kind: &'static ChannelKind) {
    let edit = |earlier: Vec<Arrived>| {
        let (outcome, requests) = attempt_in(kind, &step("uploading"), &[], accepted(kind), |cx| {
            cx.earlier = earlier;
        });
        outcome.unwrap();
        let [told] = telling(&requests, "uploading").try_into().unwrap();
        told
    };
    assert!(edit(earlier(kind)).contains("4711"));
    assert!(!edit(Vec::new()).contains("4711"));
}

/// The message may be gone, or too old to be edited.
pub(crate) fn an_edit_that_is_refused_is_sent_anew(kind: &'static ChannelKind) {
    let gone = ResponseTemplate::new(400);
    let (outcome, requests) = attempt_in(kind, &step("uploading"), &[gone], accepted(kind), |cx| {
        cx.earlier = earlier(kind);
    });
    outcome.unwrap();
    let [_, anew] = telling(&requests, "uploading").try_into().unwrap();
    assert!(!anew.contains("4711"), "{anew}");
}

/// The requests that tell `text`, each its address and its body; others fetch a token first.
fn telling(requests: &[Request], text: &str) -> Vec<String> {
    let told = requests
        .iter()
        .map(|request| format!("{} {}", request.url, String::from_utf8_lossy(&request.body)));
    told.filter(|told| told.contains(text)).collect()
}
