//! One client's session: what it asked for, and what is on its way to it.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use rmcp::{
    RoleServer,
    model::{RequestId, ServerNotification},
    service::Peer,
};
use tokio::{runtime::Handle, sync::Notify, time};

use crate::{
    declared::Declared,
    level::Level,
    limits::Limits,
    outbox::{Call, Entry, Kind, Next, Outbox, Topic},
    wire,
};

/// Most resources that one session may subscribe to.
pub(crate) const SUBSCRIPTIONS: usize = 1_000;

/// One client's session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) limits: Limits,
    state: Mutex<State>,
    /// Rung when something was added.
    added: Notify,
    /// Rung when something has gone out.
    sent: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The least severe level that the client has set.
    level: Option<Level>,
    declared: Declared,
    subscribed: HashSet<String>,
    calls: u64,
    outbox: Outbox<Item>,
    /// Whether a task is there that empties the outbox.
    is_emptied: bool,
    /// The call whose notification is just being sent.
    sending: Option<Call>,
    /// Who may be warned that notifications were dropped.
    warned: Option<Warned>,
}

/// A notification, and who gets it.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) notification: ServerNotification,
    pub(crate) peer: Peer<RoleServer>,
}

/// Who may be warned, and on the stream of which request.
#[derive(Debug, Clone)]
pub(crate) struct Warned {
    pub(crate) peer: Peer<RoleServer>,
    /// The request on whose stream it must be, and its call (2026-07-28 and later).
    pub(crate) request: Option<(u64, RequestId)>,
}

impl Session {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        let state = Mutex::default();
        Arc::new(Self { limits, state, added: Notify::new(), sent: Notify::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The least severe level that the client gets.
    pub(crate) fn level(&self) -> Level {
        self.state().level.unwrap_or(self.limits.level)
    }

    pub(crate) fn set_level(&self, level: Level) {
        self.state().level = Some(level);
    }

    pub(crate) fn declare(&self, declared: Declared) {
        self.state().declared = declared;
    }

    pub(crate) fn takes(&self, kind: Kind) -> bool {
        self.state().declared.takes(kind)
    }

    /// Notes that the client wants to hear of changes of `uri`; false if it has too many already.
    pub(crate) fn subscribe(&self, uri: &str) -> bool {
        let subscribed = &mut self.state().subscribed;
        let is_new = !subscribed.contains(uri);
        if is_new && subscribed.len() >= SUBSCRIPTIONS {
            return false;
        }
        subscribed.insert(uri.to_owned());
        true
    }

    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.state().subscribed.remove(uri);
    }

    /// Whether the client wants to hear of changes of `uri`, or of what contains it.
    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        self.state().subscribed.iter().any(|subscribed| {
            let rest = uri.strip_prefix(subscribed.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// The number of the next call.
    pub(crate) fn next_call(&self) -> u64 {
        let state = &mut self.state();
        state.calls += 1;
        state.calls
    }

    /// Puts a notification on its way by a task of `runtime`. It never waits, and without a runtime nothing is told.
    pub(crate) fn add(
        self: &Arc<Self>,
        topic: Topic,
        is_final: bool,
        item: Item,
        warned: Option<Warned>,
        runtime: Option<&Handle>,
    ) {
        let Some(runtime) = runtime else {
            tracing::debug!(target: crate::TARGET, "told nobody: no runtime of tokio");
            return;
        };
        let needs_task = {
            let state = &mut self.state();
            state.outbox.add(Entry { topic, is_final, item }, &self.limits, now());
            if warned.is_some() {
                state.warned = warned;
            }
            !std::mem::replace(&mut state.is_emptied, true)
        };
        if needs_task {
            runtime.spawn(Arc::clone(self).empty());
        } else {
            self.added.notify_one();
        }
    }

    /// Sends what the outbox says until nothing is left.
    async fn empty(self: Arc<Self>) {
        loop {
            let next = {
                let state = &mut self.state();
                let next = state.outbox.next(&self.limits, now());
                match &next {
                    Next::Send(entry) => state.sending = Some(entry.topic.call),
                    Next::Idle => state.is_emptied = false,
                    Next::Dropped(_) | Next::Wait(_) => {}
                }
                next
            };
            match next {
                Next::Send(Entry { topic, item, .. }) => {
                    let outcome = item.peer.send_notification(item.notification).await;
                    self.state().sending = None;
                    match outcome {
                        Ok(()) => tracing::trace!(target: crate::TARGET,
                            method = topic.kind.method(), "sent"),
                        Err(error) => tracing::debug!(target: crate::TARGET,
                            method = topic.kind.method(), "failed to send: {error}"),
                    }
                    self.sent.notify_waiters();
                }
                Next::Dropped(count) => {
                    let warned = self.state().warned.clone();
                    self.warn(count, warned).await;
                }
                Next::Wait(until) => {
                    // What was dropped instead of sent is no longer waited for either.
                    self.sent.notify_waiters();
                    tokio::select! {
                        () = time::sleep_until(until.into()) => {}
                        () = self.added.notified() => {}
                    }
                }
                Next::Idle => {
                    self.sent.notify_waiters();
                    return;
                }
            }
        }
    }

    /// Tells the client that `count` notifications were dropped.
    async fn warn(&self, count: u64, warned: Option<Warned>) {
        tracing::warn!(target: crate::TARGET, count, "dropped notifications that were too many");
        let Some(Warned { peer, request }) = warned else { return };
        let text = format!("{count} notifications were dropped, because there were too many");
        let data = serde_json::json!({ "dropped": count });
        let request = request.as_ref().map(|(_, request)| request);
        let message = wire::message(Level::Warning, crate::LOGGER, &text, Some(&data), request);
        if let Err(error) = peer.send_notification(message).await {
            tracing::debug!(target: crate::TARGET, "failed to warn of what was dropped: {error}");
        }
    }

    /// Lets what `call` holds back wait no longer.
    pub(crate) fn release(&self, call: u64) {
        self.state().outbox.release(Some(call), &self.limits);
        self.added.notify_one();
    }

    /// Waits until everything of `call` has gone out, for [`Limits::flush`] at most; then nothing of it goes out any more.
    pub(crate) async fn end(&self, call: u64) {
        self.release(call);
        let call = Some(call);
        let all_sent = async {
            loop {
                let sent = self.sent.notified();
                tokio::pin!(sent);
                sent.as_mut().enable();
                {
                    let state = self.state();
                    if state.sending != Some(call) && !state.outbox.has(call) {
                        break;
                    }
                }
                sent.await;
            }
        };
        if time::timeout(self.limits.flush, all_sent).await.is_err() {
            self.close(call);
        }
        let (count, warned) = {
            let state = &mut self.state();
            let is_ours = |warned: &Warned| {
                warned.request.as_ref().is_some_and(|(number, _)| Some(*number) == call)
            };
            match state.warned.take_if(|warned| is_ours(warned)) {
                // On this call's stream it is now or never.
                Some(warned) => (state.outbox.take_dropped(), Some(warned)),
                None => (0, None),
            }
        };
        if count > 0 {
            self.warn(count, warned).await;
        }
    }

    /// Forgets what `call` has not told.
    pub(crate) fn close(&self, call: Call) {
        let forgotten = self.state().outbox.forget(call);
        if forgotten > 0 {
            tracing::debug!(target: crate::TARGET, forgotten,
                "forgot notifications of a call that is over");
        }
    }
}

/// The time now; tests of tokio turn this clock.
fn now() -> Instant {
    time::Instant::now().into_std()
}
