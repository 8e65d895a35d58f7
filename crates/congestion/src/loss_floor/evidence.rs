//! The evidence behind the estimate of a path's losses.

use super::backlog::Backlog;
use super::bursts::Bursts;
use super::change::{self, Recent};
use super::impact::Impact;
use super::lateness::Lateness;
use super::queue::QueueGauge;
use super::regimes::Regimes;
use super::rounds::{Finished, LatestRounds};
use super::tally::Tally;
use super::{CONFIDENT, ENOUGH_SLOW, LossFloor, LossMemory, MAX_FLOOR, MEMORY, REMEMBERED};
use crate::arithmetic::nanos;
use std::time::{Duration, Instant};

/// What the outcomes of a path's packets say about its losses.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    queue: QueueGauge,
    rounds: LatestRounds,
    /// Packets that met an empty queue, at a rate near the path's and at a lower one.
    near: Tally,
    slow: Tally,
    /// The newest of both.
    recent: Recent,
    regimes: Regimes,
    /// The data of rounds until the first redundancy.
    bare: Tally,
    /// `None` as long as no redundancy was sent.
    impact: Option<Box<Impact>>,
    backlog: Backlog,
    lateness: Lateness,
    /// Packets that met a queue.
    filled: Tally,
    bursts: Bursts,
    /// How many packets were lost in a row just now.
    run: u32,
    /// When the newest acknowledged packet was sent.
    newest_acked: Option<Instant>,
}

impl Evidence {
    /// The evidence of an earlier connection.
    pub(super) fn new(memory: LossMemory) -> Self {
        let LossMemory { tally, gaps, .. } = memory;
        Self { near: tally, bursts: Bursts::new(gaps, tally.rate()), ..Self::default() }
    }

    /// What a later connection may start from, if the outcomes of `known` packets are known.
    pub(super) fn memory(&self, known: u32) -> LossMemory {
        let tally = self.counted().at_most(REMEMBERED);
        LossMemory { tally, gaps: self.bursts.gaps().remembered(), known }
    }

    /// Gives back the memory for more rounds than there are.
    pub(super) fn shrink(&mut self) {
        self.rounds.shrink();
    }

    /// Whether a packet was lost.
    pub(super) fn has_losses(&self) -> bool {
        self.run > 0
    }

