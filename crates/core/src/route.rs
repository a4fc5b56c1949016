//! From an event to its channels.

use std::{fmt, time::Duration};

use crate::{
    context::Context,
    delivery::{ChannelName, Planned, Replaces},
    event::{Event, Kind},
    group::Grouping,
    level::{Level, LevelRange},
    quiet::{Hold, Holds},
};

/// A rule from events to channels. Whatever it leaves out matches everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The levels it takes.
    pub levels: LevelRange,
    /// The categories it takes; empty means all.
    pub contexts: Vec<Context>,
    /// The sorts of event it takes (`notice`, `push`, `run`); empty means all.
    pub kinds: Vec<String>,
    /// Clients it takes; empty means all.
    pub clients: Vec<String>,
    /// Where its events go; empty sends them nowhere.
    pub channels: Vec<ChannelName>,
    /// Whether the routes after it are looked at too.
    pub continues: bool,
    /// How its events are told together.
    pub grouping: Option<Grouping>,
}

/// What a route found of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The route takes the event.
    Matches,
    /// The level lies outside the route's range.
    Level,
    /// The category is none of the route's.
    Context,
    /// The sort of event is none of the route's.
    Kind,
    /// The client is none of the route's.
    Client,
    /// An earlier route took the event.
    NotReached,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Matches => "matches",
            Self::Level => "its level is outside the route's range",
            Self::Context => "its context is not in the route's list",
            Self::Kind => "its kind is not in the route's list",
            Self::Client => "its client is not in the route's list",
            Self::NotReached => "an earlier route took it",
        })
    }
}

impl Route {
    /// What the route finds of `event`.
    pub fn judge(&self, event: &Event) -> Verdict {
        let in_list =
            |list: &[String], item: &str| list.is_empty() || list.iter().any(|entry| entry == item);
        if !self.levels.contains(event.level) {
            Verdict::Level
        } else if !self.contexts.is_empty() && !self.contexts.contains(&event.context) {
            Verdict::Context
        } else if !in_list(&self.kinds, event.kind.as_str()) {
            Verdict::Kind
        } else if !in_list(&self.clients, event.source.client.as_deref().unwrap_or_default()) {
            Verdict::Client
        } else {
            Verdict::Matches
        }
    }
}

/// Where an event goes, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The channel.
    pub channel: ChannelName,
    /// Why it was chosen.
    pub reason: Reason,
}

/// Why an event goes to a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The reporter named the channel.
    Named,
    /// The route with this number, counted from 1, took the event.
    Route(usize),
    /// The same, of the routes that a project adds.
    Added(usize),
    /// There are no routes, and the event was meant for the channels or is serious.
    NoRoutes,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named => f.write_str("named by the caller"),
            Self::Route(number) => write!(f, "route {number}"),
            Self::Added(number) => write!(f, "route {number} of the project"),
            Self::NoRoutes => f.write_str("no routes are configured"),
        }
    }
}

/// Which rule decides where an event goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Its title is never pushed.
    Skipped,
    /// The reporter named the channels.
    Named,
    /// The routes decide.
    Routes,
    /// No channel works.
    NoChannels,
    /// There are no routes, and it was meant for the channels or is serious.
    EveryChannel,
    /// There are no routes, and it is a notice that is not serious.
    NotSerious,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Skipped => "its title is one of those that are never pushed",
            Self::Named => "the reporter named the channels, which goes before every route",
            Self::Routes => "the routes, the first that takes it",
            Self::NoChannels => "no channel works: it is in the journal and on the live stream",
            Self::EveryChannel => {
                "there are no routes: pushes, runs and notices of level error and above go to every channel"
            }
            Self::NotSerious => "there are no routes: a notice below level error goes to no channel",
        })
    }
}

/// What decides where events go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routing {
    /// The routes, in order.
    pub routes: Vec<Route>,
    /// The routes of a project that may ask that more is told and never that less is: they add to what was chosen, and
    /// overrule no reporter that named the channels.
    pub added: Vec<Route>,
    /// The channels that work. Others are never chosen.
    pub channels: Vec<ChannelName>,
    /// Titles that are never pushed (mcp-push's `SKIP_PUSH_TITLE`).
    pub skip_titles: Vec<String>,
    /// The least time between two updates of a run on a channel.
    pub update_interval: Duration,
    /// What holds deliveries back for a while.
    pub holds: Holds,
    /// The project that brought routes; what they take is grouped with the events of no other.
    pub project: Option<String>,
}

