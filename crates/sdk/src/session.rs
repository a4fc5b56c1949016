//! One client's session: what it asked for, and what is on its way to it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
    time::Instant,
};

use rmcp::{
    RoleServer,
    model::{RequestId, ServerNotification},
    service::Peer,
};
use serde_json::Value;
use tokio::{runtime::Handle, sync::Notify, time};

use crate::{
    declared::Declared,
    level::Level,
    lock,
    notifier::Notifier,
    outbox::{Call, Entry, Kind, Next, Outbox, Topic, Word},
    rate::{Rate, Warning},
    subscriptions::{Broadcast, Subscriptions},
    wire,
};

/// One client's session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) notifier: Notifier,
    state: Mutex<State>,
    /// Shared with other sessions of the same client where each request is a session.
    rate: OnceLock<Arc<Mutex<Rate>>>,
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
    subscriptions: Subscriptions,
    /// How the client is reached beside its calls, once it has shaken hands (2025-11-25 and before).
    client: Option<Reached>,
    /// The calls that have no answer.
    calls: HashMap<u64, Shown>,
    counted: u64,
    outbox: Outbox<Item>,
    /// The task that empties the outbox, if one does.
    emptying: Option<u64>,
    /// The call whose notification is just being sent.
    sending: Option<Call>,
}

/// How a client is reached beside its calls.
#[derive(Debug, Clone)]
struct Reached {
    peer: Peer<RoleServer>,
    runtime: Option<Handle>,
}

/// What the caller has been shown of a call's progress.
#[derive(Debug, Default, Clone, Copy)]
struct Shown {
    /// The last value that the tool gave.
    given: Option<f64>,
    /// The last value that went out.
    sent: Option<f64>,
    /// Whether the tool has ended and only what it told before goes out.
    is_over: bool,
}

/// A notification, and who gets it.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) notification: ServerNotification,
    pub(crate) peer: Peer<RoleServer>,
    /// The value of a progress.
    pub(crate) value: Option<f64>,
}

/// Who may be warned, and on the stream of which request.
#[derive(Debug, Clone)]
pub(crate) struct Warned {
    pub(crate) peer: Peer<RoleServer>,
    /// The request on whose stream it must be (2026-07-28 and later).
    pub(crate) request: Option<RequestId>,
}

