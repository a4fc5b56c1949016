//! The variables by which mcp-push and Qinglong describe a mail channel.

use crate::variables::{Set, Wrong};

/// Mail to oneself unless it says to whom. Without SSL from the first byte the connection is upgraded, where mcp-push
/// would send the password for everybody to read.
pub(crate) fn read(set: &Set<'_>) -> Result<toml::Table, Wrong> {
    let mut table = set.table(&[("user", "SMTP_EMAIL"), ("password", "SMTP_PASSWORD")]);
    let server = set.get("SMTP_SERVER").unwrap_or_default();
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port)) => {
            let Ok(port) = port.parse::<u16>() else {
                return Err(Wrong {
                    variable: "SMTP_SERVER",
                    reason: "expected a host, or a host and a port",
                });
            };
            (host, Some(port))
        }
        None => (server, None),
    };
    table.insert("host".to_owned(), host.into());
    if let Some(port) = port {
        table.insert("port".to_owned(), i64::from(port).into());
    }
    let security = if set.has("SMTP_SSL") { "tls" } else { "starttls" };
    table.insert("security".to_owned(), security.into());
    let address = set.get("SMTP_EMAIL").unwrap_or_default();
    let from = match set.get("SMTP_NAME") {
        Some(name) => format!("\"{}\" <{address}>", name.replace(['"', '\\'], "")),
        None => address.to_owned(),
    };
    table.insert("from".to_owned(), from.into());
    let readers = set.get("SMTP_EMAIL_TO").or_else(|| set.get("SMTP_TO"));
    let readers: Vec<_> = readers
        .unwrap_or(address)
        .split([';', '；'])
        .map(str::trim)
        .filter(|reader| !reader.is_empty())
        .map(toml::Value::from)
        .collect();
    table.insert("to".to_owned(), readers.into());
    Ok(table)
}