    /// Handles a packet that is sent. `rtt` is the smoothed round-trip time; `limited` if the
    /// application does not fill the window.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64, rtt: Duration, limited: bool) {
        self.queue.on_sent(now, limited);
        let impact = &mut self.impact;
        self.rounds.on_sent(now, bytes, rtt, || impact.as_mut()?.on_round());
    }

    /// Handles an acknowledgement's round-trip time, without the acknowledgement delay, of a packet
    /// that was sent at `sent`. `marked` if it reports ECN-CE marks. Returns whether the queue was
    /// empty, if that is known.
    pub(super) fn on_rtt(
        &mut self,
        now: Instant,
        sent: Instant,
        rtt: Duration,
        marked: bool,
    ) -> Option<bool> {
        let empty = self.queue.on_rtt(now, sent, rtt, marked);
        let rtt = nanos(rtt);
        let first = self.queue.latest().map_or(rtt, nanos);
        let min = self.queue.least(rtt);
        self.backlog.on_rtt(now, rtt, first, min);
        if let Some(impact) = &mut self.impact {
            impact.on_rtt(now, rtt, min);
        }
        empty
    }

    /// Handles an acknowledged packet, after [`Self::on_rtt`] and in the order of packet numbers.
    pub(super) fn on_acked(
        &mut self,
        now: Instant,
        pn: u64,
        sent: Instant,
        bytes: u64,
        empty: Option<bool>,
    ) {
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
    pub(super) fn on_lost(&mut self, pn: u64, sent: Instant) -> bool {
        let empty = self.queue.was_empty(sent);
        let joined = self.bursts.on_lost(pn, sent, empty == Some(true));
        self.run = if joined { self.run.saturating_add(1) } else { 1 };
        self.rounds.on_lost(sent, empty, self.run);
        joined
    }

    /// Handles the fate of a packet with repair symbols that was sent at `sent`, before [`Self::on_acked`] or
    /// [`Self::on_lost`]. `seed` draws what experiments leave to chance.
    pub(super) fn on_repair(&mut self, sent: Instant, lost: bool, seed: u64) {
        self.backlog.on_repair();
        let bare = self.bare;
        self.impact.get_or_insert_with(|| Box::new(Impact::new(bare, seed))).on_repair();
        self.rounds.on_repair(sent, lost);
    }

    /// Handles the late acknowledgement, at `now`, of a packet that was reported as lost.
    pub(super) fn on_refuted(&mut self, now: Instant, sent: Instant) {
        self.lateness.on_overtaken(self.behind(now, sent));
        self.bursts.on_refuted();
        if !self.rounds.on_refuted(sent) {
            self.near.on_refuted();
            self.recent.on_refuted();
        }
    }

    /// Judges the rounds that are over. Returns whether there were any, so that there is a new estimate.
    pub(super) fn update(&mut self, now: Instant) -> bool {
        let mut rounds = std::mem::take(&mut self.rounds);
        let mut any = false;
        let mut crowded = false;
        rounds.settle_all(now, |fates, leg| {
            crowded |= match &mut self.impact {
                Some(impact) => impact.on_fates(now, fates, leg),
                None => {
                    self.bare.fade_and_add(&fates.data());
                    false
                }
            };
        });
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
        self.lateness.update(MEMORY);
        self.bursts.update(self.counted().rate());
        true
    }

    fn count(&mut self, now: Instant, round: &Finished) {
        self.filled.fade_and_add(&round.filled);
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

    /// Whether redundancy has no room on the path, or does harm.
    fn is_crowded(&self, now: Instant) -> bool {
        let impact = self.impact.as_ref();
        impact.is_some_and(|impact| impact.is_crowded(now)) || self.backlog.is_crowded(now)
    }

    /// Whether an experiment leaves out redundancy for now.
    pub(super) fn withholds(&self) -> bool {
        self.impact.as_ref().is_some_and(|impact| impact.withholds())
    }

    /// The packets that count: all packets that met an empty queue, or only the packets of slow rounds if
    /// clearly fewer of them were lost.
    fn counted(&self) -> Tally {
        let clearly_fewer = || self.slow.interval().1 < self.near.interval().0;
        if self.slow.packets >= ENOUGH_SLOW && clearly_fewer() {
            return self.slow;
        }
        let mut all = self.near;
        all.add(&self.slow);
        all
    }

    /// The estimate at `now`, or before anything was sent, if the outcomes of `known` packets are known.
    pub(super) fn estimate(&self, now: Option<Instant>, known: u32) -> LossFloor {
        let evidence = self.counted();
        let (low, high) = evidence.interval();
        let rate = (evidence.lost / evidence.packets.max(CONFIDENT)).min(MAX_FLOOR);
        let excess = (self.filled.rate() - rate).max(0.0);
        let (late, late_by) = self.lateness.get(CONFIDENT);
        let burst = self.bursts.length();
        LossFloor {
            rate,
            low: low.min(rate),
            high: high.max(rate),
            burst: evidence.burst(),
            burst_time: burst.time,
            by_number: burst.by_number,
            excess,
            other: now.and_then(|now| self.regimes.other(now)),
            crowded: now.is_some_and(|now| self.is_crowded(now)),
            room: self.impact.as_ref().map_or(f64::INFINITY, |impact| impact.room()),
            withheld: self.withholds(),
            experiments: self
                .impact
                .as_ref()
                .map(|impact| impact.experiments())
                .unwrap_or_default(),
            queued: self.backlog.queued(),
            late,
            late_by,
            known,
        }
    }
}
