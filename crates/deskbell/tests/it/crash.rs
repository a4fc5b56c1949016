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

use serde_json::{Value, json};

use crate::support::{Desk, FarEnd, Reply, desk::signal, far_end::Request, until};

/// How many callers report at the same time.
const CALLERS: usize = 8;

/// How often the daemon is killed at each boundary.
const ROUNDS_PER_POINT: u64 = 25;

/// How often it is killed at a moment that nobody chose.
const RANDOM_ROUNDS: u64 = 100;

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

/// Each accepted text arrived; one that arrived twice was in flight at a kill, and its repeat says so.
fn check(far_end: &FarEnd, accepted: &BTreeMap<String, String>, kills: usize) {
    let arrivals = arrivals(far_end);
    for text in accepted.values() {
        assert!(arrivals.contains_key(text), "{text} was accepted and never arrived");
    }
    // An attempt is repeated only when the daemon died between its start and its record, once for each death.
    let repeats: usize = arrivals.values().map(|count| count - 1).sum();
    let most = kills * deskbell::dispatch::IN_FLIGHT_PER_CHANNEL;
    assert!(repeats <= most, "{repeats} repeats in {kills} kills");
    let mut seen = BTreeSet::new();
    for request in far_end.requests() {
        let key = request.headers["idempotency-key"].to_str().unwrap().to_owned();
        let (event, _) = key.split_once('.').unwrap();
        if let Some(text) = accepted.get(event) {
            assert_eq!(*text, text_of(&request), "one id, two messages");
        }
        seen.insert(key);
    }
    assert_eq!(seen.len(), arrivals.len(), "a repeat came under another id");
}

#[test]
fn nothing_accepted_is_lost_at_any_boundary() {
    let far_end = FarEnd::start();
    let mut desk = Desk::with_config(&config(&far_end));
    let mut accepted = BTreeMap::new();
    let mut kills = 0;
    for round in 0..ROUNDS_PER_POINT {
        for point in ["accepted", "claimed", "attempted", "recorded"] {
            // A different moment each time: the first event, or one in the middle of traffic.
            let crash = format!("{point}:{}", 1 + round * 3);
            desk.serve_with_env(&[("DESKBELL_CRASH_AT", &crash)]);
            accepted.extend(report_until_killed(&desk, &format!("{point}-{round}"), 100));
            desk.kill();
            kills += 1;
        }
    }
    desk.serve();
    settle(&desk, &far_end);
    assert!(accepted.len() > 100, "only {} events were accepted", accepted.len());
    check(&far_end, &accepted, kills);
}

#[test]
fn nothing_accepted_is_lost_at_a_moment_that_nobody_chose() {
    let far_end = FarEnd::start();
    let mut desk = Desk::with_config(&config(&far_end));
    let mut accepted = BTreeMap::new();
    for round in 0..RANDOM_ROUNDS {
        desk.serve();
        let (pid, before, arriving) = (desk.pid(), far_end.requests().len(), far_end.counter());
        let killer = std::thread::spawn(move || {
            until("the round's first arrival", || (arriving() > before).then_some(()));
            // Spread over the next twentieth of a second, in which the callers are at full speed.
            let wait = Duration::from_micros(500 * (round * 37 % 100));
            #[expect(clippy::disallowed_methods, reason = "the moment of the kill is the point")]
            std::thread::sleep(wait);
            signal(pid, rustix::process::Signal::KILL);
        });
        accepted.extend(report_until_killed(&desk, &format!("random-{round}"), usize::MAX));
        killer.join().unwrap();
        desk.kill();
    }
    desk.serve();
    settle(&desk, &far_end);
    assert!(accepted.len() > 100, "only {} events were accepted", accepted.len());
    check(&far_end, &accepted, usize::try_from(RANDOM_ROUNDS).unwrap());
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
    // The text is first refused, then answered too late, then answered with garbage, then taken. One text, because
    // more failures in a row would open the breaker, which has tests of its own.
    let far_end = FarEnd::answering(|tried, _| match tried {
        0 => Reply::status(503),
        1 => Reply::after(Duration::from_secs(3)),
        2 => Reply { body: "\u{0}<html>".to_owned(), ..Reply::status(500) },
        _ => Reply::status(200),
    });
    let mut desk =
        Desk::with_config(&format!("{}[delivery]\ntimeout = \"1s\"\n", config(&far_end)));
    desk.serve();
    let answer = desk.post("/v1/events", &json!({ "kind": "push", "text": "odd" }));
    let event = answer.json()["id"].as_str().unwrap().to_owned();
    for tried in 1..=3 {
        far_end.wait_for(tried);
        desk.kill();
        desk.serve();
    }
    far_end.wait_for(4);
    until("the record of the receipt", || {
        let delivery = desk.get(&format!("/v1/deliveries/{event}.counter")).json();
        (delivery["state"] == "sent").then_some(())
    });
    assert_eq!(arrivals(&far_end).len(), 1);
}

#[test]
fn calls_survive_the_death_of_daemon_and_bridge() {
    let far_end = FarEnd::start();
    let mut desk = Desk::with_config(&config(&far_end));
    let mut client = desk.mcp(&[]);
    client.initialize();
    for number in 0..40 {
        if number % 2 == 0 {
            // The daemon dies while the call is on its way, or just before it.
            let pid = desk.pid();
            let killer = std::thread::spawn(move || signal(pid, rustix::process::Signal::KILL));
            let result = client
                .call("notify_send", &json!({ "title": "t", "content": format!("call {number}") }));
            assert_ne!(result["isError"], true, "{result}");
            killer.join().unwrap();
        } else {
            let result = client
                .call("notify_send", &json!({ "title": "t", "content": format!("call {number}") }));
            assert_ne!(result["isError"], true, "{result}");
        }
    }
    until("every call at the far end", || (arrivals(&far_end).len() == 40).then_some(()));
    settle(&desk, &far_end);
    // Sent again by the bridge, seen once by the journal.
    let history = desk.get("/v1/events?limit=1000").json();
    assert_eq!(history["events"].as_array().unwrap().len(), 40);

    client.kill();
    let mut next = desk.mcp(&[]);
    next.initialize();
    next.call("notify_send", &json!({ "title": "t", "content": "after the bridge" }));
    until("the call after the bridge died", || {
        arrivals(&far_end).keys().any(|text| text.contains("after the bridge")).then_some(())
    });
    desk.kill();
}
