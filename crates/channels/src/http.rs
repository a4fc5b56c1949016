//! The one outgoing HTTP client: time-outs, size caps, proxies, trusted roots and the address guard.
//!
//! A channel builds a [`Request`] from its context and reads a [`Reply`]; what a status means is said in `reply`.

use std::{
    collections::HashMap,
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use deskbell_core::delivery::Receipt;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, USER_AGENT},
};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    address::{Address, Proxy, StandIn},
    channel::{ChannelKind, SendContext, SendError},
    files::{FILE_TIME, ReadFile},
    guard::{self, Refused},
    multipart,
    reply::{REPLY_LIMIT, Reply},
    secret::Secret,
    tls,
};

/// How far ends are told who calls.
const AGENT: &str = concat!("deskbell/", env!("CARGO_PKG_VERSION"));

/// How many proxies have a client of their own. Beyond it all are built anew.
const CLIENTS_LIMIT: usize = 16;

/// How HTTP far ends are reached.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// Whether link-local addresses and cloud metadata services may be reached.
    pub allow_link_local: bool,
    /// Where names lead instead of where the machine says, for tests.
    pub names: Option<Names>,
}

/// Where names of hosts lead.
#[derive(Clone)]
pub struct Names(Arc<Lookup>);

type Lookup = dyn Fn(&str) -> Vec<IpAddr> + Send + Sync;

impl Names {
    /// Names that lead where `lookup` says.
    pub fn new(lookup: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static) -> Self {
        Self(Arc::new(lookup))
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Names")
    }
}

impl HttpOptions {
    async fn lookup(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        match &self.names {
            Some(Names(names)) => {
                Ok(names(host).into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
            }
            None => Ok(tokio::net::lookup_host((host, port)).await?.collect()),
        }
    }
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(10), allow_link_local: false, names: None }
    }
}

/// The way to far ends that speak HTTP. Cheap to clone; its connections are shared.
#[derive(Clone, Default)]
pub struct Http {
    shared: Arc<Shared>,
    stand_in: Option<StandIn>,
}

#[derive(Default)]
struct Shared {
    options: HttpOptions,
    /// Built when first needed, because reading the machine's certificates takes up to 30 ms.
    clients: Mutex<HashMap<Way, reqwest::Client>>,
}

/// How a request leaves this machine, if it does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Way {
    /// By the proxy that the system names, if it names one.
    System,
    /// By a proxy of the channel's own.
    Proxy(String),
    /// Straight to this machine, of which a proxy knows another one.
    Direct,
}

impl Way {
    fn to(address: &Address, proxy: Option<&Proxy>) -> Self {
        match proxy {
            Some(proxy) => Self::Proxy(proxy.as_str().to_owned()),
            None if address.is_this_machine() => Self::Direct,
            None => Self::System,
        }
    }
}

impl Http {
    /// A way with `options`.
    pub fn new(options: HttpOptions) -> Self {
        Self { shared: Arc::new(Shared { options, clients: Mutex::default() }), stand_in: None }
    }

    /// The same way, on which requests go to `stand_in` instead of the hosts they name, if there is one.
    #[must_use]
    pub fn leading_to(&self, stand_in: Option<StandIn>) -> Self {
        Self { shared: Arc::clone(&self.shared), stand_in }
    }

    /// Whether link-local addresses and cloud metadata services may be reached.
    pub(crate) fn allows_link_local(&self) -> bool {
        self.shared.options.allow_link_local
    }

    /// The addresses that `host` leads to.
    pub(crate) async fn lookup(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.shared.options.lookup(host, port).await
    }

