//! What holds for the streams of a session, whatever happens when.

use proptest::prelude::*;

use super::*;

const KEPT: Duration = Duration::from_secs(60);

type Numbers = Streams<u32>;

fn now() -> Instant {
    Instant::now()
}

/// Everything that the reader at `place` gets now, and whether its stream ended.
fn drain(streams: &mut Numbers, place: &mut Place) -> (Vec<(u64, u32)>, bool) {
    let mut got = Vec::new();
    loop {
        match streams.take(place, Waker::noop()) {
            Taken::Message(number, message) => got.push((number, message)),
            Taken::Dropped { number, .. } => panic!("{number} was dropped"),
            Taken::Nothing => return (got, false),
            Taken::End => return (got, true),
        }
    }
}

/// A call that says `count` things and then answers, with nobody reading.
fn call(streams: &mut Numbers, count: u32) -> u64 {
    let stream = streams.open();
    for message in 0..count {
        streams.append(stream, message, Kind::Other, now());
    }
    streams.append(stream, count, Kind::Answer, now());
    stream
}

#[test]
fn a_reader_cut_after_any_event_gets_the_rest_and_nothing_twice_row_54() {
    const COUNT: u32 = 40;
    for cut in 0..=u64::from(COUNT) + 1 {
        let mut streams = Numbers::new();
        let stream = streams.open();
        let (mut place, _) = streams.read(stream).unwrap();
        let mut seen = Vec::new();
        for message in 0..=COUNT {
            let kind = if message == COUNT { Kind::Answer } else { Kind::Other };
            streams.append(stream, message, kind, now());
            if seen.len() < usize::try_from(cut).unwrap() {
                seen.extend(drain(&mut streams, &mut place).0);
            }
            if seen.len() == usize::try_from(cut).unwrap() {
                streams.leave(&place);
            }
        }
        streams.forget(now(), KEPT);
        let (mut place, _) = streams.resume(stream, cut).unwrap();
        let (rest, ended) = drain(&mut streams, &mut place);
        assert!(ended, "cut after {cut}");
        seen.extend(rest);
        let expected: Vec<_> =
            (0..=COUNT).map(|message| (u64::from(message) + 1, message)).collect();
        assert_eq!(seen, expected, "cut after {cut}");
    }
}

#[test]
fn a_new_reader_ends_the_one_before_and_wakes_it() {
    let mut streams = Numbers::new();
    let stream = streams.open();
    let (mut first, _) = streams.read(stream).unwrap();
    assert_eq!(streams.take(&mut first, Waker::noop()), Taken::Nothing);
    let (mut second, woken) = streams.resume(stream, 0).unwrap();
    assert!(woken.is_some());
    streams.append(stream, 7, Kind::Other, now());
    assert_eq!(streams.take(&mut first, Waker::noop()), Taken::End);
    streams.leave(&first);
    assert_eq!(streams.take(&mut second, Waker::noop()), Taken::Message(1, 7));
}

#[test]
fn the_newest_standalone_reader_gets_it_all_and_the_others_stay_silent() {
    let mut streams = Numbers::new();
    let (mut first, _) = streams.read(STANDALONE).unwrap();
    streams.append(STANDALONE, 1, Kind::Other, now());
    assert_eq!(streams.take(&mut first, Waker::noop()), Taken::Message(1, 1));
    let (mut second, _) = streams.read(STANDALONE).unwrap();
    streams.append(STANDALONE, 2, Kind::Other, now());
    assert_eq!(streams.take(&mut first, Waker::noop()), Taken::Nothing);
    assert_eq!(streams.take(&mut second, Waker::noop()), Taken::Message(2, 2));
    streams.leave(&second);
    streams.append(STANDALONE, 3, Kind::Other, now());
    let (mut third, _) = streams.read(STANDALONE).unwrap();
    assert_eq!(drain(&mut streams, &mut third).0, [(3, 3)], "it takes up what nobody was given");
}

