//! ProbeBW, the steady state (section 5.3.3).

use super::{Bbr, Phase, State, UNBOUNDED};
use crate::arithmetic::nanos;
use std::time::{Duration, Instant};

/// The least time between probes, and the random time added to it.
const PROBE_WAIT: Duration = Duration::from_secs(2);
const PROBE_WAIT_SPREAD: Duration = Duration::from_secs(1);
/// The most rounds between probes, so that competing Reno flows get their share.
const RENO_ROUNDS: u64 = 63;
/// For how many rounds the growth of the long-term volume doubles.
const MAX_UP_ROUNDS: u32 = 30;

/// The state of the probe as arriving acknowledgements show it (BBR.ack_phase).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum AckPhase {
    /// They say nothing about a probe.
    #[default]
    Init,
    /// The pipe is being filled.
    Refilling,
    /// The probe has begun, but its packets are not acknowledged yet.
    ProbeStarting,
    /// Packets of the probe are being acknowledged.
    ProbeFeedback,
    /// The probe is over, but packets of it are still being acknowledged.
    ProbeStopping,
}

/// State of the probing cycle.
#[derive(Debug, Clone)]
pub(super) struct ProbeBw {
    pub(super) ack_phase: AckPhase,
    /// Whether packets sent while probing are now being acknowledged or lost.
    pub(super) is_sample: bool,
    /// Whether the newest probe went too high.
    pub(super) prev_too_high: bool,
    /// Whether the newest probe ended early, at the volume that was too high before.
    prev_precautionary: bool,
    /// Rounds since the last probe, starting from a random value.
    pub(super) rounds_since_up: u64,
    cycle_start: Option<Instant>,
    wait: Duration,
    up_rounds: u32,
    up_acked: u64,
    up_acked_per_increment: u64,
}

impl Default for ProbeBw {
    fn default() -> Self {
        Self {
            ack_phase: AckPhase::Init,
            is_sample: false,
            prev_too_high: false,
            prev_precautionary: false,
            rounds_since_up: 0,
            cycle_start: None,
            wait: PROBE_WAIT,
            up_rounds: 0,
            up_acked: 0,
            up_acked_per_increment: UNBOUNDED,
        }
    }
}

impl Bbr {
    /// StartProbeBW_DOWN.
    pub(super) fn start_probe_bw_down(&mut self, now: Instant) {
        self.reset_congestion_signals();
        self.probe.up_acked_per_increment = UNBOUNDED;
        self.pick_probe_wait();
        self.probe.cycle_start = Some(now);
        self.probe.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::ProbeBw(Phase::Down);
    }

    /// StartProbeBW_CRUISE.
    pub(super) fn start_probe_bw_cruise(&mut self) {
        self.state = State::ProbeBw(Phase::Cruise);
    }

    /// StartProbeBW_REFILL.
    pub(super) fn start_probe_bw_refill(&mut self) {
        self.model.reset_shortterm();
        self.probe.up_rounds = 0;
        self.probe.up_acked = 0;
        self.probe.prev_precautionary = false;
        self.probe.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::ProbeBw(Phase::Refill);
    }

    /// StartProbeBW_UP.
    fn start_probe_bw_up(&mut self) {
        self.probe.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.full_pipe.reset(self.sample.delivery_rate);
        self.state = State::ProbeBw(Phase::Up);
        self.raise_inflight_longterm_slope();
    }

