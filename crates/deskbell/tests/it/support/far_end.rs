//! A real HTTP server that stands for a far end: it keeps what it got and answers as it is told.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, Response, Uri},
};
use serde_json::Value;
use tokio::{net::TcpListener, runtime::Runtime};

use super::until;

/// A request as the far end got it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

/// How the far end answers.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) delay: Duration,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: "{}".to_owned(), delay: Duration::ZERO }
    }

    pub(crate) fn after(delay: Duration) -> Self {
        Self { delay, ..Self::status(200) }
    }
}

type Script = dyn Fn(usize, &Request) -> Reply + Send + Sync;

/// The server. It ends with its value.
pub(crate) struct FarEnd {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    _runtime: Runtime,
}

#[derive(Clone)]
struct Shared {
    requests: Arc<Mutex<Vec<Request>>>,
    script: Arc<Script>,
}

impl FarEnd {
    /// A far end that takes everything.
    pub(crate) fn start() -> Self {
        Self::answering(|_, _| Reply::status(200))
    }

    /// A far end that answers as `script` says for the number of the request, counted from 0, and the request.
    pub(crate) fn answering(
        script: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let shared = Shared { requests: Arc::clone(&requests), script: Arc::new(script) };
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = axum::Router::new().fallback(receive).with_state(shared);
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { url, requests, _runtime: runtime }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// What it got so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Counts what it got so far, from any thread.
    pub(crate) fn counter(&self) -> impl Fn() -> usize + Send + 'static {
        let requests = Arc::clone(&self.requests);
        move || requests.lock().unwrap().len()
    }

    /// Waits until it got at least `count` requests.
    #[track_caller]
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Request> {
        until(&format!("{count} requests at the far end"), || {
            let requests = self.requests();
            (requests.len() >= count).then_some(requests)
        })
    }
}

async fn receive(
    State(shared): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let request = Request {
        method,
        path: uri.to_string(),
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    let number = {
        let mut requests = shared.requests.lock().unwrap();
        requests.push(request.clone());
        requests.len() - 1
    };
    let reply = (shared.script)(number, &request);
    tokio::time::sleep(reply.delay).await;
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(reply.body)).unwrap()
}
