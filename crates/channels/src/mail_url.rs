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
    // A message has no pictures.
    url.ignore(&["inline"]);
    let asks = |word: &String| !matches!(word.as_str(), "n" | "no" | "none" | "false" | "0");
    if ["pgp", "wkd"].into_iter().any(|name| url.parameter(name).as_ref().is_some_and(asks)) {
        return Err(url.wrong("asks for PGP, which mails of channels do not have"));
    }
    url.ignore(&["pgp", "wkd", "pgpkey", "pgppub", "pgpprv"]);
    let (domain, port) = url.host()?;
    let (domain, port) = (domain.to_owned(), port.map(|port| i64::from(port).into()));
    let provider = PROVIDERS.iter().find(|(known, _)| domain == *known).map(|(_, server)| *server);
    let whole = |user: &String| {
        if user.contains('@') { user.clone() } else { format!("{user}@{domain}") }
    };
    let sender = sender(url, &whole)?;
    let mut readers = url.rest();
    readers.extend(addresses(url, "to").unwrap_or_default());
    if readers.is_empty() {
        readers.push(sender.clone());
    }
    let password = url.password.take();
    // Without a password the user is no more than the sender.
    let user = url.user.take().filter(|_| password.is_some());
    let security = match (url.parameter("mode").as_deref(), provider) {
        (Some("ssl"), _) => "tls",
        (Some("starttls"), _) | (None, Some(_)) => "starttls",
        // Where Apprise would show a password to the network, the server is asked for an encrypted connection.
        (None, None)
            if url.scheme == "mailtos" || (password.is_some() && domain != "localhost") =>
        {
            "starttls"
        }
        (Some("insecure") | None, _) => "none",
        (Some(_), _) => return Err(url.wrong("has an unknown `mode`")),
    };
    let host = url.parameter("smtp").unwrap_or_else(|| provider.unwrap_or(&domain).to_owned());
    let user = if provider.is_some() { user.as_ref().map(whole) } else { user };
    let headers: toml::Table =
        url.parameters('+').into_iter().map(|(name, value)| (name, value.into())).collect();
    Ok(url::options([
        ("host", Some(host.into())),
        ("port", port),
        ("security", Some(security.into())),
        ("user", user.map(Into::into)),
        ("password", password.map(Into::into)),
        ("from", Some(sender.into())),
        ("to", Some(readers.into())),
        ("cc", addresses(url, "cc").map(Into::into)),
        ("bcc", addresses(url, "bcc").map(Into::into)),
        ("reply_to", addresses(url, "reply").map(Into::into)),
        ("headers", (!headers.is_empty()).then(|| headers.into())),
    ]))
}

/// Takes the mail addresses of the parameter `name`.
fn addresses(url: &mut ServiceUrl, name: &str) -> Option<Vec<String>> {
    let written = url.parameter(name)?;
    Some(written.split(',').map(|address| address.trim().to_owned()).collect())
}

/// Takes the sender: `from`, which may be a name only, or the user, whose address `whole` gives.
fn sender(url: &mut ServiceUrl, whole: &dyn Fn(&String) -> String) -> Result<String, ConfigError> {
    let (from, name) = (url.parameter("from"), url.parameter("name"));
    let (address, name) = match from {
        Some(from) if from.contains('@') => (Some(from), name),
        from => (url.user.as_ref().map(whole), name.or(from)),
    };
    let has_readers = !url.path.is_empty() || url.look("to").is_some();
    let address = match address {
        None if has_readers => whole(&"deskbell".to_owned()),
        address => address.ok_or_else(|| url.wrong("names no sender; add `from`"))?,
    };
    Ok(match name {
        Some(name) => format!("{name} <{address}>"),
        None => address,
    })
}
