//! From an event to its channels.

use std::fmt;

use crate::{
    context::Context,
    delivery::ChannelName,
    event::{Event, Kind},
    level::{Level, LevelRange},
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
    /// There are no routes, and the event was meant for the channels or is serious.
    NoRoutes,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named => f.write_str("named by the caller"),
            Self::Route(number) => write!(f, "route {number}"),
            Self::NoRoutes => f.write_str("no routes are configured"),
        }
    }
}

/// Chooses the channels of `event`, each once, in the order in which they are found.
///
/// A channel that the reporter named goes before every route. With channels but no routes, pushes and runs go to
/// every channel, and so do notices of level error and above. `channels` are the configured ones; others are left
/// out.
pub fn choose(event: &Event, routes: &[Route], channels: &[ChannelName]) -> Vec<Choice> {
    let mut choices: Vec<Choice> = Vec::new();
    let mut add = |names: &[ChannelName], reason| {
        for name in names {
            if channels.contains(name) && !choices.iter().any(|choice| choice.channel == *name) {
                choices.push(Choice { channel: name.clone(), reason });
            }
        }
    };
    if !event.to.is_empty() {
        add(&event.to, Reason::Named);
    } else if routes.is_empty() {
        if !matches!(event.kind, Kind::Notice) || event.level >= Level::Error {
            add(channels, Reason::NoRoutes);
        }
    } else {
        for (index, verdict) in judge_all(event, routes).into_iter().enumerate() {
            if let (Verdict::Matches, Some(route)) = (verdict, routes.get(index)) {
                add(&route.channels, Reason::Route(index + 1));
            }
        }
    }
    choices
}

/// What each route finds of `event`, in order; after the first that takes it without `continue` none is reached.
pub fn judge_all(event: &Event, routes: &[Route]) -> Vec<Verdict> {
    let mut taken = false;
    routes
        .iter()
        .map(|route| {
            if taken {
                return Verdict::NotReached;
            }
            let verdict = route.judge(event);
            taken = verdict == Verdict::Matches && !route.continues;
            verdict
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{
        event::{Content, EventIds},
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
        }
    }

    #[track_caller]
    fn check(event: &Event, routes: &[Route], expected: &[&str]) {
        let channels = names(&["phone", "team", "log"]);
        let chosen: Vec<_> =
            choose(event, routes, &channels).into_iter().map(|choice| choice.channel).collect();
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
    fn routes_name_channels_that_are_gone() {
        check(
            &event(Level::Info, "llm", Kind::Push),
            &[route("..", &[], &["gone", "log"], false)],
            &["log"],
        );
    }
}
