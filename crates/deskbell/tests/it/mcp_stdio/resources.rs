//! Resources, and who hears of their changes.
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
use deskbell_core::delivery::{Arrived, Outcome, Receipt};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::client::{Client, json_text};
use crate::mcp_app::Parts;

async fn read(client: &mut Client, uri: &str) -> Value {
    let answer = client.request("resources/read", json!({ "uri": uri })).await;
    let contents = &answer["result"]["contents"][0];
    assert_eq!(contents["uri"], uri, "{answer}");
    assert_eq!(contents["mimeType"], "application/json");
    serde_json::from_str(contents["text"].as_str().unwrap()).unwrap()
}

/// Delivers what is due on `channel` as a dispatcher would.
async fn deliver(parts: &Parts, channel: &str) {
    let now = parts.app.clock.now();
    let room = vec![(channel.parse().unwrap(), 10)];
    for due in parts.journal.claim(Claim { now, room }).await.unwrap().due {
        let receipt = Receipt { message_id: Some("far-1".to_owned()) };
        let arrived = vec![Arrived { receipt, ..Arrived::default() }];
        let outcome = Outcome::Sent { arrived, without: None };
        let write = Write::Outcome { delivery: due.id, attempt: due.attempt, at: now, outcome };
        parts.journal.commit(vec![write]).await.unwrap();
    }
}

async fn step(client: &mut Client, run: &str, event: &str) {
    let arguments =
        json!({ "run_id": run, "event": event, "message": format!("{event} of {run}") });
    assert_eq!(client.call("notify_event", arguments).await["isError"], false);
}

#[tokio::test]
async fn runs_are_listed_and_read_one_by_one_row_107() {
    let parts = Parts::with_channels(&["phone"]);
    let mut client = Client::with_profile(&parts.app, None).await;
    step(&mut client, "a/b 1", "start").await;
    step(&mut client, "second", "start").await;
    step(&mut client, "second", "end").await;
    let runs = read(&mut client, "runs://").await;
    let listed: Vec<_> =
        runs["runs"].as_array().unwrap().iter().map(|run| (&run["id"], &run["state"])).collect();
    assert_eq!(listed, [(&json!("second"), &json!("ended")), (&json!("a/b 1"), &json!("open"))]);
    let run = read(&mut client, "runs://a%2Fb%201").await;
    assert_eq!((&run["id"], &run["text"]), (&json!("a/b 1"), &json!("start of a/b 1")));
}

