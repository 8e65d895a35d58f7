//! The model of the path (section 5.5): bandwidth, volume, and the limits of recent congestion.

use super::filter::{MAX_ROUNDS, MaxBandwidth, RoundMax};
use super::{Bbr, Phase, State, UNBOUNDED};
use crate::arithmetic::{bytes_within, percent};
use crate::pacer::send_quantum;
use std::time::Instant;

/// The least that the short-term model keeps after a round with losses, in percent.
pub(super) const BETA: u64 = 70;
/// Share of the long-term volume that is left to other flows, in percent.
const HEADROOM: u64 = 15;
/// By how many packets a probe may exceed its bound, to allow for rounding.
const PROBE_UP_PACKETS: u64 = 2;

/// Packet-timed round trips (section 5.5.1).
#[derive(Debug, Clone, Default)]
pub(super) struct Rounds {
    /// The number of rounds so far.
    pub(super) count: u64,
    /// Whether the newest acknowledgement began a round.
    pub(super) start: bool,
    next_delivered: u64,
}

/// Bandwidth and volume estimates, and the latest signals that adapt them.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) max_bandwidth: MaxBandwidth,
    /// The effective rate in bytes per second: `min(max_bw, bw_shortterm)`.
    pub(super) bandwidth: u64,
    pub(super) bandwidth_shortterm: u64,
    pub(super) inflight_longterm: u64,
    pub(super) inflight_shortterm: u64,
    /// Highest delivery rate and volume of the current loss round.
    pub(super) bandwidth_latest: u64,
    pub(super) inflight_latest: u64,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            max_bandwidth: MaxBandwidth::default(),
            bandwidth: 0,
            bandwidth_shortterm: UNBOUNDED,
            inflight_longterm: UNBOUNDED,
            inflight_shortterm: UNBOUNDED,
            bandwidth_latest: 0,
            inflight_latest: 0,
        }
    }
}

impl Model {
    /// ResetShortTermModel.
    pub(super) fn reset_shortterm(&mut self) {
        self.bandwidth_shortterm = UNBOUNDED;
        self.inflight_shortterm = UNBOUNDED;
    }
}

/// How much more data than expected is acknowledged at once (section 5.5.9).
#[derive(Debug, Clone, Default)]
pub(super) struct Aggregation {
    interval_start: Option<Instant>,
    delivered: u64,
    extra: RoundMax,
}

impl Aggregation {
    /// Starts measuring at `now`.
    pub(super) fn restart(&mut self, now: Instant) {
        self.interval_start = Some(now);
    }
}

impl Bbr {
    /// UpdateRound.
    fn update_round(&mut self) {
        self.rounds.start = self.sample.prior_delivered >= self.rounds.next_delivered;
        if self.rounds.start {
            self.start_round();
            self.rounds.count = self.rounds.count.saturating_add(1);
            self.probe.rounds_since_up = self.probe.rounds_since_up.saturating_add(1);
            self.window_use.last_round = self.window_use.this_round;
            self.window_use.this_round = false;
        }
    }

    /// StartRound: the round ends with a packet that is sent from now on.
    pub(super) fn start_round(&mut self) {
        self.rounds.next_delivered = self.sampler.delivered();
    }

    /// UpdateLatestDeliverySignals of section 5.5.10.3.
    pub(super) fn update_latest_delivery_signals(&mut self) {
        let (model, sample) = (&mut self.model, &self.sample);
        model.bandwidth_latest = model.bandwidth_latest.max(sample.delivery_rate);
        model.inflight_latest = model.inflight_latest.max(sample.delivered);
        self.loss_round.start = sample.prior_delivered >= self.loss_round.delivered;
        if self.loss_round.start {
            self.loss_round.delivered = self.sampler.delivered();
        }
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance_latest_delivery_signals(&mut self) {
        if self.loss_round.start {
            self.model.bandwidth_latest = self.sample.delivery_rate;
            self.model.inflight_latest = self.sample.delivered;
        }
    }

    /// ResetCongestionSignals.
    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss_round.restart();
        self.model.bandwidth_latest = 0;
        self.model.inflight_latest = 0;
    }