    /// PickProbeWait of section 5.3.3.8.
    fn pick_probe_wait(&mut self) {
        self.probe.rounds_since_up = self.prng.below(2);
        let spread = nanos(PROBE_WAIT_SPREAD);
        self.probe.wait = PROBE_WAIT + Duration::from_nanos(self.prng.below(spread));
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_probe_bw_phase(&mut self, now: Instant) {
        if !self.full_pipe.reached || self.adapt_longterm_model() {
            return;
        }
        let State::ProbeBw(phase) = self.state else {
            return;
        };
        match phase {
            Phase::Down if self.is_time_to_probe(now) => self.start_probe_bw_refill(),
            Phase::Down if self.is_time_to_cruise() => self.start_probe_bw_cruise(),
            Phase::Cruise if self.is_time_to_probe(now) => self.start_probe_bw_refill(),
            Phase::Refill if self.rounds.start => {
                self.probe.is_sample = true;
                self.start_probe_bw_up();
            }
            Phase::Up if self.is_time_to_go_down() => {
                // No high loss so far, but it may still be reported while the probe's packets are
                // acknowledged.
                self.probe.prev_too_high = false;
                self.start_probe_bw_down(now);
            }
            _ => {}
        }
    }

    /// IsTimeToProbeBW: by the clock, or as often as Reno would fill its window.
    fn is_time_to_probe(&self, now: Instant) -> bool {
        let waited = self
            .probe
            .cycle_start
            .is_none_or(|start| now.saturating_duration_since(start) > self.probe.wait);
        let reno_rounds = (self.target_inflight() / self.mtu()).min(RENO_ROUNDS);
        waited || self.probe.rounds_since_up >= reno_rounds
    }

    /// IsTimeToCruise.
    fn is_time_to_cruise(&self) -> bool {
        self.in_flight <= self.inflight_with_headroom()
            && self.in_flight <= self.inflight(self.model.max_bandwidth.get())
    }

    /// IsTimeToGoDown.
    fn is_time_to_go_down(&mut self) -> bool {
        let longterm = self.model.inflight_longterm;
        if self.probe.prev_too_high && self.in_flight >= longterm {
            self.probe.prev_precautionary = true;
            return true;
        }
        if self.is_window_limited() && self.window >= longterm {
            // The bound keeps the rate from growing, not the path.
            self.full_pipe.reset(self.sample.delivery_rate);
            return false;
        }
        self.full_pipe.now
    }

    /// AdaptLongTermModel. Returns whether it chose the next state.
    fn adapt_longterm_model(&mut self) -> bool {
        if self.probe.ack_phase == AckPhase::ProbeStarting && self.rounds.start {
            self.probe.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.probe.ack_phase == AckPhase::ProbeStopping && self.rounds.start {
            self.probe.is_sample = false;
            self.probe.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() && !self.sample.app_limited {
                self.model.max_bandwidth.advance();
            }
            // The cautious probe did no harm, so a real one follows at once.
            let harmless = self.probe.prev_precautionary && !self.probe.prev_too_high;
            if self.state.is_probe_bw() && harmless {
                self.start_probe_bw_refill();
                return true;
            }
        }
        let unbounded = self.model.inflight_longterm == UNBOUNDED;
        if !unbounded && !self.is_inflight_too_high(self.sample.lost, self.sample.tx_in_flight) {
            let proven = self.sample.tx_in_flight;
            self.model.inflight_longterm = self.model.inflight_longterm.max(proven);
            if self.state == State::ProbeBw(Phase::Up) {
                self.probe_inflight_longterm_upward();
            }
        }
        false
    }

    /// RaiseInflightLongtermSlope: doubles the increments every round.
    fn raise_inflight_longterm_slope(&mut self) {
        let growth = 1u64 << self.probe.up_rounds;
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(MAX_UP_ROUNDS);
        self.probe.up_acked_per_increment = (self.window / growth).max(self.mtu());
    }

    /// ProbeInflightLongtermUpward.
    fn probe_inflight_longterm_upward(&mut self) {
        if !self.is_window_limited() || self.window < self.model.inflight_longterm {
            return;
        }
        let acked = self.probe.up_acked.saturating_add(self.sample.newly_acked);
        let increments = acked / self.probe.up_acked_per_increment.max(1);
        self.probe.up_acked = acked % self.probe.up_acked_per_increment.max(1);
        let growth = increments.saturating_mul(self.mtu());
        // Stay below "no bound", which has another meaning.
        let bound = self.limits.max();
        self.model.inflight_longterm =
            self.model.inflight_longterm.saturating_add(growth).min(bound);
        if self.rounds.start {
            self.raise_inflight_longterm_slope();
        }
    }
}
