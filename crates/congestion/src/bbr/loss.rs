//! Losses, marks and spurious losses (sections 5.5.10, 5.5.11 and 5.6.4.4).

use super::model::BETA;
use super::{Bbr, Phase, State};
use crate::Lost;
use crate::arithmetic::percent;
use crate::delivery::Snapshot;
use crate::episode::{Cause, Refuted, Saved};
use crate::excuse::shows_queue;
use std::time::{Duration, Instant};

/// The loss rate that a probe may cause beyond the path's floor.
const LOSS_THRESHOLD: f64 = 0.02;

/// The round trip in which losses are collected before the model adapts to them.
#[derive(Debug, Clone, Default)]
pub(super) struct LossRound {
    /// Whether the newest acknowledgement began such a round trip.
    pub(super) start: bool,
    /// The round ends with a packet sent after this many bytes were delivered.
    pub(super) delivered: u64,
    /// Whether packets of the round trip were lost or marked.
    pub(super) lossy: bool,
    /// Bytes delivered and lost in all when the first loss in it was noted.
    before: (u64, u64),
    /// Whether packets of the round trip were marked.
    pub(super) marked: bool,
    /// Runs of consecutive lost packets in it.
    pub(super) runs: u32,
    /// Packets lost in it and not refuted, and the number of the first.
    losses: u64,
    first_lost: Option<u64>,
    last_lost: Option<u64>,
    /// The smallest round-trip time in it.
    smallest_rtt: Option<Duration>,
}

impl LossRound {
    /// Starts to collect losses anew.
    pub(super) fn restart(&mut self) {
        self.lossy = false;
        self.losses = 0;
        self.first_lost = None;
        self.smallest_rtt = None;
    }

    /// Handles a round-trip time.
    pub(super) fn on_rtt(&mut self, rtt: Duration) {
        self.smallest_rtt = Some(self.smallest_rtt.map_or(rtt, |smallest| smallest.min(rtt)));
    }

    /// A packet that was declared lost has arrived.
    fn refute(&mut self, packet: &Lost) {
        if self.first_lost.is_some_and(|first| first <= packet.pn) {
            self.losses = self.losses.saturating_sub(1);
            self.lossy = self.losses > 0 || self.marked;
        }
    }
}

/// Bounds before a recovery period, in which losses may lower them.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    bandwidth_shortterm: u64,
    inflight_shortterm: u64,
    inflight_longterm: u64,
}

