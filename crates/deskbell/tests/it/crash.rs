//! The program killed at the worst moments: nothing accepted is lost, and what was recorded is not sent again.
//!
//! Rows 107 and 110, and the promises of `docs/delivery.md`.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Desk, FarEnd, Reply,
    desk::{is_running, signal},
    far_end::Request,
    until,
};

/// How many callers report at the same time.
const CALLERS: usize = 8;

/// How often the daemon is killed at each boundary.
const ROUNDS_PER_POINT: u64 = 25;

/// How often it is killed at a moment that nobody chose.
const RANDOM_ROUNDS: u64 = 100;

/// How many calls are made through a bridge while it and the daemon die.
const CALLS: u64 = 200;

fn config(far_end: &FarEnd) -> String {
    format!("[channels.counter]\nkind = \"webhook_json\"\nurl = \"{}/hook\"\n", far_end.url())
}

/// The text of the message in a request.
fn text_of(request: &Request) -> String {
    request.json()["body"].as_str().unwrap().to_owned()
}

/// Reports from several callers at once until the daemon is gone; gives the texts that were accepted, by event id.
fn report_until_killed(desk: &Desk, round: &str, limit: usize) -> BTreeMap<String, String> {
    let accepted = Arc::new(Mutex::new(BTreeMap::new()));
    let (url, token) = (desk.url(), desk.token());
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (url, token, accepted) = (url.clone(), token.clone(), Arc::clone(&accepted));
            scope.spawn(move || {
                let agent = ureq::Agent::new_with_defaults();
                for number in 0..limit {
                    let text = format!("{round}-{caller}-{number}");
                    let answer = agent
                        .post(format!("{url}/v1/events"))
                        .header("authorization", format!("Bearer {token}"))
                        .header("content-type", "application/json")
                        .send(json!({ "kind": "push", "text": text }).to_string());
                    let Ok(mut answer) = answer else { return };
                    let Ok(body) = answer.body_mut().read_to_string() else { return };
                    let Ok(body) = serde_json::from_str::<Value>(&body) else { return };
                    accepted.lock().unwrap().insert(body["id"].as_str().unwrap().to_owned(), text);
                }
            });
        }
    });
    Arc::into_inner(accepted).unwrap().into_inner().unwrap()
}

/// Waits until the daemon has nothing left to deliver, for as long as more arrives.
fn settle(desk: &Desk, far_end: &FarEnd) {
    let is_empty = |state: &str| {
        let page = desk.get(&format!("/v1/deliveries?state={state}&limit=1")).json();
        page["deliveries"].as_array().unwrap().is_empty()
    };
    loop {
        let arrived = far_end.requests().len();
        let is_settled = until("the next delivery", || {
            let is_settled = is_empty("pending") && is_empty("in_flight");
            (is_settled || far_end.requests().len() > arrived).then_some(is_settled)
        });
        if is_settled {
            return;
        }
    }
}

/// What the journal knows to be sent.
fn recorded(desk: &Desk, events: impl Iterator<Item = String>) -> BTreeSet<String> {
    events
        .filter(|event| {
            let delivery = desk.get(&format!("/v1/deliveries/{event}.counter"));
            delivery.json()["state"] == "sent"
        })
        .collect()
}

/// How often each text arrived.
fn arrivals(far_end: &FarEnd) -> BTreeMap<String, usize> {
    let mut arrivals = BTreeMap::new();
    for request in far_end.requests() {
        *arrivals.entry(text_of(&request)).or_default() += 1;
    }
    arrivals
}

/// Each accepted text arrived, under one id. Each arrival but the last is one that the journal has as failed, or that
/// it could not record because the daemon died; then the delivery says that it may be a repeat.
fn check(desk: &Desk, far_end: &FarEnd, accepted: &BTreeMap<String, String>) {
    let mut arrived: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for request in far_end.requests() {
        let id = request.headers["idempotency-key"].to_str().unwrap().to_owned();
        arrived.entry(id).or_default().push(text_of(&request));
    }
    for (event, text) in accepted {
        let texts = arrived.get(&format!("{event}.counter"));
        let texts = texts.unwrap_or_else(|| panic!("{text} was accepted and never arrived"));
        assert!(texts.iter().all(|arrived| arrived == text), "one id, two messages: {texts:?}");
    }
    assert_eq!(arrived.len(), arrivals(far_end).len(), "a repeat came under another id");
    for (id, texts) in arrived.iter().filter(|(_, texts)| texts.len() > 1) {
        let delivery = desk.get(&format!("/v1/deliveries/{id}")).json();
        let attempts = delivery["attempts"].as_array().unwrap();
        let taken = attempts.iter().filter(|attempt| attempt.get("error").is_none()).count();
        assert_eq!((&delivery["state"], taken), (&json!("sent"), 1), "{delivery}");
        let is_recorded = texts.len() <= attempts.len();
        assert!(
            is_recorded || delivery["maybe_repeated"] == true,
            "{} times: {delivery}",
            texts.len()
        );
    }
    let given_up = desk.get("/v1/deliveries?state=given_up&limit=1").json();
    assert_eq!(given_up["deliveries"], json!([]));
}

