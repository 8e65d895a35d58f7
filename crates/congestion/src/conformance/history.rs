//! Random calls, as irregular as those of a connection can be. Controllers must answer the same calls alike.

use super::watched::WatchedController;
use crate::SpaceId;
use crate::conformance::CENTURY;
use crate::rtt::RttEstimator;
use crate::{CongestionController, CongestionFactory, Packet, PathParameters, Sent};
use std::time::{Duration, Instant};
use sutura_random::Rng;

/// Number of histories, and of calls in each.
const HISTORIES: u64 = 48;
const STEPS: usize = 250;

/// One step of a history.
#[derive(Debug, Clone, Copy)]
enum PacketStep {
    Wait(Duration),
    Send { space: SpaceId, bytes: u64, app_limited: bool },
    Acknowledge { space: SpaceId, most: u64, app_limited: bool },
    Lose { space: SpaceId, most: u64, persistent: bool },
    Refute { space: SpaceId, most: u64 },
    Mark { age: Duration, newly_marked: u64 },
    Discard(SpaceId),
    ChangeMtu(u16),
}

impl PacketStep {
    fn any(random: &mut Rng) -> Self {
        let space = match random.below(10) {
            0 => SpaceId::Initial,
            1 => SpaceId::Handshake,
            _ => SpaceId::Data,
        };
        let app_limited = random.below(4) == 0;
        match random.below(32) {
            0..5 => Self::Wait(Duration::from_micros(random.below(100_000))),
            5 => Self::Wait(Duration::from_secs(random.below(3_600))),
            6..17 => Self::Send { space, bytes: size(random), app_limited },
            17..24 => Self::Acknowledge { space, most: 1 + random.below(20), app_limited },
            24..27 => {
                let persistent = random.below(10) == 0;
                Self::Lose { space, most: 1 + random.below(8), persistent }
            }
            27..29 => Self::Refute { space, most: 1 + random.below(8) },
            29 => {
                let age = Duration::from_micros(random.below(500_000));
                Self::Mark { age, newly_marked: 1 + random.below(100) }
            }
            30 => Self::ChangeMtu(random.next_u64() as u16),
            _ => Self::rare(random, space),
        }
    }

    fn rare(random: &mut Rng, space: SpaceId) -> Self {
        match random.below(4) {
            0 => Self::Wait(CENTURY),
            1 => Self::Discard(space),
            2 => Self::Send { space, bytes: u64::from(u16::MAX), app_limited: false },
            _ => Self::Mark { age: Duration::ZERO, newly_marked: u64::MAX },
        }
    }
}

/// Usually a full datagram.
fn size(random: &mut Rng) -> u64 {
    match random.below(8) {
        0 => random.below(1 << 16),
        1 => 1,
        _ => 1_200,
    }
}

/// The answers of a controller.
#[derive(Debug, PartialEq, Eq)]
struct ControllerAnswers {
    window: u64,
    rate: Option<u64>,
    threshold: Option<u64>,
}

/// Plays a history to a controller.
#[derive(Debug)]
struct Player {
    controller: WatchedController,
    now: Instant,
    rtt: RttEstimator,
    /// Selects the packets of each step.
    order: Rng,
    next_pn: [u64; 3],
    flights: [Vec<Packet>; 3],
    lost: [Vec<Packet>; 3],
}

impl Player {
    fn new(factory: &dyn CongestionFactory, path: &PathParameters, now: Instant) -> Self {
        Self {
            controller: WatchedController::new(factory, path),
            now,
            rtt: RttEstimator::default(),
            order: Rng::new(path.seed),
            next_pn: [0; 3],
            flights: Default::default(),
            lost: Default::default(),
        }
    }

    fn in_flight(&self) -> u64 {
        self.flights.iter().flatten().map(|packet| packet.bytes).sum()
    }

    fn play(&mut self, step: PacketStep) {
        match step {
            PacketStep::Wait(time) => self.now = self.now.checked_add(time).unwrap_or(self.now),
            PacketStep::Send { space, bytes, app_limited } => self.send(space, bytes, app_limited),
            PacketStep::Acknowledge { space, most, app_limited } => {
                self.acknowledge(space, most, app_limited);
            }
            PacketStep::Lose { space, most, persistent } => {
                let lost = draw(&mut self.order, &mut self.flights[space as usize], most);
                let in_flight = self.in_flight();
                self.controller.on_packets_lost(self.now, &lost, persistent, in_flight);
                self.lost[space as usize].extend(lost);
            }
            PacketStep::Refute { space, most } => {
                let refuted = draw(&mut self.order, &mut self.lost[space as usize], most);
                self.controller.on_spurious_loss(self.now, &refuted);
            }
            PacketStep::Mark { age, newly_marked } => {
                let sent = self.now.checked_sub(age).unwrap_or(self.now);
                self.controller.on_ecn_ce(self.now, sent, newly_marked, self.in_flight());
            }
            PacketStep::Discard(space) => self.discard(space),
            PacketStep::ChangeMtu(mtu) => self.controller.on_mtu_changed(mtu),
        }
    }

