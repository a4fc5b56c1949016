//! Files that are not what they should be, and disks that do not do what they should.

use std::{fs, process::Command};

use super::*;

fn refusal(path: &Path) -> JournalError {
    SqliteJournal::open(path).err().unwrap()
}

#[tokio::test]
async fn a_second_one_on_the_same_file_is_told_who_has_it() {
    let folder = folder();
    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    let error = refusal(&file(&folder));
    assert!(matches!(error, JournalError::InUse(_)), "{error:?}");
    assert!(error.to_string().contains("DESKBELL_STATE_DIR"), "{error}");
    drop(journal);
    SqliteJournal::open(&file(&folder)).unwrap();
}

/// A second process, for which the lock must hold as well: this test's program, told to run only `probe`.
#[tokio::test]
async fn a_second_process_on_the_same_file_is_refused() {
    let folder = folder();
    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    let opens = || {
        let mut probe = Command::new(std::env::current_exe().unwrap());
        probe.args(["--exact", "journal::sqlite::tests::broken::probe", "--nocapture"]);
        let output = probe.env(PROBE, file(&folder)).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(opens().contains("probe: the journal is in use by another process"));
    drop(journal);
    assert!(opens().contains("probe: opened"));
}

const PROBE: &str = "DESKBELL_TEST_PROBE";

/// Says what opening the file named by [`PROBE`] comes to; without it there is nothing to do.
#[test]
fn probe() {
    let Some(path) = std::env::var_os(PROBE) else { return };
    match SqliteJournal::open(Path::new(&path)) {
        Ok(_) => println!("probe: opened"),
        Err(error) => println!("probe: {error}"),
    }
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let folder = folder();
    for content in
        ["not a database at all".repeat(100).as_bytes(), b"SQLite format 3\0 and then nonsense"]
    {
        fs::write(file(&folder), content).unwrap();
        let error = refusal(&file(&folder));
        assert!(matches!(error, JournalError::Damaged(_)), "{error:?}");
        assert!(error.to_string().contains("move the file aside"), "{error}");
        assert_eq!(fs::read(file(&folder)).unwrap(), content);
    }
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let folder = folder();
    let other = rusqlite::Connection::open(file(&folder)).unwrap();
    other.execute_batch("CREATE TABLE recipes (cake)").unwrap();
    drop(other);
    let before = fs::read(file(&folder)).unwrap();
    let error = refusal(&file(&folder));
    assert!(matches!(error, JournalError::Damaged(_)), "{error:?}");
    assert!(error.to_string().contains("another program"), "{error}");
    assert_eq!(fs::read(file(&folder)).unwrap(), before);
}

#[test]
fn a_journal_of_a_newer_version_is_left_alone() {
    let folder = folder();
    drop(SqliteJournal::open(&file(&folder)).unwrap());
    let newer = rusqlite::Connection::open(file(&folder)).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let error = refusal(&file(&folder));
    assert!(matches!(error, JournalError::Newer { found: 99, known: 2 }), "{error:?}");
    assert!(error.to_string().contains("install a newer version"), "{error}");
}

#[tokio::test]
async fn a_damaged_page_is_found_and_the_writer_goes_on() {
    let folder = folder();
    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    for number in 0..200 {
        accepted(&journal, accept(notice(number)).to(&["a"])).await;
    }
    drop(journal);
    let mut bytes = fs::read(file(&folder)).unwrap();
    // Every page but those that hold the schema.
    for page in bytes.chunks_mut(4096).skip(16) {
        page.fill(0xa5);
    }
    fs::write(file(&folder), bytes).unwrap();
    let journal = match SqliteJournal::open(&file(&folder)) {
        Ok(journal) => journal,
        Err(error) => return assert!(matches!(error, JournalError::Damaged(_)), "{error:?}"),
    };
    let error = journal.events(EventQuery::first(999)).await.unwrap_err();
    assert!(matches!(error, JournalError::Damaged(_)), "{error:?}");
    assert!(error.to_string().contains("move the file aside"), "{error}");
    for number in 200..203 {
        let error = journal.commit(vec![accept(notice(number)).to(&["a"]).write()]).await;
        assert!(matches!(error, Err(JournalError::Damaged(_))), "{error:?}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let folder = folder();
    fs::write(folder.path().join("note"), "").unwrap();
    let path = folder.path().join("note/journal.db");
    let error = refusal(&path);
    assert!(matches!(error, JournalError::ReadOnly(_)), "{error:?}");
    assert!(error.to_string().contains("note"), "{error}");
}

#[test]
fn a_file_that_is_a_folder_is_named() {
    let folder = folder();
    fs::create_dir(file(&folder)).unwrap();
    let error = refusal(&file(&folder));
    assert!(matches!(error, JournalError::ReadOnly(_)), "{error:?}");
}

#[tokio::test]
async fn a_panic_fails_its_batch_and_not_the_writer() {
    let folder = folder();
    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    accepted(&journal, accept(notice(1)).to(&["a"])).await;
    let panics = |connection: &rusqlite::Connection| {
        connection.execute("DELETE FROM deliveries", []).unwrap();
        panic!("a fault of our own");
    };
    let error = journal.disturb(panics).await.unwrap_err();
    assert!(
        matches!(&error, JournalError::Failed(message) if message.contains("a fault of our own"))
    );
    accepted(&journal, accept(notice(2)).to(&["a"])).await;
    assert_eq!(numbers(&claim(&journal, "a", 9, 9).await), [1, 2], "what it did is undone");
}

#[tokio::test]
async fn a_failed_batch_is_not_half_accepted() {
    let folder = folder();
    let journal = Arc::new(SqliteJournal::open(&file(&folder)).unwrap());
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let (tell, told) = oneshot::channel();
    let mut asking = tokio::task::JoinSet::new();
    let first = Arc::clone(&journal);
    asking.spawn(async move {
        let block = move |_: &rusqlite::Connection| {
            tell.send(()).unwrap();
            wait.recv().unwrap();
        };
        first.disturb(block).await.map(|()| Vec::new())
    });
    told.await.unwrap();
    // While the writer waits these queue up, so that they share the batch that fails at its end.
    for number in 1..=20 {
        let write = vec![accept(notice(number)).key(key("s", &number.to_string())).write()];
        let journal = Arc::clone(&journal);
        asking.spawn(async move { journal.commit(write).await });
    }
    let queue = journal.queue.as_ref().unwrap();
    while queue.max_capacity() - queue.capacity() < 20 {
        tokio::task::yield_now().await;
    }
    let last = Arc::clone(&journal);
    asking.spawn(async move { last.disturb(|_| panic!("the end")).await.map(|()| Vec::new()) });
    while queue.max_capacity() - queue.capacity() < 21 {
        tokio::task::yield_now().await;
    }
    release.send(()).unwrap();
    let answers = asking.join_all().await;
    assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), 21, "all of the batch");
    assert_eq!(all(&*journal).await, []);
    for number in 1..=20 {
        let write = accept(notice(number)).key(key("s", &number.to_string()));
        accepted(&*journal, write).await;
    }
    assert_eq!(all(&*journal).await.len(), 20);
}

#[tokio::test]
async fn a_full_file_refuses_and_takes_again() {
    let folder = folder();
    let journal = SqliteJournal::open(&file(&folder)).unwrap();
    let cap = |connection: &rusqlite::Connection| {
        let pages: i64 =
            connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        connection.pragma_update(None, "max_page_count", pages + 8).unwrap();
    };
    journal.disturb(cap).await.unwrap();
    let error = fill(&journal).await;
    assert!(matches!(error, JournalError::Full(_)), "{error:?}");
    // The connection was opened anew, and with it the cap has gone.
    let accepted_before = all(&journal).await.len();
    accepted(&journal, accept(notice(9_999))).await;
    assert_eq!(all(&journal).await.len(), accepted_before + 1);
}

/// Accepts events until one is refused, and checks that exactly those are there that were accepted.
async fn fill(journal: &SqliteJournal) -> JournalError {
    for number in 0..5_000 {
        let mut event = notice(number);
        event.content.text = "x".repeat(2_000);
        if let Err(error) = journal.commit(vec![accept(event).to(&["a", "b"]).write()]).await {
            let there = all(journal).await.len() as u64;
            assert_eq!(there, number, "what was refused is not there, what was accepted is");
            return error;
        }
    }
    panic!("the disk took everything");
}

/// A mounted file system of its own, gone when this is dropped.
struct Mount(TempDir);

impl Mount {
    /// `None`, and said why, where this user may not mount.
    fn tmpfs(options: &str) -> Option<Self> {
        let folder = folder();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(folder.path());
        match mount.output() {
            Ok(output) if output.status.success() => Some(Self(folder)),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr);
                println!("no mount, so only the other ways are tested: {}", why.trim());
                None
            }
            Err(error) => {
                println!("no mount, so only the other ways are tested: {error}");
                None
            }
        }
    }

    fn remount(&self, options: &str) {
        let mut mount = Command::new("mount");
        mount.args(["-o", &format!("remount,{options}")]).arg(self.0.path());
        assert!(mount.status().unwrap().success(), "remount with {options}");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily, because a test that failed may still have files open.
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "unmount");
    }
}

