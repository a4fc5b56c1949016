//! Mail addresses that stand for a whole channel: `mailtos://user:password@example.com/reader@example.com`.

use crate::{
    channel::ConfigError,
    url::{self, ServiceUrl},
};

/// Providers whose server has another name than their mail addresses. All of them want an encrypted connection and
/// the whole mail address as the user.
const PROVIDERS: &[(&str, &str)] = &[
    ("gmail.com", "smtp.gmail.com"),
    ("googlemail.com", "smtp.gmail.com"),
    ("outlook.com", "smtp-mail.outlook.com"),
    ("hotmail.com", "smtp-mail.outlook.com"),
    ("live.com", "smtp-mail.outlook.com"),
    ("yahoo.com", "smtp.mail.yahoo.com"),
    ("icloud.com", "smtp.mail.me.com"),
    ("me.com", "smtp.mail.me.com"),
    ("fastmail.com", "smtp.fastmail.com"),
    ("qq.com", "smtp.qq.com"),
    ("163.com", "smtp.163.com"),
    ("126.com", "smtp.126.com"),
];

/// The options of an `smtp` channel that `url` stands for.
pub(crate) fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let (domain, port) = url.host()?;
    let (domain, port) = (domain.to_owned(), port.map(|port| i64::from(port).into()));
    let provider = PROVIDERS.iter().find(|(known, _)| domain == *known).map(|(_, server)| *server);
    let whole = |user: &String| {
        if user.contains('@') { user.clone() } else { format!("{user}@{domain}") }
    };
    let sender = url.parameter("from").or_else(|| url.user.as_ref().map(whole));
    let sender = sender.ok_or_else(|| url.wrong("names no sender; add `from`"))?;
    let readers: Vec<String> = match url.parameter("to") {
        Some(readers) => readers.split(',').map(|reader| reader.trim().to_owned()).collect(),
        None => {
            Some(url.rest()).filter(|path| !path.is_empty()).unwrap_or_else(|| vec![sender.clone()])
        }
    };
    let security = match (url.parameter("mode").as_deref(), provider) {
        (Some("ssl"), _) => "tls",
        (Some("starttls"), _) | (None, Some(_)) => "starttls",
        (None, None) if url.scheme == "mailtos" => "starttls",
        (Some("insecure") | None, _) => "none",
        (Some(_), _) => return Err(url.wrong("has an unknown `mode`")),
    };
    let host = url.parameter("smtp").unwrap_or_else(|| provider.unwrap_or(&domain).to_owned());
    let from = match url.parameter("name") {
        Some(name) => format!("{name} <{sender}>"),
        None => sender,
    };
    let user = url.user.take();
    let user = if provider.is_some() { user.as_ref().map(whole) } else { user };
    Ok(url::options([
        ("host", Some(host.into())),
        ("port", port),
        ("security", Some(security.into())),
        ("user", user.map(Into::into)),
        ("password", url.password.take().map(Into::into)),
        ("from", Some(from.into())),
        ("to", Some(readers.into())),
    ]))
}
