//! The resources: runs, deliveries and recent history, each a JSON document read from the journal.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use deskbell_core::{DeliveryId, EventId, Invalid, RunId};
use percent_encoding::percent_decode_str;
use rmcp::model::{Resource, ResourceTemplate};
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    api::wire::{DeliveryBody, EventBody, RunBody},
    journal::{Cursor, DeliveryQuery, EventQuery, Journal, JournalError, RunQuery},
};

/// What every resource is.
pub(super) const MIME_TYPE: &str = "application/json";

/// How many resources one connection may be subscribed to.
pub(super) const SUBSCRIPTION_LIMIT: usize = 64;

/// How many runs and events a list shows, the newest first.
const LIST_LIMIT: usize = 100;

/// How long changes are gathered before subscribers hear of them.
const GATHER: Duration = Duration::from_millis(100);

/// Which resource a URI names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// `runs://`
    Runs,
    /// `runs://{run_id}`
    Run(RunId),
    /// `delivery://{event_id}`
    Event(EventId),
    /// `delivery://{event_id}.{channel}`
    Delivery(DeliveryId),
    /// `history://recent`
    History,
}

impl FromStr for Address {
    type Err = Invalid;

    fn from_str(uri: &str) -> Result<Self, Invalid> {
        let unknown = || {
            let expected = "runs://, runs://RUN_ID, delivery://ID or history://recent";
            Invalid::text("uri", uri, expected)
        };
        let (scheme, rest) = uri.split_once("://").ok_or_else(unknown)?;
        let rest = percent_decode_str(rest).decode_utf8().map_err(|_| unknown())?;
        match scheme {
            "runs" if rest.is_empty() => Ok(Self::Runs),
            "runs" => rest.parse().map(Self::Run),
            "delivery" if rest.contains('.') => rest.parse().map(Self::Delivery),
            "delivery" => rest.parse().map(Self::Event),
            "history" if rest == "recent" => Ok(Self::History),
            _ => Err(unknown()),
        }
    }
}

/// The resources that are always there.
pub(super) fn list() -> Vec<Resource> {
    vec![
        Resource::new("runs://", "runs")
            .with_title("Runs")
            .with_description("The latest runs and how far each is")
            .with_mime_type(MIME_TYPE),
        Resource::new("history://recent", "history")
            .with_title("Recent history")
            .with_description("The latest events, the newest first")
            .with_mime_type(MIME_TYPE),
    ]
}

/// The resources that have a name of their own.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("runs://{run_id}", "run")
            .with_title("Run")
            .with_description("How one run stands")
            .with_mime_type(MIME_TYPE),
        ResourceTemplate::new("delivery://{id}", "delivery")
            .with_title("Delivery")
            .with_description(
                "How the pushes of one message went: the id is a delivery_id or event_id that a tool gave, or \
                 EVENT_ID.CHANNEL for one channel",
            )
            .with_mime_type(MIME_TYPE),
    ]
}

#[derive(Serialize)]
struct Runs {
    runs: Vec<RunBody>,
}

#[derive(Serialize)]
struct Deliveries {
    delivery_id: String,
    /// Whether nothing more happens to any of them by itself.
    settled: bool,
    deliveries: Vec<DeliveryBody>,
}

#[derive(Serialize)]
struct History<'a> {
    events: Vec<EventBody<'a>>,
}

/// The document at `address`; `None` if the journal has nothing there.
pub(super) async fn read(
    journal: &dyn Journal,
    address: &Address,
) -> Result<Option<String>, JournalError> {
    match address {
        Address::Runs => {
            let query = RunQuery { limit: LIST_LIMIT, ..RunQuery::default() };
            let runs = journal.runs(query).await?.into_iter().map(RunBody::from).collect();
            document(&Runs { runs }).map(Some)
        }
        Address::Run(id) => {
            let query = RunQuery { id: Some(id.clone()), state: None, limit: 1 };
            let run = journal.runs(query).await?.into_iter().next();
            run.map(|run| document(&RunBody::from(run))).transpose()
        }
        Address::Event(id) => {
            let query = EventQuery { id: Some(*id), ..EventQuery::first(1) };
            if journal.events(query).await?.is_empty() {
                return Ok(None);
            }
            let deliveries = deliveries(journal, *id).await?;
            let settled = deliveries.iter().all(DeliveryBody::is_settled);
            document(&Deliveries { delivery_id: id.to_string(), settled, deliveries }).map(Some)
        }
        Address::Delivery(id) => {
            let found = deliveries(journal, id.event).await?.into_iter().find(|one| one.id == *id);
            found.map(|delivery| document(&delivery)).transpose()
        }
        Address::History => {
            let query = EventQuery { newest_first: true, ..EventQuery::first(LIST_LIMIT) };
            let entries = journal.events(query).await?;
            let events =
                entries.iter().map(|entry| EventBody::of(entry.cursor, &entry.event)).collect();
            document(&History { events }).map(Some)
        }
    }
}

