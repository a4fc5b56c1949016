//! What is said of routes that say what has no effect, or too much.

use super::{Trial, check_said};

/// A configuration with one channel and these routes.
fn with(routes: &str) -> String {
    format!("[channels.far]\nkind = 'console'\n{routes}")
}

#[test]
fn options_of_a_route_that_change_nothing_are_told() {
    let routes = "[[routes]]\nkind = 'run'\nchannels = ['far']\ngroup_by = 'text'\n\
        [[routes]]\ncontext = 'safety'\nchannels = ['far']\nrepeat_by = 'title'\n\
        [[routes]]\nlevel = 'debug'\nchannels = []\ngroup_wait = '1m'\n\
        [[routes]]\nchannels = ['far']\nrepeat_interval = '0s'\n\
        [[routes]]\nlevel = 'error..'\nchannels = ['far']\n";
    check_said(
        &with(routes),
        &[
            "user.toml:6:1: `routes[0].group_by`: it has no effect: steps of runs are never told together",
            "user.toml:10:1: `routes[1].repeat_by`: it has no effect without `repeat_interval`",
            "user.toml:14:1: `routes[2].group_wait`: it has no effect: the route has no channels",
            "user.toml:17:1: `routes[3].repeat_interval`: it has no effect: everything is told",
            "user.toml:18:1: `routes[4]`: it is never looked at: route 4 takes every event",
        ],
    );
    assert!(deskbell::config::check(&Trial::user(&with(routes)).sources).is_right());
}

#[test]
fn routes_whose_options_have_an_effect_are_not_spoken_of() {
    let routes = "[[routes]]\nchannels = ['far']\ncontinue = true\ngroup_interval = '1d'\n\
        [[routes]]\nkind = ['run', 'push']\nchannels = ['far']\ngroup_wait = '24h'\n\
        [[routes]]\nchannels = ['far']\nrepeat_by = 'title'\nrepeat_interval = '4h'\n";
    check_said(&with(routes), &[]);
}

#[test]
fn a_group_that_would_wait_for_longer_than_a_day_is_refused() {
    let routes = "[[routes]]\nkind = 'push'\nchannels = ['far']\ngroup_wait = '30d'\n\
        [[routes]]\nchannels = ['far']\ngroup_interval = '25h'\n";
    let expected = "expected a length of time such as 10s or 5m, at most 1d";
    check_said(
        &with(routes),
        &[
            &format!("user.toml:6:1: `routes[0].group_wait`: {expected}"),
            &format!("user.toml:9:1: `routes[1].group_interval`: {expected}"),
        ],
    );
}
