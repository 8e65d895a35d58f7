//! The common parts of QUIRL's policies (Michel and Bonaventure, "QUIRL: Flexible QUIC Loss Recovery for Low
//! Latency Applications", IEEE/ACM Transactions on Networking 32(6), 2024): how many packets a round trip
//! with losses loses, and how much of the data in flight is protected.
//!
//! The text of the paper is not freely accessible. This module follows the published implementation
//! (francoismichel/quirl, in the state of August 2024), whose numbers changed several times before. Three
//! things differ:
//! * QUIRL counts bytes, and its symbols all have the size of a packet. Here symbols are counted, and the
//!   limit of 15 kB is twelve symbols.
//! * QUIRL counts all lost packets. A policy is told only of lost packets with source symbols.
//! * A repair symbol that has recovered data no longer counts as in flight.

use std::collections::BTreeSet;
use std::time::Instant;
use sutura_proto::policy::{Arrival, RedundancyFactory, View};
use sutura_schedule::policies;

pub use background::Background;
pub use burst::Burst;

policies! {
    /// The policies, in the order in which they are listed.
    pub(crate) const POLICIES: dyn RedundancyFactory = [background, burst];
}

/// Up to this many symbols, 15 kB in packets of 1250 bytes, are few: a share of them is protected, whatever
/// the losses.
const FEW: u32 = 12;
/// The share of a few symbols that is protected, as numerator and denominator.
const SHARE_OF_FEW: (u32, u32) = (3, 5);
/// How many deviations, each rounded up, are added to the mean number of losses.
const DEVIATIONS: f64 = 2.0;
/// The deviation after the first losses, when there is nothing to compare them with.
const INITIAL_DEVIATION: f64 = 1.0;

/// How many repair symbols protect `symbols` source symbols in flight: a fixed share of few; for many, the
/// planned number, but at most one for every `sources` source symbols.
fn repairs(symbols: u32, sources: u32, plan: Option<u32>) -> u32 {
    if symbols <= FEW {
        let (numerator, denominator) = SHARE_OF_FEW;
        return (symbols * numerator).div_ceil(denominator);
    }
    let limit = symbols.div_ceil(sources);
    plan.map_or(limit, |plan| plan.min(limit))
}

/// Source symbols that are in flight, as far as known.
fn in_flight(view: &View) -> u32 {
    view.unacked.saturating_sub(view.missing)
}

/// How many packets are lost in a round trip that begins with a loss. Recovered packets count as lost.
#[derive(Debug, Default)]
struct LossesPerTrip {
    /// The newest such round trip; it begins with the first loss after the previous one has ended.
    trip: Option<Trip>,
    /// The losses of earlier round trips.
    smoothed: Option<Smoothed>,
    /// Symbols that were counted when they were declared lost and may yet be reported as recovered.
    /// Symbols below the coding window are removed, so that there are never more than in the window.
    counted: BTreeSet<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Trip {
    end: Instant,
    lost: u32,
}

#[derive(Debug, Clone, Copy)]
struct Smoothed {
    mean: f64,
    deviation: f64,
}

impl LossesPerTrip {
    /// The packet with the source symbol `id` was declared lost.
    fn on_lost(&mut self, now: Instant, id: u64, view: &View) {
        self.counted = self.counted.split_off(&view.first);
        self.counted.insert(id);
        self.count(now, view);
    }

    /// The peer has the source symbol `id`.
    fn on_arrived(&mut self, now: Instant, id: u64, how: Arrival, view: &View) {
        let counted = self.counted.remove(&id);
        match how {
            Arrival::Recovered if !counted => self.count(now, view),
            Arrival::Recovered | Arrival::Acked | Arrival::Late => {}
        }
    }

    fn count(&mut self, now: Instant, view: &View) {
        if let Some(trip) = self.trip.as_mut().filter(|trip| now < trip.end) {
            trip.lost = trip.lost.saturating_add(1);
            return;
        }
        self.smoothed = self.smoothed_at(now);
        self.trip = Some(Trip { end: now + view.path.rtt, lost: 1 });
    }

