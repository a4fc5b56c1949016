//! `deskbell lab`: every kind against its fake, and what the fakes do that is no success.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use std::time::Duration;

use deskbell_channels::files::Files;
use serde_json::{Value, json};

use crate::support::{Desk, Lab, until};

/// On-call services: the steps of a run are one alert, which the last one closes.
const ALERTS: [&str; 8] = [
    "goalert",
    "ilert",
    "incidentio",
    "jira_jsm",
    "opsgenie",
    "pagerduty",
    "signl4",
    "splunk_oncall",
];

/// A desk with a daemon whose channels are those of `kinds` as the lab has printed them.
fn serving(lab: &Lab, kinds: &[&str]) -> Desk {
    let mut desk = Desk::with_config(&lab.channels(kinds));
    desk.serve();
    desk
}

/// Every kind that is reached by HTTP.
fn http_kinds() -> Vec<&'static str> {
    let kinds = deskbell_channels::kinds().iter().filter(|kind| kind.speaks_http());
    kinds.map(|kind| kind.about.name).collect()
}

/// The delivery of `event` to the fake of `kind`, once it was tried.
fn tried(desk: &Desk, event: &str, kind: &str) -> Value {
    until(&format!("the end of {kind}"), || {
        let delivery = desk.get(&format!("/v1/deliveries/{event}.lab-{kind}")).json();
        (!delivery["attempts"].as_array()?.is_empty()).then_some(delivery)
    })
}

#[test]
fn every_kind_that_speaks_http_delivers_to_the_lab_with_what_it_printed() {
    let lab = Lab::start(&Desk::new());
    let kinds = http_kinds();
    assert_eq!(lab.kinds(), kinds);
    let desk = serving(&lab, &kinds);
    let long = "a word that fills, with <marks> & \"quotes\" 你好\n".repeat(60);
    for text in ["short", long.as_str()] {
        let told = json!({ "kind": "push", "title": "a title", "text": text });
        let event = desk.post("/v1/events", &told).json()["id"].as_str().unwrap().to_owned();
        for kind in &kinds {
            let delivery = tried(&desk, &event, kind);
            let of_kind = lab.messages().into_iter().filter(|seen| seen["kind"] == *kind);
            let seen: Vec<_> = of_kind.collect();
            assert_eq!(delivery["state"], "sent", "{delivery}\n{seen:?}");
            assert!(seen.iter().any(|seen| seen["taken"] == true), "{kind}: {seen:?}");
        }
    }
}

#[test]
fn a_call_returns_before_any_kind_has_delivered_row_110() {
    let lab = Lab::start(&Desk::new());
    let kinds = http_kinds();
    let mut desk = Desk::with_config(&lab.channels_with("hang", &kinds));
    desk.serve();
    for kind in kinds {
        let told = json!({ "kind": "push", "text": "hurry", "to": [format!("lab-{kind}")] });
        // The best of a few, because what else the machine does at one moment is not ours.
        let mut calls: Vec<_> = (0..3)
            .map(|_| {
                let start = now();
                let event = desk.post("/v1/events", &told).json();
                (start.elapsed(), event["id"].as_str().unwrap().to_owned())
            })
            .collect();
        calls.sort();
        let (fastest, event) = &calls[0];
        assert!(*fastest < Duration::from_millis(200), "{kind}: {fastest:?}");
        let delivery = desk.get(&format!("/v1/deliveries/{event}.lab-{kind}")).json();
        assert!(delivery["state"] == "pending" || delivery["state"] == "in_flight", "{delivery}");
    }
}

