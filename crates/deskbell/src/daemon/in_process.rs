//! The daemon inside `deskbell mcp --in-process`, for a sandbox that allows no second process.
//!
//! A daemon that runs already is used like any other client uses it. Where none runs, this process becomes the daemon
//! for as long as its client stays: it holds the lock and the local socket, so that commands and other clients reach
//! the one journal. It serves no HTTP to the network.

use std::{
    io,
    os::unix::net::UnixStream,
    sync::{Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context as _, bail};
use tokio::{net::UnixListener, runtime::Runtime, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::{
    CLOSING, DaemonInfo, Options, Signals, close, doors::Doors, doors_of, end, socket, start,
    start::Lock, start_app,
};
use crate::{api, app::Running, paths::Paths, telemetry::Role};

/// How often a newer version that takes over is looked for; with the pause between, it makes five seconds.
const SUCCESSOR_TRIES: u32 = 250;

/// Gives one client connections to the daemon, which is this process where no other one is.
pub struct InProcess {
    paths: Paths,
    options: Options,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The daemon in this process, while there is one.
    host: Option<Host>,
    /// Whether this process is on its way out, and becomes the daemon no more.
    ended: bool,
}

impl InProcess {
    /// Prepares the state folder.
    ///
    /// # Errors
    /// Says why it cannot be used.
    pub fn new(paths: Paths, options: Options) -> anyhow::Result<Self> {
        paths.create_state()?;
        Ok(Self { paths, options, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects to the daemon that runs, or becomes the daemon and connects to itself.
    ///
    /// # Errors
    /// Says why the journal could not be opened, or that this process is ending.
    pub fn connect(&self) -> anyhow::Result<UnixStream> {
        let mut state = self.state();
        if let Some(host) = state.host.as_ref().filter(|host| !host.hands_over()) {
            return host.attach();
        }
        let old = state.host.take();
        drop(state);
        if let Some(old) = old {
            old.end();
            if let Some(stream) = self.successor() {
                return Ok(stream);
            }
        }
        let mut begun = None;
        let mut begin = |lock| {
            let host = Host::start(&self.paths, &self.options, lock)?;
            let stream = host.attach();
            begun = Some(host);
            stream
        };
        let stream = match start::connect(&self.paths) {
            // A sandbox that forbids to connect; whether another process serves shows in the lock.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                begin(Lock::take(&self.paths)?.context(error)?)
            }
            _ => start::connect_or(&self.paths, begin),
        }?;
        match begun {
            Some(host) => self.keep(host)?,
            None => debug!("a daemon runs already, so this process only copies to it"),
        }
        Ok(stream)
    }

    fn keep(&self, host: Host) -> anyhow::Result<()> {
        let mut state = self.state();
        if state.ended {
            drop(state);
            host.end();
            bail!("this process is ending");
        }
        state.host = Some(host);
        Ok(())
    }

    /// The newer version that asked this process to hand over, once it listens.
    fn successor(&self) -> Option<UnixStream> {
        (0..SUCCESSOR_TRIES).find_map(|_| {
            start::pause();
            start::connect(&self.paths).ok()
        })
    }

    /// Ends the daemon in this process, in order: what is under way is finished or kept for the next one.
    pub fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        let host = state.host.take();
        drop(state);
        if let Some(host) = host {
            host.end();
        }
    }
}

/// A daemon in this process.
struct Host {
    runtime: Runtime,
    doors: Doors,
    end: CancellationToken,
    /// Closes everything once this process ends or hands over.
    closing: JoinHandle<()>,
    /// Given back last, when nothing of this daemon is left; `None` where nobody else can reach it.
    lock: Option<Lock>,
}

impl Host {
    fn start(paths: &Paths, options: &Options, lock: Lock) -> anyhow::Result<Self> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let end = CancellationToken::new();
        let (doors, closing, is_open) = runtime.block_on(async {
            let running = start_app(Role::InProcess, paths, options)?;
            let doors = doors_of(&running);
            let is_open = match open(paths, &doors) {
                Ok(()) => true,
                Err(error) => {
                    let path = paths.socket();
                    warn!(
                        "other clients and commands cannot reach the journal until this process ends: {} cannot be served: {error}",
                        path.display()
                    );
                    false
                }
            };
            let closing = close_at(end.clone(), paths.clone(), doors.clone(), running, is_open);
            anyhow::Ok((doors, tokio::spawn(closing), is_open))
        })?;
        Ok(Self { runtime, doors, end, closing, lock: is_open.then_some(lock) })
    }

    fn hands_over(&self) -> bool {
        self.doors.hand_over.is_cancelled()
    }

    /// A connection to this daemon that needs no socket in the file system.
    fn attach(&self) -> anyhow::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let _runtime = self.runtime.enter();
        let stream = tokio::net::UnixStream::from_std(ours)?;
        let doors = self.doors.clone();
        self.doors.tasks.spawn(async move { doors.serve_local(stream, axum::Router::new()).await });
        Ok(theirs)
    }

    fn end(self) {
        let Self { runtime, doors, end, closing, lock } = self;
        end.cancel();
        if runtime.block_on(closing).is_err() {
            warn!("the daemon in this process did not end in order");
        }
        drop(doors);
        runtime.shutdown_timeout(CLOSING);
        drop(lock);
    }
}

/// Opens the local socket and says so in the state folder.
fn open(paths: &Paths, doors: &Doors) -> io::Result<()> {
    let listener = UnixListener::from_std(socket::listen(&paths.socket())?)?;
    DaemonInfo::of_this_process(None).write(paths)?;
    let routes = api::router(std::sync::Arc::clone(&doors.app));
    doors.tasks.spawn(doors.clone().local(listener, routes));
    Ok(())
}

async fn close_at(
    told: CancellationToken,
    paths: Paths,
    doors: Doors,
    running: Running,
    is_open: bool,
) {
    tokio::select! {
        () = told.cancelled() => {}
        () = doors.hand_over.cancelled() => {}
    }
    if is_open {
        close(&paths, doors, running).await;
    } else {
        end(doors, running).await;
    }
}

/// Calls `act` when this process is told to end. From now on a signal does not end it by itself.
///
/// # Errors
/// Fails when the signals or a thread cannot be had.
pub fn on_signal(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _runtime = runtime.enter();
        Signals::listen()?
    };
    std::thread::Builder::new().name("signals".to_owned()).stack_size(64 * 1024).spawn(
        move || {
            runtime.block_on(signals.next(&CancellationToken::new()));
            act();
        },
    )?;
    Ok(())
}
