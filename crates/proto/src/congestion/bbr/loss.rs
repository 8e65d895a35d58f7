//! Losses, marks and spurious losses (sections 5.5.10, 5.5.11 and 5.6.4.4).

use super::model::BETA;
use super::{Bbr, Phase, State};
use crate::congestion::Lost;
use crate::congestion::arithmetic::percent;
use crate::congestion::delivery::Snapshot;
use crate::congestion::episode::Cause;
use std::time::Instant;

/// The loss rate that a probe may cause beyond the path's floor.
const LOSS_THRESHOLD: f64 = 0.02;
/// How many packets beyond the threshold may still be chance. Otherwise, in a flight of 80 packets
/// with 1 % random loss, every fifth probe would be ended.
const LOSS_NOISE_PACKETS: u64 = 2;

/// The round trip in which losses are collected before the model adapts to them.
#[derive(Debug, Clone, Default)]
pub(super) struct LossRound {
    /// Whether the newest acknowledgement began such a round.
    pub(super) start: bool,
    /// The round ends with a packet sent after this many bytes were delivered.
    pub(super) delivered: u64,
    /// Whether anything was lost or marked in it.
    pub(super) lossy: bool,
    /// Bytes delivered and lost in all when the first loss in it was noted.
    before: (u64, u64),
    /// Whether anything was marked in it.
    pub(super) marked: bool,
    /// Runs of consecutive lost packets in it.
    pub(super) runs: u32,
    last_lost: Option<u64>,
}

/// What a recovery period may have to undo.
#[derive(Debug, Clone, Default)]
pub(super) struct Undo {
    /// The state that was ended by losses.
    pub(super) state: Option<State>,
    bandwidth_shortterm: u64,
    inflight_shortterm: u64,
    inflight_longterm: u64,
}

impl Bbr {
    /// Begins recovery at a congestion event (OnEnterFastRecovery, SaveStateUponLoss).
    pub(super) fn begin_recovery(&mut self, now: Instant, cause: Cause) {
        self.save_window();
        self.episode.begin(now, cause);
        self.undo = Undo {
            state: None,
            bandwidth_shortterm: self.model.bandwidth_shortterm,
            inflight_shortterm: self.model.inflight_shortterm,
            inflight_longterm: self.model.inflight_longterm,
        };
    }

    /// NoteLoss.
    fn note_congestion(&mut self) {
        if !self.loss_round.lossy {
            self.loss_round.delivered = self.sampler.delivered();
            self.loss_round.before = (self.sampler.delivered(), self.sampler.lost());
        }
        self.loss_round.lossy = true;
    }

    /// Whether the losses or marks of the round that ends are more than the path's floor explains.
    pub(super) fn is_round_congested(&self) -> bool {
        let round = &self.loss_round;
        if !round.lossy || round.marked {
            return round.lossy;
        }
        let (delivered, lost) = round.before;
        let delivered = self.sampler.delivered().saturating_sub(delivered);
        let lost = self.sampler.lost().saturating_sub(lost);
        lost > self.floor_losses(delivered.saturating_add(lost))
    }

    /// How many of `bytes` the path may lose whatever their rate: none, as long as nothing is known
    /// of such losses.
    fn floor_losses(&self, bytes: u64) -> u64 {
        let packets = bytes as f64 / self.mtu() as f64;
        (self.floor.most_lost(packets) * self.mtu() as f64) as u64
    }

    /// HandleLostPacket.
    pub(super) fn handle_lost_packet(&mut self, now: Instant, packet: &Lost) {
        self.note_congestion();
        self.sampler.on_lost(packet.bytes);
        if self.loss_round.last_lost.is_none_or(|last| packet.pn != last.wrapping_add(1)) {
            self.loss_round.runs = self.loss_round.runs.saturating_add(1);
        }
        self.loss_round.last_lost = Some(packet.pn);
        if !self.probe.is_sample {
            return;
        }
        let then = Snapshot::unpack(packet.state);
        let lost = self.sampler.lost().saturating_sub(then.lost);
        if self.is_inflight_too_high(lost, then.tx_in_flight) {
            let threshold = self.loss_threshold();
            let volume = inflight_at_loss(then.tx_in_flight, lost, packet.bytes, threshold);
            self.handle_inflight_too_high(now, volume, then.app_limited);
        }
    }

    /// Handles a packet marked by the network.
    pub(super) fn handle_mark(&mut self, now: Instant) {
        self.note_congestion();
        self.loss_round.marked = true;
        if self.probe.is_sample {
            let sample = self.sample;
            self.handle_inflight_too_high(now, sample.tx_in_flight, sample.app_limited);
        }
    }

    /// IsInflightTooHigh: whether `lost` bytes of a flight of `tx_in_flight` exceed what the floor
    /// explains by more than the threshold.
    pub(super) fn is_inflight_too_high(&self, lost: u64, tx_in_flight: u64) -> bool {
        let noise = self.mtu().saturating_mul(LOSS_NOISE_PACKETS);
        let caused = (tx_in_flight as f64 * LOSS_THRESHOLD) as u64;
        lost > self.floor_losses(tx_in_flight).saturating_add(caused).saturating_add(noise)
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
            self.undo.state = Some(self.state);
            self.start_probe_bw_down(now);
        }
    }

    /// Handles persistent congestion: what was known about the path's volume is no longer valid.
    pub(super) fn collapse(&mut self) {
        self.window = self.limits.min();
        self.prior_window = 0;
        self.episode.clear();
    }

    /// HandleSpuriousLossDetection.
    pub(super) fn undo_recovery(&mut self) {
        self.restore_window();
        self.loss_round.lossy = false;
        self.full_pipe.reset(0);
        let (model, undo) = (&mut self.model, &self.undo);
        model.bandwidth_shortterm = model.bandwidth_shortterm.max(undo.bandwidth_shortterm);
        model.inflight_shortterm = model.inflight_shortterm.max(undo.inflight_shortterm);
        model.inflight_longterm = model.inflight_longterm.max(undo.inflight_longterm);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
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
        self.bound_bandwidth_for_model();
    }

    /// SaveCwnd: saves the last window that was not narrowed by recovery or ProbeRTT.
    pub(super) fn save_window(&mut self) {
        let narrowed = self.episode.is_open() || self.state == State::ProbeRtt;
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
        // 98 000 bytes without loss, then a lost batch of 20 000: after 2 000 of these the loss
        // rate is 2 000 / 100 000.
        assert_eq!(inflight_at_loss(118_000, 20_000, 20_000, 0.02), 100_000);
        // More than the threshold was already lost before, so the batch had no room at all.
        assert_eq!(inflight_at_loss(101_000, 6_000, 1_000, 0.02), 100_000);
        assert_eq!(inflight_at_loss(0, 0, u64::MAX, 0.02), 0);
    }
}
