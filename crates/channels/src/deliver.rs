//! What happens around a channel's one attempt: the limits, the parts, the edit in place, the time.

use deskbell_core::{
    Message,
    delivery::{Failure, Receipt},
};

use crate::{
    channel::{Channel, ChannelKind, SendContext, SendError},
    fit,
};

/// Delivers `message` once, in as many parts as the far end needs.
///
/// Where a part fails, the parts before it have arrived and arrive again with the next attempt; each carries an id
/// of its own, so that far ends that drop repeats can. The receipt is that of the first part.
///
/// # Errors
/// Says what the first failure means.
pub async fn deliver(
    kind: &ChannelKind,
    channel: &dyn Channel,
    message: &Message,
    cx: &SendContext,
) -> Result<Receipt, SendError> {
    let attempt = Box::pin(attempt(kind, channel, message, cx));
    match tokio::time::timeout(cx.timeout, attempt).await {
        Ok(outcome) => outcome,
        Err(_) => {
            Err(SendError::temporary(format!("no answer within {} s", cx.timeout.as_secs_f64())))
        }
    }
}

async fn attempt(
    kind: &ChannelKind,
    channel: &dyn Channel,
    message: &Message,
    cx: &SendContext,
) -> Result<Receipt, SendError> {
    let edit = cx.edit.clone().filter(|_| kind.about.edits);
    let mut first = None;
    for (part, message) in (1..).zip(fit::parts(&kind.about, message)) {
        let cx = SendContext { part, edit: edit.clone(), ..cx.clone() };
        let receipt = send_or_replace(channel, &message, cx).await?;
        first.get_or_insert(receipt);
    }
    Ok(first.unwrap_or_default())
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
