//! Reads the configuration anew when a file changes or the process gets SIGHUP, and keeps the old one when the new one
//! is broken.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use notify::{
    EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};
use tokio::sync::{mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{error, info, warn};

use super::{
    Config,
    load::{Sources, examine},
};
use crate::telemetry;

/// How long is waited after a change: an editor makes several at once.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// The newest configuration, starting with `config`, until `stop`.
pub fn follow(
    sources: Sources,
    config: Config,
    tasks: &TaskTracker,
    stop: CancellationToken,
) -> watch::Receiver<Arc<Config>> {
    tell_problems(&config);
    let (newest, receiver) = watch::channel(Arc::new(config));
    tasks.spawn(async move {
        stop.run_until_cancelled(Follower::new(sources, newest).run()).await;
    });
    receiver
}

/// What can wake the follower.
enum Wake {
    /// A file that matters may have changed.
    Changed,
    /// Somebody asked for it.
    Hangup,
}

struct Follower {
    sources: Sources,
    newest: watch::Sender<Arc<Config>>,
    files: Files,
    changes: mpsc::Receiver<()>,
}

impl Follower {
    fn new(sources: Sources, newest: watch::Sender<Arc<Config>>) -> Self {
        // One waiting change says as much as many.
        let (sender, changes) = mpsc::channel(1);
        Self { sources, newest, files: Files::new(sender), changes }
    }

    async fn run(mut self) {
        let mut hangups = Hangups::new();
        self.watch_all().await;
        // What changed between the first reading and the watch was not seen.
        self.read().await;
        loop {
            let wake = tokio::select! {
                Some(()) = self.changes.recv() => Wake::Changed,
                () = hangups.next() => Wake::Hangup,
            };
            match wake {
                Wake::Changed => tokio::time::sleep(DEBOUNCE).await,
                Wake::Hangup => info!("reading the configuration anew, as SIGHUP asks"),
            }
            while self.changes.try_recv().is_ok() {}
            self.read().await;
        }
    }

    /// Watches the files of a first reading, whose content does not matter.
    async fn watch_all(&mut self) {
        let sources = self.sources.clone();
        if let Ok(loaded) = tokio::task::spawn_blocking(move || examine(&sources)).await {
            self.files.watch(loaded.watched);
        }
    }

    /// Reads everything anew, and hands it on if it can be used and says something new.
    async fn read(&mut self) {
        let sources = self.sources.clone();
        let Ok(loaded) = tokio::task::spawn_blocking(move || examine(&sources)).await else {
            return error!("reading the configuration broke off; the old one stays");
        };
        self.files.watch(loaded.watched.clone());
        let config = match loaded.usable() {
            Ok(loaded) => loaded.config,
            Err(errors) => return error!("the configuration stays as it was: {errors}"),
        };
        if **self.newest.borrow() == config {
            return;
        }
        tell_problems(&config);
        telemetry::apply(&config.tracing);
        self.newest.send_replace(Arc::new(config));
        info!("the configuration has changed");
    }
}

fn tell_problems(config: &Config) {
    for problem in &config.problems {
        warn!("{problem}");
    }
}

/// The files whose change matters. Their folders are watched, because editors put a new file in place of the old one.
struct Files {
    /// `None` where the system has no more watches; then only SIGHUP is left.
    watcher: Option<RecommendedWatcher>,
    /// The files, with those that links lead to.
    wanted: Arc<Mutex<BTreeSet<PathBuf>>>,
    folders: BTreeSet<PathBuf>,
}

impl Files {
    fn new(changed: mpsc::Sender<()>) -> Self {
        let wanted = Arc::new(Mutex::new(BTreeSet::new()));
        let matters = Arc::clone(&wanted);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let is_change = event.is_ok_and(|event| {
                let wanted = matters.lock().unwrap_or_else(PoisonError::into_inner);
                changes_something(event.kind)
                    && event.paths.iter().any(|path| concerns(&wanted, path))
            });
            if is_change {
                // When one is waiting already, that is enough.
                let _one_waits = changed.try_send(());
            }
        });
        let watcher = watcher
            .inspect_err(|error| warn!("changes of the configuration need SIGHUP: {error}"))
            .ok();
        Self { watcher, wanted, folders: BTreeSet::new() }
    }

    /// Watches exactly these files.
    fn watch(&mut self, files: BTreeSet<PathBuf>) {
        let linked: Vec<_> = files.iter().filter_map(|file| file.canonicalize().ok()).collect();
        let wanted: BTreeSet<_> = files.into_iter().chain(linked).collect();
        // Of a folder that is not there yet, the nearest that is.
        let folders = wanted.iter().filter_map(|file| {
            file.ancestors().skip(1).find(|folder| folder.is_dir()).map(Path::to_owned)
        });
        let folders: BTreeSet<_> = folders.collect();
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        for gone in self.folders.difference(&folders) {
            // A folder that was removed is not watched any more either way.
            let _either = watcher.unwatch(gone);
        }
        // Watched again even if they were: a folder may have been replaced by one of the same name.
        for folder in &folders {
            if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
                warn!("changes in {} need SIGHUP: {error}", folder.display());
            }
        }
        self.folders = folders;
    }
}