    /// The mean and the deviation at `now`: a round trip counts when it is over. The weights are the same as
    /// for the round-trip time (RFC 9002, section 5.3).
    fn smoothed_at(&self, now: Instant) -> Option<Smoothed> {
        let Some(trip) = self.trip.filter(|trip| trip.end <= now) else { return self.smoothed };
        let lost = f64::from(trip.lost);
        let first = Smoothed { mean: lost, deviation: INITIAL_DEVIATION };
        Some(self.smoothed.map_or(first, |Smoothed { mean, deviation }| Smoothed {
            deviation: 0.75 * deviation + 0.25 * (lost - mean).abs(),
            mean: 0.875 * mean + 0.125 * lost,
        }))
    }

    /// How many losses to prepare for in the next round trip that begins with a loss; `None` before the first
    /// is over.
    fn most(&self, now: Instant) -> Option<u32> {
        let Smoothed { mean, deviation } = self.smoothed_at(now)?;
        Some((mean + DEVIATIONS * deviation.ceil()).ceil() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::with;
    use std::time::Duration;

    const RTT: Duration = Duration::from_millis(100);

    fn view(first: u64) -> View {
        with(View::default(), |view| {
            (view.first, view.next, view.unacked) = (first, first + 50, 50);
            view.path.rtt = RTT;
        })
    }

    #[test]
    fn losses_of_one_round_trip_count_together() {
        let (now, v) = (Instant::now(), view(0));
        let mut losses = LossesPerTrip::default();
        for id in 0..4 {
            losses.on_lost(now + RTT * id / 5, id.into(), &v);
            assert_eq!(losses.most(now + RTT * id / 5), None, "it is not over");
        }
        let over = now + RTT;
        // Four losses, and twice the initial deviation of one.
        assert_eq!((losses.most(over), losses.most(over)), (Some(6), Some(6)));
        // Then two losses: the mean is 7/8 of 4 and 1/8 of 2 is 3.75, the deviation 3/4 of 1 and 1/4 of 2 is
        // 1.25, rounded up 2.
        losses.on_lost(over, 10, &v);
        losses.on_lost(over, 11, &v);
        assert_eq!(losses.most(over), Some(6), "it is not over");
        assert_eq!(losses.most(over + RTT), Some(8));
    }

    #[test]
    fn what_is_recovered_was_lost_once() {
        let (now, v) = (Instant::now(), view(0));
        let mut losses = LossesPerTrip::default();
        losses.on_arrived(now, 1, Arrival::Acked, &v);
        losses.on_arrived(now, 2, Arrival::Late, &v);
        assert!(losses.trip.is_none());
        losses.on_lost(now, 3, &v);
        losses.on_arrived(now, 3, Arrival::Recovered, &v);
        losses.on_arrived(now, 4, Arrival::Recovered, &v);
        assert_eq!(losses.trip.map(|trip| trip.lost), Some(2));
    }

    #[test]
    fn what_left_the_window_is_forgotten() {
        let now = Instant::now();
        let mut losses = LossesPerTrip::default();
        (0..10_000).for_each(|id| losses.on_lost(now, id, &view(id.saturating_sub(49))));
        assert!(losses.counted.len() <= 50);
    }

    #[test]
    fn many_symbols_are_protected_by_what_is_known() {
        let few: Vec<u32> = (0..=FEW).map(|symbols| repairs(symbols, 3, Some(0))).collect();
        assert_eq!(few, [0, 1, 2, 2, 3, 3, 4, 5, 5, 6, 6, 7, 8]);
        assert_eq!(repairs(30, 3, Some(4)), 4);
        assert_eq!(repairs(30, 3, Some(40)), 10);
        assert_eq!(repairs(30, 2, None), 15);
    }
}