    fn client(&self, way: Way) -> Result<reqwest::Client, SendError> {
        let mut clients = self.shared.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&way) {
            return Ok(client.clone());
        }
        let client = build(&self.shared.options, &way)?;
        if clients.len() >= CLIENTS_LIMIT {
            clients.clear();
        }
        clients.insert(way, client.clone());
        Ok(client)
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.shared.options;
        f.debug_struct("Http").field("options", options).field("stand_in", &self.stand_in).finish()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the client that everything else uses")]
fn build(options: &HttpOptions, way: &Way) -> Result<reqwest::Client, SendError> {
    let mut tls =
        tls::client_config(None).map_err(|error| SendError::permanent(error.to_string()))?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(options.connect_timeout)
        // A redirect could carry a token to another host, or a request past the guard.
        .redirect(reqwest::redirect::Policy::none())
        .dns_resolver(Arc::new(Guarded(options.clone())));
    let builder = match way {
        Way::System => builder,
        Way::Direct => builder.no_proxy(),
        Way::Proxy(proxy) => {
            let proxy = reqwest::Proxy::all(proxy).map_err(|error| failed(&error.without_url()));
            builder.proxy(proxy?)
        }
    };
    builder.build().map_err(|error| failed(&error.without_url()))
}

/// Resolves names and refuses what the guard refuses, so that no name leads there. The connection is made to what this
/// gives, so there is no moment in which a name could change where it leads; that holds for a proxy's name as well.
struct Guarded(HttpOptions);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let options = self.0.clone();
        Box::pin(async move {
            let mut found = options.lookup(name.as_str(), 0).await?;
            found.retain(|found| options.allow_link_local || !guard::is_refused(found.ip()));
            if found.is_empty() {
                return Err(Box::from(Refused));
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// A request to a far end.
#[must_use]
pub struct Request<'a> {
    cx: &'a SendContext,
    method: Method,
    address: Address,
    headers: HeaderMap,
    body: Vec<u8>,
    /// What a preview shows of a body that is no text.
    sealed: Option<String>,
    timeout: Duration,
    proxy: Option<&'a Proxy>,
    /// What is wrong with it, said when it is sent.
    problem: Option<SendError>,
}

impl SendContext {
    /// A POST request to `address`.
    pub fn post(&self, address: &Address) -> Request<'_> {
        self.request(Method::POST, address)
    }

    /// A GET request to `address`.
    pub fn get(&self, address: &Address) -> Request<'_> {
        self.request(Method::GET, address)
    }

    /// A PUT request to `address`.
    pub fn put(&self, address: &Address) -> Request<'_> {
        self.request(Method::PUT, address)
    }

    /// A PATCH request to `address`.
    pub fn patch(&self, address: &Address) -> Request<'_> {
        self.request(Method::PATCH, address)
    }

    /// A request to `address`.
    pub fn request(&self, method: Method, address: &Address) -> Request<'_> {
        let (address, login) = address.without_login();
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        let request = Request {
            cx: self,
            method,
            address,
            headers,
            body: Vec::new(),
            sealed: None,
            timeout: self.timeout,
            proxy: None,
            problem: None,
        };
        match &login {
            Some((user, password)) => request.basic(user, password),
            None => request,
        }
    }
}

