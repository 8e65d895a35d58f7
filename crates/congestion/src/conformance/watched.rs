//! A controller whose every answer is checked.

use crate::SpaceId;
use crate::conformance::CENTURY;
use crate::loss_floor::LossFloor;
use crate::rtt::RttEstimator;
use crate::{
    Acked, CongestionController, CongestionFactory, Lost, Packet, PacketState, PathParameters,
    Sent, WindowLimits,
};
use std::time::{Duration, Instant};

/// Wraps a controller, and checks the rules that hold after every call.
#[derive(Debug)]
pub(super) struct WatchedController {
    name: String,
    controller: Box<dyn CongestionController>,
    limits: WindowLimits,
    /// The estimate as of the latest acknowledgement.
    rtt: RttEstimator,
}

/// How much a controller allows to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effort {
    /// The window in bytes.
    pub(super) window: u64,
    /// The rate in bytes per second, if the controller has one.
    pub(super) rate: Option<u64>,
}

impl Effort {
    /// Whether the window or the rate is lower than in `before`.
    pub(super) fn is_below(&self, before: &Self) -> bool {
        self.window < before.window || (self.rate.is_some() && self.rate < before.rate)
    }
}

impl WatchedController {
    /// Builds a controller for `path` and checks it.
    pub(super) fn new(factory: &dyn CongestionFactory, path: &PathParameters) -> Self {
        let (name, controller) = (factory.name().to_owned(), factory.build(path));
        assert!(!name.is_empty(), "an algorithm has a name");
        let called = controller.name();
        assert_eq!(called, name, "a controller is called what its factory is called");
        let rtt = RttEstimator::default();
        let watched = Self { name, controller, limits: path.limits(), rtt };
        watched.check("it was made");
        watched
    }

    /// The name of its algorithm, for messages.
    pub(super) fn algorithm(&self) -> &str {
        &self.name
    }

    /// Its current effort.
    pub(super) fn effort(&self) -> Effort {
        Effort { window: self.window(), rate: self.pacing_rate(&self.rtt) }
    }

    /// Checks the rules that hold after each call; `call` names it.
    fn check(&self, call: &str) {
        let (name, window) = (&self.name, self.controller.window());
        let (min, max) = (self.limits.min(), self.limits.max());
        assert!(
            window >= min,
            "{name}, after {call}: the window of {window} bytes is below two datagrams, {min} \
             bytes (RFC 9002 section 7.2)"
        );
        assert!(
            window <= max,
            "{name}, after {call}: the window of {window} bytes is above the maximum of {max} bytes"
        );
        self.check_questions(call);
    }

    /// Like [`Self::check`], after a call about `packets`.
    fn check_empty(&self, call: &str, packets: &[Packet], before: Effort) {
        self.check(call);
        let (name, after) = (&self.name, self.effort());
        assert!(
            !packets.is_empty() || before == after,
            "{name}, after {call}: news of no packets changed {before:?} into {after:?}"
        );
    }

    fn check_questions(&self, call: &str) {
        let (name, asked) = (&self.name, &self.controller);
        let twice = "a question changed the answer to it";
        assert_eq!(asked.window(), asked.window(), "{name}, after {call}: {twice}, `window`");
        let (first, second) = (asked.slow_start_threshold(), asked.slow_start_threshold());
        assert_eq!(first, second, "{name}, after {call}: {twice}, `slow_start_threshold`");
        assert_eq!(asked.name(), name, "{name}, after {call}: its name changed");
        // The round-trip times of a path within one machine, and of a path that has stalled.
        let (none, endless) = (RttEstimator::new(Duration::ZERO), RttEstimator::new(CENTURY));
        for rtt in [&self.rtt, &none, &endless] {
            let (first, second) = (asked.pacing_rate(rtt), asked.pacing_rate(rtt));
            assert_eq!(first, second, "{name}, after {call}: {twice}, `pacing_rate`");
        }
    }
}

impl CongestionController for WatchedController {
    fn on_packet_sent(&mut self, now: Instant, packet: &Sent) -> PacketState {
        let state = self.controller.on_packet_sent(now, packet);
        self.check("on_packet_sent");
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
        self.rtt = rtt.clone();
        let before = self.effort();
        self.controller.on_packets_acked(now, acked, rtt, in_flight, app_limited);
        self.check_empty("on_packets_acked", acked, before);
    }

    fn on_packets_lost(&mut self, now: Instant, lost: &[Lost], persistent: bool, in_flight: u64) {
        let before = self.effort();
        self.controller.on_packets_lost(now, lost, persistent, in_flight);
        self.check_empty("on_packets_lost", lost, before);
    }

    fn on_ecn_ce(&mut self, now: Instant, sent: Instant, newly_marked: u64, in_flight: u64) {
        self.controller.on_ecn_ce(now, sent, newly_marked, in_flight);
        self.check("on_ecn_ce");
    }

    fn on_loss_floor(&mut self, floor: &LossFloor) {
        self.controller.on_loss_floor(floor);
        self.check("on_loss_floor");
    }

    fn on_spurious_loss(&mut self, now: Instant, packets: &[Lost]) {
        let before = self.effort();
        self.controller.on_spurious_loss(now, packets);
        self.check_empty("on_spurious_loss", packets, before);
        let (name, before, after) = (&self.name, before.window, self.window());
        assert!(
            after >= before,
            "{name}: losses turned out to be none, and the window fell from {before} to {after} \
             bytes"
        );
    }

    fn on_discarded(&mut self, space: SpaceId, bytes: u64) {
        self.controller.on_discarded(space, bytes);
        self.check("on_discarded");
    }

    fn on_mtu_changed(&mut self, mtu: u16) {
        // The window does not matter here: only the limits are used.
        let _ = self.limits.change_mtu(mtu, 0);
        self.controller.on_mtu_changed(mtu);
        self.check("on_mtu_changed");
    }

    fn window(&self) -> u64 {
        self.controller.window()
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        self.controller.slow_start_threshold()
    }

    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<u64> {
        self.controller.pacing_rate(rtt)
    }

    fn name(&self) -> &str {
        self.controller.name()
    }
}
