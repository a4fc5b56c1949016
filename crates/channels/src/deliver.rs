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
    delivered.without = not_arriving(channel, &attached, cx);
    for piece in pieces(kind, channel, message, &attached, cx.manner) {
        let (place, text) = (piece.place, piece.arrives_as());
        if cx.arrived.iter().any(|it| it.place == place && Some(it.text) == piece.end) {
            continue;
        }
        if let Some(at) = done.iter().position(|it| (it.place, it.text) == (place, piece.mark)) {
            done.remove(at);
            // The text went ahead of them while they could not be read.
            let late = piece.files.iter().filter(|_| !piece.is_file);
            let late = late.map(|file| files::not_sent(&file.name, "the text arrived before it"));
            delivered.without.extend(late);
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

/// Which of the attached files do not arrive. One that arrived everywhere may have vanished since.
fn not_arriving(channel: &dyn Channel, attached: &Gathered, cx: &SendContext) -> Vec<String> {
    let places = channel.targets();
    let arrived =
        |place: Mark, mark: Mark| cx.arrived.iter().any(|it| (it.place, it.text) == (place, mark));
    let missing =
        attached.without.iter().filter(|&&(mark, _)| !places.iter().all(|it| arrived(*it, mark)));
    missing.map(|(_, why)| why.clone()).collect()
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
    /// What tells it from the others of its message: what was reported, not how its files were found at this attempt.
    mark: Mark,
    /// What the last text of a message with attachments arrives as. Where it has, all texts have, however many there
    /// are by now.
    end: Option<Mark>,
    /// Whether it is the last text.
    is_end: bool,
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

    /// The mark that is kept once it has arrived.
    fn arrives_as(&self) -> Mark {
        self.end.filter(|_| self.is_end).unwrap_or(self.mark)
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
    let count = parts.len();
    let marks = marks(kind, &told, below, manner, count);
    let end = end(message);
    let (within, after) = match kind.files {
        Files::Not => (&[][..], &[][..]),
        Files::Within(_) | Files::Pictures { .. } => (&attached.files[..], &[][..]),
        Files::After(_) => (&[][..], &attached.files[..]),
    };
    let texts = |&(target, place): &(usize, Mark)| {
        let parts = parts.iter().cloned().zip(marks.iter().copied());
        (1..).zip(parts).map(move |(part, (message, mark))| {
            let is_end = part == count;
            let files = within.iter().filter(|_| is_end).map(|(_, file)| Arc::clone(file));
            let files = files.collect();
            Piece { target, place, part, message, files, is_file: false, mark, end, is_end }
        })
    };
    let told = &told;
    let files = |&(target, place): &(usize, Mark)| {
        (count + 1..).zip(after).map(move |(part, (mark, file))| Piece {
            target,
            place,
            part,
            message: told.clone(),
            files: vec![Arc::clone(file)],
            is_file: true,
            mark: *mark,
            end: None,
            is_end: false,
        })
    };
    let places: Vec<_> = channel.targets().into_iter().enumerate().collect();
    places.iter().flat_map(texts).chain(places.iter().flat_map(files)).collect()
}

/// The marks of the `count` texts that `told` becomes with all lines `below`: those of the texts that it becomes without
/// what is said of files, and numbers for what those lines add.
fn marks(
    kind: &ChannelKind,
    told: &Message,
    mut below: Vec<Line>,
    manner: Manner,
    count: usize,
) -> Vec<Mark> {
    below.retain(|line| !line.is_found);
    let reported = fit::parts(&kind.about, told, &below, manner.overflow);
    let mark = |part: usize| match reported.get(part) {
        Some(text) => {
            let title = text.title.as_deref().unwrap_or_default();
            Mark::of(&format!("{title}\n{}", text.body))
        }
        None => Mark::of(&format!("files {part}")),
    };
    (0..count).map(mark).collect()
}

/// See [`Piece::end`].
fn end(message: &Message) -> Option<Mark> {
    let names: Vec<_> = message.attachments.iter().map(|it| it.name.as_str()).collect();
    let title = message.title.as_deref().unwrap_or_default();
    let reported = || format!("{title}\n{}\n{}", message.body, names.join("\n"));
    (!names.is_empty()).then(|| Mark::of(&reported()))
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

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::{Path, PathBuf},
        sync::Mutex,
    };

    use async_trait::async_trait;
    use deskbell_core::{
        Context, DeliveryId, Event, Source,
        attachment::{Attachment, Place},
        event::{Content, EventIds, Kind},
    };
    use jiff::Timestamp;

    use super::*;
    use crate::http::Http;

    /// A far end that is busy for whatever has `busy` in it.
    struct FarEnd {
        places: u32,
        busy: &'static str,
        /// What it took: the number of the place, the text and the files.
        took: Mutex<Vec<String>>,
    }

    #[async_trait]
    impl Channel for FarEnd {
        fn targets(&self) -> Vec<Mark> {
            (1..=self.places).map(Mark).collect()
        }

        async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
            let told = format!("{} {} {:?}", cx.target, message.body, cx.files);
            if told.contains(self.busy) {
                return Err(SendError::temporary("503"));
            }
            self.took.lock().unwrap().push(told);
            Ok(Receipt::default())
        }
    }

    /// A folder with files of the names, each with one byte, and a message with them.
    fn attached(names: &[&str]) -> (tempfile::TempDir, PathBuf, Message) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let attachment = |name: &&str| {
            fs::write(path.join(name), "x").unwrap();
            let place = Place::Path(path.join(name).to_str().unwrap().to_owned());
            Attachment::new(place, None, None)
        };
        let attachments = names.iter().map(attachment).collect();
        let message = Message::of(&Event {
            id: EventIds::default().next(Timestamp::UNIX_EPOCH, 0),
            at: Timestamp::UNIX_EPOCH,
            level: Level::Info,
            context: Context::default(),
            source: Source::default(),
            content: Content { text: "it failed".to_owned(), attachments, ..Content::default() },
            kind: Kind::Push,
            to: Vec::new(),
        });
        (folder, path, message)
    }

    /// Delivers to a far end that is busy for `busy`, and again when it no longer is and `meanwhile` has happened.
    /// Returns what it took each time, and what did not arrive.
    async fn twice(
        kind: &ChannelKind,
        places: u32,
        (busy, names): (&'static str, &[&str]),
        meanwhile: impl FnOnce(&Path),
    ) -> (Vec<String>, Vec<String>, Vec<String>) {
        let (_folder, path, message) = attached(names);
        let delivery = DeliveryId {
            event: EventIds::default().next(Timestamp::UNIX_EPOCH, 0),
            channel: "far".parse().unwrap(),
        };
        let cx = SendContext::new(delivery, Timestamp::UNIX_EPOCH, Http::default());
        let first = FarEnd { places, busy, took: Mutex::default() };
        let delivered = deliver(kind, &first, &message, &cx).await;
        assert_eq!(
            delivered.failure.map(|error| error.failure),
            Some(Failure::Temporary { retry_after: None })
        );
        meanwhile(&path);
        let cx = SendContext { attempt: 2, arrived: delivered.arrived, ..cx };
        let then = FarEnd { places, busy: "nothing", took: Mutex::default() };
        let delivered = deliver(kind, &then, &message, &cx).await;
        assert!(delivered.failure.is_none(), "{delivered:?}");
        (first.took.into_inner().unwrap(), then.took.into_inner().unwrap(), delivered.without)
    }

    fn kind(files: Files) -> ChannelKind {
        crate::kind("ntfy").unwrap().with_files(files)
    }

    #[tokio::test]
    async fn a_text_that_arrived_is_not_told_again_when_its_file_vanishes() {
        let remove = |folder: &Path| fs::remove_file(folder.join("shot.txt")).unwrap();
        let names = ("shot.txt", &["shot.txt"][..]);
        let kind = kind(Files::After(9_000));
        let (first, then, without) = twice(&kind, 1, names, remove).await;
        assert_eq!((first, then), (vec!["0 it failed []".to_owned()], Vec::new()));
        assert_eq!(without.len(), 1);
        assert!(without[0].starts_with("`shot.txt` was not sent: cannot be read"), "{without:?}");
    }

    #[tokio::test]
    async fn a_file_that_arrived_is_not_told_again_whatever_becomes_of_it() {
        let names = ("b.txt", &["a.txt", "b.txt"][..]);
        let kind = kind(Files::After(9_000));
        let change = |folder: &Path| fs::write(folder.join("a.txt"), "longer").unwrap();
        let (first, then, without) = twice(&kind, 1, names, change).await;
        assert_eq!(first, ["0 it failed []", "0 it failed [a.txt (1 bytes)]"]);
        assert_eq!((then, without), (vec!["0 it failed [b.txt (1 bytes)]".to_owned()], vec![]));
        let remove = |folder: &Path| fs::remove_file(folder.join("a.txt")).unwrap();
        let (_, then, without) = twice(&kind, 1, names, remove).await;
        assert_eq!((then, without), (vec!["0 it failed [b.txt (1 bytes)]".to_owned()], vec![]));
    }

    #[tokio::test]
    async fn a_place_that_took_the_file_is_not_told_that_it_vanished_for_the_next() {
        // Once the line about the file fits below the text, once it is a text of its own.
        for limit in [1_000, 30] {
            let mut kind = kind(Files::Within(9_000));
            kind.about.limits.body = limit;
            let remove = |folder: &Path| fs::remove_file(folder.join("shot.txt")).unwrap();
            let names = ("1 it failed", &["shot.txt"][..]);
            let (first, then, without) = twice(&kind, 2, names, remove).await;
            assert_eq!(first, ["0 it failed [shot.txt (1 bytes)]"]);
            assert!(then.iter().all(|told| told.starts_with("1 ")), "{then:?}");
            assert!(then.concat().contains("Attached: shot.txt"), "{then:?}");
            assert_eq!(then.len() > 1, limit == 30, "{then:?}");
            assert_eq!(without.len(), 1, "{without:?}");
        }
    }
}
