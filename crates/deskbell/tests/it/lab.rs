//! `deskbell lab`, and what a daemon delivers to far ends that misbehave while it is killed.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{Desk, until};

/// Kinds without a limit per minute, which would be what the test waits for.
const KINDS: [&str; 10] = [
    "apprise_api",
    "bark",
    "chanify",
    "gotify",
    "mattermost_webhook",
    "ntfy",
    "pushdeer",
    "rocketchat_webhook",
    "telegram",
    "zulip",
];

/// How many events go to each of the ten. An unoptimised daemon gets a fifth, because ten thousand deliveries take it
/// minutes.
const EVENTS: usize = if cfg!(debug_assertions) { 200 } else { 1_000 };

/// How often the daemon is killed.
const KILLS: usize = 8;

/// How many callers report at the same time.
const CALLERS: usize = 4;

/// How long all of it may take.
const PATIENCE: Duration = Duration::from_mins(5);

/// The lab as a program of its own. It ends with its value.
struct Lab {
    child: Child,
    url: String,
    page: toml::Table,
}

impl Lab {
    fn start(desk: &Desk) -> Self {
        let mut command = desk.command(&["lab", "--port", "0"]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut page = String::new();
        for line in lines.by_ref().map_while(Result::ok) {
            page.extend([line.as_str(), "\n"]);
            if line.starts_with("# Not in the lab") {
                break;
            }
        }
        let line = said.next().unwrap().unwrap();
        let url = line.strip_prefix("the lab listens on ").unwrap().to_owned();
        thread::spawn(move || lines.for_each(drop));
        let page = page.parse().unwrap_or_else(|error| panic!("{error} in {page}"));
        Self { child, url, page }
    }

    /// The channels of `kinds`, with what `/mixed` in front of the kind does if `is_mixed`.
    fn channels(&self, kinds: &[&str], is_mixed: bool) -> String {
        let all = self.page["channels"].as_table().unwrap();
        let chosen = kinds.iter().map(|kind| {
            let name = format!("lab-{kind}");
            let channel = all.get(&name).unwrap_or_else(|| panic!("{kind} is not in the lab"));
            (name, channel.clone())
        });
        let channels =
            toml::Table::from_iter([("channels".to_owned(), toml::Value::Table(chosen.collect()))]);
        let text = channels.to_string();
        let mixed = format!("{}/mixed/", self.url);
        if is_mixed { text.replace(&format!("{}/", self.url), &mixed) } else { text }
    }

    fn messages(&self) -> Vec<Value> {
        let mut answer = ureq::get(&self.url).call().unwrap();
        let body = answer.body_mut().with_config().limit(100_000_000).read_to_string().unwrap();
        let list: Value = serde_json::from_str(&body).unwrap();
        list["messages"].as_array().unwrap().clone()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn every_kind_of_the_lab_takes_what_its_channel_sends() {
    let mut desk = Desk::new();
    let lab = Lab::start(&desk);
    let all = lab.page["channels"].as_table().unwrap();
    let kinds: Vec<_> = all.values().map(|channel| channel["kind"].as_str().unwrap()).collect();
    assert!(kinds.len() > 15, "{kinds:?}");
    desk.configure(&lab.channels(&kinds, false));
    desk.serve();
    let long = "a word that fills, with <marks> & \"quotes\" 你好\n".repeat(60);
    for text in ["short", long.as_str()] {
        let told = json!({ "kind": "push", "title": "a title", "text": text });
        let event = desk.post("/v1/events", &told).json()["id"].as_str().unwrap().to_owned();
        for kind in &kinds {
            let path = format!("/v1/deliveries/{event}.lab-{kind}");
            let delivery = until(&format!("the end of {kind}"), || {
                let delivery = desk.get(&path).json();
                (!delivery["attempts"].as_array()?.is_empty()).then_some(delivery)
            });
            let of_kind = lab.messages().into_iter().filter(|seen| seen["kind"] == **kind);
            let seen: Vec<_> = of_kind.collect();
            assert_eq!(delivery["state"], "sent", "{delivery}\n{seen:?}");
            assert!(seen.iter().any(|seen| seen["taken"] == true), "{kind}: {seen:?}");
        }
    }
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
    let (_, body) = post(&format!("/refuse{path}"), good).unwrap();
    assert!(body.contains("\"ok\":false"), "{body}");
    assert_eq!(post(&format!("/500{path}"), good).unwrap().0, 500);
    assert!(post(&format!("/garbage{path}"), good).unwrap().1.starts_with("<!doctype"));
    assert!(post(&format!("/close{path}"), good).is_err());
    let (_, body) = post(path, r#"{"chat_id":1}"#).unwrap();
    assert!(body.contains("\"ok\":false"), "{body}");
    let (_, body) = post(path, &good.replace("hello", &"x".repeat(5_000))).unwrap();
    assert!(body.contains("\"ok\":false"), "{body}");
    let seen = lab.messages();
    assert_eq!(seen.iter().filter(|seen| seen["taken"] == true).count(), 1, "{seen:?}");
    assert!(
        seen.iter().any(|seen| seen["outcome"].as_str().unwrap().contains("it takes")),
        "{seen:?}"
    );
}

/// Reports all events, some callers at once, again and again until each is accepted, while `kill` ends the daemon.
/// Gives the text of each event by its id.
fn report_all(desk: &Mutex<Desk>) -> BTreeMap<String, String> {
    let accepted = Mutex::new(BTreeMap::new());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= EVENTS {
                        return;
                    }
                    let text = format!("event {number} of the storm");
                    let told = json!({ "kind": "push", "text": text });
                    let key = format!("storm-{number}");
                    let id = until("the event to be accepted", || report(desk, &told, &key));
                    accepted.lock().unwrap().insert(id, text);
                }
            });
        }
        let kills = scope.spawn(|| {
            for kill in 1..=KILLS {
                let at = kill * EVENTS / (KILLS + 1);
                until("the moment of the kill", || {
                    (accepted.lock().unwrap().len() >= at).then_some(())
                });
                let mut desk = desk.lock().unwrap();
                desk.kill();
                desk.serve();
            }
        });
        kills.join().unwrap();
    });
    accepted.into_inner().unwrap()
}

