//! `deskbell lab`: every kind against its fake, and what the fakes do that is no success.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use serde_json::{Value, json};

use crate::support::{Desk, Lab, StandIn, until};

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

/// A desk with a daemon whose channels are those of `kinds`, wherever they send to.
fn serving(lab: &Lab, stand_in: &StandIn, kinds: &[&str]) -> Desk {
    let mut desk = Desk::with_config(&lab.channels(kinds));
    serve(&mut desk, stand_in);
    desk
}

fn serve(desk: &mut Desk, stand_in: &StandIn) {
    let environment = stand_in.environment();
    desk.serve_with_env(&environment.each_ref().map(|(name, value)| (*name, value.as_str())));
}

/// The delivery of `event` to the fake of `kind`, once it was tried.
fn tried(desk: &Desk, event: &str, kind: &str) -> Value {
    until(&format!("the end of {kind}"), || {
        let delivery = desk.get(&format!("/v1/deliveries/{event}.lab-{kind}")).json();
        (!delivery["attempts"].as_array()?.is_empty()).then_some(delivery)
    })
}

#[test]
fn every_kind_of_the_lab_takes_what_its_channel_sends() {
    let lab = Lab::start(&Desk::new());
    let (kinds, stand_in) = (lab.kinds(), lab.stand_in());
    assert!(kinds.len() > 60, "{kinds:?}");
    let desk = serving(&lab, &stand_in, &kinds);
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
    let (kinds, stand_in) = (editing(&lab), lab.stand_in());
    let mut desk = serving(&lab, &stand_in, &kinds);
    step(&desk, &kinds, "first", "start", "the first begins");
    step(&desk, &kinds, "first", "error", "the first has failed");
    step(&desk, &kinds, "second", "start", "the second begins");
    desk.kill();
    serve(&mut desk, &stand_in);
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
    let (kinds, stand_in) = (editing(&lab), lab.stand_in());
    let desk = serving(&lab, &stand_in, &kinds);
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
    let stand_in = lab.stand_in();
    let route = "[[routes]]\nchannels = [\"lab-dingtalk_bot\"]\ngroup_by = \"context\"\n\
        group_wait = \"2s\"\ngroup_interval = \"2s\"\n";
    let mut desk = Desk::with_config(&(lab.channels(&["dingtalk_bot"]) + route));
    serve(&mut desk, &stand_in);
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
