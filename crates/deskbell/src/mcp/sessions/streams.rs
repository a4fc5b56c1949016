//! The streams of one session: what is on each, who reads it, and how much of it is kept.
//!
//! Without I/O and without a clock. Every message is appended to exactly one stream and gets the next number there.
//! A reader takes the messages behind its place one after the other; a new reader for the same stream ends the one
//! before it. A stream is kept when nobody reads it, so that its client may come back for the rest.

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    task::{Poll, Waker},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// The stream for what belongs to no call. It is there from the beginning and never ends.
pub(super) const STANDALONE: u64 = 0;

/// How many messages the standalone stream keeps; the oldest are dropped.
pub(super) const STANDALONE_LIMIT: usize = 256;

/// How many messages a call's stream keeps. Beyond it progress takes the place of progress, then the oldest message is
/// dropped; the answer is the last and never dropped.
pub(super) const CALL_LIMIT: usize = 1024;

/// How many messages may wait for the reader of a call before the handler is held up.
const CONGESTED: u64 = 512;

/// How few messages may wait when the handler goes on.
const RELIEVED: u64 = 128;

/// How far the numbers of a stream may have come without being stored when the program ended.
const UNSTORED_LIMIT: u64 = 64 * 1024;

/// How many streams may have been opened without being stored when the program ended. Their numbers are not used again,
/// since a client that knows one would get the messages of another call.
const UNSTORED_STREAMS: u64 = 1024 * 1024;

/// How many ended streams are kept whose answer nobody has taken yet.
const UNCLAIMED_LIMIT: usize = 1024;

/// How many ended streams are kept although a reader took the answer: it may have been lost on its way.
const CLAIMED_LIMIT: usize = 32;

/// What kind of message is appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// The next message of this kind says all that this one said.
    Progress,
    /// Any other message before the answer.
    Other,
    /// The answer, after which the stream has nothing more.
    Answer,
}

/// Where a reader is.
#[derive(Debug)]
pub(super) struct Place {
    stream: u64,
    /// Which reader of the stream it is, counted from 1.
    reader: u64,
    /// The number of the next message.
    next: u64,
}

/// What a reader gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken<M> {
    /// A message and its number.
    Message(u64, M),
    /// So many messages were dropped. The number is that of the last of them.
    Dropped { number: u64, count: u64 },
    /// Nothing now; the waker is called when there is more.
    Nothing,
    /// Nothing more.
    End,
}

/// Why a stream cannot be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unresumable {
    /// No such message has been sent.
    NeverSent,
    /// The stream ended and is no longer kept.
    Forgotten,
}

/// The streams of one session.
#[derive(Debug)]
pub(super) struct Streams<M> {
    streams: BTreeMap<u64, Stream<M>>,
    /// The number of the last stream that was opened.
    last: u64,
    /// The ended streams whose answer nobody has taken, in the order in which they ended.
    unclaimed: VecDeque<u64>,
    /// The ended streams whose answer was taken, in this order.
    claimed: VecDeque<u64>,
    /// Whether a stream that held up a handler has room again.
    relieved: bool,
    closed: bool,
}

#[derive(Debug)]
struct Stream<M> {
    /// The messages that are kept, with their numbers.
    messages: VecDeque<(u64, Kind, M)>,
    /// The number of the newest message.
    last: u64,
    /// The number of the newest message that a reader took.
    taken: u64,
    /// The number of the newest message that was dropped.
    dropped: u64,
    /// How many readers there were.
    readers: u64,
    /// Whether the newest of them is still there.
    is_read: bool,
    waker: Option<Waker>,
    /// Whether a handler waits for the reader.
    holds_up: bool,
    /// Whether its reader stalled, so that no handler waits for it any more.
    stalls: bool,
    ended: Option<Instant>,
    /// The answer of a call that was open when the program ended. It comes behind what the client has seen.
    interruption: Option<M>,
}