/// Reports one event; `None` if the daemon dies over it.
fn report(desk: &Mutex<Desk>, told: &Value, key: &str) -> Option<String> {
    let (url, token) = {
        let desk = desk.lock().unwrap();
        (desk.url(), desk.token())
    };
    let answer = ureq::post(format!("{url}/v1/events"))
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header("idempotency-key", key)
        .send(told.to_string());
    let body = answer.ok()?.body_mut().read_to_string().ok()?;
    let body: Value = serde_json::from_str(&body).ok()?;
    Some(body["id"].as_str()?.to_owned())
}

/// Waits until nothing is left to deliver, however long the far ends want to be left alone.
#[expect(clippy::disallowed_methods, reason = "a test of real processes waits in real time")]
fn settle(desk: &Desk) {
    let begun = Instant::now();
    let is_empty = |state: &str| {
        let page = desk.get(&format!("/v1/deliveries?state={state}&limit=1")).json();
        page["deliveries"].as_array().unwrap().is_empty()
    };
    while !(is_empty("pending") && is_empty("in_flight")) {
        assert!(begun.elapsed() < PATIENCE, "deliveries are still open");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_storm_of_mishaps_and_kills_loses_nothing_and_repeats_nothing_that_has_a_receipt() {
    let desk = Desk::new();
    let lab = Lab::start(&desk);
    let channels = lab.channels(&KINDS, true);
    desk.configure(&format!("{channels}\n[delivery]\nattempts = 4\ntimeout = \"2s\"\n"));
    let desk = Mutex::new(desk);
    desk.lock().unwrap().serve();
    let accepted = report_all(&desk);
    assert_eq!(accepted.len(), EVENTS);
    let desk = desk.into_inner().unwrap();
    settle(&desk);
    let mut taken: BTreeMap<(String, String), usize> = BTreeMap::new();
    for seen in lab.messages().iter().filter(|seen| seen["taken"] == true) {
        let text = seen["text"].as_str().unwrap();
        let text = text.get(text.find("event ").unwrap()..).unwrap();
        let text = text.get(..text.find("storm").unwrap() + 5).unwrap();
        *taken.entry((seen["kind"].as_str().unwrap().to_owned(), text.to_owned())).or_default() +=
            1;
    }
    let mut outcomes = BTreeSet::new();
    for (event, text) in &accepted {
        for kind in KINDS {
            let delivery = desk.get(&format!("/v1/deliveries/{event}.lab-{kind}")).json();
            let arrived = taken.remove(&(kind.to_owned(), text.clone())).unwrap_or_default();
            let state = delivery["state"].as_str().unwrap().to_owned();
            match (state.as_str(), arrived) {
                ("sent", 1) | ("given_up", 0) => {}
                // It died between the far end's answer and the record, and says so.
                ("sent" | "given_up", 1..) => {
                    assert_eq!(delivery["maybe_repeated"], true, "{arrived} times: {delivery}");
                }
                _ => panic!("{arrived} times: {delivery}"),
            }
            outcomes.insert(state);
        }
    }
    assert!(taken.is_empty(), "arrived and never accepted: {taken:?}");
    assert_eq!(outcomes.len(), 2, "the storm was none");
}
