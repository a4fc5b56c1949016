//! When there is too much to tell, or nobody who reads it.

use std::time::Duration;

use deskbell_sdk::{Limits, Notifier};
use serde_json::json;
use tokio::sync::mpsc;

use crate::{
    client::{Client, LEVEL, PIPE, levels, shown, stateless, token},
    worker::Worker,
};

#[tokio::test(start_paused = true)]
async fn a_client_that_was_told_too_much_still_gets_its_answers_at_once() {
    let mut client = Client::greeted(Limits::default()).await;
    client.call("chatter", json!({}), json!({})).await;
    let before = tokio::time::Instant::now();
    client.call("say", json!({}), json!({})).await;
    assert!(before.elapsed() < Duration::from_millis(100), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_was_too_much_is_told_in_one_warning_rows_43_44_45() {
    let notifier = Notifier::new(Limits::default());
    let (mut a, mut b) = (Client::sharing(&notifier).await, Client::sharing(&notifier).await);
    assert_eq!(levels(&a.call("chatter", json!({}), json!({})).await.0).len(), 60);
    assert_eq!(levels(&b.call("say", json!({}), json!({})).await.0).len(), 7);
    let warning = a.line().await;
    assert_eq!(warning["params"]["level"], "warning");
    assert_eq!(warning["params"]["data"]["dropped"], 40);
    a.hears_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_value_is_shown_however_much_was_told_row_32() {
    let mut client = Client::greeted(Limits::default()).await;
    let (told, _) = client.call("chatter", json!({}), token("t")).await;
    assert_eq!(shown(&told).last(), Some(&(100.0, None, "counting")));
    // Nobody has room any more, but it is the last.
    let (told, _) = client.call("chatter", json!({}), token("u")).await;
    assert_eq!(shown(&told), [(100.0, None, "counting")]);
}

#[tokio::test(start_paused = true)]
async fn a_stateless_request_is_warned_on_its_own_stream_row_45() {
    let mut client = Client::stateless(Limits::default());
    let meta = stateless(&[(LEVEL, "info".into())]);
    let (told, _) = client.call("chatter", json!({}), meta.clone()).await;
    assert_eq!(told.len(), 61);
    assert_eq!(told[60]["params"]["data"]["dropped"], 40);
    // Once a minute is enough.
    let (told, _) = client.call("chatter", json!({}), meta).await;
    assert_eq!(levels(&told), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn requests_without_a_session_share_the_minute_of_their_client_rows_43_44() {
    let notifier = Notifier::new(Limits::default());
    // As over HTTP: a server for each request.
    let ask = async |name: &str| {
        let mut client = Client::of(Worker::default(), &notifier, PIPE);
        let info = json!({ "name": name, "version": "1" });
        let info = ("io.modelcontextprotocol/clientInfo", info);
        let meta = stateless(&[(LEVEL, "info".into()), info]);
        let (told, _) = client.call("chatter", json!({}), meta).await;
        levels(&told).iter().filter(|level| **level == "info").count()
    };
    assert_eq!(ask("a").await, 60);
    assert_eq!(ask("a").await, 0);
    assert_eq!(ask("b").await, 60);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_holds_no_tool_and_hears_how_much_it_missed_rows_13_49() {
    let limits = Limits::default().with_per_minute(0).with_queue(10);
    let mut client = Client::of(Worker::default(), &Notifier::new(limits), 64).greet().await;
    let id = client.begin("tools/call", &json!({ "name": "chatter", "arguments": {} })).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    // The answer was waiting for room behind what had been told, most of which was dropped.
    let (told, _) = client.answer(id).await;
    assert!(told.len() < 20, "{}", told.len());
    let warning = loop {
        let line = client.line().await;
        if line["params"]["level"] == "warning" {
            break line;
        }
    };
    let dropped = warning["params"]["data"]["dropped"].as_u64().unwrap();
    assert!((80..100).contains(&dropped), "{dropped}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_ends_no_tool_row_52() {
    let (ended, mut end) = mpsc::unbounded_channel();
    let worker = Worker { ended: Some(ended) };
    let mut client = Client::of(worker, &Notifier::new(Limits::default()), PIPE).greet().await;
    client.begin("tools/call", &json!({ "name": "go_on", "arguments": {} })).await;
    assert_eq!(client.line().await["params"]["data"]["message"], "second 0");
    let server = client.go_away();
    assert_eq!(end.recv().await, Some("go_on"));
    assert!(server.await.is_ok());
}
