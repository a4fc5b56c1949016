//! The one process per user that holds the journal: its lock, its doors, its start and its end.

mod doors;
mod in_process;
mod info;

use std::{
    fs,
    io::{self, Write as _},
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, bail};
use tokio::{
    net::{TcpListener, UnixListener},
    signal::unix::{Signal, SignalKind, signal},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{info, warn};

use self::doors::Doors;
pub use self::{
    in_process::{InProcess, on_signal},
    info::DaemonInfo,
};
use crate::{
    api,
    app::{App, Running},
    auth,
    bridge::{socket, start},
    config::{self, Config, load::Sources},
    journal::{Journal, memory::MemoryJournal, sqlite::SqliteJournal},
    mcp,
    paths::Paths,
    telemetry::{self, Role},
};

/// The loopback port that is tried first, so that an address that somebody wrote down stays good.
const USUAL_PORT: u16 = 8377;

/// How long open connections may take to end.
const CLOSING: Duration = Duration::from_secs(5);

/// How the daemon is run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The address for HTTP; `None` takes the configuration's, else a loopback port.
    pub listen: Option<SocketAddr>,
    /// The MCP profile where a client names none.
    pub profile: Option<String>,
    /// Whether a loopback address asks for no token.
    pub anonymous_loopback: bool,
    /// Where events are kept.
    pub journal: JournalPlace,
    /// Whether another command started it and waits for it.
    pub detached: bool,
}

/// Where events are kept.
#[derive(Debug, Clone, Default)]
pub enum JournalPlace {
    /// In the state folder.
    #[default]
    StateFolder,
    /// In this file.
    File(PathBuf),
    /// Nowhere: a restart forgets all.
    Memory,
}

/// Runs the daemon until it is told to end.
///
/// # Errors
/// Says why it could not start: another one runs, the journal is damaged, the address is taken.
pub fn run(paths: &Paths, options: &Options) -> anyhow::Result<()> {
    paths.create_state()?;
    let Some(_lock) = start::Lock::take(paths).context("failed to lock the state folder")? else {
        bail!(
            "a daemon runs already in {} (process {})",
            paths.state.display(),
            info::running_pid(paths)
        );
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(serve(paths, options));
    runtime.shutdown_timeout(CLOSING);
    served
}

async fn serve(paths: &Paths, options: &Options) -> anyhow::Result<()> {
    let role = if options.detached { Role::DetachedDaemon } else { Role::Daemon };
    let running = start_app(role, paths, options)?;
    let doors = doors_of(&running);
    let config = Arc::clone(&running.app.config.borrow());
    let token = auth::state_token(&paths.token()).context("failed to prepare the token file")?;
    let listener = listen(options, &config).await?;
    let address = listener.local_addr()?;
    let local = UnixListener::from_std(
        socket::listen(&paths.socket()).context("failed to open the local socket")?,
    )?;

    let routes = api::router(Arc::clone(&running.app));
    let http = auth::guard(
        routes.clone().merge(mcp::http::router(Arc::clone(&running.app), doors.stop.clone())),
        running.app.config.clone(),
        auth::Door { token, address, anonymous_loopback: options.anonymous_loopback },
    );
    doors.tasks.spawn(doors.clone().local(local, routes));
    doors.tasks.spawn(doors.clone().http(listener, http));
    DaemonInfo::of_this_process(Some(address))
        .write(paths)
        .context("failed to write the daemon's particulars")?;
    info!("listening on http://{address} and on {}", paths.socket().display());
    // Whoever waits for "ready" may send a signal the moment it hears it.
    let mut signals = Signals::listen()?;
    say_ready(options, address);

    let reason = signals.next(&doors.hand_over).await;
    info!("ending: {reason}");
    close(paths, doors, running).await;
    Ok(())
}

/// Closes the doors, ends the parts and takes back what the state folder says of this process.
async fn close(paths: &Paths, doors: Doors, running: Running) {
    // The doors close first, so that nothing is accepted that the rest would not carry out.
    remove(&paths.socket());
    end(doors, running).await;
    remove(&paths.daemon_info());
    remove(&paths.pid());
}

async fn end(doors: Doors, running: Running) {
    doors.stop.cancel();
    running.end_streams();
    doors.tasks.close();
    if tokio::time::timeout(CLOSING, doors.tasks.wait()).await.is_err() {
        warn!("some connections did not end in time");
    }
    running.stop().await;
}

fn doors_of(running: &Running) -> Doors {
    Doors {
        app: Arc::clone(&running.app),
        stop: CancellationToken::new(),
        hand_over: CancellationToken::new(),
        tasks: TaskTracker::new(),
    }
}

fn start_app(role: Role, paths: &Paths, options: &Options) -> anyhow::Result<Running> {
    let sources = Sources::of_the_daemon(paths).with_profile(options.profile.as_deref());
    let config = config::load::load(&sources)?.config;
    telemetry::init(role, &config.tracing, paths);
    let file = match &options.journal {
        JournalPlace::Memory => None,
        JournalPlace::File(path) => Some(path.clone()),
        JournalPlace::StateFolder => Some(paths.journal()),
    };
    let journal: Arc<dyn Journal> = match &file {
        None => Arc::new(MemoryJournal::default()),
        Some(path) => Arc::new(SqliteJournal::open(path)?),
    };
    // A file that is there has an absolute path with a folder.
    let folder = file.and_then(|file| Some(std::path::absolute(file).ok()?.parent()?.to_owned()));
    Ok(App::start(role, journal, folder, sources, config))
}

async fn listen(options: &Options, config: &Config) -> anyhow::Result<TcpListener> {
    if let Some(address) = options.listen.or(config.serve.listen) {
        if !address.ip().is_loopback() && config.serve.tokens.is_empty() {
            bail!(
                "refused to listen on {address}, which others can reach, without a token; add one under [serve.tokens]"
            );
        }
        return TcpListener::bind(address)
            .await
            .with_context(|| format!("failed to listen on {address}"));
    }
    let usual = TcpListener::bind((Ipv4Addr::LOCALHOST, USUAL_PORT)).await;
    match usual {
        Ok(listener) => Ok(listener),
        // Another user's daemon, or another program; any port will do.
        Err(_) => Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?),
    }
}

/// Tells whoever waits that the doors are open: the command that started it, or the person at the terminal.
fn say_ready(options: &Options, address: SocketAddr) {
    let said = if options.detached {
        writeln!(io::stdout(), "{}", start::READY)
    } else {
        writeln!(io::stderr(), "deskbell listens on http://{address}")
    };
    if let Err(error) = said {
        warn!("nobody hears that the daemon is ready: {error}");
    }
}

/// The signals that end the daemon.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for a reason to end.
    async fn next(&mut self, hand_over: &CancellationToken) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "it was asked to terminate",
            _ = self.interrupt.recv() => "it was interrupted",
            () = hand_over.cancelled() => "a newer version takes over",
        }
    }
}

fn remove(path: &std::path::Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        warn!("failed to remove {}: {error}", path.display());
    }
}