impl Routing {
    /// Which rule decides where `event` goes.
    pub fn way(&self, event: &Event) -> Way {
        if self.skips(event) {
            Way::Skipped
        } else if !event.to.is_empty() {
            Way::Named
        } else if !self.routes.is_empty() {
            Way::Routes
        } else if self.channels.is_empty() {
            Way::NoChannels
        } else if !matches!(event.kind, Kind::Notice) || event.level >= Level::Error {
            Way::EveryChannel
        } else {
            Way::NotSerious
        }
    }

    fn skips(&self, event: &Event) -> bool {
        let title = event.content.title.as_deref().map(str::trim);
        title.is_some_and(|title| self.skip_titles.iter().any(|skip| skip.trim() == title))
    }

    /// Chooses the channels of `event`, each once, in the order in which they are found.
    pub fn choose(&self, event: &Event) -> Vec<Choice> {
        let mut choices: Vec<Choice> = Vec::new();
        let mut add = |names: &[ChannelName], reason| {
            for name in names {
                let is_new = !choices.iter().any(|choice| choice.channel == *name);
                if is_new && self.channels.contains(name) {
                    choices.push(Choice { channel: name.clone(), reason });
                }
            }
        };
        match self.way(event) {
            Way::Skipped | Way::NoChannels => return choices,
            Way::Named => {
                add(&event.to, Reason::Named);
                return choices;
            }
            Way::NotSerious => {}
            Way::EveryChannel => add(&self.channels, Reason::NoRoutes),
            Way::Routes => {
                for (number, route) in taking(&self.routes, event) {
                    add(&route.channels, Reason::Route(number));
                }
            }
        }
        for (number, route) in taking(&self.added, event) {
            add(&route.channels, Reason::Added(number));
        }
        choices
    }

    /// How the route that `reason` names tells its events together.
    fn grouping(&self, reason: Reason) -> Option<&Grouping> {
        let (routes, number) = match reason {
            Reason::Route(number) => (&self.routes, number),
            Reason::Added(number) => (&self.added, number),
            Reason::Named | Reason::NoRoutes => return None,
        };
        routes.get(number.checked_sub(1)?)?.grouping.as_ref()
    }

    /// Which events those of a route may be grouped with: two projects may each have a first route.
    fn scope(&self, reason: Reason) -> String {
        let is_of_project = matches!(reason, Reason::Added(_)) || self.added.is_empty();
        let project = self.project.as_deref().filter(|_| is_of_project);
        format!("{reason} {project:?}")
    }

    /// The deliveries of `event`: one for each chosen channel.
    pub fn plan(&self, event: &Event) -> Vec<Planned> {
        let replaces = Replaces::of(&event.kind, self.update_interval);
        let planned = |Choice { channel, reason }| {
            let grouping = self.grouping(reason);
            let grouped = grouping.and_then(|it| it.of(&self.scope(reason), event));
            let wait = grouping.filter(|_| grouped.is_some()).map(|it| it.wait).unwrap_or_default();
            let due_at = event.at.checked_add(wait).unwrap_or(event.at);
            let held = self.holds.hold(&channel, event.level, due_at);
            Planned {
                due_at: held.map_or(due_at, |held| held.until),
                grouped,
                reason: match held {
                    Some(held) => format!("{reason}{AND}{}", held.by),
                    None => reason.to_string(),
                },
                channel,
                replaces,
            }
        };
        self.choose(event).into_iter().map(planned).collect()
    }
}

/// What stands between why an event goes to a channel and why it does so later.
const AND: &str = "; ";

/// The parts of [`Planned::reason`]: why the event goes there, and what held it back.
pub fn parts(reason: &str) -> (&str, Option<Hold>) {
    let parts = reason.rsplit_once(AND).and_then(|(reason, held)| {
        let hold = Hold::ALL.into_iter().find(|hold| hold.as_str() == held)?;
        Some((reason, hold))
    });
    parts.map_or((reason, None), |(reason, hold)| (reason, Some(hold)))
}

