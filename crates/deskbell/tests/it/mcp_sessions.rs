//! Sessions over Streamable HTTP, with clients whose connections break, stall and come back.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

mod client;
mod restart;
mod talker;

use std::{collections::HashSet, io::Write as _, net::TcpStream, time::Duration};

use deskbell::mcp::http::Limits;
use serde_json::{Value, json};

use self::{
    client::{Event, Served},
    talker::steps,
};

/// The call of a tool whose progress is wanted.
fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    let meta = json!({ "progressToken": format!("token-{id}") });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// What the tool `steps` says and answers, in short.
fn said(events: &[Event]) -> Vec<String> {
    let mut said = Vec::new();
    for event in events {
        let Some(message) = &event.message else { continue };
        said.push(match message["method"].as_str() {
            Some("notifications/progress") => format!("progress {}", message["params"]["progress"]),
            Some("notifications/message") => message["params"]["data"].as_str().unwrap().to_owned(),
            Some(other) => panic!("{other} was not expected"),
            None => format!("answer {}", message["id"]),
        });
    }
    said
}

/// Lets a time pass that has to be long.
#[expect(clippy::disallowed_methods, reason = "idleness is a length of time")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

#[test]
fn a_call_whose_connection_is_cut_after_any_event_goes_on_where_it_was_row_54() {
    const STEPS: u64 = 6;
    let served = Served::new(Limits::default());
    let session = served.open();
    let mut ids = HashSet::new();
    // The priming event, two for each step, the answer.
    for cut in 0..=2 * STEPS + 2 {
        let call = call(cut, "steps", &json!({ "count": STEPS }));
        let mut events = served.post(&session, &call).take(1 + usize::try_from(cut).unwrap());
        let mut seen: Vec<_> = events.by_ref().collect();
        drop(events);
        served.talker.until_finished(cut);
        let last = seen.last().unwrap().id.clone().unwrap();
        seen.extend(served.resume(&session, &last).unwrap());
        let mut expected = steps(STEPS);
        expected.push(format!("answer {cut}"));
        assert_eq!(said(&seen), expected, "cut after {cut} events");
        for event in seen {
            assert!(ids.insert(event.id.unwrap()), "an event came twice");
        }
    }
}

#[test]
fn a_client_that_comes_back_while_its_call_goes_on_misses_nothing_and_gets_nothing_twice_row_54() {
    const STEPS: u64 = 3_000;
    let served = Served::new(Limits::default());
    let session = served.open();
    let mut events = served.post(&session, &call(1, "steps", &json!({ "count": STEPS })));
    let mut seen: Vec<_> = events.by_ref().take(1).collect();
    loop {
        let before = seen.len();
        seen.extend(events.by_ref().take(397));
        if seen.last().unwrap().is_answer() {
            break;
        }
        assert_ne!(seen.len(), before, "a stream ended before its answer");
        let last = seen.last().unwrap().id.clone().unwrap();
        events = served.resume(&session, &last).unwrap();
    }
    let mut expected = steps(STEPS);
    expected.push("answer 1".to_owned());
    assert_eq!(said(&seen), expected);
}

#[test]
fn what_a_call_says_is_on_its_own_stream_and_nowhere_else_row_54() {
    let served = Served::new(Limits::default());
    let session = served.open();
    let listening = served.listen(&session).unwrap();
    let calls: Vec<_> = (1..=8)
        .map(|id| (id, served.post(&session, &call(id, "steps", &json!({ "count": 20 })))))
        .collect();
    for (id, events) in calls {
        let events: Vec<_> = events.collect();
        let mut expected = steps(20);
        expected.push(format!("answer {id}"));
        assert_eq!(said(&events), expected);
    }
    let untagged = call(9, "flood", &json!({ "count": 1, "bytes": 1 }));
    assert_eq!(said(&served.post(&session, &untagged).collect::<Vec<_>>()), ["answer 9"]);
    let heard: Vec<_> = listening.filter(|event| event.message.is_some()).take(1).collect();
    assert_eq!(said(&heard), ["x"], "the first that the standalone stream says is of no call");
}

#[test]
fn a_call_that_is_answered_at_once_is_answered_in_json_and_a_slow_one_on_a_stream() {
    let served = Served::new(Limits::default());
    let session = served.open();
    let events: Vec<_> = served.post(&session, &call(1, "steps", &json!({ "count": 0 }))).collect();
    assert_eq!(said(&events), ["answer 1"]);
    assert_eq!(events[0].id, None);
    let mut events = served.post(&session, &call(2, "hold", &json!({})));
    let priming = events.next().unwrap();
    assert_eq!((priming.message, priming.retry.as_deref()), (None, Some("3000")));
    served.talker.release();
    assert_eq!(said(&events.collect::<Vec<_>>()), ["answer 2"]);
}

