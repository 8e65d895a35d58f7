//! The floor of a path's loss: the share of packets that are lost at any rate of the sender.
//!
//! Radio links lose packets that no queue dropped. A controller that takes such losses for congestion slows
//! down for nothing, and a controller that ignores losses harms other flows. The floor tells the two kinds of
//! losses apart. It hides nothing (RFC 9265): every loss is still reported, and each policy decides how to
//! use the floor.
//!
//! A lost packet is evidence of a floor if congestion cannot be the reason: the queue was empty (`queue`)
//! and the path is known to carry the rate (`rounds`).

mod backlog;
mod bursts;
mod change;
mod evidence;
mod experiments;
mod headroom;
mod impact;
mod lateness;
mod queue;
mod regimes;
mod rests;
mod room;
mod rounds;
mod stretch;
mod tally;

use bursts::Gaps;
use evidence::Evidence;
pub use experiments::Experiments;
use std::time::{Duration, Instant};
use tally::Tally;

/// How many packets back the estimate looks.
const MEMORY: f64 = 2_000.0;
/// Losses count in full once the outcomes of this many packets are known.
const CONFIDENT: f64 = 100.0;
/// The number of slow packets that outweigh the evidence of faster packets.
const ENOUGH_SLOW: f64 = 50.0;
/// No floor is higher: a path that loses more is broken or congested by others.
pub const MAX_FLOOR: f64 = 0.25;
/// How many standard deviations more than the floor are still chance.
const NOISE_DEVIATIONS: f64 = 2.0;
/// The outcomes of so few packets without a loss are not worth keeping while the path is silent.
const NEGLIGIBLE: u32 = 32;
/// Evidence about the floor that a new connection on the path starts with, in packets.
const REMEMBERED: f64 = 200.0;

/// An estimate of the losses of a path. All shares are from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LossFloor {
    /// Share of packets that are lost while the queue is empty and the rate is below what the path
    /// can carry. 0 until there is evidence of such losses.
    pub rate: f64,
    /// The bounds within which the true share lies in nine of ten cases: 0 to 1 as long as nothing
    /// is known.
    pub low: f64,
    /// See [`Self::low`].
    pub high: f64,
    /// How many packets in a row are lost on average; at least 1.
    pub burst: f64,
    /// How long the path goes on losing packets on average once it has lost one: packets sent this much later
    /// are hardly more likely to be lost than any other packets. Zero if losses do not come in bursts, or as
    /// long as bursts are unknown.
    pub burst_time: Duration,
    /// Whether the number of packets ends bursts rather than the time, so that a packet which waits is hardly less
    /// likely to be lost.
    pub by_number: bool,
    /// Share of packets that are lost in addition to the floor while the queue is not empty.
    pub excess: f64,
    /// The losses of the path before they last changed; `None` as long as no change is known.
    pub other: Option<Regime>,
    /// Whether no redundancy is to be sent for now: because packets with repair symbols were lost more often
    /// than the data around them, as where a queue or a policer has no room for them, or because a queue
    /// stands on the path, and for a while after redundancy was sent into one or an experiment has shown that
    /// more is lost because of it.
    pub crowded: bool,
    /// How many packets with repair symbols the path has room for, for each of the others; infinity as long as there is
    /// no sign of less.
    pub room: f64,
    /// Whether redundancy is left out for now by an experiment that finds out whether it does harm.
    pub withheld: bool,
    /// What such experiments have shown.
    pub experiments: Experiments,
    /// Share of packets that met a queue on the path, lately.
    pub queued: f64,
    /// Share of packets that arrive in the end, but so long after later ones that an application notices.
    pub late: f64,
    /// By how much these packets are later than others, on average.
    pub late_by: Duration,
    /// How many packets have arrived or were lost, on earlier connections over the path too as far as these are
    /// remembered.
    pub known: u32,
}

/// A state of a path whose losses change from time to time, other than the present one.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Regime {
    /// Share of packets that are lost in this state.
    pub rate: f64,
    /// How many packets in a row are lost on average.
    pub burst: f64,
    /// How long the states of the path last on average.
    pub length: Duration,
}