impl Session {
    pub(crate) fn new(notifier: Notifier) -> Arc<Self> {
        let (state, rate) = (Mutex::default(), OnceLock::new());
        Arc::new(Self { notifier, state, rate, added: Notify::new(), sent: Notify::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn rate(&self) -> MutexGuard<'_, Rate> {
        lock(self.rate.get_or_init(Arc::default))
    }

    /// Takes `rate` for the session's own, unless it has one.
    pub(crate) fn share_rate(&self, rate: impl FnOnce() -> Arc<Mutex<Rate>>) {
        self.rate.get_or_init(rate);
    }

    /// The least severe level that the client gets.
    pub(crate) fn level(&self) -> Level {
        self.state().least(&self.notifier)
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

    /// Notes how the client is reached beside its calls; true for the first time.
    pub(crate) fn meet(&self, peer: &Peer<RoleServer>) -> bool {
        let client = &mut self.state().client;
        let is_new = client.is_none();
        if is_new {
            *client = Some(Reached { peer: peer.clone(), runtime: Handle::try_current().ok() });
        }
        is_new
    }

    /// Works with what the client has subscribed to.
    pub(crate) fn subscriptions<T>(&self, work: impl FnOnce(&mut Subscriptions) -> T) -> T {
        work(&mut self.state().subscriptions)
    }

    /// Carries out `notifications/subscribe`.
    pub(crate) fn subscribe(
        &self,
        params: Option<&Value>,
    ) -> Result<Value, crate::subscriptions::Refused> {
        let state = &mut *self.state();
        state.subscriptions.subscribe(params, &state.declared, wire::seconds(wire::now()))
    }

    /// Opens a call, and gives its number.
    pub(crate) fn open(&self) -> u64 {
        let state = &mut *self.state();
        state.counted += 1;
        state.calls.insert(state.counted, Shown::default());
        state.counted
    }

    pub(crate) fn is_open(&self, call: u64) -> bool {
        self.state().calls.get(&call).is_some_and(|shown| !shown.is_over)
    }

    /// How far the progress of `call` has come.
    pub(crate) fn progress_of(&self, call: u64) -> f64 {
        let shown = self.state().calls.get(&call).copied().unwrap_or_default();
        shown.given.unwrap_or_default()
    }

    /// Tells something of `call`, as long as the call is open.
    pub(crate) fn tell(
        self: &Arc<Self>,
        call: u64,
        word: Word,
        item: Item,
        runtime: Option<&Handle>,
    ) {
        self.put(runtime, |state| {
            if state.calls.get(&call).is_none_or(|shown| shown.is_over) {
                tracing::debug!(target: crate::TARGET, "not told: the call has its answer");
                return None;
            }
            let topic = Topic { call: Some(call), kind: Kind::Message, about: None };
            Some(Entry { topic, word, item })
        });
    }

    /// Shows progress of `call` where it goes forward. The last word of it takes the place of what has not gone out.
    pub(crate) fn show(
        self: &Arc<Self>,
        call: u64,
        word: Word,
        value: f64,
        runtime: Option<&Handle>,
        item: impl FnOnce(f64) -> Item,
    ) {
        self.put(runtime, |state| {
            let shown = state.calls.get_mut(&call).filter(|shown| !shown.is_over);
            let Some(shown) = shown else {
                tracing::debug!(target: crate::TARGET, "not shown: the call has its answer");
                return None;
            };
            let (value, before) = match word {
                Word::Passing => (value, shown.given),
                Word::Last => (shown.given.map_or(value, |given| given.max(value)), shown.sent),
            };
            if before.is_some_and(|before| value <= before) {
                tracing::debug!(target: crate::TARGET, value, before,
                    "not shown: progress does not go forward");
                return None;
            }
            shown.given = Some(value);
            let topic = Topic { call: Some(call), kind: Kind::Progress, about: None };
            Some(Entry { topic, word, item: item(value) })
        });
    }

    /// Tells the client that something has changed, if it wants to hear of it.
    pub(crate) fn changed(self: &Arc<Self>, kind: Kind, uri: Option<&str>, subscribed: Asked) {
        let Some(Reached { peer, runtime }) = self.state().client.clone() else { return };
        self.put(runtime.as_ref(), |state| {
            let is_followed = match (uri, subscribed) {
                (Some(uri), Asked::Here) => state.subscriptions.follows(uri),
                (Some(_), Asked::Elsewhere) | (None, _) => true,
            };
            let broadcast = Broadcast::change(kind, uri);
            let is_wanted = state.declared.takes(kind) && state.subscriptions.want(broadcast);
            if !is_followed || !is_wanted {
                tracing::debug!(target: crate::TARGET, method = kind.method(),
                    "not told: the client has not asked for it");
                return None;
            }
            let notification = wire::changed(kind, uri);
            let topic = Topic { call: None, kind, about: uri.map(str::to_owned) };
            let item = Item { notification, peer, value: None };
            Some(Entry { topic, word: Word::Passing, item })
        });
    }

    /// Tells the client a message that belongs to no call.
    pub(crate) fn message(
        self: &Arc<Self>,
        level: Level,
        event_type: Option<&str>,
        message: ServerNotification,
    ) {
        let Some(Reached { peer, runtime }) = self.state().client.clone() else { return };
        self.put(runtime.as_ref(), |state| {
            let broadcast =
                Broadcast { kind: Kind::Message, uri: None, level: Some(level), event_type };
            let is_heard = level >= state.least(&self.notifier)
                && state.declared.takes(Kind::Message)
                && state.subscriptions.want(broadcast);
            is_heard.then(|| Entry {
                topic: Topic { call: None, kind: Kind::Message, about: None },
                word: Word::Passing,
                item: Item { notification: message, peer, value: None },
            })
        });
    }

    /// Puts what `fill` gives on its way by a task of `runtime`. It never waits, and without a runtime nothing is told.
    fn put(
        self: &Arc<Self>,
        runtime: Option<&Handle>,
        fill: impl FnOnce(&mut State) -> Option<Entry<Item>>,
    ) {
        let Some(runtime) = runtime else {
            tracing::debug!(target: crate::TARGET, "told nobody: no runtime of tokio");
            return;
        };
        {
            let state = &mut *self.state();
            let Some(entry) = fill(state) else { return };
            state.outbox.add(entry, &mut self.rate(), self.limits(), now());
        }
        self.empty_on(runtime);
    }

    fn limits(&self) -> &crate::limits::Limits {
        self.notifier.limits()
    }

    /// Sees to it that a task empties the outbox.
    fn empty_on(self: &Arc<Self>, runtime: &Handle) {
        let number = {
            let state = &mut *self.state();
            if state.emptying.is_some() {
                None
            } else {
                state.counted += 1;
                state.emptying = Some(state.counted);
                state.emptying
            }
        };
        match number {
            Some(number) => {
                drop(runtime.spawn(Emptying { session: Arc::clone(self), number }.run()));
            }
            None => self.added.notify_one(),
        }
    }

    /// What to do now.
    fn next(&self) -> Next<Item> {
        let state = &mut *self.state();
        let (rate, limits, now) = (&mut *self.rate(), self.limits(), now());
        let mut next = state.outbox.next(rate, limits, now);
        let hears_warnings = state.client.is_some()
            && state.least(&self.notifier) <= Level::Warning
            && state.declared.takes(Kind::Message);
        if hears_warnings && let Next::Wait(_) | Next::Idle = next {
            next = match (rate.warning(limits, now), next) {
                (Warning::Due(count), _) => Next::Warn(count),
                (Warning::At(time), Next::Wait(until)) => Next::Wait(time.min(until)),
                (Warning::At(time), _) => Next::Wait(time),
                (Warning::None, next) => next,
            };
        }
        match &next {
            Next::Send(Entry { topic, item, .. }) => {
                state.sending = Some(topic.call);
                let shown = topic.call.and_then(|call| state.calls.get_mut(&call));
                if let (Some(shown), Some(value)) = (shown, item.value) {
                    shown.sent = Some(value);
                }
            }
            Next::Idle => state.emptying = None,
            Next::Warn(_) | Next::Wait(_) => {}
        }
        next
    }

    async fn send(&self, Entry { topic, item, .. }: Entry<Item>) {
        let (method, peer) = (topic.kind.method(), item.peer);
        let outcome = peer.send_notification(item.notification).await;
        let state = &mut *self.state();
        state.sending = None;
        match outcome {
            Ok(()) => tracing::trace!(target: crate::TARGET, method, "sent"),
            Err(error) => {
                tracing::debug!(target: crate::TARGET, method, "failed to send: {error}");
                if peer.is_transport_closed() {
                    state.outbox.clear();
                    (state.client, state.subscriptions) = (None, Subscriptions::default());
                }
            }
        }
        self.sent.notify_waiters();
    }

    /// Tells the client that `count` notifications were dropped.
    async fn warn(&self, count: u64, Warned { peer, request }: Warned) {
        tracing::warn!(target: crate::TARGET, count, "dropped notifications that were too many");
        let text = format!("{count} notifications were dropped, because there were too many");
        let data = serde_json::json!({ "dropped": count });
        let message =
            wire::message(Level::Warning, crate::LOGGER, &text, Some(&data), request.as_ref());
        if let Err(error) = peer.send_notification(message).await {
            tracing::debug!(target: crate::TARGET, "failed to warn of what was dropped: {error}");
        }
    }

    async fn warn_beside_calls(&self, count: u64) {
        let client = self.state().client.clone();
        if let Some(Reached { peer, .. }) = client {
            self.warn(count, Warned { peer, request: None }).await;
        }
    }

    /// Lets what `call` holds back wait no longer.
    pub(crate) fn release(&self, call: u64) {
        let is_its = |of: Call| of == Some(call);
        self.state().outbox.release(is_its, &mut self.rate(), self.limits());
        self.added.notify_one();
    }

    /// Closes `call` and waits until all of it has gone out, and the warning of what was dropped if `warned` is
    /// somebody, for [`Limits::flush`](crate::Limits::flush) at most. Tells whether progress was shown.
    pub(crate) async fn end(self: &Arc<Self>, call: u64, warned: Option<Warned>) -> bool {
        if let Some(shown) = self.state().calls.get_mut(&call) {
            shown.is_over = true;
        }
        self.release(call);
        self.revive();
        let all_told = async {
            self.all_sent(|state| {
                state.sending == Some(Some(call)) || state.outbox.has(Some(call))
            })
            .await;
            let Some(warned) = warned else { return };
            let due = self.rate().last_warning(self.limits(), now());
            if let Some(count) = due {
                self.warn(count, warned).await;
            }
        };
        let is_late = time::timeout(self.limits().flush, all_told).await.is_err();
        let state = &mut *self.state();
        if is_late {
            let forgotten = state.outbox.forget(Some(call));
            self.rate().count_dropped(forgotten);
            tracing::debug!(target: crate::TARGET, forgotten, "the client did not read in time");
        }
        state.calls.remove(&call).is_some_and(|shown| shown.sent.is_some())
    }

    /// Forgets `call` and what it has not told.
    pub(crate) fn close(&self, call: u64) {
        let state = &mut *self.state();
        state.calls.remove(&call);
        let forgotten = state.outbox.forget(Some(call));
        if forgotten > 0 {
            tracing::debug!(target: crate::TARGET, forgotten,
                "forgot notifications of a call that is over");
        }
    }

    /// Lets nothing wait any longer.
    pub(crate) fn release_all(self: &Arc<Self>) {
        self.state().outbox.release(|_| true, &mut self.rate(), self.limits());
        self.added.notify_one();
        self.revive();
    }

    /// Waits until everything that has room has gone out.
    pub(crate) async fn flushed(&self) {
        self.all_sent(|state| state.sending.is_some() || !state.outbox.is_empty()).await;
    }

    /// Waits while `is_waiting`.
    async fn all_sent(&self, is_waiting: impl Fn(&State) -> bool) {
        loop {
            let sent = self.sent.notified();
            tokio::pin!(sent);
            sent.as_mut().enable();
            if !is_waiting(&self.state()) {
                return;
            }
            sent.await;
        }
    }

    /// Empties the outbox here, if the runtime of its task has ended before it was empty.
    fn revive(self: &Arc<Self>) {
        let is_left = {
            let state = self.state();
            state.emptying.is_none() && !state.outbox.is_empty()
        };
        if let (true, Ok(runtime)) = (is_left, Handle::try_current()) {
            self.empty_on(&runtime);
        }
    }
}

/// Where it is known whether the client has asked to hear of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// In the session's own subscriptions.
    Here,
    /// At whoever tells: it has asked.
    Elsewhere,
}

impl State {
    fn least(&self, notifier: &Notifier) -> Level {
        self.level.unwrap_or(notifier.limits().level)
    }
}

/// The task that empties an outbox. It may be dropped at any time, with its runtime; the next one goes on then.
struct Emptying {
    session: Arc<Session>,
    number: u64,
}

impl Emptying {
    async fn run(self) {
        let session = &self.session;
        loop {
            match session.next() {
                Next::Send(entry) => session.send(entry).await,
                Next::Warn(count) => session.warn_beside_calls(count).await,
                Next::Wait(until) => {
                    // What was dropped instead of sent is no longer waited for either.
                    session.sent.notify_waiters();
                    tokio::select! {
                        () = time::sleep_until(until.into()) => {}
                        () = session.added.notified() => {}
                    }
                }
                Next::Idle => {
                    session.sent.notify_waiters();
                    return;
                }
            }
        }
    }
}

impl Drop for Emptying {
    fn drop(&mut self) {
        let state = &mut *self.session.state();
        if state.emptying == Some(self.number) {
            (state.emptying, state.sending) = (None, None);
        }
    }
}

/// The time now; tests of tokio turn this clock.
pub(crate) fn now() -> Instant {
    time::Instant::now().into_std()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn a_runtime_that_ends_in_the_middle_leaves_the_outbox_to_the_next() {
        let session = Session::new(Notifier::new(Limits::default()));
        let gone = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let handle = gone.handle().clone();
        // Never runs, as after the end of its runtime.
        session.empty_on(&handle);
        assert!(session.state().emptying.is_some());
        drop(gone);
        assert_eq!(session.state().emptying, None);
        session.empty_on(&handle);
        assert_eq!(session.state().emptying, None);
    }

    #[test]
    fn only_a_newer_task_is_left_alone() {
        let session = Session::new(Notifier::new(Limits::default()));
        session.state().emptying = Some(7);
        drop(Emptying { session: Arc::clone(&session), number: 6 });
        assert_eq!(session.state().emptying, Some(7));
    }
}
