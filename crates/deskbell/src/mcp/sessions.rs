//! The sessions of Streamable HTTP: every message on one stream, nothing lost and nothing twice when a client comes
//! back.
//!
//! rmcp speaks the protocol and asks here for sessions and their streams, through its [`SessionManager`]. It has one
//! of its own, which loses the answer of a call whose client is away, sends the last event twice, and lets one reader
//! hold up its whole session. What is kept here is bounded, and limits have names where they hold. A stream that its
//! client knows is also in a file, so that it outlives the daemon.

mod calls;
mod event_id;
mod failures;
mod folder;
mod reader;
mod restored;
mod service_loop;
mod session;
mod stored;
mod streams;

use std::{
    cell::Cell,
    collections::HashMap,
    error::Error,
    fmt,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock, Weak},
    time::{Duration, SystemTime},
};

use futures_util::Stream;
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_server::{
        RestoreOutcome, SessionId, SessionManager,
        session::{ServerSseMessage, SessionStore},
    },
};
use tokio::time::Instant;
use tracing::{debug, warn};
use uuid::Uuid;

pub(super) use self::{failures::NotResumed, reader::Reader, session::Session};
use self::{folder::Folder, service_loop::ServiceLoop, stored::Stored};

/// How many sessions there are and how long they last.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How many sessions there may be at once. The next one takes the place of the one that has been idle longest;
    /// where none is idle it is refused.
    pub sessions: usize,
    /// How long a session may be idle: without a message of its client, an open call or a stream that is read.
    pub idle: Duration,
    /// How long an answer waits for a client that lost its connection.
    pub answers: Duration,
    /// How often a silent stream says that it is still there.
    pub keep_alive: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 1000,
            // A working day and the night behind it.
            idle: Duration::from_secs(24 * 60 * 60),
            answers: Duration::from_secs(5 * 60),
            keep_alive: Duration::from_secs(15),
        }
    }
}

/// How often sessions are looked at for what is over: this part of the shortest limit, within [`AGING`].
const AGING_PART: u32 = 4;

/// The shortest and the longest time between two looks.
const AGING: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(10)];

/// How often the files of sessions that are there are marked as used.
const TOUCHING: Duration = Duration::from_secs(60 * 60);

/// All sessions.
pub(super) struct Sessions {
    sessions: RwLock<HashMap<SessionId, Arc<Session>>>,
    limits: Limits,
    folder: Option<Arc<Folder>>,
}

/// The session is gone or going.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the session is not there")
    }
}

impl Error for Gone {}

/// Why a request is refused, where rmcp knows no answer of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There are as many sessions as there may be, and none is idle.
    NoRoom,
    /// The session ended while the request was on its way.
    Gone,
    /// The stream cannot be resumed.
    NotResumed(NotResumed),
}

tokio::task_local! {
    /// rmcp makes an empty stream or a plain error of whatever fails here, so the reason goes past it.
    static REFUSAL: Cell<Option<Refusal>>;
}

/// Runs rmcp on one request, and gives its result or why the sessions refused the request.
pub(super) async fn refusable<F: Future>(request: F) -> Result<F::Output, Refusal> {
    REFUSAL
        .scope(Cell::new(None), async {
            let output = request.await;
            REFUSAL.with(Cell::take).map_or(Ok(output), Err)
        })
        .await
}

/// Leaves word why a request is refused.
fn refuse(refusal: Refusal) -> Gone {
    match REFUSAL.try_with(|slot| slot.set(Some(refusal))) {
        // Without one, as for a loop that ends by itself, nobody wants to know.
        Ok(()) | Err(_) => Gone,
    }
}

impl Sessions {
    /// The sessions, which outlive the program in `folder`, where that is given. `now` is the time of the files there.
    pub(super) fn new(limits: Limits, folder: Option<PathBuf>, now: SystemTime) -> Arc<Self> {
        let folder = folder.and_then(|path| {
            let opened = Folder::open(path, now, limits.idle, limits.sessions);
            opened.inspect_err(|error| warn!("sessions end with this process: {error}")).ok()
        });
        Arc::new(Self { sessions: RwLock::default(), limits, folder: folder.map(Arc::new) })
    }

    /// Where rmcp finds the sessions of an earlier process.
    pub(super) fn store(&self) -> Option<Arc<dyn SessionStore>> {
        let folder = self.folder.clone()?;
        Some(folder)
    }