    fn send(&mut self, space: SpaceId, bytes: u64, app_limited: bool) {
        let pn = self.next_pn[space as usize];
        self.next_pn[space as usize] += 1;
        let in_flight = self.in_flight();
        let sent = Sent { in_flight, app_limited, ..Sent::new(space, pn, bytes) };
        let state = self.controller.on_packet_sent(self.now, &sent);
        self.flights[space as usize].push(Packet::new(&sent, self.now, state));
    }

    fn acknowledge(&mut self, space: SpaceId, most: u64, app_limited: bool) {
        let acked = draw(&mut self.order, &mut self.flights[space as usize], most);
        if let Some(newest) = acked.iter().map(|packet| packet.sent).max() {
            self.rtt.update(self.now, self.now - newest, Duration::ZERO);
        }
        let in_flight = self.in_flight();
        self.controller.on_packets_acked(self.now, &acked, &self.rtt, in_flight, app_limited);
    }

    /// The packet that discards the space acknowledges some others of that space.
    fn discard(&mut self, space: SpaceId) {
        let acked = draw(&mut self.order, &mut self.flights[space as usize], 2);
        let gone = std::mem::take(&mut self.flights[space as usize]);
        self.lost[space as usize].clear();
        let bytes = gone.iter().map(|packet| packet.bytes).sum();
        self.controller.on_discarded(space, bytes);
        let in_flight = self.in_flight();
        self.controller.on_packets_acked(self.now, &acked, &self.rtt, in_flight, false);
    }

    /// Queries and reports of no packets, which must not change anything.
    fn pester(&mut self) {
        let in_flight = self.in_flight();
        for flag in [false, true] {
            self.controller.on_packets_acked(self.now, &[], &self.rtt, in_flight, flag);
            self.controller.on_packets_lost(self.now, &[], flag, in_flight);
        }
        self.controller.on_spurious_loss(self.now, &[]);
        let _ = self.answers();
    }

    fn answers(&self) -> ControllerAnswers {
        ControllerAnswers {
            window: self.controller.window(),
            rate: self.controller.pacing_rate(&self.rtt),
            threshold: self.controller.slow_start_threshold(),
        }
    }
}

/// Takes up to `most` of the packets in random order.
fn draw(order: &mut Rng, packets: &mut Vec<Packet>, most: u64) -> Vec<Packet> {
    let count = most.min(packets.len() as u64);
    let mut next = || packets.swap_remove(order.below(packets.len() as u64) as usize);
    (0..count).map(|_| next()).collect()
}

/// Plays random histories, each to two controllers, and to a third controller that also gets queries and
/// reports of no packets in between.
pub(super) fn tell(factory: &dyn CongestionFactory) {
    for seed in 0..HISTORIES {
        let mut random = Rng::new(seed);
        let steps: Vec<PacketStep> = (0..STEPS).map(|_| PacketStep::any(&mut random)).collect();
        let mtu = [0, 1, 1_200, 1_452, u16::MAX][random.below(5) as usize];
        let max_window = [0, 100_000, u64::MAX][random.below(3) as usize];
        let path = PathParameters { max_window, ..PathParameters::new(mtu, seed) };
        compare(factory, &path, &steps);
    }
}

fn compare(factory: &dyn CongestionFactory, path: &PathParameters, steps: &[PacketStep]) {
    // The result does not depend on the start time.
    let start = Instant::now();
    let [mut first, mut second, mut pestered] =
        std::array::from_fn(|_| Player::new(factory, path, start));
    for (number, step) in steps.iter().enumerate() {
        for player in [&mut first, &mut second, &mut pestered] {
            player.play(*step);
        }
        pestered.pester();
        let (name, answers) = (first.controller.algorithm(), first.answers());
        assert_eq!(
            answers,
            second.answers(),
            "{name}: two controllers of one seed differ after the same {number} calls and {step:?}"
        );
        assert_eq!(
            answers,
            pestered.answers(),
            "{name}: questions or news of no packets changed something; noticed after {step:?}"
        );
    }
}