impl<M: Clone> Streams<M> {
    pub(super) fn new() -> Self {
        Self {
            streams: BTreeMap::from([(STANDALONE, Stream::new())]),
            last: STANDALONE,
            unclaimed: VecDeque::new(),
            claimed: VecDeque::new(),
            relieved: false,
            closed: false,
        }
    }

    /// Opens the stream of a call.
    pub(super) fn open(&mut self) -> u64 {
        self.last += 1;
        self.streams.insert(self.last, Stream::new());
        self.last
    }

    /// Takes up a stream as it was when the program ended; `interruption` answers a call that was open.
    pub(super) fn restore(
        &mut self,
        number: u64,
        messages: impl Iterator<Item = (u64, Kind, M)>,
        interruption: Option<M>,
        now: Instant,
    ) {
        let stream = self.streams.entry(number).or_insert_with(Stream::new);
        stream.messages.extend(messages);
        stream.last = stream.messages.back().map_or(0, |(last, ..)| *last);
        stream.dropped = stream.messages.front().map_or(0, |(first, ..)| first.saturating_sub(1));
        stream.interruption = interruption;
        self.last = self.last.max(number.saturating_add(UNSTORED_STREAMS));
        if number == STANDALONE {
            // A reader that names no event has read it already, and what was sent last may not be stored.
            stream.last = stream.last.saturating_add(UNSTORED_LIMIT);
            stream.taken = stream.last;
        } else {
            self.end(number, now);
        }
    }

    /// Puts a message at the end of a stream and gives the waker of its reader. What comes after the answer, or for a
    /// stream that is forgotten, is dropped.
    pub(super) fn append(
        &mut self,
        number: u64,
        message: M,
        kind: Kind,
        now: Instant,
    ) -> Option<Waker> {
        let stream = self.streams.get_mut(&number).filter(|stream| stream.ended.is_none())?;
        let limit = if number == STANDALONE { STANDALONE_LIMIT } else { CALL_LIMIT };
        stream.append(message, kind, limit);
        let waker = stream.waker.take();
        if kind == Kind::Answer {
            self.end(number, now);
        }
        waker
    }

    /// Ends a stream without an answer, and gives the waker of its reader.
    pub(super) fn cut(&mut self, number: u64, now: Instant) -> Option<Waker> {
        let stream = self.streams.get_mut(&number).filter(|stream| stream.ended.is_none())?;
        let waker = stream.waker.take();
        self.end(number, now);
        waker
    }

