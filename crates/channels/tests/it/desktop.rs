//! Notifications over a real bus, to a program that takes them as the specification says.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use deskbell_channels::SendContext;
use deskbell_core::{
    Message,
    delivery::{Failure, Receipt},
    event::Format,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use zbus::{
    Connection, fdo,
    zvariant::{OwnedObjectPath, OwnedValue},
};

use crate::{
    Configured, configured,
    sample::{context, message, step},
    session_bus::SessionBus,
};

const NOTIFICATIONS: &str = "org.freedesktop.Notifications";

const PATH: &str = "/org/freedesktop/Notifications";

/// What takes notifications, until it is dropped.
struct Screen {
    connection: Connection,
    shown: Arc<Mutex<Vec<Shown>>>,
}

/// A notification as it was called.
#[derive(Debug, Clone)]
struct Shown {
    app: String,
    replaces: u32,
    icon: String,
    title: String,
    body: String,
    actions: Vec<String>,
    hints: HashMap<String, OwnedValue>,
    timeout: i32,
}

impl Shown {
    fn hint<T: TryFrom<OwnedValue>>(&self, name: &str) -> Option<T> {
        T::try_from(self.hints.get(name)?.clone()).ok()
    }
}

struct Shower {
    capabilities: Vec<String>,
    refusal: Option<fn(String) -> fdo::Error>,
    shown: Arc<Mutex<Vec<Shown>>>,
}

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Shower {
    fn get_capabilities(&self) -> Vec<String> {
        self.capabilities.clone()
    }

    #[expect(clippy::too_many_arguments, reason = "the specification has as many")]
    fn notify(
        &self,
        app: String,
        replaces: u32,
        icon: String,
        title: String,
        body: String,
        actions: Vec<String>,
        hints: HashMap<String, OwnedValue>,
        timeout: i32,
    ) -> fdo::Result<u32> {
        if let Some(refusal) = self.refusal {
            return Err(refusal("no room".to_owned()));
        }
        let mut shown = self.shown.lock().unwrap();
        shown.push(Shown { app, replaces, icon, title, body, actions, hints, timeout });
        Ok(if replaces == 0 { 41 + u32::try_from(shown.len()).unwrap() } else { replaces })
    }
}

impl Screen {
    async fn start(bus: &SessionBus, capabilities: &[&str]) -> Self {
        Self::refusing(bus, capabilities, None).await
    }

    async fn refusing(
        bus: &SessionBus,
        capabilities: &[&str],
        refusal: Option<fn(String) -> fdo::Error>,
    ) -> Self {
        let shown = Arc::default();
        let capabilities = capabilities.iter().map(ToString::to_string).collect();
        let shower = Shower { capabilities, refusal, shown: Arc::clone(&shown) };
        let connection = zbus::connection::Builder::address(bus.address().as_str())
            .unwrap()
            .name(NOTIFICATIONS)
            .unwrap()
            .serve_at(PATH, shower)
            .unwrap()
            .build()
            .await
            .unwrap();
        Self { connection, shown }
    }

    fn shown(&self) -> Vec<Shown> {
        self.shown.lock().unwrap().clone()
    }

    /// Somebody clicks.
    async fn click(&self, id: u32, action: &str) {
        let (nobody, clicked) = (None::<&str>, (id, action));
        self.connection
            .emit_signal(nobody, PATH, NOTIFICATIONS, "ActionInvoked", &clicked)
            .await
            .unwrap();
    }
}

fn channel(bus: &SessionBus, more: &str) -> Configured {
    configured("desktop", &format!("bus = '{}'\n{more}", bus.address()))
}

async fn failure(channel: &Configured, message: &Message) -> (Failure, String) {
    let error = channel.deliver(message, &context(message, None)).await.unwrap_err();
    (error.failure, error.message)
}

const TEMPORARY: Failure = Failure::Temporary { retry_after: None };

#[tokio::test]
async fn a_notify_call_is_received_as_the_specification_has_it_row_18() {
    let bus = SessionBus::start();
    let screen = Screen::start(&bus, &["actions", "body", "body-markup"]).await;
    let text = message("a **b** <i>c</i> &amp;", Format::Markdown);
    channel(&bus, "").deliver(&text, &context(&text, None)).await.unwrap();
    let [shown] = screen.shown().try_into().unwrap();
    assert_eq!((shown.app.as_str(), shown.replaces, shown.timeout), ("Deskbell", 0, -1));
    assert_eq!(shown.title, "Build failed");
    let body = "a <b>b</b> &lt;i&gt;c&lt;/i&gt; &amp;\n\nhttps://ci.example.com/7";
    assert_eq!(shown.body, body);
    assert_eq!(shown.icon, "dialog-warning");
    assert_eq!(shown.actions, ["default", "Open"]);
    assert_eq!(shown.hint::<u8>("urgency"), Some(1));
    assert_eq!(shown.hint::<String>("desktop-entry").as_deref(), Some("deskbell"));
    assert_eq!(shown.hints.len(), 2, "{:?}", shown.hints);
}

#[tokio::test]
async fn a_desktop_gets_only_what_it_says_it_can_show() {
    let bus = SessionBus::start();
    let text = message("a < **b** & c", Format::Markdown);
    let screen = Screen::start(&bus, &["body"]).await;
    let channel = channel(&bus, "urgency = 'critical'\nseconds = 7");
    channel.deliver(&text, &context(&text, None)).await.unwrap();
    let [shown] = screen.shown().try_into().unwrap();
    assert_eq!(shown.body, "a < b & c\n\nhttps://ci.example.com/7");
    assert!(shown.actions.is_empty(), "{:?}", shown.actions);
    assert_eq!((shown.hint::<u8>("urgency"), shown.timeout), (Some(2), 7_000));
    screen.connection.close().await.unwrap();

    let screen = Screen::start(&bus, &[]).await;
    channel.deliver(&text, &context(&text, None)).await.unwrap();
    let [shown] = screen.shown().try_into().unwrap();
    let title = "Build failed: a < b & c\\n\\nhttps://ci.example.com/7";
    assert_eq!((shown.title.as_str(), shown.body.as_str()), (title, ""));
}

/// A second step, after `first`.
async fn second(channel: &Configured, first: &Receipt) -> Receipt {
    let text = step("almost done");
    let cx = SendContext { earlier: channel.earlier(first), ..context(&text, None) };
    channel.deliver(&text, &cx).await.unwrap()
}

#[tokio::test]
async fn a_step_takes_the_place_of_the_last_also_after_a_restart_of_ours() {
    let bus = SessionBus::start();
    let screen = Screen::start(&bus, &["body"]).await;
    let text = step("uploading");
    let first = channel(&bus, "").deliver(&text, &context(&text, None)).await.unwrap();
    let restarted = channel(&bus, "");
    assert_eq!(second(&restarted, &first).await, first);
    let shown = screen.shown();
    assert_eq!(shown.iter().map(|shown| shown.replaces).collect::<Vec<_>>(), [0, 42]);
    assert_eq!(shown[1].hint::<i32>("value"), Some(40));
    let is_silent: Vec<_> =
        shown.iter().map(|shown| shown.hint::<bool>("suppress-sound")).collect();
    assert_eq!(is_silent, [None, Some(true)]);

    // Ids belong to the program that gave them: the next one has given 42 to somebody else.
    screen.connection.close().await.unwrap();
    let screen = Screen::start(&bus, &["body"]).await;
    assert_ne!(second(&restarted, &first).await, first);
    assert_eq!(screen.shown()[0].replaces, 0);
}

#[tokio::test]
async fn a_session_that_is_begun_anew_is_found_again() {
    let mut bus = SessionBus::start();
    let channel = channel(&bus, "");
    let text = message("text", Format::Text);
    let screen = Screen::start(&bus, &["body"]).await;
    channel.deliver(&text, &context(&text, None)).await.unwrap();
    drop(screen);
    bus.restart();
    let screen = Screen::start(&bus, &["body"]).await;
    let (lost, told) = failure(&channel, &text).await;
    assert_eq!(lost, TEMPORARY, "{told}");
    channel.deliver(&text, &context(&text, None)).await.unwrap();
    assert_eq!(screen.shown().len(), 1);
}

#[tokio::test]
async fn a_desktop_that_is_not_there_or_refuses_says_whether_that_may_pass() {
    let text = message("text", Format::Text);
    let nowhere = configured("desktop", "bus = 'unix:path=/nowhere/bus'");
    let (for_good, told) = failure(&nowhere, &text).await;
    assert_eq!(for_good, Failure::Permanent);
    assert!(
        told.starts_with("cannot reach the desktop's session") && told.contains("/nowhere/bus"),
        "{told}"
    );
    let (for_good, told) = failure(&configured("desktop", "bus = 'nonsense'"), &text).await;
    assert_eq!(for_good, Failure::Permanent, "{told}");

    let bus = SessionBus::start();
    let (starting, told) = failure(&channel(&bus, ""), &text).await;
    assert_eq!(starting, TEMPORARY);
    assert!(told.starts_with("no program on the desktop shows notifications"), "{told}");

    for (refusal, meaning) in [
        (fdo::Error::LimitsExceeded as fn(String) -> fdo::Error, TEMPORARY),
        (fdo::Error::AccessDenied, Failure::Permanent),
    ] {
        let screen = Screen::refusing(&bus, &["body"], Some(refusal)).await;
        let (failure, told) = failure(&channel(&bus, ""), &text).await;
        assert_eq!(failure, meaning, "{told}");
        assert!(told.contains("no room"), "{told}");
        screen.connection.close().await.unwrap();
    }
}

/// What opens addresses.
struct Portal(UnboundedSender<String>);

#[zbus::interface(name = "org.freedesktop.portal.OpenURI")]
impl Portal {
    #[zbus(name = "OpenURI")]
    fn open(
        &self,
        _parent: String,
        address: String,
        _options: HashMap<String, OwnedValue>,
    ) -> OwnedObjectPath {
        self.0.send(address).unwrap();
        OwnedObjectPath::try_from("/request/1").unwrap()
    }
}

async fn portal(bus: &SessionBus) -> (Connection, UnboundedReceiver<String>) {
    let (opened, receiver) = unbounded_channel();
    let connection = zbus::connection::Builder::address(bus.address().as_str())
        .unwrap()
        .name("org.freedesktop.portal.Desktop")
        .unwrap()
        .serve_at("/org/freedesktop/portal/desktop", Portal(opened))
        .unwrap()
        .build()
        .await
        .unwrap();
    (connection, receiver)
}

#[tokio::test]
async fn a_click_opens_the_address_of_the_message_and_of_no_other() {
    let bus = SessionBus::start();
    let screen = Screen::start(&bus, &["actions", "body"]).await;
    let (_portal, mut opened) = portal(&bus).await;
    let text = message("text", Format::Text);
    let other = Message { link: Some("https://example.com/other".to_owned()), ..text.clone() };
    let channel = channel(&bus, "");
    for message in [&text, &other] {
        channel.deliver(message, &context(message, None)).await.unwrap();
    }
    // Somebody else's, another button, ours.
    screen.click(7, "default").await;
    screen.click(42, "other").await;
    screen.click(43, "default").await;
    screen.click(42, "default").await;
    assert_eq!(opened.recv().await.unwrap(), "https://example.com/other");
    assert_eq!(opened.recv().await.unwrap(), "https://ci.example.com/7");
}
