//! Systems whose desktops have no such bus.

use super::Notice;
use crate::channel::SendError;

const NONE: &str = "notifications are shown on the desktops of Linux and the BSDs only so far";

#[derive(Debug, Default)]
pub(crate) struct Session;

impl Session {
    #[expect(clippy::unused_async, reason = "it is one where there is a bus")]
    pub(crate) async fn show(
        &self,
        _notice: &Notice,
        _bus: Option<&str>,
    ) -> Result<String, SendError> {
        Err(SendError::permanent(NONE))
    }
}

/// Why no notification would be seen.
pub(crate) fn missing(_bus: Option<&str>) -> Option<String> {
    Some(NONE.to_owned())
}
