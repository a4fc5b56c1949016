//! What happens around a channel's one attempt: the places, the parts, the edit in place, the time.

use deskbell_core::{
    Message,
    delivery::{Failure, Receipt},
};

use crate::{
    channel::{Channel, ChannelKind, SendContext, SendError},
    fit,
    manner::Manner,
};

/// What an attempt came to.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// The receipts of the pieces that have arrived by now, those of earlier attempts first: for each place of the
    /// channel the parts of the message, in order.
    pub receipts: Vec<Receipt>,
    /// Why the rest has not arrived.
    pub failure: Option<SendError>,
}

impl Delivered {
    /// The receipt of the first piece.
    ///
    /// # Errors
    /// Says why not everything has arrived.
    pub fn first(self) -> Result<Receipt, SendError> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(self.receipts.into_iter().next().unwrap_or_default()),
        }
    }
}

/// Delivers `message` once to each place of the channel, in as many parts as the far end needs.
///
/// It ends at the first failure. What has arrived is told as well, and is not sent again by an attempt that gets it as
/// [`SendContext::arrived`].
pub async fn deliver(
    kind: &ChannelKind,
    channel: &dyn Channel,
    message: &Message,
    cx: &SendContext,
) -> Delivered {
    let mut receipts = cx.arrived.clone();
    let attempt = Box::pin(attempt(kind, channel, message, cx, &mut receipts));
    let failure = match tokio::time::timeout(cx.timeout, attempt).await {
        Ok(outcome) => outcome.err(),
        Err(_) => {
            let limit = cx.timeout.as_secs_f64();
            Some(SendError::temporary(format!("no answer within {limit} s")))
        }
    };
    Delivered { receipts, failure }
}

async fn attempt(
    kind: &ChannelKind,
    channel: &dyn Channel,
    message: &Message,
    cx: &SendContext,
    receipts: &mut Vec<Receipt>,
) -> Result<(), SendError> {
    for piece in pieces(kind, channel, message, cx.manner).into_iter().skip(cx.arrived.len()) {
        let earlier = cx.earlier.get(piece.target).filter(|_| kind.about.edits);
        let (target, part) = (piece.target, piece.part);
        let cx = SendContext { target, part, edit: earlier.cloned(), ..cx.clone() };
        receipts.push(send_or_replace(channel, &piece.message, cx).await?);
    }
    Ok(())
}

/// What one `send` tells: a part of the message for one place.
pub(crate) struct Piece {
    pub(crate) target: usize,
    pub(crate) part: usize,
    pub(crate) message: Message,
}

/// The pieces of `message`, in the order in which they are sent.
pub(crate) fn pieces(
    kind: &ChannelKind,
    channel: &dyn Channel,
    message: &Message,
    manner: Manner,
) -> Vec<Piece> {
    let parts = fit::parts(&kind.about, &manner.told(message), manner.overflow);
    let to = |target| {
        let numbered = (1..).zip(parts.iter().cloned());
        numbered.map(move |(part, message)| Piece { target, part, message })
    };
    (0..channel.targets()).flat_map(to).collect()
}

/// Sends `message`; where it was to be an edit and that is refused for good, it is sent anew.
///
/// The message to edit may be gone, too old, or another bot's: far ends say so in ways of their own, and a new message
/// is right for all of them.
async fn send_or_replace(
    channel: &dyn Channel,
    message: &Message,
    cx: SendContext,
) -> Result<Receipt, SendError> {
    match channel.send(message, &cx).await {
        Err(SendError { failure: Failure::Permanent, .. }) if cx.edit.is_some() => {
            channel.send(message, &SendContext { edit: None, ..cx }).await
        }
        outcome => outcome,
    }
}
