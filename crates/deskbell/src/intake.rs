//! The only way in: checks a report, decides what it changes and where it goes, and answers once it is durable.

mod own_files;
pub mod timestamp;

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash as _, Hasher as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use deskbell_core::{
    ChannelName, Context, Event, EventId, Invalid, Level, Run, RunId, Source,
    clock::Clock,
    event::{Content, EventIds, Kind},
    quiet::{Holds, Snoozed},
    route::{Routing, Way},
    run::{self, RunRefusal, RunStep},
};
use jiff::Timestamp;
use tokio::sync::watch;
use uuid::Uuid;

pub use self::own_files::OwnFiles;
use crate::{
    config::{Config, Problem, load::Project},
    crash_point::{self, Point},
    journal::{
        Accept, Ack, DeliveryQuery, EventQuery, IdempotencyKey, Journal, JournalError, RunChange,
        RunQuery, Write,
    },
    projects::Projects,
    terminal,
};

/// What somebody reports, before it is accepted.
#[derive(Debug, Clone)]
pub struct Report {
    /// The caller's key: a second report with the same one is answered with the first event.
    pub key: Option<IdempotencyKey>,
    /// How serious it is.
    pub level: Level,
    /// Its category.
    pub context: Context,
    /// Who reports it.
    pub source: Source,
    /// What is said.
    pub content: Content,
    /// What the caller's interface calls the text, for refusals.
    pub text_field: &'static str,
    /// What sort of event it is.
    pub kind: Kind,
    /// The channels the caller names; empty lets the routes decide.
    pub to: Vec<ChannelName>,
    /// Whether nothing holds it back, because somebody waits for it: no quiet hours and no snooze.
    pub at_once: bool,
    /// The folder whose project may choose the routes. Only for the user's own clients: it names a file to read.
    pub folder: Option<PathBuf>,
}

/// What of the configuration decides where events go.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// The routes and the channels that work.
    pub routing: Routing,
    /// The project of the report, if it has routes: they took the place of the user's or add to them.
    pub project: Option<Arc<Project>>,
    /// The channels that work and that only a project's own reports reach, each with the project's file.
    pub project_channels: Vec<(ChannelName, PathBuf)>,
    /// What is wrong with the configuration, such as channels that were left out.
    pub problems: Vec<Problem>,
}

/// An accepted report.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// The event, as it is in the journal.
    pub event: Event,
    /// Whether it was accepted before, under the same key.
    pub duplicate: bool,
    /// Where it goes.
    pub channels: Vec<ChannelName>,
    /// Whether its title is on the list of those that are never pushed.
    pub skipped: bool,
    /// How many channels are configured.
    pub configured: usize,
    /// The run after it, if it is a step of one.
    pub run: Option<Run>,
}

