//! `notify.send` and `notify.event`, as seed S4 has them.

use deskbell_core::event::Kind;
use serde_json::{Value, json};

use super::client::{Client, json_text, text};
use crate::mcp_app::Parts;

#[tokio::test]
async fn notify_send_answers_as_its_seed_says_rows_60_and_101() {
    let parts = Parts::with_channels(&["phone", "team"]);
    let mut client = Client::with_profile(&parts.app, Some("mcp-push")).await;
    let arguments =
        json!({ "title": "任务完成", "content": "数据\n分析", "ignore_default_config": true });
    let result = client.call("notify.send", arguments).await;
    assert!(
        text(&result).starts_with(r#"{"success":true,"message":"已向 2 个渠道发送通知","#),
        "{result}"
    );
    let answer = json_text(&result);
    assert_eq!(answer, result["structuredContent"]);
    assert_eq!(answer["status"], "queued");
    assert_eq!(answer["channels_count"], 2);
    assert_eq!(answer["errors"], json!({}));
    assert_eq!(answer["skipped"], false);
    assert_eq!(answer["ignored"], json!(["ignore_default_config"]));
    let event = parts.events().await.remove(0).event;
    assert_eq!(answer["delivery_id"], event.id.to_string());
    assert_eq!(event.kind, Kind::Push);
    assert_eq!(event.content.text, "数据\n分析");
}

#[tokio::test]
async fn wrong_arguments_of_a_push_are_named_and_nothing_is_sent() {
    let parts = Parts::with_channels(&["phone"]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let table = [
        (json!({ "content": "c" }), "`title` is missing; expected a text that is not blank"),
        (json!({ "title": "t" }), "`content` is missing; expected a text that is not blank"),
        (json!({ "title": "t", "content": " " }), "`content` is only white space"),
        (json!({ "title": "", "content": "c" }), "`title` is empty"),
        (json!({ "title": "t", "content": "c", "channels": ["pager"] }), "`to` is \"pager\""),
        (json!({ "title": "t", "content": "c", "channels": "phone" }), "`channels` is a text"),
        (json!({ "title": "t", "content": "c", "level": 3 }), "`level` is 3"),
    ];
    for (arguments, expected) in table {
        let result = client.call("notify_send", arguments).await;
        assert_eq!(result["isError"], true);
        let answer = json_text(&result);
        assert_eq!(answer["success"], false);
        assert!(answer["message"].as_str().unwrap().starts_with(expected), "{answer}");
    }
    assert!(parts.events().await.is_empty());
}

#[tokio::test]
async fn skipped_titles_and_missing_channels_are_told_row_118() {
    let parts = Parts::with_channels(&["phone"]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let result = client.call("notify_send", json!({ "title": "quiet", "content": "c" })).await;
    let answer = json_text(&result);
    assert_eq!(result["isError"], false);
    assert_eq!((&answer["success"], &answer["skipped"]), (&json!(true), &json!(true)));
    assert_eq!(answer["channels_count"], 0);

    let nowhere = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&nowhere.app, None).await;
    for (tool, arguments) in [
        ("notify_send", json!({ "title": "t", "content": "c" })),
        ("notify_event", json!({ "run_id": "r", "event": "start", "message": "m" })),
    ] {
        let result = client.call(tool, arguments).await;
        let answer = json_text(&result);
        assert_eq!(result["isError"], false);
        assert_eq!(answer["success"], false);
        assert_eq!(answer["status"], "no_channels");
        assert!(answer["hint"].as_str().unwrap().contains("no channel is configured"));
    }
    assert_eq!(nowhere.events().await.len(), 2, "not lost: still in the journal");
}

/// What an answer of `notify.event` has, in the order of the alphabet.
const EVENT_KEYS: [&str; 14] = [
    "channels",
    "channels_count",
    "delivery_id",
    "errors",
    "event_type",
    "ignored",
    "level",
    "message",
    "progress",
    "run_id",
    "skipped",
    "status",
    "success",
    "timestamp",
];

fn keys(answer: &Value) -> Vec<&str> {
    answer.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
}

#[tokio::test]
async fn notify_event_answers_as_its_seed_says_rows_60_102_and_105() {
    let parts = Parts::with_channels(&["phone"]);
    let mut client = Client::with_profile(&parts.app, Some("mcp-push")).await;
    let run = "data-analysis-20240101-001";
    let steps = [
        (json!({ "run_id": run, "event": "start", "message": "开始" }), json!(null), "info"),
        (
            json!({
                "run_id": run, "event": "update", "message": "32%",
                "data": { "step": "data_parsing", "progress": 0.32, "rows": 7 }
            }),
            json!(0.32),
            "info",
        ),
        (json!({ "run_id": run, "event": "end", "message": "完成" }), json!(1.0), "notice"),
    ];
    for (step, progress, level) in steps {
        let result = client.call("notify.event", step.clone()).await;
        let start = r#"{"success":true,"message":"事件已推送","event_type":"#;
        assert!(text(&result).starts_with(start), "{result}");
        let answer = json_text(&result);
        assert_eq!(answer, result["structuredContent"]);
        assert_eq!(keys(&answer), EVENT_KEYS, "{answer}");
        assert_eq!(answer["event_type"], step["event"]);
        assert_eq!(answer["run_id"], run);
        assert_eq!(answer["progress"], progress);
        assert_eq!(answer["level"], level);
    }
    let events = parts.events().await;
    assert_eq!(
        events[1].event.content.data,
        Some(json!({ "step": "data_parsing", "progress": 0.32, "rows": 7 }))
    );
}

#[tokio::test]
async fn steps_out_of_order_are_refused_with_the_reason_row_104() {
    let parts = Parts::with_channels(&["phone"]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let step = |event: &str| json!({ "run_id": "r", "event": event, "message": "m" });
    let result = client.call("notify_event", step("update")).await;
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("was not started"), "{result}");
    for event in ["start", "end"] {
        assert_eq!(client.call("notify_event", step(event)).await["isError"], false);
    }
    for event in ["update", "end", "error", "start"] {
        let result = client.call("notify_event", step(event)).await;
        assert_eq!(result["isError"], true);
        assert!(text(&result).contains("already ended"), "{result}");
    }
    assert_eq!(parts.events().await.len(), 2);
}

#[tokio::test]
async fn wrong_arguments_of_a_step_are_named_rows_105_106() {
    let parts = Parts::with_channels(&["phone"]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let with = |extra: Value| {
        let mut step = json!({ "run_id": "r", "event": "start", "message": "m" });
        step.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        step
    };
    let table = [
        (with(json!({ "event": "begin" })), "`event` is \"begin\"; expected one of start"),
        (with(json!({ "event": null })), "`event` is missing; expected one of start"),
        (with(json!({ "run_id": "" })), "`run_id` is empty"),
        (with(json!({ "data": [] })), "`data` is a list; expected an object"),
        (with(json!({ "data": { "progress": 7 } })), "`data.progress` is 7; expected a number"),
        (with(json!({ "data": { "progress": "1" } })), "`data.progress` is a text"),
        (with(json!({ "data": { "step": 1 } })), "`data.step` is 1; expected a text"),
        (with(json!({ "timestamp": "soon" })), "`timestamp` is \"soon\"; expected a time"),
    ];
    for (arguments, expected) in table {
        let result = client.call("notify_event", arguments).await;
        assert_eq!(result["isError"], true);
        let message = json_text(&result)["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(expected), "{message}");
    }
    assert!(parts.events().await.is_empty());

    let before = parts.app.clock.now();
    client.call("notify_event", with(json!({}))).await;
    let given = with(json!({ "event": "update", "timestamp": "2024-01-01T08:00:00+08:00" }));
    let result = client.call("notify_event", given).await;
    assert_eq!(result["structuredContent"]["timestamp"], "2024-01-01T00:00:00Z");
    let Kind::Run(first) = &parts.events().await[0].event.kind.clone() else { panic!("a step") };
    let late = first.reported_at.duration_since(before).as_secs_f64();
    assert!((-0.001..1.0).contains(&late), "now is the default, and {late} s passed");
}