#[test]
fn all_kinds_at_once_arrive_but_the_one_that_is_refused_row_108() {
    const REFUSED: &str = "telegram";
    let lab = Lab::start(&Desk::new());
    let mut kinds = http_kinds();
    kinds.retain(|kind| *kind != REFUSED);
    let refused = lab.channels_with("refuse", &[REFUSED]);
    let mut desk = Desk::with_config(&(lab.channels(&kinds) + &refused));
    desk.serve();
    let told = json!({ "kind": "push", "title": "a title", "text": "to all of them" });
    let event = desk.post("/v1/events", &told).json()["id"].as_str().unwrap().to_owned();
    for kind in &kinds {
        let delivery = tried(&desk, &event, kind);
        assert_eq!(delivery["state"], "sent", "{delivery}");
        assert!(!lab.held_by(kind).is_empty(), "{kind}");
    }
    let delivery = tried(&desk, &event, REFUSED);
    assert_eq!(delivery["state"], "given_up", "{delivery}");
    assert_eq!(lab.held_by(REFUSED).len(), 0);
}

#[test]
fn whoever_looks_is_told_of_a_stand_in() {
    let lab = Lab::start(&Desk::new());
    let desk = serving(&lab, &["slack_bot"]);
    let place = format!("{}/slack_bot", lab.url);
    let told = format!("talks to a stand-in at {place}; nothing reaches Slack");
    let (_, test, _) = desk.run(&["channel", "test", "lab-slack_bot"]);
    assert!(test.contains(&format!("the stand-in at {place} took it")), "{test}");
    let (_, _, list) = desk.run(&["channel", "list"]);
    assert!(list.contains(&told), "{list}");
    let (_, doctor, _) = desk.run(&["doctor"]);
    assert!(doctor.contains(&told), "{doctor}");
    let (_, why, _) = desk.run(&["why"]);
    assert!(why.contains(&format!("talks to a stand-in at {place}")), "{why}");
    let (_, shown, noted) = desk.run(&["channel", "preview", "lab-slack_bot", "--body", "b"]);
    assert!(noted.contains(&told), "{noted}");
    assert!(shown.contains("https://slack.com/api/"), "{shown}");
}

#[test]
fn a_stand_in_elsewhere_or_for_what_speaks_no_http_is_refused() {
    let check = |kind: &str, options: &str, expected: &str| {
        let desk = Desk::with_config(&format!("[channels.tried]\nkind = '{kind}'\n{options}"));
        let (_, found, _) = desk.run(&["config", "check"]);
        assert!(found.contains(expected), "{found}");
        assert!(!found.contains("hunter2"), "{found}");
    };
    let here = "expected an address of this machine such as `http://127.0.0.1:8390/slack_bot`";
    for stand_in in ["http://example.com", "http://10.0.0.1/", "http://me:hunter2@127.0.0.1/"] {
        check("ntfy", &format!("topic = 't'\nstand_in = '{stand_in}'"), here);
    }
    let options = "path = 'bell.txt'\nstand_in = 'http://127.0.0.1:1'";
    check("file", options, "`stand_in` is for kinds that speak HTTP, and `file` does not");
}

/// What a kind does with a file in a message, in the lab.
#[test]
fn every_kind_of_the_lab_that_takes_files_takes_one() {
    let lab = Lab::start(&Desk::new());
    let mut kinds = lab.kinds();
    kinds.retain(|name| deskbell_channels::kind(name).unwrap().files != Files::Not);
    assert!(["telegram", "slack_bot", "matrix", "sendgrid"].iter().all(|it| kinds.contains(it)));
    let desk = serving(&lab, &kinds);
    for name in ["shot.png", "report.json"] {
        std::fs::write(desk.folder().join(name), "{\"a\": 1}").unwrap();
        let to: Vec<_> = kinds.iter().map(|kind| format!("--to=lab-{kind}")).collect();
        let told = ["notify", "the text", "--attach", name, "--json"].into_iter();
        let told: Vec<_> = told.chain(to.iter().map(String::as_str)).collect();
        let (code, stdout, stderr) = desk.run(&told);
        assert_eq!(code, 0, "{stderr}");
        let event: Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
        for kind in &kinds {
            let delivery = tried(&desk, event["id"].as_str().unwrap(), kind);
            let seen: Vec<_> =
                lab.messages().into_iter().filter(|seen| seen["kind"] == *kind).collect();
            assert_eq!(delivery["state"], "sent", "{delivery}\n{seen:?}");
            let takes_it = !matches!(
                deskbell_channels::kind(kind).unwrap().files,
                Files::Pictures { .. } if name.ends_with("json")
            );
            let error = &delivery["attempts"][0]["error"];
            assert_eq!(error.is_null(), takes_it, "{kind}: {delivery}\n{seen:?}");
        }
    }
    let of_telegram = lab.held_by("telegram");
    let told = |name: &str| of_telegram.iter().any(|seen| seen["text"] == name);
    assert!(told("shot.png") && told("report.json"), "{of_telegram:?}");
}

