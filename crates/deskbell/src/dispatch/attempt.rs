//! One attempt: tries the channel once, within a time-out, and records what it came to.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use deskbell_channels::{Delivered, SendContext, SendError};
use deskbell_core::{
    Message,
    clock::Clock,
    delivery::{Failure, Outcome},
    retry::{Decision, RetryPolicy},
};
use futures_util::FutureExt as _;
use tracing::{info, warn};
use uuid::Uuid;

use crate::{
    channel_set::ReadyChannel,
    config::DeliveryOptions,
    crash_point::{self, Point},
    journal::{Ack, Due, Journal, Write},
};

/// How long to wait before a record that failed is written again; it doubles up to [`LONGEST_RECORD_PAUSE`].
const FIRST_RECORD_PAUSE: Duration = Duration::from_millis(100);

/// The longest wait before a record is written again.
const LONGEST_RECORD_PAUSE: Duration = Duration::from_secs(10);

/// What an attempt says of its far end, for the lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It took the message.
    Sent,
    /// It answered, and refused the message for good.
    Refused { error: String },
    /// It asked to be left alone.
    Busy { retry_after: Duration, error: String, given_up: bool },
    /// It did not answer as it should, which may pass.
    Failed { error: String, given_up: bool },
}

impl Verdict {
    /// What went wrong, if something did, and whether the delivery was given up for it.
    pub(super) fn into_error(self) -> Option<(String, bool)> {
        match self {
            Self::Sent => None,
            Self::Refused { error } => Some((error, true)),
            Self::Busy { error, given_up, .. } | Self::Failed { error, given_up } => {
                Some((error, given_up))
            }
        }
    }
}

/// What an attempt came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Came {
    /// What it says of the far end.
    pub(super) verdict: Verdict,
    /// How many messages the far end was sent: a text in parts, and one to several places, is more than one.
    pub(super) messages: u32,
}

/// A delivery that was taken, and everything that trying it needs.
pub(super) struct Attempt {
    pub(super) due: Due,
    pub(super) ready: Arc<ReadyChannel>,
    pub(super) options: DeliveryOptions,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Attempt {
    /// Tries the channel once and returns when what it came to is safe in the journal.
    pub(super) async fn carry_out(self) -> Came {
        let answer = self.send().await;
        crash_point::pass(Point::Attempted);
        let arrived = answer.arrived.len().saturating_sub(self.due.arrived.len());
        let sent = arrived + usize::from(answer.failure.is_some());
        let messages = u32::try_from(sent).unwrap_or(u32::MAX).max(1);
        let (outcome, verdict) = self.judge(answer);
        self.record(outcome).await;
        crash_point::pass(Point::Recorded);
        Came { verdict, messages }
    }

    /// Sends the message, within the time-out. A panic of the channel is a failure like any other.
    async fn send(&self) -> Delivered {
        let event = &self.due.event;
        let digest = self.due.digest.as_ref();
        let message =
            digest.map_or_else(|| Message::of(event), |digest| Message::of_digest(event, digest));
        let (now, http) = (self.clock.now(), self.ready.http.clone());
        let cx = SendContext {
            attempt: self.due.attempt,
            earlier: self.due.previous.clone(),
            arrived: self.due.arrived.clone(),
            manner: self.ready.manner,
            timeout: self.options.timeout,
            ..SendContext::new(self.due.id.clone(), now, http)
        };
        let sending =
            deskbell_channels::deliver(self.ready.kind, &*self.ready.channel, &message, &cx);
        let caught = AssertUnwindSafe(sending).catch_unwind().await;
        caught.unwrap_or_else(|_panic| Delivered {
            arrived: self.due.arrived.clone(),
            without: Vec::new(),
            failure: Some(SendError::temporary("the channel's code panicked")),
        })
    }

    /// What the answer means for the delivery, and for the lane.
    fn judge(&self, answer: Delivered) -> (Outcome, Verdict) {
        let Due { id, attempt, .. } = &self.due;
        let name = &id.channel;
        let Delivered { arrived, without, failure } = answer;
        let Some(SendError { failure, message: error }) = failure else {
            let without = (!without.is_empty()).then(|| without.join("; "));
            info!(event.id = %id.event, channel.name = %name, attempt, "delivered event to {name}");
            return (Outcome::Sent { arrived, without }, Verdict::Sent);
        };
        let policy = RetryPolicy { attempts: self.options.attempts, ..RetryPolicy::default() };
        let (outcome, given_up) = match policy.after(*attempt, failure, jitter()) {
            Decision::RetryIn(wait) => {
                info!(event.id = %id.event, channel.name = %name, attempt,
                    "failed to deliver event to {name}, next attempt in {:.1} s: {error}", wait.as_secs_f64());
                let at = self.clock.now().checked_add(wait).unwrap_or(jiff::Timestamp::MAX);
                (Outcome::RetryAt { at, error: error.clone(), arrived }, false)
            }
            Decision::GiveUp => {
                warn!(event.id = %id.event, channel.name = %name, attempt,
                    "failed to deliver event to {name}, given up: {error}");
                (Outcome::GivenUp { error: error.clone(), arrived }, true)
            }
        };
        let verdict = match failure {
            Failure::Permanent => Verdict::Refused { error },
            Failure::Temporary { retry_after: Some(retry_after) } => {
                Verdict::Busy { retry_after, error, given_up }
            }
            Failure::Temporary { retry_after: None } => Verdict::Failed { error, given_up },
        };
        (outcome, verdict)
    }

    /// Writes `outcome` until the journal has it. Until then the delivery is in flight and is not tried again.
    async fn record(&self, outcome: Outcome) {
        let write = Write::Outcome {
            delivery: self.due.id.clone(),
            attempt: self.due.attempt,
            at: self.clock.now(),
            outcome,
        };
        let acks = persist(&*self.journal, write, "what an attempt came to").await;
        if acks.first() == Some(&Ack::Stale) {
            warn!(delivery.id = %self.due.id, attempt = self.due.attempt,
                "an attempt's outcome came too late and was not kept");
        }
    }
}

/// Puts what was in flight when the program ended back among what is due, as maybe repeated.
pub(super) async fn recover(journal: &dyn Journal, clock: &dyn Clock) {
    let acks = persist(journal, Write::Recover { at: clock.now() }, "what was in flight").await;
    if let Some(Ack::Done(count @ 1..)) = acks.first() {
        info!("{count} deliveries were in flight when the program ended; they are tried again");
    }
}

/// Writes `write` until the journal has it.
async fn persist(journal: &dyn Journal, write: Write, what: &str) -> Vec<Ack> {
    let mut pause = FIRST_RECORD_PAUSE;
    loop {
        match journal.commit(vec![write.clone()]).await {
            Ok(acks) => return acks,
            Err(error) => {
                if pause == FIRST_RECORD_PAUSE {
                    warn!("failed to record {what}, trying until it works: {error}");
                }
                tokio::time::sleep(pause).await;
                pause = pause.saturating_mul(2).min(LONGEST_RECORD_PAUSE);
            }
        }
    }
}

/// A uniform sample from 0 to 1.
fn jitter() -> f64 {
    /// As many random bits as a `f64` has in its fraction.
    const BITS: u32 = 52;
    // The low bits of a version 4 UUID are random.
    let random = Uuid::new_v4().as_u128() & ((1 << BITS) - 1);
    #[expect(clippy::cast_precision_loss, reason = "as many bits as fit were taken")]
    let sample = random as f64 / (1_u64 << BITS) as f64;
    sample
}
