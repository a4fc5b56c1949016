//! What is told beside the calls: changes, and who has asked for them.

use deskbell_sdk::{Limits, Notifier};
use rmcp::{
    ServerHandler,
    model::{ServerCapabilities, ServerConfig},
};
use serde_json::{Value, json};

use crate::{
    client::{Client, PIPE, stateless},
    worker::Worker,
};

#[tokio::test(start_paused = true)]
async fn changes_are_told_to_who_subscribed_rows_33_35() {
    let mut client = Client::greeted(Limits::default()).await;
    let uri = json!({ "uri": "file:///data/" });
    assert_eq!(client.ask("resources/subscribe", uri.clone()).await.1["result"], json!({}));
    client.call("change", json!({}), json!({})).await;
    let (first, second) = (client.line().await, client.line().await);
    assert_eq!(first["method"], "notifications/resources/updated");
    assert_eq!(first["params"]["uri"], "file:///data/output.json");
    assert!(first["params"]["timestamp"].is_string());
    assert_eq!(second["method"], "notifications/tools/list_changed");
    assert_eq!(second["params"], json!({}));
    assert_eq!(client.ask("resources/unsubscribe", uri).await.1["result"], json!({}));
    client.call("change", json!({}), json!({})).await;
    assert_eq!(client.line().await["method"], "notifications/tools/list_changed");
    client.hears_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn what_changes_in_one_session_is_told_in_all_rows_34_35() {
    let notifier = Notifier::new(Limits::default());
    let (mut a, mut b) = (Client::sharing(&notifier).await, Client::sharing(&notifier).await);
    b.ask("resources/subscribe", json!({ "uri": "file:///data" })).await;
    a.call("change", json!({}), json!({})).await;
    let updated = b.line().await;
    assert_eq!(updated["params"]["uri"], "file:///data/output.json");
    assert_eq!(b.line().await["method"], "notifications/tools/list_changed");
    assert_eq!(a.line().await["method"], "notifications/tools/list_changed");
    a.hears_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_listen_stream_hears_of_changes_elsewhere() {
    let notifier = Notifier::new(Limits::default());
    let mut listener = Client::of(Worker::default(), &notifier, PIPE);
    let wanted = json!({ "resourceSubscriptions": ["file:///data"], "toolsListChanged": true,
        "promptsListChanged": true });
    let params = json!({ "notifications": wanted, "_meta": stateless(&[]) });
    let id = listener.begin("subscriptions/listen", &params).await;
    let acknowledged = listener.line().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    // The server does not declare that its list of prompts changes.
    let expected = json!({ "resourceSubscriptions": ["file:///data"], "toolsListChanged": true });
    assert_eq!(acknowledged["params"]["notifications"], expected);

    let mut other = Client::of(Worker::default(), &notifier, PIPE);
    other.call("change", json!({}), stateless(&[])).await;
    let (first, second) = (listener.line().await, listener.line().await);
    let of =
        |line: &Value| line["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone();
    assert_eq!((of(&first), of(&second)), (json!(id), json!(id)));
    // The change of what lies in a resource is a change of the resource.
    assert_eq!(first["params"]["uri"], "file:///data");
    assert_eq!(second["method"], "notifications/tools/list_changed");
    listener.hears_nothing().await;
}

/// A server that has resources and declares that nobody can subscribe to them.
struct Fixed;

impl ServerHandler for Fixed {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_resources().build())
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_declared_is_not_answered_row_35() {
    let mut client = Client::of(Fixed, &Notifier::new(Limits::default()), PIPE).greet().await;
    let (_, answer) = client.ask("resources/subscribe", json!({ "uri": "file:///a" })).await;
    assert_eq!(answer["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn a_client_narrows_what_it_hears_rows_38_40_41_42_c9() {
    let notifier = Notifier::new(Limits::default());
    let mut client = Client::sharing(&notifier).await;
    client.ask("resources/subscribe", json!({ "uri": "file:///data" })).await;
    let params = json!({ "types": ["notifications/resources/updated"],
        "filters": { "uri": "file:///data/a" } });
    // Without an id it is not answered, and does what it says.
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/subscribe", "params": params });
    client.write(&told).await;
    let wrong = json!({ "jsonrpc": "2.0", "method": "notifications/unsubscribe" });
    client.write(&wrong).await;
    let (told, answer) = client.ask("notifications/subscribe", params).await;
    assert_eq!(told, [Value::Null; 0]);
    let made = &answer["result"]["subscriptions"][0];
    assert_eq!(made["method"], "notifications/resources/updated");
    assert!(made["created_at"].as_f64().unwrap() > 1.7e9);
    notifier.tool_list_changed();
    notifier.resource_updated("file:///data/b");
    notifier.resource_updated("file:///data/a/1");
    assert_eq!(client.line().await["params"]["uri"], "file:///data/a/1");

    let ids = json!({ "subscription_ids": ["sub-1", "sub-2", "sub-7"] });
    let (_, answer) = client.ask("notifications/unsubscribe", ids).await;
    assert_eq!(answer["result"], json!({ "success": false }));
    notifier.resource_updated("file:///data/a/1");
    client.hears_nothing().await;
    // What belongs to a call is told all the same.
    assert_eq!(client.call("say", json!({}), json!({})).await.0.len(), 7);

    let (_, answer) = client.ask("notifications/subscribe", json!({ "types": 7 })).await;
    assert_eq!(answer["error"]["code"], -32602);
    let (_, answer) = client.ask("notifications/ponies", json!({})).await;
    assert_eq!(answer["error"]["code"], -32601);
}
