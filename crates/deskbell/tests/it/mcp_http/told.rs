//! What a client is told beside the answers, on the stream of its call.

use serde_json::{Value, json};

use super::Client;
use crate::mcp_app::Parts;

#[tokio::test]
async fn a_call_hears_messages_and_progress_on_its_own_stream_rows_21_25_48() {
    let parts = Parts::with_channels(&[]);
    let client = Client::open("/mcp", &parts).await;
    let notify = json!({ "name": "notify", "arguments": { "message": "m" } });
    let answer = client.request("tools/call", notify).await;
    let told = answer.told();
    assert_eq!(told.len(), 1, "{}", answer.body);
    assert_eq!(told[0]["params"]["data"]["message"], "m");
    let step = |run: &str| {
        json!({ "name": "notify_event", "_meta": { "progressToken": "1" },
            "arguments": { "run_id": run, "event": "start", "message": run } })
    };
    let other = Client::open("/mcp", &parts).await;
    let (a, b) = tokio::join!(
        client.request("tools/call", step("a")),
        other.request("tools/call", step("b"))
    );
    for (answer, run) in [(a, "a"), (b, "b")] {
        let texts: Vec<_> =
            answer.told().iter().map(|told| told["params"]["message"].clone()).collect();
        assert_eq!(texts, [run], "{}", answer.body);
    }
}

#[tokio::test]
async fn a_client_goes_without_what_it_does_not_declare_rows_36_37() {
    let parts = Parts::with_channels(&[]);
    let declares = json!({ "notifications": { "notifications/message": false } });
    let client = Client::open_with("/mcp", &parts, declares).await;
    let notify = json!({ "name": "notify", "arguments": { "message": "m" } });
    assert_eq!(client.request("tools/call", notify).await.told(), [Value::Null; 0]);
    let types = json!({ "types": ["notifications/message"] });
    let answer = client.request("notifications/subscribe", types).await.message();
    assert_eq!(answer["result"]["subscriptions"], json!([]), "{answer}");
}

#[tokio::test]
async fn requests_without_a_session_share_their_minute_rows_43_44() {
    let parts = Parts::with_channels(&[]);
    let client = Client::new(&parts);
    let mut told = 0;
    for _ in 0..70 {
        let level = json!({ "io.modelcontextprotocol/logLevel": "info" });
        let notify = json!({ "name": "notify", "arguments": { "message": "m" }, "_meta": level });
        let answer = client.modern("tools/call", Some("notify"), notify).await;
        let is_notice = |told: &&Value| told["params"]["level"] == "info";
        told += answer.told().iter().filter(is_notice).count();
    }
    assert_eq!(told, 60);
}
