//! How many bytes may be in flight: additive increase, multiplicative decrease.

use crate::tally::Tally;
use std::time::Instant;
use sutura::policy::{
    Acked, CongestionController, CongestionFactory, Lost, PacketState, PathParameters,
    RttEstimator, Sent, WindowLimits,
};

const NAME: &str = "aimd";

/// The window grows by one datagram for each window that arrived, and is halved after a loss. Without a slow
/// start, it grows slowly on long paths.
#[derive(Debug, Clone, Default)]
pub struct Aimd {
    /// Packets that were acknowledged.
    pub acked: Tally,
    /// How often the window was cut.
    pub cuts: Tally,
}

impl CongestionFactory for Aimd {
    fn name(&self) -> &str {
        NAME
    }

    fn build(&self, path: &PathParameters) -> Box<dyn CongestionController> {
        let limits = path.limits();
        let window = limits.initial();
        Box::new(Controller { limits, window, acked_bytes: 0, cut_at: None, tallies: self.clone() })
    }
}

/// The controller of one path.
#[derive(Debug)]
struct Controller {
    limits: WindowLimits,
    window: u64,
    /// Bytes that arrived since the window last grew.
    acked_bytes: u64,
    /// When the window was last cut.
    cut_at: Option<Instant>,
    tallies: Aimd,
}

impl Controller {
    /// Cuts the window to half of `too_large`, if the window is larger than that.
    fn cut(&mut self, now: Instant, too_large: u64) {
        let half = self.limits.clamp(too_large / 2);
        if half < self.window {
            self.window = half;
            self.acked_bytes = 0;
            self.cut_at = Some(now);
            self.tallies.cuts.add(1);
        }
    }
}

impl CongestionController for Controller {
    /// The state of each packet is the window with which the packet was sent.
    fn on_packet_sent(&mut self, _now: Instant, _packet: &Sent) -> PacketState {
        PacketState::from_words([self.window, 0, 0, 0, 0])
    }

    fn on_packets_acked(
        &mut self,
        _now: Instant,
        acked: &[Acked],
        _rtt: &RttEstimator,
        _in_flight: u64,
        app_limited: bool,
    ) {
        self.tallies.acked.add(acked.len() as u64);
        // A window that was not used up has not shown that it fits the path.
        if app_limited {
            return;
        }
        for packet in acked {
            self.acked_bytes += packet.bytes;
            if self.acked_bytes >= self.window {
                self.acked_bytes -= self.window;
                self.window = self.limits.clamp(self.window + self.limits.mtu());
            }
        }
    }

    /// The window with which a lost packet was sent was too large. All packets of a flight have about the
    /// same window in their state, so that the window is cut once for them, and again only if a packet is
    /// lost that was sent after the cut.
    fn on_packets_lost(&mut self, now: Instant, lost: &[Lost], persistent: bool, _in_flight: u64) {
        for packet in lost {
            let [window, ..] = packet.state.words();
            self.cut(now, window);
        }
        if persistent && !lost.is_empty() {
            // Persistent congestion cuts to the smallest window.
            self.cut(now, 0);
        }
    }

    /// A mark asks for the same cut as a loss, but comes without the state of a packet. Instead, the time at
    /// which the packet was sent tells whether the window was cut since.
    fn on_ecn_ce(&mut self, now: Instant, sent: Instant, _newly_marked: u64, _in_flight: u64) {
        if self.cut_at.is_none_or(|at| sent > at) {
            self.cut(now, self.window);
        }
    }

    fn on_mtu_changed(&mut self, mtu: u16) {
        self.window = self.limits.change_mtu(mtu, self.window);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn name(&self) -> &str {
        NAME
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sutura::SpaceId;
    use sutura::policy::Packet;

    #[test]
    fn keeps_the_contract() {
        sutura::conformance::congestion(&Aimd::default());
    }

    #[test]
    fn the_losses_of_one_flight_cut_the_window_once() {
        let now = Instant::now();
        let mut controller = Aimd::default().build(&PathParameters::new(1200, 0));
        let send = |controller: &mut dyn CongestionController, pn| {
            let sent = Sent::new(SpaceId::Data, pn, 1200);
            Packet::new(&sent, now, controller.on_packet_sent(now, &sent))
        };
        let [first, second] = [0, 1].map(|pn| send(&mut *controller, pn));
        controller.on_packets_lost(now, &[first], false, 0);
        controller.on_packets_lost(now, &[second], false, 0);
        assert_eq!(controller.window(), 6000);
        let third = send(&mut *controller, 2);
        controller.on_packets_lost(now, &[third], false, 0);
        assert_eq!(controller.window(), 3000);
    }
}