impl Regime {
    /// A state with this share of lost packets and this mean length of bursts, on a path whose states last for
    /// `length` on average.
    #[must_use]
    pub const fn new(rate: f64, burst: f64, length: Duration) -> Self {
        Self { rate, burst, length }
    }

    /// The probability that a path that was in the other state `age` ago is in this one.
    #[must_use]
    pub fn probability(&self, age: Duration) -> f64 {
        if self.length.is_zero() {
            return 0.5;
        }
        // Both states last equally long on average, so that in the long run either is as likely.
        let turns = age.as_secs_f64() / self.length.as_secs_f64();
        (1.0 - (-2.0 * turns).exp()) / 2.0
    }
}

/// The part of a [`LossFloor`] that says which losses are chance.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RandomLosses {
    pub(crate) rate: f64,
    burst: f64,
}

impl RandomLosses {
    /// See [`LossFloor::most_lost`].
    pub(crate) fn most_lost(&self, packets: f64) -> f64 {
        // The mean square of the lengths of bursts over their mean, if each packet of a burst is as
        // likely to be its last one.
        let spread = 2.0 * self.burst - 1.0;
        let deviation = (packets * self.rate * (1.0 - self.rate) * spread).sqrt();
        packets * self.rate + NOISE_DEVIATIONS * deviation
    }
}

impl Default for LossFloor {
    /// A path about which nothing is known.
    fn default() -> Self {
        Self {
            rate: 0.0,
            low: 0.0,
            high: 1.0,
            burst: 1.0,
            burst_time: Duration::ZERO,
            by_number: false,
            excess: 0.0,
            other: None,
            crowded: false,
            room: f64::INFINITY,
            withheld: false,
            experiments: Experiments::default(),
            queued: 0.0,
            late: 0.0,
            late_by: Duration::ZERO,
            known: 0,
        }
    }
}

impl LossFloor {
    sutura_schedule::setters! {
        with_rate: rate = f64,
        with_low: low = f64,
        with_high: high = f64,
        with_burst: burst = f64,
        with_burst_time: burst_time = Duration,
        with_by_number: by_number = bool,
        with_excess: excess = f64,
        with_other: other = Option<Regime>,
        with_crowded: crowded = bool,
        with_room: room = f64,
        with_withheld: withheld = bool,
        with_experiments: experiments = Experiments,
        with_queued: queued = f64,
        with_late: late = f64,
        with_late_by: late_by = Duration,
        with_known: known = u32,
    }

    /// How many of `packets` the floor explains as lost: its share and two standard deviations, or
    /// none as long as nothing is known of a floor.
    #[must_use]
    pub fn most_lost(&self, packets: f64) -> f64 {
        self.random().most_lost(packets)
    }

    /// The losses that do not depend on the rate.
    pub(crate) const fn random(&self) -> RandomLosses {
        RandomLosses { rate: self.rate, burst: self.burst }
    }

    /// Whether this and `other` differ by more than their uncertainty: the share of one of them is outside
    /// the bounds of the other.
    #[must_use]
    pub fn contradicts(&self, other: &Self) -> bool {
        let excludes = |a: &Self, b: &Self| b.rate < a.low || b.rate > a.high;
        excludes(self, other) || excludes(other, self)
    }

    /// The parameters `p` and `r` of the simple Gilbert model, in which a path loses every packet in
    /// its bad state and none in its good one: the chances that the packet after an arrived packet is lost,
    /// and that the packet after a lost packet arrives. `p` is 0 as long as no losses are known.
    #[must_use]
    pub fn gilbert(&self) -> (f64, f64) {
        let r = self.burst.max(1.0).recip();
        let p = self.rate * r / (1.0 - self.rate);
        (if p.is_finite() { p.min(1.0) } else { 1.0 }, r)
    }
}

/// The evidence from which the estimate of a new connection may start: the floor as an earlier connection to
/// the same peer left it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LossMemory {
    tally: Tally,
    gaps: Gaps,
    /// How many packets have arrived or were lost.
    known: u32,
}

impl LossMemory {
    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known == 0
    }
}

