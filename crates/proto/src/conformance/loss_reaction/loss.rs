//! Losses as a connection can report them.

use crate::conformance::CENTURY;
use crate::ids::StreamId;
use crate::loss_reaction::LostData;
use crate::wire::coding::VARINT_MAX;
use std::ops::Range;
use std::time::{Duration, Instant};
use sutura_random::Rng;

/// A report of lost data.
#[derive(Debug, Clone)]
pub(super) struct Loss {
    /// The time of the report.
    pub(super) now: Instant,
    pub(super) data: LostData,
}

impl Loss {
    /// A random loss at or after `earliest`.
    pub(super) fn any(random: &mut Rng, earliest: Instant) -> Self {
        let rtt = time(random);
        let pto = rtt + [Duration::ZERO, Duration::from_millis(1), rtt][random.below(3) as usize];
        let pause = if random.below(50) == 0 { CENTURY } else { time(random).min(rtt) };
        let sent = after(earliest, pause);
        let now =
            after(sent, [Duration::ZERO, rtt * 9 / 8, pto, 2 * pto][random.below(4) as usize]);
        let (range, fin) = frame(random);
        let stream = StreamId([0, 4, VARINT_MAX][random.below(3) as usize]);
        let mut data = LostData { fin, ..LostData::new(stream, range, sent, rtt, pto) };
        data.deadline = deadline(random, earliest, now);
        if random.below(3) > 0 {
            data = protected(random, data, now);
        }
        Self { now, data }
    }
}

fn after(start: Instant, time: Duration) -> Instant {
    start.checked_add(time).unwrap_or(start)
}

fn time(random: &mut Rng) -> Duration {
    match random.below(16) {
        0 => Duration::ZERO,
        1 => Duration::from_nanos(1),
        2 => Duration::from_secs(random.below(600)),
        3 if random.below(8) == 0 => CENTURY,
        _ => Duration::from_micros(random.below(300_000)),
    }
}

/// The range of a STREAM frame and whether it has FIN. It is empty only if the frame ends the
/// stream.
fn frame(random: &mut Rng) -> (Range<u64>, bool) {
    let start = [0, 1_200, random.below(VARINT_MAX - 2_000)][random.below(3) as usize];
    let len = [0, 1, 1_200, 1_452][random.below(4) as usize];
    let end = if random.below(16) == 0 { VARINT_MAX } else { start + len };
    (start..end, start == end || random.below(4) == 0)
}

/// A random deadline: `passed`, now, soon or in the far future; or none.
fn deadline(random: &mut Rng, passed: Instant, now: Instant) -> Option<Instant> {
    match random.below(8) {
        0 => Some(passed),
        1 => Some(now),
        2 => Some(after(now, time(random))),
        3 => Some(after(now, CENTURY)),
        _ => None,
    }
}

/// Data covered by repair symbols, the newest of which was sent after the data; or no longer
/// covered by any.
fn protected(random: &mut Rng, data: LostData, now: Instant) -> LostData {
    let held = [0, 1, 20, u32::MAX][random.below(4) as usize];
    let repairs = [0, 1, 3, u32::MAX][random.below(4) as usize];
    let age = now.saturating_duration_since(data.sent);
    let newest = [data.sent, after(data.sent, age / 2), now][random.below(3) as usize];
    data.protected((repairs > 0).then_some(newest), repairs, held)
}