#[test]
fn a_standalone_stream_that_nobody_reads_keeps_the_newest_and_says_how_many_are_gone() {
    let mut streams = Numbers::new();
    let count = u32::try_from(STANDALONE_LIMIT).unwrap() + 10;
    for message in 1..=count {
        streams.append(STANDALONE, message, Kind::Other, now());
    }
    let (mut place, _) = streams.read(STANDALONE).unwrap();
    let dropped = Taken::Dropped { number: 10, count: 10 };
    assert_eq!(streams.take(&mut place, Waker::noop()), dropped);
    let (rest, _) = drain(&mut streams, &mut place);
    assert_eq!(rest.first(), Some(&(11, 11)));
    assert_eq!(rest.len(), STANDALONE_LIMIT);
    let (mut again, _) = streams.resume(STANDALONE, 10).unwrap();
    assert_eq!(
        drain(&mut streams, &mut again).0,
        rest,
        "the note of what is gone has a number too"
    );
}

#[test]
fn progress_that_nobody_reads_takes_the_place_of_progress_and_the_answer_is_kept() {
    let mut streams = Numbers::new();
    let stream = streams.open();
    for message in 0..100_000 {
        streams.append(stream, message, Kind::Progress, now());
    }
    streams.append(stream, 100_000, Kind::Answer, now());
    let (mut place, _) = streams.resume(stream, 0).unwrap();
    let mut got = Vec::new();
    while let taken @ (Taken::Message(..) | Taken::Dropped { .. }) =
        streams.take(&mut place, Waker::noop())
    {
        got.extend(if let Taken::Message(_, message) = taken { Some(message) } else { None });
    }
    assert!(got.len() <= CALL_LIMIT, "{}", got.len());
    assert!(got.ends_with(&[99_999, 100_000]), "{got:?}");
    assert!(got.is_sorted());
}

#[test]
fn a_handler_waits_for_a_reader_that_is_there_and_not_for_one_that_stalls() {
    let mut streams = Numbers::new();
    let stream = streams.open();
    let fill = |streams: &mut Numbers| {
        for message in 0..=u32::try_from(CONGESTED).unwrap() {
            streams.append(stream, message, Kind::Other, now());
        }
    };
    fill(&mut streams);
    assert!(!streams.holds_up(stream), "nobody reads");
    let (mut place, _) = streams.read(stream).unwrap();
    assert!(streams.holds_up(stream));
    for _ in 0..CONGESTED - RELIEVED {
        assert!(!streams.relieved());
        streams.take(&mut place, Waker::noop());
    }
    streams.take(&mut place, Waker::noop());
    assert!(streams.relieved());
    assert!(!streams.holds_up(stream));
    fill(&mut streams);
    assert!(streams.holds_up(stream));
    streams.stalls(stream);
    assert!(!streams.holds_up(stream));
    assert!(!streams.holds_up(STANDALONE), "the standalone stream holds up nobody");
}

#[test]
fn what_cannot_be_resumed_says_why() {
    let mut streams = Numbers::new();
    let stream = call(&mut streams, 3);
    assert_eq!(streams.resume(stream + 1, 0).unwrap_err(), Unresumable::NeverSent);
    assert_eq!(streams.resume(stream, 5).unwrap_err(), Unresumable::NeverSent);
    assert_eq!(streams.resume(STANDALONE, 1).unwrap_err(), Unresumable::NeverSent);
    assert!(streams.resume(stream, 4).is_ok(), "its answer is the last that was sent");
    let (place, _) = streams.resume(stream, 0).unwrap();
    streams.forget(now() + 2 * KEPT, KEPT);
    assert!(streams.resume(stream, 0).is_ok(), "a stream that is read is not forgotten");
    streams.leave(&place);
    let (place, _) = streams.resume(stream, 0).unwrap();
    streams.leave(&place);
    streams.forget(now() + 2 * KEPT, KEPT);
    assert_eq!(streams.resume(stream, 0).unwrap_err(), Unresumable::Forgotten);
}

#[test]
fn answers_that_were_taken_make_room_before_those_that_were_not() {
    let mut streams = Numbers::new();
    let waiting = call(&mut streams, 0);
    for _ in 0..10_000 {
        let stream = call(&mut streams, 1);
        let (mut place, _) = streams.read(stream).unwrap();
        assert!(drain(&mut streams, &mut place).1);
        streams.leave(&place);
    }
    assert!(streams.resume(waiting, 0).is_ok());
    assert!(streams.streams.len() <= CLAIMED_LIMIT + 2, "{}", streams.streams.len());
    for _ in 0..10_000 {
        call(&mut streams, 1);
    }
    assert!(streams.streams.len() <= UNCLAIMED_LIMIT + CLAIMED_LIMIT + 1);
}

