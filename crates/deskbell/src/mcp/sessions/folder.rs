//! The stored sessions: a file for each in the state folder, so that they outlive the daemon.
//!
//! One thread writes, in the order in which things happened; nobody waits for a disk. What a kill of the process
//! leaves behind is whole, what a power cut leaves need not be: then a client opens another session.

use std::{
    collections::HashMap,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use rmcp::{
    model::ServerJsonRpcMessage,
    transport::streamable_http_server::session::{SessionState, SessionStore, SessionStoreError},
};
use tokio::sync::oneshot;
use tracing::warn;
use uuid::Uuid;

use super::{
    stored::{Record, Stored},
    streams::Kind,
};

/// How many jobs wait to be done; what a call says before its answer is not kept beyond it.
const QUEUE_LIMIT: usize = 16 * 1024;

/// How many jobs wait before the beginnings and ends of streams are not kept either. A session is deleted even then.
const URGENT_LIMIT: usize = 2 * QUEUE_LIMIT;

/// The largest file of a session, in bytes. Beyond it the file is made half as long, and where that does not help, only
/// the beginnings and ends of streams are kept, and what the client sets.
const FILE_LIMIT: u64 = 4 * 1024 * 1024;

/// How long a stream waits until it is written that its client knows of it.
const WRITING: Duration = Duration::from_millis(200);

/// How the name of a file ends that takes the place of a longer one.
const SHORTER: &str = "new";

type Message = Arc<ServerJsonRpcMessage>;

/// The folder with the stored sessions.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    jobs: Queue,
    writer: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Job {
    Record(Uuid, Record<Message>),
    Delete(Uuid),
    /// Says that all before it is written.
    Answer(oneshot::Sender<()>),
    /// Marks files as used.
    Touch(Vec<Uuid>),
    Stop,
}

/// Where one session is stored.
#[derive(Debug, Clone)]
pub(super) struct Shelf {
    id: Uuid,
    jobs: Queue,
}

/// Where jobs wait for the thread.
#[derive(Debug, Clone)]
struct Queue {
    jobs: Sender<Job>,
    waiting: Arc<AtomicUsize>,
}

impl Folder {
    /// The sessions that are stored in `path`, without those that were not used for longer than `kept`, and at most
    /// `limit` of them.
    pub(super) fn open(
        path: PathBuf,
        now: SystemTime,
        kept: Duration,
        limit: usize,
    ) -> io::Result<Self> {
        let mut folder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
        folder.recursive(true).create(&path)?;
        // It may have been there before, for everybody to read.
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        forget_old(&path, now, kept, limit)?;
        let (jobs, received) = Queue::new();
        let writer = Writer { path: path.clone(), lengths: HashMap::new() };
        let thread = std::thread::Builder::new().name("sessions".to_owned());
        let waiting = Arc::clone(&jobs.waiting);
        let writer = Some(thread.spawn(move || writer.run(&received, &waiting))?);
        Ok(Self { path, jobs, writer })
    }

    /// Where the session with this id is stored.
    pub(super) fn shelf(&self, id: &str) -> Option<Shelf> {
        Some(Shelf { id: own_id(id)?, jobs: self.jobs.clone() })
    }

    /// The session with this id as it was stored.
    pub(super) async fn read(&self, id: &str) -> Option<Stored> {
        let path = file(&self.path, own_id(id)?);
        // What was written last may be on its way.
        self.jobs.written().await;
        let text = tokio::task::spawn_blocking(move || fs::read(path)).await.ok()?.ok()?;
        Stored::read(&String::from_utf8_lossy(&text))
    }

    /// Marks sessions as used.
    pub(super) fn touch<'a>(&self, ids: impl Iterator<Item = &'a str>) {
        self.jobs.send(Job::Touch(ids.filter_map(own_id).collect()));
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is in the queue is written first.
        self.jobs.send(Job::Stop);
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            warn!("the writer of sessions panicked");
        }
    }
}

impl Shelf {
    pub(super) fn put(&self, record: Record<Message>) {
        self.jobs.send(Job::Record(self.id, record));
    }

    pub(super) fn delete(&self) {
        self.jobs.send(Job::Delete(self.id));
    }

    /// Waits until what was put there is written.
    pub(super) async fn written(&self) {
        self.jobs.written().await;
    }
}

impl Queue {
    fn new() -> (Self, Receiver<Job>) {
        let (jobs, received) = channel();
        (Self { jobs, waiting: Arc::default() }, received)
    }

    fn send(&self, job: Job) {
        let limit = job.limit();
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        if waiting >= limit || self.jobs.send(job).is_err() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            warn!("too much is happening in sessions; not all of it will outlive this process");
        }
    }

    /// Waits until what was sent is written.
    async fn written(&self) {
        let (answer, written) = oneshot::channel();
        self.send(Job::Answer(answer));
        if tokio::time::timeout(WRITING, written).await.is_err() {
            warn!("writing sessions takes long");
        }
    }
}

impl Job {
    /// How many others may wait before it.
    const fn limit(&self) -> usize {
        match self {
            Self::Record(_, record) if is_urgent(record) => URGENT_LIMIT,
            Self::Record(..) | Self::Touch(_) => QUEUE_LIMIT,
            Self::Answer(_) => URGENT_LIMIT,
            // A session is deleted once, and one that was deleted must not come back.
            Self::Delete(_) | Self::Stop => usize::MAX,
        }
    }
}

