//! What keeps a person from being told too much: quiet hours and snoozes.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should say where, and the program goes by the real clock"
)]

use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use serde_json::{Value, json};

use crate::support::{Desk, FarEnd, until};

fn hook(far_end: &FarEnd) -> String {
    format!("[channels.hook]\nkind = \"webhook_json\"\nurl = \"{}\"\n", far_end.url())
}

/// Reports a push; returns the event's id.
fn push(desk: &Desk, level: &str, text: &str) -> String {
    let body = json!({ "text": text, "kind": "push", "level": level });
    let answer = desk.post("/v1/events", &body);
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["id"].as_str().unwrap().to_owned()
}

fn delivery(desk: &Desk, event: &str) -> Value {
    desk.get(&format!("/v1/deliveries/{event}.hook")).json()
}

#[track_caller]
fn expect(desk: &Desk, event: &str, state: &str) -> Value {
    until(&format!("{event} to be {state}"), || {
        let delivery = delivery(desk, event);
        (delivery["state"] == state).then_some(delivery)
    })
}

#[track_caller]
fn done(desk: &Desk, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = desk.run(arguments);
    assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
    stdout + &stderr
}

#[test]
fn quiet_hours_hold_back_what_is_not_serious_and_why_says_so() {
    let far_end = FarEnd::start();
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let time = |hours: i64| now.checked_add(hours.hours()).unwrap().strftime("%H:%M").to_string();
    let quiet =
        format!("[quiet]\nfrom = \"{}\"\nto = \"{}\"\ntime_zone = \"UTC\"\n", time(-2), time(2));
    let mut desk = Desk::with_config(&(hook(&far_end) + &quiet));
    desk.serve();
    let info = push(&desk, "info", "the build is green");
    let error = push(&desk, "error", "the disk is full");
    expect(&desk, &error, "sent");
    let held = delivery(&desk, &info);
    assert_eq!(held["state"], "pending");
    assert_eq!(held["reason"], "no routes are configured; held for the quiet hours");
    let why = done(&desk, &["why", &info]);
    assert!(why.contains("held for the quiet hours"), "{why}");
    assert!(!why.contains("today's decide otherwise"), "{why}");
    assert!(done(&desk, &["channel", "list"]).contains("quiet until"));
    assert!(done(&desk, &["doctor"]).contains("quiet until"));
    // Somebody waits for a test, whatever the hour.
    assert!(done(&desk, &["channel", "test", "hook"]).contains("the far end took it"));
    // A channel's own hours go before those of all.
    let own = "quiet = { breaks_through = \"debug\" }\n";
    desk.configure(&(hook(&far_end) + own + &quiet));
    until("the channel's own hours", || {
        let list = desk.get("/v1/channels").json();
        let event = push(&desk, "info", "now");
        (delivery(&desk, &event)["reason"] == "no routes are configured").then_some(list)
    });
    assert_eq!(delivery(&desk, &info)["state"], "pending");
}

#[test]
fn a_snooze_holds_back_everything_and_survives_a_restart() {
    let far_end = FarEnd::start();
    let mut desk = Desk::with_config(&hook(&far_end));
    desk.serve();
    assert!(done(&desk, &["snooze"]).contains("nothing is snoozed"));
    assert!(done(&desk, &["snooze", "hook", "2h"]).contains("hook is snoozed until"));
    let before = push(&desk, "emergency", "before the restart");
    desk.kill();
    desk.serve();
    let after = push(&desk, "emergency", "after the restart");
    for event in [&before, &after] {
        let held = delivery(&desk, event);
        assert_eq!((&held["state"], &held["attempt_count"]), (&json!("pending"), &json!(0)));
        let waits_for = held["waits_for"].as_str().unwrap();
        assert!(waits_for.ends_with("held while it is snoozed"), "{waits_for}");
    }
    assert!(done(&desk, &["channel", "list"]).contains("snoozed until"));
    let doctor = done(&desk, &["doctor"]);
    assert!(doctor.contains("snoozed until") && doctor.contains("--off"), "{doctor}");
    assert!(done(&desk, &["snooze", "hook", "--off"]).contains("2 held back: they come now"));
    for event in [&before, &after] {
        expect(&desk, event, "sent");
    }
    assert_eq!(far_end.wait_for(2).len(), 2);
    done(&desk, &["snooze", "all", "30m"]);
    expect(&desk, &push(&desk, "error", "held again"), "pending");
    let snoozed = desk.get("/v1/snooze").json();
    assert!(snoozed["all"].is_string() && snoozed["channels"] == json!({}), "{snoozed}");
    done(&desk, &["snooze", "all", "--off"]);
    far_end.wait_for(3);
}

#[test]
fn a_snooze_that_is_wrong_is_refused() {
    let far_end = FarEnd::start();
    let mut desk = Desk::with_config(&hook(&far_end));
    desk.serve();
    for (arguments, code, said) in [
        (&["snooze", "hook"][..], 2, "for how long?"),
        (&["snooze", "hook", "soon"], 2, "a length of time"),
        (&["snooze", "hook", "400d"], 2, "at most 366d"),
        (&["snooze", "hok", "2h"], 1, "configured are: hook"),
        (&["snooze", "hook", "2h", "--off"], 2, "cannot be used with"),
    ] {
        let (exit, stdout, stderr) = desk.run(arguments);
        assert_eq!(exit, code, "{arguments:?}: {stdout}{stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
    assert_eq!(desk.get("/v1/snooze").json(), json!({ "channels": {} }));
}
