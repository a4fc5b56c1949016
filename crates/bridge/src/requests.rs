//! The client's requests that are not answered yet, and what a new daemon must be told again.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    MESSAGE_LIMIT,
    peek::{self, Message, Sort},
};

/// How many requests may be open; the bridge reads no further until one is answered.
const OPEN_LIMIT: usize = 1024;

/// How many bytes the open requests may have together, unless there is only one: room for two of the longest.
const OPEN_BYTES: usize = 2 * MESSAGE_LIMIT;

/// How many resource subscriptions are kept for a replay; later ones are forgotten at a reconnection.
const SUBSCRIPTION_LIMIT: usize = 256;

/// Longest subscription that is kept for a replay, in bytes. The URI of a longer one names nothing that there is.
const SUBSCRIPTION_BYTES: usize = 64 * 1024;

/// What becomes of an answer.
pub(crate) enum Passed {
    /// It goes to the client as it is.
    On,
    /// Something else goes to the client in its place: the answers of a whole batch.
    Instead(Vec<u8>),
    /// Nothing goes to the client: it answers a replay, or its batch is not complete.
    Held,
}

/// The open requests of one client.
#[derive(Default)]
pub(crate) struct Requests {
    state: Mutex<State>,
    answered: Condvar,
}

#[derive(Default)]
struct State {
    last_number: u64,
    open: BTreeMap<u64, Open>,
    batches: Vec<Batch>,
    handshake: Vec<Kept>,
    /// Ids of replayed requests whose answers the client has had already.
    replayed: VecDeque<String>,
    /// Whether an answer is on its way to the client.
    passing: bool,
}

/// A request without an answer.
struct Open {
    id: String,
    bytes: Vec<u8>,
}

/// A message that made the session what it is: each new daemon gets it again.
struct Kept {
    /// What a later message replaces it by: the method, with the uri of a subscription.
    subject: String,
    /// The id, if it is a request.
    id: Option<String>,
    bytes: Vec<u8>,
}

/// The requests of one JSON-RPC batch (MCP revision 2025-03-26), which are answered together.
struct Batch {
    waiting_for: Vec<String>,
    answers: Vec<Vec<u8>>,
}

