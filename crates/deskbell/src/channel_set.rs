//! The configured channels, built and ready, by name.
//!
//! A channel that does not build is left out and named as a problem; the others work. The set is never changed: a
//! new configuration makes a new one, which is handed around in a `watch` channel.

use std::{collections::BTreeMap, sync::Arc};

use deskbell_channels::{Channel, ChannelKind, Http, Manner, StandIn};
use deskbell_core::{ChannelName, field::nearest, quiet::Holds, route::Routing, text};
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::warn;

use crate::{
    config::{ChannelOptions, Config, DeliveryOptions, Problem},
    intake::Rules,
};

/// The channels that work, and how deliveries to them are tried.
#[derive(Default)]
pub struct ChannelSet {
    ready: BTreeMap<ChannelName, Arc<ReadyChannel>>,
    /// The way to far ends that speak HTTP, shared by all channels.
    http: Http,
    /// How deliveries are tried.
    pub delivery: DeliveryOptions,
    /// What is wrong with the channels that were left out.
    pub problems: Vec<Problem>,
}

/// A channel that was built from its options.
pub struct ReadyChannel {
    /// What the channel's kind declares.
    pub kind: &'static ChannelKind,
    /// The channel itself.
    pub channel: Box<dyn Channel>,
    /// The way to far ends that speak HTTP.
    pub http: Http,
    /// How many messages a minute it takes; `None` leaves it to the far end.
    pub per_minute: Option<u32>,
    /// How it is to tell.
    pub manner: Manner,
    /// The server on this machine that stands for its far end, if one does.
    pub stand_in: Option<StandIn>,
    /// What it was built from, to tell whether a new configuration changes it.
    options: toml::Table,
}

impl ChannelSet {
    /// Builds every channel of `config`; those that do not build become [`Self::problems`].
    pub fn build(config: &Config) -> Self {
        Self::default().rebuild(config)
    }

    /// The set for a new configuration. Channels whose options are the same are kept, with their connections.
    #[must_use]
    pub fn rebuild(&self, config: &Config) -> Self {
        let (delivery, http) = (config.delivery.clone(), self.http.clone());
        let mut set = Self { delivery, http, ..Self::default() };
        for (name, options) in &config.channels {
            let kept = self.ready.get(name).filter(|ready| ready.is_built_from(options));
            match kept.map_or_else(
                || ReadyChannel::build(options, &self.http).map(Arc::new),
                |k| Ok(Arc::clone(k)),
            ) {
                Ok(ready) => {
                    set.ready.insert(name.clone(), ready);
                }
                Err(problem) => {
                    set.problems.push(Problem {
                        channel: Some(name.clone()),
                        of_environment: false,
                        text: format!("channel `{name}` is left out: {problem}"),
                    });
                }
            }
        }
        set
    }

    /// A set of channels that a test wrote.
    #[cfg(test)]
    pub(crate) fn of(
        channels: impl IntoIterator<Item = (ChannelName, ReadyChannel)>,
        delivery: DeliveryOptions,
    ) -> Self {
        let ready = channels.into_iter().map(|(name, ready)| (name, Arc::new(ready))).collect();
        Self { ready, delivery, ..Self::default() }
    }

    /// The channel called `name`.
    pub fn get(&self, name: &ChannelName) -> Option<&Arc<ReadyChannel>> {
        self.ready.get(name)
    }

    /// The channels in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&ChannelName, &Arc<ReadyChannel>)> {
        self.ready.iter()
    }
}

impl ReadyChannel {
    fn build(options: &ChannelOptions, http: &Http) -> Result<Self, String> {
        let kind = kind(&options.kind)?;
        let channel = kind.build(options.options.clone()).map_err(|error| error.to_string())?;
        let ChannelOptions { manner, stand_in, options: given, .. } = options.clone();
        let http = http.leading_to(stand_in.clone());
        let per_minute = per_minute(kind, options);
        Ok(Self { kind, channel, http, per_minute, manner, stand_in, options: given })
    }

    /// A channel that a test wrote.
    #[cfg(test)]
    pub(crate) fn scripted(
        kind: &'static ChannelKind,
        channel: Box<dyn Channel>,
        per_minute: Option<u32>,
    ) -> Self {
        let http = Http::default();
        let (manner, options) = (Manner::default(), toml::Table::new());
        Self { kind, channel, http, per_minute, manner, stand_in: None, options }
    }

    fn is_built_from(&self, options: &ChannelOptions) -> bool {
        self.kind.about.name == options.kind
            && self.manner == options.manner
            && self.stand_in == options.stand_in
            && self.per_minute == per_minute(self.kind, options)
            && self.options == options.options
    }
}

/// How many messages a minute a channel takes: what the user says, else what its far end is known to take.
fn per_minute(kind: &ChannelKind, options: &ChannelOptions) -> Option<u32> {
    options.per_minute.or(kind.about.limits.per_minute)
}

/// The kind that a configuration calls `name`.
fn kind(name: &str) -> Result<&'static ChannelKind, String> {
    if let Some(kind) = deskbell_channels::kind(name) {
        return Ok(kind);
    }
    let shown = text::cut(&text::one_line(name), 40, text::Unit::Characters);
    let known = deskbell_channels::kinds().iter().map(|kind| kind.about.name);
    Err(match nearest(name, known) {
        Some(meant) => format!("`kind` is \"{shown}\"; did you mean {meant}?"),
        None => format!("`kind` is \"{shown}\", which is no kind of channel"),
    })
}

