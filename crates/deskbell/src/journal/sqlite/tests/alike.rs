//! The same writes give the same visible state in memory and in the file.

use proptest::prelude::*;

use super::*;
use crate::journal::{
    memory::MemoryJournal,
    suite::{channel, delivery_id, id, run},
};

const CHANNELS: [&str; 3] = ["a", "b", "c"];
const RUNS: [&str; 2] = ["r", "s"];

/// One thing that somebody asks of a journal. Small numbers, so that they meet.
#[derive(Debug, Clone)]
enum Ask {
    Accept {
        key: Option<u8>,
        old_id: bool,
        sort: Sort,
        plan: Vec<(usize, Option<i64>, u8)>,
    },
    Claim {
        seconds: i64,
        room: Vec<(usize, usize)>,
    },
    /// The outcome of one of the latest claims, told perhaps too late or twice.
    Outcome {
        which: usize,
        off_by: u32,
        kind: u8,
        seconds: i64,
    },
    Retry {
        which: u64,
        channel: usize,
        seconds: i64,
    },
    Recover {
        seconds: i64,
    },
    Prune {
        before: i64,
        limit: usize,
    },
}

#[derive(Debug, Clone)]
enum Sort {
    Notice,
    Step { run: usize, phase: usize, tracked: bool, off_by: u64 },
}

fn ask() -> impl Strategy<Value = Ask> {
    let sort = prop_oneof![
        4 => Just(Sort::Notice),
        5 => (0..RUNS.len(), 0_usize..4, any::<bool>(), prop_oneof![9 => Just(0_u64), 1 => Just(1)])
            .prop_map(|(run, phase, tracked, off_by)| Sort::Step { run, phase, tracked, off_by }),
    ];
    let due = prop_oneof![3 => Just(None), 1 => (0_i64..40).prop_map(Some)];
    let plan = prop::collection::vec((0..CHANNELS.len(), due, 0_u8..4), 0..4);
    let key = prop_oneof![2 => Just(None), 1 => (0_u8..12).prop_map(Some)];
    let room = prop::collection::vec((0..CHANNELS.len(), 0_usize..4), 0..4);
    prop_oneof![
        8 => (key, prop_oneof![19 => Just(false), 1 => Just(true)], sort, plan)
            .prop_map(|(key, old_id, sort, plan)| Ask::Accept { key, old_id, sort, plan }),
        5 => (0_i64..80, room).prop_map(|(seconds, room)| Ask::Claim { seconds, room }),
        6 => (0_usize..6, prop_oneof![9 => Just(0_u32), 1 => Just(1)], 0_u8..4, 0_i64..80)
            .prop_map(|(which, off_by, kind, seconds)| Ask::Outcome { which, off_by, kind, seconds }),
        1 => (0_u64..40, 0..CHANNELS.len(), 0_i64..80)
            .prop_map(|(which, channel, seconds)| Ask::Retry { which, channel, seconds }),
        1 => (0_i64..80).prop_map(|seconds| Ask::Recover { seconds }),
        1 => (0_i64..80, 0_usize..5).prop_map(|(before, limit)| Ask::Prune { before, limit }),
    ]
}

/// Two journals that are asked the same.
struct Pair {
    memory: MemoryJournal,
    file: SqliteJournal,
    accepted: u64,
    claimed: Vec<crate::journal::Due>,
}

impl Pair {
    async fn ask(&mut self, ask: Ask) {
        match ask {
            Ask::Accept { key, old_id, sort, plan } => self.accept(key, old_id, &sort, &plan).await,
            Ask::Claim { seconds, room } => {
                let room = room.into_iter().map(|(name, room)| (channel(CHANNELS[name]), room));
                let claim = Claim { now: at(seconds), room: room.collect() };
                let memory = self.memory.claim(claim.clone()).await.unwrap();
                let file = self.file.claim(claim).await.unwrap();
                assert_eq!(format!("{file:?}"), format!("{memory:?}"));
                self.claimed.extend(memory.due);
                let surplus = self.claimed.len().saturating_sub(6);
                self.claimed.drain(..surplus);
            }
            Ask::Outcome { which, off_by, kind, seconds } => {
                let Some(due) = self.claimed.get(which).cloned() else { return };
                let outcome = match kind {
                    0 => sent(Some(&format!("m{}", self.accepted))),
                    1 => sent(None),
                    2 => retry_at(seconds),
                    _ => suite::given_up(),
                };
                let attempt = due.attempt - off_by;
                let at = at(seconds);
                self.put(Write::Outcome { delivery: due.id, attempt, at, outcome }).await;
            }
            Ask::Retry { which, channel, seconds } => {
                let delivery = delivery_id(which, CHANNELS[channel]);
                self.put(Write::Retry { delivery, at: at(seconds) }).await;
            }
            Ask::Recover { seconds } => self.put(Write::Recover { at: at(seconds) }).await,
            Ask::Prune { before, limit } => {
                self.put(Write::Prune { before: at(before), limit }).await;
            }
        }
    }

