//! Sessions whose server is started again.

use std::{fs, time::Duration};

use deskbell::mcp::http::Limits;
use serde_json::{Value, json};

use super::{call, client::Served, said, talker::steps};
use crate::support::{Answer, Desk, until};

fn served(folder: &tempfile::TempDir) -> Served {
    Served::storing(Limits::default(), Some(folder.path()))
}

#[test]
fn a_call_that_ended_is_resumed_after_a_restart_from_any_event_row_54() {
    const STEPS: u64 = 3;
    let folder = tempfile::tempdir().unwrap();
    let mut server = served(&folder);
    let session = server.open();
    let mut expected = steps(STEPS);
    expected.push("answer 1".to_owned());
    let call = call(1, "steps", &json!({ "count": STEPS }));
    let events: Vec<_> = server.post(&session, &call).collect();
    assert_eq!(said(&events), expected);
    for event in &events {
        drop(server);
        server = served(&folder);
        let id = event.id.clone().unwrap();
        let rest: Vec<_> = server.resume(&session, &id).unwrap().collect();
        let seen = events.iter().position(|seen| seen == event).unwrap() + 1;
        assert_eq!(rest, events.get(seen..).unwrap(), "after {seen} events");
    }
}

#[test]
fn a_call_that_was_open_at_a_restart_is_answered_with_what_became_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = served(&folder);
    let session = server.open();
    let mut events = server.post(&session, &call(1, "hold", &json!({})));
    let priming = events.next().unwrap().id.unwrap();
    server.talker.until_started(1);
    drop((events, server));

    let server = served(&folder);
    let answer = server.resume(&session, &priming).unwrap().last().unwrap();
    let message = answer.message.unwrap();
    assert_eq!((&message["id"], &message["error"]["code"]), (&json!(1), &json!(-32603)));
    let text = message["error"]["message"].as_str().unwrap();
    assert!(text.contains("started again before it answered"), "{text}");
    let events: Vec<_> = server.post(&session, &call(1, "steps", &json!({ "count": 2 }))).collect();
    assert_eq!(said(&events).last().unwrap(), "answer 1");
    assert_ne!(events.first().unwrap().id.as_ref(), Some(&priming), "ids are not used again");
}

#[test]
fn a_session_that_was_deleted_or_was_idle_for_too_long_does_not_come_back_row_58() {
    let folder = tempfile::tempdir().unwrap();
    let idle = Duration::from_millis(200);
    let server = Served::storing(Limits { idle, ..Limits::default() }, Some(folder.path()));
    let files = || fs::read_dir(folder.path()).unwrap().count();
    let (deleted, idle) = (server.open(), server.open());
    assert_eq!(server.delete(&deleted), 204);
    assert_eq!(server.status(&deleted), 404);
    until("both to be forgotten", || (files() == 0).then_some(()));
    assert_eq!(server.status(&idle), 404);
    drop(server);
    let server = served(&folder);
    for session in [deleted.as_str(), &idle, "../journal", "00000000-0000-4000-8000-000000000000"] {
        assert_eq!(server.status(session), 404, "{session}");
    }
}

/// Sends `message` to the program of `desk`, in `session` if there is one.
fn post(desk: &Desk, session: Option<&str>, message: &Value) -> Answer {
    let mut headers = vec![
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
    ];
    headers.extend(session.map(|session| ("mcp-session-id", session)));
    desk.request("POST", "/mcp", &headers, Some(&message.to_string()))
}

/// Opens a session with the program of `desk`.
fn open(desk: &Desk) -> String {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "the-same-client", "version": "1" },
    });
    let opening = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let answer = post(desk, None, &opening);
    let session = answer.headers.get("mcp-session-id").unwrap().to_str().unwrap().to_owned();
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(post(desk, Some(&session), &initialized).status, 202);
    session
}

#[test]
fn a_session_outlives_a_kill_of_the_daemon_and_its_file_is_the_users_own() {
    use std::os::unix::fs::PermissionsExt as _;

    let mut desk = Desk::new();
    desk.serve();
    let session = open(&desk);
    let file = desk.state().join("sessions").join(format!("{session}.jsonl"));
    until("the session to be stored", || file.exists().then_some(()));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    desk.kill();
    desk.serve();
    let message = json!({ "message": "after the restart" });
    let answer = post(&desk, Some(&session), &call(1, "notify", &message));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let (_, events, _) = desk.run(&["history", "--json"]);
    assert!(events.contains("the-same-client"), "{events}");
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let unknown = post(&desk, Some("00000000-0000-4000-8000-000000000000"), &ping);
    assert_eq!(unknown.status, 404);
}

#[test]
fn the_level_that_a_client_set_holds_after_a_restart_row_24() {
    let mut desk = Desk::new();
    desk.serve();
    let session = open(&desk);
    let hears = |desk: &Desk, level: &str| {
        let notice = call(1, "notify", &json!({ "message": "m", "level": level }));
        let answer = post(desk, Some(&session), &notice);
        assert!(answer.body.contains("Notification sent"), "{}", answer.body);
        answer.body.contains("notifications/message")
    };
    assert!(hears(&desk, "info"));
    for level in ["debug", "critical"] {
        let set = json!({
            "jsonrpc": "2.0", "id": level, "method": "logging/setLevel", "params": { "level": level }
        });
        assert_eq!(post(&desk, Some(&session), &set).status, 200);
    }
    assert!(!hears(&desk, "error"));
    let file = desk.state().join("sessions").join(format!("{session}.jsonl"));
    until("the level to be stored", || {
        fs::read_to_string(&file).ok()?.contains("critical").then_some(())
    });

    desk.kill();
    desk.serve();
    assert!(!hears(&desk, "error"));
    assert!(hears(&desk, "critical"));
}