/// The rules of acceptance under `config`: only channels that work can be chosen.
pub fn rules(config: &Config, channels: &ChannelSet) -> Rules {
    let is_projects = |name: &&ChannelName| config.project_channels.contains_key(*name);
    let (projects, ours): (Vec<_>, Vec<_>) = channels.ready.keys().partition(is_projects);
    let brought =
        |name: &ChannelName| Some((name.clone(), config.project_channels.get(name)?.clone()));
    let routing = Routing {
        routes: config.routes.clone(),
        added: Vec::new(),
        channels: ours.into_iter().cloned().collect(),
        skip_titles: config.skip_titles.clone(),
        update_interval: config.delivery.update_interval,
        holds: holds(config),
        project: None,
    };
    Rules {
        routing,
        project: None,
        project_channels: projects.into_iter().filter_map(brought).collect(),
        problems: config.problems.iter().chain(&channels.problems).cloned().collect(),
    }
}

/// What of `config` holds deliveries back.
fn holds(config: &Config) -> Holds {
    let own = |(name, options): (&ChannelName, &ChannelOptions)| {
        Some((name.clone(), options.quiet.clone()?))
    };
    let quiet_of = config.channels.iter().filter_map(own).collect();
    Holds { quiet: config.quiet.clone(), quiet_of, ..Holds::default() }
}

/// The channel set and the rules of the newest configuration, made anew whenever it changes.
pub fn follow(
    mut config: watch::Receiver<Arc<Config>>,
    tasks: &TaskTracker,
    stop: CancellationToken,
) -> (watch::Receiver<Arc<ChannelSet>>, watch::Receiver<Arc<Rules>>) {
    let newest = Arc::clone(&config.borrow_and_update());
    let set = Arc::new(ChannelSet::build(&newest));
    tell_problems(&set);
    let (rules_sender, rules_receiver) = watch::channel(Arc::new(rules(&newest, &set)));
    let (set_sender, set_receiver) = watch::channel(set);
    tasks.spawn(async move {
        while let Some(Ok(())) = stop.run_until_cancelled(config.changed()).await {
            let newest = Arc::clone(&config.borrow_and_update());
            let set = Arc::new(set_sender.borrow().rebuild(&newest));
            tell_problems(&set);
            rules_sender.send_replace(Arc::new(rules(&newest, &set)));
            set_sender.send_replace(set);
        }
    });
    (set_receiver, rules_receiver)
}

fn tell_problems(set: &ChannelSet) {
    for problem in &set.problems {
        warn!("{problem}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(channels: &[(&str, &str, &str)]) -> Config {
        let channels = channels.iter().map(|(name, kind, options)| {
            let (kind, options) = ((*kind).to_owned(), options.parse().unwrap());
            (
                name.parse().unwrap(),
                ChannelOptions {
                    kind,
                    options,
                    per_minute: None,
                    manner: Manner::default(),
                    quiet: None,
                    stand_in: None,
                },
            )
        });
        Config { channels: channels.collect(), ..Config::default() }
    }

    fn names(set: &ChannelSet) -> Vec<&str> {
        set.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn a_channel_that_does_not_build_leaves_the_others_alone() {
        let config = config(&[
            ("good", "ntfy", "topic = 't'"),
            ("misspelt", "ntfi", "topic = 't'"),
            ("unknown", "pigeon-post", ""),
            ("empty", "ntfy", ""),
        ]);
        let set = ChannelSet::build(&config);
        assert_eq!(names(&set), ["good"]);
        let [empty, misspelt, unknown] = &set.problems[..] else { panic!("{:?}", set.problems) };
        assert!(empty.text.contains("`empty`") && empty.text.contains("topic"), "{empty}");
        assert!(misspelt.text.ends_with("`kind` is \"ntfi\"; did you mean ntfy?"), "{misspelt}");
        assert!(unknown.text.ends_with("which is no kind of channel"), "{unknown}");
        assert_eq!(Problem::of(&"empty".parse().unwrap(), &set.problems), Some(empty));
        assert_eq!(Problem::of(&"good".parse().unwrap(), &set.problems), None);
        assert_eq!(rules(&config, &set).routing.channels, ["good".parse().unwrap()]);
    }

    #[test]
    fn only_channels_that_changed_are_built_anew() {
        let before = config(&[("same", "ntfy", "topic = 't'"), ("other", "ntfy", "topic = 't'")]);
        let after = config(&[("same", "ntfy", "topic = 't'"), ("other", "ntfy", "topic = 'u'")]);
        let old = ChannelSet::build(&before);
        let new = old.rebuild(&after);
        let kept = |name: &str| {
            let name = name.parse().unwrap();
            Arc::ptr_eq(old.get(&name).unwrap(), new.get(&name).unwrap())
        };
        assert!(kept("same"));
        assert!(!kept("other"));
    }

    #[tokio::test]
    async fn a_new_configuration_makes_new_channels_and_rules() {
        let (sender, receiver) = watch::channel(Arc::new(Config::default()));
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let (mut channels, rules) = follow(receiver, &tasks, stop.clone());
        assert!(names(&channels.borrow()).is_empty());
        sender.send_replace(Arc::new(config(&[("phone", "ntfy", "topic = 't'")])));
        channels.changed().await.unwrap();
        assert_eq!(names(&channels.borrow()), ["phone"]);
        assert_eq!(rules.borrow().routing.channels, ["phone".parse().unwrap()]);
        stop.cancel();
        tasks.close();
        tasks.wait().await;
    }
}
