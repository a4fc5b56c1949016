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

/// A route that takes everything to the phone.
fn to_phone(grouping: Grouping) -> Route {
    Route {
        levels: LevelRange::ALL,
        contexts: Vec::new(),
        kinds: Vec::new(),
        clients: Vec::new(),
        channels: vec!["phone".parse().unwrap()],
        continues: false,
        grouping: Some(grouping),
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
    let channel = ScriptedChannel::always(Step::Take(Duration::from_millis(300)));
    let desk = Desk::limited(&[("phone", &channel)], 20);
    let start = Instant::now();
    let mut expected = Vec::new();
    for number in 0..200 {
        let text = format!("message {number}");
        desk.tell(Level::Info, &text).await;
        expected.push(text);
    }
    channel.tried(200).await;
    let tries = channel.tries();
    let told: Vec<_> = tries.iter().map(|told| told.body.clone()).collect();
    assert_eq!(told, expected);
    assert_eq!(channel.most_running(), 1);
    let minute = Duration::from_mins(1);
    for (first, later) in tries.iter().zip(tries.iter().skip(20)) {
        assert!(later.at - first.at >= minute, "more than twenty in a minute");
    }
    let longest = minute * 10;
    assert!(start.elapsed() < longest, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_burst_that_is_grouped_is_one_message_complete_and_in_order() {
    let channel = ScriptedChannel::always(Step::TAKE);
    let desk = Desk::limited(&[("phone", &channel)], 20);
    desk.route(|routing| {
        routing.routes = vec![to_phone(Grouping {
            by: vec![By::Context],
            wait: Duration::from_secs(10),
            interval: Duration::from_secs(60),
            repeat: None,
            same: Vec::new(),
        })];
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
async fn what_is_reported_again_and_again_is_told_again_after_the_repeat_interval() {
    let channel = ScriptedChannel::always(Step::TAKE);
    let desk = Desk::with(&[("phone", &channel)]);
    desk.route(|routing| {
        routing.routes = vec![to_phone(Grouping::of_repeats(4 * HOUR, Vec::new()))];
    });
    let start = Instant::now();
    // Every half an hour from 0:00 to 9:00, and then no more.
    for _ in 0..=18 {
        desk.tell(Level::Error, "the disk is full").await;
        tokio::time::sleep(HOUR / 2).await;
    }
    desk.tell(Level::Error, "the disk is empty").await;
    tokio::time::sleep(12 * HOUR).await;
    let told: Vec<_> = channel.tries().into_iter().map(|it| (it.at - start, it.body)).collect();
    let minutes: Vec<_> = told.iter().map(|(at, _)| at.as_secs() / 60).collect();
    assert_eq!(minutes, [0, 4 * 60, 8 * 60, 9 * 60 + 30], "{told:?}");
    assert_eq!(told[3].1, "the disk is empty");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_fails_holds_up_nothing_of_its_group() {
    let channel = ScriptedChannel::new([Step::FAIL], Step::TAKE);
    let desk = Desk::with(&[("phone", &channel)]);
    desk.route(|routing| {
        routing.routes = vec![to_phone(Grouping {
            by: Vec::new(),
            wait: Duration::from_millis(100),
            interval: Duration::from_secs(30),
            repeat: None,
            same: Vec::new(),
        })];
    });
    let first = [desk.tell(Level::Info, "a").await, desk.tell(Level::Info, "b").await];
    channel.tried(1).await;
    let next = desk.tell(Level::Info, "c").await;
    for event in first.into_iter().chain([next]) {
        desk.expect(event, "phone", Sent).await;
    }
    let tries = channel.tries();
    let mut told: Vec<_> = tries.iter().map(|it| (it.body.as_str(), it.attempt)).collect();
    told.sort_unstable();
    assert_eq!(told, [("a\nb", 1), ("a\nb", 2), ("c", 1)]);
    let failed_at = tries[0].at;
    let next = tries.iter().find(|it| it.body == "c").unwrap();
    assert_eq!((next.at - failed_at).as_millis() / 100, 1, "it waits for its own time only");
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