    async fn accept(
        &mut self,
        key: Option<u8>,
        old_id: bool,
        sort: &Sort,
        plan: &[(usize, Option<i64>, u8)],
    ) {
        let number = if old_id { self.accepted } else { self.accepted + 1 };
        self.accepted = number;
        let mut accept = match sort {
            Sort::Notice => accept(notice(number)),
            Sort::Step { run: name, phase, tracked, off_by } => {
                let phase = [Phase::Start, Phase::Update, Phase::End, Phase::Error][*phase];
                let step = accept(step(number, RUNS[*name], phase));
                let query = RunQuery { id: Some(run(RUNS[*name])), state: None, limit: 1 };
                let steps =
                    self.memory.runs(query).await.unwrap().first().map_or(0, |run| run.steps);
                let state = if phase.is_terminal() { RunState::Ended } else { RunState::Open };
                if *tracked { step.run(steps + off_by, state) } else { step }
            }
        };
        for (name, due, planned) in plan {
            let replaces = match planned {
                0 => Replaces::Nothing,
                1 | 2 => suite::UPDATES,
                _ => Replaces::UpdatesAtOnce,
            };
            let due_at = due.map_or(accept.event.at, at);
            // What steps replace says of notices how they are grouped.
            accept = match (sort, planned) {
                (Sort::Notice, 1..) => {
                    let said = (
                        ["g", "h"][usize::from(*planned) % 2],
                        if number.is_multiple_of(2) { "x" } else { "y" },
                    );
                    let repeat = (*planned == 3).then_some(20);
                    accept.grouped(CHANNELS[*name], due_at, said, repeat)
                }
                _ => accept.due(&[CHANNELS[*name]], due_at, replaces),
            };
        }
        if let Some(name) = key {
            accept = accept.key(suite::key("s", &name.to_string()));
        }
        self.put(accept.write()).await;
    }

    async fn put(&self, write: Write) {
        let memory = put(&self.memory, write.clone()).await;
        assert_eq!(put(&self.file, write).await, memory);
    }

    async fn compare(&self) {
        assert_eq!(all(&self.file).await, all(&self.memory).await);
        for state in [DeliveryState::Pending, DeliveryState::Superseded] {
            let query = DeliveryQuery { state: Some(state), limit: 99, ..DeliveryQuery::default() };
            let found = self.file.deliveries(query.clone()).await.unwrap();
            assert_eq!(found, self.memory.deliveries(query).await.unwrap());
        }
        assert_eq!(
            suite::all_deliveries(&self.file).await,
            suite::all_deliveries(&self.memory).await
        );
        let runs = || RunQuery { id: None, state: None, limit: 99 };
        assert_eq!(self.file.runs(runs()).await.unwrap(), self.memory.runs(runs()).await.unwrap());
        for name in RUNS {
            let query =
                EventQuery { run: Some(run(name)), newest_first: true, ..EventQuery::first(99) };
            let found = suite::found(&self.file, query.clone()).await;
            assert_eq!(found, suite::found(&self.memory, query).await);
        }
        assert_eq!(*self.file.doorbell().borrow(), *self.memory.doorbell().borrow());
        let query = EventQuery { id: Some(id(1)), ..EventQuery::first(9) };
        let found = suite::found(&self.file, query.clone()).await;
        assert_eq!(found, suite::found(&self.memory, query).await);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_file_is_like_the_memory(asks in prop::collection::vec(ask(), 1..60), reopen in 0_usize..60) {
        let folder = folder();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let open = || SqliteJournal::open(&file(&folder)).unwrap();
            let mut pair =
                Pair { memory: MemoryJournal::default(), file: open(), accepted: 0, claimed: Vec::new() };
            for (index, ask) in asks.into_iter().enumerate() {
                if index == reopen {
                    let Pair { memory, file, accepted, claimed } = pair;
                    drop(file);
                    pair = Pair { memory, file: open(), accepted, claimed };
                }
                pair.ask(ask).await;
            }
            pair.compare().await;
        });
    }
}
