//! Tokens that a far end lends for some time, kept by the channel that asked for them.

use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Mutex;

use crate::{channel::SendError, secret::Secret};

/// How long before its end a token is not used any more.
const MARGIN: Duration = Duration::from_mins(5);

/// A token that a far end lends for some time. Asking for one is often limited, so it is kept.
#[derive(Debug, Default)]
pub struct LentToken(Mutex<Option<(Secret, Timestamp)>>);

impl LentToken {
    /// The token that is kept, or what `asking` gives: a token and how long it holds.
    ///
    /// # Errors
    /// Those of `asking`.
    pub async fn get(
        &self,
        now: Timestamp,
        asking: impl Future<Output = Result<(Secret, Duration), SendError>> + Send,
    ) -> Result<Secret, SendError> {
        // Whoever comes meanwhile waits for the same token.
        let mut kept = self.0.lock().await;
        if let Some((token, _)) = kept.as_ref().filter(|(_, until)| *until > now) {
            return Ok(token.clone());
        }
        let (token, holds) = asking.await?;
        let until = now.checked_add(holds.saturating_sub(MARGIN)).unwrap_or(now);
        *kept = Some((token.clone(), until));
        Ok(token)
    }

    /// Forgets the token, which the far end did not take.
    pub async fn forget(&self) {
        *self.0.lock().await = None;
    }
}
