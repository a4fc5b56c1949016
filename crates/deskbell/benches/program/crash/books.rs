//! Compares what the callers, the history, the journal's deliveries and the far end say.

use std::{collections::HashMap, sync::Arc};

use deskbell::dispatch::IN_FLIGHT_PER_CHANNEL;
use serde_json::Value;
use tokio::task::JoinSet;

use super::{
    CALLERS, CHANNEL,
    callers::Accepted,
    far_end::{Arrival, Arrivals},
    json,
    witness::Witnessed,
};
use crate::connection::Connection;

/// How many faults are printed.
pub(super) const FAULTS_SHOWN: usize = 20;

/// What came of all kills.
#[derive(Default)]
pub(super) struct Books {
    pub(super) accepted: Vec<Accepted>,
    /// Events whose first acceptance was not heard.
    pub(super) asked_again: usize,
    pub(super) lost: usize,
    pub(super) doubled: usize,
    pub(super) never_arrived: usize,
    /// Attempts that no outcome was recorded of.
    pub(super) cut_off: usize,
    pub(super) repeats: usize,
    /// Deliveries that were seen to be sent before all was over.
    pub(super) witnessed: usize,
    pub(super) sent_after_receipt: usize,
    /// Everything that must not be, in words.
    pub(super) faults: Vec<String>,
}

/// What the journal says of a delivery.
struct Delivery {
    id: String,
    state: String,
    maybe_repeated: bool,
    attempts: usize,
    /// Attempts that it knows the outcome of.
    recorded: usize,
}

impl Books {
    /// Reads the history and the deliveries of a daemon that has nothing left to do, and compares.
    pub(super) async fn read(
        port: u16,
        accepted: Vec<Accepted>,
        witnessed: Witnessed,
        arrivals: Arrivals,
    ) -> Self {
        let asked_again = accepted.iter().filter(|accepted| accepted.duplicate).count();
        let mut books = Self { asked_again, witnessed: witnessed.len(), ..Self::default() };
        books.compare_history(&accepted, &history(port).await);
        for (delivery, accepted) in deliveries(port, &accepted).await.iter().zip(&accepted) {
            let arrivals = arrivals.get(&delivery.id).map_or(&[][..], Vec::as_slice);
            books.compare_arrivals(accepted, delivery, arrivals);
            let seen = witnessed.get(&delivery.id);
            if seen.is_some_and(|seen| arrivals.iter().any(|arrival| arrival.at > *seen)) {
                books.sent_after_receipt += 1;
                books.faults.push(format!("{} was sent again after its receipt", delivery.id));
            }
        }
        // What is at the far end and was not accepted has no line above.
        let strangers = (arrivals.len() + books.never_arrived).saturating_sub(accepted.len());
        if strangers > 0 {
            books.faults.push(format!("{strangers} messages at the far end that nobody reported"));
        }
        books.accepted = accepted;
        books
    }

    fn compare_history(&mut self, accepted: &[Accepted], history: &HashMap<String, Vec<String>>) {
        for Accepted { text, id, .. } in accepted {
            match history.get(text).map(Vec::as_slice) {
                None => {
                    self.lost += 1;
                    self.faults.push(format!("event {text} was accepted as {id} and is lost"));
                }
                Some([kept]) if kept == id => {}
                Some([kept]) => {
                    self.faults.push(format!("event {text} was accepted as {id} and is {kept}"));
                }
                Some(all) => {
                    self.doubled += 1;
                    self.faults.push(format!("event {text} is there as {}", all.join(", ")));
                }
            }
        }
        let kept = history.len() + self.lost;
        if kept > accepted.len() {
            self.faults.push(format!("{} events that nobody reported", kept - accepted.len()));
        }
    }

