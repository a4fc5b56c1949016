use crate::{
    desktop::{Notice, Session, missing},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Desktop>(About {
    name: "desktop",
    title: "the desktop",
    docs: "https://specifications.freedesktop.org/notification-spec/latest/",
    transport: Transport::Local,
    dialect: Dialect::Desktop,
    // Desktops cut what does not fit, and show the rest on demand.
    limits: Limits::NONE,
    edits: true,
    example: r#"urgency = "normal""#,
})
.with_urls(Urls {
    schemes: &["dbus", "qt", "kde", "glib", "gio", "gnome", "macosx", "windows"],
    examples: &[
        "dbus://",
        "qt://",
        "kde://_/?priority=low",
        "glib://_/?urgency=0&x=10&y=20",
        "gio://",
        "gnome://_?urgency=high",
        "macosx://_/?sound=default",
        "windows://_/?duration=12",
    ],
    read,
    ..Urls::NONE
});

/// Notifications on the desktop of the machine that the daemon runs on.
///
/// 1. Where GNOME, KDE, Xfce or another desktop runs, there is nothing to set up. With a window manager alone, start a
///    program that shows notifications, such as dunst or mako.
/// 2. A daemon that was started outside of the desktop's session finds its bus in `/run/user`, where systemd puts it.
///    Elsewhere set `bus` to what `echo $DBUS_SESSION_BUS_ADDRESS` prints in a terminal on the desktop.
///
/// The level chooses urgency and icon; from `error` on a notification stays until somebody has seen it. The steps of a
/// run are one notification with a bar. A click opens the address that a message carries. Without a desktop session a
/// message is given up at once; while nothing shows notifications it is tried again. macOS and Windows have no such bus
/// and refuse it for now.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Desktop {
    /// How urgent all of them are: `low`, `normal` or `critical`; without it as their levels say.
    urgency: Option<Urgency>,
    /// How long each stays, in seconds, 0 for until somebody closes it; without it as the desktop has it.
    seconds: Option<u16>,
    /// Address of the session's bus, such as `unix:path=/run/user/1000/bus`; without it the daemon's own.
    bus: Option<String>,
    #[serde(skip)]
    session: Session,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Urgency {
    Low,
    Normal,
    Critical,
}

impl Urgency {
    const fn of(level: Level) -> Self {
        match level {
            Level::Debug => Self::Low,
            Level::Info | Level::Notice | Level::Warning => Self::Normal,
            Level::Error | Level::Critical | Level::Alert | Level::Emergency => Self::Critical,
        }
    }

    /// As the specification counts.
    const fn number(self) -> u8 {
        match self {
            Self::Low => 0,
            Self::Normal => 1,
            Self::Critical => 2,
        }
    }
}

/// One of the names that every theme has (Icon Naming Specification).
const fn icon(level: Level) -> &'static str {
    match level {
        Level::Debug | Level::Info | Level::Notice => "dialog-information",
        Level::Warning => "dialog-warning",
        Level::Error | Level::Critical | Level::Alert | Level::Emergency => "dialog-error",
    }
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // Where on the screen and with which sound is the desktop's own business; a click opens the message's own address.
    url.ignore(&["x", "y", "sound", "click", "version", "sender"]);
    let _nothing = url.authority();
    let (urgency, priority) = (url.parameter("urgency"), url.parameter("priority"));
    // The first letter counts, as in Apprise.
    let first = urgency.or(priority).and_then(|urgency| urgency.to_lowercase().chars().next());
    let urgency = match first {
        None => None,
        Some('0' | 'l' | 'm') => Some("low"),
        Some('1' | 'n') => Some("normal"),
        Some('2' | 'h' | 'e' | 'c') => Some("critical"),
        Some(_) => return Err(url.wrong("has an unknown `urgency`")),
    };
    let seconds = url.number("duration")?;
    Ok(url::options([("urgency", urgency.map(Into::into)), ("seconds", seconds.map(Into::into))]))
}

#[async_trait]
impl Channel for Desktop {
    fn unseen(&self) -> Option<String> {
        missing(self.bus.as_deref())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let notice = self.notice(message, cx);
        if let Some(preview) = &cx.preview {
            preview.note(json!({
                "transport": "desktop",
                "title": notice.title,
                "body": notice.marked,
                "icon": notice.icon,
                "urgency": notice.urgency,
                "value": notice.percent,
                "timeout": notice.timeout,
                "link": notice.link,
            }));
            return Ok(Receipt::default());
        }
        let receipt = self.session.show(&notice, self.bus.as_deref()).await?;
        Ok(Receipt { message_id: Some(receipt) })
    }
}

impl Desktop {
    fn notice(&self, message: &Message, cx: &SendContext) -> Notice {
        let progress = message.run.as_ref().and_then(|run| run.progress);
        Notice {
            title: message.title.clone().unwrap_or_else(|| "Deskbell".to_owned()),
            plain: Dialect::Plain.body(message),
            marked: KIND.about.dialect.body(message),
            icon: icon(message.level),
            urgency: self.urgency.unwrap_or(Urgency::of(message.level)).number(),
            percent: progress.map(|progress| progress.percent()),
            timeout: self.seconds.map_or(-1, |seconds| i32::from(seconds) * 1_000),
            link: message.link.clone(),
            replaces: cx.edit.as_ref().and_then(|earlier| earlier.message_id.clone()),
        }
    }
}