    fn end(&mut self, number: u64, now: Instant) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        stream.ended = Some(now);
        self.relieved |= mem::take(&mut stream.holds_up);
        self.unclaimed.push_back(number);
        if self.unclaimed.len() > UNCLAIMED_LIMIT {
            // A reader that is there may be about to take its answer.
            let is_read = |number| self.streams.get(number).is_some_and(|stream| stream.is_read);
            let index = self.unclaimed.iter().position(|number| !is_read(number)).unwrap_or(0);
            if let Some(oldest) = self.unclaimed.remove(index) {
                self.streams.remove(&oldest);
            }
        }
    }

    /// Takes a stream from those whose answer nobody has taken. False if it is not among them.
    fn claim(&mut self, number: u64) -> bool {
        let index = self.unclaimed.iter().position(|unclaimed| *unclaimed == number);
        index.and_then(|index| self.unclaimed.remove(index)).is_some()
    }

    /// Begins to read a stream behind what was taken from it before, and gives the waker of its reader until now.
    pub(super) fn read(&mut self, number: u64) -> Option<(Place, Option<Waker>)> {
        let stream = self.streams.get_mut(&number)?;
        let next = stream.taken + 1;
        Some(stream.attach(number, next))
    }

    /// Begins to read a stream behind the message with the number `seen`, and gives the waker of its reader until now.
    pub(super) fn resume(
        &mut self,
        number: u64,
        seen: u64,
    ) -> Result<(Place, Option<Waker>), Unresumable> {
        if number > self.last {
            return Err(Unresumable::NeverSent);
        }
        let stream = self.streams.get_mut(&number).ok_or(Unresumable::Forgotten)?;
        let reachable = stream.last.saturating_add(UNSTORED_LIMIT);
        if let Some(interruption) = stream.interruption.take_if(|_| seen <= reachable) {
            stream.last = stream.last.max(seen).saturating_add(1);
            stream.messages.push_back((stream.last, Kind::Answer, interruption));
        }
        if seen > stream.last {
            return Err(Unresumable::NeverSent);
        }
        // Whatever was handed to a reader behind this did not arrive.
        stream.taken = seen;
        if stream.ended.is_some() && seen < stream.last {
            self.claimed.retain(|claimed| *claimed != number);
            if !self.unclaimed.contains(&number) {
                self.unclaimed.push_back(number);
            }
        }
        Ok(stream.attach(number, seen + 1))
    }

    /// What comes next for the reader at `place`.
    pub(super) fn take(&mut self, place: &mut Place, waker: &Waker) -> Taken<M> {
        let Some(stream) = self.streams.get_mut(&place.stream).filter(|_| !self.closed) else {
            return Taken::End;
        };
        if place.reader != stream.readers {
            // An event source whose standalone stream ends connects again, and so would end the newer one.
            return if place.stream == STANDALONE { Taken::Nothing } else { Taken::End };
        }
        let taken = stream.take(&mut place.next);
        let Some(taken) = taken else {
            if stream.ended.is_some() {
                return Taken::End;
            }
            stream.await_more(waker);
            return Taken::Nothing;
        };
        self.relieved |= stream.relieve();
        let is_claimed = stream.ended.is_some() && stream.taken == stream.last;
        if is_claimed && self.claim(place.stream) {
            self.claimed.push_back(place.stream);
            if self.claimed.len() > CLAIMED_LIMIT
                && let Some(oldest) = self.claimed.pop_front()
            {
                self.streams.remove(&oldest);
            }
        }
        taken
    }

    /// The answer of a call, once it is there, if it is all that its stream has: then nobody knows an id from which the
    /// stream could be resumed, and it is forgotten.
    pub(super) fn take_sole_answer(&mut self, place: &Place, waker: &Waker) -> Poll<Option<M>> {
        let Some(stream) = self.streams.get_mut(&place.stream).filter(|_| !self.closed) else {
            return Poll::Ready(None);
        };
        match stream.messages.front() {
            Some((1, Kind::Answer, answer)) => {
                let answer = answer.clone();
                self.streams.remove(&place.stream);
                self.claim(place.stream);
                Poll::Ready(Some(answer))
            }
            None if stream.ended.is_none() => {
                stream.await_more(waker);
                Poll::Pending
            }
            Some(_) | None => Poll::Ready(None),
        }
    }

    /// Takes note that the reader at `place` is gone.
    pub(super) fn leave(&mut self, place: &Place) {
        if let Some(stream) = self.streams.get_mut(&place.stream)
            && place.reader == stream.readers
        {
            (stream.is_read, stream.waker) = (false, None);
            self.relieved |= mem::take(&mut stream.holds_up);
        }
    }

    /// Whether the handler of a call should wait for the reader of its stream.
    pub(super) fn holds_up(&mut self, number: u64) -> bool {
        let Some(stream) = self.streams.get_mut(&number).filter(|_| number != STANDALONE) else {
            return false;
        };
        let limit = if stream.holds_up { RELIEVED } else { CONGESTED };
        stream.holds_up = stream.is_read
            && !stream.stalls
            && !self.closed
            && stream.ended.is_none()
            && stream.last - stream.taken > limit;
        stream.holds_up
    }

    /// Takes note that the reader of a stream did not read for long: no handler waits for it until it has caught up.
    pub(super) fn stalls(&mut self, number: u64) {
        if let Some(stream) = self.streams.get_mut(&number) {
            (stream.stalls, stream.holds_up) = (true, false);
        }
    }

    /// Whether handlers that were held up may go on since this was last asked.
    pub(super) const fn relieved(&mut self) -> bool {
        mem::replace(&mut self.relieved, false)
    }

    /// Forgets the streams that ended longer ago than `kept` and are not being read.
    pub(super) fn forget(&mut self, now: Instant, kept: Duration) {
        let (unclaimed, claimed) = (&mut self.unclaimed, &mut self.claimed);
        self.streams.retain(|_, stream| {
            let is_over = stream.ended.is_some_and(|ended| now.duration_since(ended) > kept);
            !is_over || stream.is_read
        });
        let streams = &self.streams;
        unclaimed.retain(|number| streams.contains_key(number));
        claimed.retain(|number| streams.contains_key(number));
    }

    /// Ends all streams, and gives the wakers of their readers.
    pub(super) fn close(&mut self) -> Vec<Waker> {
        self.closed = true;
        self.relieved = true;
        self.streams.values_mut().filter_map(|stream| stream.waker.take()).collect()
    }

    /// The messages that are kept of a stream.
    pub(super) fn messages(&self, number: u64) -> impl Iterator<Item = &(u64, Kind, M)> {
        self.streams.get(&number).into_iter().flat_map(|stream| &stream.messages)
    }

    /// Whether more may come on a stream.
    pub(super) fn is_open(&self, number: u64) -> bool {
        self.streams.get(&number).is_some_and(|stream| stream.ended.is_none())
    }

    /// The number of the newest message on a stream.
    pub(super) fn newest(&self, number: u64) -> u64 {
        self.streams.get(&number).map_or(0, |stream| stream.last)
    }

    /// The number of the newest message that a reader took from a stream.
    pub(super) fn taken(&self, number: u64) -> u64 {
        self.streams.get(&number).map_or(0, |stream| stream.taken)
    }
}

