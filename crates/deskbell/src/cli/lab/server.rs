//! The HTTP server of the lab.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, Method, Response, StatusCode, Uri, header},
};
use deskbell_channels::lab::{Answer, Asked, Fake, Mishap, Outcome};
use deskbell_core::clock::Clock as _;
use serde::Serialize;
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use crate::app::SystemClock;

/// How many requests are remembered; the oldest go.
const SEEN_LIMIT: usize = 200_000;

/// The largest body that a fake takes, in bytes: one with files in it.
const BODY_LIMIT: usize = 64 * 1024 * 1024;

/// How long a fake that hangs does so.
const HANG: Duration = Duration::from_hours(1);

/// One in so many requests meets each of the mishaps of `mixed`.
const MIXED: u64 = 60;

/// What a request came to.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Seen {
    /// Counted from 1; a message that is edited keeps its number in `GET /`.
    pub(super) number: usize,
    pub(super) kind: String,
    /// Whether the message is there now.
    pub(super) taken: bool,
    /// What became of it, in words.
    pub(super) outcome: String,
    /// The fake's id of the message.
    pub(super) id: Option<String>,
    /// How often it was edited.
    pub(super) edits: usize,
    pub(super) title: Option<String>,
    pub(super) text: Option<String>,
}

/// The fakes and what they got.
pub(super) struct Lab {
    state: Mutex<Shown>,
    arrived: UnboundedSender<Seen>,
}

struct Shown {
    fakes: Vec<Fake>,
    seen: VecDeque<Seen>,
    count: usize,
    /// The state of what looks random: the same in every lab.
    chance: u64,
}

/// How a request is to be answered.
enum Reply {
    Answer(Answer),
    Listed(String),
    Hang,
    Close,
    Unknown,
}

impl Lab {
    /// A lab, and what arrives at it.
    pub(super) fn new(fakes: Vec<Fake>) -> (Self, UnboundedReceiver<Seen>) {
        let (arrived, arriving) = unbounded_channel();
        let shown = Shown { fakes, seen: VecDeque::new(), count: 0, chance: 0x9e37_79b9_7f4a_7c15 };
        (Self { state: Mutex::new(shown), arrived }, arriving)
    }

    fn reply(&self, method: &Method, uri: &Uri, headers: &HeaderMap, body: &str) -> Reply {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if uri.path() == "/" && method == Method::GET {
            return Reply::Listed(json!({ "messages": state.seen }).to_string());
        }
        let (reply, seen) = state.reply(method, uri, headers, body);
        if let Some(seen) = seen {
            // Nobody looks any more when the lab ends.
            drop(self.arrived.send(seen));
        }
        reply
    }
}

impl Shown {
    fn reply(
        &mut self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: &str,
    ) -> (Reply, Option<Seen>) {
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let (mut word, mut rest) = (None, target.trim_start_matches('/'));
        if let Some((first, behind)) = rest.split_once('/')
            && (first == "mixed" || Mishap::of(first).is_some())
        {
            (word, rest) = (Some(first.to_owned()), behind);
        }
        if let Some(query) = uri.query() {
            let asked = query.split('&').find_map(|pair| pair.strip_prefix("lab="));
            word = asked.map(str::to_owned).or(word);
        }
        let names: Vec<String> = headers.keys().map(ToString::to_string).collect();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (name, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let named = self.fakes.iter().position(|fake| fake.kind.about.name == name);
        let asked = Asked::new(method.as_str(), behind, names, body);
        let mishap = word.and_then(|word| self.mishap(&word));
        let Some(fake) = named.and_then(|fake| self.fakes.get_mut(fake)) else {
            return (Reply::Unknown, None);
        };
        let told = fake.told(&asked);
        let answer = fake.answer(&asked, mishap, SystemClock.now());
        let (taken, outcome, id) = match &answer.outcome {
            Outcome::Taken(id) => (true, "taken".to_owned(), Some(id.clone())),
            Outcome::Edited(id) => (true, format!("took the place of {id}"), Some(id.clone())),
            Outcome::Passed => (false, "a step before the message".to_owned(), None),
            Outcome::Refused(reason) => {
                let word = mishap.map_or("refused", Mishap::as_str);
                (false, format!("{word}: {reason}"), None)
            }
        };
        let kind = fake.kind.about.name.to_owned();
        self.count += 1;
        let (title, text) = (told.title, told.text);
        let seen = Seen { number: self.count, kind, taken, outcome, id, edits: 0, title, text };
        self.keep(seen.clone());
        let reply = match mishap {
            Some(Mishap::Hang) => Reply::Hang,
            Some(Mishap::Close) => Reply::Close,
            _ => Reply::Answer(answer),
        };
        (reply, Some(seen))
    }

    /// Keeps what was seen; an edit takes the place of the message.
    fn keep(&mut self, seen: Seen) {
        let is_earlier =
            |one: &&mut Seen| one.kind == seen.kind && one.id == seen.id && seen.id.is_some();
        if seen.taken
            && seen.outcome != "taken"
            && let Some(earlier) = self.seen.iter_mut().find(is_earlier)
        {
            *earlier = Seen { number: earlier.number, edits: earlier.edits + 1, ..seen };
            return;
        }
        if self.seen.len() >= SEEN_LIMIT {
            self.seen.pop_front();
        }
        self.seen.push_back(seen);
    }

    fn mishap(&mut self, word: &str) -> Option<Mishap> {
        if word != "mixed" {
            return Mishap::of(word);
        }
        // xorshift64: mixed enough for a lab.
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        let at = usize::try_from(self.chance % MIXED).unwrap_or(usize::MAX);
        Mishap::ALL.get(at).copied()
    }
}

/// Serves the lab until the task is ended.
pub(super) async fn serve(listener: TcpListener, lab: Arc<Lab>) -> io::Result<()> {
    let router = Router::new().fallback(receive).layer(DefaultBodyLimit::max(BODY_LIMIT));
    axum::serve(listener, router.with_state(lab)).await
}

async fn receive(
    State(lab): State<Arc<Lab>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let body = match headers.contains_key(header::CONTENT_ENCODING) {
        true => format!("[{} sealed bytes]", body.len()).into(),
        false => String::from_utf8_lossy(&body),
    };
    let json = |body: String| {
        let mut response = Response::new(Body::from(body));
        let kind = header::HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    };
    match lab.reply(&method, &uri, &headers, &body) {
        Reply::Listed(list) => json(list),
        Reply::Answer(answer) => {
            let mut response = json(answer.body);
            if let Some(seconds) = answer.retry_after {
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            *response.status_mut() =
                StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            response
        }
        Reply::Hang => {
            tokio::time::sleep(HANG).await;
            Response::new(Body::empty())
        }
        Reply::Close => {
            let broken = io::Error::from(io::ErrorKind::ConnectionAborted);
            let parts = [Ok(Bytes::from_static(b"{")), Err(broken)];
            Response::new(Body::from_stream(futures_util::stream::iter(parts)))
        }
        Reply::Unknown => {
            let mut response = json("{}".to_owned());
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        }
    }
}
