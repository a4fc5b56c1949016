//! What every channel kind promises, checked for each of them.
//!
//! A new kind needs no test of its own here: it is in the catalogue, so every check that fits its transport runs for
//! it. `INSTA_UPDATE=always` writes down the requests of a new kind; read them against the far end's documentation.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![expect(clippy::indexing_slicing, reason = "a test that cannot go on should say where")]

#[path = "conformance/declaration.rs"]
mod declaration;
#[path = "conformance/failures.rs"]
mod failures;
#[path = "conformance/files.rs"]
mod files;
#[path = "conformance/hiding.rs"]
mod hiding;
#[path = "conformance/requests.rs"]
mod requests;
mod sample;
#[path = "conformance/stand_in.rs"]
mod stand_in;

use deskbell_channels::{
    ChannelKind, Transport,
    files::Files,
    kinds,
    verdict::{Success, Wait},
};
use libtest_mimic::{Arguments, Failed, Trial};

type Check = fn(&'static ChannelKind);

/// Which kinds a check is for.
#[derive(Clone, Copy)]
enum For {
    /// All of them.
    All,
    /// Those that are reached over a network.
    Network,
    /// Those that are reached by HTTP.
    Http,
    /// Those whose far end says in the body of its answer whether it took the message.
    Verdict,
    /// Those whose far end says in a way of its own how long to wait.
    Waits,
    /// Those that take only so much.
    Limited,
    /// Those that tell a run as one message, by HTTP.
    Edits,
    /// Those that take files, by HTTP.
    Files,
    /// Those that addresses stand for.
    Urls,
}

const CHECKS: &[(&str, For, Check)] = &[
    ("example_builds", For::All, declaration::example_builds),
    ("everything_is_documented", For::All, declaration::everything_is_documented),
    ("the_file_has_its_name", For::All, declaration::the_file_has_its_name),
    ("unknown_options_are_refused", For::All, declaration::unknown_options_are_refused),
    ("addresses_build", For::Urls, declaration::addresses_build),
    (
        "broken_addresses_are_not_repeated",
        For::Urls,
        declaration::broken_addresses_are_not_repeated,
    ),
    ("wrong_values_are_not_repeated", For::All, declaration::wrong_values_are_not_repeated),
    ("sends_the_recorded_requests", For::All, requests::sends_the_recorded_requests),
    ("previews_tell_the_truth", For::Http, requests::previews_tell_the_truth),
    ("previews_keep_secrets", For::All, requests::previews_keep_secrets),
    ("previews_hide_any_secret", For::All, hiding::previews_hide_any_secret),
    ("previews_of_addresses_hide_secrets", For::Urls, hiding::previews_of_addresses_hide_secrets),
    ("odd_text_arrives_literally", For::All, requests::odd_text_arrives_literally),
    (
        "markdown_arrives_as_the_far_end_reads_it",
        For::All,
        requests::markdown_arrives_as_the_far_end_reads_it,
    ),
    ("line_breaks_arrive", For::All, requests::line_breaks_arrive),
    ("long_text_stays_within_limits", For::Limited, requests::long_text_stays_within_limits),
    ("long_text_goes_out_whole", For::All, requests::long_text_goes_out_whole),
    ("a_link_is_told_however_long_the_text_is", For::All, requests::a_link_is_told),
    ("attachments_are_told", For::All, files::attachments_are_told),
    ("a_file_that_is_refused_is_told", For::Files, files::a_file_that_is_refused_is_told),
    (
        "a_file_that_cannot_go_now_is_temporary",
        For::Files,
        files::a_file_that_cannot_go_now_is_temporary,
    ),
    (
        "a_step_takes_the_place_of_the_last",
        For::Edits,
        requests::a_step_takes_the_place_of_the_last,
    ),
    (
        "an_edit_that_is_refused_is_sent_anew",
        For::Edits,
        requests::an_edit_that_is_refused_is_sent_anew,
    ),
    ("success_is_success", For::Http, failures::success_is_success),
    ("server_errors_are_temporary", For::Http, failures::server_errors_are_temporary),
    ("rejections_are_permanent", For::Http, failures::rejections_are_permanent),
    ("redirects_are_not_followed", For::Http, failures::redirects_are_not_followed),
    ("retry_after_is_honoured", For::Http, failures::retry_after_is_honoured),
    ("its_own_wait_is_honoured", For::Waits, failures::its_own_wait_is_honoured),
    (
        "refusals_mean_what_the_far_end_means",
        For::Http,
        failures::refusals_mean_what_the_far_end_means,
    ),
    ("a_page_under_200_is_a_failure", For::Verdict, failures::a_page_under_200_is_a_failure),
    ("silence_is_temporary", For::Network, failures::silence_is_temporary),
    ("a_closed_port_is_temporary", For::Network, failures::a_closed_port_is_temporary),
    ("errors_keep_secrets", For::Network, failures::errors_keep_secrets),
];

impl For {
    fn includes(self, kind: &ChannelKind) -> bool {
        let about = &kind.about;
        match (self, about.transport) {
            (Self::All, _)
            | (
                Self::Network,
                Transport::Http { .. }
                | Transport::Smtp
                | Transport::Mqtt
                | Transport::WebSocket { .. },
            )
            | (Self::Http, Transport::Http { .. }) => true,
            (Self::Verdict, Transport::Http { verdict, .. }) => {
                !matches!(verdict.success, Success::Status)
            }
            (Self::Waits, Transport::Http { verdict, .. }) => !matches!(verdict.wait, Wait::Header),
            (Self::Limited, _) => about.limits.body < usize::MAX,
            (Self::Edits, Transport::Http { .. }) => about.edits,
            (Self::Files, Transport::Http { .. }) => kind.files != Files::Not,
            (Self::Urls, _) => kind.urls.is_some(),
            _ => false,
        }
    }
}

fn main() {
    let checks = kinds().iter().flat_map(|kind| {
        let fitting = CHECKS.iter().filter(|(_, range, _)| range.includes(kind));
        fitting.map(move |&(name, _, check)| {
            trial(format!("{}::{name}", kind.about.name), move || check(kind))
        })
    });
    let names = trial(
        "names_are_unique_and_in_order".to_owned(),
        declaration::names_are_unique_and_in_order,
    );
    let by_status = trial(
        "only_far_ends_of_ones_own_are_judged_by_their_status".to_owned(),
        declaration::only_far_ends_of_ones_own_are_judged_by_their_status,
    );
    libtest_mimic::run(&Arguments::from_args(), checks.chain([names, by_status]).collect()).exit();
}

fn trial(name: String, check: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || -> Result<(), Failed> {
        check();
        Ok(())
    })
}
