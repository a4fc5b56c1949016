//! What a person at a terminal sees of an event: one line, on the target `llm_notify`.
//!
//! A process shows an event once: it either calls [`emit`], and the log's stderr layer writes the line, or prints
//! [`line()`] itself, as commands and bridges do with what their daemon accepted.

use anstyle::{AnsiColor, Style};
use deskbell_core::{Event, Level, event::Kind, run::RunStep, text};

use crate::{config::Tracing, telemetry::filter};

/// The tracing target of every notification (seed S0).
pub const TARGET: &str = "llm_notify";

/// Longest text of a line, in characters; the journal has the whole.
pub const LINE_LIMIT: usize = 4_000;

/// The line that shows `event`, or `None` where the configuration hides it.
pub fn line(event: &Event, tracing: &Tracing) -> Option<String> {
    is_shown(event, tracing)
        .then(|| compose(event.level, event.context.as_str(), &summary(event), Paint::Plain))
}

/// The line that shows `event`, with colours, or `None` where the configuration hides it.
pub fn coloured_line(event: &Event, tracing: &Tracing) -> Option<String> {
    is_shown(event, tracing)
        .then(|| compose(event.level, event.context.as_str(), &summary(event), Paint::Coloured))
}

/// Whether the configuration lets `event` be seen: its category, and the rules for its level.
pub fn is_shown(event: &Event, tracing: &Tracing) -> bool {
    let is_allowed = tracing.contexts.is_empty() || tracing.contexts.contains(&event.context);
    is_allowed
        && !tracing.hidden_contexts.contains(&event.context)
        && filter::shows_notice(tracing, event.level)
}

/// Emits `event` as exactly one tracing event on [`TARGET`], or none where the configuration hides it.
///
/// tracing knows five levels, so the event's own is beside it as `severity`.
pub fn emit(event: &Event, tracing: &Tracing) {
    if !is_shown(event, tracing) {
        return;
    }
    let (context, severity, id, summary) =
        (event.context.as_str(), event.level.as_str(), event.id, summary(event));
    macro_rules! emit {
        ($level:ident) => {
            tracing::event!(
                target: TARGET,
                tracing::Level::$level,
                context,
                severity,
                event.id = %id,
                "{summary}"
            )
        };
    }
    match event.level {
        Level::Debug => emit!(DEBUG),
        Level::Info | Level::Notice => emit!(INFO),
        Level::Warning => emit!(WARN),
        Level::Error | Level::Critical | Level::Alert | Level::Emergency => emit!(ERROR),
    }
}

/// Whether a line has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Text only.
    Plain,
    /// With ANSI sequences.
    Coloured,
}

/// A line of three columns: how serious, what about, what; `text` is one line already.
pub(crate) fn compose(level: Level, subject: &str, text: &str, paint: Paint) -> String {
    let (label, style) = label(level);
    let subject = text::one_line(subject);
    match paint {
        Paint::Plain => format!("{label:<6} {subject}  {text}"),
        Paint::Coloured => {
            let dim = Style::new().dimmed();
            format!("{style}{label:<6}{style:#} {dim}{subject}{dim:#}  {text}")
        }
    }
}

/// What `event` says, on one line: a run's step with its facts, a title before its text.
pub(crate) fn summary(event: &Event) -> String {
    let said = text::cut(event.content.text.trim(), LINE_LIMIT, text::Unit::Characters);
    let title = event.content.title.as_deref().map(str::trim);
    let whole = match (&event.kind, title) {
        (Kind::Run(step), _) => format!("{}: {said}", step_facts(step)),
        (Kind::Notice | Kind::Push, Some(title)) => format!("{title}: {said}"),
        (Kind::Notice | Kind::Push, None) => said,
    };
    text::one_line(&whole).into_owned()
}

/// `deploy-1 update 80 % (upload)`.
fn step_facts(step: &RunStep) -> String {
    let progress = step.progress.map(|progress| format!(" {progress}")).unwrap_or_default();
    let name = step.step.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("{} {}{progress}{name}", step.run, step.phase.as_str())
}

