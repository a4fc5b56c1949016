//! Puts the parts of the program together and stops them in order.

use std::{path::PathBuf, sync::Arc, time::Duration};

use deskbell_core::{ChannelName, clock::Clock};
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    channel_set::{self, ChannelSet},
    config::{self, Config, load::Sources},
    dispatch::{self, Health},
    intake::{Intake, OwnFiles},
    journal::Journal,
    live::Live,
    projects::Projects,
    prompts::Prompts,
    retention,
    snoozes::Snoozes,
    telemetry::Role,
};

/// How many channels wait for dispatch to hear that they are to be tried; a further one is tried when it is due.
const TRIALS_LIMIT: usize = 64;

/// How long the parts may take to end.
const ENDING: Duration = Duration::from_secs(10);

/// The parts that doors need.
pub struct App {
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// The journal, for reading and for a retry by hand.
    pub journal: Arc<dyn Journal>,
    /// What the process is.
    pub role: Role,
    /// Where the journal's files are; `None` where it has none.
    pub journal_folder: Option<PathBuf>,
    /// The way in.
    pub intake: Intake,
    /// The live stream.
    pub live: Live,
    /// The newest configuration.
    pub config: watch::Receiver<Arc<Config>>,
    /// The channels of the newest configuration.
    pub channels: watch::Receiver<Arc<ChannelSet>>,
    /// How each channel's far end does.
    pub health: watch::Receiver<Health>,
    /// Takes the names of channels that are to be tried at once.
    pub trials: mpsc::Sender<ChannelName>,
    /// Which channels are silent for a while.
    pub snoozes: Snoozes,
    /// The prompts.
    pub prompts: Prompts,
    /// When the program started.
    pub started_at: Timestamp,
}

/// A program that runs, with what it takes to end it.
pub struct Running {
    /// Its parts.
    pub app: Arc<App>,
    streams: CancellationToken,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl App {
    /// Starts dispatch, live and the watch over the configuration files on `journal`.
    ///
    /// The journal's files are in `journal_folder`, if it has any.
    pub fn start(
        role: Role,
        journal: Arc<dyn Journal>,
        journal_folder: Option<PathBuf>,
        sources: Sources,
        config: Config,
    ) -> Running {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let snoozes = Snoozes::open(sources.paths.snoozed());
        let own_files = OwnFiles::of(&sources.paths, sources.config_sh.clone());
        let projects = Projects::new(sources.clone());
        let prompts = Prompts::new(sources.clone());
        let config = config::watch::follow(sources, config, &tasks, stop.clone());
        let (channels, rules) = channel_set::follow(config.clone(), &tasks, stop.clone());
        let (trials, asked_trials) = mpsc::channel(TRIALS_LIMIT);
        let health = dispatch::start(
            Arc::clone(&journal),
            Arc::clone(&clock),
            channels.clone(),
            asked_trials,
            &tasks,
            stop.clone(),
        );
        retention::start(
            Arc::clone(&journal),
            Arc::clone(&clock),
            config.clone(),
            &tasks,
            stop.clone(),
        );
        let streams = stop.child_token();
        let live = Live::new(Arc::clone(&journal), &tasks, streams.clone());
        let intake = Intake::new(Arc::clone(&journal), Arc::clone(&clock), rules, config.clone())
            .with_projects(projects)
            .with_snoozes(snoozes.follow())
            .with_own_files(own_files);
        let started_at = clock.now();
        let app = Arc::new(Self {
            clock,
            role,
            journal,
            journal_folder,
            intake,
            live,
            config,
            channels,
            health,
            trials,
            snoozes,
            prompts,
            started_at,
        });
        Running { app, streams, stop, tasks }
    }
}

impl Running {
    /// Ends the live streams, whose viewers would hold the doors open.
    pub fn end_streams(&self) {
        self.streams.cancel();
    }

    /// Ends the parts: attempts under way may finish, everything else is in the journal.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(ENDING, self.tasks.wait()).await.is_err() {
            tracing::warn!("some attempts did not end in time; the next start takes them up");
        }
    }
}

/// The wall clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that everything else is given"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
