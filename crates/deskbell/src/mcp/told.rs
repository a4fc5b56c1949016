//! What a client is told beside the answers: what it reported, how far a run is, what failed later, what has changed.
//!
//! The SDK carries it: it knows what each client hears, and how much of it.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use deskbell_core::{
    ChannelName, DeliveryId, Event, EventId, Level,
    delivery::DeliveryState,
    event::Kind,
    run::{Phase, RunStep},
};
use deskbell_sdk::{Client, Declared, Limits, Notifier, ToolContext};
use rmcp::{RoleServer, service::RequestContext};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use crate::{
    app::App,
    channel_set::ChannelSet,
    config::Config,
    intake::Accepted,
    journal::{Delivery, DeliveryQuery, Journal},
};

/// How many messages of one connection are followed until their pushes are settled. Of a further one the client is not
/// warned; its resource tells the same.
const FOLLOWED_LIMIT: usize = 64;

/// How long outcomes are gathered before they are looked at.
const GATHER: Duration = Duration::from_millis(500);

/// What messages about pushes say they come from.
const LOGGER: &str = "deskbell";

/// What the sessions of a door share, with the limits of `config`.
pub(super) fn notifier(config: &Config) -> Notifier {
    let mut limits = Limits::default();
    if let Some(per_minute) = config.mcp.notifications_per_minute {
        limits = limits.with_per_minute(per_minute);
    }
    // Changes of resources are gathered where they are noticed, and the local socket keeps the gap itself.
    limits.debounce.resource_updated = Duration::ZERO;
    Notifier::identifying(limits.with_gap(Duration::ZERO), identity)
}

/// Who sent a request without a session: the same token, name and version are the same client.
fn identity(context: &RequestContext<RoleServer>) -> String {
    let client = context.client_info();
    let parts = context.extensions.get::<http::request::Parts>();
    let token = parts.and_then(|parts| parts.headers.get(http::header::AUTHORIZATION));
    format!("{:?} {:?}", client.map(|client| (client.name, client.version)), token)
}

/// Which notifications the client of an `initialize` takes. rmcp drops it, so it is read from the message itself.
pub(super) fn declared(initialize: &[u8]) -> Declared {
    #[derive(Deserialize)]
    struct Message {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        capabilities: Value,
    }
    let message = serde_json::from_slice::<Message>(initialize);
    message.map(|message| Declared::of(&message.params.capabilities)).unwrap_or_default()
}

/// Tells of the lists, whenever other channels are configured than before.
pub(super) async fn lists(notifier: Notifier, channels: watch::Receiver<Arc<ChannelSet>>) {
    let mut lists = Lists::new(channels);
    while lists.changed().await {
        notifier.tool_list_changed();
        notifier.resource_list_changed();
    }
}

/// Waits until other channels are configured than before.
pub(super) struct Lists {
    channels: watch::Receiver<Arc<ChannelSet>>,
    names: Vec<ChannelName>,
}

impl Lists {
    pub(super) fn new(mut channels: watch::Receiver<Arc<ChannelSet>>) -> Self {
        let names = names(&channels.borrow_and_update());
        Self { channels, names }
    }

    /// Gives false when they cannot change any more.
    pub(super) async fn changed(&mut self) -> bool {
        while self.channels.changed().await.is_ok() {
            let now = names(&self.channels.borrow_and_update());
            if std::mem::replace(&mut self.names, now) != self.names {
                return true;
            }
        }
        false
    }
}

fn names(channels: &ChannelSet) -> Vec<ChannelName> {
    channels.iter().map(|(name, _)| name.clone()).collect()
}

/// Tells the caller what was accepted: a notice as a message, a step of a run as progress.
pub(super) fn accepted(cx: &ToolContext, accepted: &Accepted) {
    match &accepted.event.kind {
        // One that is sent again was told when it was sent first.
        Kind::Notice if accepted.duplicate => {}
        Kind::Notice => notice(cx, &accepted.event),
        Kind::Run(step) => progress(cx, step, &accepted.event.content.text),
        Kind::Push => {}
    }
}

fn notice(cx: &ToolContext, event: &Event) {
    let Event { id, level, context, content, .. } = event;
    let mut data = json!({ "event_id": id.to_string(), "context": context.as_str() });
    let more = [
        ("title", content.title.clone().map(Value::from)),
        ("link", content.link.clone().map(Value::from)),
        ("details", content.data.clone()),
    ];
    if let Some(data) = data.as_object_mut() {
        data.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    }
    cx.log.data(data).log(level_of(*level), &content.text);
}

fn progress(cx: &ToolContext, step: &RunStep, text: &str) {
    let mut progress = cx.notify.progress(text, 1.0);
    if let Some(done) = step.progress {
        progress.update(done.fraction());
    }
    match step.phase {
        Phase::End => progress.complete(text),
        // The run goes on in other calls, or has ended short of its end.
        Phase::Start | Phase::Update | Phase::Error => progress.leave(),
    }
}

const fn level_of(level: Level) -> deskbell_sdk::Level {
    use deskbell_sdk::Level as Told;
    match level {
        Level::Debug => Told::Debug,
        Level::Info => Told::Info,
        Level::Notice => Told::Notice,
        Level::Warning => Told::Warning,
        Level::Error => Told::Error,
        Level::Critical => Told::Critical,
        Level::Alert => Told::Alert,
        Level::Emergency => Told::Emergency,
    }
}

