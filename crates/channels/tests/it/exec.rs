//! Programs that are run for a message.

use std::{fs, path::Path, time::Duration};

use deskbell_channels::{SendContext, SendError};
use deskbell_core::{delivery::Failure, event::Format};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    Configured, configured,
    real::until,
    sample::{context, message},
};

/// A channel that runs `script` in a shell, in `folder`.
fn script(folder: &Path, script: &str) -> Configured {
    let options = toml::Table::from_iter([
        ("command".to_owned(), toml::Value::from(vec!["/bin/sh", "-c", script])),
        ("directory".to_owned(), folder.display().to_string().into()),
        (
            "env".to_owned(),
            toml::Table::from_iter([("TOKEN".to_owned(), "tell-token-4711".into())]).into(),
        ),
    ]);
    configured("exec", &options.to_string())
}

async fn outcome(folder: &TempDir, program: &str) -> Result<(), SendError> {
    let text = message("2 of 340\n\"failed\" $(touch evil) `touch evil`", Format::Text);
    let channel = script(folder.path(), program);
    channel.deliver(&text, &context(&text, None)).await.map(drop)
}

#[tokio::test]
async fn the_program_gets_the_message_as_json_and_as_variables() {
    let folder = tempfile::tempdir().unwrap();
    outcome(
        &folder,
        r#"cat > json; printf '%s|%s|%s|%s' "$TITLE" "$BODY" "$SEVERITY" "$TOKEN" > told"#,
    )
    .await
    .unwrap();
    let read = |name| fs::read_to_string(folder.path().join(name)).unwrap();
    let told: Value = serde_json::from_str(&read("json")).unwrap();
    assert_eq!(told["title"], "Build failed");
    assert_eq!(told["delivery_id"], "019b7c2e-5f00-7000-8000-000000000001.team");
    assert_eq!(
        read("told"),
        "Build failed|2 of 340\n\"failed\" $(touch evil) `touch evil`|warning|tell-token-4711"
    );
    assert!(!folder.path().join("evil").exists(), "no shell reads the message");
}

#[tokio::test]
async fn the_exit_code_says_what_a_failure_means() {
    let folder = tempfile::tempdir().unwrap();
    let error =
        outcome(&folder, "echo; echo first >&2; echo 'no room tell-token-4711' >&2; exit 3")
            .await
            .unwrap_err();
    assert_eq!(error.failure, Failure::Permanent);
    assert_eq!(error.message, "the program ended with 3: no room ***");
    let error = outcome(&folder, "echo busy; exit 75").await.unwrap_err();
    assert_eq!(error.failure, Failure::Temporary { retry_after: None });
    assert_eq!(error.message, "the program asks to try again later: busy");
    let error = outcome(&folder, "kill -9 $$").await.unwrap_err();
    assert_eq!(error.failure, Failure::Temporary { retry_after: None });
}

#[tokio::test]
async fn a_program_that_is_not_there_is_a_failure_for_good() {
    let text = message("text", Format::Text);
    for program in ["/nowhere/tell", "/etc/hostname"] {
        let channel = configured("exec", &format!("command = ['{program}']"));
        let error = channel.deliver(&text, &context(&text, None)).await.unwrap_err();
        assert_eq!(error.failure, Failure::Permanent, "{error}");
    }
}

/// Row 109.
#[tokio::test]
async fn a_program_that_takes_too_long_is_killed_with_what_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let text = message("text", Format::Text);
    let program = "sleep 600 & echo $! > child; echo $$ > leader; wait";
    let channel = script(folder.path(), program);
    let cx = SendContext { timeout: Duration::from_secs(2), ..context(&text, None) };
    let error = channel.deliver(&text, &cx).await.unwrap_err();
    assert_eq!(error.failure, Failure::Temporary { retry_after: None });
    for name in ["leader", "child"] {
        let id = fs::read_to_string(folder.path().join(name)).unwrap();
        // What is dead and not yet buried has no command line.
        let command = Path::new("/proc").join(id.trim()).join("cmdline");
        until("the program to be dead", || {
            fs::read(&command).map_or(true, |line| line.is_empty()).then_some(())
        });
    }
}

#[tokio::test]
async fn a_program_may_leave_something_running_and_say_more_than_anybody_reads() {
    let folder = tempfile::tempdir().unwrap();
    outcome(&folder, "sleep 20 & head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2")
        .await
        .unwrap();
}
