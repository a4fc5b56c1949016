//! What is held back and told together, in paused time.

use std::time::Duration;

use deskbell_core::{
    Level,
    clock::Clock as _,
    delivery::DeliveryState::{Pending, Sent},
    group::{By, Grouping},
    level::LevelRange,
    quiet::Quiet,
    route::Route,
    run::Phase,
};
use jiff::{ToSpan as _, tz::TimeZone};
use tokio::time::Instant;

use super::scripted::{Desk, ScriptedChannel, Step};

const HOUR: Duration = Duration::from_hours(1);

/// Quiet hours from an hour ago until an hour from now.
fn quiet_now(desk: &Desk) -> Quiet {
    let now = desk.clock.now().to_zoned(TimeZone::UTC);
    let time = |hours: i64| now.checked_add(hours.hours()).unwrap().time();
    Quiet {
        from: time(-1),
        to: time(1),
        days: Vec::new(),
        breaks_through: Level::Error,
        zone: TimeZone::UTC,
    }
}

#[tokio::test(start_paused = true)]
async fn quiet_hours_hold_back_what_is_not_serious() {
    let channel = ScriptedChannel::always(Step::TAKE);
    let desk = Desk::with(&[("phone", &channel)]);
    let quiet = quiet_now(&desk);
    desk.route(|routing| routing.holds.quiet = Some(quiet));
    let start = Instant::now();
    let info = desk.tell(Level::Info, "not now").await;
    let error = desk.tell(Level::Error, "now").await;
    desk.expect(error, "phone", Sent).await;
    assert_eq!(start.elapsed().as_secs(), 0);
    assert_eq!(desk.delivery(info, "phone").await.state, Pending);
    let held = desk.expect(info, "phone", Sent).await;
    assert_eq!(start.elapsed().as_secs(), HOUR.as_secs());
    assert_eq!(held.reason, "no routes are configured; held for the quiet hours");
}

#[tokio::test(start_paused = true)]
async fn a_burst_to_a_channel_of_twenty_a_minute_arrives_complete_and_in_order() {
    let channel = ScriptedChannel::always(Step::TAKE);
    let desk = Desk::limited(&[("phone", &channel)], 20);
    desk.route(|routing| {
        routing.routes = vec![Route {
            levels: LevelRange::ALL,
            contexts: Vec::new(),
            kinds: Vec::new(),
            clients: Vec::new(),
            channels: vec!["phone".parse().unwrap()],
            continues: false,
            grouping: Some(Grouping {
                by: vec![By::Context],
                wait: Duration::from_secs(10),
                interval: Duration::from_secs(60),
                repeat: None,
                same: Vec::new(),
            }),
        }];
    });
    let start = Instant::now();
    let mut events = Vec::new();
    for number in 0..200 {
        events.push(desk.tell(Level::Info, &format!("message {number}")).await);
    }
    for event in events {
        desk.expect(event, "phone", Sent).await;
    }
    assert_eq!(start.elapsed().as_secs(), 10);
    let tries = channel.tries();
    let [told] = &tries[..] else { panic!("{} messages", tries.len()) };
    let expected: Vec<_> = (0..200).map(|number| format!("message {number}")).collect();
    assert_eq!(told.body, expected.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_fails_in_quiet_hours_is_told_at_once_with_its_start() {
    let channel = ScriptedChannel::always(Step::TAKE);
    let desk = Desk::with(&[("phone", &channel)]);
    let quiet = quiet_now(&desk);
    desk.route(|routing| routing.holds.quiet = Some(quiet));
    let start = Instant::now();
    let begun = desk.step(Phase::Start, "begun").await;
    let failed = desk.step(Phase::Error, "failed").await;
    desk.expect(failed, "phone", Sent).await;
    assert_eq!(desk.delivery(begun, "phone").await.state, Sent);
    assert_eq!(start.elapsed().as_secs(), 0);
}
