//! `notify` and `event`: what is shown of a repeat, and how long is waited.

use std::{
    fs,
    time::{Duration, Instant},
};

use super::{lines, with_channel};
use crate::support::{Desk, FarEnd, Reply};

#[test]
fn a_repeat_shows_what_was_told_and_not_what_it_says_now() {
    let desk = Desk::new();
    assert_eq!(desk.run(&["notify", "first", "--key", "k"]).0, 0);
    let (code, stdout, stderr) = desk.run(&["notify", "second", "-l", "error", "--key", "k"]);
    assert_eq!((code, stdout.as_str()), (0, ""), "{stderr}");
    let told = "it was told before under this key, and is not told again";
    assert_eq!(stderr, format!("INFO   llm  first\n{told}\n"));
}

#[test]
fn a_repeat_is_answered_although_its_channel_is_gone() {
    let far_end = FarEnd::start();
    let mut desk = with_channel(&far_end);
    let notify = ["notify", "a", "--key", "k", "--to", "far", "--json"];
    let first = lines(&desk.run(&notify).1);
    desk.terminate();
    desk.configure("");
    let (code, stdout, stderr) = desk.run(&notify);
    assert_eq!(code, 0, "{stderr}");
    let repeat = lines(&stdout);
    assert_eq!((&repeat[0]["id"], &repeat[0]["duplicate"]), (&first[0]["id"], &true.into()));
    assert_eq!(repeat[0]["channels"][0], "far");
    assert_eq!(desk.run(&["notify", "a", "--key", "another", "--to", "far"]).0, 2);
}

#[test]
fn a_wait_lasts_as_long_as_it_was_asked_for() {
    let far_end = FarEnd::answering(|_, _| Reply::after(Duration::from_mins(1)));
    let desk = with_channel(&far_end);
    #[expect(clippy::disallowed_methods, reason = "a test of real processes waits in real time")]
    let start = Instant::now();
    let (code, _, stderr) = desk.run(&["notify", "a", "--to", "far", "-w", "--timeout", "1s"]);
    assert_eq!(code, 13, "{stderr}");
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn a_time_out_needs_something_to_wait_for() {
    let desk = Desk::new();
    let (code, _, stderr) = desk.run(&["notify", "a", "--timeout", "5s"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("--wait"), "{stderr}");
}

/// A desk whose channel `far` takes files.
fn with_ntfy(far_end: &FarEnd) -> Desk {
    let url = far_end.url();
    Desk::with_config(&format!(
        "[channels.far]\nkind = \"ntfy\"\nserver = \"{url}\"\ntopic = \"builds\"\n"
    ))
}

fn far_end_of_ntfy() -> FarEnd {
    FarEnd::answering(|_, _| Reply { body: "{\"id\":\"x\"}".to_owned(), ..Reply::status(200) })
}

#[test]
fn a_file_is_read_when_it_is_sent() {
    let far_end = far_end_of_ntfy();
    let desk = with_ntfy(&far_end);
    fs::write(desk.folder().join("build.log"), "two errors").unwrap();
    let notify = ["notify", "it failed", "--attach", "build.log", "--to", "far", "--wait"];
    let (code, _, stderr) = desk.run(&notify);
    assert_eq!(code, 0, "{stderr}");
    let [text, file] = far_end.requests().try_into().unwrap();
    assert_eq!(text.json()["message"], "it failed");
    assert_eq!((file.method.as_str(), file.body.as_str()), ("PUT", "two errors"));
    assert_eq!(file.path, "/builds?filename=build.log&priority=2");
    let (code, _, stderr) = desk.run(&["notify", "a", "--attach", "gone.log"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("cannot attach `gone.log`: "), "{stderr}");
}

#[test]
fn a_preview_shows_a_file_by_its_size() {
    let far_end = far_end_of_ntfy();
    let desk = with_ntfy(&far_end);
    fs::write(desk.folder().join("shot.png"), [0x89, 0xff, 0]).unwrap();
    let preview = |address: &str| {
        let arguments = [
            "channel",
            "preview",
            address,
            "--body",
            "b",
            "--attach",
            "shot.png",
            "--link",
            "https://h/7",
        ];
        let (code, stdout, stderr) = desk.run(&arguments);
        assert_eq!(code, 0, "{stderr}");
        stdout
    };
    assert!(preview("far").contains("[3 bytes]"));
    let form = preview("tgram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/7");
    assert!(form.contains("/sendPhoto") && form.contains("filename=\"shot.png\""), "{form}");
    let picture = preview("pover://uQiRzpo4DXghDmr9QzzfQu27cmVRsG@azGDORePK8gMaC0QOYAMyEEuzJnyUi");
    assert!(picture.contains("name=\"attachment\"; filename=\"shot.png\""), "{picture}");
    let named = preview("gotifys://gotify.example.com/AKs9f0Qe1vGdx7c");
    assert!(named.contains("Attached: shot.png (3 bytes)"), "{named}");
    assert!(far_end.requests().is_empty());
}
