//! What a daemon delivers to far ends that misbehave in every way while it is killed again and again.
//!
//! `scripts/bench --only storm` runs the same at full size.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![expect(clippy::indexing_slicing, reason = "a test that cannot go on should say where")]

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{Desk, Lab, until};

/// Kinds without a limit per minute, and whose far ends want to be left alone for seconds only: the test would wait for
/// nothing else.
const KINDS: [&str; 10] = [
    "apprise_api",
    "bark",
    "chanify",
    "gotify",
    "matrix",
    "mattermost_webhook",
    "ntfy",
    "pushdeer",
    "rocketchat_webhook",
    "telegram",
];

/// How many events go to each of the ten, unless this variable says another number. An unoptimised daemon gets a
/// fifth, because ten thousand deliveries take it minutes.
const EVENTS_VARIABLE: &str = "STORM_EVENTS";
const EVENTS: usize = if cfg!(debug_assertions) { 200 } else { 1_000 };

/// How often the daemon is killed.
const KILLS: usize = 8;

/// How many callers report at the same time.
const CALLERS: usize = 4;

/// How often a delivery is tried.
const ATTEMPTS: usize = 4;

/// How long the deliveries may take after the last event was accepted, for each thousand of events.
const PATIENCE: Duration = Duration::from_mins(5);

/// What a fake got of one event.
#[derive(Default)]
struct Arrivals {
    /// Requests, whatever became of them.
    asked: usize,
    /// Those that it took and said so.
    taken: usize,
}

/// What came of all deliveries.
#[derive(Debug, Default)]
struct Outcomes {
    sent: usize,
    given_up: usize,
    /// Deliveries with an attempt under way at a kill, which say so.
    unsure: usize,
    /// Messages that a far end has twice, each of an unsure delivery.
    repeats: usize,
    /// Attempts after the first.
    retries: usize,
}

#[test]
fn a_storm_of_mishaps_and_kills_loses_nothing_and_repeats_nothing_that_has_a_receipt() {
    let given = std::env::var(EVENTS_VARIABLE).ok();
    let events = given.map_or(EVENTS, |events| events.parse().unwrap());
    let desk = Desk::new();
    let lab = Lab::start(&desk);
    let channels = lab.channels_with("mixed", &KINDS);
    desk.configure(&format!("{channels}\n[delivery]\nattempts = {ATTEMPTS}\ntimeout = \"2s\"\n"));
    let desk = Mutex::new(desk);
    desk.lock().unwrap().serve();

    let begun = now();
    let accepted = report_all(&desk, events);
    let reported = begun.elapsed();
    assert_eq!(accepted.len(), events);
    let desk = desk.into_inner().unwrap();
    settle(&desk, events);
    let settled = begun.elapsed();
    let outcomes = compare(&desk, &lab, &accepted);
    assert!(outcomes.sent > 0 && outcomes.given_up > 0, "the storm was none: {outcomes:?}");
    show(&outcomes, events, reported, settled);
}

/// Compares what the journal says of each delivery with what the fakes have.
fn compare(desk: &Desk, lab: &Lab, accepted: &BTreeMap<String, String>) -> Outcomes {
    let mut arrivals = arrivals(lab);
    let mut outcomes = Outcomes::default();
    for (event, text) in accepted {
        for kind in KINDS {
            let delivery = desk.get(&format!("/v1/deliveries/{event}.lab-{kind}")).json();
            let Arrivals { asked, taken } =
                arrivals.remove(&(kind.to_owned(), text.clone())).unwrap_or_default();
            let is_unsure = delivery["maybe_repeated"] == true;
            match (delivery["state"].as_str().unwrap(), taken) {
                ("sent", 1) => outcomes.sent += 1,
                ("given_up", 0) => outcomes.given_up += 1,
                // It died between the far end's answer and the record, and says so.
                ("sent", 2..) if is_unsure => outcomes.sent += 1,
                ("given_up", 1..) if is_unsure => outcomes.given_up += 1,
                _ => panic!("{taken} times: {delivery}"),
            }
            let attempts = usize::try_from(delivery["attempt_count"].as_u64().unwrap()).unwrap();
            assert!(asked <= attempts && attempts > 0, "{asked} requests: {delivery}");
            let recorded = delivery["attempts"].as_array().unwrap();
            assert_eq!(recorded.len() < attempts, is_unsure, "{delivery}");
            outcomes.unsure += usize::from(is_unsure);
            outcomes.repeats += taken.saturating_sub(1);
            outcomes.retries += attempts - 1;
        }
    }
    let strange: Vec<_> = arrivals.into_keys().take(10).collect();
    assert!(strange.is_empty(), "arrived and never accepted: {strange:?}");
    outcomes
}

