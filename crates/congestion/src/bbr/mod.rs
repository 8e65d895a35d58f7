//! BBR version 3 (draft-ietf-ccwg-bbr-06): rate and window follow from a model of the path, its bandwidth and
//! its round-trip time, bounded by losses above a threshold and a short-term model.
//!
//! Section numbers in this module refer to the draft. Where the draft leaves room, or where this
//! implementation differs:
//!
//! * ECN-CE is a congestion signal that needs no threshold (section 3.7): a mark while probing ends
//!   the probe, a mark in Startup ends Startup after the round, and any other mark adapts the
//!   short-term model like a loss.
//! * Recovery periods are as in RFC 9002: a period ends when a packet sent after its beginning is
//!   acknowledged. The state for undoing a spurious one is saved when it begins. Refuted losses are taken
//!   back one by one, and with them a decision that the remaining losses would not have caused.
//! * An application-limited flow whose round-trip times stay near the minimum does not enter
//!   ProbeRTT (the draft exempts only flows that fall idle). A steady stream below the path's rate
//!   would otherwise stall every five seconds to measure a round-trip time that it sees with every packet.
//! * Losses count only as far as they exceed the path's floor ([`LossFloor`]), where the draft
//!   compares all losses with its threshold and adapts the short-term model to any. A decision for which the floor
//!   was not known yet is taken back once it is.
//! * The short-term model does not adapt to samples of an application-limited flow. The draft would lower
//!   the bounds to the rate at which the application happened to send, and pace it at that rate.
//! * A flight after a silence is paced at the rate that earlier flights were carried at ([`flights`]), if
//!   that is faster. The draft knows such flights only by their size over the round-trip time.
//! * Persistent congestion takes the place of the retransmission timeout: the window collapses to
//!   the minimum window until recovery ends.

mod control;
mod filter;
mod flights;
mod loss;
mod model;
mod probe_bw;
mod probe_rtt;
mod startup;
#[cfg(test)]
mod tests;

use super::delivery::{DeliverySampler, RateSample};
use super::episode::{Cause, Episodes};
use super::{
    Acked, Algorithm, CongestionController, CongestionFactory, Lost, PacketState, Sent,
    WindowLimits,
};
use crate::SpaceId;
use crate::loss_floor::LossFloor;
use crate::rtt::RttEstimator;
use flights::Flights;
use loss::{Bounds, LossRound, TooHigh};
use model::{Aggregation, Model, Rounds};
use probe_bw::ProbeBw;
use probe_rtt::MinRtt;
use startup::FullPipe;
use std::sync::Arc;
use std::time::Instant;
use sutura_random::SplitMix64;
use sutura_schedule::registry::Entry;

impl Algorithm {
    /// BBR version 3 (draft-ietf-ccwg-bbr). The default.
    pub const BBR: Self = Self::new("bbr", |path| Box::new(Bbr::new(path.limits(), path.seed)));
    /// BBR whose threshold and bounds heed every loss, as published, for comparison.
    pub const BBR_WITHOUT_FLOOR: Self = Self::new("bbr:floor=off", |path| {
        Box::new(Bbr { heeds_floor: false, ..Bbr::new(path.limits(), path.seed) })
    });
}

pub(super) const ENTRY: Entry<dyn CongestionFactory> = Entry::with_parameters(
    Algorithm::BBR.name(),
    "as fast as the path was measured to deliver, little queue, some loss",
    "floor=on",
    |parameters| {
        let on = parameters.switch("floor", true)?;
        Ok(Arc::new(if on { Algorithm::BBR } else { Algorithm::BBR_WITHOUT_FLOOR }))
    },
);

/// The value of a bound that is not set.
const UNBOUNDED: u64 = u64::MAX;
/// The smallest window, in packets, that keeps packets and acknowledgements flowing (MinPipeCwnd).
const MIN_PIPE_PACKETS: u64 = 4;

/// The state of a flow (section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Doubling the rate every round.
    Startup,
    /// Draining the queue that Startup built.
    Drain,
    /// Steady state.
    ProbeBw(Phase),
    /// Emptying the path to measure its round-trip time.
    ProbeRtt,
}

