//! A run: a long job with an id, from its start to its end or error.
//!
//! The states are few and checked: `start` comes first, nothing comes after `end` or `error`.

use std::{fmt, str::FromStr};

use jiff::Timestamp;

use crate::{field::Invalid, level::Level, text};

/// The id of a run, chosen by who reports it and shared by all steps of the run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(String);

impl RunId {
    /// Longest id, in characters.
    pub const LIMIT: usize = 200;

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for RunId {
    type Err = Invalid;

    fn from_str(id: &str) -> Result<Self, Invalid> {
        let expected =
            "1 to 200 characters without control characters, such as backup-20240101-001";
        let odd =
            id.trim().is_empty() || id.chars().count() > Self::LIMIT || text::one_line(id) != id;
        if odd { Err(Invalid::text("run_id", id, expected)) } else { Ok(Self(id.to_owned())) }
    }
}

/// Which step of a run is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The run begins.
    Start,
    /// It goes on.
    Update,
    /// It ended well.
    End,
    /// It failed.
    Error,
}

impl Phase {
    /// The step's name on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Update => "update",
            Self::End => "end",
            Self::Error => "error",
        }
    }

    /// How serious the step is, where its reporter does not say.
    pub const fn level(self) -> Level {
        match self {
            Self::Start | Self::Update => Level::Info,
            Self::End => Level::Notice,
            Self::Error => Level::Error,
        }
    }

    /// Whether nothing may follow this step.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::End | Self::Error)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Phase {
    type Err = Invalid;

    fn from_str(name: &str) -> Result<Self, Invalid> {
        match name {
            "start" => Ok(Self::Start),
            "update" => Ok(Self::Update),
            "end" => Ok(Self::End),
            "error" => Ok(Self::Error),
            _ => Err(Invalid::text("event", name, "one of start, update, end, error")),
        }
    }
}

/// How far a run is: a fraction from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Progress(f64);

impl Progress {
    /// All done.
    pub const DONE: Self = Self(1.0);

    /// Reads a fraction.
    ///
    /// # Errors
    /// Refuses what is not from 0 to 1, naming `field`.
    pub fn new(field: &str, fraction: f64) -> Result<Self, Invalid> {
        if (0.0..=1.0).contains(&fraction) {
            Ok(Self(fraction))
        } else {
            Err(Invalid::value(field, fraction.to_string(), "a number from 0 to 1"))
        }
    }

    /// The fraction, from 0 to 1.
    pub const fn fraction(self) -> f64 {
        self.0
    }

    /// The fraction in whole percent, rounded down so that 100 means done.
    pub fn percent(self) -> u8 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 100 by construction"
        )]
        let percent = (self.0 * 100.0) as u8;
        percent
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.percent())
    }
}

/// A step of a run, as it was reported.
#[derive(Debug, Clone, PartialEq)]
pub struct RunStep {
    /// The run.
    pub run: RunId,
    /// Which step.
    pub phase: Phase,
    /// What the run is doing, such as `export_tables`.
    pub step: Option<String>,
    /// How far it is. After [`advance`] an `end` has 1.0 and an `error` the last known value.
    pub progress: Option<Progress>,
    /// When the step happened, by the reporter's clock.
    pub reported_at: Timestamp,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// Started and not over.
    Open,
    /// Ended well.
    Ended,
    /// Failed.
    Failed,
}

impl RunState {
    /// The state's name on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Ended => "ended",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A run as it stands after its latest step.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// Whether it is over, and how.
    pub state: RunState,
    /// The latest text.
    pub text: String,
    /// What it is doing.
    pub step: Option<String>,
    /// How far it is.
    pub progress: Option<Progress>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it last reported.
    pub updated_at: Timestamp,
    /// How many steps were accepted; also the version that a concurrent change is checked against.
    pub steps: u64,
}

/// Why a step does not fit its run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunRefusal {
    /// The run was never started.
    #[error("run `{run}` was not started; send `start` first, then `{phase}`")]
    NotStarted {
        /// The run.
        run: RunId,
        /// The step that was refused.
        phase: Phase,
    },
    /// The run was started before.
    #[error(
        "run `{run}` was already started; send `update`, `end` or `error`, or choose a new run_id"
    )]
    AlreadyStarted {
        /// The run.
        run: RunId,
    },
    /// The run is over.
    #[error("run `{run}` is already {state}; nothing can follow, so choose a new run_id")]
    Over {
        /// The run.
        run: RunId,
        /// How it ended.
        state: RunState,
    },
    /// An `end` with a progress other than 1.0.
    #[error("{0}")]
    Progress(Invalid),
}