impl<'a> Request<'a> {
    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            (Ok(name), Ok(value)) => {
                self.headers.insert(name, value);
            }
            _ => {
                let problem = format!("header {name:?} has characters that HTTP does not allow");
                self.problem = Some(SendError::permanent(problem));
            }
        }
        self
    }

    /// Logs in with a token, if there is one.
    pub fn bearer(self, token: Option<&Secret>) -> Self {
        match token {
            Some(token) => {
                self.header(AUTHORIZATION.as_str(), &format!("Bearer {}", token.expose()))
            }
            None => self,
        }
    }

    /// Logs in with a user and a password.
    pub fn basic(self, user: &str, password: &Secret) -> Self {
        let login = BASE64_STANDARD.encode(format!("{user}:{}", password.expose()));
        self.header(AUTHORIZATION.as_str(), &format!("Basic {login}"))
    }

    /// Goes through `proxy` instead of the system's, if there is one.
    pub const fn via(mut self, proxy: Option<&'a Proxy>) -> Self {
        self.proxy = proxy;
        self
    }

    /// Takes `body` as JSON.
    pub fn json(self, body: &impl Serialize) -> Self {
        match serde_json::to_string(body) {
            Ok(body) => self.body("application/json", body),
            Err(error) => {
                let problem = Some(SendError::permanent(format!("cannot write JSON: {error}")));
                Self { problem, ..self }
            }
        }
    }

    /// Takes `body` as JSON, without the fields that are null.
    pub fn json_without_nulls(self, mut body: Value) -> Self {
        if let Some(fields) = body.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        self.json(&body)
    }

    /// Takes `fields` as a form that is escaped as addresses are.
    pub fn form(self, fields: &[(&str, &str)]) -> Self {
        let body =
            url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.body("application/x-www-form-urlencoded", body)
    }

    /// Takes `body` as it is.
    pub fn body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.header(CONTENT_TYPE.as_str(), content_type)
    }

    /// Takes `sealed`, which only the reader can read, as the body. A preview shows `text` in its place.
    pub fn sealed(self, encoding: &str, text: String, sealed: Vec<u8>) -> Self {
        let request = self.header(CONTENT_ENCODING.as_str(), encoding);
        Self { sealed: Some(text), ..request.body("application/octet-stream", sealed) }
    }

    /// Takes `file` as it is.
    pub fn file(mut self, file: &ReadFile) -> Self {
        self.sealed = Some(format!("[{} bytes]", file.bytes.len()));
        self.body.clone_from(&file.bytes);
        self.slow_for(1).header(CONTENT_TYPE.as_str(), &file.media_type)
    }

    /// Takes longer, because there are `files` in it.
    pub fn slow_for(mut self, files: usize) -> Self {
        let files = u32::try_from(files).unwrap_or(u32::MAX);
        self.timeout = self.timeout.saturating_add(FILE_TIME.saturating_mul(files));
        self
    }

    /// Takes `fields` and, as `part`, `file` as a form.
    pub fn form_with_file(self, fields: &[(&str, &str)], part: &str, file: &ReadFile) -> Self {
        self.form_with_files(fields, part, &[file])
    }

    /// Takes `fields` and, each as `part`, `files` as a form.
    pub fn form_with_files(
        mut self,
        fields: &[(&str, &str)],
        part: &str,
        files: &[&ReadFile],
    ) -> Self {
        let form = multipart::form(fields, part, files, &self.cx.uuid());
        (self.body, self.sealed) = (form.bytes, Some(form.shown));
        self = self.slow_for(files.len());
        self.header(CONTENT_TYPE.as_str(), &form.content_type)
    }

    /// Sends the request; an answer other than 2xx is a failure.
    ///
    /// # Errors
    /// Says what went wrong on the way, or what the status means.
    pub async fn accepted(self) -> Result<Reply, SendError> {
        self.answered().await?.accepted()
    }

    /// Sends the request and reads the answer as the far end of `kind` means it.
    ///
    /// # Errors
    /// Says what went wrong on the way, or what the answer means.
    pub async fn delivered(self, kind: &ChannelKind) -> Result<Receipt, SendError> {
        let reply = self.answered().await?;
        kind.verdict().judge(kind.about.title, &reply)
    }

    /// Sends the request and gives any answer, for far ends that explain a refusal in its body.
    ///
    /// # Errors
    /// Says what went wrong on the way.
    pub async fn answered(self) -> Result<Reply, SendError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        if let Some(preview) = &self.cx.preview {
            let answer = Ok(preview.answer(self.written_down()).as_bytes().to_vec());
            return Ok(Reply::new(200, &HeaderMap::new(), answer, self.cx));
        }
        let http = &self.cx.http;
        let (address, way) = match &http.stand_in {
            // It is on this machine, of which a proxy knows another one.
            Some(stand_in) => (stand_in.instead_of(&self.address), Way::Direct),
            None => {
                self.check_way().await?;
                let way = Way::to(&self.address, self.proxy);
                (self.address, way)
            }
        };
        let request = http
            .client(way)?
            .request(self.method, address.url().clone())
            .headers(self.headers)
            .timeout(self.timeout)
            .body(self.body);
        let response = request.send().await.map_err(|error| failed(&error.without_url()))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Reply::new(status, &headers, read(response).await, self.cx))
    }

    /// Refuses what the guard refuses and the client's resolver does not see: addresses that are numbers.
    async fn check_way(&self) -> Result<(), SendError> {
        if !self.cx.http.allows_link_local() && names_refused(&self.address) {
            return Err(SendError::permanent(Refused.to_string()));
        }
        if let Some(proxy) = self.proxy {
            let (host, port) = proxy.host();
            self.cx.resolve(&host, port).await?;
        }
        Ok(())
    }

    fn written_down(&self) -> Value {
        let headers: Map<String, Value> = self
            .headers
            .iter()
            .map(|(name, value)| {
                (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into())
            })
            .collect();
        json!({
            "transport": "http",
            "method": self.method.as_str(),
            "url": self.address.url().as_str(),
            "headers": headers,
            "body": match &self.sealed {
                Some(text) => text.as_str().into(),
                None => String::from_utf8_lossy(&self.body),
            },
        })
    }
}

/// Whether `address` is written as a number that the guard refuses. Names are looked at when they are resolved.
fn names_refused(address: &Address) -> bool {
    address.number().is_some_and(guard::is_refused)
}

/// Reads the body up to [`REPLY_LIMIT`]; the rest is left where it is.
async fn read(mut response: reqwest::Response) -> Result<Vec<u8>, SendError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error.without_url()))? {
        let room = REPLY_LIMIT - body.len();
        body.extend(chunk.iter().take(room));
        if chunk.len() >= room {
            break;
        }
    }
    Ok(body)
}

/// What a failure on the way means. `error` has no address in it any more.
fn failed(error: &reqwest::Error) -> SendError {
    let mut causes =
        std::iter::successors(std::error::Error::source(error), |error| error.source());
    if causes.any(|cause| cause.is::<Refused>()) {
        return SendError::permanent(Refused.to_string());
    }
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    let cause = causes.last().map_or_else(|| error.to_string(), ToString::to_string);
    let step = match error {
        error if error.is_builder() => {
            return SendError::permanent(format!("cannot make the request: {cause}"));
        }
        error if error.is_timeout() && !error.is_connect() => "no answer in time",
        error if error.is_timeout() => "cannot connect in time",
        error if error.is_connect() => "cannot connect",
        _ => "the connection broke",
    };
    SendError::temporary(format!("{step}: {cause}"))
}