/// Estimates the floor from the outcomes of packets.
#[derive(Debug, Default)]
pub struct LossFloorEstimator {
    floor: LossFloor,
    /// `None` as long as nothing was sent, and on a path that fell silent before it showed anything worth keeping:
    /// most connections of a busy server are such.
    evidence: Option<Box<Evidence>>,
    /// Draws what experiments leave to chance.
    seed: u64,
}

impl LossFloorEstimator {
    /// An estimator that starts from the evidence of an earlier connection. `seed` draws when redundancy is left out
    /// by experiments.
    pub fn new(memory: LossMemory, seed: u64) -> Self {
        if memory.is_empty() {
            return Self { seed, ..Self::default() };
        }
        let known = memory.known;
        let evidence = Evidence::new(memory);
        Self { floor: evidence.estimate(None, known), evidence: Some(Box::new(evidence)), seed }
    }

    /// The evidence from which the estimate of a later connection may start.
    pub fn memory(&self) -> LossMemory {
        let known = self.floor.known;
        let unknown = LossMemory { known, ..LossMemory::default() };
        self.evidence.as_ref().map_or(unknown, |evidence| evidence.memory(known))
    }

    /// Gives back the memory that is not needed while the path is silent.
    pub fn rest(&mut self) {
        let Some(evidence) = &mut self.evidence else { return };
        if self.floor.known <= NEGLIGIBLE && !evidence.has_losses() {
            self.evidence = None;
        } else {
            evidence.shrink();
        }
    }

    /// The current estimate.
    #[inline]
    pub fn get(&self) -> LossFloor {
        self.floor
    }

    #[inline]
    fn evidence(&mut self) -> &mut Evidence {
        self.evidence.get_or_insert_default()
    }

    /// Handles a packet that is sent. `rtt` is the smoothed round-trip time; `limited` if the
    /// application does not fill the window.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64, rtt: Duration, limited: bool) {
        let evidence = self.evidence();
        evidence.on_sent(now, bytes, rtt, limited);
        self.floor.withheld = evidence.withholds();
    }

    /// Handles an acknowledgement's round-trip time, without the acknowledgement delay, of a packet
    /// that was sent at `sent`. `marked` if it reports ECN-CE marks. Returns whether the queue was
    /// empty, if that is known.
    pub fn on_rtt(
        &mut self,
        now: Instant,
        sent: Instant,
        rtt: Duration,
        marked: bool,
    ) -> Option<bool> {
        self.evidence().on_rtt(now, sent, rtt, marked)
    }

    /// Handles an acknowledged packet, after [`Self::on_rtt`] and in the order of packet numbers.
    pub fn on_acked(
        &mut self,
        now: Instant,
        pn: u64,
        sent: Instant,
        bytes: u64,
        empty: Option<bool>,
    ) {
        self.floor.known = self.floor.known.saturating_add(1);
        self.evidence().on_acked(now, pn, sent, bytes, empty);
    }

    /// Handles a lost packet, in the order of packet numbers. Returns whether the packet before it was lost
    /// too.
    pub fn on_lost(&mut self, pn: u64, sent: Instant) -> bool {
        self.floor.known = self.floor.known.saturating_add(1);
        self.evidence().on_lost(pn, sent)
    }

    /// Handles the fate of a packet with repair symbols that was sent at `sent`, before [`Self::on_acked`] or
    /// [`Self::on_lost`].
    pub fn on_repair(&mut self, sent: Instant, lost: bool) {
        let seed = self.seed;
        self.evidence().on_repair(sent, lost, seed);
    }

    /// Handles the late acknowledgement, at `now`, of a packet that was reported as lost.
    pub fn on_refuted(&mut self, now: Instant, sent: Instant) {
        self.evidence().on_refuted(now, sent);
    }

    /// Updates the estimate once all outcomes of an acknowledgement are reported. Returns whether it
    /// changed.
    pub fn update(&mut self, now: Instant) -> bool {
        let Some(evidence) = &mut self.evidence else { return false };
        if !evidence.update(now) {
            return false;
        }
        let floor = evidence.estimate(Some(now), self.floor.known);
        std::mem::replace(&mut self.floor, floor) != floor
    }
}

#[cfg(test)]
mod tests;
