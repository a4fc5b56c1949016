//! Which log lines and notifications the rules of `[tracing] targets` show.
//!
//! The longest name that fits a target wins, and names fit whole segments only: `llm_notify` is not a rule for
//! `llm_notifyx`, as it would be with the filter that comes with tracing.

use deskbell_core::Level;

use crate::{config::Tracing, terminal::TARGET};

/// Where the rules come from when the configuration has none that fits.
///
/// rmcp logs whole payloads, at its warnings too, so it is silent until a rule names it.
const BUILT_IN: &[(&str, Option<Level>)] = &[
    ("deskbell", Some(Level::Info)),
    ("deskbell_core", Some(Level::Info)),
    ("deskbell_channels", Some(Level::Info)),
    ("rmcp", None),
];

/// What everything else is shown from.
const OTHERS: Level = Level::Warning;

/// Whether a notification of `level` is shown.
///
/// A rule `llm_notify::warn` stands for notifications of exactly that level and wins over `llm_notify`. Where rules
/// name only some levels, the others are hidden; without any rule everything but debug is shown.
pub(crate) fn shows_notice(tracing: &Tracing, level: Level) -> bool {
    let mut all = None;
    let mut exact = None;
    let mut names_others = false;
    for rule in &tracing.targets {
        if rule.name == TARGET {
            all = Some(rule.level);
        } else if let Some(named) = notice_level(&rule.name) {
            names_others = true;
            if named == level {
                exact = Some(rule.level);
            }
        }
    }
    let least = exact.or(all).unwrap_or((!names_others).then_some(Level::Info));
    least.is_some_and(|least| level >= least)
}

/// The level that a rule such as `llm_notify::warn` stands for.
pub(crate) fn notice_level(name: &str) -> Option<Level> {
    name.strip_prefix(TARGET)?.strip_prefix("::")?.parse().ok()
}

/// Whether a log line of `target` at `level` is shown. Notifications are: whoever emitted them has asked
/// [`shows_notice`].
pub(super) fn shows_line(tracing: &Tracing, target: &str, level: tracing::Level) -> bool {
    if target == TARGET {
        return true;
    }
    let configured = tracing.targets.iter().map(|rule| (rule.name.as_str(), rule.level));
    // Among names of equal length the last counts, so a configured rule goes before a built-in one.
    let rule = BUILT_IN
        .iter()
        .copied()
        .chain(configured)
        .filter(|(name, _)| fits(name, target))
        .max_by_key(|(name, _)| name.len());
    let least = rule.map_or(Some(OTHERS), |(_, least)| least);
    least.is_some_and(|least| severity(level) >= least)
}

/// Whether a rule's name is `target` or a whole-segment start of it.
fn fits(name: &str, target: &str) -> bool {
    target.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The level of a log line as one of ours.
pub(super) fn severity(level: tracing::Level) -> Level {
    match level {
        tracing::Level::ERROR => Level::Error,
        tracing::Level::WARN => Level::Warning,
        tracing::Level::INFO => Level::Info,
        _ => Level::Debug,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TracingTarget;

    #[track_caller]
    fn check(rules: &[(&str, Option<Level>)], target: &str, least: Option<tracing::Level>) {
        let targets = rules
            .iter()
            .map(|&(name, level)| TracingTarget { name: name.to_owned(), level })
            .collect();
        let tracing = Tracing { targets, ..Tracing::default() };
        for level in [
            tracing::Level::DEBUG,
            tracing::Level::INFO,
            tracing::Level::WARN,
            tracing::Level::ERROR,
        ] {
            // For tracing a more serious level is a smaller one.
            let expected = least.is_some_and(|least| level <= least);
            assert_eq!(shows_line(&tracing, target, level), expected, "{target} {level}");
        }
    }

    #[test]
    fn the_longest_name_that_fits_wins() {
        let rules = [("deskbell", Some(Level::Error)), ("deskbell::dispatch", Some(Level::Debug))];
        check(&rules, "deskbell::intake", Some(tracing::Level::ERROR));
        check(&rules, "deskbell::dispatch", Some(tracing::Level::DEBUG));
        check(&rules, "deskbell::dispatch::due", Some(tracing::Level::DEBUG));
    }

    #[test]
    fn names_fit_whole_segments() {
        check(&[("deskbell::dis", None)], "deskbell::dispatch", Some(tracing::Level::INFO));
        check(&[("hyper", None)], "hyper_util", Some(tracing::Level::WARN));
        check(&[("hyper", None)], "hyper::proto", None);
    }

    #[test]
    fn payloads_are_not_logged_until_a_rule_asks_for_it() {
        check(&[], "rmcp::service", None);
        check(&[("deskbell", Some(Level::Debug))], "rmcp::service", None);
        check(&[("rmcp", Some(Level::Debug))], "rmcp::service", Some(tracing::Level::DEBUG));
    }

    #[test]
    fn notifications_pass_because_they_were_judged_before() {
        check(&[("llm_notify", None)], "llm_notify", Some(tracing::Level::DEBUG));
    }

    #[test]
    fn only_levels_make_rules_for_notifications() {
        assert_eq!(notice_level("llm_notify::warn"), Some(Level::Warning));
        for name in ["llm_notify", "llm_notify::", "llm_notify::loud", "llm_notifyx::warn"] {
            assert_eq!(notice_level(name), None, "{name}");
        }
    }
}
