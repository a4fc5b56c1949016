//! From an accepted event to a far end.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should say where, and real far ends need real time"
)]

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::support::{
    Desk, FarEnd,
    far_end::{Reply, Request},
    until,
};

/// A secret in every address; it must not be seen anywhere.
const SECRET: &str = "s3cr3t-9f86d081";

/// A configuration with a webhook for each address.
fn config(delivery: &str, hooks: &[(&str, String)]) -> String {
    let mut config = format!("[delivery]\n{delivery}\n");
    for (name, url) in hooks {
        write!(config, "[channels.{name}]\nkind = \"webhook_json\"\nurl = \"{url}/{SECRET}\"\n")
            .unwrap();
    }
    config
}

/// A desk with a webhook for each address.
fn desk_with(delivery: &str, hooks: &[(&str, String)]) -> Desk {
    let mut desk = Desk::with_config(&config(delivery, hooks));
    desk.serve();
    desk
}

/// Reports a push; returns the event's id.
fn push(desk: &Desk, text: &str) -> String {
    let answer = desk.post("/v1/events", &json!({ "text": text, "kind": "push" }));
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["id"].as_str().unwrap().to_owned()
}

fn delivery(desk: &Desk, event: &str, channel: &str) -> Value {
    desk.get(&format!("/v1/deliveries/{event}.{channel}")).json()
}

/// Waits until a delivery is in `state`.
#[track_caller]
fn expect(desk: &Desk, event: &str, channel: &str, state: &str) -> Value {
    until(&format!("{event}.{channel} to be {state}"), || {
        let delivery = delivery(desk, event, channel);
        (delivery["state"] == state).then_some(delivery)
    })
}

/// A far end that answers every connection with `bytes`, and closes it if there are any.
fn raw_far_end(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if bytes.is_empty() {
                open.push(stream);
            } else {
                let _request = stream.read(&mut [0; 4096]);
                let _gone = stream.write_all(bytes);
            }
        }
    });
    url
}

/// An address at which nobody listens, for as long as its socket is kept: a port that is taken goes to nobody else.
fn nobody() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    (socket, url)
}

#[test]
fn a_push_arrives_with_its_delivery_id() {
    let far_end = FarEnd::start();
    let desk = desk_with("", &[("hook", far_end.url())]);
    let event = push(&desk, "it is done");
    let delivery = expect(&desk, &event, "hook", "sent");
    let [request] = &far_end.wait_for(1)[..] else { panic!("more than one request") };
    let id = format!("{event}.hook");
    assert_eq!(request.json()["body"], "it is done");
    assert_eq!(request.json()["delivery_id"], id.as_str());
    assert_eq!(request.headers["idempotency-key"], id.as_str());
    assert_eq!(
        (&delivery["attempt_count"], &delivery["maybe_repeated"]),
        (&json!(1), &json!(false))
    );
}

#[test]
fn a_push_of_a_tool_reaches_both_channels_row_101() {
    let far_ends = [FarEnd::start(), FarEnd::start()];
    let hooks = [("phone", far_ends[0].url()), ("team", far_ends[1].url())];
    let desk = desk_with("", &hooks);
    let mut client = desk.mcp(&["--profile", "mcp-push"]);
    client.initialize();
    let result = client.call("notify.send", &json!({ "title": "任务完成", "content": "数据分析" }));
    assert_eq!(result["structuredContent"]["message"], "已向 2 个渠道发送通知");
    let event = result["structuredContent"]["delivery_id"].as_str().unwrap();
    for (far_end, (name, _)) in far_ends.iter().zip(&hooks) {
        expect(&desk, event, name, "sent");
        let [request] = &far_end.wait_for(1)[..] else { panic!("more than one request") };
        let request = request.json();
        assert_eq!((&request["title"], &request["body"]), (&json!("任务完成"), &json!("数据分析")));
        assert_eq!(request["delivery_id"], format!("{event}.{name}"));
    }
}