impl Requests {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request with `id` and so many `bytes` may be opened: there is room, and no other one has the same
    /// id.
    ///
    /// Two open requests with one id could not be told apart by their answers, so the second waits for the first.
    pub(crate) fn wait_for_turn(&self, id: &str, bytes: usize) {
        let blocked = |state: &mut State| {
            !state.has_room_for(bytes) || state.open.values().any(|open| open.id == id)
        };
        drop(
            self.answered.wait_while(self.state(), blocked).unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Waits until every answer is with the client, at most `limit`.
    pub(crate) fn wait_until_answered(&self, limit: Duration) {
        let open = |state: &mut State| state.passing || !state.open.is_empty();
        drop(
            self.answered
                .wait_timeout_while(self.state(), limit, open)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Lets `time` pass.
    pub(crate) fn pause(&self, time: Duration) {
        drop(
            self.answered
                .wait_timeout_while(self.state(), time, |_| true)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Keeps what a new daemon would need of the message and gives the number that it is sent under.
    pub(crate) fn remember(&self, bytes: &[u8], message: Message) -> u64 {
        let mut state = self.state();
        match message.sort {
            Sort::Request { id, method, uri } => {
                state.keep(&method, uri.as_deref(), Some(&id), bytes);
                state.last_number += 1;
                let number = state.last_number;
                state.open.insert(number, Open { id, bytes: bytes.to_owned() });
                // Numbers name what is to be seen once; the handshake is to be seen by every daemon.
                if method == "initialize" { 0 } else { number }
            }
            Sort::Notification { method, .. } => {
                state.keep(&method, None, None, bytes);
                0
            }
            Sort::Response { .. } => 0,
        }
    }

    /// Notes that the client no longer waits for the request with `id`, which gets no answer; gives the answer of its
    /// batch, if that was all the batch waited for.
    pub(crate) fn cancelled(&self, id: &str) -> Option<Vec<u8>> {
        let mut state = self.state();
        let was_open = state.close(id);
        let batch = state.batch_of(id).filter(|_| was_open);
        let answer = batch.and_then(|index| state.close_in_batch(index, id, None));
        drop(state);
        self.answered.notify_all();
        answer.filter(|answer| answer != b"[]")
    }

    /// Notes that the requests with `ids` are answered together; gives the answer if it is complete already.
    pub(crate) fn open_batch(&self, ids: Vec<String>, answers: Vec<Vec<u8>>) -> Option<Vec<u8>> {
        let batch = Batch { waiting_for: ids, answers };
        if !batch.waiting_for.is_empty() {
            self.state().batches.push(batch);
            return None;
        }
        (!batch.answers.is_empty()).then(|| batch.joined())
    }

    /// Notes the answer to the request with `id` and says what becomes of it; [`Self::passed`] follows.
    pub(crate) fn answered(&self, id: &str, answer: &[u8]) -> Passed {
        let mut state = self.state();
        state.passing = true;
        if state.close(id) {
            let batch = state.batch_of(id);
            return batch.map_or(Passed::On, |index| {
                state.close_in_batch(index, id, Some(answer)).map_or(Passed::Held, Passed::Instead)
            });
        }
        if let Some(index) = state.replayed.iter().position(|replayed| replayed == id) {
            state.replayed.remove(index);
            return Passed::Held;
        }
        Passed::On
    }

    /// Notes that the client has what it was to get.
    pub(crate) fn passed(&self) {
        self.state().passing = false;
        self.answered.notify_all();
    }

    /// What a new daemon is told first: the handshake under number 0, then the open requests under theirs.
    pub(crate) fn to_replay(&self) -> Vec<(u64, Vec<u8>)> {
        let mut state = self.state();
        let is_open =
            |kept: &Kept| state.open.values().any(|open| Some(&open.id) == kept.id.as_ref());
        let (open_ones, answered): (Vec<_>, Vec<_>) =
            state.handshake.iter().partition(|kept| is_open(kept));
        let replayed = answered.iter().filter_map(|kept| kept.id.clone()).collect();
        let opens_session =
            |open: &Open| open_ones.iter().any(|kept| kept.id.as_ref() == Some(&open.id));
        let mut lines: Vec<_> = Vec::new();
        // An `initialize` without an answer comes before everything else and is answered to the client.
        lines.extend(
            state
                .open
                .values()
                .filter(|open| opens_session(open))
                .map(|open| (0, open.bytes.clone())),
        );
        lines.extend(answered.iter().map(|kept| (0, kept.bytes.clone())));
        let rest = state.open.iter().filter(|(_, open)| !opens_session(open));
        lines.extend(rest.map(|(number, open)| (*number, open.bytes.clone())));
        state.replayed = replayed;
        lines
    }

    /// Closes every open request and gives an error answer for each, with the answers that its batch has already;
    /// [`Self::passed`] follows.
    pub(crate) fn refuse_all(&self, reason: &str) -> Vec<Vec<u8>> {
        let mut state = self.state();
        state.passing = true;
        let open = std::mem::take(&mut state.open);
        let answers = open.into_values().filter_map(|Open { id, .. }| {
            let error = peek::error_answer(Some(&id), -32603, reason);
            match state.batch_of(&id) {
                Some(index) => state.close_in_batch(index, &id, Some(&error)),
                None => Some(error),
            }
        });
        answers.collect()
    }
}

impl State {
    fn has_room_for(&self, bytes: usize) -> bool {
        let open: usize = self.open.values().map(|open| open.bytes.len()).sum();
        self.open.is_empty() || (self.open.len() < OPEN_LIMIT && open + bytes <= OPEN_BYTES)
    }

    fn keep(&mut self, method: &str, uri: Option<&str>, id: Option<&str>, bytes: &[u8]) {
        let subject = match method {
            "initialize" | "notifications/initialized" | "logging/setLevel" => method.to_owned(),
            "resources/subscribe" | "resources/unsubscribe" => {
                format!("subscription {}", uri.unwrap_or_default())
            }
            _ => return,
        };
        self.handshake.retain(|kept| kept.subject != subject);
        let is_kept = match method {
            "resources/subscribe" => {
                self.handshake.len() < SUBSCRIPTION_LIMIT && bytes.len() <= SUBSCRIPTION_BYTES
            }
            other => other != "resources/unsubscribe",
        };
        if is_kept {
            self.handshake.push(Kept {
                subject,
                id: id.map(str::to_owned),
                bytes: bytes.to_owned(),
            });
        }
    }

    fn close(&mut self, id: &str) -> bool {
        let number = self.open.iter().find(|(_, open)| open.id == id).map(|(number, _)| *number);
        number.is_some_and(|number| self.open.remove(&number).is_some())
    }

    fn batch_of(&self, id: &str) -> Option<usize> {
        self.batches.iter().position(|batch| batch.waiting_for.iter().any(|waiting| waiting == id))
    }

    /// Takes a request out of its batch, with its answer if it has one; gives the batch's answer when it is complete.
    fn close_in_batch(&mut self, index: usize, id: &str, answer: Option<&[u8]>) -> Option<Vec<u8>> {
        let batch = self.batches.get_mut(index)?;
        if let Some(place) = batch.waiting_for.iter().position(|waiting| waiting == id) {
            batch.waiting_for.remove(place);
        }
        batch.answers.extend(answer.map(<[u8]>::to_owned));
        batch.waiting_for.is_empty().then(|| self.batches.remove(index).joined())
    }
}

impl Batch {
    fn joined(&self) -> Vec<u8> {
        let mut joined = b"[".to_vec();
        joined.extend(self.answers.join(&b','));
        joined.push(b']');
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remember(requests: &Requests, text: &str) -> u64 {
        requests.remember(text.as_bytes(), peek::read(text.as_bytes()).unwrap())
    }

    fn replay(requests: &Requests) -> Vec<(u64, String)> {
        let lines = requests.to_replay();
        lines
            .into_iter()
            .map(|(number, bytes)| (number, String::from_utf8(bytes).unwrap()))
            .collect()
    }

    const INITIALIZE: &str = r#"{"id":0,"method":"initialize"}"#;
    const INITIALIZED: &str = r#"{"method":"notifications/initialized"}"#;
    const CALL: &str = r#"{"id":1,"method":"tools/call"}"#;

    #[test]
    fn a_new_daemon_gets_the_handshake_and_the_open_requests() {
        let requests = Requests::default();
        assert_eq!(remember(&requests, INITIALIZE), 0);
        assert!(matches!(requests.answered("0", b"{}"), Passed::On));
        remember(&requests, INITIALIZED);
        assert_eq!(remember(&requests, CALL), 2);
        assert_eq!(
            replay(&requests),
            [(0, INITIALIZE.to_owned()), (0, INITIALIZED.to_owned()), (2, CALL.to_owned())]
        );
        // The answer to the replayed handshake is not the client's; the answer to the call is.
        assert!(matches!(requests.answered("0", b"{}"), Passed::Held));
        assert!(matches!(requests.answered("1", b"{}"), Passed::On));
        assert_eq!(replay(&requests).len(), 2);
    }

    #[test]
    fn a_handshake_without_an_answer_is_answered_to_the_client() {
        let requests = Requests::default();
        remember(&requests, INITIALIZE);
        assert_eq!(replay(&requests), [(0, INITIALIZE.to_owned())]);
        assert!(matches!(requests.answered("0", b"{}"), Passed::On));
    }

    #[test]
    fn a_cancelled_request_is_not_sent_again() {
        let requests = Requests::default();
        remember(&requests, CALL);
        assert_eq!(requests.cancelled("1"), None);
        assert_eq!(replay(&requests), []);
    }

    #[test]
    fn only_the_latest_level_and_living_subscriptions_are_replayed() {
        let requests = Requests::default();
        for (id, method, params) in [
            (1, "logging/setLevel", r#"{"level":"info"}"#),
            (2, "logging/setLevel", r#"{"level":"error"}"#),
            (3, "resources/subscribe", r#"{"uri":"runs://a"}"#),
            (4, "resources/subscribe", r#"{"uri":"runs://b"}"#),
            (5, "resources/unsubscribe", r#"{"uri":"runs://a"}"#),
        ] {
            remember(&requests, &format!(r#"{{"id":{id},"method":"{method}","params":{params}}}"#));
            requests.answered(&id.to_string(), b"{}");
        }
        let lines = replay(&requests);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].1.contains("error") && lines[1].1.contains("runs://b"));
    }

    #[test]
    fn open_requests_are_bounded_by_number_and_by_bytes() {
        let open = |id: usize, bytes| Open { id: id.to_string(), bytes: vec![0; bytes] };
        let state = |count, bytes| State {
            open: (0..count).map(|number| (number as u64, open(number, bytes))).collect(),
            ..State::default()
        };
        assert!(state(0, 0).has_room_for(OPEN_BYTES + 1), "one is always taken");
        assert!(state(1, MESSAGE_LIMIT).has_room_for(MESSAGE_LIMIT));
        assert!(!state(1, MESSAGE_LIMIT).has_room_for(MESSAGE_LIMIT + 1));
        assert!(state(OPEN_LIMIT - 1, 1).has_room_for(1));
        assert!(!state(OPEN_LIMIT, 1).has_room_for(1));
    }

    #[test]
    fn a_request_waits_for_room() {
        let requests = std::sync::Arc::new(Requests::default());
        remember(&requests, CALL);
        let waiting = std::sync::Arc::clone(&requests);
        let waiter = std::thread::spawn(move || waiting.wait_for_turn("2", OPEN_BYTES));
        assert!(!waiter.is_finished());
        requests.answered("1", b"{}");
        requests.passed();
        waiter.join().unwrap();
    }

    #[test]
    fn a_subscription_that_is_too_long_is_not_kept() {
        let requests = Requests::default();
        let uri = "x".repeat(SUBSCRIPTION_BYTES);
        remember(
            &requests,
            &format!(r#"{{"id":1,"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#),
        );
        requests.answered("1", b"{}");
        assert_eq!(replay(&requests), []);
    }

    #[test]
    fn a_batch_does_not_wait_for_what_was_cancelled() {
        let requests = Requests::default();
        requests.open_batch(vec!["1".to_owned(), "2".to_owned()], Vec::new());
        remember(&requests, CALL);
        remember(&requests, r#"{"id":2,"method":"ping"}"#);
        assert!(matches!(requests.answered("1", b"one"), Passed::Held));
        assert_eq!(requests.cancelled("2").as_deref(), Some(&b"[one]"[..]));
    }

    #[test]
    fn a_batch_that_is_refused_keeps_the_answers_it_has() {
        let requests = Requests::default();
        requests.open_batch(vec!["1".to_owned(), "2".to_owned()], Vec::new());
        remember(&requests, CALL);
        remember(&requests, r#"{"id":2,"method":"ping"}"#);
        remember(&requests, r#"{"id":3,"method":"ping"}"#);
        assert!(matches!(requests.answered("1", b"one"), Passed::Held));
        let answers = requests.refuse_all("gone");
        let [batch, alone] = &answers[..] else { panic!("{} answers", answers.len()) };
        let batch = String::from_utf8_lossy(batch);
        assert!(batch.starts_with("[one,{") && batch.ends_with("}]"), "{batch}");
        assert!(batch.contains(r#""id":2"#) && batch.contains("gone"), "{batch}");
        assert_eq!(*alone, peek::error_answer(Some("3"), -32603, "gone"));
    }

    #[test]
    fn a_batch_is_answered_together() {
        let requests = Requests::default();
        requests.open_batch(vec!["1".to_owned(), "2".to_owned()], vec![b"0".to_vec()]);
        remember(&requests, CALL);
        remember(&requests, r#"{"id":2,"method":"ping"}"#);
        assert!(matches!(requests.answered("2", b"two"), Passed::Held));
        let Passed::Instead(answer) = requests.answered("1", b"one") else {
            panic!("not complete")
        };
        assert_eq!(answer, b"[0,two,one]");
    }
}
