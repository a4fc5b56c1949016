//! Tokens that a far end lends for a while, in exchange for the secret of an app.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;

/// How long before its end a token is no longer used, so that it does not end on the way.
const MARGIN: Duration = Duration::from_secs(120);

/// The token in use, if there is one.
#[derive(Debug, Default)]
pub(crate) struct TokenCache(Mutex<Option<Lent>>);

#[derive(Debug)]
struct Lent {
    token: String,
    until: Timestamp,
}

impl TokenCache {
    /// The token, if it can still be used at `now`.
    pub(crate) fn token(&self, now: Timestamp) -> Option<String> {
        let cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.as_ref().filter(|lent| now < lent.until).map(|lent| lent.token.clone())
    }

    /// Keeps `token`, which was lent at `now` for `seconds`.
    pub(crate) fn keep(&self, token: &str, now: Timestamp, seconds: u64) {
        let lifetime = Duration::from_secs(seconds).saturating_sub(MARGIN);
        let until = now.checked_add(lifetime).unwrap_or(now);
        let lent = Lent { token: token.to_owned(), until };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(lent);
    }

    /// Forgets the token, because the far end no longer takes it.
    pub(crate) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_used_until_shortly_before_its_end() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let later = |seconds| now + Duration::from_secs(seconds);
        let cache = TokenCache::default();
        assert_eq!(cache.token(now), None);
        cache.keep("t", now, 7_200);
        assert_eq!(cache.token(later(7_079)).as_deref(), Some("t"));
        assert_eq!(cache.token(later(7_080)), None);
        cache.forget();
        assert_eq!(cache.token(now), None);
        cache.keep("short", now, 60);
        assert_eq!(cache.token(now), None);
    }
}
