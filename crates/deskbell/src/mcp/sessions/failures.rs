//! What goes wrong in a session, as its client hears it.

use std::sync::{Arc, Weak};

use rmcp::{
    ErrorData,
    model::{
        ClientRequest, CustomNotification, GetExtensions as _, JsonRpcRequest, RequestId,
        ServerJsonRpcMessage, ServerNotification,
    },
};
use serde_json::json;
use tracing::warn;

use super::{
    calls::{OPEN_LIMIT, Refused},
    session::Session,
    streams::Unresumable,
};

/// Why a stream is not resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mcp) enum NotResumed {
    /// The text is no event id.
    NoId,
    /// The id is of another session.
    OtherSession,
    /// The event has not been sent.
    NeverSent,
    /// The stream ended and is no longer kept.
    Forgotten,
}

impl From<Unresumable> for NotResumed {
    fn from(unresumable: Unresumable) -> Self {
        match unresumable {
            Unresumable::NeverSent => Self::NeverSent,
            Unresumable::Forgotten => Self::Forgotten,
        }
    }
}

impl From<Refused> for ErrorData {
    fn from(refused: Refused) -> Self {
        let text = match refused {
            Refused::InFlight => "a request with this id is open".to_owned(),
            Refused::TooMany => format!("at most {OPEN_LIMIT} requests may be open in a session"),
        };
        Self::invalid_request(text, None)
    }
}

/// What a reader gets in the place of messages that were dropped.
pub(super) fn loss(count: u64) -> ServerJsonRpcMessage {
    let params = json!({
        "level": "warning",
        "logger": "deskbell",
        "data": { "text": format!("{count} messages were dropped"), "dropped": count },
    });
    let note = CustomNotification::new("notifications/message", Some(params));
    ServerJsonRpcMessage::notification(ServerNotification::CustomNotification(note))
}

/// The answer of a call that was open when the program ended.
pub(super) fn interruption(request: RequestId) -> ServerJsonRpcMessage {
    let text = "the server was started again before it answered; what the call did is not known";
    ServerJsonRpcMessage::error(ErrorData::internal_error(text, None), Some(request))
}

/// Goes with a call to its handler. rmcp gives no answer for a handler that panics; this one does.
struct Unanswered {
    session: Weak<Session>,
    id: RequestId,
}

/// Has the call in `request` answered even if its handler panics.
pub(super) fn watch(session: Weak<Session>, request: &mut JsonRpcRequest<ClientRequest>) {
    let unanswered = Unanswered { session, id: request.id.clone() };
    request.request.extensions_mut().insert(Arc::new(unanswered));
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(session) = self.session.upgrade()
        {
            warn!("a handler of an MCP call panicked");
            let error = ErrorData::internal_error("the call failed inside the server", None);
            session.append(ServerJsonRpcMessage::error(error, Some(self.id.clone())));
        }
    }
}
