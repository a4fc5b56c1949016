//! The open calls of one session, and on which stream a message of the server belongs.

use std::collections::HashMap;

use rmcp::{
    model::{
        ClientJsonRpcMessage, GetExtensions as _, GetMeta as _, ProgressToken, RequestId,
        ServerJsonRpcMessage, ServerNotification,
    },
    service::OriginatingRequestId,
};

use super::streams::{Kind, STANDALONE};

/// How many calls of one session may be open at once.
pub(super) const OPEN_LIMIT: usize = 1024;

/// How many questions of the server to its client are remembered with their streams.
const ASKED_LIMIT: usize = 1024;

/// The open calls.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: HashMap<RequestId, Call>,
    by_token: HashMap<ProgressToken, u64>,
    /// The streams on which the server asked its client something that is not answered yet.
    asked: HashMap<RequestId, u64>,
}

#[derive(Debug)]
struct Call {
    stream: u64,
    token: Option<ProgressToken>,
}

/// Where a message of the server goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) stream: u64,
    pub(super) kind: Kind,
}

/// Why a call cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// A call with this id is open.
    InFlight,
    /// There are [`OPEN_LIMIT`] of them.
    TooMany,
}

impl Calls {
    /// How many are open.
    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    /// Whether the call in `message` may be opened.
    pub(super) fn check(&self, id: &RequestId) -> Result<(), Refused> {
        if self.open.contains_key(id) {
            return Err(Refused::InFlight);
        }
        if self.open.len() >= OPEN_LIMIT {
            return Err(Refused::TooMany);
        }
        Ok(())
    }

    /// Opens the call in `message`, whose own stream is `stream`.
    pub(super) fn open(&mut self, message: &ClientJsonRpcMessage, stream: u64) {
        let ClientJsonRpcMessage::Request(request) = message else { return };
        let token = request.request.get_meta().get_progress_token();
        if let Some(token) = &token {
            self.by_token.insert(token.clone(), stream);
        }
        self.open.insert(request.id.clone(), Call { stream, token });
    }

    /// Ends a call, and gives its stream.
    pub(super) fn end(&mut self, id: &RequestId) -> Option<u64> {
        let Call { stream, token } = self.open.remove(id)?;
        if let Some(token) = token
            && self.by_token.get(&token) == Some(&stream)
        {
            self.by_token.remove(&token);
        }
        self.asked.retain(|_, asked| *asked != stream);
        Some(stream)
    }

    /// Takes note that the client answered a question of the server.
    pub(super) fn answered(&mut self, id: &RequestId) {
        self.asked.remove(id);
    }

    /// Where `message` of the server goes; `None` for what belongs to a call that has ended.
    ///
    /// Ends the call that it answers.
    pub(super) fn route(&mut self, message: &ServerJsonRpcMessage) -> Option<Route> {
        match message {
            ServerJsonRpcMessage::Response(response) => self.answer(&response.id),
            ServerJsonRpcMessage::Error(error) => self.answer(error.id.as_ref()?),
            ServerJsonRpcMessage::Request(request) => {
                let origin = request.request.extensions().get::<OriginatingRequestId>();
                let stream = self.stream_of(origin).unwrap_or(STANDALONE);
                if self.asked.len() < ASKED_LIMIT {
                    self.asked.insert(request.id.clone(), stream);
                }
                Some(Route { stream, kind: Kind::Other })
            }
            ServerJsonRpcMessage::Notification(notification) => {
                self.route_notification(&notification.notification)
            }
        }
    }

    fn answer(&mut self, id: &RequestId) -> Option<Route> {
        self.end(id).map(|stream| Route { stream, kind: Kind::Answer })
    }

    fn route_notification(&self, notification: &ServerNotification) -> Option<Route> {
        let origin = self.stream_of(notification.extensions().get::<OriginatingRequestId>());
        let route = |stream, kind| Some(Route { stream, kind });
        match notification {
            // After its call's answer it would break the promise that the answer is the last.
            ServerNotification::ProgressNotification(progress) => {
                let by_token = || self.by_token.get(&progress.params.progress_token).copied();
                route(origin.or_else(by_token)?, Kind::Progress)
            }
            ServerNotification::CancelledNotification(cancelled) => {
                let asked = cancelled.params.request_id.as_ref();
                let asked = asked.and_then(|id| self.asked.get(id)).copied();
                route(origin.or(asked).unwrap_or(STANDALONE), Kind::Other)
            }
            _ => route(origin.unwrap_or(STANDALONE), Kind::Other),
        }
    }