/// Warns the client of a session, once for each channel, when a push of what it reported is given up.
#[derive(Clone, Default)]
pub(super) struct Failures(Arc<Mutex<Followed>>);

#[derive(Default)]
struct Followed {
    /// The messages whose pushes are not all settled, and those of which the client was warned.
    events: HashMap<EventId, HashSet<DeliveryId>>,
    /// The messages whose pushes were settled last, of which the client is not warned again when it repeats one.
    settled: VecDeque<EventId>,
    /// Ends with the connection.
    following: Option<AbortOnDropHandle<()>>,
}

impl Failures {
    /// Follows the pushes of what was accepted, for `client`.
    pub(super) fn follow(&self, app: &App, client: Client, accepted: &Accepted) {
        if accepted.channels.is_empty() {
            return;
        }
        let followed = &mut *lock(&self.0);
        if !followed.begin(accepted.event.id) {
            return;
        }
        if followed.following.is_none() {
            let task = follow(Arc::downgrade(&self.0), Arc::clone(&app.journal), client);
            followed.following = Some(AbortOnDropHandle::new(tokio::spawn(task)));
        }
    }
}

impl Followed {
    /// Follows a message. False if it is settled already or there is no room.
    fn begin(&mut self, event: EventId) -> bool {
        if self.events.len() >= FOLLOWED_LIMIT || self.settled.contains(&event) {
            return false;
        }
        self.events.entry(event).or_default();
        true
    }

    fn settle(&mut self, event: EventId) {
        self.events.remove(&event);
        if self.settled.len() >= FOLLOWED_LIMIT {
            self.settled.pop_front();
        }
        self.settled.push_back(event);
    }
}

fn lock(followed: &Mutex<Followed>) -> MutexGuard<'_, Followed> {
    followed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Warns `client` until nothing is left to follow.
async fn follow(followed: Weak<Mutex<Followed>>, journal: Arc<dyn Journal>, client: Client) {
    // Register interest before reading, so that an outcome in between is not missed.
    let mut doorbell = journal.doorbell();
    loop {
        doorbell.mark_unchanged();
        let events: Vec<EventId> = match followed.upgrade() {
            Some(followed) => lock(&followed).events.keys().copied().collect(),
            None => return,
        };
        for event in events {
            let query =
                DeliveryQuery { event: Some(event), limit: usize::MAX, ..DeliveryQuery::default() };
            match journal.deliveries(query).await {
                Ok(deliveries) => note(&followed, event, &deliveries, &client),
                Err(error) => {
                    warn!("cannot follow pushes for a client: {error}");
                    // The next outcome has all of them looked at again.
                    break;
                }
            }
        }
        if let Some(followed) = followed.upgrade() {
            let followed = &mut *lock(&followed);
            if followed.events.is_empty() {
                followed.following = None;
                return;
            }
        }
        if doorbell.changed().await.is_err() {
            return;
        }
        tokio::time::sleep(GATHER).await;
    }
}

fn note(
    followed: &Weak<Mutex<Followed>>,
    event: EventId,
    deliveries: &[Delivery],
    client: &Client,
) {
    let Some(followed) = followed.upgrade() else { return };
    let followed = &mut *lock(&followed);
    let Some(warned) = followed.events.get_mut(&event) else { return };
    for delivery in deliveries {
        if delivery.state == DeliveryState::GivenUp && warned.insert(delivery.id.clone()) {
            tell_failure(client, delivery);
        }
    }
    if deliveries.iter().all(|delivery| delivery.state.is_settled()) {
        followed.settle(event);
    }
}

fn tell_failure(client: &Client, Delivery { id, attempts, .. }: &Delivery) {
    let error = attempts.iter().rev().find_map(|attempt| attempt.error.as_deref());
    let error = error.unwrap_or("no attempt was made");
    let data = json!({
        "event_type": "delivery_failed",
        "delivery_id": id.to_string(),
        "channel": id.channel.as_str(),
        "error": error,
    });
    let text = format!("the push to {} was given up: {error}", id.channel);
    client.log(deskbell_sdk::Level::Warning, LOGGER, &text, data);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_is_read_from_the_message_itself_row_36() {
        let map = json!({ "notifications/progress": false });
        let capabilities = json!({ "roots": {}, "notifications": map });
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": { "capabilities": capabilities } });
        let read = declared(initialize.to_string().as_bytes());
        assert_eq!(read, Declared::of(&capabilities));
        assert_ne!(read, Declared::default());
        for broken in ["", "{}", r#"{"params":{}}"#, r#"{"params":{"capabilities":7}}"#] {
            assert_eq!(declared(broken.as_bytes()), Declared::default(), "{broken}");
        }
    }

    #[test]
    fn a_message_that_is_settled_is_not_followed_again_when_it_is_repeated() {
        let event = |n| EventId::from_uuid(uuid::Uuid::from_u128(n));
        let mut followed = Followed::default();
        assert!(followed.begin(event(0)) && followed.begin(event(0)));
        followed.settle(event(0));
        assert!(!followed.begin(event(0)));
        for n in 1..1000 {
            assert!(followed.begin(event(n)));
            followed.settle(event(n));
        }
        assert_eq!(followed.settled.len(), FOLLOWED_LIMIT);
    }

    #[test]
    fn levels_keep_their_names_row_21() {
        for level in Level::ALL {
            assert_eq!(level_of(level).name(), level.as_str());
        }
    }
}
