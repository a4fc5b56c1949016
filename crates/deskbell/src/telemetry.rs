//! Where log lines go: stderr, and a file that is rotated.
//!
//! Nothing here can fail or hold up the program: lines wait in bounded queues and threads of their own write them.

pub(crate) mod filter;
mod log_file;

use std::{
    fmt::{self, Write as _},
    io,
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use deskbell_core::{Level, clock::Clock as _, text};
use tracing::{Metadata, Subscriber, field::Field, subscriber::Interest};
use tracing_subscriber::{Layer, layer::Context, layer::SubscriberExt as _};

use self::log_file::LogWriter;
use crate::{
    app::SystemClock,
    bridge::sink::Sink,
    config::{LogFile, Tracing},
    paths::Paths,
    terminal::{self, Paint, TARGET},
};

/// Longest log line, in characters. A notification has its own, shorter limit.
const LINE_LIMIT: usize = 16_000;

/// How large the log file grows where the configuration does not say, in bytes.
pub const FILE_BYTES: u64 = 10 * 1024 * 1024;

/// How many rotated log files are kept where the configuration does not say.
pub const FILES_KEPT: u32 = 5;

/// What the process is, which decides where its log goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The daemon at a terminal or under a supervisor: everything to stderr and to the file.
    Daemon,
    /// The daemon that a client started, whose stderr nobody reads and nobody rotates: everything to the file.
    DetachedDaemon,
    /// The daemon inside the bridge of an MCP client: warnings to stderr, all to the file. Its own client's
    /// notifications come to stderr through the bridge; those of other clients are none of its business.
    InProcess,
    /// A command: warnings to stderr.
    Command,
}

impl Role {
    /// Whether stderr shows a line of `level`.
    fn shows_on_stderr(self, level: Level, is_notice: bool) -> bool {
        match self {
            Self::Daemon => true,
            Self::DetachedDaemon => false,
            Self::InProcess => !is_notice && level >= Level::Warning,
            Self::Command => is_notice || level >= Level::Warning,
        }
    }

    /// Whether somebody may read what the process writes to stderr.
    pub const fn is_watched(self) -> bool {
        !matches!(self, Self::DetachedDaemon)
    }

    const fn has_file(self) -> bool {
        !matches!(self, Self::Command)
    }
}

/// The log of this process, once [`init`] was called.
static LOG: OnceLock<Arc<Log>> = OnceLock::new();

/// Starts the log of the process. A second call only takes over the rules.
pub fn init(role: Role, tracing: &Tracing, paths: &Paths) {
    let mut is_new = false;
    let log = LOG.get_or_init(|| {
        is_new = true;
        let log = Log::start(role, own_paint(), Arc::clone(shared_stderr()), paths);
        log.apply(tracing);
        Arc::new(log)
    });
    if !is_new {
        return apply(tracing);
    }
    let subscriber = tracing_subscriber::registry().with(Lines(Arc::clone(log)));
    if tracing::subscriber::set_global_default(subscriber).is_err() {
        log.stderr.push("deskbell: another log is already set up in this process\n".to_owned());
    }
}

/// Takes over new rules and a new log file, when the configuration was read anew.
pub fn apply(tracing: &Tracing) {
    if let Some(log) = LOG.get() {
        log.apply(tracing);
        tracing::callsite::rebuild_interest_cache();
    }
}

/// Waits a moment until what is queued was written; for the end of the process.
pub fn flush() {
    if let Some(stderr) = STDERR.get() {
        stderr.flush(LAST_WORDS);
    }
    if let Some(log) = LOG.get()
        && let Some((_, file)) = &*log.file.read().unwrap_or_else(PoisonError::into_inner)
    {
        file.flush(LAST_WORDS);
    }
}

/// How long the end of the process waits for each place of the log.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The queue of lines for stderr, once there was one.
static STDERR: OnceLock<Arc<Sink>> = OnceLock::new();

fn shared_stderr() -> &'static Arc<Sink> {
    STDERR.get_or_init(|| Arc::new(Sink::of_stderr()))
}

/// The places of the log, and the rules of what is shown.
struct Log {
    role: Role,
    paint: Paint,
    rules: RwLock<Arc<Tracing>>,
    stderr: Arc<Sink>,
    default_file: LogFile,
    file: RwLock<Option<(LogFile, Sink)>>,
}