/// Why a report was not accepted. Nothing of it is kept and nothing is sent.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    /// A field is wrong.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The step does not fit its run.
    #[error(transparent)]
    Run(#[from] RunRefusal),
    /// The journal could not keep it.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// How many runs can be changed at the same time; steps of one run wait for each other.
const RUN_LOCKS: usize = 64;

/// How often a step is decided anew when another process changed its run meanwhile.
const STALE_LIMIT: usize = 16;

/// Accepts reports.
pub struct Intake {
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    rules: watch::Receiver<Arc<Rules>>,
    config: watch::Receiver<Arc<Config>>,
    projects: Option<Projects>,
    snoozed: Option<watch::Receiver<Arc<Snoozed>>>,
    own_files: OwnFiles,
    ids: Mutex<EventIds>,
    run_locks: [tokio::sync::Mutex<()>; RUN_LOCKS],
}

impl Intake {
    /// An intake that writes to `journal` and always follows the newest `rules` and `config`.
    pub fn new(
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        rules: watch::Receiver<Arc<Rules>>,
        config: watch::Receiver<Arc<Config>>,
    ) -> Self {
        let run_locks = std::array::from_fn(|_| tokio::sync::Mutex::new(()));
        Self {
            journal,
            clock,
            rules,
            config,
            projects: None,
            snoozed: None,
            own_files: OwnFiles::default(),
            ids: Mutex::default(),
            run_locks,
        }
    }

    /// The same intake, in which projects choose the routes for what is reported from their folders.
    #[must_use]
    pub fn with_projects(self, projects: Projects) -> Self {
        Self { projects: Some(projects), ..self }
    }

    /// The same intake, in which what is `snoozed` is held back.
    #[must_use]
    pub fn with_snoozes(self, snoozed: watch::Receiver<Arc<Snoozed>>) -> Self {
        Self { snoozed: Some(snoozed), ..self }
    }

    /// The same intake, which takes none of `own_files`.
    #[must_use]
    pub fn with_own_files(self, own_files: OwnFiles) -> Self {
        Self { own_files, ..self }
    }

    /// Accepts `report`: when this returns `Ok`, the event and its deliveries are safe on disk.
    ///
    /// # Errors
    /// Says which field is wrong, why a step does not fit its run, or why the journal could not keep it.
    pub async fn accept(&self, mut report: Report) -> Result<Accepted, Refusal> {
        report.content.check(report.text_field)?;
        self.own_files.refuse(&report.content.attachments).await?;
        report.source = report.source.cleaned();
        let mut rules = self.rules_from(report.folder.as_deref()).await;
        if report.at_once {
            Arc::make_mut(&mut rules).routing.holds = Holds::default();
        }
        if let Err(unknown) = check_names(&report.to, &rules) {
            // A repeat gets the first answer, whatever became of the channels since.
            let first = self.earlier(report.key.as_ref(), &rules).await?;
            return first.ok_or_else(|| unknown.into());
        }
        let _turn = match &report.kind {
            Kind::Run(step) => Some(self.run_lock(&step.run).lock().await),
            Kind::Notice | Kind::Push => None,
        };
        // A repeat must get the first answer, even where its step no longer fits the run. For everything else the
        // commit finds a repeat, and the first report does not pay for the look.
        if matches!(report.kind, Kind::Run(_))
            && let Some(first) = self.earlier(report.key.as_ref(), &rules).await?
        {
            return Ok(first);
        }
        for _ in 0..STALE_LIMIT {
            let (accept, accepted) = self.decide(&report, &rules).await?;
            match self.commit(accept).await? {
                Ack::Accepted(_) | Ack::Done(_) => {
                    crash_point::pass(Point::Accepted);
                    terminal::emit(&accepted.event, &self.config.borrow().tracing);
                    return Ok(accepted);
                }
                Ack::Duplicate(_) => {
                    if let Some(first) = self.earlier(report.key.as_ref(), &rules).await? {
                        return Ok(first);
                    }
                }
                Ack::Stale => {}
            }
        }
        Err(JournalError::Busy { retry_after: Duration::from_millis(100) }.into())
    }

    /// The rules for what is reported from `folder`: the user's, with the routes and the channels of its project.
    pub async fn rules_from(&self, folder: Option<&Path>) -> Arc<Rules> {
        let rules = self.own_rules();
        let (Some(projects), Some(folder)) = (&self.projects, folder) else {
            return rules;
        };
        let Some(project) = projects.of(folder).await else {
            return rules;
        };
        let mut rules = Rules::clone(&rules);
        let brought = rules.project_channels.iter().filter(|(_, file)| *file == project.file);
        rules.routing.channels.extend(brought.map(|(name, _)| name.clone()));
        if let Some(routes) = &project.routes {
            let routing = &mut rules.routing;
            let place = if project.is_trusted { &mut routing.routes } else { &mut routing.added };
            place.clone_from(routes);
            routing.project = Some(project.file.display().to_string());
            rules.project = Some(project);
        }
        Arc::new(rules)
    }

    /// The user's rules, with what is snoozed.
    fn own_rules(&self) -> Arc<Rules> {
        let mut rules = Arc::clone(&self.rules.borrow());
        let snoozed = self.snoozed.as_ref().map(|snoozed| Arc::clone(&snoozed.borrow()));
        if let Some(snoozed) = snoozed.filter(|snoozed| !snoozed.is_over(self.clock.now())) {
            Arc::make_mut(&mut rules).routing.holds.snoozed = Snoozed::clone(&snoozed);
        }
        rules
    }

    async fn commit(&self, accept: Accept) -> Result<Ack, JournalError> {
        let acks = self.journal.commit(vec![Write::Accept(Box::new(accept))]).await?;
        acks.into_iter()
            .next()
            .ok_or_else(|| JournalError::Failed("no answer to a write".to_owned()))
    }

    /// What accepting `report` would write, as things stand now.
    async fn decide(&self, report: &Report, rules: &Rules) -> Result<(Accept, Accepted), Refusal> {
        let now = self.clock.now();
        let (kind, run) = match &report.kind {
            Kind::Run(step) => {
                let (step, change) = self.advance(step, &report.content.text, now).await?;
                (Kind::Run(step), Some(change))
            }
            other => (other.clone(), None),
        };
        let event = Event {
            id: self.next_id(now),
            at: now,
            level: report.level,
            context: report.context.clone(),
            source: report.source.clone(),
            content: report.content.clone(),
            kind,
            to: report.to.clone(),
        };
        let skipped = rules.routing.way(&event) == Way::Skipped;
        let deliveries = rules.routing.plan(&event);
        let accepted = Accepted {
            event: event.clone(),
            duplicate: false,
            channels: deliveries.iter().map(|planned| planned.channel.clone()).collect(),
            skipped,
            configured: rules.routing.channels.len(),
            run: run.as_ref().map(|change| change.run.clone()),
        };
        Ok((Accept { event, key: report.key.clone(), deliveries, run }, accepted))
    }

    async fn advance(
        &self,
        step: &RunStep,
        text: &str,
        now: Timestamp,
    ) -> Result<(RunStep, RunChange), Refusal> {
        let before = self.run(&step.run).await?;
        let (run, step) = run::advance(before.as_ref(), step.clone(), text, now)?;
        let after_steps = before.map_or(0, |run| run.steps);
        Ok((step, RunChange { after_steps, run }))
    }

    /// The answer that the first report with `key` got, if there was one.
    async fn earlier(
        &self,
        key: Option<&IdempotencyKey>,
        rules: &Rules,
    ) -> Result<Option<Accepted>, JournalError> {
        let Some(key) = key else {
            return Ok(None);
        };
        let query = EventQuery { key: Some(key.clone()), ..EventQuery::first(1) };
        let Some(entry) = self.journal.events(query).await?.into_iter().next() else {
            return Ok(None);
        };
        let event = entry.event;
        let query =
            DeliveryQuery { event: Some(event.id), limit: usize::MAX, ..DeliveryQuery::default() };
        let deliveries = self.journal.deliveries(query).await?;
        let run = match &event.kind {
            Kind::Run(step) => self.run(&step.run).await?,
            Kind::Notice | Kind::Push => None,
        };
        let skipped = deliveries.is_empty() && rules.routing.way(&event) == Way::Skipped;
        let channels = deliveries.into_iter().map(|delivery| delivery.id.channel).collect();
        Ok(Some(Accepted {
            event,
            duplicate: true,
            channels,
            skipped,
            configured: rules.routing.channels.len(),
            run,
        }))
    }

    async fn run(&self, id: &RunId) -> Result<Option<Run>, JournalError> {
        let query = RunQuery { id: Some(id.clone()), state: None, limit: 1 };
        Ok(self.journal.runs(query).await?.into_iter().next())
    }

    fn run_lock(&self, run: &RunId) -> &tokio::sync::Mutex<()> {
        let mut hasher = DefaultHasher::new();
        run.hash(&mut hasher);
        let index = usize::try_from(hasher.finish() % RUN_LOCKS as u64).unwrap_or_default();
        #[expect(clippy::indexing_slicing, reason = "the index is a remainder of the length")]
        &self.run_locks[index]
    }

    fn next_id(&self, now: Timestamp) -> EventId {
        let random = Uuid::new_v4().as_u128();
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).next(now, random)
    }
}

fn check_names(to: &[ChannelName], rules: &Rules) -> Result<(), Invalid> {
    match to.iter().find(|name| !rules.routing.channels.contains(name)) {
        None => Ok(()),
        Some(unknown) => {
            let known: Vec<_> = rules.routing.channels.iter().map(ChannelName::as_str).collect();
            let expected = match (Problem::of(unknown, &rules.problems), known.is_empty()) {
                (Some(problem), _) => format!("a channel that works ({problem})"),
                (None, true) => "no name, because no channel is configured".to_owned(),
                (None, false) => format!("one of the configured channels: {}", known.join(", ")),
            };
            Err(Invalid::text("to", unknown.as_str(), expected))
        }
    }
}
