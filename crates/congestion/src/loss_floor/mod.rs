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
mod headroom;
mod lateness;
mod queue;
mod regimes;
mod rests;
mod rounds;
mod tally;

use crate::arithmetic::nanos;
use backlog::Backlog;
use bursts::{Bursts, Gaps};
use change::Recent;
use headroom::Headroom;
use lateness::Lateness;
use queue::QueueGauge;
use regimes::Regimes;
use rounds::{Finished, LatestRounds};
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
    /// Share of packets that are lost in addition to the floor while the queue is not empty.
    pub excess: f64,
    /// The losses of the path before they last changed; `None` as long as no change is known.
    pub other: Option<Regime>,
    /// Whether no redundancy is to be sent for now: because packets with repair symbols were lost more often
    /// than the data around them, as where a queue or a policer has no room for them, or because a queue
    /// stands on the path, and for a while after redundancy was sent into one.
    pub crowded: bool,
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

impl Default for LossFloor {
    /// A path about which nothing is known.
    fn default() -> Self {
        Self {
            rate: 0.0,
            low: 0.0,
            high: 1.0,
            burst: 1.0,
            burst_time: Duration::ZERO,
            excess: 0.0,
            other: None,
            crowded: false,
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
        with_excess: excess = f64,
        with_other: other = Option<Regime>,
        with_crowded: crowded = bool,
        with_late: late = f64,
        with_late_by: late_by = Duration,
        with_known: known = u32,
    }

    /// How many of `packets` the floor explains as lost: its share and two standard deviations, or
    /// none as long as nothing is known of a floor.
    #[must_use]
    pub fn most_lost(&self, packets: f64) -> f64 {
        // The mean square of the lengths of bursts over their mean, if each packet of a burst is as
        // likely to be its last one.
        let spread = 2.0 * self.burst - 1.0;
        let deviation = (packets * self.rate * (1.0 - self.rate) * spread).sqrt();
        packets * self.rate + NOISE_DEVIATIONS * deviation
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
    queue: QueueGauge,
    rounds: LatestRounds,
    /// Packets that met an empty queue, at a rate near the path's and at a lower one.
    near: Tally,
    slow: Tally,
    /// The newest of both.
    recent: Recent,
    regimes: Regimes,
    headroom: Headroom,
    backlog: Backlog,
    lateness: Lateness,
    /// Packets that met a queue.
    filled: Tally,
    bursts: Bursts,
    /// How many packets were lost in a row just now.
    run: u32,
    /// When the newest acknowledged packet was sent.
    newest_acked: Option<Instant>,
    floor: LossFloor,
}

impl LossFloorEstimator {
    /// An estimator that starts from the evidence of an earlier connection.
    pub fn new(memory: LossMemory) -> Self {
        let LossMemory { tally, gaps, known } = memory;
        let bursts = Bursts::new(gaps, tally.rate());
        let floor = LossFloor::default().with_known(known);
        let mut estimator = Self { near: tally, bursts, floor, ..Self::default() };
        estimator.floor = estimator.estimate(None);
        estimator
    }

    /// The evidence from which the estimate of a later connection may start.
    pub fn memory(&self) -> LossMemory {
        let tally = self.evidence().at_most(REMEMBERED);
        LossMemory { tally, gaps: self.bursts.gaps().remembered(), known: self.floor.known }
    }

    /// Gives back the memory for more rounds than there are.
    pub fn shrink(&mut self) {
        self.rounds.shrink();
    }

    /// The current estimate.
    #[inline]
    pub fn get(&self) -> LossFloor {
        self.floor
    }

    /// Handles a packet that is sent. `rtt` is the smoothed round-trip time; `limited` if the
    /// application does not fill the window.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64, rtt: Duration, limited: bool) {
        self.queue.on_sent(now, limited);
        self.rounds.on_sent(now, bytes, rtt);
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
        let empty = self.queue.on_rtt(now, sent, rtt, marked);
        let rtt = nanos(rtt);
        self.backlog.on_rtt(now, rtt, self.queue.least(rtt));
        empty
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
        self.bursts.on_acked(pn, sent);
        // The acknowledgement of an overtaken packet tells neither how long the queue was nor at which rate
        // the path delivers.
        if self.newest_acked.is_some_and(|newest| sent < newest) {
            self.lateness.on_overtaken(self.behind(now, sent));
            let empty = self.queue.was_empty(sent);
            self.rounds.on_acked_late(sent, bytes, empty);
        } else {
            self.newest_acked = Some(sent);
            self.lateness.on_arrived();
            self.rounds.on_acked(now, sent, bytes, empty);
        }
    }

    /// How much longer a packet took that was sent at `sent` and is acknowledged only now than the newest one.
    fn behind(&self, now: Instant, sent: Instant) -> Duration {
        let took = now.saturating_duration_since(sent);
        self.queue.latest().map_or(Duration::ZERO, |latest| took.saturating_sub(latest))
    }

    /// Handles a lost packet, in the order of packet numbers. Returns whether the packet before it was lost
    /// too.
    pub fn on_lost(&mut self, pn: u64, sent: Instant) -> bool {
        self.floor.known = self.floor.known.saturating_add(1);
        let empty = self.queue.was_empty(sent);
        let joined = self.bursts.on_lost(pn, sent, empty == Some(true));
        self.run = if joined { self.run.saturating_add(1) } else { 1 };
        self.rounds.on_lost(sent, empty, self.run);
        joined
    }

    /// Handles the fate of a packet with repair symbols that was sent at `sent`, before [`Self::on_acked`] or
    /// [`Self::on_lost`].
    pub fn on_repair(&mut self, sent: Instant, lost: bool) {
        self.backlog.on_repair();
        self.rounds.on_repair(sent, lost);
    }

    /// Handles the late acknowledgement, at `now`, of a packet that was reported as lost.
    pub fn on_refuted(&mut self, now: Instant, sent: Instant) {
        self.lateness.on_overtaken(self.behind(now, sent));
        self.bursts.on_refuted();
        if !self.rounds.on_refuted(sent) {
            self.near.on_refuted();
            self.recent.on_refuted();
        }
    }

    /// Updates the estimate once all outcomes of an acknowledgement are reported. Returns whether it
    /// changed.
    pub fn update(&mut self, now: Instant) -> bool {
        let mut rounds = std::mem::take(&mut self.rounds);
        let mut any = false;
        let mut crowded = false;
        rounds.settle_all(now, |fates| crowded |= self.headroom.on_round(now, fates));
        rounds.finish(|round| {
            self.count(now, &round);
            any = true;
        });
        self.rounds = rounds;
        if crowded {
            // What was lost with its own redundancy is no evidence of a floor.
            (self.near, self.slow) = (Tally::default(), Tally::default());
            (self.recent, self.regimes) = (Recent::default(), Regimes::default());
            any = true;
        }
        if !any {
            return false;
        }
        let before = self.floor;
        self.lateness.update(MEMORY);
        self.bursts.update(self.evidence().rate());
        self.floor = self.estimate(Some(now));
        before != self.floor
    }

    fn count(&mut self, now: Instant, round: &Finished) {
        self.filled.fade(round.filled.packets, MEMORY);
        self.filled.add(&round.filled);
        let Some(empty) = &round.empty else { return };
        self.regimes.begin(now);
        for tally in [&mut self.near, &mut self.slow] {
            tally.fade(empty.packets, MEMORY);
        }
        self.recent.add(empty);
        let tally = if round.slow { &mut self.slow } else { &mut self.near };
        tally.add(empty);
        self.note_change(now);
    }

    /// If losses have changed lately, only the latest packets count from now on, and those of an earlier state
    /// that was like this.
    fn note_change(&mut self, now: Instant) {
        let mut all = self.near;
        all.add(&self.slow);
        if let Some(newest) = self.recent.take_change(&all) {
            let before = all.without(&newest).at_most(REMEMBERED);
            self.near = self.regimes.on_change(now, before, newest, change::is_alike);
            self.slow = Tally::default();
        }
    }

    /// The packets that count: all packets that met an empty queue, or only the packets of slow rounds if
    /// clearly fewer of them were lost.
    fn evidence(&self) -> Tally {
        let clearly_fewer = || self.slow.interval().1 < self.near.interval().0;
        if self.slow.packets >= ENOUGH_SLOW && clearly_fewer() {
            return self.slow;
        }
        let mut all = self.near;
        all.add(&self.slow);
        all
    }

    /// The estimate at `now`, or before anything was sent.
    fn estimate(&self, now: Option<Instant>) -> LossFloor {
        let evidence = self.evidence();
        let (low, high) = evidence.interval();
        let rate = (evidence.lost / evidence.packets.max(CONFIDENT)).min(MAX_FLOOR);
        let excess = (self.filled.rate() - rate).max(0.0);
        let (late, late_by) = self.lateness.get(CONFIDENT);
        LossFloor {
            rate,
            low: low.min(rate),
            high: high.max(rate),
            burst: evidence.burst(),
            burst_time: self.bursts.time(),
            excess,
            other: now.and_then(|now| self.regimes.other(now)),
            crowded: now
                .is_some_and(|now| self.headroom.is_crowded(now) || self.backlog.is_crowded(now)),
            late,
            late_by,
            known: self.floor.known,
        }
    }
}

#[cfg(test)]
mod tests;
