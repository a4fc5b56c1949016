//! What is stored of a session: a line of JSON for each thing that happened.
//!
//! A reader skips lines that it does not understand, such as one that was cut short by a kill, so an older program
//! can read what a newer one wrote and the other way round.

use std::collections::BTreeMap;

use rmcp::model::{
    CustomNotification, CustomRequest, CustomResult, InitializeRequestParams, JsonRpcError,
    RequestId, ServerJsonRpcMessage, ServerNotification, ServerRequest, ServerResult,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    session::INBOX_LIMIT,
    streams::{CALL_LIMIT, Kind, STANDALONE, STANDALONE_LIMIT},
};

/// How many ended streams stay when what is stored is made shorter.
const OVER_LIMIT: usize = 32;

/// How many subscriptions of a session outlive the program: with the level and one message of the client, its inbox is
/// full when it hears them.
const SUBSCRIPTION_LIMIT: usize = INBOX_LIMIT - 2;

/// What happened. `M` is a message as it is written, or as it is read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record<M> {
    /// The session was opened. The first line.
    Initialize(Box<InitializeRequestParams>),
    /// The client knows the stream of a call.
    Open { stream: u64, request: RequestId },
    /// A message is on a stream.
    Message { stream: u64, number: u64, kind: Kind, message: M },
    /// A stream ended without an answer.
    Cut { stream: u64 },
    /// The client set something: `method` and `params` of its request.
    Setting { method: String, params: Value },
}

impl<M> Record<M> {
    /// The same with the message as `as_read` makes it.
    pub(super) fn map<N>(&self, as_read: impl FnOnce(&M) -> N) -> Record<N> {
        match self {
            Self::Initialize(params) => Record::Initialize(params.clone()),
            Self::Open { stream, request } => {
                Record::Open { stream: *stream, request: request.clone() }
            }
            Self::Message { stream, number, kind, message } => Record::Message {
                stream: *stream,
                number: *number,
                kind: *kind,
                message: as_read(message),
            },
            Self::Cut { stream } => Record::Cut { stream: *stream },
            Self::Setting { method, params } => {
                Record::Setting { method: method.clone(), params: params.clone() }
            }
        }
    }
}

/// A session as it was.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) initialize: InitializeRequestParams,
    pub(super) streams: BTreeMap<u64, StoredStream>,
    /// What the client set, by what it set; the newest counts.
    settings: BTreeMap<String, (String, Value)>,
}

/// A stream as it was.
#[derive(Debug, Default)]
pub(super) struct StoredStream {
    /// The call, where it is the stream of one.
    pub(super) request: Option<RequestId>,
    pub(super) messages: Vec<(u64, Kind, Value)>,
    pub(super) is_over: bool,
}