#[tokio::test]
async fn a_full_disk_refuses_and_takes_again_when_there_is_room() {
    let Some(mount) = Mount::tmpfs("size=1m") else { return };
    let journal = SqliteJournal::open(&file(&mount.0)).unwrap();
    let error = fill(&journal).await;
    assert!(matches!(error, JournalError::Full(_)), "{error:?}");
    let before = all(&journal).await;
    let again = journal.commit(vec![accept(notice(9_998)).to(&["a"]).write()]).await;
    assert!(!matches!(again, Ok(ref acks) if acks.is_empty()));
    mount.remount("size=16m");
    accepted(&journal, accept(notice(9_999))).await;
    assert!(all(&journal).await.starts_with(&before));
    drop(journal);
    let journal = SqliteJournal::open(&file(&mount.0)).unwrap();
    assert!(all(&journal).await.starts_with(&before));
    drop(journal);
}

#[tokio::test]
async fn a_disk_that_is_full_from_the_start_is_named() {
    let Some(mount) = Mount::tmpfs("size=16k") else { return };
    let error = refusal(&file(&mount.0));
    assert!(matches!(error, JournalError::Full(_)), "{error:?}");
}

#[tokio::test]
async fn a_disk_that_becomes_read_only_refuses_and_takes_again() {
    let Some(mount) = Mount::tmpfs("size=16m") else { return };
    let journal = SqliteJournal::open(&file(&mount.0)).unwrap();
    accepted(&journal, accept(notice(1))).await;
    drop(journal);
    mount.remount("ro");
    let error = refusal(&file(&mount.0));
    assert!(matches!(error, JournalError::ReadOnly(_)), "{error:?}");
    mount.remount("rw");
    let journal = SqliteJournal::open(&file(&mount.0)).unwrap();
    accepted(&journal, accept(notice(2))).await;
    assert_eq!(all(&journal).await.len(), 2);
    drop(journal);
}