#[test]
fn a_reader_that_stalls_holds_up_nobody_else() {
    let served = Served::new(Limits::default());
    let session = served.open();
    let stalled = served.stall(&session);
    let flood = call(1, "flood", &json!({ "count": 6_000, "bytes": 10_000 }));
    assert!(served.post(&session, &flood).last().unwrap().is_answer());
    let quick = call(2, "steps", &json!({ "count": 2 }));
    let events: Vec<_> = served.post(&session, &quick).collect();
    assert_eq!(events.len(), 6);
    drop(stalled);

    // From the beginning, because the stalled reader may have been told already.
    let priming = served.listen(&session).unwrap().next().unwrap().id.unwrap();
    let (stream, _) = priming.split_once('-').unwrap();
    let mut events = served.resume(&session, &format!("{stream}-0")).unwrap();
    let loss = events.next().unwrap().message.unwrap();
    let dropped = loss["params"]["data"]["dropped"].as_u64().unwrap();
    assert!(dropped > 0, "{loss}");
    assert_eq!(loss["params"]["level"], "warning");
}

#[test]
fn a_fast_tool_waits_for_a_reader_that_reads() {
    const STEPS: u64 = 20_000;
    let served = Served::new(Limits::default());
    let session = served.open();
    let call = call(1, "steps", &json!({ "count": STEPS }));
    let events: Vec<_> = served.post(&session, &call).collect();
    let mut expected = steps(STEPS);
    expected.push("answer 1".to_owned());
    assert!(said(&events) == expected, "{} of {}", events.len(), expected.len());
}

#[test]
fn a_session_lives_as_long_as_its_calls_and_ends_when_it_is_idle_rows_52_and_58() {
    let idle = Duration::from_millis(200);
    let served = Served::new(Limits { idle, ..Limits::default() });
    let session = served.open();
    let mut events = served.post(&session, &call(1, "hold", &json!({})));
    let priming = events.next().unwrap();
    // The client is killed in the middle of its call.
    drop(events);
    pause(4 * idle);
    served.talker.release();
    served.talker.until_finished(1);
    let events: Vec<_> = served.resume(&session, &priming.id.unwrap()).unwrap().collect();
    assert_eq!(said(&events), ["answer 1"]);

    let listening = served.listen(&session).unwrap();
    pause(4 * idle);
    assert_eq!(served.status(&session), 200, "a stream that is read keeps it");
    drop(listening);
    pause(4 * idle);
    assert_eq!(served.status(&session), 404);
}

#[test]
fn the_session_that_is_idle_longest_makes_room_and_one_in_use_never_row_58() {
    let served = Served::new(Limits { sessions: 3, ..Limits::default() });
    let [read, idle, newer] = [(); 3].map(|()| served.open());
    let reading = served.listen(&read).unwrap();
    let fourth = served.open();
    assert_eq!(served.status(&idle), 404);
    let sessions = [&read, &newer, &fourth];
    assert_eq!(sessions.map(|session| served.status(session)), [200; 3]);
    let others = [served.listen(&newer).unwrap(), served.listen(&fourth).unwrap()];
    let (status, error) = served.initialize().unwrap_err();
    assert_eq!((status, &error["error"]["code"]), (503, &json!(-32603)));
    drop((reading, others));
    assert_eq!(Limits::default().sessions, 1000);
}

#[test]
fn an_id_that_cannot_be_resumed_is_refused_with_the_reason() {
    let served = Served::new(Limits::default());
    let (session, other) = (served.open(), served.open());
    let events: Vec<_> = served.post(&session, &call(1, "steps", &json!({ "count": 1 }))).collect();
    let id = events[0].id.clone().unwrap();
    let (stream, _) = id.split_once('-').unwrap();
    let check = |session: &str, id: &str, status: u16, reason: &str| {
        let (got, error) = served.resume(session, id).err().unwrap();
        let text = error["error"]["message"].as_str().unwrap().to_owned();
        assert_eq!((got, text.as_str()), (status, reason), "{id}");
    };
    for nonsense in
        ["0", "1-1", "\u{1f600}", "; drop table", &format!("{stream}-01"), &"9".repeat(4_000)]
    {
        check(&session, nonsense, 400, "Last-Event-ID: not an id of an event");
    }
    check(&other, &id, 400, "Last-Event-ID: not an id of this session");
    let never = "Last-Event-ID: no such event was sent in this session";
    check(&session, &format!("{stream}-5"), 400, never);
    check(&session, &format!("{stream}9-0"), 400, never);
    check("unknown", &id, 404, "Not Found: Session not found");
}

#[test]
fn a_stream_that_is_no_longer_kept_is_gone_and_its_session_goes_on() {
    let served = Served::new(Limits { answers: Duration::from_millis(50), ..Limits::default() });
    let session = served.open();
    let events: Vec<_> = served.post(&session, &call(1, "steps", &json!({ "count": 1 }))).collect();
    let id = events[0].id.clone().unwrap();
    let forgotten =
        crate::support::until("the stream to be forgotten", || served.resume(&session, &id).err());
    assert_eq!(forgotten.0, 410);
    assert_eq!(served.status(&session), 200, "the session goes on");
}

