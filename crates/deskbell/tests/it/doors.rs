//! What holds at every door of the program alike.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use serde_json::json;

use crate::support::{Answer, Desk, McpClient};

/// The answer is a problem of this status, and its detail says so.
#[track_caller]
fn check_problem(answer: &Answer, status: u16, detail: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert!(answer.json()["detail"].as_str().unwrap().contains(detail), "{answer:?}");
}

#[test]
fn mcp_wants_a_token_too_row_59() {
    let mut desk = Desk::new();
    desk.serve();
    let opening = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } } });
    let opening = opening.to_string();
    let json = ("content-type", "application/json");
    let accept = ("accept", "application/json, text/event-stream");
    let token = format!("Bearer {}", desk.token());
    for path in ["/mcp", "/mcp/mcp-push"] {
        let send = |method: &str, token: &str, body: Option<&str>| {
            desk.request(method, path, &[json, accept, ("authorization", token)], body)
        };
        for wrong in ["", "Bearer nope"] {
            check_problem(&send("POST", wrong, Some(&opening)), 401, "token");
            check_problem(&send("GET", wrong, None), 401, "token");
            check_problem(&send("DELETE", wrong, None), 401, "token");
        }
        assert_eq!(send("POST", &token, Some(&opening)).status, 200, "{path}");
    }
}

#[test]
fn a_time_is_read_in_one_way_at_every_door_row_106() {
    let mut desk = Desk::new();
    desk.serve();
    let (good, bad) = ("2024-01-01 12:00:00.123", "yesterday");
    let mut client = desk.mcp(&[]);
    client.initialize();
    let by_tool = |client: &mut McpClient, time: &str| {
        client.call(
            "notify_event",
            &json!({ "run_id": "tool", "event": "start", "message": "m", "timestamp": time }),
        )
    };
    let over_http = |time: &str| {
        let run = json!({ "id": "http", "phase": "start", "timestamp": time });
        desk.post("/v1/events", &json!({ "text": "m", "run": run }))
    };
    let command = |time: &str| desk.run(&["event", "command", "start", "m", "--timestamp", time]);
    let expected = "expected a time in ISO 8601, such as";
    let refused = by_tool(&mut client, bad);
    assert!(refused["content"][0]["text"].as_str().unwrap().contains(expected), "{refused}");
    check_problem(&over_http(bad), 422, expected);
    let (code, _, stderr) = command(bad);
    assert!(code == 2 && stderr.contains(expected), "{stderr}");
    check_problem(&desk.get(&format!("/v1/events?since={bad}")), 422, expected);

    assert_eq!(by_tool(&mut client, good)["isError"], false);
    assert_eq!(over_http(good).status, 201);
    assert_eq!(command(good).0, 0);
    let list = desk.get("/v1/events?since=2024-01-01%2012:00:00").json();
    let times = list["events"].as_array().unwrap().iter();
    let times: Vec<_> = times.map(|event| &event["run"]["reported_at"]).collect();
    assert_eq!(times, vec![times[0]; 3]);
    assert!(times[0].as_str().unwrap().ends_with(":00:00.123Z"), "{times:?}");
    assert_eq!(desk.run(&["history", "--since", good]).1.lines().count(), 3);
}
