//! WeCom's applications: the token is asked for once, and anew when it is not taken any more.

use deskbell_core::{delivery::Failure, event::Format};
use serde_json::json;
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{method, path, query_param},
};

use crate::{
    Configured, configured,
    sample::{context, message},
};

fn channel() -> Configured {
    let options = "corp_id = 'corp'\nsecret = 'app-secret-1'\nagent = 7\nusers = ['ada', 'bob']";
    configured("wecom_app", options)
}

async fn lends(server: &MockServer, token: &str, times: u64) {
    let answer = json!({ "errcode": 0, "access_token": token, "expires_in": 7200 });
    Mock::given(method("GET"))
        .and(path("/cgi-bin/gettoken"))
        .respond_with(ResponseTemplate::new(200).set_body_json(answer))
        .up_to_n_times(times)
        .expect(times)
        .mount(server)
        .await;
}

async fn takes(server: &MockServer, token: &str, answer: serde_json::Value) {
    Mock::given(method("POST"))
        .and(query_param("access_token", token))
        .respond_with(ResponseTemplate::new(200).set_body_json(answer))
        .mount(server)
        .await;
}

#[tokio::test]
async fn a_token_is_kept_and_asked_for_anew_when_it_is_worn() {
    let server = MockServer::start().await;
    lends(&server, "lent-token-1", 1).await;
    lends(&server, "lent-token-2", 1).await;
    let worn = json!({ "errcode": 42001, "errmsg": "access_token lent-token-1 expired" });
    takes(&server, "lent-token-1", worn).await;
    takes(&server, "lent-token-2", json!({ "errcode": 0, "errmsg": "ok", "msgid": "m1" })).await;
    let message = message("text", Format::Text);
    let cx = context(&message, Some(&server.uri()));
    let channel = channel();
    let error = channel.deliver(&message, &cx).await.unwrap_err();
    assert_eq!(error.failure, Failure::Temporary { retry_after: None });
    assert_eq!(error.message, "WeCom refused with 42001: access_token *** expired");
    for _ in 0..3 {
        let receipt = channel.deliver(&message, &cx).await.unwrap();
        assert_eq!(receipt.message_id.as_deref(), Some("m1"));
    }
}

#[tokio::test]
async fn readers_that_are_not_reached_are_named_row_109() {
    let server = MockServer::start().await;
    lends(&server, "lent-token-1", 1).await;
    takes(&server, "lent-token-1", json!({ "errcode": 0, "errmsg": "ok", "invaliduser": "bob" }))
        .await;
    let message = message("text", Format::Text);
    let cx = context(&message, Some(&server.uri()));
    let error = channel().deliver(&message, &cx).await.unwrap_err();
    assert_eq!(error.failure, Failure::Permanent);
    assert_eq!(error.message, "WeCom does not reach bob; check the names");
}
