//! Notifications over D-Bus, as the desktops of Linux and the BSDs take them.

use std::{
    collections::{HashMap, VecDeque},
    env,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use deskbell_core::text;
use futures_util::StreamExt as _;
use tokio::{process::Command, sync::Mutex as Turn, task::JoinSet};
use zbus::{
    Connection, MatchRule, Message, MessageStream,
    connection::Builder,
    message::Type,
    zvariant::{DynamicType, Value},
};

use super::Notice;
use crate::channel::SendError;

/// The name under which notifications are taken, and their interface.
const NOTIFICATIONS: &str = "org.freedesktop.Notifications";

const PATH: &str = "/org/freedesktop/Notifications";

/// The service that opens addresses for programs that cannot, and where it is.
const PORTAL: &str = "org.freedesktop.portal.Desktop";

const PORTAL_PATH: &str = "/org/freedesktop/portal/desktop";

const OPEN_URI: &str = "org.freedesktop.portal.OpenURI";

/// What a click on a notification means, as the specification calls it.
const DEFAULT: &str = "default";

/// How many addresses are remembered for clicks; the oldest are forgotten first.
const LINKS: usize = 64;

/// How many clicks may wait to be looked at.
const CLICKS: usize = 16;

/// The desktop's session, found when the first notification is shown.
///
/// The connection is kept: some desktops take a notification away when the program that sent it leaves the bus, and
/// clicks come over it.
#[derive(Default)]
pub(crate) struct Session(Turn<Option<Desktop>>);

impl Session {
    /// Shows `notice` and gives a receipt by which a later one can take its place.
    pub(crate) async fn show(
        &self,
        notice: &Notice,
        bus: Option<&str>,
    ) -> Result<String, SendError> {
        let mut kept = self.0.lock().await;
        // Taken out, so that a connection on which nothing comes back is not used again when the time is over.
        let desktop = match kept.take() {
            Some(desktop) => desktop,
            None => Desktop::connected(bus).await?,
        };
        let outcome = desktop.show(notice).await;
        if matches!(outcome, Ok(_) | Err(zbus::Error::MethodError(..))) {
            *kept = Some(desktop);
        }
        outcome.map_err(|error| refused(&error))
    }
}

/// Why no notification would be seen, as far as that shows without sending one.
pub(crate) fn missing(bus: Option<&str>) -> Option<String> {
    let address = match address(bus) {
        Ok(address) => address,
        Err(reason) => return Some(reason),
    };
    // There may be several, the better ones first.
    let socket =
        |address: &str| Some(address.strip_prefix("unix:path=")?.split(',').next()?.into());
    let sockets: Option<Vec<PathBuf>> = address.split(';').map(socket).collect();
    let [socket, ..] = sockets.as_deref().filter(|all| !all.iter().any(|one| one.exists()))? else {
        return None;
    };
    Some(format!("there is no desktop session: the bus at `{}` is missing", socket.display()))
}

/// Where the session's bus is: where the channel, the environment or the system's custom says.
fn address(set: Option<&str>) -> Result<String, String> {
    let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(address) = set.map(str::to_owned).or_else(|| variable("DBUS_SESSION_BUS_ADDRESS")) {
        return Ok(address);
    }
    let folder = variable("XDG_RUNTIME_DIR")
        .unwrap_or_else(|| format!("/run/user/{}", rustix::process::getuid().as_raw()));
    let socket = PathBuf::from(folder).join("bus");
    if socket.exists() {
        return Ok(format!("unix:path={}", socket.display()));
    }
    Err(format!(
        "there is no desktop session: DBUS_SESSION_BUS_ADDRESS is not set and `{}` is missing",
        socket.display()
    ))
}

/// A connection to a desktop.
struct Desktop {
    connection: Connection,
    links: Links,
    /// Waits for clicks, and ends with the connection.
    _waiting: JoinSet<()>,
}

impl Desktop {
    async fn connected(bus: Option<&str>) -> Result<Self, SendError> {
        let address = address(bus).map_err(SendError::permanent)?;
        let connecting = async { Builder::address(address.as_str())?.build().await };
        let connection = connecting.await.map_err(|error| {
            let error = text::one_line(&error.to_string()).into_owned();
            SendError::permanent(format!("cannot reach the desktop's session: {error}"))
        })?;
        let (links, mut waiting) = (Links::default(), JoinSet::new());
        // A desktop on which nothing can be clicked shows notifications all the same.
        if let Ok(clicks) = clicks(&connection).await {
            waiting.spawn(open_when_clicked(clicks, connection.clone(), links.clone()));
        }
        Ok(Self { connection, links, _waiting: waiting })
    }

    async fn show(&self, notice: &Notice) -> zbus::Result<String> {
        // Asked each time: another program may show notifications by now.
        let answer = self.call("GetCapabilities", &()).await?;
        let known: Vec<String> = answer.body().deserialize()?;
        let knows = |ability: &str| known.iter().any(|known| known == ability);
        let shower = Shower::of(&answer, &self.connection);
        let replaces = notice.replaces.as_deref().and_then(|receipt| shower.id(receipt));
        let body = if knows("body-markup") { &notice.marked } else { &notice.plain };
        // Some show one line only.
        let (title, body) = match knows("body") {
            true => (notice.title.clone(), body.as_str()),
            false => (format!("{}: {}", notice.title, text::one_line(&notice.plain)), ""),
        };
        let mut hints = HashMap::from([
            ("urgency", Value::U8(notice.urgency)),
            ("desktop-entry", Value::from("deskbell")),
        ]);
        if let Some(percent) = notice.percent {
            hints.insert("value", Value::I32(percent.into()));
        }
        if replaces.is_some() {
            // One sound for a run is enough.
            hints.insert("suppress-sound", Value::Bool(true));
        }
        let link = notice.link.as_ref().filter(|_| knows("actions"));
        let actions: &[&str] = if link.is_some() { &[DEFAULT, "Open"] } else { &[] };
        let told = (
            "Deskbell",
            replaces.unwrap_or(0),
            notice.icon,
            title,
            body,
            actions,
            hints,
            notice.timeout,
        );
        let id = self.call("Notify", &told).await?.body().deserialize()?;
        self.links.keep(id, link.cloned());
        Ok(shower.receipt(id))
    }

    async fn call(
        &self,
        method: &str,
        told: &(impl serde::Serialize + DynamicType),
    ) -> zbus::Result<Message> {
        let interface = Some(NOTIFICATIONS);
        self.connection.call_method(interface, PATH, interface, method, told).await
    }
}

/// The one program that shows notifications now. Ids are its own: after it has ended, or in another session, the same
/// id is somebody else's notification.
struct Shower(String);

impl Shower {
    fn of(answer: &Message, connection: &Connection) -> Self {
        let header = answer.header();
        let name = header.sender().map(|name| name.as_str()).unwrap_or_default();
        Self(format!("{}{name}", connection.server_guid()))
    }

    fn receipt(&self, id: u32) -> String {
        format!("{id}@{}", self.0)
    }

    /// The id that `receipt` holds, if it is one of this program's.
    fn id(&self, receipt: &str) -> Option<u32> {
        let (id, by) = receipt.split_once('@')?;
        id.parse().ok().filter(|_| by == self.0)
    }
}

/// What clicks open: ids of notifications with their addresses, the newest last.
#[derive(Clone, Default)]
struct Links(Arc<Mutex<VecDeque<(u32, String)>>>);

impl Links {
    fn keep(&self, id: u32, link: Option<String>) {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|(known, _)| *known != id);
        links.extend(link.map(|link| (id, link)));
        let surplus = links.len().saturating_sub(LINKS);
        links.drain(..surplus);
    }

    fn of(&self, id: u32) -> Option<String> {
        let links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.iter().find(|(known, _)| *known == id).map(|(_, link)| link.clone())
    }
}