/// Applies `step` to `run` and gives the run after it, with the step as it is to be kept.
///
/// An `end` completes the progress, an `error` keeps the last known one.
///
/// # Errors
/// Says why the step does not fit; then nothing changes.
pub fn advance(
    run: Option<&Run>,
    mut step: RunStep,
    text: &str,
    now: Timestamp,
) -> Result<(Run, RunStep), RunRefusal> {
    let id = || step.run.clone();
    match (run, step.phase) {
        (None, Phase::Start) => {}
        (None, phase) => return Err(RunRefusal::NotStarted { run: id(), phase }),
        (Some(run), _) if run.state != RunState::Open => {
            return Err(RunRefusal::Over { run: id(), state: run.state });
        }
        (Some(_), Phase::Start) => return Err(RunRefusal::AlreadyStarted { run: id() }),
        (Some(_), _) => {}
    }
    if step.phase == Phase::End {
        if let Some(progress) = step.progress.filter(|progress| *progress != Progress::DONE) {
            let value = progress.fraction().to_string();
            let expected = "1.0 at the end of a run (or leave it out)";
            return Err(RunRefusal::Progress(Invalid::value("progress", value, expected)));
        }
        step.progress = Some(Progress::DONE);
    }
    step.progress = step.progress.or_else(|| run.and_then(|run| run.progress));
    let state = match step.phase {
        Phase::Start | Phase::Update => RunState::Open,
        Phase::End => RunState::Ended,
        Phase::Error => RunState::Failed,
    };
    let after = Run {
        id: step.run.clone(),
        state,
        text: text.to_owned(),
        step: step.step.clone().or_else(|| run.and_then(|run| run.step.clone())),
        progress: step.progress,
        started_at: run.map_or(now, |run| run.started_at),
        updated_at: now,
        steps: run.map_or(0, |run| run.steps) + 1,
    };
    Ok((after, step))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn step(phase: Phase, progress: Option<f64>) -> RunStep {
        RunStep {
            run: "build-1".parse().unwrap(),
            phase,
            step: None,
            progress: progress.map(|fraction| Progress::new("progress", fraction).unwrap()),
            reported_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn after(phases: &[(Phase, Option<f64>)]) -> Result<Run, RunRefusal> {
        let mut run = None;
        for (phase, progress) in phases {
            run = Some(
                advance(run.as_ref(), step(*phase, *progress), "text", Timestamp::UNIX_EPOCH)?.0,
            );
        }
        Ok(run.unwrap())
    }

    #[test]
    fn an_end_completes_the_progress_row_105() {
        let run =
            after(&[(Phase::Start, None), (Phase::Update, Some(0.4)), (Phase::End, None)]).unwrap();
        assert_eq!((run.state, run.progress), (RunState::Ended, Some(Progress::DONE)));
    }

    #[test]
    fn an_error_keeps_the_actual_progress_row_105() {
        let run = after(&[(Phase::Start, None), (Phase::Update, Some(0.4)), (Phase::Error, None)])
            .unwrap();
        assert_eq!(run.state, RunState::Failed);
        assert_eq!(run.progress.unwrap().percent(), 40);
    }

    #[test]
    fn an_end_short_of_the_end_is_refused_row_105() {
        assert!(matches!(
            after(&[(Phase::Start, None), (Phase::End, Some(0.5))]),
            Err(RunRefusal::Progress(_))
        ));
    }

    #[test]
    fn fractions_outside_0_to_1_are_refused_row_105() {
        for fraction in [7.0, -0.1, 1.000_001, f64::NAN, f64::INFINITY] {
            assert!(Progress::new("progress", fraction).is_err(), "{fraction}");
        }
    }

    proptest! {
        #[test]
        fn only_start_update_end_or_error_in_order_is_accepted_row_104(order in prop::collection::vec(0_usize..4, 0..6)) {
            let phases: Vec<_> = order
                .iter()
                .map(|index| ([Phase::Start, Phase::Update, Phase::End, Phase::Error][*index], None))
                .collect();
            let Some((first, rest)) = phases.split_first() else { return Ok(()) };
            let (last, middle) = rest.split_last().unwrap_or((&(Phase::Update, None), &[]));
            let allowed = first.0 == Phase::Start
                && middle.iter().all(|(phase, _)| *phase == Phase::Update)
                && last.0 != Phase::Start;
            prop_assert_eq!(after(&phases).is_ok(), allowed);
        }
    }

    #[test]
    fn ids_are_one_clean_line() {
        for id in ["", " ", "a\nb", "a\u{1b}[0m", &"x".repeat(201)] {
            assert!(id.parse::<RunId>().is_err(), "{id:?}");
        }
        assert!("deploy-前端-005".parse::<RunId>().is_ok());
    }
}
