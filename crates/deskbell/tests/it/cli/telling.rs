//! `notify` and `event`: what is shown of a repeat, and how long is waited.

use std::time::{Duration, Instant};

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