/// Whether `path` is one of the files, a folder on the way to one, or the link that Kubernetes turns round.
fn concerns(wanted: &BTreeSet<PathBuf>, path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "..data")
        || wanted.iter().any(|file| file.starts_with(path))
}

/// Whether an event may have changed a file. Reading one, as we do, is an event too.
const fn changes_something(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Create(_)
            | EventKind::Modify(_)
            | EventKind::Remove(_)
            | EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Any
    )
}

/// The SIGHUPs that the process gets.
struct Hangups {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl Hangups {
    #[cfg(unix)]
    fn new() -> Self {
        let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup());
        Self { signal: signal.inspect_err(|error| warn!("SIGHUP is not heard: {error}")).ok() }
    }

    #[cfg(unix)]
    async fn next(&mut self) {
        match &mut self.signal {
            Some(signal) => {
                signal.recv().await;
            }
            None => std::future::pending().await,
        }
    }

    // Other systems have no such signal.
    #[cfg(not(unix))]
    const fn new() -> Self {
        Self {}
    }

    #[cfg(not(unix))]
    async fn next(&mut self) {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs};

    use super::*;
    use crate::paths::Paths;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// A follower of a user's file in a folder of its own.
    struct Trial {
        folder: tempfile::TempDir,
        configs: watch::Receiver<Arc<Config>>,
        stop: CancellationToken,
        tasks: TaskTracker,
    }

    impl Trial {
        fn new(text: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("below").join("config.toml");
            fs::create_dir(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            let sources = Sources {
                paths: Paths {
                    state: folder.path().join("state"),
                    config_user: file,
                    config_machine: folder.path().join("machine.toml"),
                },
                folder: None,
                variables: BTreeMap::new(),
                overrides: Vec::new(),
                config_sh: None,
            };
            let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
            let config = Config::load(&sources).unwrap();
            let configs = follow(sources, config, &tasks, stop.clone());
            Self { folder, configs, stop, tasks }
        }

        fn file(&self) -> PathBuf {
            self.folder.path().join("below").join("config.toml")
        }

        async fn expect(&mut self, attempts: u32) {
            let wanted = self.configs.wait_for(|config| config.delivery.attempts == attempts);
            let seen = tokio::time::timeout(PATIENCE, wanted).await;
            assert!(seen.is_ok(), "the change to {attempts} attempts was not seen");
        }

        async fn end(self) {
            self.stop.cancel();
            self.tasks.close();
            self.tasks.wait().await;
        }
    }

    fn attempts(number: u32) -> String {
        format!("[delivery]\nattempts = {number}\n")
    }

    #[tokio::test]
    async fn a_changed_file_is_read_anew_however_it_was_written() {
        let mut trial = Trial::new(&attempts(1));
        fs::write(trial.file(), attempts(2)).unwrap();
        trial.expect(2).await;
        // As editors do it: a new file takes the place of the old one.
        let new = trial.folder.path().join("below").join("config.toml~");
        fs::write(&new, attempts(3)).unwrap();
        fs::rename(&new, trial.file()).unwrap();
        trial.expect(3).await;
        fs::remove_file(trial.file()).unwrap();
        trial.expect(12).await;
        fs::write(trial.file(), attempts(4)).unwrap();
        trial.expect(4).await;
        trial.end().await;
    }

    #[tokio::test]
    async fn a_folder_that_comes_later_is_seen() {
        let mut trial = Trial::new(&attempts(1));
        fs::remove_dir_all(trial.file().parent().unwrap()).unwrap();
        trial.expect(12).await;
        fs::create_dir(trial.file().parent().unwrap()).unwrap();
        fs::write(trial.file(), attempts(2)).unwrap();
        trial.expect(2).await;
        trial.end().await;
    }

    #[tokio::test]
    async fn a_broken_file_changes_nothing_until_it_is_repaired() {
        let mut trial = Trial::new(&attempts(1));
        fs::write(trial.file(), "[delivery\n").unwrap();
        fs::write(trial.folder.path().join("machine.toml"), "keep_history = \"1d\"\n").unwrap();
        fs::write(trial.file(), "[delivery\nattempts").unwrap();
        // Time enough to read it; what is expected is that nothing happens.
        let nothing = tokio::time::timeout(DEBOUNCE * 5, trial.configs.changed()).await;
        assert!(nothing.is_err(), "a broken file was taken over");
        fs::write(trial.file(), attempts(2)).unwrap();
        trial.expect(2).await;
        assert_eq!(trial.configs.borrow().keep_history, Some(Duration::from_hours(24)));
        trial.end().await;
    }

    #[test]
    fn reading_a_file_is_no_change() {
        assert!(!changes_something(EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(!changes_something(EventKind::Access(AccessKind::Close(AccessMode::Read))));
        assert!(changes_something(EventKind::Access(AccessKind::Close(AccessMode::Write))));
    }
}
