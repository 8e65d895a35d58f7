//! Whether the floor of a path's loss excuses the losses of a round trip, for controllers that are
//! driven by a window.
//!
//! The floor excuses them if no queue stands, and if no more is lost than the floor explains, in this round
//! trip and in the latest ones together. A queue counts before the floor: a flow that fills a queue must make
//! room for other flows, whatever other losses the path has.

use super::packet::Packet;
use crate::loss_floor::{LossFloor, RandomLosses};
use crate::rtt::{GRANULARITY, RttEstimator};
use std::time::{Duration, Instant};

/// A queue stands if every round-trip time of a round exceeds the minimum by this share of it. Nearly all
/// queues of routers are longer, so that a sender which overflows a queue is not excused.
const QUEUE_DIVISOR: u32 = 16;
/// With fewer samples of a round, the samples of the round before count as well: a few packets may all have
/// had to wait, in a burst or for a delayed acknowledgement.
const SAMPLES: usize = 4;
/// How many losses more than the floor explains may still be chance. A few packets say little: of 80
/// packets with 0.5 % loss, two are lost in every fifteenth round trip.
const SPARE_LOSSES: f64 = 2.0;
/// About how many round trips back losses count. Over this many round trips, the spare losses are few.
const MEMORY_ROUNDS: f64 = 16.0;

/// Whether a queue stands if `rtt` is the smallest round-trip time of a round, and `min` the smallest of the
/// path.
pub(super) fn shows_queue(rtt: Duration, min: Duration) -> bool {
    rtt > min + (min / QUEUE_DIVISOR).max(GRANULARITY)
}

/// How many packets had which outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Toll {
    /// Packets in all.
    pub(super) packets: f64,
    /// How many of them were lost.
    pub(super) lost: f64,
}

impl Toll {
    /// The outcomes of `packets` packets, all of which arrived.
    pub(super) fn arrived(packets: usize) -> Self {
        Self { packets: packets as f64, lost: 0.0 }
    }

    /// The outcomes of `packets` lost packets.
    pub(super) fn lost(packets: usize) -> Self {
        Self { packets: packets as f64, lost: packets as f64 }
    }

    /// These outcomes, with `packets` of the losses refuted.
    pub(super) fn without(self, packets: usize) -> Self {
        Self { lost: (self.lost - packets as f64).max(0.0), ..self }
    }

    /// The sum of these outcomes and others.
    pub(super) fn and(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, lost: self.lost + other.lost }
    }

    /// Whether `floor` explains the losses.
    pub(super) fn is_explained_by(&self, floor: &LossFloor) -> bool {
        self.lost <= floor.most_lost(self.packets)
    }
}

/// The newest round trip.
#[derive(Debug, Clone, Default)]
pub(super) struct Excuse {
    floor: RandomLosses,
    /// When the round began: it ends when a packet is acknowledged that was sent later.
    start: Option<Instant>,
    toll: Toll,
    /// The outcomes of the rounds before, of which older ones count less.
    past: Toll,
    /// The newest round-trip times, newest first, and how many the round has had.
    newest: [Duration; SAMPLES],
    samples: usize,
    /// The smallest of the round.
    smallest: Option<Duration>,
    /// The smallest of the round before.
    previous: Option<Duration>,
    /// The smallest round-trip time of the path.
    min: Duration,
}

impl Excuse {
    /// Handles a new estimate of the floor.
    pub(super) fn on_floor(&mut self, floor: &LossFloor) {
        self.floor = floor.random();
    }

    /// The outcomes of the packets of the round trip so far.
    pub(super) fn toll(&self) -> Toll {
        self.toll
    }

    /// Handles packets that one acknowledgement acknowledges; the newest was sent at `newest`.
    pub(super) fn on_acked(
        &mut self,
        now: Instant,
        acked: &[Packet],
        newest: Instant,
        rtt: &RttEstimator,
    ) {
        if self.start.is_none_or(|start| newest > start) {
            self.begin_round(now);
        }
        self.toll = self.toll.and(Toll::arrived(acked.len()));
        self.newest.rotate_right(1);
        self.newest[0] = rtt.latest();
        self.samples = self.samples.saturating_add(1);
        self.smallest = [self.smallest, Some(rtt.latest())].into_iter().flatten().min();
        self.min = rtt.min();
    }

    fn begin_round(&mut self, now: Instant) {
        self.start = Some(now);
        let kept = 1.0 - 1.0 / MEMORY_ROUNDS;
        self.past = Toll { packets: self.past.packets * kept, lost: self.past.lost * kept };
        self.past = self.past.and(std::mem::take(&mut self.toll));
        self.previous = self.smallest.take().or(self.previous);
        self.samples = 0;
    }

    /// Handles a reaction to losses: earlier losses do not count again.
    pub(super) fn on_reaction(&mut self, now: Instant) {
        self.begin_round(now);
        self.past = Toll::default();
    }

    /// Handles `packets` losses that turn out to be spurious.
    pub(super) fn on_spurious(&mut self, packets: usize) {
        let earlier = packets.saturating_sub(self.toll.lost as usize);
        self.toll = self.toll.without(packets);
        self.past = self.past.without(earlier);
    }

