//! Events of a coding session.

use crate::conformance::CENTURY;
use crate::fec::redundancy::{Message, PathView, Stage};
use crate::loss_floor::LossFloor;
use std::time::{Duration, Instant};
use sutura_random::Rng;

/// One step of a history. The player selects the symbols.
#[derive(Debug, Clone, Copy)]
pub(super) enum SessionStep {
    /// Time passes.
    Wait(Duration),
    /// The application writes data for this many symbols; `ended` if there will be no more.
    Write { symbols: u64, ended: bool },
    /// This many free slots in packets. In each, other data of the connection goes first with a
    /// probability of `taken` percent.
    Slots { count: u64, taken: u64 },
    /// Packets with symbols are acknowledged, some of them after they were declared lost.
    Acknowledge { most: u64 },
    /// The peer recovers symbols.
    Recover { most: u64 },
    /// Packets with symbols are declared lost.
    Lose { most: u64 },
    /// Lost symbols are sent again.
    Resend { most: u64 },
    /// Repair symbols were acknowledged or lost.
    Settle { most: u64 },
    /// Symbols that are not known to have arrived are no longer needed.
    GiveUp,
    /// The state of the connection changes: flow-control credit and whether it is idle.
    Surround { credit: u64, idle: bool },
    /// The application announces a message, and when it will write the next one.
    Announce { size: u64, tolerance: Option<Duration>, next: Option<Duration> },
    /// The properties of the path change.
    Move(PathNumbers),
    /// Only redundancy is sent, until the policy wants no more.
    Rest,
}

impl SessionStep {
    pub(super) fn any(random: &mut Rng) -> Self {
        match random.below(40) {
            0..5 => Self::Wait(Duration::from_micros(random.below(80_000))),
            5 => Self::Wait(Duration::from_secs(random.below(3_600))),
            6..11 => Self::Write { symbols: 1 + random.below(12), ended: random.below(6) == 0 },
            11..21 => Self::Slots { count: 1 + random.below(16), taken: random.below(100) },
            21..25 => Self::Acknowledge { most: 1 + random.below(12) },
            25..27 => Self::Recover { most: 1 + random.below(4) },
            27..30 => Self::Lose { most: 1 + random.below(6) },
            30..32 => Self::Resend { most: 1 + random.below(6) },
            32..34 => Self::Settle { most: 1 + random.below(8) },
            34 => Self::Surround { credit: extreme(random), idle: random.below(2) == 0 },
            35 => Self::Announce {
                size: extreme(random),
                tolerance: tolerance(random),
                next: tolerance(random),
            },
            36 => Self::Move(PathNumbers::any(random)),
            37 => Self::Rest,
            _ => Self::rare(random),
        }
    }

    fn rare(random: &mut Rng) -> Self {
        match random.below(6) {
            0 => Self::Wait(CENTURY),
            1 => Self::GiveUp,
            // All symbols have arrived.
            2 => Self::Acknowledge { most: u64::MAX },
            3 => Self::Recover { most: u64::MAX },
            4 => Self::Lose { most: u64::MAX },
            _ => Self::Settle { most: u64::MAX },
        }
    }
}

/// Zero, a usual number, or as much as possible.
fn extreme(random: &mut Rng) -> u64 {
    [0, 1, 14_000, 1 << 20, u64::MAX][random.below(5) as usize]
}

fn tolerance(random: &mut Rng) -> Option<Duration> {
    [None, Some(Duration::ZERO), Some(Duration::from_millis(100)), Some(CENTURY)]
        [random.below(4) as usize]
}

/// A [`PathView`] in numbers that can be compared, unlike the view itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathNumbers {
    rtt: Duration,
    min_rtt: Duration,
    pto: Duration,
    loss_percent: u32,
    window: u64,
    in_flight: u64,
    held_percent: u32,
    silent: bool,
}

impl PathNumbers {
    fn any(random: &mut Rng) -> Self {
        let rtt = match random.below(6) {
            0 => Duration::ZERO,
            1 => Duration::from_nanos(1),
            2 => CENTURY,
            _ => Duration::from_micros(random.below(300_000)),
        };
        let min_rtt = [Duration::ZERO, rtt / 2, rtt][random.below(3) as usize];
        let pto = [rtt, rtt + Duration::from_millis(1), rtt * 3][random.below(3) as usize];
        let loss_percent = [0, 1, 30, 100][random.below(4) as usize];
        let (window, in_flight) = (extreme(random), extreme(random));
        let held_percent = [0, 50, 100][random.below(3) as usize];
        let silent = random.below(8) == 0;
        Self { rtt, min_rtt, pto, loss_percent, window, in_flight, held_percent, silent }
    }

    pub(super) fn view(&self) -> PathView {
        let Self { rtt, min_rtt, pto, loss_percent, window, in_flight, held_percent, silent } =
            *self;
        let held = f64::from(held_percent) / 100.0;
        let loss = f64::from(loss_percent) / 100.0;
        let floor = LossFloor::default().with_rate(loss / 2.0).with_high(loss);
        let rtt_variation = rtt.abs_diff(min_rtt);
        let (outcomes, burst) = (100, 1.0 + 4.0 * loss);
        PathView {
            rtt,
            min_rtt,
            rtt_variation,
            pto,
            loss,
            burst,
            outcomes,
            floor,
            window,
            in_flight,
            held,
            silent,
        }
    }
}

/// A message of `size` bytes that is announced at `now`.
pub(super) fn message(now: Instant, size: u64, tolerance: Option<Duration>) -> Message {
    let deadline = tolerance.and_then(|tolerance| now.checked_add(tolerance));
    let stage = if size.is_multiple_of(4) { Stage::First } else { Stage::Apart };
    Message { deadline, size, stage }
}