/// What the fakes got, by kind and text.
fn arrivals(lab: &Lab) -> BTreeMap<(String, String), Arrivals> {
    let mut arrivals = BTreeMap::<_, Arrivals>::new();
    for seen in lab.messages() {
        let Some(text) = seen["text"].as_str() else {
            assert_eq!(seen["taken"], false, "a message without a text: {seen}");
            continue;
        };
        let begin = text.find("event ").unwrap_or_else(|| panic!("not of the storm: {seen}"));
        let end = text.find(" storm").unwrap_or_else(|| panic!("not of the storm: {seen}"));
        let text = text.get(begin..end).unwrap();
        let key = (seen["kind"].as_str().unwrap().to_owned(), format!("{text} storm"));
        let arrivals = arrivals.entry(key).or_default();
        // What is edited is the same message again.
        let requests = 1 + usize::try_from(seen["edits"].as_u64().unwrap()).unwrap();
        arrivals.asked += requests;
        arrivals.taken += if seen["taken"] == true { requests } else { 0 };
    }
    arrivals
}

/// Reports all events, some callers at once, again and again until each is accepted, while `kill` ends the daemon.
/// Gives the text of each event by its id.
fn report_all(desk: &Mutex<Desk>, events: usize) -> BTreeMap<String, String> {
    let accepted = Mutex::new(BTreeMap::new());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= events {
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
                let at = kill * events / (KILLS + 1);
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
fn settle(desk: &Desk, events: usize) {
    let begun = Instant::now();
    let patience = PATIENCE * u32::try_from(events.div_ceil(1_000)).unwrap();
    let is_empty = |state: &str| {
        let page = desk.get(&format!("/v1/deliveries?state={state}&limit=1")).json();
        page["deliveries"].as_array().unwrap().is_empty()
    };
    while !(is_empty("pending") && is_empty("in_flight")) {
        assert!(begun.elapsed() < patience, "deliveries are still open");
        thread::sleep(Duration::from_millis(50));
    }
}

#[expect(clippy::disallowed_methods, reason = "a test of real processes takes real time")]
fn now() -> Instant {
    Instant::now()
}

/// Shown by the benchmark, and by a test that fails.
#[expect(clippy::print_stdout, reason = "the table is the result of the benchmark")]
fn show(outcomes: &Outcomes, events: usize, reported: Duration, settled: Duration) {
    let Outcomes { sent, given_up, unsure, repeats, retries } = outcomes;
    let far_ends = KINDS.len();
    println!("| {events} events to {far_ends} far ends, {KILLS} kills | {} |", events * far_ends);
    println!("|---|---|");
    println!("| sent | {sent} |");
    println!("| given up, with the reason of each attempt | {given_up} |");
    println!("| lost, arrived without being reported, or twice after a receipt | 0 |");
    println!("| attempts after the first | {retries} |");
    println!("| deliveries with an attempt under way at a kill, marked as unsure | {unsure} |");
    println!("| messages that came again, each of such a delivery | {repeats} |");
    println!("| the last event accepted after | {:.1} s |", reported.as_secs_f64());
    println!("| the last delivery ended after | {:.1} s |", settled.as_secs_f64());
}
