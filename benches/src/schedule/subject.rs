//! The subjects of the measurements: schedulers full of streams.

use crate::stand_in::{OrderedSet, PriorityHeap};
use crate::{Error, Workload};
use serde::{Serialize, Serializer};
use std::fmt;
use std::hint::black_box;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use sutura_benches::cpu;
use sutura_research::schedulers;
use sutura_research::stacks::Preset;
use sutura_schedule::{Class, Priority, Scheduler, StreamKey, Weight};

/// The bytes of a full packet.
const PACKET: usize = 1200;
/// The step from one client-initiated bidirectional stream to the next.
const STEP: StreamKey = 4;

/// A scheduler, or a stand-in, that decides whose turn it is.
pub trait Subject {
    /// Makes `decisions` decisions, and returns how long they took.
    fn run(&mut self, workload: Workload, decisions: u32) -> Duration;
}

/// The names of all subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// A scheduler of ours.
    Scheduler(&'static str),
    /// See [`PriorityHeap`].
    FormOfQuinn,
    /// See [`OrderedSet`].
    FormOfQuiche,
}

impl Name {
    pub fn all() -> impl Iterator<Item = Self> {
        let all = schedulers();
        let names = all.entries().iter().map(|entry| entry.name);
        let names: Vec<_> = names.filter(|name| Preset::by_name(name).is_none()).collect();
        let ours = names.into_iter().map(Self::Scheduler);
        ours.chain([Self::FormOfQuinn, Self::FormOfQuiche])
    }

    /// Whether the scheduler reads [`Priority::parents`]; to other schedulers, all trees are alike.
    pub fn has_classes(self) -> bool {
        matches!(self, Self::Scheduler("hmm" | "hls"))
    }

    pub fn build(self, streams: u64, depth: u32) -> Result<Box<dyn Subject>, Error> {
        Ok(match self {
            Self::Scheduler(name) => {
                Box::new(Full::new(schedulers().find(name)?.build(), streams, depth))
            }
            Self::FormOfQuinn => Box::new(PriorityHeap::new(streams)),
            Self::FormOfQuiche => Box::new(OrderedSet::new(streams)),
        })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Scheduler(name) => name,
            Self::FormOfQuinn => "form-of-quinn",
            Self::FormOfQuiche => "form-of-quiche",
        })
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::all().find(|known| known.to_string() == name).ok_or_else(|| {
            let names: Vec<String> = Self::all().map(|known| known.to_string()).collect();
            format!("expected one of: {}", names.join(", "))
        })
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A scheduler in which every stream has data to send.
struct Full {
    scheduler: Box<dyn Scheduler>,
    /// The priorities of the first streams. A stream that takes the place of stream `n` later has the same
    /// priority.
    priorities: Vec<Priority>,
}

impl Full {
    fn new(mut scheduler: Box<dyn Scheduler>, streams: u64, depth: u32) -> Self {
        let priorities: Vec<_> = (0..streams).map(|n| priority(n, streams, depth)).collect();
        for (priority, stream) in priorities.iter().zip((0..).step_by(STEP as usize)) {
            scheduler.insert(stream, priority.clone());
            scheduler.activate(stream);
        }
        Self { scheduler, priorities }
    }

    /// Ends a stream, and starts a stream of the same priority.
    fn replace(&mut self, stream: StreamKey) {
        let streams = self.priorities.len() as u64;
        let index = (stream / STEP % streams.max(1)) as usize;
        let Some(priority) = self.priorities.get(index) else {
            return;
        };
        let new = stream + STEP * streams;
        self.scheduler.remove(stream);
        self.scheduler.insert(new, priority.clone());
        self.scheduler.activate(new);
    }
}

impl Subject for Full {
    fn run(&mut self, workload: Workload, decisions: u32) -> Duration {
        let start = cpu::now();
        for _ in 0..decisions {
            let Some(grant) = black_box(self.scheduler.next(PACKET)) else {
                break;
            };
            self.scheduler.charge(grant.stream, grant.bytes);
            match workload {
                Workload::Backlogged => {}
                Workload::Pauses => {
                    self.scheduler.deactivate(grant.stream);
                    self.scheduler.activate(grant.stream);
                }
                Workload::Replaced => self.replace(grant.stream),
            }
        }
        cpu::now().saturating_sub(start)
    }
}

/// The `n`th of `streams` streams, below `depth - 1` classes of a balanced tree. All streams are incremental,
/// and the weights go from 1 to 1.6.
fn priority(n: u64, streams: u64, depth: u32) -> Priority {
    let fan = (streams as f64).powf(1.0 / f64::from(depth)).ceil().max(2.0) as u64;
    let weight = |n: u64| Weight::new(1000 + 100 * (n % 7) as u32).unwrap_or_default();
    let mut parents = Vec::new();
    let mut class = n;
    for _ in 1..depth {
        class /= fan;
        parents.push(
            Class::default()
                .with_name(Some(Arc::from(format!("class {class}"))))
                .with_incremental(true)
                .with_weight(weight(class)),
        );
    }
    Priority::default()
        .with_incremental(true)
        .with_weight(weight(n))
        .with_parents((!parents.is_empty()).then(|| parents.into()))
        // Every second stream has a deadline, so that both parts of the scheme with deadlines are full.
        .with_deadline(n.is_multiple_of(2).then_some(n))
}