#[test]
fn an_answer_that_was_lost_on_its_way_is_kept_again_while_its_client_reads() {
    let mut streams = Numbers::new();
    let lost = call(&mut streams, 3);
    let (mut place, _) = streams.read(lost).unwrap();
    assert!(drain(&mut streams, &mut place).1);
    streams.leave(&place);
    let (mut place, _) = streams.resume(lost, 1).unwrap();
    for _ in 0..2 * CLAIMED_LIMIT {
        let stream = call(&mut streams, 0);
        let (mut place, _) = streams.read(stream).unwrap();
        assert!(drain(&mut streams, &mut place).1);
    }
    assert_eq!(drain(&mut streams, &mut place), (vec![(2, 1), (3, 2), (4, 3)], true));
}

#[test]
fn an_answer_before_which_nothing_was_said_is_taken_whole_and_leaves_nothing_behind() {
    let mut streams = Numbers::new();
    let stream = streams.open();
    let (place, _) = streams.read(stream).unwrap();
    assert!(streams.take_sole_answer(&place, Waker::noop()).is_pending());
    assert!(streams.append(stream, 7, Kind::Answer, now()).is_some(), "its reader is woken");
    assert_eq!(streams.take_sole_answer(&place, Waker::noop()), Poll::Ready(Some(7)));
    assert_eq!(streams.resume(stream, 0).unwrap_err(), Unresumable::Forgotten);
    assert_eq!(streams.streams.len(), 1);

    let stream = call(&mut streams, 1);
    let (mut place, _) = streams.read(stream).unwrap();
    assert_eq!(streams.take_sole_answer(&place, Waker::noop()), Poll::Ready(None));
    assert_eq!(drain(&mut streams, &mut place), (vec![(1, 0), (2, 1)], true));
}

#[test]
fn a_restored_stream_goes_on_behind_what_its_client_has_seen() {
    let stored = || [(1, Kind::Other, 10), (2, Kind::Other, 20)].into_iter();
    for (seen, expected) in [
        (0, vec![(1, 10), (2, 20), (3, 99)]),
        (1, vec![(2, 20), (3, 99)]),
        (2, vec![(3, 99)]),
        // The last of what it has seen was not stored.
        (5, vec![(6, 99)]),
    ] {
        let mut streams = Numbers::new();
        streams.restore(4, stored(), Some(99), now());
        assert_eq!(streams.resume(5, 0).unwrap_err(), Unresumable::Forgotten);
        let unused = 4 + UNSTORED_STREAMS + 1;
        assert_eq!(streams.resume(unused, 0).unwrap_err(), Unresumable::NeverSent);
        let (mut place, _) = streams.resume(4, seen).unwrap();
        assert_eq!(drain(&mut streams, &mut place), (expected.clone(), true), "seen {seen}");
        let (mut place, _) = streams.resume(4, seen).unwrap();
        assert_eq!(drain(&mut streams, &mut place), (expected, true), "again, seen {seen}");
        assert_eq!(streams.open(), unused, "numbers are not used again");
    }
    let mut streams = Numbers::new();
    streams.restore(4, stored(), Some(99), now());
    assert_eq!(streams.resume(4, u64::MAX).unwrap_err(), Unresumable::NeverSent);

    streams.restore(STANDALONE, stored(), None, now());
    let (mut place, _) = streams.resume(STANDALONE, 1).unwrap();
    streams.append(STANDALONE, 30, Kind::Other, now());
    let (got, _) = drain(&mut streams, &mut place);
    assert_eq!(got.iter().map(|(_, message)| *message).collect::<Vec<_>>(), [20, 30]);
}

