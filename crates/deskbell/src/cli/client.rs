//! Commands talk to the daemon: HTTP over the local socket, one connection for each request.
//!
//! The daemon is started when none runs.

use std::{io, time::Duration};

use bytes::{Buf as _, Bytes};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{net::UnixStream, time::Instant};
use tokio_util::task::AbortOnDropHandle;

use super::{Exit, Failure};
use crate::{api::problem::ProblemBody, bridge::start, paths::Paths};

/// How long an answer may take. Requests that wait for a far end wait for at most a minute.
const ANSWER_LIMIT: Duration = Duration::from_secs(90);

/// How long a report may take in all, once the daemon was reached; one that is started has a limit of its own. It is
/// accepted within milliseconds, or something is wrong.
const REPORT_LIMIT: Duration = Duration::from_secs(10);

/// How often a request that may safely be repeated is sent before it fails.
const TRIES: usize = 5;

/// The longest answer that is read, in bytes: a page of the longest events is shorter.
const BODY_LIMIT: usize = 512 * 1024 * 1024;

/// Longest line of the live stream, in bytes.
const LINE_LIMIT: usize = 4 * 1024 * 1024;

/// How long the live stream may be silent. The daemon shows that it is alive every 15 seconds.
const SILENCE_LIMIT: Duration = Duration::from_secs(45);

/// What to do about a variable that the daemon does not have.
pub(super) const RESTART: &str = "the daemon has the variables it was started with: end it, and start it again where the variable is set";

/// Speaks to the daemon of one state folder.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    paths: Paths,
    reach: Reach,
}

/// Whether a daemon that does not run is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// It is started.
    Start,
    /// It must run.
    OnlyRunning,
}

impl Client {
    /// The client of the user's own daemon.
    pub(crate) fn of_this_user() -> anyhow::Result<Self> {
        let paths = Paths::from_process();
        let paths = paths.map_err(|error| Failure::new(Exit::Wrong, error.to_string()))?;
        Ok(Self::new(paths))
    }

    /// The client of the daemon in `paths`, which is started where none runs.
    pub(crate) const fn new(paths: Paths) -> Self {
        Self { paths, reach: Reach::Start }
    }

    /// The client of a daemon that runs already; when it ends it stays ended.
    pub(crate) const fn of_running(paths: Paths) -> Self {
        Self { paths, reach: Reach::OnlyRunning }
    }

    /// The same, for a daemon that runs already.
    pub(crate) fn without_starting(&self) -> Self {
        Self::of_running(self.paths.clone())
    }

    pub(crate) const fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Asks for `path`.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.repeatable(&request(Method::GET, path, Bytes::new()), ANSWER_LIMIT).await
    }

    /// Sends `body`, which carries a key and so may be sent again when the daemon ends before it answers.
    pub(crate) async fn post_keyed<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> anyhow::Result<T> {
        let body = serde_json::to_vec(body)?.into();
        self.repeatable(&request(Method::POST, path, body), REPORT_LIMIT).await
    }

    /// Sends an order without a body, once.
    pub(crate) async fn post<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let (status, body) =
            self.once(&request(Method::POST, path, Bytes::new()), ANSWER_LIMIT).await?;
        read(status, &body)
    }

    /// Asks for a `path` whose answer is only its status.
    pub(crate) async fn check(&self, path: &str) -> anyhow::Result<()> {
        let (status, body) =
            self.once(&request(Method::GET, path, Bytes::new()), ANSWER_LIMIT).await?;
        if status.is_success() { Ok(()) } else { Err(refusal(status, &body).into()) }
    }

    async fn repeatable<T: DeserializeOwned>(
        &self,
        request: &Request<Bytes>,
        limit: Duration,
    ) -> anyhow::Result<T> {
        let mut stream = Some(self.open().await?);
        let deadline = Instant::now() + limit;
        let mut tries = 1;
        loop {
            let one_try = async {
                let stream = match stream.take() {
                    Some(stream) => stream,
                    None => self.open().await?,
                };
                exchange(stream, request).await
            };
            let answer = tokio::time::timeout_at(deadline, one_try).await;
            let answer = answer.unwrap_or_else(|_| Err(no_answer(limit)));
            let wait = match &answer {
                Ok((StatusCode::TOO_MANY_REQUESTS, body)) => retry_after(body),
                Err(error) if is_broken(error) => Duration::from_millis(100),
                _ => Duration::ZERO,
            };
            if wait.is_zero() || tries == TRIES || Instant::now() + wait > deadline {
                let (status, body) = answer?;
                return read(status, &body);
            }
            tries += 1;
            tokio::time::sleep(wait).await;
        }
    }

    /// Sends `request` and reads the answer, for which `limit` is left once the daemon runs.
    async fn once(
        &self,
        request: &Request<Bytes>,
        limit: Duration,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let exchange = exchange(self.open().await?, request);
        tokio::time::timeout(limit, exchange).await.map_err(|_| no_answer(limit))?
    }

    async fn open(&self) -> anyhow::Result<UnixStream> {
        let stream = tokio::time::timeout(ANSWER_LIMIT, self.connect()).await;
        let stream = stream.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        stream.map_err(|error| {
            Failure::new(Exit::NotNow, format!("the daemon cannot be reached: {error}"))
                .hint("run `deskbell doctor` to see why")
                .into()
        })
    }

    async fn connect(&self) -> io::Result<UnixStream> {
        let (paths, reach) = (self.paths.clone(), self.reach);
        let connect = move || match reach {
            Reach::Start => start::connect_or_start(&paths, None),
            Reach::OnlyRunning => start::connect(&paths),
        };
        let stream = tokio::task::spawn_blocking(connect).await.map_err(io::Error::other)??;
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    }

    /// Follows the live stream at `path`.
    pub(crate) async fn follow(&self, path: &str) -> anyhow::Result<Lines> {
        let mut request = request(Method::GET, path, Bytes::new());
        let accept = http::HeaderValue::from_static("application/x-ndjson");
        request.headers_mut().insert(header::ACCEPT, accept);
        let Answer { response, connection } = send(self.open().await?, &request).await?;
        let status = response.status();
        if !status.is_success() {
            let body = response.into_body().collect().await?.to_bytes();
            return Err(refusal(status, &body).into());
        }
        Ok(Lines { body: response.into_body(), read: Vec::new(), _connection: connection })
    }
}

