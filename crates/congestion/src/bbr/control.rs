//! Derives pacing rate and window from the model (section 5.6).

use super::{Bbr, Phase, State, UNBOUNDED};
use crate::arithmetic::{mul_div, percent, rate_of};
use std::time::Duration;

/// How far below the estimated bandwidth a flow paces, in percent.
const PACING_MARGIN: u64 = 1;
/// The round-trip time assumed for the initial rate: short, so that the window is the limit.
const NOMINAL_RTT: Duration = Duration::from_millis(1);

impl Bbr {
    /// InitPacingRate: one window per round trip, until the bandwidth is known.
    pub(super) fn init_pacing_rate(&mut self, rtt: Option<Duration>) {
        self.rate_initialised = rtt.is_some();
        let rtt = rtt.filter(|rtt| !rtt.is_zero()).unwrap_or(NOMINAL_RTT);
        let (gain, _) = State::Startup.gains();
        self.pacing_rate = percent(rate_of(self.limits.initial(), rtt), gain);
    }

    /// SetPacingRate.
    pub(super) fn set_pacing_rate(&mut self) {
        let (gain, _) = self.state.gains();
        self.set_pacing_rate_with_gain(gain);
    }

    /// SetPacingRateWithGain.
    pub(super) fn set_pacing_rate_with_gain(&mut self, gain: u64) {
        let rate = mul_div(self.model.bandwidth, gain * (100 - PACING_MARGIN), 10_000);
        // Until the pipe was full, a low sample may only mean that there was little to send.
        if self.full_pipe.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// SetCwnd of section 5.6.4.6.
    pub(super) fn set_window(&mut self) {
        let max_inflight = self.max_inflight();
        let grown = self.window.saturating_add(self.sample.newly_acked);
        if self.full_pipe.reached {
            self.window = grown.min(max_inflight);
        } else if self.window < max_inflight || self.sampler.delivered() < self.limits.initial() {
            self.window = grown;
        }
        self.window = self.window.max(self.min_pipe());
        if self.state == State::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        self.bound_window_for_model();
        self.window = self.limits.clamp(self.window);
    }

    /// BoundCwndForModel of section 5.6.4.7.
    fn bound_window_for_model(&mut self) {
        let volume = match self.state {
            State::ProbeBw(Phase::Cruise) | State::ProbeRtt => self.inflight_with_headroom(),
            State::ProbeBw(_) => self.model.inflight_longterm,
            State::Startup | State::Drain => UNBOUNDED,
        };
        let bound = volume.min(self.model.inflight_shortterm).max(self.min_pipe());
        self.window = self.window.min(bound);
    }
}