#[test]
fn an_id_that_is_in_flight_is_refused_and_the_call_goes_on() {
    let served = Served::new(Limits::default());
    let session = served.open();
    let first = served.post(&session, &call(1, "hold", &json!({})));
    served.talker.until_started(1);
    let second = served.post(&session, &call(1, "steps", &json!({ "count": 1 }))).last().unwrap();
    assert_eq!(second.message.unwrap()["error"]["code"], -32600);
    served.talker.release();
    assert_eq!(said(&first.collect::<Vec<_>>()), ["answer 1"]);
    let again = served.post(&session, &call(1, "steps", &json!({ "count": 0 })));
    assert_eq!(said(&again.collect::<Vec<_>>()), ["answer 1"]);
}

#[test]
fn a_call_that_is_cancelled_and_one_whose_tool_panics_end_their_streams() {
    let served = Served::new(Limits::default());
    let session = served.open();
    let events = served.post(&session, &call(1, "hold", &json!({})));
    served.talker.until_started(1);
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 }
    });
    assert_eq!(served.send(&session, &cancel), 202);
    assert_eq!(said(&events.collect::<Vec<_>>()), [""; 0]);

    let answer = served.post(&session, &call(2, "panic", &json!({}))).last().unwrap();
    assert_eq!(answer.message.unwrap()["error"]["code"], -32603);
    assert_eq!(served.status(&session), 200);
}

#[test]
fn a_deleted_session_ends_its_streams_at_once() {
    let served = Served::new(Limits::default());
    let session = served.open();
    let listening = served.listen(&session).unwrap();
    let events = served.post(&session, &call(1, "hold", &json!({})));
    served.talker.until_started(1);
    assert_eq!(served.delete(&session), 204);
    assert_eq!(served.status(&session), 404);
    assert_eq!(said(&listening.chain(events).collect::<Vec<_>>()), [""; 0]);
    assert_eq!(served.delete(&session), 204);
}

#[test]
fn a_silent_stream_says_that_it_is_there_row_54() {
    let served = Served::new(Limits { keep_alive: Duration::from_millis(20), ..Limits::default() });
    let session = served.open();
    let mut lines = served.listen(&session).unwrap().lines();
    assert!(lines.any(|line| line.starts_with(':')));
    let mut lines = served.post(&session, &call(1, "hold", &json!({}))).lines();
    assert!(lines.any(|line| line.starts_with(':')));
    served.talker.release();
}

#[test]
fn a_client_of_an_older_revision_gets_no_event_without_a_message() {
    let served = Served::new(Limits::default());
    for (revision, primes) in [("2025-06-18", false), ("2025-11-25", true)] {
        let session = served.open_with(revision);
        let call = call(1, "steps", &json!({ "count": 1 }));
        let first = served.post(&session, &call).next().unwrap();
        assert_eq!(first.message.is_none(), primes, "{revision}");
        assert_eq!(first.retry.is_some(), primes, "{revision}");
        let id = first.id.unwrap();
        assert_eq!(served.resume(&session, &id).unwrap().count(), 3 - usize::from(!primes));
    }
}

#[test]
fn a_standalone_stream_that_is_opened_again_goes_on_where_it_was() {
    let served = Served::new(Limits::default());
    let session = served.open();
    let flood = |id, count| {
        let flood = call(id, "flood", &json!({ "count": count, "bytes": 1 }));
        assert!(served.post(&session, &flood).last().unwrap().is_answer());
    };
    let heard = |events: client::Events, count| {
        events.filter(|event| event.message.is_some()).take(count).collect::<Vec<_>>()
    };
    flood(1, 3);
    let first = heard(served.listen(&session).unwrap(), 3);
    flood(2, 2);
    let last = first[1].id.clone().unwrap();
    let resumed = heard(served.resume(&session, &last).unwrap(), 3);
    assert_eq!(resumed[0].id, first[2].id);
    flood(3, 1);
    let ids: HashSet<_> = heard(served.listen(&session).unwrap(), 1)
        .iter()
        .chain(&first)
        .chain(&resumed)
        .map(|event| event.id.clone().unwrap())
        .collect();
    assert_eq!(ids.len(), 6);
}

impl Served {
    /// A reader of the standalone stream that never reads.
    fn stall(&self, session: &str) -> TcpStream {
        let address = self.url.strip_prefix("http://").unwrap().split('/').next().unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nmcp-session-id: {session}\r\n\r\n"
        )
        .unwrap();
        // Its head arrives when the stream is attached; no more than that is read.
        std::io::Read::read_exact(&mut stream, &mut [0; 16]).unwrap();
        stream
    }
}
