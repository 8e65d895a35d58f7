//! A sender that knows the fate of every packet in advance: it sends each flight at once, and
//! acknowledges it or declares it lost a round trip later.

use super::watched::WatchedController;
use crate::SpaceId;
use crate::rtt::RttEstimator;
use crate::{CongestionController, CongestionFactory, Packet, PathParameters, Sent};
use std::time::{Duration, Instant};

/// The round-trip time.
const ROUND: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct RoundCounter {
    pub(super) controller: WatchedController,
    mtu: u64,
    now: Instant,
    rtt: RttEstimator,
    next_pn: u64,
}

impl RoundCounter {
    pub(super) fn new(factory: &dyn CongestionFactory, path: &PathParameters) -> Self {
        Self {
            controller: WatchedController::new(factory, path),
            mtu: path.mtu.into(),
            // The result does not depend on the start time.
            now: Instant::now(),
            rtt: RttEstimator::default(),
            next_pn: 0,
        }
    }

    /// Sends as much as the window allows, then advances the time by a round trip.
    pub(super) fn fly(&mut self) -> Vec<Packet> {
        let packets = self.controller.window() / self.mtu;
        self.fly_packets(packets, false)
    }

    /// Sends this many packets, then advances the time by a round trip.
    pub(super) fn fly_packets(&mut self, packets: u64, app_limited: bool) -> Vec<Packet> {
        let mut flight = Vec::new();
        for number in 0..packets {
            let sent = Sent::new(SpaceId::Data, self.next_pn, self.mtu);
            let sent = Sent { in_flight: number.saturating_mul(self.mtu), app_limited, ..sent };
            let state = self.controller.on_packet_sent(self.now, &sent);
            flight.push(Packet::new(&sent, self.now, state));
            self.next_pn += 1;
        }
        self.now += ROUND;
        flight
    }

    /// Reports that all packets of a flight arrived.
    pub(super) fn acknowledge(&mut self, flight: &[Packet], app_limited: bool) {
        self.rtt.update(self.now, ROUND, Duration::ZERO);
        self.controller.on_packets_acked(self.now, flight, &self.rtt, 0, app_limited);
    }

    /// Like [`Self::acknowledge`], but all packets were ECN-marked by the network.
    pub(super) fn acknowledge_marked(&mut self, flight: &[Packet]) {
        if let Some(newest) = flight.last() {
            self.controller.on_ecn_ce(self.now, newest.sent, flight.len() as u64, 0);
        }
        self.acknowledge(flight, false);
    }

    /// Reports all packets of a flight as lost.
    pub(super) fn lose(&mut self, flight: &[Packet]) {
        self.controller.on_packets_lost(self.now, flight, false, 0);
    }

    /// Reports that the lost packets arrived after all.
    pub(super) fn refute(&mut self, lost: &[Packet]) {
        self.controller.on_spurious_loss(self.now, lost);
    }
}
