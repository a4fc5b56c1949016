//! One channel's lane: how many attempts it has room for, and what its far end made of the last ones.

use std::sync::Arc;

use deskbell_core::{
    ChannelName,
    breaker::{Breaker, BreakerPolicy, Permission},
    rate::Usage,
    retry::RetryPolicy,
};
use jiff::Timestamp;
use tracing::warn;

use crate::{
    channel_set::ReadyChannel,
    dispatch::{
        IN_FLIGHT_PER_CHANNEL,
        attempt::{Came, Verdict},
        health::{ChannelHealth, Flow, LastError},
    },
};

/// A channel that takes no more messages a minute gets them one after the other, and so in order: that is fast enough
/// for it, and those who read it are people.
pub(super) const ONE_BY_ONE: u32 = 20;

/// How many attempts a lane has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    /// How many may begin now.
    pub(super) free: usize,
    /// When there is room for more than that, where only time stands in the way.
    pub(super) opens_at: Option<Timestamp>,
}

/// All that is known of a channel between its attempts. Its times are those of the steady clock.
pub(super) struct Lane {
    /// The channel; `None` when it is gone and the last attempts are still under way.
    ready: Option<Arc<ReadyChannel>>,
    in_flight: usize,
    usage: Usage,
    breaker: Breaker,
    /// When the far end, which asked to be left alone, may be asked again.
    paused_until: Option<Timestamp>,
    last_error: Option<LastError>,
    last_sent_at: Option<Timestamp>,
    sent: u64,
    failed: u64,
    given_up: u64,
}

impl Lane {
    pub(super) fn new(ready: Arc<ReadyChannel>) -> Self {
        Self {
            ready: Some(ready),
            in_flight: 0,
            usage: Usage::default(),
            breaker: Breaker::default(),
            paused_until: None,
            last_error: None,
            last_sent_at: None,
            sent: 0,
            failed: 0,
            given_up: 0,
        }
    }

    pub(super) const fn ready(&self) -> Option<&Arc<ReadyChannel>> {
        self.ready.as_ref()
    }

    /// Goes on with `ready`, or with nothing. A channel that was configured anew is tried at once.
    pub(super) fn adopt(&mut self, ready: Option<&Arc<ReadyChannel>>) {
        let same = matches!((&self.ready, ready), (Some(old), Some(new)) if Arc::ptr_eq(old, new));
        if !same {
            self.ready = ready.cloned();
            (self.breaker, self.paused_until) = (Breaker::default(), None);
        }
    }

    /// Whether the channel is gone and nothing of it is under way.
    pub(super) const fn is_done(&self) -> bool {
        self.ready.is_none() && self.in_flight == 0
    }

    /// How many attempts may begin at `now`.
    pub(super) fn room(&self, now: Timestamp) -> Room {
        let Some(ready) = &self.ready else {
            return Room { free: 0, opens_at: None };
        };
        if let Some(until) = self.paused_until.filter(|until| now < *until) {
            return Room { free: 0, opens_at: Some(until) };
        }
        let most = match self.breaker.permission(now) {
            Permission::NoneUntil(until) => return Room { free: 0, opens_at: Some(until) },
            Permission::OneTrial => 1,
            Permission::All => IN_FLIGHT_PER_CHANNEL,
        };
        let Some(limit) = ready.per_minute else {
            return Room { free: most.saturating_sub(self.in_flight), opens_at: None };
        };
        let most = if limit <= ONE_BY_ONE { most.min(1) } else { most };
        let slots = most.saturating_sub(self.in_flight);
        // What is under way counts until a minute after its end: nobody knows when the far end began to count it.
        let unused = self.usage.free(limit, now) as usize;
        let free = unused.saturating_sub(self.in_flight).min(slots);
        let opens_at = if free < slots { self.usage.more_at(now) } else { None };
        Room { free, opens_at }
    }

    /// Counts an attempt that begins.
    pub(super) const fn launch(&mut self) {
        self.in_flight += 1;
    }

    /// Lets an attempt begin at `now` although too many failed. A far end that asked to be left alone is.
    pub(super) fn ask_for_trial(&mut self, now: Timestamp) {
        self.breaker = self.breaker.asked_for_trial(now);
    }

    /// Counts an attempt that began at `began` and is over; `came` is `None` if nobody knows what it came to.
    pub(super) fn land(
        &mut self,
        name: &ChannelName,
        came: Option<Came>,
        began: Timestamp,
        steady: Timestamp,
        now: Timestamp,
    ) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.usage.count(came.as_ref().map_or(1, |came| came.messages), steady);
        let Some(Came { verdict, .. }) = came else { return };
        match &verdict {
            Verdict::Sent => {
                self.sent += 1;
                self.last_sent_at = Some(now);
                self.breaker = self.breaker.answered();
            }
            Verdict::Refused { .. } => self.breaker = self.breaker.answered(),
            // The far end lives, so the breaker learns nothing; but nothing is sent before it wants to listen.
            Verdict::Busy { retry_after, .. } => {
                let asked = (*retry_after).min(RetryPolicy::default().longest_asked);
                let until = steady.checked_add(asked).unwrap_or(Timestamp::MAX);
                self.paused_until = self.paused_until.max(Some(until));
            }
            Verdict::Failed { .. } => self.count_failure(name, began, steady),
        }
        if let Some((error, given_up)) = verdict.into_error() {
            self.failed += 1;
            self.given_up += u64::from(given_up);
            self.last_error = Some(LastError { at: now, error });
        }
    }

    fn count_failure(&mut self, name: &ChannelName, began: Timestamp, steady: Timestamp) {
        let before = self.breaker;
        self.breaker = self.breaker.failed(&BreakerPolicy::default(), began, steady);
        if !matches!(before, Breaker::Open { .. }) && matches!(self.breaker, Breaker::Open { .. }) {
            warn!(channel.name = %name, "{name} failed too often in a row and is tried less often");
        }
    }

    /// How the channel does, in times of the wall clock.
    pub(super) fn health(&self, now: Timestamp, steady: Timestamp) -> ChannelHealth {
        let Room { free, opens_at } = self.room(steady);
        let wall = |at: Timestamp| now.checked_add(at.duration_since(steady)).unwrap_or(at);
        let paused = self.paused_until.is_some_and(|until| steady < until);
        ChannelHealth {
            flow: match self.breaker {
                Breaker::Open { .. } => Flow::Broken,
                _ if paused => Flow::Paused,
                Breaker::Failing { failures } => Flow::Failing { failures },
                Breaker::Closed if free == 0 && opens_at.is_some() => Flow::Limited,
                Breaker::Closed => Flow::Open,
            },
            in_flight: self.in_flight,
            waiting_until: opens_at.map(wall),
            last_error: self.last_error.clone(),
            last_sent_at: self.last_sent_at,
            sent: self.sent,
            failed: self.failed,
            given_up: self.given_up,
        }
    }
}