/// The kinds of the lab that tell a run as one message.
fn editing(lab: &Lab) -> Vec<&'static str> {
    let mut kinds = lab.kinds();
    kinds.retain(|name| {
        deskbell_channels::kind(name).unwrap().about.edits && !ALERTS.contains(name)
    });
    let known = [
        "discord_bot",
        "discord_webhook",
        "feishu_app",
        "matrix",
        "mattermost_bot",
        "rocketchat_bot",
        "slack_bot",
        "telegram",
        "webex",
        "zulip",
    ];
    let missing: Vec<_> = known.into_iter().filter(|name| !kinds.contains(name)).collect();
    assert!(missing.is_empty(), "not in the lab: {missing:?}");
    kinds
}

#[expect(clippy::disallowed_methods, reason = "a call is measured in real time")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// Tells a step of `run` and waits until every fake has it.
fn step(desk: &Desk, kinds: &[&str], run: &str, phase: &str, text: &str) {
    let told = json!({ "kind": "run", "text": text, "run": { "id": run, "phase": phase } });
    let event = desk.post("/v1/events", &told).json();
    let event = event["id"].as_str().unwrap_or_else(|| panic!("{event}")).to_owned();
    for kind in kinds {
        until(&format!("{kind} to be told that {text}"), || {
            let delivery = desk.get(&format!("/v1/deliveries/{event}.lab-{kind}")).json();
            assert_ne!(delivery["state"], "given_up", "{delivery}");
            (delivery["state"] == "sent").then_some(())
        });
    }
}

#[test]
fn a_run_is_one_message_edited_in_place_after_a_restart_too_row_117() {
    let lab = Lab::start(&Desk::new());
    let kinds = editing(&lab);
    let mut desk = serving(&lab, &kinds);
    step(&desk, &kinds, "first", "start", "the first begins");
    step(&desk, &kinds, "first", "error", "the first has failed");
    step(&desk, &kinds, "second", "start", "the second begins");
    desk.kill();
    desk.serve();
    step(&desk, &kinds, "second", "end", "the second is over");
    for kind in kinds {
        let held = lab.held_by(kind);
        let [first, second] = &held[..] else { panic!("{kind} holds {held:?}") };
        for (message, text) in [(first, "the first has failed"), (second, "the second is over")] {
            assert_eq!(message["edits"], 1, "{kind}: {message}");
            assert!(message["text"].as_str().unwrap().contains(text), "{kind}: {message}");
        }
    }
}

#[test]
fn a_message_that_is_gone_is_told_anew() {
    let lab = Lab::start(&Desk::new());
    let kinds = editing(&lab);
    let desk = serving(&lab, &kinds);
    step(&desk, &kinds, "first", "start", "the first begins");
    let port = lab.port();
    drop(lab);
    // It knows nothing of what the other one held.
    let lab = Lab::start_at(&Desk::new(), port);
    step(&desk, &kinds, "first", "end", "the first is over");
    for kind in kinds {
        let held = lab.held_by(kind);
        let [message] = &held[..] else { panic!("{kind} holds {held:?}") };
        assert_eq!(message["edits"], 0, "{kind}: {message}");
        assert!(message["text"].as_str().unwrap().contains("the first is over"), "{message}");
    }
    let seen = lab.messages();
    let refused = seen.iter().filter(|seen| seen["outcome"].as_str().unwrap().contains("to edit"));
    assert!(refused.count() >= 12, "{seen:?}");
}

