//! A message as a record of syslog (RFC 5424).

use deskbell_core::{Level, Message, text};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{channel::ConfigError, render::Dialect, url::ServiceUrl};

/// What stands for something that is not known.
const NIL: &str = "-";

/// Which part of a system says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Facility {
    Kern,
    #[default]
    User,
    Mail,
    Daemon,
    Auth,
    Syslog,
    Lpr,
    News,
    Uucp,
    Cron,
    Local0,
    Local1,
    Local2,
    Local3,
    Local4,
    Local5,
    Local6,
    Local7,
}

/// The facilities with their numbers.
const FACILITIES: [(&str, u8, Facility); 18] = [
    ("kern", 0, Facility::Kern),
    ("user", 1, Facility::User),
    ("mail", 2, Facility::Mail),
    ("daemon", 3, Facility::Daemon),
    ("auth", 4, Facility::Auth),
    ("syslog", 5, Facility::Syslog),
    ("lpr", 6, Facility::Lpr),
    ("news", 7, Facility::News),
    ("uucp", 8, Facility::Uucp),
    ("cron", 9, Facility::Cron),
    ("local0", 16, Facility::Local0),
    ("local1", 17, Facility::Local1),
    ("local2", 18, Facility::Local2),
    ("local3", 19, Facility::Local3),
    ("local4", 20, Facility::Local4),
    ("local5", 21, Facility::Local5),
    ("local6", 22, Facility::Local6),
    ("local7", 23, Facility::Local7),
];

impl Facility {
    fn number(self) -> u8 {
        FACILITIES.iter().find(|(_, _, known)| *known == self).map_or(1, |(_, number, _)| *number)
    }

    /// The facility that `url` names as `facility` or as `written`; its beginning is enough.
    pub(crate) fn named(
        url: &mut ServiceUrl,
        written: Option<String>,
    ) -> Result<Option<toml::Value>, ConfigError> {
        let Some(written) = url.parameter("facility").or(written) else { return Ok(None) };
        let written = written.to_ascii_lowercase();
        let known = FACILITIES.iter().find(|(name, ..)| name.starts_with(&written));
        match known.filter(|_| !written.is_empty()) {
            Some((name, ..)) => Ok(Some((*name).into())),
            None => Err(url.wrong("names an unknown facility")),
        }
    }
}

/// What a record begins with: who says it and how serious it is.
pub(crate) fn priority(facility: Facility, level: Level) -> u8 {
    let severity = match level {
        Level::Emergency => 0,
        Level::Alert => 1,
        Level::Critical => 2,
        Level::Error => 3,
        Level::Warning => 4,
        Level::Notice => 5,
        Level::Info => 6,
        Level::Debug => 7,
    };
    facility.number() * 8 + severity
}

/// `message` as one record.
///
/// It has no process id, which would be the daemon's, and no byte order mark before its UTF-8, which the standard asks
/// for and most receivers show as odd letters.
pub(crate) fn record(message: &Message, facility: Facility, application: &str) -> String {
    let host = word(message.source.host.as_deref().unwrap_or_default(), 255);
    let application = word(application, 48);
    let kind = word(message.context.as_str(), 32);
    let priority = priority(facility, message.level);
    format!(
        "<{priority}>1 {:.3} {host} {application} {NIL} {kind} {NIL} {}",
        message.at,
        line(message)
    )
}

/// Title and text on one line: a record ends where its line does.
pub(crate) fn line(message: &Message) -> String {
    let body = Dialect::Plain.body(message);
    let told = match &message.title {
        Some(title) => format!("{title}: {body}"),
        None => body,
    };
    text::one_line(&told).into_owned()
}

/// `written` as a field of a record: printable letters of ASCII without a space, not longer than `limit`.
fn word(written: &str, limit: usize) -> String {
    let word: String = written.chars().filter(char::is_ascii_graphic).take(limit).collect();
    if word.is_empty() { NIL.to_owned() } else { word }
}
