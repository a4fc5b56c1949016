//! What keeps a person from being told too much: quiet hours and snoozes.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should say where, and the program goes by the real clock"
)]

use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use serde_json::{Value, json};

use crate::support::{Desk, FarEnd, Reply, until};

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

#[test]
fn fifty_notices_that_say_the_same_are_one_delivery_with_their_count_row_19() {
    let far_end = FarEnd::start();
    let route = "[[routes]]\nchannels = [\"hook\"]\ngroup_by = \"text\"\ngroup_wait = \"2s\"\nrepeat_interval = \"4h\"\n";
    let mut desk = Desk::with_config(&(hook(&far_end) + route));
    desk.serve();
    let report = json!({ "text": "the disk is full", "title": "Disk", "level": "notice" });
    let lines = vec![report.to_string(); 50].join("\n");
    let head = [("content-type", "application/x-ndjson")];
    let answer = desk.request("POST", "/v1/events", &head, Some(&lines));
    assert_eq!(answer.status, 200, "{answer:?}");
    let ids: Vec<String> = answer
        .body
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 50);
    // The journal survives what happens while they wait.
    desk.kill();
    desk.serve();
    for id in &ids {
        expect(&desk, id, "sent");
    }
    let requests = far_end.wait_for(1);
    assert_eq!(requests[0].json()["title"], "50 × Disk");
    assert_eq!(requests[0].json()["body"], "the disk is full");
    assert_eq!(delivery(&desk, &ids[49])["told_with"], ids[0].as_str());
    let why = done(&desk, &["why", &ids[49]]);
    assert!(why.contains(&format!("told in one message with event {}", ids[0])), "{why}");
    assert!(why.contains("grouped by text, after 2s and at most every 1m; "), "{why}");
    assert!(done(&desk, &["why", &ids[0]]).contains("in one message with 49 other events"));
    // One more of the same within four hours is a repeat.
    let answer = desk.post("/v1/events", &report).json();
    let repeat = delivery(&desk, answer["id"].as_str().unwrap());
    assert_eq!(repeat["state"], "superseded");
    let first = repeat["repeat_of"].as_str().unwrap();
    assert!(ids.iter().any(|id| id == first), "{repeat}");
    let list = done(&desk, &["delivery", "list", "--state", "superseded"]);
    assert!(list.contains(&format!("not told: it says the same as event {first}")), "{list}");
    assert_eq!(far_end.requests().len(), 1);
}

/// Promise "loses none": a repeat is dropped for the sake of a message that arrived, and of no other.
#[test]
fn news_that_was_dropped_for_a_message_that_is_given_up_is_told_after_all() {
    let far_end = FarEnd::answering(|number, _| match number {
        0 => Reply { delay: std::time::Duration::from_secs(2), ..Reply::status(400) },
        _ => Reply::status(200),
    });
    let route =
        "[[routes]]\nchannels = [\"hook\"]\nrepeat_interval = \"4h\"\nrepeat_by = \"title\"\n";
    let mut desk = Desk::with_config(&(hook(&far_end) + route));
    desk.serve();
    let disk = |text: &str| {
        let answer = desk.post("/v1/events", &json!({ "text": text, "title": "Disk" }));
        answer.json()["id"].as_str().unwrap().to_owned()
    };
    let first = disk("90 % full");
    far_end.wait_for(1);
    let second = disk("95 % full");
    expect(&desk, &second, "superseded");
    let third = disk("full");
    expect(&desk, &first, "given_up");
    for event in [&second, &third] {
        expect(&desk, event, "sent");
    }
    let told = far_end.wait_for(2)[1].json();
    assert_eq!((&told["title"], &told["body"]), (&json!("2 × Disk"), &json!("full")));
    // By hand it may be tried again, and is counted on.
    let id = format!("{first}.hook");
    done(&desk, &["delivery", "retry", &id]);
    expect(&desk, &first, "sent");
    let list = done(&desk, &["delivery", "list", "-e", &first]);
    assert!(list.contains("2 attempts"), "{list}");
    let why = done(&desk, &["why", &first]);
    let lines: Vec<_> = why.lines().map(str::trim).collect();
    let place = |start: &str| lines.iter().position(|line| line.starts_with(start)).unwrap();
    assert_eq!(place("tried again by hand at"), place("attempt 1 at") + 1, "{why}");
    assert_eq!(place("attempt 2 at"), place("attempt 1 at") + 2, "{why}");
}
