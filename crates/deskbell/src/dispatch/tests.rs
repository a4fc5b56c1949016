//! From an accepted event to a recorded outcome, in paused time.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

use deskbell_core::{delivery::DeliveryState, run::Phase};
use tokio::time::Instant;

use super::{
    Flow, Health, IN_FLIGHT_PER_CHANNEL, STOP_GRACE,
    scripted::{Desk, ScriptedChannel, Step},
};
use crate::journal::{Journal as _, JournalError, Write};

use DeliveryState::{GivenUp, InFlight, Pending, Sent, Superseded};

const MS_50: Duration = Duration::from_millis(50);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn twenty_channels_of_50_ms_take_50_ms_together_row_108() {
    let names: Vec<String> = (0..20).map(|number| format!("channel-{number}")).collect();
    let channel = ScriptedChannel::always(Step::Take(MS_50));
    let channels: Vec<_> = names.iter().map(|name| (name.as_str(), &channel)).collect();
    let desk = Desk::with(&channels);
    let start = Instant::now();
    let event = desk.push(&[]).await;
    assert_eq!(start.elapsed(), Duration::ZERO, "accepting waits for no delivery (rows 13, 110)");
    for name in &names {
        desk.expect(event, name, Sent).await;
    }
    assert!(start.elapsed() <= Duration::from_millis(55), "{:?}", start.elapsed());
    assert_eq!(channel.most_running(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_reports_wait_for_no_channel_row_13() {
    let hanging = ScriptedChannel::always(Step::Hang);
    let desk = Desk::with(&[("phone", &hanging)]);
    let start = Instant::now();
    for _ in 0..1_000 {
        desk.push(&[]).await;
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_hangs_panics_or_fails_delays_no_other_row_108() {
    let (good, hanging) =
        (ScriptedChannel::always(Step::TAKE), ScriptedChannel::always(Step::Hang));
    let (panicking, refusing) =
        (ScriptedChannel::always(Step::Panic), ScriptedChannel::always(Step::REFUSE));
    let desk = Desk::with(&[
        ("good", &good),
        ("hanging", &hanging),
        ("panicking", &panicking),
        ("refusing", &refusing),
    ]);
    for _ in 0..50 {
        let start = Instant::now();
        let event = desk.push(&[]).await;
        desk.expect(event, "good", Sent).await;
        assert!(start.elapsed() < Duration::from_millis(10), "{:?}", start.elapsed());
    }
    assert_eq!(hanging.tries().len(), IN_FLIGHT_PER_CHANNEL);
}

#[tokio::test(start_paused = true)]
async fn no_answer_in_time_is_a_failed_attempt_that_is_tried_again_row_109() {
    let channel = ScriptedChannel::new([Step::Hang], Step::TAKE);
    let desk = Desk::with(&[("phone", &channel)]);
    let start = Instant::now();
    let event = desk.push(&[]).await;
    let delivery = desk.expect(event, "phone", Sent).await;
    assert!((desk.options.timeout..desk.options.timeout + 3 * SECOND).contains(&start.elapsed()));
    let errors: Vec<_> = delivery.attempts.iter().map(|it| it.error.as_deref()).collect();
    assert_eq!(errors, [Some("no answer within 15 s"), None]);
}

#[tokio::test(start_paused = true)]
async fn failures_that_may_pass_are_tried_until_the_attempts_are_used_up() {
    for step in [Step::FAIL, Step::Panic] {
        let channel = ScriptedChannel::always(step);
        let desk = Desk::with(&[("phone", &channel)]);
        let event = desk.push(&[]).await;
        let delivery = desk.expect(event, "phone", GivenUp).await;
        let tries = channel.tries();
        let numbers: Vec<u32> = tries.iter().map(|it| it.attempt).collect();
        assert_eq!(numbers, (1..=desk.options.attempts).collect::<Vec<_>>(), "{step:?}");
        let ids: BTreeSet<_> = tries.iter().map(|it| it.delivery.to_string()).collect();
        assert_eq!(ids, BTreeSet::from([format!("{event}.phone")]), "one stable delivery id");
        assert_eq!(delivery.attempt_count, desk.options.attempts);
        let second = tries[1].at - tries[0].at;
        assert!(second <= 3 * SECOND, "{second:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_good_is_given_up_at_once() {
    let channel = ScriptedChannel::always(Step::REFUSE);
    let desk = Desk::with(&[("phone", &channel)]);
    let event = desk.push(&[]).await;
    let delivery = desk.expect(event, "phone", GivenUp).await;
    assert_eq!(delivery.attempts[0].error.as_deref(), Some("as the script says"));
    assert_eq!(channel.tries().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_was_given_up_can_be_retried_by_hand() {
    let channel = ScriptedChannel::new([Step::REFUSE], Step::TAKE);
    let desk = Desk::with(&[("phone", &channel)]);
    let event = desk.push(&[]).await;
    let delivery = desk.expect(event, "phone", GivenUp).await;
    let retry =
        Write::Retry { delivery: delivery.id, at: deskbell_core::clock::Clock::now(&*desk.clock) };
    desk.journal.commit(vec![retry]).await.unwrap();
    desk.expect(event, "phone", Sent).await;
}

#[tokio::test(start_paused = true)]
async fn a_far_end_that_asks_for_a_pause_is_left_alone_by_all_deliveries() {
    let channel = ScriptedChannel::new([Step::busy(MINUTE)], Step::TAKE);
    let desk = Desk::with(&[("phone", &channel)]);
    let start = Instant::now();
    let first = desk.push(&[]).await;
    channel.tried(1).await;
    let second = desk.push(&[]).await;
    tokio::time::sleep(SECOND).await;
    assert_eq!(desk.health.borrow().channels[&"phone".parse().unwrap()].flow, Flow::Paused);
    desk.expect(second, "phone", Sent).await;
    desk.expect(first, "phone", Sent).await;
    let at: Vec<_> = channel.tries().iter().map(|it| it.at - start).collect();
    assert_eq!(at.len(), 3);
    assert!(at[1] >= MINUTE && at[2] < MINUTE + 5 * SECOND, "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn a_far_end_that_is_down_gets_single_trials_until_it_is_back() {
    let down = std::iter::repeat_n(Step::FAIL, 30);
    let channel = ScriptedChannel::new(down, Step::TAKE);
    let desk = Desk::with(&[("phone", &channel)]);
    let mut events = Vec::new();
    for _ in 0..20 {
        events.push(desk.push(&[]).await);
    }
    tokio::time::sleep(SECOND).await;
    // All eight that were under way when it broke, and none since.
    assert_eq!(channel.tries().len(), IN_FLIGHT_PER_CHANNEL);
    let health = desk.health.borrow().channels[&"phone".parse().unwrap()].clone();
    assert_eq!(health.flow, Flow::Broken);
    assert!(health.waiting_until.is_some() && health.last_error.is_some());
    for event in events {
        desk.expect(event, "phone", Sent).await;
    }
    let trials: Vec<_> =
        channel.tries()[IN_FLIGHT_PER_CHANNEL..30].iter().map(|it| it.at).collect();
    assert!(trials.windows(2).all(|pair| pair[1] - pair[0] >= 5 * SECOND), "{trials:?}");
    let mut health = desk.health.clone();
    let all = |health: &Health| health.channels[&"phone".parse().unwrap()].sent == 20;
    tokio::time::timeout(SECOND, health.wait_for(all)).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_is_asked_for_waits_for_no_pause() {
    let channel = ScriptedChannel::new(std::iter::repeat_n(Step::FAIL, 8), Step::TAKE);
    let desk = Desk::with(&[("phone", &channel)]);
    for _ in 0..IN_FLIGHT_PER_CHANNEL {
        desk.push(&[]).await;
    }
    channel.tried(IN_FLIGHT_PER_CHANNEL).await;
    let start = Instant::now();
    let event = desk.push(&[]).await;
    desk.trials.send("phone".parse().unwrap()).await.unwrap();
    desk.expect(event, "phone", Sent).await;
    assert!(start.elapsed() < SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_channel_gets_no_more_than_it_takes_in_a_minute() {
    // Slow enough that no outcome wakes the loop in time.
    let channel = ScriptedChannel::always(Step::Take(10 * SECOND));
    let desk = Desk::limited(&[("phone", &channel)], 30);
    let start = Instant::now();
    for _ in 0..50 {
        desk.push(&[]).await;
    }
    channel.tried(50).await;
    let mut seconds: Vec<_> = channel.tries().iter().map(|it| (it.at - start).as_secs()).collect();
    // Eight at a time; those that were over after 10 seconds count until 70, and so on.
    seconds.dedup();
    assert_eq!(seconds, [0, 10, 20, 30, 70, 80, 90]);
    let of =
        |second| channel.tries().iter().filter(|it| (it.at - start).as_secs() == second).count();
    assert_eq!(seconds.iter().map(|second| of(*second)).collect::<Vec<_>>(), [8, 8, 8, 6, 8, 8, 4]);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_attempts_of_a_channel_are_under_way() {
    let channel = ScriptedChannel::always(Step::Take(SECOND));
    let desk = Desk::with(&[("phone", &channel)]);
    let mut last = desk.push(&[]).await;
    for _ in 0..31 {
        last = desk.push(&[]).await;
    }
    let start = Instant::now();
    desk.expect(last, "phone", Sent).await;
    assert_eq!(channel.most_running(), IN_FLIGHT_PER_CHANNEL);
    assert!(start.elapsed() <= 4 * SECOND + MS_50, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_cannot_be_recorded_is_neither_lost_nor_tried_again() {
    let channel = ScriptedChannel::always(Step::Take(SECOND));
    let desk = Desk::with(&[("phone", &channel)]);
    let event = desk.push(&[]).await;
    channel.tried(1).await;
    desk.journal.fail_with(Some(JournalError::Full("no space".to_owned())));
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(desk.delivery(event, "phone").await.state, InFlight);
    desk.journal.fail_with(None);
    desk.expect(event, "phone", Sent).await;
    assert_eq!(channel.tries().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn deliveries_go_on_when_a_journal_that_failed_is_back() {
    let channel = ScriptedChannel::always(Step::TAKE);
    let desk = Desk::with(&[("phone", &channel)]);
    desk.journal.fail_with(Some(JournalError::Failed("broken".to_owned())));
    tokio::time::sleep(MINUTE).await;
    desk.journal.fail_with(None);
    let start = Instant::now();
    let event = desk.push(&[]).await;
    desk.expect(event, "phone", Sent).await;
    assert!(start.elapsed() <= 6 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn attempts_under_way_are_finished_before_the_program_ends() {
    let channel = ScriptedChannel::always(Step::Take(SECOND));
    let desk = Desk::with(&[("phone", &channel)]);
    let mut events = Vec::new();
    for _ in 0..=IN_FLIGHT_PER_CHANNEL {
        events.push(desk.push(&[]).await);
    }
    channel.tried(1).await;
    let journal = desk.stop().await;
    assert_eq!(channel.tries().len(), IN_FLIGHT_PER_CHANNEL, "nothing new is begun");
    let desk = Desk::begin(&[], None, journal);
    for event in &events[..IN_FLIGHT_PER_CHANNEL] {
        assert_eq!(desk.delivery(*event, "phone").await.state, Sent);
    }
    assert_eq!(desk.delivery(events[IN_FLIGHT_PER_CHANNEL], "phone").await.state, Pending);
}

#[tokio::test(start_paused = true)]
async fn what_was_cut_off_is_tried_again_as_maybe_repeated() {
    let channel = ScriptedChannel::new([Step::Hang], Step::TAKE);
    let desk = Desk::with(&[("phone", &channel)]);
    let event = desk.push(&[]).await;
    channel.tried(1).await;
    let start = Instant::now();
    let journal = desk.stop().await;
    assert!((STOP_GRACE..STOP_GRACE + MS_50).contains(&start.elapsed()), "{:?}", start.elapsed());
    let desk = Desk::begin(&[("phone", &channel)], None, journal);
    let delivery = desk.expect(event, "phone", Sent).await;
    assert!(delivery.maybe_repeated);
    let tries = channel.tries();
    assert_eq!(tries.len(), 2);
    assert_eq!((&tries[0].delivery, tries[1].attempt), (&tries[1].delivery, 2));
}

#[tokio::test(start_paused = true)]
async fn deliveries_to_a_channel_that_is_gone_wait_until_it_is_back() {
    let channel = ScriptedChannel::always(Step::Take(SECOND));
    let desk = Desk::with(&[("phone", &channel)]);
    let mut events = Vec::new();
    for _ in 0..=IN_FLIGHT_PER_CHANNEL {
        events.push(desk.push(&[]).await);
    }
    channel.tried(1).await;
    desk.change(&[]);
    desk.expect(events[0], "phone", Sent).await;
    tokio::time::sleep(10 * MINUTE).await;
    assert!(desk.health.borrow().channels.is_empty());
    assert_eq!(desk.delivery(events[IN_FLIGHT_PER_CHANNEL], "phone").await.state, Pending);
    desk.change(&[("phone", &channel)]);
    for event in events {
        desk.expect(event, "phone", Sent).await;
    }
    assert_eq!(channel.tries().len(), IN_FLIGHT_PER_CHANNEL + 1, "each was tried once");
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_is_configured_anew_is_tried_at_once() {
    let asks_for_an_hour = ScriptedChannel::always(Step::busy(60 * MINUTE));
    let mended = ScriptedChannel::always(Step::TAKE);
    let desk = Desk::with(&[("phone", &asks_for_an_hour)]);
    let first = desk.push(&[]).await;
    tokio::time::sleep(SECOND).await;
    let second = desk.push(&[]).await;
    desk.change(&[("phone", &mended)]);
    let start = Instant::now();
    desk.expect(second, "phone", Sent).await;
    assert!(start.elapsed() < SECOND, "{:?}", start.elapsed());
    desk.expect(first, "phone", Sent).await;
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_set_back_closes_no_lane() {
    let channel = ScriptedChannel::new([Step::busy(MINUTE)], Step::TAKE);
    let desk = Desk::with(&[("phone", &channel)]);
    desk.push(&[]).await;
    tokio::time::sleep(SECOND).await;
    desk.clock.set_back(Duration::from_hours(10));
    let start = Instant::now();
    let event = desk.push(&[]).await;
    desk.expect(event, "phone", Sent).await;
    assert!(start.elapsed() <= MINUTE, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn updates_are_throttled_the_last_value_is_kept_and_the_end_goes_at_once_row_117() {
    let channel = ScriptedChannel::always(Step::TAKE);
    let desk = Desk::with(&[("phone", &channel)]);
    desk.step(Phase::Start, "start").await;
    let mut updates = Vec::new();
    for number in 1..=20 {
        tokio::time::sleep(MS_50).await;
        updates.push(desk.step(Phase::Update, &format!("update {number}")).await);
    }
    let start = Instant::now();
    desk.expect(updates[19], "phone", Sent).await;
    assert!(start.elapsed() <= desk.options.update_interval, "{:?}", start.elapsed());
    let end = desk.step(Phase::End, "end").await;
    let asked = Instant::now();
    desk.expect(end, "phone", Sent).await;
    assert!(asked.elapsed() < MS_50, "{:?}", asked.elapsed());
    assert_eq!(desk.delivery(updates[1], "phone").await.state, Superseded);
    let told: Vec<_> = channel
        .tries()
        .iter()
        .map(|it| it.body.lines().next().unwrap_or_default().to_owned())
        .collect();
    assert!(told.len() <= 4, "{told:?}");
    assert_eq!(told.first().map(String::as_str), Some("start"));
    assert_eq!(told[told.len() - 2..], ["update 20", "end"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_is_one_message_where_the_far_end_can_edit_it() {
    let (edits, plain) = (ScriptedChannel::always(Step::TAKE), ScriptedChannel::always(Step::TAKE));
    let desk = Desk::with(&[("edits", &edits), ("plain", &plain)]);
    let start = desk.step(Phase::Start, "start").await;
    desk.expect(start, "edits", Sent).await;
    let end = desk.step(Phase::End, "end").await;
    desk.expect(end, "edits", Sent).await;
    desk.expect(end, "plain", Sent).await;
    let receipts = |channel: &ScriptedChannel| -> Vec<_> {
        channel
            .tries()
            .into_iter()
            .map(|it| it.edit.and_then(|receipt| receipt.message_id))
            .collect()
    };
    assert_eq!(receipts(&edits), [None, Some(format!("message of {start}"))]);
    assert_eq!(receipts(&plain), [None, None]);
}

#[tokio::test(start_paused = true)]
async fn what_has_arrived_is_not_sent_again() {
    let script = [Step::TAKE, Step::FAIL];
    let channel = ScriptedChannel::to_places(script, Step::TAKE, &["a", "b", "c"]);
    let desk = Desk::with(&[("team", &channel)]);
    let event = desk.push(&[]).await;
    desk.expect(event, "team", Sent).await;
    let tries: Vec<_> = channel.tries().iter().map(|it| (it.attempt, it.target)).collect();
    assert_eq!(tries, [(1, 0), (1, 1), (2, 1), (2, 2)]);
    let receipts = desk.delivery(event, "team").await.receipts;
    let ids: Vec<_> = receipts.iter().filter_map(|it| it.receipt.message_id.clone()).collect();
    let at = |place| format!("message of {event} at {place}");
    assert_eq!(ids, [format!("message of {event}"), at("b"), at("c")]);
}

#[tokio::test(start_paused = true)]
async fn a_changed_list_of_places_misses_nobody() {
    let script = [Step::TAKE, Step::FAIL];
    let channel = ScriptedChannel::to_places(script, Step::TAKE, &["a", "b"]);
    let desk = Desk::with(&[("team", &channel)]);
    let event = desk.push(&[]).await;
    channel.tried(2).await;
    channel.tell(&["b", "a", "new"]);
    desk.expect(event, "team", Sent).await;
    let tries: Vec<_> = channel.tries().iter().map(|it| (it.attempt, it.target)).collect();
    assert_eq!(tries, [(1, 0), (1, 1), (2, 0), (2, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_run_edits_its_message_at_each_place() {
    let channel = ScriptedChannel::to_places([], Step::TAKE, &["a", "b"]);
    let desk = Desk::with(&[("edits", &channel)]);
    let start = desk.step(Phase::Start, "start").await;
    desk.expect(start, "edits", Sent).await;
    channel.tell(&["b", "new", "a"]);
    let end = desk.step(Phase::End, "end").await;
    desk.expect(end, "edits", Sent).await;
    let edits: Vec<_> = channel.tries().into_iter().skip(2).map(|it| it.edit?.message_id).collect();
    let at_b = format!("message of {start} at b");
    assert_eq!(edits, [Some(at_b), None, Some(format!("message of {start}"))]);
}

#[tokio::test(start_paused = true)]
async fn waiting_does_not_ask_the_journal_again_and_again() {
    let hour = 60 * MINUTE;
    let down = ScriptedChannel::always(Step::FAIL);
    let busy = ScriptedChannel::always(Step::busy(hour));
    let hanging = ScriptedChannel::always(Step::Hang);
    let desk = Desk::limited(&[("down", &down), ("busy", &busy), ("hanging", &hanging)], 1);
    for _ in 0..20 {
        desk.push(&[]).await;
    }
    tokio::time::sleep(hour).await;
    let tries = down.tries().len() + busy.tries().len() + hanging.tries().len();
    let claims = desk.counted.claims.load(SeqCst);
    assert!(claims < 60 * 3 + 4 * tries, "{claims} claims for {tries} attempts");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_held_after_a_stop() {
    let channel = ScriptedChannel::always(Step::Hang);
    let desk = Desk::with(&[("phone", &channel)]);
    desk.push(&[]).await;
    channel.tried(1).await;
    let journal = desk.stop().await;
    assert_eq!(Arc::strong_count(&journal), 1);
}
