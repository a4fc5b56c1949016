//! Carries deliveries out: takes what is due, tries it, records what it came to.
//!
//! One loop owns a lane for each channel. Whatever wakes it, it asks each lane how many attempts it has room for,
//! takes that much from the journal in one claim, and starts an attempt for each delivery as a task of its own. So a
//! channel that is slow, hangs or panics fills its own lane and delays no other.
//!
//! Nothing is kept here that a restart needs: what is due, what was in flight and what it came to is in the journal.

mod attempt;
mod due;
pub mod health;
mod lane;

#[cfg(test)]
mod noise_tests;
#[cfg(test)]
pub(crate) mod scripted;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use deskbell_core::{ChannelName, clock::Clock, delivery::DeliveryState};
use jiff::Timestamp;
use tokio::{
    sync::{mpsc, watch},
    task::{Id, JoinError, JoinSet},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{error, info, warn};

pub use health::{ChannelHealth, Flow, Health};

use crate::{
    channel_set::ChannelSet,
    dispatch::{
        attempt::{Attempt, Came},
        lane::Lane,
    },
    journal::{Cursor, DeliveryQuery, Due, Journal},
};

/// How many attempts of one channel are under way at the same time.
pub const IN_FLIGHT_PER_CHANNEL: usize = 8;

/// How long attempts that are under way may go on when the program stops. What is not done by then is aborted, and
/// tried again at the next start as maybe repeated.
pub const STOP_GRACE: Duration = Duration::from_secs(5);

/// The longest sleep, so that a wall clock that was set forward is noticed.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// The least time between two looks at what is due. Each costs the journal's writer two look-ups for each channel, and
/// under load every commit rings.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// How many pending deliveries are looked at to find those whose channel is no longer configured.
const ORPHANS_LOOKED_AT: usize = 1_000;

/// Starts to carry out what is due in `journal`, now and until `stop`; returns how the channels do.
///
/// Channels may change at any time: attempts that are under way end as they began, and deliveries to a channel that
/// is gone wait until it is back. A channel that `trials` names is tried at once, however often it failed.
pub fn start(
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    channels: watch::Receiver<Arc<ChannelSet>>,
    trials: mpsc::Receiver<ChannelName>,
    tasks: &TaskTracker,
    stop: CancellationToken,
) -> watch::Receiver<Health> {
    let (health, shown) = watch::channel(Health::default());
    let set = Arc::clone(&channels.borrow());
    let dispatch = Dispatch {
        bell: journal.doorbell(),
        set,
        steady: SteadyClock { start: clock.now(), begun: Instant::now() },
        journal,
        clock,
        channels,
        trials,
        lanes: BTreeMap::new(),
        flights: HashMap::new(),
        attempts: JoinSet::new(),
        orphans: HashSet::new(),
        claim_failures: 0,
        health,
    };
    tasks.spawn(dispatch.run(stop));
    shown
}

/// Everything that wakes the loop.
enum Wake {
    /// Something was committed.
    Bell,
    /// Something falls due, or a lane opens again.
    Timer,
    /// An attempt is over and recorded.
    Landed(Result<(Id, Came), JoinError>),
    /// The configuration changed.
    Channels,
    /// Somebody wants to know whether this channel works.
    Trial(ChannelName),
    /// The program ends.
    Stop,
}

struct Dispatch {
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    /// What the lanes reckon with, so that a wall clock that is set back does not close them for hours.
    steady: SteadyClock,
    bell: watch::Receiver<Cursor>,
    channels: watch::Receiver<Arc<ChannelSet>>,
    trials: mpsc::Receiver<ChannelName>,
    set: Arc<ChannelSet>,
    lanes: BTreeMap<ChannelName, Lane>,
    attempts: JoinSet<Came>,
    /// The channel of each task in `attempts`, and when it began.
    flights: HashMap<Id, (ChannelName, Timestamp)>,
    /// Channels that are not configured although something waits for them; each is told once.
    orphans: HashSet<ChannelName>,
    claim_failures: u32,
    health: watch::Sender<Health>,
}

impl Dispatch {
    async fn run(mut self, stop: CancellationToken) {
        if stop.run_until_cancelled(attempt::recover(&*self.journal, &*self.clock)).await.is_none()
        {
            return;
        }
        self.adopt_channels().await;
        loop {
            // A lane that an attempt has closed meanwhile must not be asked before it knows.
            while let Some(landed) = self.attempts.try_join_next_with_id() {
                self.land(landed);
            }
            let looked = Instant::now();
            let next_look = self.look().await;
            self.tell_health();
            match self.wait(next_look, &stop).await {
                Wake::Stop => break,
                Wake::Channels => self.adopt_channels().await,
                Wake::Landed(landed) => self.land(landed),
                Wake::Trial(channel) => self.ask_for_trial(&channel),
                Wake::Bell | Wake::Timer => {}
            }
            tokio::time::sleep_until(looked + BETWEEN_LOOKS).await;
        }
        self.finish().await;
    }

    async fn wait(&mut self, next_look: Instant, stop: &CancellationToken) -> Wake {
        tokio::select! {
            // Without an order, a stop would lose against a busy journal for a while.
            biased;
            () = stop.cancelled() => Wake::Stop,
            () = changed(&mut self.channels) => Wake::Channels,
            Some(channel) = self.trials.recv() => Wake::Trial(channel),
            Some(landed) = self.attempts.join_next_with_id() => Wake::Landed(landed),
            () = changed(&mut self.bell) => Wake::Bell,
            () = tokio::time::sleep_until(next_look) => Wake::Timer,
        }
    }

    /// Fits the lanes to the newest channels. Lanes with attempts under way stay until these are over.
    async fn adopt_channels(&mut self) {
        self.set = Arc::clone(&self.channels.borrow_and_update());
        for (name, lane) in &mut self.lanes {
            lane.adopt(self.set.get(name));
        }
        for (name, ready) in self.set.iter() {
            self.lanes.entry(name.clone()).or_insert_with(|| Lane::new(Arc::clone(ready)));
        }
        self.lanes.retain(|_, lane| !lane.is_done());
        self.forget_health();
        self.tell_orphans().await;
    }

    /// Shows no longer how channels do that have no lane.
    fn forget_health(&self) {
        self.health.send_modify(|health| {
            health.channels.retain(|name, _| self.lanes.contains_key(name));
        });
    }

    /// Says once of each channel that is gone that something waits for it.
    async fn tell_orphans(&mut self) {
        self.orphans.retain(|name| self.set.get(name).is_none());
        let query = DeliveryQuery {
            state: Some(DeliveryState::Pending),
            limit: ORPHANS_LOOKED_AT,
            ..DeliveryQuery::default()
        };
        // A journal that fails here fails the next claim as well, which says so.
        for delivery in self.journal.deliveries(query).await.unwrap_or_default() {
            let name = delivery.id.channel;
            if self.set.get(&name).is_none() && self.orphans.insert(name.clone()) {
                warn!(channel.name = %name, "deliveries to {name} wait, because no channel of this name works");
            }
        }
    }

    fn begin(&mut self, due: Due) {
        let Some((lane, ready)) = self
            .lanes
            .get_mut(&due.id.channel)
            .and_then(|lane| lane.ready().cloned().map(|ready| (lane, ready)))
        else {
            // The journal gives only what was asked for. If it did not, the delivery is recovered at the next start.
            error!(delivery.id = %due.id, "the journal gave a delivery that nobody asked for");
            return;
        };
        let began = self.steady.now();
        lane.launch();
        let channel = due.id.channel.clone();
        let attempt = Attempt {
            due,
            ready,
            options: self.set.delivery.clone(),
            journal: Arc::clone(&self.journal),
            clock: Arc::clone(&self.clock),
        };
        let task = self.attempts.spawn(attempt.carry_out());
        self.flights.insert(task.id(), (channel, began));
    }

    fn ask_for_trial(&mut self, channel: &ChannelName) {
        if let Some(lane) = self.lanes.get_mut(channel) {
            lane.ask_for_trial(self.steady.now());
        }
    }

    /// Takes in an attempt that is over.
    fn land(&mut self, landed: Result<(Id, Came), JoinError>) {
        let (task, came) = match landed {
            Ok((task, came)) => (task, Some(came)),
            Err(error) => {
                error!("an attempt ended unrecorded: {error}");
                (error.id(), None)
            }
        };
        let Some((channel, began)) = self.flights.remove(&task) else { return };
        let Some(lane) = self.lanes.get_mut(&channel) else { return };
        lane.land(&channel, came, began, self.steady.now(), self.clock.now());
        if lane.is_done() {
            self.lanes.remove(&channel);
            self.forget_health();
        }
    }

    /// Shows how the lanes that changed do.
    fn tell_health(&self) {
        let (now, steady) = (self.clock.now(), self.steady.now());
        self.health.send_if_modified(|health| {
            let mut changed = false;
            for (name, lane) in &self.lanes {
                let shown = lane.health(now, steady);
                if health.channels.get(name) != Some(&shown) {
                    health.channels.insert(name.clone(), shown);
                    changed = true;
                }
            }
            changed
        });
    }

    /// Waits for the attempts under way, at most [`STOP_GRACE`].
    async fn finish(mut self) {
        let ended = tokio::time::timeout(STOP_GRACE, async {
            while let Some(landed) = self.attempts.join_next_with_id().await {
                self.land(landed);
            }
        });
        if ended.await.is_err() {
            let left = self.attempts.len();
            info!("{left} attempts were cut off; they are tried again at the next start");
            self.attempts.shutdown().await;
        }
    }
}

/// Waits for a change; a sender that is gone makes none.
async fn changed<T>(receiver: &mut watch::Receiver<T>) {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Times that go forward as time passes, whatever is done to the wall clock.
#[derive(Debug, Clone, Copy)]
struct SteadyClock {
    start: Timestamp,
    begun: Instant,
}

impl SteadyClock {
    fn now(&self) -> Timestamp {
        self.start.checked_add(self.begun.elapsed()).unwrap_or(Timestamp::MAX)
    }
}