/// How many arrivals there were beyond one of each text.
fn repeats(far_end: &FarEnd) -> usize {
    far_end.requests().len() - arrivals(far_end).len()
}

/// Kills the daemon soon after its first delivery of a round, later in each of a hundred rounds than in the one before.
fn kill_in_traffic(desk: &Desk, far_end: &FarEnd, round: u64) -> std::thread::JoinHandle<()> {
    let (pid, before, arriving) = (desk.pid(), far_end.requests().len(), far_end.counter());
    std::thread::spawn(move || {
        until("the round's first arrival", || (arriving() > before).then_some(()));
        // Spread over the next twentieth of a second, in which the callers are at full speed.
        pause(Duration::from_micros(500 * (round * 37 % 100)));
        signal(pid, Signal::KILL);
    })
}

/// Waits before a kill.
#[expect(clippy::disallowed_methods, reason = "the moment of the kill is the point")]
fn pause(wait: Duration) {
    std::thread::sleep(wait);
}

#[test]
fn nothing_accepted_is_lost_at_any_boundary() {
    let far_end = FarEnd::start();
    let mut desk = Desk::with_config(&config(&far_end));
    let mut accepted = BTreeMap::new();
    for round in 0..ROUNDS_PER_POINT {
        for point in ["accepted", "claimed", "attempted", "recorded"] {
            // A different moment each time: the first event, or one in the middle of traffic.
            let crash = format!("{point}:{}", 1 + round * 3);
            // What the round before left undone may bring it to its boundary before it listens.
            if !desk.serve_to_the_end(&[("DESKBELL_CRASH_AT", &crash)]) {
                continue;
            }
            let pid = desk.pid();
            accepted.extend(report_until_killed(&desk, &format!("{point}-{round}"), 100));
            until(&format!("the end at {crash}"), || (!is_running(pid)).then_some(()));
            desk.kill();
        }
    }
    desk.serve();
    settle(&desk, &far_end);
    assert!(accepted.len() > 100, "only {} events were accepted", accepted.len());
    check(&desk, &far_end, &accepted);
    // What the far end took just before a death between its answer and the record is repeated: once for each such death
    // at least, and at most once for each attempt that can be under way at any death.
    let least = usize::try_from(ROUNDS_PER_POINT).unwrap();
    let most = 4 * least * deskbell::dispatch::IN_FLIGHT_PER_CHANNEL;
    let repeats = repeats(&far_end);
    assert!((least..=most).contains(&repeats), "{repeats} repeats, not {least} to {most}");
}

#[test]
fn nothing_accepted_is_lost_at_a_moment_that_nobody_chose() {
    let far_end = FarEnd::start();
    let mut desk = Desk::with_config(&config(&far_end));
    let mut accepted = BTreeMap::new();
    for round in 0..RANDOM_ROUNDS {
        desk.serve();
        let killer = kill_in_traffic(&desk, &far_end, round);
        accepted.extend(report_until_killed(&desk, &format!("random-{round}"), usize::MAX));
        killer.join().unwrap();
        desk.kill();
    }
    desk.serve();
    settle(&desk, &far_end);
    assert!(accepted.len() > 100, "only {} events were accepted", accepted.len());
    check(&desk, &far_end, &accepted);
    let most = usize::try_from(RANDOM_ROUNDS).unwrap() * deskbell::dispatch::IN_FLIGHT_PER_CHANNEL;
    assert!(repeats(&far_end) <= most, "{} repeats", repeats(&far_end));
}

#[test]
fn what_was_recorded_is_not_sent_again() {
    let far_end = FarEnd::start();
    let mut desk = Desk::with_config(&config(&far_end));
    desk.serve();
    let accepted = report_until_killed(&desk, "once", 20);
    settle(&desk, &far_end);
    let sent = recorded(&desk, accepted.keys().cloned());
    assert_eq!(sent.len(), accepted.len());
    for _ in 0..5 {
        desk.kill();
        desk.serve();
        settle(&desk, &far_end);
    }
    let arrivals = arrivals(&far_end);
    assert_eq!(arrivals.len(), accepted.len());
    assert!(arrivals.values().all(|count| *count == 1), "{arrivals:?}");
}

