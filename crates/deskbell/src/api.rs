//! The HTTP API: reports, history, deliveries, channels and the live stream.
//!
//! It checks what a request says and gives it to the part that knows; every refusal is a [`problem::Problem`].

mod batch;
mod body;
mod explain;
pub(crate) mod report;

mod channels;
mod deliveries;
mod events;
pub(crate) mod preview;
mod query;
mod runs;
pub(crate) mod segment;
mod snooze;
mod status;
mod stream;
mod why;

mod openapi;
mod operations;
pub mod problem;
pub mod wire;

use std::sync::Arc;

use axum::Router;

pub use openapi::{document, page};
pub(crate) use query::LIMIT_MAX;
pub(crate) use snooze::LONGEST as LONGEST_SNOOZE;

use crate::app::App;

/// The routes of the API, the same behind every door.
pub fn router(app: Arc<App>) -> Router {
    operations::ALL
        .iter()
        .fold(Router::new(), |router, operation| {
            router.route(operation.path, (operation.handler)())
        })
        .method_not_allowed_fallback(problem::method_not_allowed)
        .fallback(problem::not_found)
        .with_state(app)
}