#[test]
fn each_channel_tells_the_truth_about_its_own_far_end_row_108_row_109() {
    let good = FarEnd::start();
    let refusing = FarEnd::answering(|_, _| Reply {
        body: format!("no such token: {SECRET}"),
        ..Reply::status(401)
    });
    let failing = FarEnd::answering(|_, _| Reply::status(503));
    let broken = raw_far_end(b"HTTP/1.1 200 OK\r\ncontent-length: nonsense\r\n\r\n");
    let (_reserved, nobody) = nobody();
    let hooks = [
        ("good", good.url()),
        ("refusing", refusing.url()),
        ("failing", failing.url()),
        ("hanging", raw_far_end(b"")),
        ("garbage", raw_far_end(b"\x00\xff this is not HTTP \r\n\r\n")),
        ("broken", broken),
        ("nobody", nobody),
    ];
    let desk = desk_with("attempts = 1\ntimeout = \"700ms\"", &hooks);
    let event = push(&desk, "to all of them");
    expect(&desk, &event, "good", "sent");
    let mut errors = String::new();
    for (name, part) in [
        ("refusing", "401"),
        ("failing", "503"),
        ("hanging", "no answer"),
        ("garbage", "the connection broke"),
        ("broken", "the connection broke"),
        ("nobody", "cannot connect"),
    ] {
        let delivery = expect(&desk, &event, name, "given_up");
        let error = delivery["attempts"][0]["error"].as_str().unwrap();
        assert!(error.contains(part), "{name}: {error}");
        errors.push_str(error);
    }
    assert!(!errors.contains(SECRET), "{errors}");
    assert_eq!(good.requests().len(), 1);
}

#[test]
fn a_call_never_waits_for_a_channel_row_110() {
    let slow = FarEnd::answering(|_, _| Reply::after(Duration::from_secs(10)));
    let desk = desk_with("", &[("slow", slow.url())]);
    let mut client = desk.mcp(&[]);
    client.initialize();
    // The middle one of several, because what else the machine does at one moment is not ours.
    let mut calls: Vec<_> = (0..7)
        .map(|number| {
            let arguments = json!({ "title": "t", "content": format!("hurry {number}") });
            let start = Instant::now();
            let result = client.call("notify_send", &arguments);
            let elapsed = start.elapsed();
            (elapsed, result["structuredContent"]["delivery_id"].as_str().unwrap().to_owned())
        })
        .collect();
    let (_, first) = calls[0].clone();
    let state = delivery(&desk, &first, "slow")["state"].as_str().unwrap().to_owned();
    assert!(["pending", "in_flight"].contains(&state.as_str()), "{state}");
    calls.sort();
    assert!(calls[3].0 < Duration::from_millis(200), "{calls:?}");
    expect(&desk, &first, "slow", "sent");
}

