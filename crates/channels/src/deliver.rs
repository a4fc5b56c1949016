//! What happens around a channel's one attempt: the places, the parts, the edit in place, the time.

use deskbell_core::{
    Message,
    delivery::{Arrived, Failure, Mark, Receipt},
};

use crate::{
    below,
    channel::{Channel, ChannelKind, SendContext, SendError},
    fit,
    manner::Manner,
};

/// What an attempt came to.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// The pieces that have arrived by now, those of earlier attempts first: for each place of the channel the parts of
    /// the message, in order.
    pub arrived: Vec<Arrived>,
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
            None => Ok(self.arrived.into_iter().next().unwrap_or_default().receipt),
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
    let mut arrived = cx.arrived.clone();
    let attempt = Box::pin(attempt(kind, channel, message, cx, &mut arrived));
    let failure = match tokio::time::timeout(cx.timeout, attempt).await {
        Ok(outcome) => outcome.err(),
        Err(_) => {
            let limit = cx.timeout.as_secs_f64();
            Some(SendError::temporary(format!("no answer within {limit} s")))
        }
    };
    if failure.is_none() {
        // What would not be sent again needs no mark to be known by; an edit asks for its place alone.
        arrived.iter_mut().for_each(|piece| piece.text = Mark::NONE);
    }
    Delivered { arrived, failure }
}

async fn attempt(
    kind: &ChannelKind,
    channel: &dyn Channel,
    message: &Message,
    cx: &SendContext,
    arrived: &mut Vec<Arrived>,
) -> Result<(), SendError> {
    let mut done = cx.arrived.clone();
    for Piece { target, place, part, message } in pieces(kind, channel, message, cx.manner) {
        let text = mark(&message);
        if let Some(at) = done.iter().position(|it| (it.place, it.text) == (place, text)) {
            done.remove(at);
            continue;
        }
        // A step is one part where it is edited, so the place is enough.
        let earlier = cx.earlier.iter().find(|it| it.place == place && kind.about.edits);
        let edit = earlier.map(|earlier| earlier.receipt.clone());
        let cx = SendContext { target, part, edit, ..cx.clone() };
        let receipt = send_or_replace(channel, &message, cx).await?;
        arrived.push(Arrived { place, text, receipt });
    }
    Ok(())
}

/// What tells a part from the others of its message.
fn mark(part: &Message) -> Mark {
    Mark::of(&format!("{}\n{}", part.title.as_deref().unwrap_or_default(), part.body))
}

/// What one `send` tells: a part of the message for one place.
pub(crate) struct Piece {
    pub(crate) target: usize,
    pub(crate) place: Mark,
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
    let mut told = manner.told(message);
    let below = below::lines(kind, &told);
    told.link = told.link.filter(|link| kind.link == 0 || kind.has_place_for(link));
    let parts = fit::parts(&kind.about, &told, &below, manner.overflow);
    let to = |(target, place)| {
        let numbered = (1..).zip(parts.iter().cloned());
        numbered.map(move |(part, message)| Piece { target, place, part, message })
    };
    channel.targets().into_iter().enumerate().flat_map(to).collect()
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