/// How a level is written and coloured; understandable without the colour.
pub(crate) fn label(level: Level) -> (&'static str, Style) {
    let colour = |colour: AnsiColor| colour.on_default();
    match level {
        Level::Debug => ("DEBUG", Style::new().dimmed()),
        Level::Info => ("INFO", colour(AnsiColor::Green)),
        Level::Notice => ("NOTICE", colour(AnsiColor::Cyan)),
        Level::Warning => ("WARN", colour(AnsiColor::Yellow)),
        Level::Error => ("ERROR", colour(AnsiColor::Red)),
        Level::Critical => ("CRIT", colour(AnsiColor::Red).bold()),
        Level::Alert => ("ALERT", colour(AnsiColor::Red).bold()),
        Level::Emergency => ("EMERG", colour(AnsiColor::Red).bold()),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fmt,
        sync::{Arc, Mutex},
    };

    use deskbell_core::{
        Source,
        event::{Content, EventIds},
        run::{Phase, Progress},
    };
    use jiff::Timestamp;
    use tracing_subscriber::{Layer, layer::SubscriberExt as _};

    use super::*;
    use crate::config::TracingTarget;

    fn event(level: Level, context: &str, text: &str) -> Event {
        Event {
            id: EventIds::default().next(Timestamp::UNIX_EPOCH, 0),
            at: Timestamp::UNIX_EPOCH,
            level,
            context: context.parse().unwrap(),
            source: Source::default(),
            content: Content { text: text.to_owned(), ..Content::default() },
            kind: Kind::Notice,
            to: Vec::new(),
        }
    }

    fn targets(rules: &[(&str, Option<Level>)]) -> Tracing {
        let targets = rules
            .iter()
            .map(|&(name, level)| TracingTarget { name: name.to_owned(), level })
            .collect();
        Tracing { targets, ..Tracing::default() }
    }

    #[track_caller]
    fn check_shown(tracing: &Tracing, shown: &[Level]) {
        let seen: Vec<_> = Level::ALL
            .into_iter()
            .filter(|level| line(&event(*level, "llm", "a"), tracing).is_some())
            .collect();
        assert_eq!(seen, shown);
    }

    #[test]
    fn a_line_says_how_serious_what_about_and_what() {
        let shown = line(&event(Level::Warning, "safety", "back up\nfirst"), &Tracing::default());
        assert_eq!(shown.as_deref(), Some("WARN   safety  back up\\nfirst"));
    }

    #[test]
    fn a_step_shows_its_run_and_progress() {
        let step = RunStep {
            run: "deploy-1".parse().unwrap(),
            phase: Phase::Update,
            step: Some("upload".to_owned()),
            progress: Progress::new("progress", 0.8).ok(),
            reported_at: Timestamp::UNIX_EPOCH,
        };
        let event = Event { kind: Kind::Run(step), ..event(Level::Info, "llm", "uploading") };
        assert_eq!(
            line(&event, &Tracing::default()).unwrap(),
            "INFO   llm  deploy-1 update 80 % (upload): uploading"
        );
    }

    #[test]
    fn a_line_is_one_physical_line_whatever_is_said_row_12() {
        let hostile = "a\r\nERROR forged\u{1b}[2J\u{202e}b\u{9b}31m";
        let plain = line(&event(Level::Info, "x", hostile), &Tracing::default()).unwrap();
        assert!(!plain.chars().any(|c| c.is_control() || c == '\u{202e}'), "{plain:?}");
        let coloured = coloured_line(&event(Level::Info, "x", hostile), &Tracing::default());
        let stripped = anstream::adapter::strip_str(&coloured.unwrap()).to_string();
        assert_eq!(stripped, plain, "colours are all that a coloured line adds");
    }

    #[test]
    fn a_very_long_text_is_cut() {
        let shown = line(&event(Level::Info, "x", &"ä".repeat(200_000)), &Tracing::default());
        assert!(shown.unwrap().chars().count() < LINE_LIMIT + 40);
    }

    #[test]
    fn without_rules_everything_but_debug_is_shown() {
        check_shown(&Tracing::default(), &Level::ALL[1..]);
    }

    #[test]
    fn a_rule_hides_what_is_below_it_row_9() {
        check_shown(&targets(&[("llm_notify", Some(Level::Warning))]), &Level::ALL[3..]);
        check_shown(&targets(&[("llm_notify", None)]), &[]);
        check_shown(&targets(&[("llm_notifyx", None)]), &Level::ALL[1..]);
        check_shown(&targets(&[("llm_notify", Some(Level::Debug))]), &Level::ALL);
    }

    #[test]
    fn a_rule_for_one_level_goes_before_the_rule_for_all_row_9() {
        let warn_only = [("llm_notify", None), ("llm_notify::warn", Some(Level::Warning))];
        check_shown(&targets(&warn_only), &[Level::Warning]);
        let seed = [("llm_notify", Some(Level::Info)), ("llm_notify::warn", Some(Level::Warning))];
        check_shown(&targets(&seed), &Level::ALL[1..]);
        let no_warn = [("llm_notify::warning", None), ("llm_notify", Some(Level::Notice))];
        let without_warnings: Vec<_> =
            Level::ALL[2..].iter().copied().filter(|level| *level != Level::Warning).collect();
        check_shown(&targets(&no_warn), &without_warnings);
    }

    #[test]
    fn only_a_rule_for_one_level_shows_only_that_level() {
        check_shown(&targets(&[("llm_notify::warn", Some(Level::Warning))]), &[Level::Warning]);
    }

    #[test]
    fn hidden_contexts_are_not_shown_row_10() {
        let hides = |hidden: &[&str], shown: &[&str], context: &str| {
            let parse = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
            let tracing = Tracing {
                contexts: parse(shown),
                hidden_contexts: parse(hidden),
                ..Tracing::default()
            };
            line(&event(Level::Error, context, "a"), &tracing).is_none()
        };
        assert!(hides(&["performance"], &[], "performance"));
        assert!(!hides(&["performance"], &[], "safety"));
        assert!(hides(&[], &["safety"], "performance"));
        assert!(!hides(&[], &["safety"], "safety"));
    }

    /// What a subscriber saw of an event: target, level and fields.
    type Seen = (String, tracing::Level, Vec<(String, String)>);

    struct Capture(Arc<Mutex<Vec<Seen>>>);

    impl<S: tracing::Subscriber> Layer<S> for Capture {
        fn on_event(
            &self,
            event: &tracing::Event<'_>,
            _: tracing_subscriber::layer::Context<'_, S>,
        ) {
            struct Fields(Vec<(String, String)>);
            impl tracing::field::Visit for Fields {
                fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
                    self.0.push((field.name().to_owned(), value.to_owned()));
                }
                fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
                    self.0.push((field.name().to_owned(), format!("{value:?}")));
                }
            }
            let mut fields = Fields(Vec::new());
            event.record(&mut fields);
            let metadata = event.metadata();
            self.0.lock().unwrap().push((
                metadata.target().to_owned(),
                *metadata.level(),
                fields.0,
            ));
        }
    }

    fn captured(emitting: impl FnOnce()) -> Vec<Seen> {
        let captured = Arc::default();
        let subscriber = tracing_subscriber::registry().with(Capture(Arc::clone(&captured)));
        tracing::subscriber::with_default(subscriber, emitting);
        captured.lock().unwrap().drain(..).collect()
    }

    #[test]
    fn exactly_one_event_is_emitted_with_target_level_context_and_message_row_8() {
        #[track_caller]
        fn check(level: Level, expected: tracing::Level) {
            let all = targets(&[("llm_notify", Some(Level::Debug))]);
            let seen = captured(|| emit(&event(level, "safety", "a ü\nb"), &all));
            let [(target, seen_level, fields)] = &seen[..] else { panic!("{seen:?}") };
            assert_eq!((target.as_str(), *seen_level), ("llm_notify", expected));
            let field = |name: &str| fields.iter().find(|(field, _)| field == name).unwrap();
            assert_eq!(field("context").1, "safety");
            assert_eq!(field("severity").1, level.as_str());
            assert_eq!(field("message").1, "a ü\\nb");
        }
        check(Level::Debug, tracing::Level::DEBUG);
        check(Level::Info, tracing::Level::INFO);
        check(Level::Notice, tracing::Level::INFO);
        check(Level::Warning, tracing::Level::WARN);
        check(Level::Error, tracing::Level::ERROR);
        check(Level::Emergency, tracing::Level::ERROR);
    }

    #[test]
    fn what_is_hidden_is_not_emitted() {
        let hidden = targets(&[("llm_notify", Some(Level::Error))]);
        assert!(captured(|| emit(&event(Level::Info, "llm", "a"), &hidden)).is_empty());
    }
}