impl Log {
    fn start(role: Role, paint: Paint, stderr: Arc<Sink>, paths: &Paths) -> Self {
        Self {
            role,
            paint,
            rules: RwLock::default(),
            stderr,
            default_file: LogFile {
                path: paths.log(),
                max_bytes: FILE_BYTES,
                keep: FILES_KEPT as usize,
            },
            file: RwLock::default(),
        }
    }

    fn apply(&self, tracing: &Tracing) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tracing.clone());
        if !self.role.has_file() {
            return;
        }
        let wanted = tracing.file.clone().unwrap_or_else(|| self.default_file.clone());
        let mut file = self.file.write().unwrap_or_else(PoisonError::into_inner);
        if file.as_ref().is_none_or(|(current, _)| *current != wanted) {
            *file = self.open(wanted);
        }
    }

    fn open(&self, file: LogFile) -> Option<(LogFile, Sink)> {
        let (stderr, path) = (Arc::clone(&self.stderr), file.path.clone());
        let complain = move |error: &io::Error| {
            let path = path.display().to_string();
            let path = text::one_line(&path);
            stderr.push(format!("deskbell: failed to write the log file {path}: {error}\n"));
        };
        let sink = Sink::start("log file", LogWriter::new(file.clone()), complain).ok()?;
        Some((file, sink))
    }

    fn shows(&self, metadata: &Metadata<'_>) -> bool {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        metadata.is_event() && filter::shows_line(&rules, metadata.target(), *metadata.level())
    }

    fn write(&self, metadata: &Metadata<'_>, fields: &Fields) {
        let target = metadata.target();
        let level = fields.severity.unwrap_or_else(|| filter::severity(*metadata.level()));
        if let Some((_, file)) = &*self.file.read().unwrap_or_else(PoisonError::into_inner) {
            let line = terminal::compose(level, target, &fields.line(), Paint::Plain);
            file.push(format!("{:.3} {line}\n", SystemClock.now()));
        }
        let is_notice = target == TARGET;
        if self.role.shows_on_stderr(level, is_notice) {
            let line = match &fields.context {
                Some(context) if is_notice => {
                    terminal::compose(level, context, &text::one_line(&fields.message), self.paint)
                }
                _ => terminal::compose(level, target, &fields.line(), self.paint),
            };
            self.stderr.push(line + "\n");
        }
    }
}

/// Whether this process's stderr takes colours, by what it is and by the usual variables.
fn own_paint() -> Paint {
    match anstream::AutoStream::choice(&io::stderr()) {
        anstream::ColorChoice::Never => Paint::Plain,
        _ => Paint::Coloured,
    }
}

/// The layer that turns tracing events into lines.
struct Lines(Arc<Log>);

impl<S: Subscriber> Layer<S> for Lines {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        // New rules rebuild this.
        if self.0.shows(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.0.shows(metadata)
    }

    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.0.write(event.metadata(), &fields);
    }
}

/// What an event carries.
#[derive(Debug, Default)]
struct Fields {
    message: String,
    others: String,
    context: Option<String>,
    severity: Option<Level>,
}

impl Fields {
    /// The message and the fields behind it, on one line.
    fn line(&self) -> String {
        let whole = format!("{}{}", self.message, self.others);
        text::one_line(&text::cut(&whole, LINE_LIMIT, text::Unit::Characters)).into_owned()
    }

    fn add(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _infallible = match field.name() {
            "message" => write!(self.message, "{value}"),
            name => write!(self.others, " {name}={value}"),
        };
    }
}