    /// Handles `lost` packets to which there was no reaction yet, with `in_flight` more in flight.
    /// Returns whether the floor excuses them. `is_growing` if the window grows so fast that the
    /// queue may have filled within the round trip.
    pub(super) fn excuses(&mut self, lost: usize, in_flight: u64, is_growing: bool) -> bool {
        self.toll = self.toll.and(Toll::lost(lost));
        if self.floor.rate <= 0.0 || is_growing && self.is_queue_filling() {
            return false;
        }
        // Not all outcomes of the round are known: the round has at least as many packets as are in flight.
        let flight = self.toll.lost + in_flight as f64;
        let round = Toll { packets: self.toll.packets.max(flight), ..self.toll };
        let is_usual = |toll: Toll| toll.lost <= self.floor.most_lost(toll.packets) + SPARE_LOSSES;
        !self.is_queue_standing() && is_usual(round) && is_usual(round.and(self.past))
    }

    /// Whether a queue stands, so that every packet of a round trip has to wait. As long as little is known,
    /// a queue is assumed.
    pub(super) fn is_queue_standing(&self) -> bool {
        let previous = self.previous.filter(|_| self.samples < SAMPLES);
        let smallest = [self.smallest, previous].into_iter().flatten().min();
        smallest.is_none_or(|rtt| shows_queue(rtt, self.min))
    }

    /// Whether the newest packets found a queue.
    fn is_queue_filling(&self) -> bool {
        self.newest.iter().all(|rtt| shows_queue(*rtt, self.min))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SpaceId;
    use crate::{PacketState, Sent};

    const MS: Duration = Duration::from_millis(1);

    fn floor(rate: f64) -> LossFloor {
        LossFloor { rate, low: rate, high: rate, ..LossFloor::default() }
    }

    /// Acknowledges packets with these round-trip times, round by round.
    fn after(rounds: &[&[u32]]) -> Excuse {
        let (mut start, mut excuse) = (Instant::now(), Excuse::default());
        let mut rtt = RttEstimator::default();
        for samples in rounds {
            for (&sample, pn) in samples.iter().zip(1u32..) {
                let sent = start + MS / 8 * pn;
                let now = sent + sample * MS;
                rtt.update(now, sample * MS, Duration::ZERO);
                let packet = Sent::new(SpaceId::Data, pn.into(), 1_000);
                let acked = [Packet::new(&packet, sent, PacketState::default())];
                excuse.on_acked(now, &acked, sent, &rtt);
            }
            start += 1_000 * MS;
        }
        excuse
    }

    #[test]
    fn a_queue_stands_while_no_packet_of_a_round_finds_it_empty() {
        assert!(after(&[]).is_queue_standing(), "too little is known");
        assert!(!after(&[&[100, 120, 120, 120, 120]]).is_queue_standing(), "a burst");
        assert!(!after(&[&[100], &[107, 107, 106, 107]]).is_queue_standing());
        assert!(after(&[&[100], &[107, 107, 107, 107]]).is_queue_standing());
        assert!(!after(&[&[100], &[107, 107, 107]]).is_queue_standing(), "few samples");
        assert!(!after(&[&[1, 2, 2], &[2, 2, 2, 2]]).is_queue_standing(), "what timers cause");
    }

    #[test]
    fn the_floor_excuses_its_share_of_a_round() {
        let mut excuse = after(&[&[100; 60]]);
        assert!(!excuse.clone().excuses(1, 99, false), "no floor is known");
        excuse.on_floor(&floor(0.02));
        // Of 100 packets 2, twice 1.4 more, and 2 to spare.
        assert!(excuse.excuses(6, 94, false));
        assert!(!excuse.excuses(1, 93, false));
        excuse.on_reaction(Instant::now());
        assert!(excuse.excuses(1, 60, false), "the reaction was for the others");
    }

    #[test]
    fn nothing_is_excused_while_a_queue_stands() {
        let mut excuse = after(&[&[100], &[130; 5]]);
        excuse.on_floor(&floor(0.1));
        assert!(!excuse.excuses(1, 99, false));
        // The queue has filled within this round.
        let mut excuse = after(&[&[100, 103, 107, 107, 107, 107]]);
        excuse.on_floor(&floor(0.1));
        assert!(excuse.clone().excuses(1, 99, false) && !excuse.excuses(1, 99, true));
    }

    #[test]
    fn what_is_chance_in_a_round_is_none_in_many() {
        let mut excuse = after(&[&[100; 4]]);
        excuse.on_floor(&floor(0.01));
        let (mut now, mut rtt) = (Instant::now() + 5_000 * MS, RttEstimator::default());
        rtt.update(now, 100 * MS, Duration::ZERO);
        let mut excused = 0;
        // One of ten packets is lost, round after round.
        while excuse.excuses(1, 9, false) {
            let packets = (0..9).map(|pn| {
                let packet = Sent::new(SpaceId::Data, pn, 1_000);
                Packet::new(&packet, now - 100 * MS, PacketState::default())
            });
            let acked: Vec<_> = packets.collect();
            excuse.on_acked(now, &acked, now - 100 * MS, &rtt);
            now += 200 * MS;
            excused += 1;
            assert!(excused < 10);
        }
        assert!(excused > 1, "{excused}");
    }
}
