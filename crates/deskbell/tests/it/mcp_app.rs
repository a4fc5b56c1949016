//! The parts of the program behind the MCP door, with a journal in memory and nobody who carries deliveries out.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::{path::PathBuf, sync::Arc, time::Duration};

use deskbell::{
    app::{App, SystemClock},
    config::{Config, Sources},
    dispatch::Health,
    intake::{Intake, Rules},
    journal::{Delivery, DeliveryQuery, Entry, EventQuery, Journal, memory::MemoryJournal},
    live::Live,
    paths::Paths,
    prompts::Prompts,
    snoozes::Snoozes,
    telemetry::Role,
};
use deskbell_core::{
    clock::Clock,
    route::{Route, Routing},
};
use tokio::sync::{mpsc, watch};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

/// An [`App`] and the journal under it.
pub(crate) struct Parts {
    pub(crate) app: Arc<App>,
    pub(crate) journal: Arc<MemoryJournal>,
    _rules: watch::Sender<Arc<Rules>>,
    _config: watch::Sender<Arc<Config>>,
    _stop: DropGuard,
}

impl Parts {
    /// With channels of these names, and no routes.
    pub(crate) fn with_channels(names: &[&str]) -> Self {
        Self::new(names, Vec::new(), Config::default())
    }

    pub(crate) fn new(names: &[&str], routes: Vec<Route>, config: Config) -> Self {
        let journal = Arc::new(MemoryJournal::default());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (rules, follow_rules) = watch::channel(Arc::new(Rules {
            routing: Routing {
                routes,
                added: Vec::new(),
                channels: names.iter().map(|name| name.parse().unwrap()).collect(),
                skip_titles: vec!["quiet".to_owned()],
                update_interval: Duration::from_secs(5),
                ..Routing::default()
            },
            ..Rules::default()
        }));
        let (config, follow_config) = watch::channel(Arc::new(config));
        let stop = CancellationToken::new();
        let shared = Arc::clone(&journal) as Arc<dyn Journal>;
        let app = App {
            started_at: clock.now(),
            clock: Arc::clone(&clock),
            journal: Arc::clone(&shared),
            role: Role::InProcess,
            journal_folder: None,
            intake: Intake::new(Arc::clone(&shared), clock, follow_rules, follow_config.clone()),
            live: Live::new(shared, &TaskTracker::new(), stop.clone()),
            config: follow_config,
            channels: watch::channel(Arc::default()).1,
            health: watch::channel(Health::default()).1,
            trials: mpsc::channel(1).0,
            snoozes: Snoozes::open(PathBuf::new()),
            prompts: Prompts::new(Sources::of_the_daemon(&Paths {
                state: PathBuf::new(),
                config_user: PathBuf::new(),
                config_machine: PathBuf::new(),
            })),
        };
        let stop = stop.drop_guard();
        Self { app: Arc::new(app), journal, _rules: rules, _config: config, _stop: stop }
    }

    pub(crate) async fn events(&self) -> Vec<Entry> {
        self.journal.events(EventQuery::first(1_000)).await.unwrap()
    }

    pub(crate) async fn deliveries(&self) -> Vec<Delivery> {
        let query = DeliveryQuery { limit: 1_000, ..DeliveryQuery::default() };
        self.journal.deliveries(query).await.unwrap()
    }
}
