//! One progress bar for each open run, at the foot of the terminal.

use std::{collections::BTreeMap, time::Duration};

use deskbell_core::{
    run::{Progress, RunStep},
    text,
};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::api::wire::RunBody;

/// How many bars are drawn at once; further runs are shown as lines only.
const BARS_LIMIT: usize = 20;

/// Longest name and longest text beside a bar, in characters.
const NAME_LIMIT: usize = 30;
const TEXT_LIMIT: usize = 60;

/// Steps of a bar.
const LENGTH: u64 = 1_000;

/// How often a bar without a known end moves.
const TICK: Duration = Duration::from_millis(120);

/// The bars, if there is a terminal to draw them on.
pub(crate) struct Bars {
    area: Option<MultiProgress>,
    bars: BTreeMap<String, ProgressBar>,
}

impl Bars {
    pub(crate) fn new(is_terminal: bool) -> Self {
        let area = is_terminal
            .then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()))
            .filter(|area| !area.is_hidden());
        Self { area, bars: BTreeMap::new() }
    }

    /// Whether bars are drawn.
    pub(crate) const fn are_shown(&self) -> bool {
        self.area.is_some()
    }

    /// Draws what a step changes.
    pub(crate) fn step(&mut self, step: &RunStep, text: &str) {
        if step.phase.is_terminal() {
            self.close(step.run.as_str());
        } else {
            let said = step.step.as_deref().unwrap_or(text);
            self.draw(step.run.as_str(), step.progress.map(Progress::fraction), said);
        }
    }

    /// Draws a run that is open.
    pub(crate) fn open(&mut self, run: &RunBody) {
        self.draw(&run.id, run.progress, run.step.as_deref().unwrap_or(&run.text));
    }

    fn draw(&mut self, run: &str, fraction: Option<f64>, said: &str) {
        let Some(area) = &self.area else {
            return;
        };
        if !self.bars.contains_key(run) {
            if self.bars.len() >= BARS_LIMIT {
                return;
            }
            // A bar that is drawn before it has its look flashes in the library's own.
            let bar = ProgressBar::hidden()
                .with_style(moving())
                .with_prefix(shown(run, NAME_LIMIT))
                .with_message(shown(said, TEXT_LIMIT));
            bar.set_length(LENGTH);
            let bar = area.add(bar);
            bar.enable_steady_tick(TICK);
            self.bars.insert(run.to_owned(), bar);
        }
        let Some(bar) = self.bars.get(run) else {
            return;
        };
        bar.set_message(shown(said, TEXT_LIMIT));
        if let Some(fraction) = fraction {
            bar.set_style(measured());
            bar.disable_steady_tick();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a fraction from 0 to 1 of a small number"
            )]
            let position = (fraction.clamp(0.0, 1.0) * 1_000.0) as u64;
            bar.set_position(position);
        }
    }

    fn close(&mut self, run: &str) {
        if let Some(bar) = self.bars.remove(run) {
            bar.finish_and_clear();
        }
    }

    /// Writes with the bars out of the way.
    pub(crate) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.area {
            Some(area) => area.suspend(write),
            None => write(),
        }
    }

    /// Takes all bars away.
    pub(crate) fn clear(&mut self) {
        for bar in std::mem::take(&mut self.bars).into_values() {
            bar.finish_and_clear();
        }
    }
}

fn shown(text: &str, limit: usize) -> String {
    text::cut(&text::one_line(text), limit, text::Unit::Characters)
}

/// The look of a run that says how far it is.
fn measured() -> ProgressStyle {
    style("{prefix:.bold} {bar:24.cyan/dim} {percent:>3} % {msg}")
}

/// The look of a run that does not say how far it is.
fn moving() -> ProgressStyle {
    style("{prefix:.bold} {spinner} {msg}")
}

fn style(template: &str) -> ProgressStyle {
    // A wrong template falls back to the library's own look.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
