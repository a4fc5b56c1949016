//! The doors that the daemon holds open: the local socket, and HTTP on loopback or where the user wants it.

use std::{io, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
        BufReader,
    },
    net::{TcpListener, UnixListener, UnixStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, info, warn};

use crate::{
    app::App,
    bridge::hello::{Hello, Welcome},
    mcp,
};

/// How many connections a door holds at once; the next ones wait to be taken.
const CONNECTION_LIMIT: usize = 4096;

/// How long a new local connection may take to say what it is.
const FIRST_WORDS: Duration = Duration::from_secs(10);

/// How long a request's head may take to arrive.
const HEAD_LIMIT: Duration = Duration::from_secs(20);

/// How long a request that is under way may take when the daemon ends.
const LAST_REQUEST: Duration = Duration::from_secs(2);

/// How long to wait when the machine has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Longest greeting of a bridge, in bytes.
const HELLO_LIMIT: u64 = 64 * 1024;

/// What every door needs.
#[derive(Clone)]
pub(super) struct Doors {
    pub(super) app: Arc<App>,
    /// Ends the doors.
    pub(super) stop: CancellationToken,
    /// Asks the whole daemon to end, for a hand-over to a newer version.
    pub(super) hand_over: CancellationToken,
    pub(super) tasks: TaskTracker,
}

impl Doors {
    /// Serves bridges and local commands on the user's own socket, without tokens.
    pub(super) async fn local(self, listener: UnixListener, router: Router) {
        let room = Arc::new(Semaphore::new(CONNECTION_LIMIT));
        let user = rustix::process::geteuid().as_raw();
        while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
            let Some(accepted) = self.stop.run_until_cancelled(listener.accept()).await else {
                return;
            };
            match accepted {
                // The folder keeps others out already; root and a mistaken mode do not get in either.
                Ok((stream, _)) if stream.peer_cred().is_ok_and(|peer| peer.uid() == user) => {
                    let (doors, router) = (self.clone(), router.clone());
                    self.tasks.spawn(async move {
                        if let Err(error) = doors.serve_local(stream, router).await {
                            debug!("a local connection ended: {error}");
                        }
                        drop(permit);
                    });
                }
                Ok(_) => warn!("refused a connection of another user on the local socket"),
                Err(error) => self.pause_after(&error).await,
            }
        }
    }

    /// Serves HTTP to whoever `router` lets in.
    pub(super) async fn http(self, listener: TcpListener, router: Router) {
        let room = Arc::new(Semaphore::new(CONNECTION_LIMIT));
        while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
            let Some(accepted) = self.stop.run_until_cancelled(listener.accept()).await else {
                return;
            };
            match accepted {
                Ok((stream, peer)) => {
                    // Answers are small and are waited for.
                    if let Err(error) = stream.set_nodelay(true) {
                        debug!("a connection came without TCP_NODELAY: {error}");
                    }
                    let router =
                        router.clone().layer(axum::Extension(axum::extract::ConnectInfo(peer)));
                    let stop = self.stop.clone();
                    self.tasks.spawn(async move {
                        serve_http(stream, router, stop).await;
                        drop(permit);
                    });
                }
                Err(error) => self.pause_after(&error).await,
            }
        }
    }

    async fn pause_after(&self, error: &io::Error) {
        warn!("failed to take a connection: {error}");
        self.stop.run_until_cancelled(tokio::time::sleep(ACCEPT_PAUSE)).await;
    }

    /// Tells a bridge, which begins with `{`, from an HTTP client, which begins with a method.
    pub(super) async fn serve_local(self, stream: UnixStream, router: Router) -> io::Result<()> {
        let (reader, writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        let is_bridge = timeout(FIRST_WORDS, reader.fill_buf()).await??.first() == Some(&b'{');
        if is_bridge {
            return self.serve_bridge(reader, writer).await;
        }
        serve_http(tokio::io::join(reader, writer), router, self.stop.clone()).await;
        Ok(())
    }

    async fn serve_bridge(
        self,
        mut reader: BufReader<impl AsyncRead + Unpin + Send + 'static>,
        mut writer: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<()> {
        let mut line = String::new();
        timeout(FIRST_WORDS, (&mut reader).take(HELLO_LIMIT).read_line(&mut line)).await??;
        let hello: Hello = serde_json::from_str(&line).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidData, "its greeting is not understood")
        })?;
        let hands_over = is_newer(&hello.version, crate::VERSION);
        let mut welcome =
            serde_json::to_vec(&Welcome { version: crate::VERSION.to_owned(), hands_over })?;
        welcome.push(b'\n');
        writer.write_all(&welcome).await?;
        writer.flush().await?;
        if hands_over {
            info!(
                "a bridge of version {} takes over from this daemon of version {}",
                hello.version,
                crate::VERSION
            );
            self.hand_over.cancel();
            return Ok(());
        }
        // A token of its own, because the end of one session cancels the one that it was given.
        mcp::local::serve(self.app, reader, writer, hello, self.stop.child_token()).await;
        Ok(())
    }
}

async fn serve_http(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    stop: CancellationToken,
) {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT);
    let service = TowerToHyperService::new(router);
    let connection = builder.serve_connection(TokioIo::new(io), service);
    tokio::pin!(connection);
    let served = tokio::select! {
        served = &mut connection => served,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            // A request that is under way is answered; one that never comes is not waited for.
            match timeout(LAST_REQUEST, connection).await {
                Ok(served) => served,
                Err(_elapsed) => return,
            }
        }
    };
    if let Err(error) = served {
        debug!("an HTTP connection ended: {error}");
    }
}

/// Whether `version` is newer than `than`, by their three numbers.
fn is_newer(version: &str, than: &str) -> bool {
    let numbers = |version: &str| {
        let release = version.split(['-', '+']).next().unwrap_or_default();
        let mut numbers =
            release.split('.').map(|number| number.parse::<u64>().unwrap_or_default());
        [(); 3].map(|()| numbers.next().unwrap_or_default())
    };
    numbers(version) > numbers(than)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        #[track_caller]
        fn check(version: &str, than: &str, expected: bool) {
            assert_eq!(is_newer(version, than), expected);
        }
        check("0.2.0", "0.1.9", true);
        check("0.10.0", "0.9.0", true);
        check("0.1.0", "0.1.0", false);
        check("0.1.0-rc1", "0.1.0", false);
        check("nonsense", "0.0.1", false);
    }
}
