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
        mpsc::{Receiver, SyncSender, sync_channel},
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

use super::stored::{Record, Stored};

/// How many records wait to be written; further ones are not kept.
const QUEUE_LIMIT: usize = 16 * 1024;

/// The largest file of a session, in bytes. Beyond it the file is made shorter, and where that does not help, nothing
/// more is kept of its streams.
const FILE_LIMIT: u64 = 4 * 1024 * 1024;

/// How long a stream waits until it is written that its client knows of it.
const WRITING: Duration = Duration::from_millis(200);

type Message = Arc<ServerJsonRpcMessage>;

/// The folder with the stored sessions.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    jobs: SyncSender<Job>,
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
    jobs: SyncSender<Job>,
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
        forget_old(&path, now, kept, limit)?;
        let (jobs, waiting) = sync_channel(QUEUE_LIMIT);
        let writer = Writer { path: path.clone(), sizes: HashMap::new() };
        let thread = std::thread::Builder::new().name("sessions".to_owned());
        let writer = Some(thread.spawn(move || writer.run(&waiting))?);
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
        written(&self.jobs).await;
        let text = tokio::task::spawn_blocking(move || fs::read(path)).await.ok()?.ok()?;
        Stored::read(&String::from_utf8_lossy(&text))
    }

    /// Marks sessions as used.
    pub(super) fn touch<'a>(&self, ids: impl Iterator<Item = &'a str>) {
        send(&self.jobs, Job::Touch(ids.filter_map(own_id).collect()));
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is in the queue is written first.
        if self.jobs.send(Job::Stop).is_ok()
            && let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            warn!("the writer of sessions panicked");
        }
    }
}

impl Shelf {
    pub(super) fn put(&self, record: Record<Message>) {
        send(&self.jobs, Job::Record(self.id, record));
    }

    pub(super) fn delete(&self) {
        send(&self.jobs, Job::Delete(self.id));
    }

    /// Waits until what was put there is written.
    pub(super) async fn written(&self) {
        written(&self.jobs).await;
    }
}

fn send(jobs: &SyncSender<Job>, job: Job) {
    if jobs.try_send(job).is_err() {
        warn!("too much is happening in sessions; not all of it will outlive this process");
    }
}

async fn written(jobs: &SyncSender<Job>) {
    let (answer, written) = oneshot::channel();
    send(jobs, Job::Answer(answer));
    if tokio::time::timeout(WRITING, written).await.is_err() {
        warn!("writing sessions takes long");
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
    /// The sizes of the files, once they are known.
    sizes: HashMap<Uuid, u64>,
}

impl Writer {
    fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
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
        let size = match self.sizes.get(&id) {
            Some(size) => *size,
            None => file.metadata()?.len(),
        };
        if size > FILE_LIMIT && !matches!(record, Record::Setting { .. }) {
            return Ok(());
        }
        let mut line = serde_json::to_vec(&record.map(as_value))?;
        line.push(b'\n');
        file.write_all(&line)?;
        let size = size + u64::try_from(line.len()).unwrap_or_default();
        self.sizes.insert(id, size);
        if size > FILE_LIMIT { self.shorten(id) } else { Ok(()) }
    }

    fn shorten(&mut self, id: Uuid) -> io::Result<()> {
        let path = file(&self.path, id);
        let Some(stored) = Stored::read(&fs::read_to_string(&path)?) else { return Ok(()) };
        let mut shorter = Vec::new();
        for record in stored.shortened() {
            serde_json::to_writer(&mut shorter, &record)?;
            shorter.push(b'\n');
        }
        let beside = path.with_extension("new");
        fs::write(&beside, &shorter)?;
        fs::rename(&beside, &path)?;
        self.sizes.insert(id, u64::try_from(shorter.len()).unwrap_or_default());
        Ok(())
    }

    fn delete(&mut self, id: Uuid) -> io::Result<()> {
        self.sizes.remove(&id);
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
