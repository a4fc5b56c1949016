//! A server with the SDK around it, and a client that writes and reads the lines themselves, in both eras.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

mod beside;
mod client;
mod much;
mod worker;

use std::time::Duration;

use deskbell_sdk::{Limits, ToolContext};
use serde_json::{Value, json};

use self::{
    client::{Client, LEVEL, levels, shown, stateless, token},
    worker::Worker,
};

const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

#[tokio::test(start_paused = true)]
async fn a_session_hears_what_it_asked_for_rows_22_24() {
    let (mut a, mut b) =
        (Client::greeted(Limits::default()).await, Client::greeted(Limits::default()).await);
    let (told, answer) = a.call("say", json!({}), json!({})).await;
    assert_eq!(levels(&told), LEVELS[1..]);
    assert_eq!(told[0]["params"]["logger"], "say");
    assert_eq!(told[0]["params"]["data"]["message"], "an info");
    assert_eq!(told[0]["params"]["data"]["n"], 1);
    assert_eq!(answer["result"]["content"][0]["text"], "log false progress true");

    assert_eq!(a.ask("logging/setLevel", json!({ "level": "error" })).await.1["result"], json!({}));
    assert_eq!(b.ask("logging/setLevel", json!({ "level": "debug" })).await.1["result"], json!({}));
    assert_eq!(levels(&a.call("say", json!({}), json!({})).await.0), LEVELS[4..]);
    assert_eq!(levels(&b.call("say", json!({}), json!({})).await.0), LEVELS);

    let refused = a.ask("logging/setLevel", json!({ "level": "loud" })).await.1;
    assert_eq!(refused["error"]["code"], -32602);
    assert!(refused["error"]["message"].as_str().unwrap().starts_with("level \"loud\" is none of"));
    assert_eq!(levels(&a.call("say", json!({}), json!({})).await.0), LEVELS[4..]);
}