impl Stored {
    /// Reads the lines of a file; `None` where they begin no session.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut records = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let Record::Initialize(initialize) = records.next()? else { return None };
        let mut stored =
            Self { initialize: *initialize, streams: BTreeMap::new(), settings: BTreeMap::new() };
        records.for_each(|record: Record<Value>| stored.take(record));
        for (number, stream) in &mut stored.streams {
            let limit = if *number == STANDALONE { STANDALONE_LIMIT } else { CALL_LIMIT };
            let surplus = stream.messages.len().saturating_sub(limit);
            stream.messages.drain(..surplus);
        }
        Some(stored)
    }

    fn take(&mut self, record: Record<Value>) {
        match record {
            Record::Initialize(_) => {}
            Record::Open { stream, request } => self.stream(stream).request = Some(request),
            Record::Message { stream, number, kind, message } => {
                let stream = self.stream(stream);
                // A kill may have come between a line and its repetition.
                if stream.messages.last().is_none_or(|(last, ..)| *last < number) {
                    stream.messages.push((number, kind, message));
                }
                stream.is_over |= kind == Kind::Answer;
            }
            Record::Cut { stream } => self.stream(stream).is_over = true,
            Record::Setting { method, params } => self.set(method, params),
        }
    }

    fn stream(&mut self, number: u64) -> &mut StoredStream {
        self.streams.entry(number).or_default()
    }

    fn set(&mut self, method: String, params: Value) {
        let uri = params.get("uri").and_then(Value::as_str).unwrap_or_default();
        if method == "resources/unsubscribe" {
            self.settings.remove(&format!("resources/subscribe {uri}"));
            return;
        }
        let what = format!("{method} {uri}");
        // The level comes on top of the subscriptions.
        let is_known = method != "resources/subscribe" || self.settings.contains_key(&what);
        if is_known || self.settings.len() < SUBSCRIPTION_LIMIT {
            self.settings.insert(what, (method, params));
        }
    }

    /// What the client set, as method and parameters of requests.
    pub(super) fn settings(&self) -> impl Iterator<Item = &(String, Value)> {
        self.settings.values()
    }

    /// The lines that say the same in as few words as possible; of the streams that ended only the newest, and these
    /// only as far as all lines together have at most `limit` bytes.
    ///
    /// The newest stream of all stays: streams are numbered on behind it.
    pub(super) fn shortened(mut self, limit: usize) -> serde_json::Result<Vec<u8>> {
        let newest = self.streams.keys().next_back().copied();
        let over = self.streams.iter().filter(|(_, stream)| stream.is_over).map(|(n, _)| *n);
        let mut over: Vec<_> = over.filter(|number| Some(*number) != newest).collect();
        let mut surplus = over.len().saturating_sub(OVER_LIMIT);
        loop {
            for number in over.drain(..surplus.min(over.len())) {
                self.streams.remove(&number);
            }
            let mut lines = Vec::new();
            for record in self.records() {
                serde_json::to_writer(&mut lines, &record)?;
                lines.push(b'\n');
            }
            if lines.len() <= limit || over.is_empty() {
                return Ok(lines);
            }
            surplus = over.len().div_ceil(2);
        }
    }

    fn records(&self) -> Vec<Record<Value>> {
        let mut records = vec![Record::Initialize(Box::new(self.initialize.clone()))];
        records.extend(self.settings().map(|(method, params)| Record::Setting {
            method: method.clone(),
            params: params.clone(),
        }));
        for (number, stream) in &self.streams {
            let request = stream.request.clone();
            records.extend(request.map(|request| Record::Open { stream: *number, request }));
            records.extend(stream.messages.iter().map(|(n, kind, message)| Record::Message {
                stream: *number,
                number: *n,
                kind: *kind,
                message: message.clone(),
            }));
            let has_answer = stream.messages.iter().any(|(_, kind, _)| *kind == Kind::Answer);
            if stream.is_over && !has_answer {
                records.push(Record::Cut { stream: *number });
            }
        }
        records
    }
}

