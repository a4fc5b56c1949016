//! The part of a path that names something.

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;

use super::problem::Problem;

/// The one parameter of an operation's path. A path that is not UTF-8 is refused with a [`Problem`].
pub(crate) struct Segment(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(text)) => Ok(Self(text)),
            Err(refusal) => Err(Problem::new(refusal.status(), "path", refusal.body_text())),
        }
    }
}