    /// UpdateCongestionSignals, with UpdateMaxBw.
    pub(super) fn update_congestion_signals(&mut self) {
        self.update_round();
        let rate = self.sample.delivery_rate;
        if rate >= self.model.max_bandwidth.get() || !self.sample.app_limited {
            self.model.max_bandwidth.update(rate);
        }
        if self.loss_round.start {
            // The delivery rate of an application-limited flow tells how much the flow had to send, not how
            // much the path carries.
            let telling = !self.state.is_probing() && !self.sample.app_limited;
            if telling && self.is_round_congested() {
                self.adapt_lower_bounds();
            }
            self.loss_round.restart();
        }
    }

    /// InitLowerBounds and LossLowerBounds: adapts the bounds once per round to the rate and volume that were
    /// really delivered.
    fn adapt_lower_bounds(&mut self) {
        let model = &mut self.model;
        if model.bandwidth_shortterm == UNBOUNDED {
            model.bandwidth_shortterm = model.max_bandwidth.get();
        }
        if model.inflight_shortterm == UNBOUNDED {
            model.inflight_shortterm = self.window;
        }
        model.bandwidth_shortterm =
            model.bandwidth_latest.max(percent(model.bandwidth_shortterm, BETA));
        model.inflight_shortterm =
            model.inflight_latest.max(percent(model.inflight_shortterm, BETA));
    }

    /// BoundBWForModel.
    pub(super) fn bound_bandwidth_for_model(&mut self) {
        self.model.bandwidth = self.model.max_bandwidth.get().min(self.model.bandwidth_shortterm);
    }

    /// UpdateACKAggregation of section 5.5.9.
    pub(super) fn update_ack_aggregation(&mut self, now: Instant) {
        let aggregation = &mut self.aggregation;
        let start = *aggregation.interval_start.get_or_insert(now);
        let elapsed = now.saturating_duration_since(start);
        let mut expected = bytes_within(self.model.bandwidth, elapsed);
        if aggregation.delivered <= expected {
            aggregation.delivered = 0;
            aggregation.interval_start = Some(now);
            expected = 0;
        }
        aggregation.delivered = aggregation.delivered.saturating_add(self.sample.newly_acked);
        let extra = aggregation.delivered.saturating_sub(expected).min(self.window);
        aggregation.extra.update(self.rounds.count, extra);
    }

    /// BBR.extra_acked: by how much the window must exceed the bandwidth-delay product.
    fn extra_acked(&self) -> u64 {
        // In Startup the window grows by itself, so only the latest value counts.
        self.aggregation.extra.get(if self.full_pipe.reached { MAX_ROUNDS } else { 1 })
    }

    /// The bandwidth-delay product of `bandwidth`, times `gain` percent (BDPMultiple).
    pub(super) fn bdp(&self, bandwidth: u64, gain: u64) -> u64 {
        match self.min_rtt.get() {
            Some(min_rtt) => percent(bytes_within(bandwidth, min_rtt), gain),
            None => self.limits.initial(),
        }
    }

    /// QuantizationBudget: raises `volume` to the least that batches of packets need to flow.
    fn quantise(&self, volume: u64) -> u64 {
        let volume = volume.max(send_quantum(self.pacing_rate, self.mtu())).max(self.min_pipe());
        match self.state {
            State::ProbeBw(Phase::Up) => {
                volume.saturating_add(self.mtu().saturating_mul(PROBE_UP_PACKETS))
            }
            _ => volume,
        }
    }

    /// Inflight: the volume that fills the path at `bandwidth`.
    pub(super) fn inflight(&self, bandwidth: u64) -> u64 {
        self.quantise(self.bdp(bandwidth, 100))
    }

    /// UpdateMaxInflight of section 5.6.4.2.
    pub(super) fn max_inflight(&self) -> u64 {
        let (_, gain) = self.state.gains();
        let volume = self.bdp(self.model.bandwidth, gain);
        self.quantise(volume.saturating_add(self.extra_acked()))
    }

    /// TargetInflight: the volume that the flow aims for, within the current window.
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp(self.model.bandwidth, 100).min(self.window)
    }

    /// InflightWithHeadroom.
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        let longterm = self.model.inflight_longterm;
        if longterm == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = percent(longterm, HEADROOM).max(self.mtu());
        longterm.saturating_sub(headroom).max(self.min_pipe())
    }
}
