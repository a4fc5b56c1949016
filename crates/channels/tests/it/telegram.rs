//! Telegram: parts, edits, floods and marks that it cannot read.

use std::time::Duration;

use deskbell_core::{
    delivery::{Failure, Receipt},
    event::Format,
};

use crate::{
    Configured, configured,
    fake_telegram::{CHAT, FLOOD_WAIT, TOKEN, Telegram},
    sample::{context, message, step},
};

fn channel(far_end: &Telegram) -> Configured {
    with_token(far_end, TOKEN)
}

fn with_token(far_end: &Telegram, token: &str) -> Configured {
    let options = format!("token = '{token}'\nchat_id = {CHAT}\napi = '{}'", far_end.address);
    configured("telegram", &options)
}

#[tokio::test]
async fn ten_thousand_characters_arrive_in_order_row_114() {
    let far_end = Telegram::start().await;
    for format in [Format::Text, Format::Markdown] {
        let words: Vec<String> = (0..1_200).map(|number| format!("word{number} <&>")).collect();
        let text = words.join(" ");
        assert!(text.chars().count() > 10_000);
        let message = message(&text, format);
        let receipt = channel(&far_end).deliver(&message, &context(&message, None)).await.unwrap();
        let shown = far_end.messages();
        assert!(shown.len() >= 3, "{}", shown.len());
        assert_eq!(receipt.message_id, Some(shown[0].id.to_string()));
        let told: String = shown.iter().map(|message| format!("{} ", message.text)).collect();
        let told: Vec<_> =
            told.split_whitespace().filter(|word| word.starts_with("word")).collect();
        let expected: Vec<_> = (0..1_200).map(|number| format!("word{number}")).collect();
        assert_eq!(told, expected);
        far_end.clear();
    }
}

#[tokio::test]
async fn the_steps_of_a_run_are_one_message() {
    let far_end = Telegram::start().await;
    let channel = channel(&far_end);
    let first = step("uploading");
    let mut cx = context(&first, None);
    cx.earlier = channel.earlier(&channel.deliver(&first, &cx).await.unwrap());
    // A step that says the same again is not a failure.
    for text in ["uploading more", "uploading more", "done"] {
        let receipt = channel.deliver(&step(text), &cx).await.unwrap();
        assert_eq!(receipt, cx.earlier[0].receipt);
    }
    let shown = far_end.messages();
    assert_eq!((shown.len(), shown[0].edits), (1, 2));
    assert!(shown[0].text.starts_with("⚠️ [UPDATE] nightly-7\n\ndone\n\n"), "{}", shown[0].text);
}

#[tokio::test]
async fn a_message_that_is_gone_is_sent_anew() {
    let far_end = Telegram::start().await;
    let channel = channel(&far_end);
    let message = step("uploading");
    let mut cx = context(&message, None);
    cx.earlier = channel.earlier(&channel.deliver(&message, &cx).await.unwrap());
    far_end.clear();
    let receipt = channel.deliver(&message, &cx).await.unwrap();
    assert_eq!(receipt, Receipt { message_id: Some("2".to_owned()) });
    assert_eq!(far_end.messages().len(), 1);
}

#[tokio::test]
async fn a_flood_is_waited_out() {
    let far_end = Telegram::start().await;
    far_end.flood(1);
    let message = message("text", Format::Text);
    let cx = context(&message, None);
    let error = channel(&far_end).deliver(&message, &cx).await.unwrap_err();
    let wait = Duration::from_secs(FLOOD_WAIT);
    assert_eq!(error.failure, Failure::Temporary { retry_after: Some(wait) });
    channel(&far_end).deliver(&message, &cx).await.unwrap();
}

#[tokio::test]
async fn refusals_say_what_to_do_and_keep_the_token_row_116() {
    let far_end = Telegram::start().await;
    let message = message("text", Format::Text);
    let cx = context(&message, None);
    let wrong = with_token(&far_end, "110201543:wrong-token");
    let error = wrong.deliver(&message, &cx).await.unwrap_err();
    assert_eq!(error.failure, Failure::Permanent);
    assert_eq!(error.message, "Telegram refused with 401: Unauthorized");
    let options = format!("token = '{TOKEN}'\nchat_id = '@nowhere'\napi = '{}'", far_end.address);
    let error = configured("telegram", &options).deliver(&message, &cx).await.unwrap_err();
    assert_eq!(error.failure, Failure::Permanent);
    assert_eq!(error.message, "Telegram refused with 400: Bad Request: chat not found");
    assert_eq!(far_end.calls(), 2);
}

#[tokio::test]
async fn marks_that_telegram_cannot_read_are_left_out() {
    // The fake knows fewer tags than Telegram, and no nested code in a link.
    let refusing = wiremock::MockServer::start().await;
    let refusal = serde_json::json!({
        "ok": false, "error_code": 400, "description": "Bad Request: can't parse entities: unsupported start tag",
    });
    let accepted = serde_json::json!({ "ok": true, "result": { "message_id": 5 } });
    wiremock::Mock::given(wiremock::matchers::body_string_contains("parse_mode"))
        .respond_with(wiremock::ResponseTemplate::new(400).set_body_json(refusal))
        .expect(1)
        .mount(&refusing)
        .await;
    wiremock::Mock::given(wiremock::matchers::body_partial_json(
        serde_json::json!({ "text": "⚠️ Build failed\n\nbold\n\nhttps://ci.example.com/7" }),
    ))
    .respond_with(wiremock::ResponseTemplate::new(200).set_body_json(accepted))
    .expect(1)
    .with_priority(9)
    .mount(&refusing)
    .await;
    let options = format!("token = '{TOKEN}'\nchat_id = 1\napi = '{}'", refusing.uri());
    let message = message("**bold**", Format::Markdown);
    let receipt =
        configured("telegram", &options).deliver(&message, &context(&message, None)).await.unwrap();
    assert_eq!(receipt.message_id.as_deref(), Some("5"));
}
