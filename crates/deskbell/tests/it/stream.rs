//! The live stream, as a client over HTTP meets it.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use std::{
    io::{BufRead as _, BufReader, Read},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::Desk;

/// A frame that comes at all comes within this time, even on a loaded machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// How long to listen for something that must not come.
const SILENCE: Duration = Duration::from_millis(300);

/// A frame of the stream (HTML, section 9.2.6).
#[derive(Debug, Default, PartialEq)]
struct Frame {
    id: Option<String>,
    event: Option<String>,
    data: Value,
}

/// A reader of `/events`.
struct Viewer(Receiver<Frame>);

impl Viewer {
    /// Opens the stream: whatever is reported from now on is seen.
    fn open(desk: &Desk, path: &str, last_event_id: Option<&str>) -> Self {
        Self::read(Self::connect(desk, path, last_event_id))
    }

    /// Opens the stream and reads nothing yet.
    fn connect(
        desk: &Desk,
        path: &str,
        last_event_id: Option<&str>,
    ) -> BufReader<impl Read + Send + use<>> {
        let mut request = ureq::get(format!("{}{path}", desk.url()))
            .header("authorization", format!("Bearer {}", desk.token()))
            .header("accept", "text/event-stream");
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let answer = request.call().unwrap();
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        BufReader::new(answer.into_body().into_reader())
    }

    fn read(reader: BufReader<impl Read + Send + 'static>) -> Self {
        let (sender, frames) = channel();
        std::thread::spawn(move || {
            let mut frame = Frame::default();
            for line in reader.lines().map_while(Result::ok) {
                match line.split_once(':') {
                    Some(("", _)) => {}
                    Some(("id", id)) => frame.id = Some(id.trim().to_owned()),
                    Some(("event", name)) => frame.event = Some(name.trim().to_owned()),
                    Some(("data", data)) => frame.data = serde_json::from_str(data).unwrap(),
                    None if line.is_empty() => {
                        let whole = std::mem::take(&mut frame);
                        if whole != Frame::default() && sender.send(whole).is_err() {
                            return;
                        }
                    }
                    _ => panic!("no line of a stream: {line:?}"),
                }
            }
        });
        Self(frames)
    }

    #[track_caller]
    fn next(&self) -> Frame {
        self.0.recv_timeout(DEADLINE).unwrap()
    }

    /// The texts of the next events.
    #[track_caller]
    fn texts(&self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.next().data["text"].as_str().unwrap().to_owned()).collect()
    }

    #[track_caller]
    fn expect_nothing(&self) {
        let next = self.0.recv_timeout(SILENCE);
        assert_eq!(next, Err(RecvTimeoutError::Timeout));
    }
}

fn report(desk: &Desk, text: &str) -> Value {
    let answer = desk.post("/v1/events", &json!({ "text": text }));
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()
}

#[test]
fn a_viewer_sees_events_as_they_are_accepted_row_70() {
    let mut desk = Desk::new();
    let desk = desk.serve();
    let viewer = Viewer::open(desk, "/events", None);
    let accepted: Vec<_> =
        (0..5).map(|number| report(desk, &format!("text {number}\nline two"))).collect();
    let frames: Vec<_> = accepted.iter().map(|_| viewer.next()).collect();
    for (accepted, frame) in accepted.iter().zip(&frames) {
        assert_eq!(frame.data["id"], accepted["id"]);
        assert_eq!(frame.data["text"].as_str().unwrap().lines().count(), 2);
        assert_eq!(frame.id.as_deref(), frame.data["cursor"].as_str());
    }
    let ids: Vec<_> = frames.iter().map(|frame| frame.data["id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted(), "{ids:?}");
}

#[test]
fn reporting_needs_no_viewer_row_72() {
    let mut desk = Desk::new();
    report(desk.serve(), "nobody listens");
}

#[test]
fn a_viewer_that_comes_back_gets_what_it_missed_and_nothing_twice_row_73() {
    let mut desk = Desk::new();
    let desk = desk.serve();
    let viewer = Viewer::open(desk, "/events", None);
    report(desk, "seen");
    let seen = viewer.next();
    drop(viewer);
    for number in 0..300 {
        report(desk, &format!("missed {number}"));
    }
    let viewer = Viewer::open(desk, "/events", seen.id.as_deref());
    report(desk, "live");
    let expected: Vec<_> = (0..300).map(|number| format!("missed {number}")).collect();
    assert_eq!(viewer.texts(300), expected);
    assert_eq!(viewer.texts(1), ["live"]);
    viewer.expect_nothing();
}

#[test]
fn a_viewer_that_does_not_read_is_told_what_it_skipped_and_gets_it_all_row_74() {
    const COUNT: usize = 160;
    let mut desk = Desk::new();
    let desk = desk.serve();
    let unread = Viewer::connect(desk, "/events", None);
    // More than the ring and the buffers of a connection hold.
    let long = "x".repeat(200 * 1024);
    for number in 0..COUNT {
        report(desk, &format!("{number} {long}"));
    }
    let viewer = Viewer::read(unread);
    let (mut numbers, mut lags) = (Vec::new(), Vec::new());
    while numbers.len() < COUNT {
        let frame = viewer.next();
        match frame.event.as_deref() {
            None => {
                let text = frame.data["text"].as_str().unwrap();
                numbers.push(text.split_once(' ').unwrap().0.parse::<usize>().unwrap());
            }
            Some("lagged") => lags.push(frame.data["lagged"]["skipped"].as_u64().unwrap()),
            Some(other) => panic!("no event of ours: {other}"),
        }
    }
    assert_eq!(numbers, (0..COUNT).collect::<Vec<_>>());
    assert!(lags.iter().sum::<u64>() > 0, "{lags:?}");
}

#[test]
fn a_viewer_gets_only_what_it_asked_for_row_75() {
    let mut desk = Desk::new();
    let desk = desk.serve();
    let errors = Viewer::open(desk, "/events?level=error..", None);
    let safety = Viewer::open(desk, "/events?context=safety", None);
    let runs = Viewer::open(desk, "/events?kind=run&run=build-1", None);
    desk.post("/v1/events", &json!({ "text": "bad", "level": "critical" }));
    desk.post("/v1/events", &json!({ "text": "careful", "context": "safety" }));
    let start = json!({ "text": "begun", "run": { "id": "build-1", "phase": "start" } });
    let answer = desk.post("/v1/events", &start);
    assert_eq!(answer.status, 201, "{answer:?}");
    report(desk, "plain");
    for (viewer, expected) in [(errors, "bad"), (safety, "careful"), (runs, "begun")] {
        assert_eq!(viewer.texts(1), [expected]);
        viewer.expect_nothing();
    }
}

#[test]
fn the_stream_ends_with_the_daemon() {
    let mut desk = Desk::new();
    desk.serve();
    let viewer = Viewer::open(&desk, "/events", None);
    desk.terminate();
    assert_eq!(viewer.0.recv_timeout(DEADLINE), Err(RecvTimeoutError::Disconnected));
}
