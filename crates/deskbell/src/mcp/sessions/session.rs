//! One session: its client's messages go in, the server's messages come out on their streams.

use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    time::Duration,
};

use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientNotification, ProtocolVersion, RequestId, ServerJsonRpcMessage,
        ServerResult,
    },
    transport::streamable_http_server::{SessionId, session::ServerSseMessage},
};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::{
    Gone,
    calls::{Calls, Route},
    event_id::{EventId, Tag},
    failures::{self, NotResumed},
    folder::Shelf,
    reader::Reader,
    restored::{restore, setting},
    stored::{Record, Stored},
    streams::{Kind, Place, STANDALONE, Streams, Taken},
};

/// How many messages of a client wait until its session takes them; the next request waits in its connection.
pub(super) const INBOX_LIMIT: usize = 128;

/// When a client whose stream broke comes back.
const RETRY: Duration = Duration::from_secs(3);

/// How long a handler waits for a reader before its stream counts as stalled.
const STALLED: Duration = Duration::from_secs(5);

/// How long a session may last whose client never said that it is initialized: its answer was lost.
const HANDSHAKE: Duration = Duration::from_secs(5 * 60);

/// One session.
pub(in crate::mcp) struct Session {
    tag: Tag,
    shelf: Option<Shelf>,
    state: Mutex<State>,
    /// Handlers that were held up may go on.
    relieved: Notify,
    /// Cancelled when the session is no longer among the sessions.
    pub(super) gone: CancellationToken,
}

struct State {
    streams: Streams<Arc<ServerJsonRpcMessage>>,
    calls: Calls,
    /// Where the client's messages go; `None` when the session ends.
    inbox: Option<mpsc::Sender<ClientJsonRpcMessage>>,
    opening: Option<Opening>,
    /// Whether the client knows events without a message, which came with revision 2025-11-25.
    is_primed: bool,
    /// Whether the server said that it sends log messages.
    has_logging: bool,
    readers: usize,
    /// When its client was last heard or answered.
    seen: Instant,
    /// Whether the client said anything behind its `initialize`.
    is_greeted: bool,
    /// The streams that are stored.
    kept: HashSet<u64>,
    /// What open calls set, by their streams. It is stored once the call has succeeded.
    unanswered: HashMap<u64, Record<Arc<ServerJsonRpcMessage>>>,
    /// What its client set before the program was started again; its handlers hear it behind the handshake.
    settings: Vec<ClientJsonRpcMessage>,
}

/// The handshake, whose answer goes on no stream.
struct Opening {
    id: RequestId,
    answer: oneshot::Sender<ServerJsonRpcMessage>,
}

/// A place in a session's inbox.
type Room = mpsc::OwnedPermit<ClientJsonRpcMessage>;

