//! `notify`, as seed S0 has it.

use deskbell_core::Level;
use serde_json::json;

use super::client::{Client, text};
use crate::mcp_app::Parts;

#[tokio::test]
async fn notify_answers_as_its_seed_says_row_2() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    for message in ["a", "Grüße 🔔 \"quoted\" \\n", " padded ", "two\nlines"] {
        let result = client.call("notify", json!({ "message": message })).await;
        assert_eq!(text(&result), format!("Notification sent: {message}"));
        assert_eq!(result["isError"], false);
        assert_eq!(result["content"].as_array().unwrap().len(), 1);
    }
    assert_eq!(parts.events().await.len(), 4);
    client.end().await;
}

#[tokio::test]
async fn a_blank_message_is_refused_by_name_and_the_next_is_taken_row_3() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    for arguments in [
        json!({ "message": "" }),
        json!({ "message": " \n\t" }),
        json!({}),
        json!({ "message": 7 }),
        json!({ "message": null }),
    ] {
        let result = client.call("notify", arguments).await;
        assert_eq!(result["isError"], true);
        assert!(text(&result).starts_with("`message` is "), "{result}");
        assert!(text(&result).contains("expected a text"), "{result}");
    }
    assert!(parts.events().await.is_empty());
    let result = client.call("notify", json!({ "message": "a" })).await;
    assert_eq!(result["isError"], false);
}

#[tokio::test]
async fn levels_are_read_as_the_profile_says_rows_4_5_6_c4() {
    let parts = Parts::with_channels(&[]);
    let table = [
        (None, json!(null), Level::Info),
        (None, json!("bogus"), Level::Info),
        (None, json!("WARN"), Level::Warning),
        (None, json!("critical"), Level::Critical),
        (None, json!("Notice"), Level::Notice),
        (Some("swissarmyhammer"), json!("critical"), Level::Info),
        (Some("swissarmyhammer"), json!("bogus"), Level::Info),
        (Some("swissarmyhammer"), json!("Warning"), Level::Warning),
        (Some("swissarmyhammer"), json!("ERROR"), Level::Error),
    ];
    for (profile, level, expected) in table {
        let mut client = Client::with_profile(&parts.app, profile).await;
        let result = client.call("notify", json!({ "message": "m", "level": level })).await;
        assert_eq!(result["structuredContent"]["level"], expected.as_str());
        let events = parts.events().await;
        assert_eq!(events.last().unwrap().event.level, expected, "{profile:?} {level}");
        assert_eq!(events.last().unwrap().event.context.as_str(), "llm");
        client.end().await;
    }
}

#[tokio::test]
async fn a_context_is_a_category_or_details_row_7_c3() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    client.call("notify", json!({ "message": "m", "context": "safety" })).await;
    client.call("notify", json!({ "message": "m", "context": { "a": 1 } })).await;
    let both = json!({ "message": "m", "context": { "a": 1 }, "data": { "b": 2 } });
    client.call("notify", both).await;
    let refused = client.call("notify", json!({ "message": "m", "context": 7 })).await;
    assert_eq!(text(&refused), "`context` is 7; expected a category or an object with details");
    let events = parts.events().await;
    let kept: Vec<_> = events
        .iter()
        .map(|entry| (entry.event.context.as_str(), entry.event.content.data.clone()))
        .collect();
    assert_eq!(
        kept,
        [
            ("safety", None),
            ("llm", Some(json!({ "a": 1 }))),
            ("llm", Some(json!({ "b": 2, "context": { "a": 1 } }))),
        ]
    );
}

#[tokio::test]
async fn a_call_for_a_window_sends_nothing_while_there_is_none_c1() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    for arguments in [
        json!({ "message": "m", "mode": "popup" }),
        json!({ "message": "m", "wait_for_response": false }),
        json!({ "message": "m", "title": "t", "level": "info" }),
        json!({ "message": "m", "timeout": 30 }),
    ] {
        let result = client.call("notify", arguments).await;
        assert_eq!(result["isError"], true);
        assert!(
            text(&result).contains("no popup yet") && text(&result).contains("nothing was sent")
        );
    }
    let wrong = client.call("notify", json!({ "message": "m", "mode": "window" })).await;
    assert_eq!(text(&wrong), "`mode` is \"window\"; expected log or popup");
    assert!(parts.events().await.is_empty());

    let log = json!({ "message": "m", "mode": "log", "title": "t" });
    assert_eq!(client.call("notify", log).await["isError"], false);
    let result = client.call("notify_log", json!({ "message": "m", "timeout": 30 })).await;
    assert_eq!(result["structuredContent"]["ignored"], json!(["timeout"]));
    let result = client.call("notify_log", json!({ "message": "m", "level": "wraning" })).await;
    assert_eq!(result["structuredContent"]["level"], "info");
    assert_eq!(result["structuredContent"]["ignored"], json!(["level"]), "it is no level");
    let titles: Vec<_> =
        parts.events().await.into_iter().map(|entry| entry.event.content.title).collect();
    assert_eq!(titles, [Some("t".to_owned()), None, None]);

    // The profile of seed S0 knows no window, so none can be asked for there.
    let mut seed = Client::with_profile(&parts.app, Some("swissarmyhammer")).await;
    let result = seed.call("notify", json!({ "message": "m", "title": "t", "timeout": 5 })).await;
    assert_eq!(text(&result), "Notification sent: m");
    assert_eq!(result["structuredContent"]["ignored"], json!(["timeout", "title"]));
}

#[tokio::test]
async fn structured_content_tells_what_is_in_the_journal_rows_60_110_c6_c7() {
    let parts = Parts::with_channels(&["phone", "team"]);
    let mut client = Client::with_profile(&parts.app, None).await;
    let result = client.call("notify", json!({ "message": "m", "level": "error" })).await;
    let entry = parts.events().await.remove(0);
    let id = entry.event.id.to_string();
    assert_eq!(
        result["structuredContent"],
        json!({
            "event_id": id,
            "accepted_at": entry.event.at.to_string(),
            "level": "error",
            "context": "llm",
            "result_type": "logged",
            "delivered": false,
            "channels": ["phone", "team"],
            "deliveries": format!("delivery://{id}"),
            "ignored": []
        })
    );
    assert_eq!(entry.event.source.client.as_deref(), Some("test-client"));
    assert_eq!(entry.event.source.project.as_deref(), Some("/home/me/project"));
    assert!(entry.event.source.session.unwrap().starts_with("bridge-"));
    assert_eq!(parts.deliveries().await.len(), 2);
}

#[tokio::test]
async fn an_accepted_notice_is_shown_at_the_terminal_before_the_answer_row_16() {
    let parts = Parts::with_channels(&[]);
    let mut client = Client::with_profile(&parts.app, None).await;
    client.call("notify", json!({ "message": "look\nhere", "level": "error" })).await;
    client.others.retain(|line| line.starts_with('!'));
    assert_eq!(client.others.len(), 1);
    let line = &client.others[0];
    assert!(line.starts_with('!') && line.contains("look") && line.contains("here"), "{line}");
    client.call("notify", json!({ "message": " " })).await;
    assert_eq!(client.others.len(), 1, "what was refused is not shown");
}
