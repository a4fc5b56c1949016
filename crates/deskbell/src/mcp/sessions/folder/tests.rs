//! What is in the files of sessions, and how long they get.

use rmcp::model::{ErrorData, RequestId};
use serde_json::json;

use super::*;

const ID: &str = "6f1f36a3-3f0f-4a5c-9c43-0a53b4f1a001";

fn id() -> Uuid {
    own_id(ID).unwrap()
}

fn writer(folder: &tempfile::TempDir) -> Writer {
    let mut writer = Writer { path: folder.path().to_owned(), lengths: HashMap::new() };
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "c", "version": "1" } });
    let initialize = Record::Initialize(serde_json::from_value(params).unwrap());
    writer.write(id(), &initialize).unwrap();
    writer
}

fn path(folder: &tempfile::TempDir) -> PathBuf {
    file(folder.path(), id())
}

fn length(folder: &tempfile::TempDir) -> u64 {
    fs::metadata(path(folder)).unwrap().len()
}

fn stored(folder: &tempfile::TempDir) -> Stored {
    Stored::read(&String::from_utf8_lossy(&fs::read(path(folder)).unwrap())).unwrap()
}

fn open(stream: u64) -> Record<Message> {
    Record::Open { stream, request: RequestId::Number(1) }
}

fn message(stream: u64, number: u64, kind: Kind, length: usize) -> Record<Message> {
    let error = ErrorData::internal_error("x".repeat(length), None);
    let message = Arc::new(ServerJsonRpcMessage::error(error, Some(RequestId::Number(1))));
    Record::Message { stream, number, kind, message }
}

#[test]
fn a_setting_that_is_repeated_does_not_make_the_file_grow_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = writer(&folder);
    for n in 0..4000 {
        let params = json!({ "uri": format!("runs://{n}/{}", "x".repeat(3000)) });
        let method = "resources/subscribe".to_owned();
        writer.write(id(), &Record::Setting { method, params }).unwrap();
        assert!(length(&folder) < 2 * FILE_LIMIT, "after {n}");
    }
    assert!(stored(&folder).settings().count() > 0);
}

#[cfg(unix)]
#[test]
fn a_file_that_was_made_shorter_is_still_the_users_own_and_has_the_newest_stream() {
    use std::os::unix::fs::PermissionsExt as _;

    const STREAMS: u64 = 100;
    let folder = tempfile::tempdir().unwrap();
    let mut writer = writer(&folder);
    let beside = path(&folder).with_extension(SHORTER);
    fs::write(&beside, "left behind").unwrap();
    for stream in 1..=STREAMS {
        writer.write(id(), &open(stream)).unwrap();
        writer.write(id(), &message(stream, 1, Kind::Answer, 300 * 1024)).unwrap();
        assert!(length(&folder) <= FILE_LIMIT, "stream {stream}");
        let stored = stored(&folder);
        assert_eq!(stored.streams.keys().next_back(), Some(&stream));
        assert!(stored.streams[&stream].is_over);
    }
    assert!(!beside.exists());
    assert_eq!(fs::metadata(path(&folder)).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_full_file_still_takes_the_beginnings_and_ends_of_streams_but_no_more_of_what_is_between() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = writer(&folder);
    writer.write(id(), &open(1)).unwrap();
    for number in 1..=100 {
        writer.write(id(), &message(1, number, Kind::Other, 100 * 1024)).unwrap();
    }
    assert!(length(&folder) < FILE_LIMIT + FILE_LIMIT / 2);
    writer.write(id(), &open(2)).unwrap();
    writer.write(id(), &message(1, 101, Kind::Answer, 1)).unwrap();
    writer.write(id(), &Record::Cut { stream: 2 }).unwrap();
    let stored = stored(&folder);
    assert!(stored.streams[&1].is_over && stored.streams[&2].is_over);
}

#[test]
fn a_line_that_a_kill_cut_short_does_not_swallow_the_next() {
    let folder = tempfile::tempdir().unwrap();
    drop(writer(&folder));
    let mut file = OpenOptions::new().append(true).open(path(&folder)).unwrap();
    file.write_all(b"{\"open\":{\"stream\":1,\"req\xc3").unwrap();
    let mut writer = Writer { path: folder.path().to_owned(), lengths: HashMap::new() };
    writer.write(id(), &open(2)).unwrap();
    assert_eq!(stored(&folder).streams.into_keys().collect::<Vec<_>>(), [2]);
}

#[test]
fn a_full_queue_still_takes_ends_and_a_session_is_deleted_whatever_waits() {
    let (queue, received) = Queue::new();
    let ordinary = || Job::Record(id(), message(1, 1, Kind::Other, 1));
    for _ in 0..=QUEUE_LIMIT {
        queue.send(ordinary());
    }
    queue.send(Job::Record(id(), message(1, 2, Kind::Answer, 1)));
    for _ in 0..=QUEUE_LIMIT {
        queue.send(Job::Record(id(), open(2)));
    }
    queue.send(Job::Delete(id()));
    let jobs: Vec<_> = received.try_iter().collect();
    assert_eq!(jobs.len(), URGENT_LIMIT + 1);
    let is_answer =
        |job: &Job| matches!(job, Job::Record(_, Record::Message { kind: Kind::Answer, .. }));
    assert!(is_answer(&jobs[QUEUE_LIMIT]));
    assert!(matches!(jobs.last(), Some(Job::Delete(_))));
}

#[cfg(unix)]
#[test]
fn a_folder_that_was_there_becomes_the_users_own_and_loses_what_was_left_behind() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    drop(writer(&folder));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let beside = path(&folder).with_extension(SHORTER);
    fs::write(&beside, "left behind").unwrap();
    let kept = Duration::from_secs(60 * 60);
    drop(Folder::open(folder.path().to_owned(), SystemTime::UNIX_EPOCH, kept, 1).unwrap());
    assert_eq!(fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(path(&folder).exists() && !beside.exists());
}
