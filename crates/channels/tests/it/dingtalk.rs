//! DingTalk: the signature, the verdict under status 200, the limits.

use std::time::Duration;

use deskbell_core::{delivery::Failure, event::Format};

use crate::{
    Configured, configured,
    fake_dingtalk::{A_MINUTE, DingTalk, SECRET, TOKEN},
    sample::{context, message},
};

fn channel(secret: &str) -> Configured {
    configured("dingtalk_bot", &format!("token = '{TOKEN}'\nsecret = '{secret}'"))
}

#[tokio::test]
async fn the_robot_accepts_the_signature_row_112() {
    let far_end = DingTalk::start().await;
    let message = message("a\nb", Format::Text);
    let cx = context(&message, Some(&far_end.address));
    channel(SECRET).deliver(&message, &cx).await.unwrap();
    let told = "⚠️ Build failed\n\na\nb\n\nhttps://ci.example.com/7";
    assert_eq!(far_end.messages()[0]["text"]["content"], told);

    let error = channel("SECwrong-secret").deliver(&message, &cx).await.unwrap_err();
    assert_eq!(error.failure, Failure::Permanent);
    assert!(error.message.contains("sign not match"), "{error}");
}

#[tokio::test]
async fn a_refusal_under_200_is_a_failure_row_109() {
    let far_end = DingTalk::start().await;
    let message = message("text", Format::Text);
    let wrong = configured("dingtalk_bot", "token = 'wrong-token-0001'");
    let cx = context(&message, Some(&far_end.address));
    let error = wrong.deliver(&message, &cx).await.unwrap_err();
    assert_eq!(error.failure, Failure::Permanent);
    assert_eq!(error.message, "DingTalk refused with 300001: token is not exist");
    assert!(far_end.messages().is_empty());
}

#[tokio::test]
async fn too_many_messages_are_waited_out() {
    let far_end = DingTalk::start().await;
    let message = message("text", Format::Text);
    let cx = context(&message, Some(&far_end.address));
    for _ in 0..A_MINUTE {
        channel(SECRET).deliver(&message, &cx).await.unwrap();
    }
    let error = channel(SECRET).deliver(&message, &cx).await.unwrap_err();
    let minute = Duration::from_mins(1);
    assert_eq!(error.failure, Failure::Temporary { retry_after: Some(minute) });
}

#[tokio::test]
async fn long_texts_stay_under_twenty_thousand_bytes_row_114() {
    for (format, text) in [
        (Format::Text, "\"quoted\" 漢字 \\ ".repeat(3_000)),
        (Format::Markdown, "*a* `b` \\_ 漢字 <c>\n\n".repeat(3_000)),
    ] {
        let far_end = DingTalk::start().await;
        let message = message(&text, format);
        let cx = context(&message, Some(&far_end.address));
        channel(SECRET).deliver(&message, &cx).await.unwrap();
        let parts = far_end.messages().len();
        assert!((3..=10).contains(&parts), "{parts}");
    }
}

#[tokio::test]
async fn markdown_goes_out_as_markdown_and_calls_nobody_row_113() {
    let far_end = DingTalk::start().await;
    let message = message("**a**\nb @all", Format::Markdown);
    let cx = context(&message, Some(&far_end.address));
    channel(SECRET).deliver(&message, &cx).await.unwrap();
    let sent = &far_end.messages()[0];
    let link = "[https://ci.example.com/7](https://ci.example.com/7)";
    let told = format!("### ⚠️ Build failed\n\n**a**\n\nb @all\n\n{link}");
    assert_eq!(sent["markdown"]["text"], told);
    assert_eq!(sent["at"]["isAtAll"], false);
}