/// A phase of the steady state (section 5.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Slower than the path, to drain queues.
    Down,
    /// As fast as the path.
    Cruise,
    /// As fast as the path and without short-term bounds: fills the pipe before the probe.
    Refill,
    /// Faster than the path.
    Up,
}

impl State {
    /// Gains on the bandwidth and the bandwidth-delay product, in percent (section 5.6.1).
    fn gains(self) -> (u64, u64) {
        match self {
            Self::Startup => (277, 200),
            Self::Drain => (50, 200),
            Self::ProbeBw(Phase::Down) => (90, 200),
            Self::ProbeBw(Phase::Cruise | Phase::Refill) => (100, 200),
            Self::ProbeBw(Phase::Up) => (125, 225),
            Self::ProbeRtt => (100, 50),
        }
    }

    fn is_probe_bw(self) -> bool {
        matches!(self, Self::ProbeBw(_))
    }

    /// Whether the flow is testing for more bandwidth, so that losses are an answer and no
    /// surprise.
    fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeBw(Phase::Refill | Phase::Up))
    }
}

/// The BBR controller.
#[derive(Debug)]
pub struct Bbr {
    limits: WindowLimits,
    prng: SplitMix64,
    sampler: DeliverySampler,
    /// The newest sample (RS).
    sample: RateSample,
    /// Bytes in flight, as last reported.
    in_flight: u64,
    state: State,
    /// C.cwnd.
    window: u64,
    /// The window before recovery or ProbeRTT narrowed it; 0 if there is none to restore.
    prior_window: u64,
    /// The pacing rate in bytes per second.
    pacing_rate: u64,
    /// Whether the initial rate was set from a measured round-trip time.
    rate_initialised: bool,
    window_use: WindowUse,
    /// Whether no acknowledgement has arrived since the flow restarted from idle.
    idle_restart: bool,
    rounds: Rounds,
    model: Model,
    aggregation: Aggregation,
    full_pipe: FullPipe,
    /// The round in which Drain was entered.
    drain_start_round: u64,
    probe: ProbeBw,
    min_rtt: MinRtt,
    loss_round: LossRound,
    episodes: Episodes<Bounds>,
    /// The newest decision because of losses that may turn out to be wrong.
    too_high: Option<Box<TooHigh>>,
    flights: Flights,
    floor: LossFloor,
    heeds_floor: bool,
}

/// Whether the window limited the flow in this round or the previous one (C.is_cwnd_limited).
#[derive(Debug, Clone, Copy, Default)]
struct WindowUse {
    this_round: bool,
    last_round: bool,
}

impl Bbr {
    /// Creates a controller in Startup with the initial window. `seed` randomises the times of its
    /// probes.
    #[must_use]
    pub fn new(limits: WindowLimits, seed: u64) -> Self {
        let mut bbr = Self {
            limits,
            prng: SplitMix64::new(seed),
            sampler: DeliverySampler::default(),
            sample: RateSample::default(),
            in_flight: 0,
            state: State::Startup,
            window: limits.initial(),
            prior_window: 0,
            pacing_rate: 0,
            rate_initialised: false,
            window_use: WindowUse::default(),
            idle_restart: false,
            rounds: Rounds::default(),
            model: Model::default(),
            aggregation: Aggregation::default(),
            full_pipe: FullPipe::default(),
            drain_start_round: 0,
            probe: ProbeBw::default(),
            min_rtt: MinRtt::default(),
            loss_round: LossRound::default(),
            episodes: Episodes::default(),
            too_high: None,
            flights: Flights::default(),
            floor: LossFloor::default(),
            heeds_floor: true,
        };
        bbr.init_pacing_rate(None);
        bbr
    }

    fn mtu(&self) -> u64 {
        self.limits.mtu()
    }

    /// MinPipeCwnd in bytes, within the window's bounds.
    fn min_pipe(&self) -> u64 {
        self.limits.clamp(self.mtu().saturating_mul(MIN_PIPE_PACKETS))
    }

    fn is_window_limited(&self) -> bool {
        self.window_use.this_round || self.window_use.last_round
    }