async fn deliveries(
    journal: &dyn Journal,
    event: EventId,
) -> Result<Vec<DeliveryBody>, JournalError> {
    let query = DeliveryQuery { event: Some(event), limit: usize::MAX, ..DeliveryQuery::default() };
    Ok(journal.deliveries(query).await?.into_iter().map(DeliveryBody::from).collect())
}

fn document(value: &impl Serialize) -> Result<String, JournalError> {
    serde_json::to_string(value).map_err(|error| JournalError::Failed(error.to_string()))
}

/// Waits for changes of one document.
pub(super) struct Follower {
    journal: Arc<dyn Journal>,
    address: Address,
    doorbell: watch::Receiver<Cursor>,
    shown: Option<u64>,
}

impl Follower {
    /// Follows the document at `address` from now on.
    pub(super) async fn start(journal: Arc<dyn Journal>, address: Address) -> Self {
        // Register interest before reading, so that a change in between is not missed.
        let doorbell = journal.doorbell();
        let shown = fingerprint(journal.as_ref(), &address).await;
        Self { journal, address, doorbell, shown }
    }

    /// Waits until the document has changed. Gives false when it cannot change any more.
    pub(super) async fn changed(&mut self) -> bool {
        while self.doorbell.changed().await.is_ok() {
            tokio::time::sleep(GATHER).await;
            self.doorbell.mark_unchanged();
            let now = fingerprint(self.journal.as_ref(), &self.address).await;
            if std::mem::replace(&mut self.shown, now) != now {
                return true;
            }
        }
        false
    }
}

async fn fingerprint(journal: &dyn Journal, address: &Address) -> Option<u64> {
    // A journal that cannot be read now is read again at its next change.
    let document = read(journal, address).await.ok()??;
    let mut hasher = DefaultHasher::new();
    document.hash(&mut hasher);
    Some(hasher.finish())
}

/// The subscriptions of one connection. They end with it.
#[derive(Clone, Default)]
pub(super) struct Subscriptions(Arc<Mutex<HashMap<String, AbortOnDropHandle<()>>>>);

impl Subscriptions {
    /// Starts to tell of the resource at `uri` with `telling`, in the place of what told of it before.
    ///
    /// Gives false, and starts nothing, if there are too many.
    pub(super) fn start(
        &self,
        uri: String,
        telling: impl Future<Output = ()> + Send + 'static,
    ) -> bool {
        let mut subscriptions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = subscriptions.len() < SUBSCRIPTION_LIMIT || subscriptions.contains_key(&uri);
        if has_room {
            subscriptions.insert(uri, AbortOnDropHandle::new(tokio::spawn(telling)));
        }
        has_room
    }

    pub(super) fn remove(&self, uri: &str) {
        let mut subscriptions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(subscriptions.remove(uri));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let event = "019a9c2e-5f00-7000-8000-000000000000";
        let run = |id: &str| Address::Run(id.parse().unwrap());
        let delivery = format!("delivery://{event}.team-slack");
        for (uri, expected) in [
            ("runs://", Address::Runs),
            ("runs://backup-20240101-001", run("backup-20240101-001")),
            ("runs://a%2Fb%20%E4%BB%BB", run("a/b 任")),
            ("history://recent", Address::History),
            (
                "delivery://019a9c2e-5f00-7000-8000-000000000000",
                Address::Event(event.parse().unwrap()),
            ),
            (&delivery, Address::Delivery(format!("{event}.team-slack").parse().unwrap())),
        ] {
            assert_eq!(uri.parse(), Ok(expected), "{uri}");
        }
        for uri in ["", "runs", "runs://%ff", "delivery://7", "history://old", "file:///etc/passwd"]
        {
            assert!(uri.parse::<Address>().is_err(), "{uri}");
        }
    }
}
