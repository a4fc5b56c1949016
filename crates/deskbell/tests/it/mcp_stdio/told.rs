//! What a client is told beside the answers.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use std::time::Duration;

use deskbell::{
    bridge::hello::Hello,
    journal::{Claim, Journal as _, Write},
};
use deskbell_core::delivery::Outcome;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::client::{Client, json_text};
use crate::mcp_app::Parts;

/// A call with a progress token.
async fn call_with_token(client: &mut Client, tool: &str, arguments: Value, token: Value) -> Value {
    let meta = json!({ "progressToken": token });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    client.request("tools/call", params).await
}

/// The same notices at three levels.
async fn notices(client: &mut Client) -> Vec<String> {
    for level in ["debug", "info", "error"] {
        client.call("notify", json!({ "message": format!("at {level}"), "level": level })).await;
    }
    let told = client.told();
    let level = |told: &Value| told["params"]["level"].as_str().unwrap().to_owned();
    assert!(told.iter().all(|told| told["method"] == "notifications/message"), "{told:?}");
    told.iter().map(level).collect()
}

#[tokio::test]
async fn a_notice_is_a_message_to_its_client_rows_21_23_24() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let arguments = json!({ "message": "a\nb", "level": "warn", "context": "safety",
        "data": { "n": 1 } });
    let result = client.call("notify", arguments).await;
    let told = client.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["method"], "notifications/message");
    let mut params = told[0]["params"].clone();
    assert!(params["data"]["timestamp"].take().as_f64().unwrap() > 1.7e9);
    let data = json!({
        "message": "a\nb", "timestamp": null, "context": "safety",
        "event_id": result["structuredContent"]["event_id"], "details": { "n": 1 },
    });
    assert_eq!(params, json!({ "level": "warning", "logger": "notify", "data": data }));

    assert_eq!(notices(&mut client).await, ["info", "error"]);
    client.request("logging/setLevel", json!({ "level": "error" })).await;
    assert_eq!(notices(&mut client).await, ["error"]);
    client.request("logging/setLevel", json!({ "level": "debug" })).await;
    assert_eq!(notices(&mut client).await, ["debug", "info", "error"]);
    let answer = client.request("logging/setLevel", json!({ "level": "loud" })).await;
    assert_eq!(answer["error"]["code"], -32602);
    // What was refused is told to nobody.
    client.call("notify", json!({ "message": " " })).await;
    assert_eq!(client.told(), [Value::Null; 0]);
}

#[tokio::test]
async fn a_request_without_a_session_hears_what_it_asks_for_row_21() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::connect(&parts.app, Hello::default());
    for (level, expected) in [(None, 0), (Some("error"), 0), (Some("info"), 1)] {
        let mut meta = super::modern_meta();
        if let Some(level) = level {
            meta["io.modelcontextprotocol/logLevel"] = level.into();
        }
        let notify = json!({ "name": "notify", "arguments": { "message": "m" }, "_meta": meta });
        let answer = client.request("tools/call", notify).await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        assert_eq!(client.told().len(), expected, "{level:?}");
    }
}

#[tokio::test]
async fn a_step_of_a_run_is_progress_of_its_call_rows_25_26() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let step = |event: &str, progress: Value| json!({ "run_id": "r", "event": event, "message": event, "data": { "progress": progress } });
    let steps = [
        ("start", json!(null), json!(0), Some(0.0)),
        ("update", json!(0.25), json!("p"), Some(0.25)),
        ("update", json!(1), json!(7), Some(1.0)),
        ("update", json!(7), json!(8), None),
        ("end", json!(null), json!(9), Some(1.0)),
    ];
    for (event, progress, token, expected) in steps {
        call_with_token(&mut client, "notify_event", step(event, progress), token.clone()).await;
        let told: Vec<_> = client
            .told()
            .into_iter()
            .map(|told| {
                assert_eq!(told["method"], "notifications/progress");
                assert_eq!(told["params"]["progressToken"], token);
                assert_eq!(
                    (&told["params"]["total"], &told["params"]["message"]),
                    (&json!(1.0), &json!(event))
                );
                told["params"]["progress"].as_f64().unwrap()
            })
            .collect();
        assert_eq!(told, Vec::from_iter(expected), "{event}");
    }
    client.call("notify_event", json!({ "run_id": "s", "event": "start", "message": "m" })).await;
    assert_eq!(client.told(), [Value::Null; 0]);
}

