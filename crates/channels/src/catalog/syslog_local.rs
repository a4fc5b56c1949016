use std::path::PathBuf;

use crate::{
    prelude::*,
    syslog::{Facility, line, priority},
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Local>(About {
    name: "syslog_local",
    title: "syslog",
    docs: "https://man7.org/linux/man-pages/man3/syslog.3.html",
    transport: Transport::Syslog,
    dialect: Dialect::Plain,
    // A datagram of the machine's own is larger than what other machines take, but what reads it may cut from 2,048.
    limits: Limits { title: 200, body: 1_600, unit: Unit::Bytes, per_minute: None },
    edits: false,
    example: r#"facility = "daemon""#,
})
.with_urls(Urls {
    schemes: &["syslog"],
    examples: &["syslog://", "syslog://local3", "syslog://_?facility=daemon"],
    read,
    ..Urls::NONE
});

/// Writes to this machine's syslog, which is journald, rsyslog or another one.
///
/// 1. Read what arrives: `journalctl -t deskbell`, or `grep deskbell /var/log/syslog`.
///
/// A container has no syslog unless it is given `/dev/log`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Local {
    /// Facility to write as, such as `user`, `daemon` or `local0`.
    #[serde(default)]
    facility: Facility,
    /// Socket that syslog listens on.
    #[serde(default = "device")]
    socket: PathBuf,
}

fn device() -> PathBuf {
    PathBuf::from(if cfg!(target_os = "macos") { "/var/run/syslog" } else { "/dev/log" })
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // Which process of ours says something tells nobody anything, and nothing of ours is on the terminal.
    url.ignore(&["logpid", "logperror"]);
    let written = url.authority().filter(|facility| facility != "_");
    let facility = Facility::named(url, written)?;
    Ok(url::options([("facility", facility)]))
}

#[async_trait]
impl Channel for Local {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        // What is written here has its time and its host from who reads it.
        let priority = priority(self.facility, message.level);
        let record = format!("<{priority}>deskbell: {}", line(message));
        if let Some(preview) = &cx.preview {
            preview.note(json!({ "transport": "syslog", "socket": self.socket, "body": record }));
            return Ok(Receipt::default());
        }
        self.write(&record).await?;
        Ok(Receipt::default())
    }
}

#[cfg(unix)]
impl Local {
    async fn write(&self, record: &str) -> Result<(), SendError> {
        let written = async {
            let socket = tokio::net::UnixDatagram::unbound()?;
            socket.connect(&self.socket)?;
            socket.send(record.as_bytes()).await
        };
        written.await.map(drop).map_err(|error| {
            let message = format!("cannot write to `{}`: {error}", self.socket.display());
            match error.kind() {
                // Nobody listens for now, or not as fast as others write.
                std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::WouldBlock => {
                    SendError::temporary(message)
                }
                _ => SendError::permanent(message),
            }
        })
    }
}

#[cfg(not(unix))]
impl Local {
    async fn write(&self, _record: &str) -> Result<(), SendError> {
        Err(SendError::permanent("this system has no syslog"))
    }
}
