//! The round-trip time of the empty path, and ProbeRTT, which empties the path (section 5.3.4).

use super::probe_bw::AckPhase;
use super::{Bbr, State};
use std::time::{Duration, Instant};

/// How long a minimum remains valid.
const MIN_RTT_FILTER: Duration = Duration::from_secs(10);
/// How long the flow continues without seeing the path empty.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// An application-limited flow whose round-trip times stay within this many eighths of the minimum
/// builds no queue: it sees the path empty all the time and need not empty it.
const SIMILAR_RTT_EIGHTHS: u32 = 9;
/// How long the path is kept empty.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

/// The filter for the minimum, and the schedule of the probes that refresh it.
#[derive(Debug, Clone, Default)]
pub(super) struct MinRtt {
    /// The minimum of the filter's window and when it was measured.
    min: Option<(Duration, Instant)>,
    /// The minimum since the last probe and when it was measured, or when the probe ended.
    probed: Option<(Duration, Instant)>,
    expired: bool,
    /// When the current probe may end; set once the flight is small.
    done: Option<Instant>,
    /// Whether a round has passed with a small flight.
    round_done: bool,
}

impl MinRtt {
    /// BBR.min_rtt; `None` before the first sample.
    pub(super) fn get(&self) -> Option<Duration> {
        self.min.map(|(min, _)| min)
    }
}

/// Whether more than `interval` has passed since `stamp`.
fn passed(now: Instant, stamp: Instant, interval: Duration) -> bool {
    now.saturating_duration_since(stamp) > interval
}

impl Bbr {
    /// UpdateMinRTT.
    pub(super) fn update_min_rtt(&mut self, now: Instant) {
        let filter = &mut self.min_rtt;
        let rtt = self.sample.rtt;
        filter.expired = filter.probed.is_some_and(|(_, at)| passed(now, at, PROBE_RTT_INTERVAL));
        let probed = match filter.probed {
            Some((min, at)) if rtt >= min && !filter.expired => {
                let empty = self.sample.app_limited && rtt <= min / 8 * SIMILAR_RTT_EIGHTHS;
                (min, if empty { now } else { at })
            }
            _ => (rtt, now),
        };
        filter.probed = Some(probed);
        filter.min = match filter.min {
            Some((min, at)) if probed.0 >= min && !passed(now, at, MIN_RTT_FILTER) => {
                Some((min, at))
            }
            _ => Some(probed),
        };
    }

    /// CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, now: Instant) {
        if self.state != State::ProbeRtt && self.min_rtt.expired && !self.idle_restart {
            self.save_window();
            self.state = State::ProbeRtt;
            self.min_rtt.done = None;
            self.probe.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(now);
        }
        if self.sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// HandleProbeRTT.
    fn handle_probe_rtt(&mut self, now: Instant) {
        // Low rates are caused by us, not by the path.
        self.sampler.mark_app_limited(self.in_flight);
        if self.min_rtt.done.is_some() {
            self.min_rtt.round_done |= self.rounds.start;
            if self.min_rtt.round_done {
                self.check_probe_rtt_done(now);
            }
        } else if self.in_flight <= self.probe_rtt_window() {
            self.min_rtt.done = now.checked_add(PROBE_RTT_DURATION);
            self.min_rtt.round_done = false;
            self.start_round();
        }
    }

    /// CheckProbeRTTDone.
    pub(super) fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.min_rtt.done.is_none_or(|done| now <= done) {
            return;
        }
        if let Some((_, at)) = &mut self.min_rtt.probed {
            *at = now;
        }
        self.restore_window();
        self.exit_probe_rtt(now);
    }

    /// ExitProbeRTT: the flight is small, so the cycle can continue with CRUISE.
    fn exit_probe_rtt(&mut self, now: Instant) {
        self.model.reset_shortterm();
        if self.full_pipe.reached {
            self.start_probe_bw_down(now);
            self.start_probe_bw_cruise();
        } else {
            self.enter_startup();
        }
    }

    /// ProbeRTTCwnd.
    pub(super) fn probe_rtt_window(&self) -> u64 {
        let (_, gain) = State::ProbeRtt.gains();
        self.bdp(self.model.bandwidth, gain).max(self.min_pipe())
    }
}
