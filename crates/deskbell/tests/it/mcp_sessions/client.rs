//! A plain HTTP client of a server on this machine, whose connections can be cut.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::{
    io::{BufRead as _, BufReader, Read},
    path::Path,
    sync::Arc,
};

use deskbell::mcp::http::{Limits, router_within};
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Runtime};
use tokio_util::sync::CancellationToken;

use super::talker::Talker;
use crate::mcp_app::Parts;

const BOTH: &str = "application/json, text/event-stream";

/// A [`Talker`] behind our endpoints.
pub(super) struct Served {
    pub(super) url: String,
    pub(super) talker: Talker,
    _parts: Parts,
    _runtime: Runtime,
}

/// One event of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Event {
    pub(super) id: Option<String>,
    pub(super) retry: Option<String>,
    /// `None` for an event that only has an id.
    pub(super) message: Option<Value>,
}

impl Event {
    pub(super) fn is_answer(&self) -> bool {
        self.message.as_ref().is_some_and(|message| message.get("method").is_none())
    }
}

/// The events of a response; its connection is cut when it is dropped.
pub(super) struct Events(Box<dyn Iterator<Item = String>>);

impl Events {
    fn new(reader: impl Read + 'static) -> Self {
        Self(Box::new(BufReader::new(reader).lines().map_while(Result::ok)))
    }

    pub(super) fn lines(self) -> impl Iterator<Item = String> {
        self.0
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let mut event = Event::default();
        loop {
            let line = self.0.next()?;
            match line.split_once(':').map(|(name, value)| (name, value.trim())) {
                Some(("id", id)) => event.id = Some(id.to_owned()),
                Some(("retry", retry)) => event.retry = Some(retry.to_owned()),
                Some(("data", "") | ("", _)) => {}
                Some(("data", data)) => event.message = serde_json::from_str(data).unwrap(),
                None if line.is_empty() => {
                    if event != Event::default() {
                        return Some(event);
                    }
                }
                None if line == "data" => {}
                _ => panic!("no line of a stream: {line:?}"),
            }
        }
    }
}

type Response = http::Response<ureq::Body>;

impl Served {
    pub(super) fn new(limits: Limits) -> Self {
        Self::storing(limits, None)
    }

    /// A server that stores its sessions in `folder`.
    pub(super) fn storing(limits: Limits, folder: Option<&Path>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.unwrap();
        let _inside = runtime.enter();
        let parts = Parts::with_channels(&[]);
        let talker = Talker::new();
        let tool = talker.clone();
        let stop = CancellationToken::new();
        let router = router_within(
            Arc::clone(&parts.app),
            stop,
            limits,
            folder.map(Into::into),
            move |_door| tool.clone(),
        );
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { url, talker, _parts: parts, _runtime: runtime }
    }

    fn request(
        &self,
        method: &str,
        session: Option<&str>,
        last_event_id: Option<&str>,
        body: Option<&Value>,
    ) -> Response {
        // A connection for each request, so that dropping a response cuts it.
        let config = ureq::Agent::config_builder().http_status_as_error(false);
        let agent = ureq::Agent::new_with_config(config.max_idle_connections(0).build());
        let mut request = http::Request::builder()
            .method(method)
            .uri(&self.url)
            .header("accept", BOTH)
            .header("content-type", "application/json");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(id) = last_event_id {
            let id = http::HeaderValue::from_bytes(id.as_bytes()).unwrap();
            request = request.header("last-event-id", id);
        }
        match body {
            Some(body) => agent.run(request.body(body.to_string()).unwrap()).unwrap(),
            None => agent.run(request.body(()).unwrap()).unwrap(),
        }
    }

    /// Opens a session: its id, or the status and body of the refusal.
    fn initialize_with(&self, revision: &str) -> Result<String, (u16, Value)> {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": { "name": "test-client", "version": "1" },
        });
        let message =
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let mut response = self.request("POST", None, None, Some(&message));
        let body = response.body_mut().read_to_string().unwrap();
        let status = response.status().as_u16();
        if status != 200 {
            assert_eq!(response.headers()["retry-after"], "60");
            return Err((status, serde_json::from_str(&body).unwrap()));
        }
        Ok(response.headers()["mcp-session-id"].to_str().unwrap().to_owned())
    }

    pub(super) fn initialize(&self) -> Result<String, (u16, Value)> {
        self.initialize_with("2025-11-25")
    }

    pub(super) fn open_with(&self, revision: &str) -> String {
        let session = self.initialize_with(revision).unwrap();
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.send(&session, &initialized), 202);
        session
    }

    pub(super) fn open(&self) -> String {
        self.open_with("2025-11-25")
    }

    /// Sends a notification and gives the status.
    pub(super) fn send(&self, session: &str, message: &Value) -> u16 {
        self.request("POST", Some(session), None, Some(message)).status().as_u16()
    }

    /// Sends a request and gives the events of its stream, or the answer in JSON as the only one.
    #[track_caller]
    pub(super) fn post(&self, session: &str, message: &Value) -> Events {
        let response = self.request("POST", Some(session), None, Some(message));
        assert_eq!(response.status(), 200);
        let is_stream = response.headers()["content-type"] == "text/event-stream";
        let mut body = response.into_body();
        if is_stream {
            return Events::new(body.into_reader());
        }
        let answer = body.read_to_string().unwrap();
        Events(Box::new([format!("data: {answer}"), String::new()].into_iter()))
    }

    /// The status of a ping.
    pub(super) fn status(&self, session: &str) -> u16 {
        let ping = json!({ "jsonrpc": "2.0", "id": "ping", "method": "ping" });
        self.request("POST", Some(session), None, Some(&ping)).status().as_u16()
    }

    pub(super) fn listen(&self, session: &str) -> Result<Events, (u16, Value)> {
        events(self.request("GET", Some(session), None, None))
    }

    pub(super) fn resume(&self, session: &str, id: &str) -> Result<Events, (u16, Value)> {
        events(self.request("GET", Some(session), Some(id), None))
    }

    pub(super) fn delete(&self, session: &str) -> u16 {
        self.request("DELETE", Some(session), None, None).status().as_u16()
    }
}

fn events(mut response: Response) -> Result<Events, (u16, Value)> {
    let status = response.status().as_u16();
    if status == 200 {
        return Ok(Events::new(response.into_body().into_reader()));
    }
    let body = response.body_mut().read_to_string().unwrap();
    Err((status, serde_json::from_str(&body).unwrap()))
}