impl Session {
    /// A session, and the far end of its inbox.
    ///
    /// It is stored on `shelf`, if that is given, and goes on where `stored` ended.
    pub(super) fn new(
        id: &SessionId,
        shelf: Option<Shelf>,
        stored: Option<Stored>,
    ) -> (Arc<Self>, mpsc::Receiver<ClientJsonRpcMessage>) {
        let (inbox, messages) = mpsc::channel(INBOX_LIMIT);
        let is_greeted = stored.is_some();
        let (streams, settings) = stored.map_or_else(|| (Streams::new(), Vec::new()), restore);
        let session = Self {
            tag: Tag::of(id),
            shelf,
            state: Mutex::new(State {
                streams,
                settings,
                unanswered: HashMap::new(),
                kept: HashSet::new(),
                calls: Calls::default(),
                inbox: Some(inbox),
                opening: None,
                is_primed: false,
                has_logging: false,
                readers: 0,
                seen: Instant::now(),
                is_greeted,
            }),
            relieved: Notify::new(),
            gone: CancellationToken::new(),
        };
        (Arc::new(session), messages)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over the `initialize` request and waits for its answer.
    pub(super) async fn initialize(
        &self,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Gone> {
        let ClientJsonRpcMessage::Request(request) = &message else { return Err(Gone) };
        let (answer, answered) = oneshot::channel();
        let opening = Opening { id: request.id.clone(), answer };
        let room = self.room().await?;
        {
            let mut state = self.lock();
            state.check_open()?;
            state.opening = Some(opening);
            room.send(message);
        }
        answered.await.map_err(|_closed| Gone)
    }

    /// Opens the stream of a call and hands the call over.
    pub(in crate::mcp) async fn call(
        self: &Arc<Self>,
        mut message: ClientJsonRpcMessage,
    ) -> Result<Reader, Gone> {
        let ClientJsonRpcMessage::Request(request) = &mut message else { return Err(Gone) };
        let id = request.id.clone();
        failures::watch(Arc::downgrade(self), request);
        let setting = setting(&request.request);
        let room = self.room().await?;
        // Nothing waits from here on: the client may vanish, and its call is either handed over or not at all.
        let now = Instant::now();
        let mut state = self.lock();
        // The session may have ended while this waited; then the call would run and nobody would hear its answer.
        state.check_open()?;
        state.heard(now);
        let stream = state.streams.open();
        match state.calls.check(&id) {
            Ok(()) => {
                state.calls.open(&message, stream);
                room.send(message);
                state.unanswered.extend(setting.map(|setting| (stream, setting)));
            }
            Err(refused) => {
                let error = ServerJsonRpcMessage::error(refused.into(), Some(id.clone()));
                state.streams.append(stream, Arc::new(error), Kind::Answer, now);
            }
        }
        let (place, _) = state.streams.read(stream).ok_or(Gone)?;
        state.readers += 1;
        let primes = state.is_primed.then_some(0);
        drop(state);
        Ok(Reader::new(Arc::clone(self), place, primes, Some(id)))
    }

    /// Stores a stream, from whose events its client may resume from now on. `request` is the call that it belongs to.
    pub(super) async fn keep(&self, stream: u64, request: Option<RequestId>) {
        let Some(shelf) = &self.shelf else { return };
        {
            let mut state = self.lock();
            if state.kept.insert(stream) {
                self.put(request.map(|request| Record::Open { stream, request }));
                for (number, kind, message) in state.streams.messages(stream) {
                    let (number, kind, message) = (*number, *kind, Arc::clone(message));
                    self.put(Some(Record::Message { stream, number, kind, message }));
                }
                if !state.streams.is_open(stream) {
                    state.kept.remove(&stream);
                }
            }
        }
        // The client must not know of a stream that is forgotten when the program is killed.
        shelf.written().await;
    }

    /// Takes a notification of the client, or its answer to a question of the server.
    pub(super) async fn accept(&self, message: ClientJsonRpcMessage) -> Result<(), Gone> {
        let room = self.room().await?;
        let mut state = self.lock();
        state.check_open()?;
        state.heard(Instant::now());
        let mut woken = None;
        match &message {
            ClientJsonRpcMessage::Response(response) => state.calls.answered(&response.id),
            ClientJsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    state.calls.answered(id);
                }
            }
            ClientJsonRpcMessage::Notification(notification) => {
                // rmcp drops the answer of a call that was cancelled, so nothing else would end its stream.
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    let cut = state.calls.end(id);
                    if let Some(stream) = cut {
                        state.unanswered.remove(&stream);
                        woken = state.streams.cut(stream, Instant::now());
                        self.put(state.kept.remove(&stream).then_some(Record::Cut { stream }));
                    }
                }
            }
            ClientJsonRpcMessage::Request(_) => {}
        }
        room.send(message);
        for setting in mem::take(&mut state.settings) {
            // There is room for all of them, since nothing else came in before.
            let inbox = state.inbox.as_ref();
            if inbox.is_none_or(|inbox| inbox.try_send(setting).is_err()) {
                debug!("a setting of a restored session was lost");
            }
        }
        drop(state);
        wake(woken);
        Ok(())
    }

    /// Begins to read what belongs to no call.
    pub(super) fn listen(self: &Arc<Self>) -> Result<Reader, Gone> {
        let mut state = self.lock();
        state.check_open()?;
        state.heard(Instant::now());
        let seen = state.streams.taken(STANDALONE);
        let (place, ousted) = state.streams.read(STANDALONE).ok_or(Gone)?;
        state.readers += 1;
        let primes = state.is_primed.then_some(seen);
        drop(state);
        wake(ousted);
        Ok(Reader::new(Arc::clone(self), place, primes, None))
    }

    /// Reads a stream on behind the event that a client saw last.
    pub(super) fn resume(self: &Arc<Self>, last_event_id: &str) -> Result<Reader, NotResumed> {
        let EventId { tag, stream, number } =
            EventId::parse(last_event_id).ok_or(NotResumed::NoId)?;
        if tag != self.tag {
            return Err(NotResumed::OtherSession);
        }
        let mut state = self.lock();
        let (place, ousted) = state.streams.resume(stream, number)?;
        state.heard(Instant::now());
        state.readers += 1;
        drop(state);
        wake(ousted);
        Ok(Reader::new(Arc::clone(self), place, None, None))
    }

    /// Puts a message of the server on its stream. `Some` names a stream whose reader should be waited for.
    ///
    /// Nothing here waits, so the order of the messages is that of the service loop.
    pub(super) fn append(&self, message: ServerJsonRpcMessage) -> Option<u64> {
        let now = Instant::now();
        let mut state = self.lock();
        if let Some(opening) = state.opening.take_if(|opening| opening.is_answered_by(&message)) {
            state.learn(&message);
            drop(opening.answer.send(message));
            return None;
        }
        let Some(Route { stream, kind }) = state.calls.route(&message) else {
            debug!("dropped a message of a call that has ended");
            return None;
        };
        let message = Arc::new(message);
        if kind == Kind::Answer {
            let setting = state.unanswered.remove(&stream);
            self.put(setting.filter(|_| matches!(*message, ServerJsonRpcMessage::Response(_))));
        }
        let woken = state.streams.append(stream, Arc::clone(&message), kind, now);
        if state.kept.contains(&stream) {
            let number = state.streams.newest(stream);
            self.put(Some(Record::Message { stream, number, kind, message }));
            if kind == Kind::Answer {
                state.kept.remove(&stream);
            }
        }
        if kind == Kind::Answer {
            state.seen = now;
        }
        let waits = kind != Kind::Answer && state.streams.holds_up(stream);
        self.unlock(state);
        wake(woken);
        waits.then_some(stream)
    }

    /// Waits until the reader of a stream has caught up, or is gone, or has stalled for too long.
    pub(super) async fn wait_for_reader(&self, stream: u64) {
        let deadline = Instant::now() + STALLED;
        loop {
            let relieved = self.relieved.notified();
            tokio::pin!(relieved);
            // Before looking, so that a relief in between is not missed.
            relieved.as_mut().enable();
            if !self.lock().streams.holds_up(stream) {
                return;
            }
            if timeout_at(deadline, relieved).await.is_err() {
                self.lock().streams.stalls(stream);
                self.relieved.notify_waiters();
                return;
            }
        }
    }

    /// What the reader at `place` gets next.
    pub(super) fn poll(&self, place: &mut Place, waker: &Waker) -> Poll<Option<ServerSseMessage>> {
        let mut state = self.lock();
        let polled = loop {
            match state.streams.take(place, waker) {
                Taken::Message(number, message) => {
                    break Poll::Ready(Some(self.event(place.stream(), number, Some(message))));
                }
                Taken::Dropped { number, count } if state.has_logging => {
                    let message = Some(Arc::new(failures::loss(count)));
                    break Poll::Ready(Some(self.event(place.stream(), number, message)));
                }
                Taken::Dropped { .. } => {}
                Taken::Nothing => break Poll::Pending,
                Taken::End => break Poll::Ready(None),
            }
        };
        self.unlock(state);
        polled
    }

    /// The answer of a call, once it is there, if it is all that the call's stream has; the stream is then forgotten.
    pub(super) fn poll_sole_answer(
        &self,
        place: &Place,
        waker: &Waker,
    ) -> Poll<Option<Arc<ServerJsonRpcMessage>>> {
        self.lock().streams.take_sole_answer(place, waker)
    }

    /// The event before all others, from whose id on its client can resume.
    pub(super) fn priming(&self, stream: u64, number: u64) -> ServerSseMessage {
        let mut event = self.event(stream, number, None);
        event.retry = Some(RETRY);
        event
    }

    fn event(
        &self,
        stream: u64,
        number: u64,
        message: Option<Arc<ServerJsonRpcMessage>>,
    ) -> ServerSseMessage {
        let id = EventId { tag: self.tag, stream, number };
        let mut event = ServerSseMessage::default();
        (event.event_id, event.message) = (Some(id.to_string()), message);
        event
    }

    /// Takes note that a reader is gone. Its call goes on.
    pub(super) fn leave(&self, place: &Place) {
        let mut state = self.lock();
        state.streams.leave(place);
        state.readers = state.readers.saturating_sub(1);
        state.seen = Instant::now();
        self.unlock(state);
    }

    /// Since when the session has been of no use to anybody; `None` while a call is open or a stream is read.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        self.lock().idle_since()
    }

    /// Does what time asks for: forgets what ended longer ago than `kept`, and the session itself if it has been idle
    /// for longer than `idle`: then this is true.
    pub(super) fn age(&self, now: Instant, kept: Duration, idle: Duration) -> bool {
        let mut state = self.lock();
        state.streams.forget(now, kept);
        let limit = if state.is_greeted { idle } else { idle.min(HANDSHAKE) };
        self.forget_if_idle(state, |since| now.duration_since(since) > limit)
    }

    /// Ends the session if it is still idle, and nothing of it is stored any longer. False if it is in use.
    pub(super) fn make_room(&self) -> bool {
        self.forget_if_idle(self.lock(), |_| true)
    }

    /// Looks and ends under one lock, so that no call comes in between.
    fn forget_if_idle(
        &self,
        state: MutexGuard<'_, State>,
        is_over: impl FnOnce(Instant) -> bool,
    ) -> bool {
        if !state.idle_since().is_some_and(is_over) {
            return false;
        }
        self.end_now(state);
        if let Some(shelf) = &self.shelf {
            shelf.delete();
        }
        true
    }

    /// Whether it takes no more messages.
    pub(super) fn is_ending(&self) -> bool {
        self.lock().inbox.is_none()
    }

    /// Ends the session: its streams end now, its service loop when its handlers have.
    pub(super) fn end(&self) {
        self.end_now(self.lock());
    }

    fn end_now(&self, mut state: MutexGuard<'_, State>) {
        state.inbox = None;
        state.opening = None;
        let readers = state.streams.close();
        self.unlock(state);
        readers.into_iter().for_each(Waker::wake);
    }

    /// Waits for a place in the inbox.
    async fn room(&self) -> Result<Room, Gone> {
        let inbox = self.lock().inbox.clone().ok_or(Gone)?;
        inbox.reserve_owned().await.map_err(|_closed| Gone)
    }

    /// Stores what happened, where sessions are stored.
    fn put(&self, record: Option<Record<Arc<ServerJsonRpcMessage>>>) {
        if let (Some(shelf), Some(record)) = (&self.shelf, record) {
            shelf.put(record);
        }
    }

    /// Gives up the lock, and lets handlers go on whose reader has caught up.
    fn unlock(&self, mut state: MutexGuard<'_, State>) {
        let relieved = state.streams.relieved();
        drop(state);
        if relieved {
            self.relieved.notify_waiters();
        }
    }
}

impl State {
    fn check_open(&self) -> Result<(), Gone> {
        if self.inbox.is_some() { Ok(()) } else { Err(Gone) }
    }

    fn idle_since(&self) -> Option<Instant> {
        let is_idle = self.inbox.is_some() && self.calls.count() == 0 && self.readers == 0;
        is_idle.then_some(self.seen)
    }

    fn heard(&mut self, now: Instant) {
        (self.seen, self.is_greeted) = (now, true);
    }

    /// Takes from the answer to `initialize` what was agreed.
    fn learn(&mut self, message: &ServerJsonRpcMessage) {
        if let ServerJsonRpcMessage::Response(response) = message
            && let ServerResult::InitializeResult(result) = &response.result
        {
            let version = result.protocol_version.as_str();
            self.is_primed = version >= ProtocolVersion::V_2025_11_25.as_str();
            self.has_logging = result.capabilities.logging.is_some();
        }
    }
}

impl Opening {
    fn is_answered_by(&self, message: &ServerJsonRpcMessage) -> bool {
        match message {
            ServerJsonRpcMessage::Response(response) => response.id == self.id,
            ServerJsonRpcMessage::Error(error) => error.id.as_ref() == Some(&self.id),
            _ => false,
        }
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests;
