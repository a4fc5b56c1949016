//! A session as it goes on after the program was started again.

use std::sync::Arc;

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage};
use serde_json::json;
use tokio::time::Instant;

use super::{
    failures,
    session::INBOX_LIMIT,
    stored::{self, Record, Stored},
    streams::{STANDALONE, Streams},
};

/// The longest parameters of a setting, in bytes as JSON, that are stored.
const SETTING_LIMIT: usize = 4 * 1024;

/// The request that sets something, if `request` does.
pub(super) fn setting(request: &ClientRequest) -> Option<Record<Arc<ServerJsonRpcMessage>>> {
    let params = match request {
        ClientRequest::SetLevelRequest(request) => serde_json::to_value(&request.params),
        ClientRequest::SubscribeRequest(request) => serde_json::to_value(&request.params),
        ClientRequest::UnsubscribeRequest(request) => serde_json::to_value(&request.params),
        _ => return None,
    };
    let mut params = params.ok()?;
    // It is about this request only, such as the token of its progress.
    params.as_object_mut()?.remove("_meta");
    (params.to_string().len() <= SETTING_LIMIT)
        .then(|| Record::Setting { method: request.method().to_owned(), params })
}

/// The streams of a stored session, and what its client had set, as requests.
pub(super) fn restore(
    stored: Stored,
) -> (Streams<Arc<ServerJsonRpcMessage>>, Vec<ClientJsonRpcMessage>) {
    let settings = stored.settings().enumerate().filter_map(|(index, (method, params))| {
        // Nobody waits for their answers, which belong to no open call.
        let id = format!("deskbell-restores-{index}");
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        serde_json::from_value(request).ok()
    });
    let settings = settings.take(INBOX_LIMIT - 1).collect();
    let (mut streams, now) = (Streams::new(), Instant::now());
    let mut stored = stored.streams;
    // It is there from the beginning, and goes on with other numbers.
    stored.entry(STANDALONE).or_default();
    for (number, stream) in stored {
        let open = stream.request.filter(|_| !stream.is_over);
        let interruption = open.map(|request| Arc::new(failures::interruption(request)));
        let messages = stream.messages.into_iter().filter_map(|(number, kind, message)| {
            Some((number, kind, Arc::new(stored::revive(message)?)))
        });
        streams.restore(number, messages, interruption, now);
    }
    (streams, settings)
}
