//! What holds for every journal. Each implementation runs this with [`holds_for`].

mod accepting;
mod claiming;
mod forgetting;
mod grouping;
mod reading;
mod replacing;
mod sample;

use std::{pin::Pin, sync::Arc};

use super::Journal;

pub(in crate::journal) use sample::*;

/// A journal that is made anew for each check.
type Fresh = Arc<dyn Journal>;

type Check = fn(Fresh) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// Every check, with the promise that it checks.
const CHECKS: &[(&str, Check)] = &[
    ("accepted events are read back in order", |it| Box::pin(accepting::in_order(it))),
    ("every field of an event is kept", |it| Box::pin(accepting::every_field(it))),
    ("a key is accepted once", |it| Box::pin(accepting::a_key_once(it))),
    ("keys of different scopes differ", |it| Box::pin(accepting::scopes_differ(it))),
    ("an event id is accepted once", |it| Box::pin(accepting::an_id_once(it))),
    ("a stale run change writes nothing", |it| Box::pin(accepting::stale_runs(it))),
    ("writes of one call see each other", |it| Box::pin(accepting::one_call(it))),
    ("the doorbell rings", |it| Box::pin(accepting::doorbell(it))),
    ("concurrent writers lose nothing", |it| Box::pin(accepting::concurrent_writers(it))),
    ("filters choose events", |it| Box::pin(reading::filters(it))),
    ("cursors bound what is read", |it| Box::pin(reading::cursors(it))),
    ("deliveries are read with the newest event first", |it| Box::pin(reading::deliveries(it))),
    ("runs are read with the latest change first", |it| Box::pin(reading::runs(it))),
    ("a claim marks in flight and counts", |it| Box::pin(claiming::marks(it))),
    ("a claim respects room, time and order", |it| Box::pin(claiming::room_time_order(it))),
    ("concurrent claims share nothing", |it| Box::pin(claiming::concurrent(it))),
    ("outcomes are recorded", |it| Box::pin(claiming::outcomes(it))),
    ("a late outcome is stale", |it| Box::pin(claiming::late_outcomes(it))),
    ("only the last attempts are kept", |it| Box::pin(claiming::last_attempts(it))),
    ("what was given up can be tried again", |it| Box::pin(claiming::retry(it))),
    ("what was in flight is recovered", |it| Box::pin(claiming::recover(it))),
    ("steps of a run go one after the other", |it| Box::pin(claiming::run_order(it))),
    ("an attempt knows what has arrived", |it| Box::pin(claiming::arrived(it))),
    ("an attempt knows the previous receipt", |it| Box::pin(claiming::previous(it))),
    ("an update takes the place of an untried one", |it| Box::pin(replacing::in_place(it))),
    ("an update waits for its interval", |it| Box::pin(replacing::interval(it))),
    ("an end replaces updates at once", |it| Box::pin(replacing::at_once(it))),
    ("replacing stays within run and channel", |it| Box::pin(replacing::within_a_line(it))),
    ("what cannot wait hurries what was held", |it| Box::pin(replacing::hurries(it))),
    ("what was put off gets another time", |it| Box::pin(claiming::reschedule(it))),
    ("a group is told as one message", |it| Box::pin(grouping::one_message(it))),
    ("a message that was tried takes no more", |it| Box::pin(grouping::closed(it))),
    ("a message is given up and retried as a whole", |it| {
        Box::pin(grouping::given_up_together(it))
    }),
    ("a message takes only so many events", |it| Box::pin(grouping::full(it))),
    ("what cannot wait takes its group with it", |it| Box::pin(grouping::hurried(it))),
    ("a repeat is not told", |it| Box::pin(grouping::repeats(it))),
    ("repeats of what is given up are told after all", |it| {
        Box::pin(grouping::repeats_of_the_lost(it))
    }),
    ("repeats that are told after all stay held back", |it| Box::pin(grouping::held_repeats(it))),
    ("old events are forgotten", |it| Box::pin(forgetting::old_events(it))),
    ("unfinished work is not forgotten", |it| Box::pin(forgetting::unfinished(it))),
    ("cursors are never given twice", |it| Box::pin(forgetting::cursors(it))),
];

/// Checks every promise, each on a journal made by `fresh`.
pub(in crate::journal) async fn holds_for(fresh: impl Fn() -> Box<dyn Journal>) {
    for (promise, check) in CHECKS {
        println!("{promise}");
        check(fresh().into()).await;
    }
}
