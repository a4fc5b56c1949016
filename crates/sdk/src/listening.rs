//! `subscriptions/listen` (2026-07-28 and later), for servers that do not answer it themselves.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use rmcp::{
    model::SubscriptionFilter,
    service::{SubscriptionContext, SubscriptionSendError, SubscriptionSink},
};
use tokio::{sync::Notify, time};

use crate::{
    lock,
    notifier::Notifier,
    outbox::Kind,
    rate::Rate,
    session::now,
    subscriptions::{ADDRESS_LIMIT, SUBSCRIPTIONS, contains},
};

/// One stream of changes.
#[derive(Debug)]
pub(crate) struct Listener {
    accepted: SubscriptionFilter,
    /// What has changed and was not told: the kind, and of a resource the address that was subscribed to.
    changed: Mutex<BTreeSet<(Kind, String)>>,
    rung: Notify,
}

impl Listener {
    /// Notes that something has changed. What is noted is bounded by what was subscribed to.
    pub(crate) fn changed(&self, kind: Kind, uri: Option<&str>) {
        let uris = self.accepted.resource_subscriptions.iter().flatten();
        let is_accepted = |flag: Option<bool>| flag == Some(true);
        let about: Vec<_> = match (kind, uri) {
            (Kind::ResourceUpdated, Some(uri)) => {
                uris.filter(|subscribed| contains(subscribed, uri)).cloned().collect()
            }
            (Kind::ToolListChanged, _) if is_accepted(self.accepted.tools_list_changed) => {
                vec![String::new()]
            }
            (Kind::PromptListChanged, _) if is_accepted(self.accepted.prompts_list_changed) => {
                vec![String::new()]
            }
            (Kind::ResourceListChanged, _) if is_accepted(self.accepted.resources_list_changed) => {
                vec![String::new()]
            }
            _ => return,
        };
        lock(&self.changed).extend(about.into_iter().map(|about| (kind, about)));
        self.rung.notify_one();
    }

    /// Tells what has changed, until the client is gone.
    async fn tell(&self, sink: &SubscriptionSink, notifier: &Notifier, rate: &Mutex<Rate>) {
        let limits = notifier.limits();
        loop {
            self.rung.notified().await;
            time::sleep(limits.debounce.resource_updated).await;
            while let Some((kind, uri)) = self.take() {
                while !lock(rate).take(limits, now()) {
                    let room = lock(rate).room_at(limits, now()).unwrap_or_else(now);
                    time::sleep_until(room.into()).await;
                }
                if send(sink, kind, uri).await.is_err() {
                    return;
                }
            }
        }
    }

    fn take(&self) -> Option<(Kind, String)> {
        lock(&self.changed).pop_first()
    }
}

async fn send(
    sink: &SubscriptionSink,
    kind: Kind,
    uri: String,
) -> Result<(), SubscriptionSendError> {
    match kind {
        Kind::ToolListChanged => sink.notify_tool_list_changed().await,
        Kind::PromptListChanged => sink.notify_prompt_list_changed().await,
        Kind::ResourceListChanged => sink.notify_resource_list_changed().await,
        Kind::ResourceUpdated => sink.notify_resource_updated(uri).await,
        Kind::Message | Kind::Progress => Ok(()),
    }
}

/// Everything that is asked for: rmcp leaves out what the server's capabilities do not declare.
pub(crate) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = requested.clone();
    if let Some(uris) = &mut accepted.resource_subscriptions {
        uris.retain(|uri| uri.len() <= ADDRESS_LIMIT);
        uris.truncate(SUBSCRIPTIONS);
    }
    accepted
}

/// Answers one `subscriptions/listen` with the changes that `notifier` hears of, until it is cancelled.
pub(crate) async fn listen(notifier: &Notifier, context: &SubscriptionContext) {
    let listener = Arc::new(Listener {
        accepted: context.accepted().clone(),
        changed: Mutex::default(),
        rung: Notify::new(),
    });
    notifier.admit_listener(&listener);
    let rate = notifier.rate_of(context.request_context());
    tokio::select! {
        () = context.cancelled() => {}
        () = listener.tell(context.sink(), notifier, &rate) => {}
    }
}