#[test]
fn the_lab_misbehaves_when_it_is_told_to() {
    let desk = Desk::new();
    let lab = Lab::start(&desk);
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let post = |path: &str, body: &str| {
        let url = format!("{}{path}", lab.url);
        let mut answer = agent.post(url).header("content-type", "application/json").send(body)?;
        let text = answer.body_mut().read_to_string()?;
        Ok::<_, ureq::Error>((answer.status().as_u16(), text))
    };
    let good = r#"{"chat_id":1,"text":"hello","parse_mode":"HTML","link_preview_options":{"is_disabled":true},"disable_notification":false}"#;
    let path = "/telegram/bot1:a/sendMessage";
    let (status, body) = post(path, good).unwrap();
    assert!(status == 200 && body.contains("\"ok\":true"), "{status} {body}");
    let (status, body) = post(&format!("{path}?lab=429"), good).unwrap();
    assert!(status == 429 && body.contains("retry_after"), "{status} {body}");
    let (status, body) = post(&format!("/busy{path}"), good).unwrap();
    assert!(status == 429 && !body.contains("retry_after"), "{status} {body}");
    let (_, body) = post(&format!("/refuse{path}"), good).unwrap();
    assert!(body.contains("\"ok\":false"), "{body}");
    assert_eq!(post(&format!("/500{path}"), good).unwrap().0, 500);
    assert!(post(&format!("/garbage{path}"), good).unwrap().1.starts_with("<!doctype"));
    assert!(post(&format!("/close{path}"), good).is_err());
    let (_, body) = post(path, r#"{"chat_id":1}"#).unwrap();
    assert!(body.contains("\"ok\":false"), "{body}");
    let (_, body) = post(path, &good.replace("hello", &"x".repeat(5_000))).unwrap();
    assert!(body.contains("\"ok\":false"), "{body}");
    let edit = good.replace("\"chat_id\"", "\"message_id\":90210999,\"chat_id\"");
    let (_, body) = post("/telegram/bot1:a/editMessageText", &edit).unwrap();
    assert!(body.contains("\"ok\":false"), "{body}");
    let seen = lab.messages();
    assert_eq!(seen.iter().filter(|seen| seen["taken"] == true).count(), 1, "{seen:?}");
    for reason in ["it takes", "no message `90210999` to edit"] {
        let says_so = |seen: &Value| seen["outcome"].as_str().unwrap().contains(reason);
        assert!(seen.iter().any(says_so), "{reason}: {seen:?}");
    }
}

#[test]
fn a_burst_of_200_to_a_robot_of_20_a_minute_arrives_as_digests_complete_and_in_order() {
    let lab = Lab::start(&Desk::new());
    let route = "[[routes]]\nchannels = [\"lab-dingtalk_bot\"]\ngroup_by = \"context\"\n\
        group_wait = \"2s\"\ngroup_interval = \"2s\"\n";
    let mut desk = Desk::with_config(&(lab.channels(&["dingtalk_bot"]) + route));
    desk.serve();
    let expected: Vec<_> = (0..200).map(|number| format!("message {number} of 200")).collect();
    for text in &expected {
        let answer = desk.post("/v1/events", &json!({ "kind": "push", "text": text }));
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    let arrived = || {
        let told = lab.messages().into_iter().map(|seen| {
            assert_eq!(seen["taken"], true, "{seen}");
            seen["text"].as_str().unwrap().to_owned()
        });
        told.collect::<Vec<_>>()
    };
    let messages = until("all of them to arrive", || {
        let messages = arrived();
        messages.iter().any(|message| message.contains(&expected[199])).then_some(messages)
    });
    let told: Vec<_> = messages
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| line.ends_with(" of 200"))
        .collect();
    assert_eq!(told, expected);
    assert!(messages.len() <= 20, "{} messages", messages.len());
    let title = messages[0].lines().next().unwrap();
    assert!(title.contains(" messages in "), "{title}");
}