#[tokio::test]
async fn deliveries_tell_how_each_push_went_rows_109_110_c7() {
    let parts = Parts::with_channels(&["phone", "team"]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let result = client.call("notify_send", json!({ "title": "t", "content": "c" })).await;
    let id = json_text(&result)["delivery_id"].as_str().unwrap().to_owned();
    let waiting = read(&mut client, &format!("delivery://{id}")).await;
    assert_eq!(
        (&waiting["settled"], &waiting["deliveries"][0]["state"]),
        (&json!(false), &json!("pending"))
    );

    deliver(&parts, "phone").await;
    let one = read(&mut client, &format!("delivery://{id}.phone")).await;
    assert_eq!((&one["state"], &one["message_id"]), (&json!("sent"), &json!("far-1")));
    deliver(&parts, "team").await;
    let all = read(&mut client, &format!("delivery://{id}")).await;
    assert_eq!(all["settled"], true);
    assert_eq!(all["deliveries"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn history_shows_the_newest_first() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    for message in ["first", "second"] {
        client.call("notify", json!({ "message": message })).await;
    }
    let history = read(&mut client, "history://recent").await;
    let texts: Vec<_> =
        history["events"].as_array().unwrap().iter().map(|event| &event["text"]).collect();
    assert_eq!(texts, ["second", "first"]);
}

#[tokio::test]
async fn what_is_not_there_is_told_in_the_code_of_the_era() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let event = "delivery://019a9c2e-5f00-7000-8000-000000000000";
    for uri in
        ["runs://none", event, &format!("{event}.phone"), "delivery://7", "file:///etc/passwd"]
    {
        let answer = client.request("resources/read", json!({ "uri": uri })).await;
        assert_eq!(answer["error"]["code"], -32002, "{answer}");
        assert_eq!(answer["error"]["data"]["uri"], uri);
    }
    let mut modern = Client::connect(&parts.app, Hello::default());
    let params = json!({ "uri": "runs://none", "_meta": super::modern_meta() });
    let answer = modern.request("resources/read", params).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[tokio::test]
async fn subscribers_hear_of_changes_with_their_time_and_others_do_not_rows_33_35_c7() {
    let parts = Parts::with_channels(&["phone"]);
    let mut reporter = Client::with_profile(&parts.app, None).await;
    let mut subscriber = Client::with_profile(&parts.app, None).await;
    let subscribe = json!({ "uri": "runs://mine" });
    let answer = subscriber.request("resources/subscribe", subscribe.clone()).await;
    assert_eq!(answer["result"], json!({}));
    step(&mut reporter, "other", "start").await;
    step(&mut reporter, "mine", "start").await;
    let line = subscriber.next_line().await;
    let told: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(told["method"], "notifications/resources/updated");
    assert_eq!(told["params"]["uri"], "runs://mine");
    let at: jiff::Timestamp = told["params"]["timestamp"].as_str().unwrap().parse().unwrap();
    assert!(at <= parts.app.clock.now());

    subscriber.request("resources/unsubscribe", subscribe).await;
    step(&mut reporter, "mine", "end").await;
    let silence = timeout(Duration::from_millis(300), subscriber.lines.next_line()).await;
    assert!(silence.is_err(), "{silence:?}");
    let of_resources = |line: &&String| line.contains("notifications/resources");
    assert_eq!(reporter.others.iter().find(of_resources), None);
}

#[tokio::test]
async fn a_delivery_that_goes_out_is_a_change_of_its_resource_c7() {
    let parts = Parts::with_channels(&["phone"]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let result = client.call("notify_send", json!({ "title": "t", "content": "c" })).await;
    let uri = format!("delivery://{}", json_text(&result)["delivery_id"].as_str().unwrap());
    client.request("resources/subscribe", json!({ "uri": uri })).await;
    client.others.clear();
    deliver(&parts, "phone").await;
    let told: Value = serde_json::from_str(&client.next_line().await).unwrap();
    assert_eq!(told["params"]["uri"], uri);
}

#[tokio::test]
async fn a_listen_stream_tells_of_changes_in_the_era_without_sessions() {
    let parts = Parts::with_channels(&["phone"]);
    let mut client =
        Client::connect(&parts.app, Hello { key: "listens".to_owned(), ..Hello::default() });
    let uris = json!({ "resourceSubscriptions": ["runs://r", "file:///etc/passwd"], "toolsListChanged": true });
    let listen = json!({
        "jsonrpc": "2.0", "id": "L1", "method": "subscriptions/listen",
        "params": { "notifications": uris, "_meta": super::modern_meta() }
    });
    client.write("1", &listen).await;
    let acknowledged: Value = serde_json::from_str(&client.next_line().await).unwrap();
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({ "resourceSubscriptions": ["runs://r"], "toolsListChanged": true })
    );
    let mut reporter = Client::with_profile(&parts.app, None).await;
    step(&mut reporter, "r", "start").await;
    let told: Value = serde_json::from_str(&client.next_line().await).unwrap();
    assert_eq!(told["params"]["uri"], "runs://r");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "L1");

    let cancelled = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "L1" }
    });
    client.write("0", &cancelled).await;
    client.number = 1;
    let meta = json!({ "_meta": super::modern_meta() });
    assert!(client.request("tools/list", meta).await["result"].is_object());
    step(&mut reporter, "r", "end").await;
    let silence = timeout(Duration::from_millis(300), client.lines.next_line()).await;
    assert!(silence.is_err(), "{silence:?}");
    client.end().await;
}

#[tokio::test]
async fn subscriptions_have_a_limit() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let mut refused = 0;
    for index in 0..70 {
        let params = json!({ "uri": format!("runs://{index}") });
        let answer = client.request("resources/subscribe", params).await;
        refused += i32::from(answer["error"]["code"] == -32602);
    }
    assert_eq!(refused, 70 - 64);
}