    fn stream_of(&self, origin: Option<&OriginatingRequestId>) -> Option<u64> {
        origin.and_then(|OriginatingRequestId(id)| self.open.get(id)).map(|call| call.stream)
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ServerRequest;
    use serde_json::{Value, json};

    use super::*;

    fn client(message: Value) -> ClientJsonRpcMessage {
        serde_json::from_value(message).unwrap()
    }

    fn server(message: Value) -> ServerJsonRpcMessage {
        serde_json::from_value(message).unwrap()
    }

    fn call(id: &Value, token: Option<&str>) -> ClientJsonRpcMessage {
        let mut params = json!({ "name": "notify", "arguments": {} });
        if let Some(token) = token {
            params["_meta"] = json!({ "progressToken": token });
        }
        client(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
    }

    fn progress(token: &str) -> ServerJsonRpcMessage {
        server(json!({
            "jsonrpc": "2.0", "method": "notifications/progress",
            "params": { "progressToken": token, "progress": 1 }
        }))
    }

    fn log() -> ServerJsonRpcMessage {
        server(json!({
            "jsonrpc": "2.0", "method": "notifications/message",
            "params": { "level": "info", "data": "d" }
        }))
    }

    fn from_call(mut message: ServerJsonRpcMessage, id: i64) -> ServerJsonRpcMessage {
        let origin = OriginatingRequestId(RequestId::Number(id));
        let extensions = match &mut message {
            ServerJsonRpcMessage::Notification(message) => message.notification.extensions_mut(),
            ServerJsonRpcMessage::Request(message) => message.request.extensions_mut(),
            other => panic!("{other:?} comes from no call"),
        };
        extensions.insert(origin);
        message
    }

    fn answer(id: i64) -> ServerJsonRpcMessage {
        server(json!({ "jsonrpc": "2.0", "id": id, "result": {} }))
    }

    #[test]
    fn what_belongs_to_a_call_goes_on_its_stream_until_its_answer_row_54() {
        let mut calls = Calls::default();
        calls.open(&call(&json!(1), Some("a")), 11);
        calls.open(&call(&json!("1"), Some("b")), 12);
        let stream = |calls: &mut Calls, message: &ServerJsonRpcMessage| {
            calls.route(message).map(|route| route.stream)
        };
        assert_eq!(stream(&mut calls, &progress("a")), Some(11));
        assert_eq!(stream(&mut calls, &progress("b")), Some(12));
        assert_eq!(stream(&mut calls, &progress("c")), None);
        assert_eq!(stream(&mut calls, &from_call(log(), 1)), Some(11));
        assert_eq!(stream(&mut calls, &log()), Some(STANDALONE));
        let ended = calls.route(&answer(1)).unwrap();
        assert_eq!((ended.stream, ended.kind), (11, Kind::Answer));
        assert_eq!(stream(&mut calls, &answer(1)), None);
        assert_eq!(stream(&mut calls, &progress("a")), None);
        assert_eq!(stream(&mut calls, &from_call(log(), 1)), Some(STANDALONE));
        assert_eq!(calls.count(), 1);
    }

    #[test]
    fn a_question_and_its_withdrawal_go_on_the_stream_of_the_call_that_asks() {
        let mut calls = Calls::default();
        calls.open(&call(&json!(1), None), 11);
        let ping = ServerJsonRpcMessage::request(
            ServerRequest::PingRequest(Default::default()),
            RequestId::Number(5),
        );
        assert_eq!(calls.route(&from_call(ping, 1)).unwrap().stream, 11);
        let cancelled = server(json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 }
        }));
        assert_eq!(calls.route(&cancelled).unwrap().stream, 11);
        calls.answered(&RequestId::Number(5));
        assert_eq!(calls.route(&cancelled).unwrap().stream, STANDALONE);
    }

    #[test]
    fn an_id_that_is_in_flight_is_refused_and_the_open_call_goes_on() {
        let mut calls = Calls::default();
        calls.open(&call(&json!(1), None), 11);
        assert_eq!(calls.check(&RequestId::Number(1)), Err(Refused::InFlight));
        assert_eq!(calls.check(&RequestId::String("1".into())), Ok(()));
        for id in 2..=OPEN_LIMIT {
            calls.open(&call(&json!(id), None), 11 + id as u64);
        }
        assert_eq!(calls.check(&RequestId::Number(-1)), Err(Refused::TooMany));
        assert_eq!(calls.route(&answer(1)).unwrap().stream, 11);
    }

    #[test]
    fn a_token_that_is_used_twice_belongs_to_the_newer_call() {
        let mut calls = Calls::default();
        calls.open(&call(&json!(1), Some("a")), 11);
        calls.open(&call(&json!(2), Some("a")), 12);
        calls.route(&answer(1));
        assert_eq!(calls.route(&progress("a")).unwrap().stream, 12);
    }
}