impl tracing::field::Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "context" => self.context = Some(value.to_owned()),
            "severity" => self.severity = value.parse().ok(),
            _ => {}
        }
        match field.name() {
            "message" => self.add(field, format_args!("{value}")),
            _ => self.add(field, format_args!("{value:?}")),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format_args!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Mutex};

    use super::*;
    use crate::config::TracingTarget;

    const PATIENCE: Duration = Duration::from_secs(20);

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A log in a folder of its own, with what it wrote to stderr and to its file.
    struct Trial {
        log: Arc<Log>,
        screen: Screen,
        folder: tempfile::TempDir,
    }

    impl Trial {
        fn new(role: Role, tracing: &Tracing) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let screen = Screen::default();
            let paths = Paths {
                state: folder.path().to_owned(),
                config_user: folder.path().join("config.toml"),
                config_machine: folder.path().join("machine.toml"),
            };
            let stderr = Sink::start("stderr", screen.clone(), |_| {}).unwrap();
            let log = Log::start(role, Paint::Plain, Arc::new(stderr), &paths);
            log.apply(tracing);
            Self { log: Arc::new(log), screen, folder }
        }

        fn record(&self, emitting: impl FnOnce()) {
            let subscriber = tracing_subscriber::registry().with(Lines(Arc::clone(&self.log)));
            tracing::subscriber::with_default(subscriber, emitting);
        }

        fn stderr(&self) -> String {
            self.log.stderr.flush(PATIENCE);
            String::from_utf8(self.screen.0.lock().unwrap().clone()).unwrap()
        }

        fn file(&self, name: &str) -> String {
            if let Some((_, file)) = &*self.log.file.read().unwrap() {
                file.flush(PATIENCE);
            }
            fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
        }
    }

    fn rules(name: &str, level: Level) -> Tracing {
        let rule = TracingTarget { name: name.to_owned(), level: Some(level) };
        Tracing { targets: vec![rule], ..Tracing::default() }
    }

    #[test]
    fn a_notification_is_a_line_on_stderr_and_one_in_the_file_rows_16_and_17() {
        let trial = Trial::new(Role::Daemon, &Tracing::default());
        trial.record(|| {
            tracing::warn!(target: TARGET, context = "safety", severity = "critical", "back up");
        });
        assert_eq!(trial.stderr(), "CRIT   safety  back up\n");
        let file = trial.file("deskbell.log");
        let (time, line) = file.split_once(' ').unwrap();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
        assert_eq!(line, "CRIT   llm_notify  back up context=\"safety\" severity=\"critical\"\n");
    }

    #[test]
    fn what_a_field_carries_cannot_forge_a_line_row_12() {
        let trial = Trial::new(Role::Daemon, &Tracing::default());
        trial.record(|| {
            let hostile = "refused\r\nINFO forged\u{1b}[2J";
            tracing::warn!(channel.name = hostile, error = %hostile, "failed: {hostile}");
        });
        for text in [trial.stderr(), trial.file("deskbell.log")] {
            assert_eq!(text.matches('\n').count(), 1, "{text:?}");
            assert!(!text.trim_end().contains(char::is_control), "{text:?}");
        }
    }

    #[test]
    fn roles_decide_what_stderr_shows() {
        #[track_caller]
        fn check(role: Role, stderr: &[&str], file: usize) {
            let trial = Trial::new(role, &Tracing::default());
            trial.record(|| {
                tracing::debug!("a debug");
                tracing::info!("an info");
                tracing::warn!("a warning");
            });
            let shown = trial.stderr();
            let shown: Vec<_> = shown.lines().filter_map(|line| line.split("  ").last()).collect();
            assert_eq!(shown, stderr, "{role:?}");
            assert_eq!(trial.file("deskbell.log").lines().count(), file, "{role:?}");
        }
        check(Role::Daemon, &["an info", "a warning"], 2);
        check(Role::DetachedDaemon, &[], 2);
        check(Role::InProcess, &["a warning"], 2);
        check(Role::InProcess, &["a warning"], 2);
        check(Role::Command, &["a warning"], 0);
    }

    #[test]
    fn new_rules_and_a_new_file_take_over_at_run_time() {
        let trial = Trial::new(Role::Daemon, &Tracing::default());
        let subscriber = tracing_subscriber::registry().with(Lines(Arc::clone(&trial.log)));
        let _guard = tracing::subscriber::set_default(subscriber);
        let say = || tracing::debug!("seen");
        say();
        assert_eq!(trial.file("deskbell.log"), "");
        let path = trial.folder.path().join("other.log");
        let file = LogFile { path, max_bytes: 1_000, keep: 1 };
        trial.log.apply(&Tracing { file: Some(file), ..rules("deskbell", Level::Debug) });
        tracing::callsite::rebuild_interest_cache();
        say();
        assert!(trial.file("other.log").ends_with("seen\n"));
    }

    #[test]
    fn a_log_file_that_cannot_be_written_is_reported_once_and_stops_nothing_row_11() {
        let trial = Trial::new(Role::Daemon, &Tracing::default());
        fs::create_dir(trial.folder.path().join("deskbell.log")).unwrap();
        for _ in 0..3 {
            trial.record(|| tracing::warn!("still here"));
            trial.file("deskbell.log");
        }
        let stderr = trial.stderr();
        assert_eq!(stderr.matches("failed to write the log file").count(), 1, "{stderr}");
        assert_eq!(stderr.matches("still here").count(), 3, "{stderr}");
    }
}