/// What each of `routes` finds of `event`, in order; after the first that takes it without `continue` none is reached.
pub fn verdicts(routes: &[Route], event: &Event) -> Vec<Verdict> {
    let mut taken = false;
    let verdict = |route: &Route| {
        if taken {
            return Verdict::NotReached;
        }
        let verdict = route.judge(event);
        taken = verdict == Verdict::Matches && !route.continues;
        verdict
    };
    routes.iter().map(verdict).collect()
}

/// Those of `routes` that take `event`, each with its number, counted from 1.
fn taking<'a>(routes: &'a [Route], event: &Event) -> impl Iterator<Item = (usize, &'a Route)> {
    let judged = (1..).zip(routes).zip(verdicts(routes, event));
    judged.filter(|(_, verdict)| *verdict == Verdict::Matches).map(|(numbered, _)| numbered)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{
        event::{Content, EventIds},
        run::{Phase, RunStep},
        source::Source,
    };

    fn event(level: Level, context: &str, kind: Kind) -> Event {
        Event {
            id: EventIds::default().next(Timestamp::UNIX_EPOCH, 0),
            at: Timestamp::UNIX_EPOCH,
            level,
            context: context.parse().unwrap(),
            source: Source::default(),
            content: Content::default(),
            kind,
            to: Vec::new(),
        }
    }

    fn names(names: &[&str]) -> Vec<ChannelName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn route(level: &str, contexts: &[&str], channels: &[&str], continues: bool) -> Route {
        Route {
            levels: level.parse().unwrap(),
            contexts: contexts.iter().map(|context| context.parse().unwrap()).collect(),
            kinds: Vec::new(),
            clients: Vec::new(),
            channels: names(channels),
            continues,
            grouping: None,
        }
    }

    #[track_caller]
    fn check(event: &Event, routes: &[Route], expected: &[&str]) {
        let routing = Routing {
            routes: routes.to_vec(),
            channels: names(&["phone", "team", "log"]),
            ..Routing::default()
        };
        let chosen: Vec<_> =
            routing.choose(event).into_iter().map(|choice| choice.channel).collect();
        assert_eq!(chosen, names(expected));
    }

    #[test]
    fn the_first_route_that_matches_wins_row_120() {
        let routes = [route("error..", &[], &["phone"], false), route("..", &[], &["log"], false)];
        check(&event(Level::Error, "llm", Kind::Notice), &routes, &["phone"]);
        check(&event(Level::Info, "llm", Kind::Notice), &routes, &["log"]);
    }

    #[test]
    fn a_route_that_continues_adds_to_the_next() {
        let routes =
            [route("error..", &[], &["phone"], true), route("..", &[], &["log", "phone"], false)];
        check(&event(Level::Critical, "llm", Kind::Notice), &routes, &["phone", "log"]);
    }

    #[test]
    fn contexts_narrow_a_route() {
        let routes = [route("..", &["safety", "workflow"], &["team"], false)];
        check(&event(Level::Info, "safety", Kind::Notice), &routes, &["team"]);
        check(&event(Level::Info, "llm", Kind::Notice), &routes, &[]);
    }

    #[test]
    fn without_routes_pushes_and_errors_go_everywhere() {
        check(&event(Level::Info, "llm", Kind::Push), &[], &["phone", "team", "log"]);
        check(&event(Level::Error, "llm", Kind::Notice), &[], &["phone", "team", "log"]);
        check(&event(Level::Warning, "llm", Kind::Notice), &[], &[]);
    }

    #[test]
    fn a_named_channel_goes_before_every_route() {
        let named = Event { to: names(&["team", "gone"]), ..event(Level::Info, "llm", Kind::Push) };
        check(&named, &[route("..", &[], &["phone"], false)], &["team"]);
    }

    #[test]
    fn added_routes_take_nothing_away_and_overrule_nobody() {
        let event = event(Level::Emergency, "llm", Kind::Notice);
        let chosen = |event: &Event, added: &[Route]| {
            let routing = Routing {
                routes: vec![route("..", &[], &["phone"], false)],
                added: added.to_vec(),
                channels: names(&["phone", "team"]),
                ..Routing::default()
            };
            let choices = routing.choose(event).into_iter();
            choices.map(|choice| (choice.channel, choice.reason)).collect::<Vec<_>>()
        };
        let choice = |name: &str, reason| (name.parse::<ChannelName>().unwrap(), reason);
        let (phone, team) = (choice("phone", Reason::Route(1)), choice("team", Reason::Added(1)));
        let without = vec![phone.clone()];
        assert_eq!(chosen(&event, &[]), without);
        assert_eq!(chosen(&event, &[route("..", &[], &[], false)]), without);
        let adding = [route("..", &[], &["team", "phone"], false)];
        assert_eq!(chosen(&event, &adding), [phone, team]);
        let named = Event { to: names(&["phone"]), ..event };
        assert_eq!(chosen(&named, &adding), [choice("phone", Reason::Named)]);
    }

    #[test]
    fn routes_name_channels_that_are_gone() {
        check(
            &event(Level::Info, "llm", Kind::Push),
            &[route("..", &[], &["gone", "log"], false)],
            &["log"],
        );
    }

    #[test]
    fn the_way_says_what_was_chosen() {
        let titled = |title: &str, to: &[&str]| Event {
            content: Content { title: Some(title.to_owned()), ..Content::default() },
            to: names(to),
            ..event(Level::Error, "llm", Kind::Push)
        };
        let notice = event(Level::Warning, "llm", Kind::Notice);
        let error = event(Level::Error, "llm", Kind::Notice);
        let none = Routing { skip_titles: vec!["quiet ".to_owned()], ..Routing::default() };
        let channels = Routing { channels: names(&["phone"]), ..none.clone() };
        let routes =
            Routing { routes: vec![route("..", &[], &["phone"], false)], ..channels.clone() };
        for (routing, event, way, chosen) in [
            (&none, &error, Way::NoChannels, 0),
            (&channels, &error, Way::EveryChannel, 1),
            (&channels, &notice, Way::NotSerious, 0),
            (&routes, &notice, Way::Routes, 1),
            (&routes, &titled("loud", &["phone"]), Way::Named, 1),
            (&routes, &titled(" quiet", &["phone"]), Way::Skipped, 0),
            (&channels, &titled("quiet", &[]), Way::Skipped, 0),
        ] {
            assert_eq!((routing.way(event), routing.choose(event).len()), (way, chosen));
        }
    }

    #[test]
    fn a_plan_says_what_holds_a_delivery_back() {
        let mut routing = Routing { channels: names(&["phone", "team"]), ..Routing::default() };
        let until = Timestamp::from_second(60).unwrap();
        routing.holds.snoozed.channels.insert("phone".parse().unwrap(), until);
        let plan = routing.plan(&event(Level::Info, "llm", Kind::Push));
        let [phone, team] = &plan[..] else { panic!("{plan:?}") };
        assert_eq!((phone.due_at, team.due_at), (until, Timestamp::UNIX_EPOCH));
        assert_eq!(phone.reason, "no routes are configured; held while it is snoozed");
        assert_eq!(parts(&phone.reason), ("no routes are configured", Some(Hold::Snooze)));
        assert_eq!(parts(&team.reason), ("no routes are configured", None));
    }

    #[test]
    fn a_plan_says_why_and_what_it_replaces() {
        let routing = Routing {
            routes: vec![
                route("error..", &[], &["log"], false),
                route("..", &[], &["phone"], false),
            ],
            channels: names(&["phone", "log"]),
            update_interval: Duration::from_secs(5),
            ..Routing::default()
        };
        let step = RunStep {
            run: "r".parse().unwrap(),
            phase: Phase::Update,
            step: None,
            progress: None,
            reported_at: Timestamp::UNIX_EPOCH,
        };
        let planned = Planned {
            channel: "phone".parse().unwrap(),
            due_at: Timestamp::UNIX_EPOCH,
            reason: "route 2".to_owned(),
            replaces: Replaces::Updates { interval: Duration::from_secs(5) },
            grouped: None,
        };
        assert_eq!(routing.plan(&event(Level::Info, "llm", Kind::Run(step))), [planned]);
    }
}