    /// Ends what is idle and forgets what is over, for as long as there are sessions.
    pub(super) async fn age(sessions: Weak<Self>) {
        let mut touched = Instant::now();
        loop {
            let Some(pause) = sessions.upgrade().map(|sessions| sessions.pause()) else { return };
            tokio::time::sleep(pause).await;
            let Some(sessions) = sessions.upgrade() else { return };
            let now = Instant::now();
            for session in sessions.all() {
                if session.age(now, sessions.limits.answers, sessions.limits.idle) {
                    debug!("a session ends, because it was idle");
                }
            }
            if now.duration_since(touched) > TOUCHING {
                touched = now;
                sessions.touch();
            }
        }
    }

    pub(super) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The session with this id, if it is there and does not end.
    pub(super) fn live(&self, id: &str) -> Option<Arc<Session>> {
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        sessions.get(id).filter(|session| !session.is_ending()).cloned()
    }

    fn pause(&self) -> Duration {
        let [shortest, longest] = AGING;
        let limit = self.limits.idle.min(self.limits.answers);
        (limit / AGING_PART).clamp(shortest, longest)
    }

    /// Has the files of the sessions that are there count as used.
    fn touch(&self) {
        if let Some(folder) = &self.folder {
            let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
            folder.touch(sessions.keys().map(|id| &**id));
        }
    }

    fn all(&self) -> Vec<Arc<Session>> {
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        sessions.values().cloned().collect()
    }

    fn find(&self, id: &SessionId) -> Result<Arc<Session>, Gone> {
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        sessions.get(id).cloned().ok_or(Gone)
    }

    /// Puts a session beside the others, in the place of the one that has been idle longest where there is no room.
    fn admit(&self, id: SessionId, stored: Option<Stored>) -> Result<ServiceLoop, Gone> {
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= self.limits.sessions {
            let live = sessions.values().filter(|session| !session.is_ending());
            if live.clone().count() >= self.limits.sessions {
                let idle = live.filter_map(|session| Some((session.idle_since()?, session)));
                let mut idle: Vec<_> = idle.collect();
                idle.sort_unstable_by_key(|(since, _)| *since);
                // One that was idle just now may have been called since.
                if !idle.into_iter().any(|(_, session)| session.make_room()) {
                    return Err(refuse(Refusal::NoRoom));
                }
                debug!("the session that was idle longest makes room");
            }
        }
        let shelf = self.folder.as_ref().and_then(|folder| folder.shelf(&id));
        let (session, inbox) = Session::new(&id, shelf, stored);
        sessions.insert(id, Arc::clone(&session));
        Ok(ServiceLoop::new(session, inbox))
    }
}

impl SessionManager for Sessions {
    type Error = Gone;
    type Transport = ServiceLoop;

    async fn create_session(&self) -> Result<(SessionId, ServiceLoop), Gone> {
        let id: SessionId = Uuid::new_v4().to_string().into();
        Ok((Arc::clone(&id), self.admit(id, None)?))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Gone> {
        self.find(id)?.initialize(message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Gone> {
        let Ok(session) = self.find(id) else { return Ok(false) };
        if session.is_ending() {
            // Its service loop will ask for its end once more, and must not meet another session of the same id.
            session.gone.cancelled().await;
            return Ok(false);
        }
        Ok(true)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Gone> {
        let Ok(session) = self.find(id) else { return Ok(()) };
        session.end();
        self.sessions.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        session.gone.cancel();
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Gone> {
        let session = self.find(id).map_err(|Gone| refuse(Refusal::Gone))?;
        let reader = session.call(message).await.map_err(|Gone| refuse(Refusal::Gone))?;
        Ok(reader.kept().await)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Gone> {
        let session = self.find(id).map_err(|Gone| refuse(Refusal::Gone))?;
        session.accept(message).await.map_err(|Gone| refuse(Refusal::Gone))
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Gone> {
        let session = self.find(id).map_err(|Gone| refuse(Refusal::Gone))?;
        let reader = session.listen().map_err(|Gone| refuse(Refusal::Gone))?;
        Ok(reader.kept().await)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Gone> {
        let session = self.find(id).map_err(|Gone| refuse(Refusal::Gone))?;
        let resumed = session.resume(&last_event_id);
        Ok(resumed.map_err(|reason| refuse(Refusal::NotResumed(reason)))?.kept().await)
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<ServiceLoop>, Gone> {
        let Some(folder) = &self.folder else { return Ok(RestoreOutcome::NotSupported) };
        let Some(stored) = folder.read(&id).await else {
            return Ok(RestoreOutcome::NotSupported);
        };
        if self.live(&id).is_some() {
            return Ok(RestoreOutcome::AlreadyPresent);
        }
        Ok(RestoreOutcome::Restored(self.admit(id, Some(stored))?))
    }
}