#[test]
fn a_failure_that_passes_is_tried_again_under_the_same_id_row_109() {
    let far_end = FarEnd::answering(|number, _| match number {
        0 => Reply::status(503),
        _ => Reply::status(200),
    });
    let desk = desk_with("", &[("hook", far_end.url())]);
    let event = push(&desk, "again");
    let delivery = expect(&desk, &event, "hook", "sent");
    assert_eq!(delivery["attempt_count"], 2);
    assert!(delivery["attempts"][0]["error"].as_str().unwrap().contains("503"));
    let ids: Vec<_> =
        far_end.wait_for(2).iter().map(|request| request.json()["delivery_id"].clone()).collect();
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn a_far_end_that_asks_for_a_pause_gets_it() {
    let far_end = FarEnd::answering(|number, _| match number {
        0 => Reply {
            headers: vec![("retry-after".to_owned(), "2".to_owned())],
            ..Reply::status(429)
        },
        _ => Reply::status(200),
    });
    let desk = desk_with("", &[("hook", far_end.url())]);
    let start = Instant::now();
    let first = push(&desk, "first");
    far_end.wait_for(1);
    until("the pause", || {
        let channels = desk.get("/v1/channels").json();
        channels.to_string().contains("\"paused\"").then_some(())
    });
    let second = push(&desk, "second");
    expect(&desk, &second, "hook", "sent");
    expect(&desk, &first, "hook", "sent");
    assert!(start.elapsed() >= Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(far_end.requests().len(), 3);
}

#[test]
fn what_was_given_up_is_tried_again_by_hand() {
    let far_end = FarEnd::answering(|number, _| match number {
        0 => Reply::status(401),
        _ => Reply::status(200),
    });
    let desk = desk_with("", &[("hook", far_end.url())]);
    let event = push(&desk, "please");
    expect(&desk, &event, "hook", "given_up");
    let retry = format!("/v1/deliveries/{event}.hook/retry");
    assert_eq!(desk.post(&retry, &json!({})).status, 200);
    expect(&desk, &event, "hook", "sent");
    assert_eq!(desk.post(&retry, &json!({})).status, 409, "only what was given up");
    assert_eq!(far_end.requests().len(), 2);
}

#[test]
fn channels_come_and_go_while_the_program_runs() {
    let (old, new) = (FarEnd::start(), FarEnd::start());
    let desk = desk_with("", &[("old", old.url())]);
    let event = push(&desk, "before");
    expect(&desk, &event, "old", "sent");
    desk.configure(&config("", &[("new", new.url())]));
    until("the new channel", || {
        let channels = desk.get("/v1/channels").json();
        (channels["channels"][0]["name"] == "new").then_some(())
    });
    let event = push(&desk, "after");
    expect(&desk, &event, "new", "sent");
    assert_eq!((old.requests().len(), new.requests().len()), (1, 1));
}

#[test]
fn updates_of_a_run_are_throttled_and_the_last_one_and_the_end_arrive_row_117() {
    const INTERVAL: Duration = Duration::from_secs(2);
    let far_end = FarEnd::start();
    let desk = desk_with("update_interval = \"2s\"", &[("hook", far_end.url())]);
    let step = |phase: &str, text: &str| {
        let body = json!({ "text": text, "run": { "id": "build-1", "phase": phase } });
        let answer = desk.post("/v1/events", &body);
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    };
    let start = Instant::now();
    step("start", "begun");
    let updates: Vec<_> =
        (1..=20).map(|number| step("update", &format!("update {number}"))).collect();
    expect(&desk, &updates[19], "hook", "sent");
    let elapsed = start.elapsed();
    let end = step("end", "done");
    expect(&desk, &end, "hook", "sent");

    let line = |request: &Request| {
        let body = request.json()["body"].as_str().unwrap().to_owned();
        body.lines().next().unwrap_or_default().to_owned()
    };
    let told: Vec<_> = far_end.requests().iter().map(line).collect();
    let allowed = elapsed.as_secs() / INTERVAL.as_secs() + 1;
    let pushed = u64::try_from(told.len()).unwrap() - 2;
    assert!(pushed <= allowed, "{pushed} updates in {elapsed:?}: {told:?}");
    assert_eq!(told[0], "begun");
    assert_eq!(told[told.len() - 2..], ["update 20", "done"]);
    assert_eq!(delivery(&desk, &updates[0], "hook")["state"], "superseded");
}

#[test]
fn an_error_goes_where_its_route_says_and_news_does_not_row_120() {
    let (phone, log) = (FarEnd::start(), FarEnd::start());
    let config = format!(
        "[channels.phone]\nkind = \"webhook_json\"\nurl = \"{}\"\n\
         [channels.log]\nkind = \"webhook_json\"\nurl = \"{}\"\n\
         [[routes]]\nlevel = \"error..\"\nchannels = [\"phone\"]\ncontinue = true\n\
         [[routes]]\nchannels = [\"log\"]\n",
        phone.url(),
        log.url(),
    );
    let mut desk = Desk::with_config(&config);
    desk.serve();
    for (level, text) in [("info", "news"), ("error", "alarm")] {
        desk.post("/v1/events", &json!({ "text": text, "level": level }));
    }
    let bodies = |far_end: &FarEnd, count| -> Vec<Value> {
        let mut bodies: Vec<_> =
            far_end.wait_for(count).iter().map(|request| request.json()["body"].clone()).collect();
        bodies.sort_by_key(Value::to_string);
        bodies
    };
    assert_eq!(bodies(&log, 2), ["alarm", "news"]);
    assert_eq!(bodies(&phone, 1), ["alarm"]);
}

#[test]
fn the_guide_calls_the_journal_by_its_name() {
    let guide = crate::tree::read("docs/delivery.md");
    let paths =
        deskbell::paths::Paths::from_env(&|name| (name == "HOME").then(|| "/home/a".into()));
    let file = paths.unwrap().journal();
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(guide.contains(&format!("The journal is `{name}` in the state folder")));
    let (stem, ending) = name.split_once('.').unwrap();
    for rest in guide.split(&format!("{stem}.")).skip(1) {
        let is_file = rest.starts_with(char::is_alphanumeric);
        assert!(!is_file || rest.starts_with(ending), "{rest}");
    }
}