/// An answer, and the connection that must live until its body was read.
struct Answer {
    response: Response<Incoming>,
    connection: AbortOnDropHandle<()>,
}

async fn send(stream: UnixStream, request: &Request<Bytes>) -> anyhow::Result<Answer> {
    let broken = |error: hyper::Error| Broken(error.to_string());
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // How it ended is seen by whoever reads the answer.
    let connection = AbortOnDropHandle::new(tokio::spawn(async { drop(connection.await) }));
    let (parts, body) = request.clone().into_parts();
    let request = Request::from_parts(parts, Full::new(body));
    let response = sender.send_request(request).await.map_err(broken)?;
    Ok(Answer { response, connection })
}

/// Lines of the live stream.
pub(crate) struct Lines {
    body: Incoming,
    read: Vec<u8>,
    _connection: AbortOnDropHandle<()>,
}

impl Lines {
    /// The next line that is not blank; `None` when the stream is over or has been silent for too long.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.read.drain(..=end).collect();
                line.pop();
                if line.is_empty() {
                    continue;
                }
                return Some(line);
            }
            if self.read.len() > LINE_LIMIT {
                return None;
            }
            let frame = tokio::time::timeout(SILENCE_LIMIT, self.body.frame()).await.ok()??.ok()?;
            if let Ok(mut data) = frame.into_data() {
                while data.has_remaining() {
                    let chunk = data.chunk();
                    self.read.extend_from_slice(chunk);
                    let length = chunk.len();
                    data.advance(length);
                }
            }
        }
    }
}

async fn exchange(
    stream: UnixStream,
    request: &Request<Bytes>,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let Answer { response, connection: _connection } = send(stream, request).await?;
    let status = response.status();
    let body = http_body_util::Limited::new(response.into_body(), BODY_LIMIT).collect();
    let body = body.await.map_err(|error| Broken(error.to_string()))?;
    Ok((status, body.to_bytes()))
}

fn no_answer(limit: Duration) -> anyhow::Error {
    let message = format!("the daemon does not answer within {} s", limit.as_secs());
    let failure = Failure::new(Exit::NotNow, message);
    failure.hint("see `deskbell doctor` and the log in the state folder").into()
}

/// The connection ended before the answer was there.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the daemon broke: {0}")]
struct Broken(String);

fn is_broken(error: &anyhow::Error) -> bool {
    error.is::<Broken>()
}

