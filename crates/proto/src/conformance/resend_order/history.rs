//! Events of a connection's streams.

use sutura_random::Rng;
use sutura_schedule::{Priority, StreamKey, Urgency};

/// One step of a history. The player selects the stream.
#[derive(Debug, Clone)]
pub(super) enum QueueStep {
    /// A stream is opened.
    Insert(Priority),
    /// A stream is removed; `cleared` if its waiting frames were dequeued before.
    Remove { cleared: bool },
    /// The priority of a stream changes.
    Reprioritize(Priority),
    /// This many frames of a stream are lost.
    Lose(u64),
    /// Up to this many frames of a stream arrive late.
    Arrive(u64),
    /// The next frame is sent, this many times.
    Send(u64),
    /// Bytes of a stream were sent again together with bytes of another.
    Charge(usize),
}

impl QueueStep {
    pub(super) fn any(random: &mut Rng) -> Self {
        match random.below(16) {
            0..2 => Self::Insert(priority(random)),
            2 if random.below(2) == 0 => Self::Remove { cleared: random.below(2) == 0 },
            2 | 3 => Self::Reprioritize(priority(random)),
            4..8 => Self::Lose(1 + random.below(6)),
            8 => Self::Lose(1 + random.below(200)),
            9..11 => Self::Arrive(random.below(8)),
            11 => Self::Arrive(u64::MAX),
            12..15 => Self::Send(1 + random.below(12)),
            _ => Self::Charge([0, 1, 1_200, 1 << 40][random.below(4) as usize]),
        }
    }
}

fn priority(random: &mut Rng) -> Priority {
    let urgency = Urgency::new(random.below(9) as u8).unwrap_or(Urgency::CONTROL);
    let deadline = (random.below(2) == 0).then(|| random.below(1_000));
    let incremental = random.below(2) == 0;
    Priority::default().with_urgency(urgency).with_incremental(incremental).with_deadline(deadline)
}

/// The `index`-th stream of a connection. Some identifiers are as large as possible.
pub(super) fn key(index: u64) -> StreamKey {
    if index % 8 == 5 { (1 << 62) - 1 - index } else { 4 * index }
}