#[tokio::test(start_paused = true)]
async fn a_stateless_request_hears_what_it_asks_for_itself() {
    let mut client = Client::stateless(Limits::default());
    let (told, answer) = client.call("say", json!({}), stateless(&[])).await;
    assert_eq!(told, [Value::Null; 0]);
    assert_eq!(answer["result"]["content"][0]["text"], "log true progress true");
    let (told, _) = client.call("say", json!({}), stateless(&[(LEVEL, "alert".into())])).await;
    assert_eq!(levels(&told), LEVELS[6..]);
    let (_, answer) = client.call("say", json!({}), stateless(&[(LEVEL, "loud".into())])).await;
    assert_eq!(answer["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn what_one_request_declares_holds_for_it_alone_row_36() {
    let mut client = Client::stateless(Limits::default());
    let deaf = json!({ "notifications": { "notifications/message": false } });
    let deaf = ("io.modelcontextprotocol/clientCapabilities", deaf);
    let heard = [(LEVEL, "debug".into()), ("progressToken", 0.into())];
    let meta = stateless(&[heard[0].clone(), heard[1].clone(), deaf]);
    // The deaf call is still under way when another one says that it hears.
    let params =
        json!({ "name": "work", "arguments": { "steps": 1, "end": "fail" }, "_meta": meta });
    let first = client.begin("tools/call", &params).await;
    let (told, _) = client.call("say", json!({}), stateless(&heard)).await;
    assert_eq!(levels(&told), LEVELS);
    let (told, _) = client.answer(first).await;
    assert_eq!(levels(&told), [""; 0]);
    assert_eq!(shown(&told).last().unwrap().0, 1.0);
}

#[tokio::test(start_paused = true)]
async fn progress_grows_to_its_total_under_its_token_rows_25_27() {
    let mut client = Client::greeted(Limits::default()).await;
    let arguments = json!({ "steps": 4, "end": "complete" });
    for id in [json!(0), json!(7), json!("p-9")] {
        let (told, _) = client.call("work", arguments.clone(), token(id.clone())).await;
        assert!(told.iter().all(|line| line["params"]["progressToken"] == id), "{told:?}");
        // The tool reached the whole before it said that all is done, and the whole is shown once.
        let expected = [
            (0.0, Some(4.0), "working"),
            (1.0, Some(4.0), "step 1"),
            (2.0, Some(4.0), "step 2"),
            (3.0, Some(4.0), "step 3"),
            (4.0, Some(4.0), "all done"),
        ];
        assert_eq!(shown(&told), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_token_nothing_is_shown_row_26() {
    let mut client = Client::greeted(Limits::default()).await;
    let (told, _) = client.call("work", json!({ "steps": 2, "end": "ok" }), json!({})).await;
    assert_eq!(told, [Value::Null; 0]);
}

#[tokio::test(start_paused = true)]
async fn progress_that_is_dropped_ends_as_the_call_does_rows_28_29() {
    for steps in [1, 4] {
        for (end, is_done) in [
            ("ok", true),
            ("complete", true),
            ("error", false),
            ("refusal", false),
            ("fail", false),
            ("panic", false),
        ] {
            let mut client = Client::greeted(Limits::default()).await;
            let arguments = json!({ "steps": steps, "end": end });
            let (told, answer) = client.call("work", arguments, token("t")).await;
            let shown = shown(&told);
            let wholes = shown.iter().filter(|(value, total, _)| Some(*value) == *total).count();
            assert_eq!(wholes, usize::from(is_done), "{end} after {steps}: {told:?}");
            let errors = levels(&told);
            assert_eq!(errors, vec!["error"; usize::from(!is_done)], "{end} after {steps}");
            if matches!(end, "error" | "refusal") {
                let told = told.last().unwrap();
                assert_eq!(told["params"]["data"]["message"], "the disk is full");
            }
            assert_eq!(answer["error"].is_object(), matches!(end, "error" | "panic"), "{answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn progress_may_end_where_it_is() {
    let mut client = Client::greeted(Limits::default()).await;
    let (told, _) = client.call("work", json!({ "steps": 2, "end": "leave" }), token("t")).await;
    assert_eq!(shown(&told).last(), Some(&(2.0, Some(4.0), "step 2")));
    assert_eq!(levels(&told), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn after_the_answer_there_is_silence_row_31() {
    let mut client = Client::greeted(Limits::default()).await;
    client.call("work", json!({ "steps": 1, "end": "ok" }), token("t")).await;
    client.hears_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_progress_goes_on_where_the_first_ended_row_30() {
    let mut client = Client::greeted(Limits::default()).await;
    let (told, _) = client.call("phases", json!({}), token("t")).await;
    let shown = shown(&told);
    let values: Vec<_> = shown.iter().map(|(value, ..)| *value).collect();
    assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
    assert_eq!(shown[0], (2.0, None, "training"));
    assert_eq!(values.last(), Some(&5.0));
    assert!(told.iter().all(|line| line["params"].get("total").is_none()));
}

#[tokio::test(start_paused = true)]
async fn prompts_and_resources_tell_before_their_answer_too_rows_29_31() {
    let mut client = Client::greeted(Limits::default()).await;
    let prompt = |name: &str| json!({ "name": name, "_meta": token("p") });
    let (told, _) = client.ask("prompts/get", prompt("letter")).await;
    assert_eq!(told[0]["params"]["logger"], "letter");
    assert_eq!(shown(&told).last(), Some(&(2.0, Some(2.0), "filling in")));
    let (told, answer) = client.ask("prompts/get", prompt("broken")).await;
    assert_eq!(answer["error"]["message"], "no such page");
    assert_eq!(shown(&told).last(), Some(&(1.0, Some(2.0), "filling in")));
    assert_eq!(levels(&told), ["info", "error"]);
    let (told, _) = client.ask("resources/read", json!({ "uri": "file:///a" })).await;
    assert_eq!(told[0]["params"]["data"]["message"], "reading");
    client.hears_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_thread_without_a_runtime_is_heard() {
    let mut client = Client::greeted(Limits::default()).await;
    let (told, _) = client.call("thread", json!({}), json!({})).await;
    assert_eq!(told[0]["params"]["data"]["message"], "from a thread");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_cancelled_is_silent() {
    let mut client = Client::greeted(Limits::default()).await;
    let work =
        json!({ "name": "work", "arguments": { "steps": 4, "end": "ok" }, "_meta": token("t") });
    let id = client.begin("tools/call", &work).await;
    assert_eq!(client.line().await["params"]["progress"], 0.0);
    let cancelled = json!({ "requestId": id });
    client
        .write(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }),
        )
        .await;
    client.hears_nothing().await;
}

#[tokio::test]
async fn a_tool_runs_without_a_session_row_51() {
    let cx = ToolContext::silent();
    assert!(cx.log.is_noop() && cx.notify.is_noop());
    assert_eq!(Worker::default().say(cx.clone()).await, "log true progress true");
    assert_eq!(Worker::default().phases(cx).await, "done");
}

#[tokio::test(start_paused = true)]
async fn what_waits_at_the_stop_is_delivered_row_50() {
    let notifier = deskbell_sdk::Notifier::new(Limits::default().with_debounce(Duration::MAX));
    let mut client = Client::sharing(&notifier).await;
    client.ask("ping", json!({})).await;
    notifier.tool_list_changed();
    assert_eq!(client.line_within(Duration::from_secs(60)).await, None);
    notifier.flush().await;
    client.stop.cancel();
    assert_eq!(client.line().await["method"], "notifications/tools/list_changed");
}