async fn open_when_clicked(mut clicks: MessageStream, connection: Connection, links: Links) {
    while let Some(Ok(click)) = clicks.next().await {
        let body = click.body();
        let Ok((id, DEFAULT)) = body.deserialize::<(u32, &str)>() else { continue };
        if let Some(link) = links.of(id) {
            open(&connection, &link).await;
        }
    }
}

async fn clicks(connection: &Connection) -> zbus::Result<MessageStream> {
    let rule = MatchRule::builder()
        .msg_type(Type::Signal)
        .sender(NOTIFICATIONS)?
        .interface(NOTIFICATIONS)?
        .member("ActionInvoked")?
        .build();
    MessageStream::for_match_rule(rule, connection, Some(CLICKS)).await
}

/// Opens `link`, which is an address of the web. Whoever clicked sees whether it did.
async fn open(connection: &Connection, link: &str) {
    let options: HashMap<&str, Value<'_>> = HashMap::new();
    let asked = ("", link, options);
    let (portal, interface) = (Some(PORTAL), Some(OPEN_URI));
    let opened = connection.call_method(portal, PORTAL_PATH, interface, "OpenURI", &asked).await;
    if opened.is_err() {
        // Plain window managers have no portal. What this starts has nothing of the daemon's but its environment.
        let nothing = Stdio::null;
        let mut program = Command::new("xdg-open");
        program.arg(link).stdin(nothing()).stdout(nothing()).stderr(nothing());
        if let Ok(mut started) = program.spawn() {
            let _ended = started.wait().await;
        }
    }
}

/// What a refusal means. A desktop that is starting has its bus before something shows notifications on it.
fn refused(error: &zbus::Error) -> SendError {
    let zbus::Error::MethodError(name, told, _) = error else {
        let error = text::one_line(&error.to_string()).into_owned();
        return SendError::temporary(format!("the desktop did not answer: {error}"));
    };
    let told = text::one_line(told.as_deref().unwrap_or_default()).into_owned();
    match name.as_str() {
        "org.freedesktop.DBus.Error.ServiceUnknown"
        | "org.freedesktop.DBus.Error.NameHasNoOwner" => SendError::temporary(
            "no program on the desktop shows notifications; where it brings none, start dunst or mako",
        ),
        "org.freedesktop.DBus.Error.NoReply"
        | "org.freedesktop.DBus.Error.Timeout"
        | "org.freedesktop.DBus.Error.TimedOut"
        | "org.freedesktop.DBus.Error.LimitsExceeded"
        | "org.freedesktop.Notifications.Error.ExcessNotificationGeneration" => {
            SendError::temporary(format!("the desktop takes nothing for now: {told}"))
        }
        name if name.starts_with("org.freedesktop.DBus.Error.Spawn.") => {
            SendError::temporary(format!("what shows notifications does not start: {told}"))
        }
        name => SendError::permanent(format!("the desktop refused with {name}: {told}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_another_program_or_session_are_nobodys() {
        let shower = Shower("0f2a:1.7".to_owned());
        assert_eq!(shower.id(&shower.receipt(42)), Some(42));
        for strange in ["42@0f2a:1.8", "42@77aa:1.7", "42", "x@0f2a:1.7", ""] {
            assert_eq!(shower.id(strange), None, "{strange}");
        }
    }

    #[test]
    fn only_the_newest_links_are_remembered() {
        let links = Links::default();
        for id in 0..100 {
            links.keep(id, Some(format!("https://example.com/{id}")));
        }
        links.keep(99, None);
        assert_eq!(links.of(35), None);
        assert_eq!(links.of(36).as_deref(), Some("https://example.com/36"));
        assert_eq!(links.of(99), None);
    }
}