#[test]
fn of_the_answers_that_nobody_took_the_one_that_ended_first_makes_room_and_none_with_a_reader() {
    let mut streams = Numbers::new();
    let long = streams.open();
    let read = call(&mut streams, 1);
    let (mut place, _) = streams.read(read).unwrap();
    let oldest = call(&mut streams, 1);
    for _ in 2..UNCLAIMED_LIMIT {
        call(&mut streams, 1);
    }
    streams.append(long, 7, Kind::Answer, now());
    assert!(streams.resume(long, 0).is_ok(), "it has just ended, although it began first");
    assert_eq!(streams.resume(oldest, 0).unwrap_err(), Unresumable::Forgotten);
    assert_eq!(drain(&mut streams, &mut place), (vec![(1, 0), (2, 1)], true));
}

#[test]
fn a_closed_session_ends_its_readers() {
    let mut streams = Numbers::new();
    let (mut place, _) = streams.read(STANDALONE).unwrap();
    assert_eq!(streams.take(&mut place, Waker::noop()), Taken::Nothing);
    assert_eq!(streams.close().len(), 1);
    assert_eq!(streams.take(&mut place, Waker::noop()), Taken::End);
}

/// What happens to a session.
#[derive(Debug, Clone)]
enum Step {
    Open,
    Say { call: usize },
    Answer { call: usize },
    Read { call: usize, count: usize },
    Cut { call: usize },
    Resume { call: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let call = 0_usize..4;
    prop_oneof![
        Just(Step::Open),
        call.clone().prop_map(|call| Step::Say { call }),
        call.clone().prop_map(|call| Step::Answer { call }),
        (call.clone(), 0_usize..5).prop_map(|(call, count)| Step::Read { call, count }),
        call.clone().prop_map(|call| Step::Cut { call }),
        call.prop_map(|call| Step::Resume { call }),
    ]
}

/// A client that counts what it gets on the stream of one call.
#[derive(Default)]
struct Client {
    stream: u64,
    said: Vec<u32>,
    got: Vec<(u64, u32)>,
    place: Option<Place>,
}

impl Client {
    fn read(&mut self, streams: &mut Numbers, count: usize) {
        let Some(place) = &mut self.place else { return };
        for _ in 0..count {
            match streams.take(place, Waker::noop()) {
                Taken::Message(number, message) => self.got.push((number, message)),
                _ => return,
            }
        }
    }
}

proptest! {
    /// However readers come, read and go: each message comes once, in order, on its own call's stream.
    #[test]
    fn every_message_comes_once_on_its_own_stream(steps in prop::collection::vec(step(), 1..200)) {
        let mut streams = Numbers::new();
        let mut clients: Vec<Client> = Vec::new();
        let mut words = 0..;
        for step in steps {
            match step {
                Step::Open if clients.len() < 4 => {
                    let stream = streams.open();
                    let place = streams.read(stream).map(|(place, _)| place);
                    clients.push(Client { stream, place, ..Client::default() });
                }
                Step::Open => {}
                Step::Say { call } | Step::Answer { call } => {
                    let Some(client) = clients.get_mut(call) else { continue };
                    let word = words.next().unwrap();
                    let kind = match step { Step::Answer { .. } => Kind::Answer, _ => Kind::Other };
                    let was_open = streams.streams[&client.stream].ended.is_none();
                    streams.append(client.stream, word, kind, now());
                    if was_open {
                        client.said.push(word);
                    }
                }
                Step::Read { call, count } => {
                    if let Some(client) = clients.get_mut(call) {
                        client.read(&mut streams, count);
                    }
                }
                Step::Cut { call } => {
                    if let Some(place) = clients.get_mut(call).and_then(|client| client.place.take()) {
                        streams.leave(&place);
                    }
                }
                Step::Resume { call } => {
                    let Some(client) = clients.get_mut(call) else { continue };
                    let seen = client.got.last().map_or(0, |(number, _)| *number);
                    let (place, _) = streams.resume(client.stream, seen).unwrap();
                    client.place = Some(place);
                }
            }
        }
        for client in &mut clients {
            let seen = client.got.last().map_or(0, |(number, _)| *number);
            client.place = Some(streams.resume(client.stream, seen).unwrap().0);
            client.read(&mut streams, usize::MAX);
            let got: Vec<_> = client.got.iter().map(|(_, word)| *word).collect();
            prop_assert_eq!(&got, &client.said);
            let numbers: Vec<_> = client.got.iter().map(|(number, _)| *number).collect();
            prop_assert_eq!(numbers, (1..=client.said.len() as u64).collect::<Vec<_>>());
        }
    }
}
