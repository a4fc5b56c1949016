//! Routes: whether their channels are there, and whether all that they say has an effect.

use deskbell_core::{level::LevelRange, route::Route};

use super::{
    super::{
        file::{EventKind, RouteTable},
        finding::{Finding, did_you_mean},
        tree::{self, Step},
    },
    Parts,
};

impl Parts<'_> {
    pub(super) fn routes(&mut self, routes: Vec<RouteTable>, declared: &[String]) -> Vec<Route> {
        for (index, route) in routes.iter().enumerate() {
            for (option, why) in idle_options(route) {
                self.warn_of_route(index, Some(option), why);
            }
            for (position, channel) in route.channels.iter().enumerate() {
                let name = channel.0.as_str();
                if !declared.iter().any(|known| known == name) {
                    let path = [
                        Step::Key("routes".to_owned()),
                        Step::Index(index),
                        Step::Key("channels".to_owned()),
                        Step::Index(position),
                    ];
                    let (place, key) = (self.place(&path), tree::shown(&path));
                    let mut finding = Finding::problem(place, key, "there is no such channel");
                    finding.hint = did_you_mean(name, declared.iter().map(String::as_str));
                    self.findings.push(finding);
                }
            }
        }
        let all = routes.iter().position(RouteTable::takes_everything);
        if let Some(all) = all.filter(|all| all + 1 < routes.len()) {
            let why = format!("it is never looked at: route {} takes every event", all + 1);
            self.warn_of_route(all + 1, None, &why);
        }
        routes.into_iter().map(Route::from).collect()
    }

    fn warn_of_route(&mut self, index: usize, option: Option<&str>, why: &str) {
        let route = [Step::Key("routes".to_owned()), Step::Index(index)];
        let option = option.map(|option| Step::Key(option.to_owned()));
        let path: Vec<_> = route.into_iter().chain(option).collect();
        let finding = Finding::warning(self.place(&path), tree::shown(&path), why);
        self.findings.push(finding);
    }
}

/// The options of a route that change nothing, and why.
fn idle_options(route: &RouteTable) -> Vec<(&'static str, &'static str)> {
    let grouping = [
        ("group_by", !route.group_by.0.is_empty()),
        ("group_wait", route.group_wait.is_some()),
        ("group_interval", route.group_interval.is_some()),
        ("repeat_interval", route.repeat_interval.is_some()),
        ("repeat_by", !route.repeat_by.0.is_empty()),
    ];
    let given = grouping.into_iter().filter_map(|(option, is_given)| is_given.then_some(option));
    let only_runs =
        !route.kind.0.is_empty() && route.kind.0.iter().all(|kind| matches!(kind, EventKind::Run));
    if route.channels.is_empty() {
        return given
            .map(|option| (option, "it has no effect: the route has no channels"))
            .collect();
    }
    if only_runs {
        let why = "it has no effect: steps of runs are never told together";
        return given.map(|option| (option, why)).collect();
    }
    let mut idle = Vec::new();
    match route.repeat_interval {
        None if !route.repeat_by.0.is_empty() => {
            idle.push(("repeat_by", "it has no effect without `repeat_interval`"));
        }
        Some(repeat) if repeat.0.0.is_zero() => {
            idle.push(("repeat_interval", "it has no effect: everything is told"));
        }
        _ => {}
    }
    idle
}

impl RouteTable {
    /// Whether no event gets to the routes after it.
    fn takes_everything(&self) -> bool {
        let takes_all_levels = self.level.is_none_or(|level| level.0 == LevelRange::ALL);
        takes_all_levels
            && !self.continues
            && self.context.0.is_empty()
            && self.kind.0.is_empty()
            && self.client.0.is_empty()
    }
}

impl From<RouteTable> for Route {
    fn from(table: RouteTable) -> Self {
        Self {
            grouping: table.grouping(),
            levels: table.level.map_or(LevelRange::ALL, |level| level.0),
            contexts: table.context.0.into_iter().map(|context| context.0).collect(),
            kinds: table.kind.0.into_iter().map(|kind| kind.as_str().to_owned()).collect(),
            clients: table.client.0,
            channels: table.channels.into_iter().map(|channel| channel.0).collect(),
            continues: table.continues,
        }
    }
}
