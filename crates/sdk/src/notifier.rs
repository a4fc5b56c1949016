//! What all sessions of a server share: the limits, the minute of each client, and who hears of changes.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Mutex, Weak},
};

use rmcp::{RoleServer, service::RequestContext};
use tokio::time;

use crate::{
    limits::Limits,
    listening::Listener,
    lock,
    outbox::Kind,
    rate::Rate,
    service::Notifying,
    session::{Asked, Session, now},
};

/// Most clients whose minute is kept, of requests without a session. Beyond it a request has a minute of its own.
const CLIENTS: usize = 4_096;

/// Who a client is, by a request of it.
type Identity = fn(&RequestContext<RoleServer>) -> String;

/// What all sessions of a server share: the limits, and who hears of changes.
///
/// On stdio there is one session, and [`Notifying::new`] makes one of these for it. Over HTTP there are many:
///
/// ```
/// use deskbell_sdk::{Limits, Notifier, Notifying};
/// # #[derive(Clone)]
/// # struct Files;
/// # impl rmcp::ServerHandler for Files {}
/// let notifier = Notifier::new(Limits::default());
/// let factory = {
///     let notifier = notifier.clone();
///     // For `StreamableHttpService::new`.
///     move || Ok::<_, std::io::Error>(Notifying::sharing(Files, &notifier))
/// };
/// # factory().unwrap();
/// // Whoever has subscribed hears of it, in every session and on every `subscriptions/listen`.
/// notifier.resource_updated("file:///data/output.json");
/// notifier.tool_list_changed();
/// ```
///
/// Cheap to clone; its clones are the same.
#[derive(Debug, Clone)]
pub struct Notifier(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: Limits,
    identity: Identity,
    hasher: RandomState,
    sessions: Mutex<Vec<Weak<Session>>>,
    listeners: Mutex<Vec<Weak<Listener>>>,
    clients: Mutex<HashMap<u64, Arc<Mutex<Rate>>>>,
}

impl Notifier {
    /// One with these limits. Clients of requests without a session are told apart by their name and version.
    pub fn new(limits: Limits) -> Self {
        Self::identifying(limits, by_name)
    }

    /// One that tells clients of requests without a session apart by `identity`, such as the user of a token.
    pub fn identifying(limits: Limits, identity: Identity) -> Self {
        let (sessions, listeners, clients) = (Mutex::default(), Mutex::default(), Mutex::default());
        let hasher = RandomState::new();
        Self(Arc::new(Shared { limits, identity, hasher, sessions, listeners, clients }))
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Tells that the resource at `uri` has changed, to those who have subscribed to it or to what contains it.
    pub fn resource_updated(&self, uri: &str) {
        self.changed(Kind::ResourceUpdated, Some(uri));
    }

    /// Tells that the list of resources has changed.
    pub fn resource_list_changed(&self) {
        self.changed(Kind::ResourceListChanged, None);
    }

    /// Tells that the list of tools has changed.
    pub fn tool_list_changed(&self) {
        self.changed(Kind::ToolListChanged, None);
    }

    /// Tells that the list of prompts has changed.
    pub fn prompt_list_changed(&self) {
        self.changed(Kind::PromptListChanged, None);
    }

    fn changed(&self, kind: Kind, uri: Option<&str>) {
        for session in living(&self.0.sessions) {
            session.changed(kind, uri, Asked::Here);
        }
        for listener in living(&self.0.listeners) {
            listener.changed(kind, uri);
        }
    }

    /// Sends what waits for something newer, and waits until it is out, for [`Limits::flush`] at most.
    ///
    /// For the end of a server: whoever stops it calls this first, as long as clients can still hear.
    pub async fn flush(&self) {
        let sessions = living(&self.0.sessions);
        sessions.iter().for_each(Session::release_all);
        let all = async {
            for session in &sessions {
                session.flushed().await;
            }
        };
        if time::timeout(self.limits().flush, all).await.is_err() {
            tracing::debug!(target: crate::TARGET, "some clients did not read before the end");
        }
    }

    /// Goes around `server` for one session.
    pub fn around<S>(&self, server: S) -> Notifying<S> {
        Notifying::sharing(server, self)
    }

    pub(crate) fn admit(&self, session: &Arc<Session>) {
        let sessions = &mut lock(&self.0.sessions);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(Arc::downgrade(session));
    }

    pub(crate) fn admit_listener(&self, listener: &Arc<Listener>) {
        let listeners = &mut lock(&self.0.listeners);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(listener));
    }

    /// The minute of the client of a request without a session.
    pub(crate) fn rate_of(&self, context: &RequestContext<RoleServer>) -> Arc<Mutex<Rate>> {
        let client = self.0.hasher.hash_one((self.0.identity)(context));
        let clients = &mut lock(&self.0.clients);
        if clients.len() >= CLIENTS && !clients.contains_key(&client) {
            let now = now();
            clients.retain(|_, rate| Arc::strong_count(rate) > 1 || lock(rate).is_fresh(now));
            if clients.len() >= CLIENTS {
                return Arc::default();
            }
        }
        Arc::clone(clients.entry(client).or_default())
    }
}

fn living<T>(kept: &Mutex<Vec<Weak<T>>>) -> Vec<Arc<T>> {
    lock(kept).iter().filter_map(Weak::upgrade).collect()
}

fn by_name(context: &RequestContext<RoleServer>) -> String {
    let client = context.client_info();
    client.map(|client| format!("{} {}", client.name, client.version)).unwrap_or_default()
}