    fn compare_arrivals(&mut self, event: &Accepted, delivery: &Delivery, arrivals: &[Arrival]) {
        let Delivery { id, state, maybe_repeated, attempts, recorded } = delivery;
        let cut_off = attempts.saturating_sub(*recorded);
        self.cut_off += cut_off;
        self.repeats += arrivals.len().saturating_sub(1);
        if state != "sent" {
            self.faults.push(format!("delivery {id} ended as {state}"));
        }
        if arrivals.is_empty() {
            self.never_arrived += 1;
            self.faults.push(format!("event {} never arrived", event.text));
        }
        if arrivals.iter().any(|arrival| arrival.text != event.text) {
            self.faults.push(format!("delivery {id} arrived with the text of another event"));
        }
        if *maybe_repeated != (cut_off > 0) {
            self.faults.push(format!(
                "delivery {id} has {cut_off} attempts without an outcome and maybe_repeated = {maybe_repeated}"
            ));
        }
        if arrivals.len() > 1 + cut_off {
            let arrived = arrivals.len();
            self.faults.push(format!(
                "delivery {id} arrived {arrived} times, with {cut_off} attempts cut off"
            ));
        }
    }

    /// Adds a fault when more attempts were cut off than could be under way at `kills`.
    pub(super) fn compare_kills(&mut self, kills: usize) {
        let most = kills * IN_FLIGHT_PER_CHANNEL;
        if self.cut_off > most {
            let cut_off = self.cut_off;
            self.faults.push(format!("{cut_off} attempts without an outcome in {kills} kills"));
        }
    }
}

/// The ids of all events in the history, by their text.
async fn history(port: u16) -> HashMap<String, Vec<String>> {
    let mut connection = Connection::open(port).await.unwrap();
    let mut history = HashMap::<_, Vec<_>>::new();
    let mut after = String::new();
    loop {
        let path = format!("/v1/events?order=oldest&limit=1000{after}");
        let page = json(&mut connection, &path).await;
        for event in page.get("events").unwrap().as_array().unwrap() {
            history.entry(word(event, "text")).or_default().push(word(event, "id"));
        }
        match page.get("next").and_then(Value::as_str) {
            Some(next) => after = format!("&after={next}"),
            None => return history,
        }
    }
}

/// The delivery of each event, in the same order.
async fn deliveries(port: u16, accepted: &[Accepted]) -> Vec<Delivery> {
    let ids: Arc<Vec<_>> =
        Arc::new(accepted.iter().map(|accepted| format!("{}.{CHANNEL}", accepted.id)).collect());
    let mut readers = JoinSet::new();
    for reader in 0..CALLERS {
        let ids = Arc::clone(&ids);
        readers.spawn(async move {
            let mut connection = Connection::open(port).await.unwrap();
            let mut read = Vec::new();
            for (index, id) in ids.iter().enumerate().skip(reader).step_by(CALLERS) {
                read.push((index, delivery(&mut connection, id).await));
            }
            read
        });
    }
    let mut read: Vec<_> = readers.join_all().await.into_iter().flatten().collect();
    read.sort_unstable_by_key(|(index, _)| *index);
    read.into_iter().map(|(_, delivery)| delivery).collect()
}

/// What the journal says of a delivery; one that it does not know has the state `missing`.
async fn delivery(connection: &mut Connection, id: &str) -> Delivery {
    let answer = connection.get(&format!("/v1/deliveries/{id}")).await.unwrap();
    if answer.status == 404 {
        let state = "missing".to_owned();
        return Delivery {
            id: id.to_owned(),
            state,
            maybe_repeated: false,
            attempts: 0,
            recorded: 0,
        };
    }
    assert_eq!(answer.status, 200, "{id}: {}", answer.body);
    let delivery: Value = serde_json::from_str(&answer.body).unwrap();
    let attempts = delivery.get("attempt_count").and_then(Value::as_u64).unwrap();
    Delivery {
        id: id.to_owned(),
        state: word(&delivery, "state"),
        maybe_repeated: delivery.get("maybe_repeated").and_then(Value::as_bool).unwrap(),
        attempts: usize::try_from(attempts).unwrap(),
        recorded: delivery.get("attempts").and_then(Value::as_array).unwrap().len(),
    }
}

fn word(object: &Value, field: &str) -> String {
    object.get(field).and_then(Value::as_str).unwrap().to_owned()
}
