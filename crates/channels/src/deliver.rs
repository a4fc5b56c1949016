//! What happens around a channel's one attempt: the places, the parts, the edit in place, the time.

use std::sync::Arc;

use deskbell_core::{
    Level, Message,
    delivery::{Arrived, Failure, Mark, Receipt},
};

use crate::{
    below::{self, Line},
    channel::{Channel, ChannelKind, SendContext, SendError},
    files::{self, Files, Gathered, ReadFile},
    fit,
    manner::{Manner, Overflow},
};

/// What an attempt came to.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// The pieces that have arrived by now, those of earlier attempts first: for each place of the channel the parts of
    /// the message, in order.
    pub arrived: Vec<Arrived>,
    /// What of the message does not arrive, however often it is tried: files that the far end does not take, in words.
    pub without: Vec<String>,
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
    let mut delivered =
        Delivered { arrived: cx.arrived.clone(), without: Vec::new(), failure: None };
    let attempt = Box::pin(attempt(kind, channel, message, cx, &mut delivered));
    let places = u32::try_from(channel.targets().len()).unwrap_or(u32::MAX);
    let for_files = kind.time_for(&message.attachments).saturating_mul(places);
    let patience = cx.timeout.saturating_add(for_files);
    let failure = match tokio::time::timeout(patience, attempt).await {
        Ok(outcome) => outcome.err(),
        Err(_) => {
            let limit = patience.as_secs_f64();
            Some(SendError::temporary(format!("no answer within {limit} s")))
        }
    };
    if failure.is_none() {
        // What would not be sent again needs no mark to be known by; an edit asks for its place alone.
        delivered.arrived.iter_mut().for_each(|piece| piece.text = Mark::NONE);
    }
    Delivered { failure, ..delivered }
}

async fn attempt(
    kind: &ChannelKind,
    channel: &dyn Channel,
    message: &Message,
    cx: &SendContext,
    delivered: &mut Delivered,
) -> Result<(), SendError> {
    let mut done = cx.arrived.clone();
    let attached = files::gather(kind, message, cx.manner).await;
    delivered.without.clone_from(&attached.without);
    for piece in pieces(kind, channel, message, &attached, cx.manner) {
        let (place, text) = (piece.place, piece.mark());
        if let Some(at) = done.iter().position(|it| (it.place, it.text) == (place, text)) {
            done.remove(at);
            continue;
        }
        // A step is one part where it is edited, so the place is enough.
        let earlier =
            cx.earlier.iter().find(|it| it.place == place && kind.about.edits && !piece.is_file);
        let edit = earlier.map(|earlier| earlier.receipt.clone());
        let told = delivered.arrived.iter().find(|it| piece.is_file && it.place == place);
        let told = told.map(|told| told.receipt.clone());
        let (target, part, files) = (piece.target, piece.part, piece.files.clone());
        let cx = SendContext { target, part, edit, told, files, ..cx.clone() };
        let outcome = match send_or_replace(channel, &piece.message, &cx).await {
            Err(error) if error.failure == Failure::Permanent && !piece.files.is_empty() => {
                without_files(kind, channel, &piece, error, cx, &mut delivered.without).await
            }
            outcome => outcome,
        };
        let receipt = outcome.map_err(|error| piece.explained(error))?;
        delivered.arrived.push(Arrived { place, text, receipt });
    }
    Ok(())
}

/// Sends what is left of `piece` when the far end refused it with its files for good: the text, which says that they are
/// missing. Of a file that went out by itself, that is a line.
async fn without_files(
    kind: &ChannelKind,
    channel: &dyn Channel,
    piece: &Piece,
    error: SendError,
    cx: SendContext,
    without: &mut Vec<String>,
) -> Result<Receipt, SendError> {
    let format = piece.message.format;
    let missing: Vec<_> =
        piece.files.iter().map(|file| Line::refused(file, &error.message, format)).collect();
    let not_sent = piece.files.iter().map(|file| files::not_sent(&file.name, &error.message));
    let message = if piece.is_file {
        let body = missing.iter().map(|line| line.written.as_str()).collect::<Vec<_>>().join("\n");
        // It is no news of its own, so nobody is to hear it.
        Message { title: None, level: Level::Debug, body, link: None, ..piece.message.clone() }
    } else {
        piece.message.clone()
    };
    let below = if piece.is_file { &[][..] } else { &missing };
    let parts = fit::parts(&kind.about, &message, below, Overflow::Truncate);
    let message = parts.into_iter().next().unwrap_or(message);
    let cx = SendContext { files: Vec::new(), ..cx };
    match send_or_replace(channel, &message, &cx).await {
        // It was not for the files.
        Err(again) if again.failure == Failure::Permanent && !piece.is_file => Err(error),
        Err(again) if again.failure == Failure::Permanent => {
            without.extend(not_sent);
            Ok(Receipt::default())
        }
        Ok(receipt) => {
            without.extend(not_sent);
            Ok(receipt)
        }
        Err(again) => Err(again),
    }
}