#[test]
fn a_far_end_that_refuses_hangs_or_babbles_loses_nothing() {
    // Of the texts one in four gets no good answer at first. The next one is good, because each further failure makes
    // the wait for the next attempt twice as long.
    let (seen, taken) = (Mutex::new(BTreeSet::new()), Arc::new(Mutex::new(BTreeSet::new())));
    let taking = Arc::clone(&taken);
    let far_end = FarEnd::answering(move |number, request| {
        let text = text_of(request);
        match (seen.lock().unwrap().insert(text.clone()), number % 12) {
            (true, 1) => Reply::status(503),
            (true, 5) => Reply::after(Duration::from_secs(3)),
            (true, 9) => Reply { body: "\u{0}<html>".to_owned(), ..Reply::status(500) },
            _ => {
                taking.lock().unwrap().insert(text);
                Reply::status(200)
            }
        }
    });
    let mut desk =
        Desk::with_config(&format!("{}[delivery]\ntimeout = \"1s\"\n", config(&far_end)));
    let mut accepted = BTreeMap::new();
    for round in 0..RANDOM_ROUNDS {
        desk.serve();
        let killer = kill_in_traffic(&desk, &far_end, round);
        accepted.extend(report_until_killed(&desk, &format!("odd-{round}"), 20));
        killer.join().unwrap();
        desk.kill();
    }
    desk.serve();
    settle(&desk, &far_end);
    assert!(accepted.len() > 100, "only {} events were accepted", accepted.len());
    check(&desk, &far_end, &accepted);
    let taken = taken.lock().unwrap();
    let lost: Vec<_> = accepted.values().filter(|text| !taken.contains(*text)).collect();
    assert!(lost.is_empty(), "never taken: {lost:?}");
}

#[test]
fn calls_survive_the_death_of_daemon_and_bridge() {
    let far_end = FarEnd::start();
    let desk = Desk::with_config(&config(&far_end));
    let mut client = desk.mcp(&[]);
    client.initialize();
    let mut answered = BTreeSet::new();
    for number in 0..CALLS {
        let text = format!("call {number}");
        let arguments = json!({ "title": "t", "content": text });
        let daemon = (number % 2 == 0).then(|| desk.pid());
        let wait = Duration::from_micros(300 * (number * 37 % 20));
        // The daemon dies while the call is on its way, or just before it.
        let killer = daemon.map(|pid| {
            std::thread::spawn(move || {
                pause(wait);
                signal(pid, Signal::KILL);
            })
        });
        if number % 4 < 2 {
            let result = client.call("notify_send", &arguments);
            assert_ne!(result["isError"], true, "{result}");
            answered.insert(text);
        } else {
            // The bridge dies with the call under way, and so do both in every second of these rounds.
            let params = json!({ "name": "notify_send", "arguments": arguments });
            client.send(&json!({ "jsonrpc": "2.0", "id": "last", "method": "tools/call", "params": params }));
            pause(wait);
            client.kill();
            client = desk.mcp(&[]);
            client.initialize();
        }
        if let Some(killer) = killer {
            killer.join().unwrap();
        }
    }
    client.call("notify_send", &json!({ "title": "t", "content": "the last one" }));
    settle(&desk, &far_end);
    // Sent again by the bridge, seen once by the journal.
    let history = desk.get("/v1/events?limit=1000").json();
    let mut kept = BTreeSet::new();
    for event in history["events"].as_array().unwrap() {
        let text = event["text"].as_str().unwrap();
        assert!(kept.insert(text.to_owned()), "{text} is kept twice");
    }
    let lost: Vec<_> = answered.difference(&kept).collect();
    assert!(lost.is_empty(), "answered and not kept: {lost:?}");
    let arrived: BTreeSet<_> = far_end.requests().iter().map(text_of).collect();
    assert_eq!(arrived, kept);
    assert!(kept.len() > answered.len() + 1, "no call of a bridge that died was kept");
}

#[test]
fn a_call_whose_daemon_dies_before_it_answers_is_kept_once() {
    let far_end = FarEnd::start();
    let desk = Desk::with_config(&config(&far_end));
    // The bridge hands its environment on to each daemon that it starts.
    let mut client = desk.mcp_with_env(&[], &[("DESKBELL_CRASH_AT", "accepted:2")]);
    client.initialize();
    let mut daemons = BTreeSet::new();
    for number in 0..20 {
        let text = format!("call {number}");
        let result = client.call("notify_send", &json!({ "title": "t", "content": text }));
        assert_ne!(result["isError"], true, "{result}");
        daemons.insert(desk.pid());
    }
    assert!(daemons.len() >= 10, "{} daemons", daemons.len());
    let history = desk.get("/v1/events?limit=1000").json();
    assert_eq!(history["events"].as_array().unwrap().len(), 20);
}