impl Saved for Bounds {
    fn without_reaction(&mut self, earlier: Self) {
        self.bandwidth_shortterm = self.bandwidth_shortterm.max(earlier.bandwidth_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(earlier.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(earlier.inflight_longterm);
    }
}

/// The decision, because of a loss rate above the threshold, that the volume in flight was too much. It is
/// undone when the losses that are not refuted would not have caused it, or not with the floor that is known by now.
#[derive(Debug, Clone)]
pub(super) struct TooHigh {
    /// The state that it ended, if any.
    state: Option<State>,
    inflight_longterm: u64,
    /// Losses in a flight of `tx_in_flight` bytes that are not refuted: the losses that caused the decision,
    /// and later losses of packets sent before it.
    lost: u64,
    tx_in_flight: u64,
    /// Bytes delivered by then, and bytes in flight whose fate was not known yet.
    delivered: u64,
    outstanding: u64,
    /// Whether packets met a queue then, so that losses may be those of its end whatever the floor is.
    queued: bool,
}

impl TooHigh {
    /// Whether a packet was sent before the decision, so that its loss supports it.
    fn counts(&self, packet: &Lost) -> bool {
        Snapshot::unpack(packet.state).delivered <= self.delivered
    }

    /// How many bytes the losses are of, when `delivered` bytes are delivered in all: also those that were in flight
    /// and have arrived.
    fn volume(&self, delivered: u64) -> u64 {
        let since = delivered.saturating_sub(self.delivered);
        self.tx_in_flight.saturating_add(since.min(self.outstanding))
    }
}

impl Bbr {
    /// Begins recovery at a congestion event (OnEnterFastRecovery, SaveStateUponLoss).
    pub(super) fn begin_recovery(&mut self, now: Instant, cause: Cause) {
        self.save_window();
        let bounds = Bounds {
            bandwidth_shortterm: self.model.bandwidth_shortterm,
            inflight_shortterm: self.model.inflight_shortterm,
            inflight_longterm: self.model.inflight_longterm,
        };
        self.episodes.begin(now, cause, bounds);
    }

    /// NoteLoss.
    fn note_congestion(&mut self) {
        if !self.loss_round.lossy {
            self.loss_round.delivered = self.sampler.delivered();
            self.loss_round.before = (self.sampler.delivered(), self.sampler.lost());
        }
        self.loss_round.lossy = true;
    }

    /// Whether the losses or marks of the round that ends call for lower bounds. While a queue stands, any
    /// loss does, as in the draft; otherwise only losses that the path's floor does not explain.
    pub(super) fn is_round_congested(&self) -> bool {
        let round = &self.loss_round;
        if !round.lossy || round.marked || self.shows_queue(round.smallest_rtt) {
            return round.lossy;
        }
        let (delivered, lost) = round.before;
        let delivered = self.sampler.delivered().saturating_sub(delivered);
        let lost = self.sampler.lost().saturating_sub(lost);
        lost > self.floor_losses(delivered.saturating_add(lost))
    }

    /// Whether a round-trip time is that of a queue, or nothing is known of it.
    fn shows_queue(&self, rtt: Option<Duration>) -> bool {
        rtt.zip(self.min_rtt.get()).is_none_or(|(rtt, min)| shows_queue(rtt, min))
    }

    /// How many of `bytes` the path may lose whatever their rate: none, as long as the floor is unknown.
    fn floor_losses(&self, bytes: u64) -> u64 {
        let packets = bytes as f64 / self.mtu() as f64;
        (self.floor.most_lost(packets) * self.mtu() as f64) as u64
    }

    /// HandleLostPacket.
    pub(super) fn handle_lost_packet(&mut self, now: Instant, packet: &Lost) {
        self.note_congestion();
        self.sampler.on_lost(packet.bytes);
        if self.sampler.is_of_flight(packet.state) {
            self.flights.on_lost(packet.bytes);
        }
        if self.loss_round.last_lost.is_none_or(|last| packet.pn != last.wrapping_add(1)) {
            self.loss_round.runs = self.loss_round.runs.saturating_add(1);
        }
        self.loss_round.last_lost = Some(packet.pn);
        self.loss_round.first_lost.get_or_insert(packet.pn);
        self.loss_round.losses += 1;
        if let Some(known) = self.too_high.as_mut().filter(|known| known.counts(packet)) {
            known.lost = known.lost.saturating_add(packet.bytes);
        }
        if !self.probe.is_sample {
            return;
        }
        let then = Snapshot::unpack(packet.state);
        let lost = self.sampler.lost().saturating_sub(then.lost);
        if self.is_inflight_too_high(lost, then.tx_in_flight) {
            let threshold = self.loss_threshold();
            let volume = inflight_at_loss(then.tx_in_flight, lost, packet.bytes, threshold);
            self.note_too_high(lost, then.tx_in_flight);
            self.handle_inflight_too_high(now, volume, then.app_limited);
        }
    }

    /// Remembers the state that a decision because of `lost` bytes of a flight of `tx_in_flight` is about to
    /// change, in case the losses are refuted.
    pub(super) fn note_too_high(&mut self, lost: u64, tx_in_flight: u64) {
        let probing = matches!(self.state, State::Startup | State::ProbeBw(Phase::Up));
        let decision = TooHigh {
            state: probing.then_some(self.state),
            inflight_longterm: self.model.inflight_longterm,
            lost,
            tx_in_flight,
            delivered: self.sampler.delivered(),
            outstanding: self.in_flight,
            queued: self.shows_queue(Some(self.sample.rtt)),
        };
        match &mut self.too_high {
            Some(known) => **known = decision,
            none => *none = Some(Box::new(decision)),
        }
    }

    /// Handles a packet marked by the network.
    pub(super) fn handle_mark(&mut self, now: Instant) {
        self.note_congestion();
        self.loss_round.marked = true;
        self.flights.on_marked();
        // Losses are no longer the only sign that the volume was too much.
        self.too_high = None;
        if self.probe.is_sample {
            let sample = self.sample;
            self.handle_inflight_too_high(now, sample.tx_in_flight, sample.app_limited);
        }
    }

    /// IsInflightTooHigh: whether `lost` bytes of a flight of `tx_in_flight` exceed what the floor
    /// explains by more than the threshold.
    pub(super) fn is_inflight_too_high(&self, lost: u64, tx_in_flight: u64) -> bool {
        let caused = (tx_in_flight as f64 * LOSS_THRESHOLD) as u64;
        lost > self.floor_losses(tx_in_flight).saturating_add(caused)
    }

    /// The loss rate at which a volume counts as too high.
    fn loss_threshold(&self) -> f64 {
        self.floor.rate + LOSS_THRESHOLD
    }

    /// HandleInflightTooHigh: `volume` bytes in flight were too much for the path.
    fn handle_inflight_too_high(&mut self, now: Instant, volume: u64, app_limited: bool) {
        self.probe.prev_too_high = true;
        // React to each probe only once.
        self.probe.is_sample = false;
        if !app_limited {
            let floor = percent(self.target_inflight(), BETA);
            self.model.inflight_longterm = volume.max(floor).min(self.limits.max());
        }
        if self.state == State::ProbeBw(Phase::Up) {
            self.start_probe_bw_down(now);
        }
    }

    /// OnEnterRTO: handles persistent congestion (RFC 9002 section 7.6.2). The recovery that its losses began restores
    /// the window once a packet is acknowledged that was sent after it.
    pub(super) fn collapse(&mut self) {
        self.window = self.limits.min();
    }

    /// HandleSpuriousLossDetection. Unlike in the draft, losses count one by one: on a path that
    /// loses a little and reorders much, no recovery period is refuted as a whole.
    pub(super) fn handle_refuted_packets(&mut self, now: Instant, packets: &[Lost]) {
        for packet in packets {
            self.sampler.on_refuted(now, packet.bytes);
            self.loss_round.refute(packet);
            if let Some(known) = self.too_high.as_mut().filter(|known| known.counts(packet)) {
                known.lost = known.lost.saturating_sub(packet.bytes);
            }
        }
        self.judge_too_high();
        self.episodes.on_spurious(packets);
        while let Some(Refuted { saved, later }) = self.episodes.take_refuted() {
            if later == 0 {
                self.undo_recovery(&saved);
            }
        }
        self.bound_bandwidth_for_model();
    }

    /// Handles a new estimate of the floor. In the first rounds of a path, packets are lost before anything is known of
    /// it.
    pub(super) fn handle_floor(&mut self) {
        if self.too_high.as_ref().is_some_and(|known| !known.queued) {
            self.judge_too_high();
        }
    }

    /// Undoes the newest decision that the volume in flight was too much, if it would not be made today.
    fn judge_too_high(&mut self) {
        let delivered = self.sampler.delivered();
        let stands =
            |known: &TooHigh| self.is_inflight_too_high(known.lost, known.volume(delivered));
        if !self.too_high.as_deref().is_some_and(stands)
            && let Some(refuted) = self.too_high.take()
        {
            self.undo_too_high(&refuted);
        }
    }

    /// Undoes the changes of a recovery period none of whose losses was real. If later periods stand, their
    /// losses would have lowered the bounds as well, so the saved bounds are handed on to them.
    fn undo_recovery(&mut self, bounds: &Bounds) {
        self.restore_window();
        self.full_pipe.reset(0);
        let model = &mut self.model;
        model.bandwidth_shortterm = model.bandwidth_shortterm.max(bounds.bandwidth_shortterm);
        model.inflight_shortterm = model.inflight_shortterm.max(bounds.inflight_shortterm);
        model.inflight_longterm = model.inflight_longterm.max(bounds.inflight_longterm);
    }

    /// Undoes the decision that the volume in flight was too much, and continues the probe that it
    /// ended.
    fn undo_too_high(&mut self, refuted: &TooHigh) {
        let model = &mut self.model;
        model.inflight_longterm = model.inflight_longterm.max(refuted.inflight_longterm);
        match refuted.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.reset(0);
                self.full_pipe.reached = false;
                if self.state != State::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(State::ProbeBw(Phase::Up))
                if self.state != State::ProbeBw(Phase::Up) && self.state != State::ProbeRtt =>
            {
                self.start_probe_bw_refill();
            }
            _ => {}
        }
    }

    /// SaveCwnd: saves the last window that was not narrowed by recovery or ProbeRTT.
    pub(super) fn save_window(&mut self) {
        let narrowed = self.episodes.is_open() || self.state == State::ProbeRtt;
        self.prior_window = if narrowed { self.prior_window.max(self.window) } else { self.window };
    }

    /// RestoreCwnd.
    pub(super) fn restore_window(&mut self) {
        self.window = self.limits.clamp(self.window.max(self.prior_window));
    }
}

/// InflightAtLoss: the volume at which the losses crossed the threshold. It lies within a packet
/// (or batch) of `bytes` that was the last of `tx_in_flight` bytes; `lost` includes it.
fn inflight_at_loss(tx_in_flight: u64, lost: u64, bytes: u64, threshold: f64) -> u64 {
    let inflight_before = tx_in_flight.saturating_sub(bytes);
    let lost_before = lost.saturating_sub(bytes);
    let allowed = (inflight_before as f64 * threshold - lost_before as f64).max(0.0);
    let prefix = (allowed / (1.0 - threshold)).round() as u64;
    inflight_before.saturating_add(prefix)
}

#[cfg(test)]
mod tests {
    use super::inflight_at_loss;

    #[test]
    fn losses_cross_the_threshold_inside_a_batch() {
        // 98 000 bytes without loss, then a lost batch of 20 000: after 2 000 bytes of the batch the loss
        // rate is 2 000 / 100 000.
        assert_eq!(inflight_at_loss(118_000, 20_000, 20_000, 0.02), 100_000);
        // More than the threshold was already lost before, so the batch had no room at all.
        assert_eq!(inflight_at_loss(101_000, 6_000, 1_000, 0.02), 100_000);
        assert_eq!(inflight_at_loss(0, 0, u64::MAX, 0.02), 0);
    }
}