/// What one `send` tells: a part of the message for one place, or one of its files.
pub(crate) struct Piece {
    pub(crate) target: usize,
    pub(crate) place: Mark,
    pub(crate) part: usize,
    pub(crate) message: Message,
    /// The files that go out with it.
    pub(crate) files: Vec<Arc<ReadFile>>,
    /// Whether it is a file and no text.
    pub(crate) is_file: bool,
}

impl Piece {
    /// `error`, with the file that it is about where the text has arrived already.
    fn explained(&self, error: SendError) -> SendError {
        match self.files.first().filter(|_| self.is_file) {
            Some(file) => {
                let message =
                    format!("the text arrived, but not `{}`: {}", file.name, error.message);
                SendError { message, ..error }
            }
            None => error,
        }
    }

    /// What tells it from the others of its message.
    fn mark(&self) -> Mark {
        match self.files.first().filter(|_| self.is_file) {
            Some(file) => Mark::of(&format!("file {} {}", file.bytes.len(), file.name)),
            None => {
                let title = self.message.title.as_deref().unwrap_or_default();
                Mark::of(&format!("{title}\n{}", self.message.body))
            }
        }
    }
}

/// The pieces of `message`, in the order in which they are sent: the texts to all places first, then the files.
pub(crate) fn pieces(
    kind: &ChannelKind,
    channel: &dyn Channel,
    message: &Message,
    attached: &Gathered,
    manner: Manner,
) -> Vec<Piece> {
    let mut told = manner.told(message);
    let mut below = below::lines(kind, &told);
    below.extend(attached.below.iter().cloned());
    told.link = told.link.filter(|link| kind.link == 0 || kind.has_place_for(link));
    let parts = fit::parts(&kind.about, &told, &below, manner.overflow);
    let (count, none) = (parts.len(), Vec::new());
    let (within, after) = match kind.files {
        Files::Not => (&none, &none),
        Files::Within(_) | Files::Pictures { .. } => (&attached.files, &none),
        Files::After(_) => (&none, &attached.files),
    };
    let texts = |&(target, place): &(usize, Mark)| {
        (1..).zip(parts.iter().cloned()).map(move |(part, message)| {
            let files = if part == count { within.clone() } else { Vec::new() };
            Piece { target, place, part, message, files, is_file: false }
        })
    };
    let told = &told;
    let files = |&(target, place): &(usize, Mark)| {
        (count + 1..).zip(after.iter().cloned()).map(move |(part, file)| Piece {
            target,
            place,
            part,
            message: told.clone(),
            files: vec![file],
            is_file: true,
        })
    };
    let places: Vec<_> = channel.targets().into_iter().enumerate().collect();
    places.iter().flat_map(texts).chain(places.iter().flat_map(files)).collect()
}

/// Sends `message`; where it was to be an edit and that is refused for good, it is sent anew.
///
/// The message to edit may be gone, too old, or another bot's: far ends say so in ways of their own, and a new message
/// is right for all of them.
async fn send_or_replace(
    channel: &dyn Channel,
    message: &Message,
    cx: &SendContext,
) -> Result<Receipt, SendError> {
    match channel.send(message, cx).await {
        Err(SendError { failure: Failure::Permanent, .. }) if cx.edit.is_some() => {
            channel.send(message, &SendContext { edit: None, ..cx.clone() }).await
        }
        outcome => outcome,
    }
}