/// Whether it is kept where other records are not: without it another call would go by the number of a stream, or a
/// call that ended would count as open.
const fn is_urgent(record: &Record<Message>) -> bool {
    match record {
        Record::Initialize(_)
        | Record::Open { .. }
        | Record::Cut { .. }
        | Record::Setting { .. }
        | Record::Message { kind: Kind::Answer, .. } => true,
        Record::Message { .. } => false,
    }
}

/// The id, if it is one of ours: another may not become the name of a file.
fn own_id(id: &str) -> Option<Uuid> {
    Uuid::try_parse(id).ok().filter(|uuid| uuid.to_string() == id)
}

fn file(folder: &Path, id: Uuid) -> PathBuf {
    folder.join(format!("{id}.jsonl"))
}

fn forget_old(folder: &Path, now: SystemTime, kept: Duration, limit: usize) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == SHORTER) {
            // A kill came while it was written; the longer one is still there.
            fs::remove_file(entry.path())?;
            continue;
        }
        let age = now.duration_since(entry.metadata()?.modified()?).unwrap_or_default();
        files.push((age, entry.path()));
    }
    files.sort_unstable();
    for (_, path) in files
        .iter()
        .enumerate()
        .filter(|(index, (age, _))| *index >= limit || *age > kept)
        .map(|(_, file)| file)
    {
        fs::remove_file(path)?;
    }
    Ok(())
}

#[async_trait]
impl SessionStore for Folder {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        Ok(self.read(id).await.map(|stored| SessionState::new(stored.initialize)))
    }

    async fn store(&self, id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        if let Some(shelf) = self.shelf(id) {
            shelf.put(Record::Initialize(Box::new(state.initialize_params.clone())));
        }
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        if let Some(shelf) = self.shelf(id) {
            shelf.delete();
        }
        Ok(())
    }
}

/// What the thread has.
struct Writer {
    path: PathBuf,
    /// The lengths of the files to which it wrote whole lines.
    lengths: HashMap<Uuid, Length>,
}

/// How long a file is, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Length {
    now: u64,
    /// How long it was when it was made shorter.
    shortest: u64,
}

impl Length {
    /// Whether it is time to make the file shorter. Where that does not help it is not tried for every line.
    const fn is_too_long(self) -> bool {
        self.now > FILE_LIMIT && self.now - self.shortest > FILE_LIMIT / 2
    }
}

impl Writer {
    fn run(mut self, jobs: &Receiver<Job>, waiting: &AtomicUsize) {
        while let Ok(job) = jobs.recv() {
            waiting.fetch_sub(1, Ordering::Relaxed);
            let done = match job {
                Job::Record(id, record) => self.write(id, &record),
                Job::Delete(id) => self.delete(id),
                Job::Touch(ids) => ids.into_iter().try_for_each(|id| self.touch(id)),
                Job::Answer(answer) => {
                    // An error says that whoever asked does not wait any more.
                    answer.send(()).or(Ok(()))
                }
                Job::Stop => return,
            };
            if let Err(error) = done
                && error.kind() != io::ErrorKind::NotFound
            {
                warn!("a session cannot be stored: {error}");
            }
        }
    }

    fn write(&mut self, id: Uuid, record: &Record<Message>) -> io::Result<()> {
        let mut options = OpenOptions::new();
        // A session that was deleted does not come back.
        let opens = matches!(record, Record::Initialize(_));
        options.append(true).create(opens);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(file(&self.path, id))?;
        let mut line = Vec::new();
        let known = self.lengths.get(&id).copied();
        let mut length = match known {
            Some(length) => length,
            None => {
                // What is there may end within a line, after a kill or an error.
                line.push(b'\n');
                Length { now: file.metadata()?.len(), shortest: 0 }
            }
        };
        if length.now > FILE_LIMIT && !is_urgent(record) {
            return Ok(());
        }
        serde_json::to_writer(&mut line, &record.map(as_value))?;
        line.push(b'\n');
        // Known again when the whole line is there.
        self.lengths.remove(&id);
        file.write_all(&line)?;
        length.now += u64::try_from(line.len()).unwrap_or_default();
        self.lengths.insert(id, length);
        if length.is_too_long() { self.shorten(id, length.now) } else { Ok(()) }
    }

    fn shorten(&mut self, id: Uuid, now: u64) -> io::Result<()> {
        // Whatever goes wrong, it is not tried again at once.
        self.lengths.insert(id, Length { now, shortest: now });
        let path = file(&self.path, id);
        let text = fs::read(&path)?;
        let Some(stored) = Stored::read(&String::from_utf8_lossy(&text)) else { return Ok(()) };
        let shorter = stored.shortened(usize::try_from(FILE_LIMIT / 2).unwrap_or(usize::MAX))?;
        let beside = path.with_extension(SHORTER);
        // One that an error left behind may be for everybody to read.
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&beside)?.write_all(&shorter)?;
        fs::rename(&beside, &path)?;
        let length = u64::try_from(shorter.len()).unwrap_or_default();
        self.lengths.insert(id, Length { now: length, shortest: length });
        Ok(())
    }

    fn delete(&mut self, id: Uuid) -> io::Result<()> {
        self.lengths.remove(&id);
        fs::remove_file(file(&self.path, id))
    }

    fn touch(&self, id: Uuid) -> io::Result<()> {
        // An empty line says nothing, and the file is as new as that.
        OpenOptions::new().append(true).open(file(&self.path, id))?.write_all(b"\n")
    }
}

fn as_value(message: &Message) -> serde_json::Value {
    serde_json::to_value(&**message).unwrap_or_default()
}

#[cfg(test)]
mod tests;