#[tokio::test]
async fn a_client_goes_without_what_it_does_not_declare_rows_36_37() {
    let parts = Parts::with_channels(&[]);
    let heard = async |capabilities: Value| {
        let hello = Hello { key: capabilities.to_string(), ..Hello::default() };
        let mut client = Client::connect(&parts.app, hello);
        client.initialize_with(capabilities).await;
        let message = json!({ "message": "m" });
        client.call("notify", message).await;
        let run = format!("run-{}", client.told().len());
        let mut told = usize::from(run == "run-1");
        let step =
            json!({ "run_id": uuid::Uuid::now_v7().to_string(), "event": "start", "message": "m" });
        call_with_token(&mut client, "notify_event", step, json!(1)).await;
        told += 10 * client.told().len();
        told
    };
    // Messages are the ones, progress the tens.
    assert_eq!(heard(json!({})).await, 11);
    let map = |map: Value| json!({ "notifications": map });
    assert_eq!(heard(map(json!({ "notifications/progress": false }))).await, 1);
    assert_eq!(heard(map(json!({ "message": false, "notifications/progress": true }))).await, 10);
}

#[tokio::test]
async fn a_client_narrows_what_it_hears_of_rows_38_to_42_c9_c10() {
    let parts = Parts::with_channels(&["phone"]);
    let mut client =
        Client::connect(&parts.app, Hello { key: "narrow".to_owned(), ..Hello::default() });
    let declares = json!({ "notifications": { "resources/updated": true, "message": true, "progress": false } });
    client.initialize_with(declares).await;
    client.request("resources/subscribe", json!({ "uri": "runs://" })).await;
    let types = json!(["notifications/resources/updated", "notifications/progress"]);
    let params = json!({ "types": types, "filters": { "uri": "runs://mine" } });
    // Without an id neither answered nor refused.
    for method in ["notifications/subscribe", "notifications/unsubscribe"] {
        let told = json!({ "jsonrpc": "2.0", "method": method, "params": { "types": 1 } });
        client.write("0", &told).await;
    }
    let answer = client.request("notifications/subscribe", params).await;
    let made = answer["result"]["subscriptions"].as_array().unwrap();
    assert_eq!(made.len(), 1, "{answer}");
    assert_eq!(made[0]["method"], "notifications/resources/updated");
    assert!(made[0]["created_at"].as_f64().unwrap() > 1.7e9);
    assert_eq!(answer["result"]["rejected"][0]["type"], "notifications/progress");

    let step = json!({ "run_id": "mine", "event": "start", "message": "m" });
    client.call("notify_event", step).await;
    // `runs://` does not begin with `runs://mine`, so nothing is told of it.
    client.told();
    let silence = timeout(Duration::from_millis(400), client.lines.next_line()).await;
    assert!(silence.is_err(), "{silence:?}");
    client.call("notify", json!({ "message": "its own" })).await;
    assert_eq!(client.told().len(), 1, "what belongs to a call is told");

    let ids = json!({ "subscription_ids": [made[0]["subscription_id"], "sub-77"] });
    let answer = client.request("notifications/unsubscribe", ids.clone()).await;
    assert_eq!(answer["result"], json!({ "success": false }));
    let answer = client.request("notifications/subscribe", json!({ "types": "message" })).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

/// Gives up what is due on `channel`.
async fn give_up(parts: &Parts, channel: &str) {
    let now = parts.app.clock.now();
    let room = vec![(channel.parse().unwrap(), 10)];
    for due in parts.journal.claim(Claim { now, room }).await.unwrap().due {
        let error = "the far end knows no such topic".to_owned();
        let outcome = Outcome::GivenUp { error, arrived: Vec::new() };
        let write = Write::Outcome { delivery: due.id, attempt: due.attempt, at: now, outcome };
        parts.journal.commit(vec![write]).await.unwrap();
    }
}

#[tokio::test]
async fn a_push_that_is_given_up_is_one_warning_c7() {
    let parts = Parts::with_channels(&["phone", "team"]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let mut other = Client::with_profile(&parts.app, None).await;
    let result = client.call("notify_send", json!({ "title": "t", "content": "c" })).await;
    let id = json_text(&result)["delivery_id"].as_str().unwrap().to_owned();
    give_up(&parts, "phone").await;
    let told = client.notified().await;
    assert_eq!(
        (&told["method"], &told["params"]["level"]),
        (&json!("notifications/message"), &json!("warning"))
    );
    let data = &told["params"]["data"];
    assert_eq!(data["event_type"], "delivery_failed");
    assert_eq!(data["delivery_id"], format!("{id}.phone"));
    assert!(data["message"].as_str().unwrap().contains("knows no such topic"), "{data}");
    give_up(&parts, "team").await;
    assert_eq!(client.notified().await["params"]["data"]["channel"], "team");
    for client in [&mut client, &mut other] {
        let silence = timeout(Duration::from_millis(700), client.lines.next_line()).await;
        assert!(silence.is_err(), "{silence:?}");
    }
}
