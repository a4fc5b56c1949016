//! What holds for a session between its client and its service loop.

use futures_util::{FutureExt as _, pin_mut};
use serde_json::{Value, json};

use super::*;
use crate::mcp::sessions::folder::Folder;

const ID: &str = "6f1f36a3-3f0f-4a5c-9c43-0a53b4f1a001";

fn client(message: Value) -> ClientJsonRpcMessage {
    serde_json::from_value(message).unwrap()
}

fn request(id: u64, method: &str, params: &Value) -> ClientJsonRpcMessage {
    client(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

fn note() -> ClientJsonRpcMessage {
    client(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
}

#[tokio::test]
async fn what_waited_for_a_place_while_its_session_ended_is_refused_and_not_run() {
    let (session, mut messages) = Session::new(&ID.into(), None, None);
    for _ in 0..INBOX_LIMIT {
        session.accept(note()).await.unwrap();
    }
    let call = session.call(request(1, "ping", &json!({})));
    let accept = session.accept(note());
    pin_mut!(call, accept);
    assert!(call.as_mut().now_or_never().is_none() && accept.as_mut().now_or_never().is_none());
    session.end();
    let mut count = 0;
    while messages.try_recv().is_ok() {
        count += 1;
    }
    assert!(call.await.is_err() && accept.await.is_err());
    assert_eq!((count, messages.recv().await.is_none()), (INBOX_LIMIT, true));
}

#[tokio::test]
async fn a_session_in_use_makes_no_room_and_an_idle_one_ends_at_once() {
    let (session, _messages) = Session::new(&ID.into(), None, None);
    let reader = session.call(request(1, "ping", &json!({}))).await.unwrap();
    let later = Instant::now() + Duration::from_secs(60);
    assert!(!session.make_room() && !session.age(later, Duration::ZERO, Duration::ZERO));
    session.append(
        serde_json::from_value(json!({ "jsonrpc": "2.0", "id": 1, "result": {} })).unwrap(),
    );
    drop(reader);
    assert!(session.age(later, Duration::ZERO, Duration::ZERO) && session.is_ending());
}

#[tokio::test]
async fn a_setting_is_stored_when_its_call_has_succeeded_and_never_when_it_failed_row_24() {
    let folder = tempfile::tempdir().unwrap();
    let now = std::time::SystemTime::UNIX_EPOCH;
    let folder = Folder::open(folder.path().to_owned(), now, Duration::from_secs(60), 1).unwrap();
    let shelf = folder.shelf(ID).unwrap();
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "c", "version": "1" } });
    shelf.put(Record::Initialize(serde_json::from_value(params).unwrap()));
    let (session, _messages) = Session::new(&ID.into(), Some(shelf), None);
    let mut readers = Vec::new();
    for (id, uri) in [(1, "runs://good"), (2, "runs://bad"), (3, "runs://open")] {
        let subscribe = request(id, "resources/subscribe", &json!({ "uri": uri }));
        readers.push(session.call(subscribe).await.unwrap());
    }
    for answer in [
        json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
        json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32002, "message": "no" } }),
    ] {
        session.append(serde_json::from_value(answer).unwrap());
    }
    let stored = folder.read(ID).await.unwrap();
    let uris: Vec<_> = stored.settings().map(|(_, params)| params["uri"].clone()).collect();
    assert_eq!(uris, ["runs://good"]);
}