    /// UpdateModelAndState of section 5.2.3.
    fn update_model_and_state(&mut self, now: Instant) {
        self.update_latest_delivery_signals();
        self.update_congestion_signals();
        self.update_ack_aggregation(now);
        self.check_full_bandwidth_reached();
        self.check_startup_done();
        self.check_drain_done(now);
        self.update_probe_bw_phase(now);
        self.update_min_rtt(now);
        self.check_probe_rtt(now);
        self.advance_latest_delivery_signals();
        self.bound_bandwidth_for_model();
    }

    /// HandleRestartFromIdle of section 5.4.1: nothing was in flight and there was nothing to send.
    fn restart_from_idle(&mut self, now: Instant) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.state {
            State::ProbeBw(_) => self.set_pacing_rate_with_gain(100),
            State::ProbeRtt => self.check_probe_rtt_done(now),
            State::Startup | State::Drain => {}
        }
    }
}

impl CongestionController for Bbr {
    fn on_packet_sent(&mut self, now: Instant, packet: &Sent) -> PacketState {
        let state = self.sampler.on_packet_sent(now, packet);
        if packet.in_flight == 0 && self.sampler.is_app_limited() {
            self.restart_from_idle(now);
        }
        self.count_flight(packet);
        self.in_flight = packet.in_flight.saturating_add(packet.bytes);
        if self.in_flight.saturating_add(self.mtu()) > self.window {
            self.window_use.this_round = true;
        }
        state
    }

    fn on_packets_acked(
        &mut self,
        now: Instant,
        acked: &[Acked],
        rtt: &RttEstimator,
        in_flight: u64,
        app_limited: bool,
    ) {
        let Some(sample) = self.sampler.on_packets_acked(now, acked, rtt.min()) else {
            return;
        };
        if app_limited {
            self.sampler.mark_app_limited(in_flight);
        }
        self.sample = sample;
        self.flights.on_acked(sample.train);
        self.in_flight = in_flight;
        self.loss_round.on_rtt(rtt.latest());
        if !self.rate_initialised && rtt.first_sample().is_some() {
            self.init_pacing_rate(Some(rtt.smoothed()));
        }
        self.update_model_and_state(now);
        // End recovery only after the model has seen the round that it covered.
        let ended = acked.iter().any(|packet| self.episodes.on_acked(packet.sent));
        if ended {
            self.restore_window();
        }
        self.set_pacing_rate();
        self.set_window();
        self.end_flight();
    }

    fn on_packets_lost(
        &mut self,
        now: Instant,
        lost: &[Lost],
        persistent_congestion: bool,
        in_flight: u64,
    ) {
        if lost.is_empty() {
            return;
        }
        self.in_flight = in_flight;
        for packet in lost {
            if !self.episodes.covers(packet.sent) {
                self.begin_recovery(now, Cause::Loss);
            }
            self.handle_lost_packet(now, packet);
        }
        self.episodes.on_lost(lost);
        if persistent_congestion {
            self.collapse();
        }
        self.end_flight();
    }

    fn on_loss_floor(&mut self, floor: &LossFloor) {
        if self.heeds_floor {
            self.floor = *floor;
            self.handle_floor();
        }
    }

    fn on_ecn_ce(&mut self, now: Instant, sent: Instant, _newly_marked: u64, in_flight: u64) {
        self.in_flight = in_flight;
        if self.episodes.covers(sent) {
            self.episodes.confirm();
        } else {
            self.begin_recovery(now, Cause::EcnCe);
        }
        self.handle_mark(now);
    }

    fn on_spurious_loss(&mut self, now: Instant, packets: &[Lost]) {
        if !packets.is_empty() {
            self.handle_refuted_packets(now, packets);
        }
    }

    fn on_discarded(&mut self, _space: SpaceId, bytes: u64) {
        self.sampler.on_discarded(bytes);
        self.in_flight = self.in_flight.saturating_sub(bytes);
    }

    fn on_mtu_changed(&mut self, mtu: u16) {
        self.window = self.limits.change_mtu(mtu, self.window);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn pacing_rate(&self, _rtt: &RttEstimator) -> Option<u64> {
        Some(self.pacing_rate.max(self.flights.pacing_rate()))
    }

    fn name(&self) -> &'static str {
        let on = self.heeds_floor;
        if on { Algorithm::BBR.name() } else { Algorithm::BBR_WITHOUT_FLOOR.name() }
    }
}