fn request(method: Method, path: &str, body: Bytes) -> Request<Bytes> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    // What is put into a path is escaped before, so this cannot fail; the root would be answered with a problem.
    *request.uri_mut() = path.parse().unwrap_or_default();
    let headers = request.headers_mut();
    headers.insert(header::HOST, http::HeaderValue::from_static("localhost"));
    headers.insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    request
}

fn read<T: DeserializeOwned>(status: StatusCode, body: &[u8]) -> anyhow::Result<T> {
    if !status.is_success() {
        return Err(refusal(status, body).into());
    }
    serde_json::from_slice(body).map_err(|_| {
        Failure::new(Exit::Failed, "the daemon's answer is not understood")
            .hint("the daemon may be of another version; see `deskbell doctor`")
            .into()
    })
}

/// What the daemon refused, as a failure of the command.
fn refusal(status: StatusCode, body: &[u8]) -> Failure {
    let problem = serde_json::from_slice::<ProblemBody>(body).ok();
    let is_of_environment = problem.as_ref().is_some_and(ProblemBody::is_of_environment);
    let detail =
        problem.map_or_else(|| format!("the daemon answered {status}"), |problem| problem.detail);
    let exit = match status {
        StatusCode::BAD_REQUEST
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNPROCESSABLE_ENTITY => Exit::Wrong,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Exit::NotNow,
        _ => Exit::Failed,
    };
    let failure = Failure::new(exit, detail);
    if is_of_environment { failure.hint(RESTART) } else { failure }
}

fn retry_after(body: &[u8]) -> Duration {
    let problem = serde_json::from_slice::<ProblemBody>(body).ok();
    let millis = problem.and_then(|problem| problem.retry_after_ms).unwrap_or(100);
    Duration::from_millis(millis.clamp(10, 5_000))
}

/// The query of an address, from the parameters that have a value.
pub(crate) fn query(parameters: &[(&str, Option<String>)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in parameters {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    let query = query.finish();
    if query.is_empty() { query } else { format!("?{query}") }
}

/// `text` as one segment of a path.
pub(crate) fn segment(text: &str) -> String {
    // A space is `%20` in a path, and `+` is itself.
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

#[cfg(test)]
pub(super) mod fake {
    use std::path::Path;

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::UnixListener,
    };

    use super::*;

    /// The client of a daemon that gives its connections these answers, one after the other, each after a while and
    /// then closes; all further ones get none.
    pub(crate) fn daemon(home: &Path, answers: Vec<(Duration, &'static str)>) -> Client {
        let paths = Paths {
            state: home.to_owned(),
            config_user: home.join("config.toml"),
            config_machine: home.join("none.toml"),
        };
        let listener = UnixListener::bind(paths.socket()).unwrap();
        tokio::spawn(async move {
            for (wait, answer) in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _read = stream.read(&mut [0; 4096]).await.unwrap();
                tokio::time::sleep(wait).await;
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            let _silent = listener.accept().await;
            std::future::pending::<()>().await;
        });
        Client::of_running(paths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_tries_together_take_no_longer_than_the_limit() {
        let home = tempfile::tempdir().unwrap();
        let (most, limit) = (Duration::from_millis(1_600), Duration::from_secs(2));
        let client = fake::daemon(home.path(), vec![(most, "")]);
        let start = Instant::now();
        let request = request(Method::GET, "/", Bytes::new());
        let error = client.repeatable::<ProblemBody>(&request, limit).await.unwrap_err();
        assert!(error.to_string().contains("within 2 s"), "{error}");
        assert!(start.elapsed() < most + limit, "{:?}", start.elapsed());
    }

    #[test]
    fn addresses_are_escaped() {
        let parameters = [("run", Some("a b&c".to_owned())), ("none", None)];
        assert_eq!(query(&parameters), "?run=a+b%26c");
        assert_eq!(query(&[("none", None)]), "");
        assert_eq!(segment("a b/ü+"), "a%20b%2F%C3%BC%2B");
    }

    #[test]
    fn refusals_tell_wrong_values_from_a_bad_moment() {
        let body = br#"{"type":"t","title":"t","status":422,"detail":"`level` is loud"}"#;
        let failure = refusal(StatusCode::UNPROCESSABLE_ENTITY, body);
        assert_eq!((failure.exit, failure.message.as_str()), (Exit::Wrong, "`level` is loud"));
        assert_eq!(refusal(StatusCode::SERVICE_UNAVAILABLE, b"").exit, Exit::NotNow);
        assert_eq!(refusal(StatusCode::NOT_FOUND, b"").exit, Exit::Failed);
    }
}