impl Place {
    pub(super) const fn stream(&self) -> u64 {
        self.stream
    }
}

impl<M: Clone> Stream<M> {
    const fn new() -> Self {
        Self {
            messages: VecDeque::new(),
            last: 0,
            taken: 0,
            dropped: 0,
            readers: 0,
            is_read: false,
            waker: None,
            holds_up: false,
            stalls: false,
            ended: None,
            interruption: None,
        }
    }

    fn append(&mut self, message: M, kind: Kind, limit: usize) {
        if self.messages.len() >= limit {
            let replaces = kind == Kind::Progress
                && self.messages.back().is_some_and(|(number, newest, _)| {
                    *newest == Kind::Progress && *number > self.taken
                });
            if replaces {
                self.messages.pop_back();
            } else if let Some((number, ..)) = self.messages.pop_front() {
                self.dropped = number;
            }
        }
        self.last += 1;
        self.messages.push_back((self.last, kind, message));
    }

    fn attach(&mut self, stream: u64, next: u64) -> (Place, Option<Waker>) {
        self.readers += 1;
        (self.is_read, self.stalls) = (true, false);
        (Place { stream, reader: self.readers, next }, self.waker.take())
    }

    fn take(&mut self, next: &mut u64) -> Option<Taken<M>> {
        if *next <= self.dropped {
            let count = self.dropped - *next + 1;
            *next = self.dropped + 1;
            self.taken = self.taken.max(self.dropped);
            return Some(Taken::Dropped { number: self.dropped, count });
        }
        let index = self.messages.partition_point(|(number, ..)| number < next);
        let (number, _, message) = self.messages.get(index)?;
        *next = number + 1;
        self.taken = self.taken.max(*number);
        Some(Taken::Message(*number, message.clone()))
    }

    fn await_more(&mut self, waker: &Waker) {
        match &mut self.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// Whether the handlers that wait for the reader may go on.
    const fn relieve(&mut self) -> bool {
        let waiting = self.last - self.taken;
        if waiting == 0 {
            self.stalls = false;
        }
        let relieved = self.holds_up && waiting <= RELIEVED;
        if relieved {
            self.holds_up = false;
        }
        relieved
    }
}

#[cfg(test)]
mod tests;