/// The message that was written as `message`. It keeps the shape in which it was sent, whatever types rmcp has.
pub(super) fn revive(message: Value) -> Option<ServerJsonRpcMessage> {
    let Value::Object(mut fields) = message else { return None };
    let id = || serde_json::from_value::<RequestId>(fields.get("id")?.clone()).ok();
    let id = id();
    // Without any, rmcp would write null, which is no parameters.
    let params = Some(fields.get("params").cloned().unwrap_or_else(|| Value::Object(Map::new())));
    if let Some(method) = fields.get("method").and_then(Value::as_str) {
        return Some(match id {
            Some(id) => {
                let request = CustomRequest::new(method, params);
                ServerJsonRpcMessage::request(ServerRequest::CustomRequest(request), id)
            }
            None => {
                let notification = CustomNotification::new(method, params);
                ServerJsonRpcMessage::notification(ServerNotification::CustomNotification(
                    notification,
                ))
            }
        });
    }
    if let Some(result) = fields.remove("result") {
        let result = ServerResult::CustomResult(CustomResult::new(result));
        return Some(ServerJsonRpcMessage::response(result, id?));
    }
    let error: JsonRpcError = serde_json::from_value(Value::Object(fields)).ok()?;
    Some(ServerJsonRpcMessage::Error(error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const INITIALIZE: &str = r#"{"initialize":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

    fn message(stream: u64, number: u64, kind: &str) -> String {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
        json!({ "message": { "stream": stream, "number": number, "kind": kind, "message": message } })
            .to_string()
    }

    #[test]
    fn lines_that_are_cut_short_or_unknown_are_skipped() {
        let whole = [
            INITIALIZE.to_owned(),
            r#"{"open":{"stream":1,"request":"a"}}"#.to_owned(),
            message(1, 1, "other"),
            r#"{"future":{"stream":1}}"#.to_owned(),
            message(1, 2, "answer"),
        ];
        let text = whole.join("\n");
        for cut in INITIALIZE.len()..=text.len() {
            let stored = Stored::read(text.get(..cut).unwrap()).unwrap();
            let count = stored.streams.get(&1).map_or(0, |stream| stream.messages.len());
            assert!(count <= 2);
            assert_eq!(stored.streams.get(&1).is_some_and(|stream| stream.is_over), count == 2);
        }
        assert!(Stored::read(text.get(1..).unwrap()).is_none());
        assert!(Stored::read("").is_none());
        assert!(Stored::read("\0\n[]").is_none());
    }

    #[test]
    fn the_shortened_form_says_the_same_of_what_is_open() {
        let mut lines = vec![INITIALIZE.to_owned()];
        lines.push(r#"{"open":{"stream":1,"request":1}}"#.to_owned());
        lines.push(message(1, 1, "other"));
        for uri in ["runs://a", "runs://b"] {
            let setting =
                json!({ "setting": { "method": "resources/subscribe", "params": { "uri": uri } } });
            lines.push(setting.to_string());
        }
        let gone = json!({ "setting": { "method": "resources/unsubscribe", "params": { "uri": "runs://a" } } });
        lines.push(gone.to_string());
        for stream in 2..100 {
            lines.push(message(stream, 1, "answer"));
        }
        let stored = Stored::read(&lines.join("\n")).unwrap();
        let shorter = String::from_utf8(stored.shortened(usize::MAX).unwrap()).unwrap();
        assert!(shorter.lines().count() < 50, "{shorter}");
        let again = Stored::read(&shorter).unwrap();
        // The one that is open and the newest of all come on top.
        assert_eq!(again.streams.len(), 2 + OVER_LIMIT);
        assert!(again.streams.contains_key(&99));
        assert_eq!(again.streams[&1].request, Some(RequestId::Number(1)));
        assert_eq!(
            again.settings().map(|(_, params)| params["uri"].clone()).collect::<Vec<_>>(),
            ["runs://b"]
        );
    }

    #[test]
    fn the_shortened_form_drops_the_oldest_streams_that_ended_until_it_is_short_enough() {
        let mut lines = vec![INITIALIZE.to_owned()];
        lines.push(r#"{"open":{"stream":1,"request":1}}"#.to_owned());
        lines.extend((2..20).map(|stream| message(stream, 1, "answer")));
        let text = lines.join("\n");
        let shorter = Stored::read(&text).unwrap().shortened(text.len() / 2).unwrap();
        assert!(shorter.len() <= text.len() / 2);
        let again = Stored::read(&String::from_utf8(shorter).unwrap()).unwrap();
        assert!(again.streams.contains_key(&1) && again.streams.contains_key(&18));
        assert!(!again.streams.contains_key(&2));
        let shortest = Stored::read(&text).unwrap().shortened(0).unwrap();
        let again = Stored::read(&String::from_utf8(shortest).unwrap()).unwrap();
        assert_eq!(again.streams.into_keys().collect::<Vec<_>>(), [1, 19]);
    }

    #[test]
    fn only_so_many_subscriptions_are_kept_and_the_level_always() {
        let mut stored = Stored::read(INITIALIZE).unwrap();
        for n in 0..10 * INBOX_LIMIT {
            stored.set("resources/subscribe".to_owned(), json!({ "uri": format!("runs://{n}") }));
        }
        stored.set("logging/setLevel".to_owned(), json!({ "level": "error" }));
        assert_eq!(stored.settings().count(), SUBSCRIPTION_LIMIT + 1);
        stored.set("logging/setLevel".to_owned(), json!({ "level": "debug" }));
        let (method, params) = stored.settings().next().unwrap();
        assert_eq!((method.as_str(), &params["level"]), ("logging/setLevel", &json!("debug")));
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        for message in [
            json!({ "jsonrpc": "2.0", "id": 7, "result": { "content": [], "odd": { "x": 1 } } }),
            json!({ "jsonrpc": "2.0", "id": "a", "error": { "code": -32603, "message": "m", "data": 1 } }),
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": 1, "progress": 0.5 } }),
            json!({ "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": { "message": "m" } }),
        ] {
            let revived = revive(message.clone()).unwrap();
            assert_eq!(serde_json::to_value(&revived).unwrap(), message);
        }
        let bare = json!({ "jsonrpc": "2.0", "method": "notifications/resources/list_changed" });
        let revived = serde_json::to_value(revive(bare).unwrap()).unwrap();
        assert_eq!(revived["params"], json!({}), "null would be no parameters");
        assert!(revive(json!([])).is_none());
        assert!(revive(json!({ "jsonrpc": "2.0" })).is_none());
    }
}
