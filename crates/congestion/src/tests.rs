//! Requirements on every algorithm, and the behaviour of the window-based ones on a bottleneck.

use super::bottleneck::{Application, BottleneckPath, MTU, Simulation};
use super::cubic::Cubic;
use super::new_reno::NewReno;
use super::*;
use crate::rtt::RttEstimator;
use proptest::prelude::*;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn limits() -> WindowLimits {
    WindowLimits::new(MTU as u16, MAX_WINDOW)
}

fn packet(pn: u64, sent: Instant) -> Packet {
    Packet::new(&Sent::new(SpaceId::Data, pn, MTU), sent, PacketState::default())
}

fn rtt_of(now: Instant, rtt: Duration) -> RttEstimator {
    let mut estimator = RttEstimator::default();
    estimator.update(now, rtt, Duration::ZERO);
    estimator
}

impl CongestionController for Box<dyn CongestionController> {
    fn on_packet_sent(&mut self, now: Instant, packet: &Sent) -> PacketState {
        (**self).on_packet_sent(now, packet)
    }
    fn on_packets_acked(
        &mut self,
        now: Instant,
        acked: &[Acked],
        rtt: &RttEstimator,
        in_flight: u64,
        app_limited: bool,
    ) {
        (**self).on_packets_acked(now, acked, rtt, in_flight, app_limited);
    }
    fn on_packets_lost(&mut self, now: Instant, lost: &[Lost], persistent: bool, in_flight: u64) {
        (**self).on_packets_lost(now, lost, persistent, in_flight);
    }
    fn on_ecn_ce(&mut self, now: Instant, sent: Instant, marked: u64, in_flight: u64) {
        (**self).on_ecn_ce(now, sent, marked, in_flight);
    }
    fn on_loss_floor(&mut self, floor: &LossFloor) {
        (**self).on_loss_floor(floor);
    }
    fn on_spurious_loss(&mut self, now: Instant, packets: &[Lost]) {
        (**self).on_spurious_loss(now, packets);
    }
    fn on_discarded(&mut self, space: SpaceId, bytes: u64) {
        (**self).on_discarded(space, bytes);
    }
    fn on_mtu_changed(&mut self, mtu: u16) {
        (**self).on_mtu_changed(mtu);
    }
    fn window(&self) -> u64 {
        (**self).window()
    }
    fn slow_start_threshold(&self) -> Option<u64> {
        (**self).slow_start_threshold()
    }
    fn pacing_rate(&self, rtt: &RttEstimator) -> Option<u64> {
        (**self).pacing_rate(rtt)
    }
    fn name(&self) -> &str {
        (**self).name()
    }
}

const ALL: [Algorithm; 3] = [Algorithm::NEW_RENO, Algorithm::CUBIC, Algorithm::BBR];

#[test]
fn all_start_with_the_initial_window() {
    for algorithm in ALL {
        assert_eq!(algorithm.build(&PathParameters::new(1_200, 0)).window(), 12_000);
        assert_eq!(algorithm.build(&PathParameters::new(1_500, 0)).window(), 14_720);
        let mut controller = algorithm.build(&PathParameters::new(1_200, 0));
        controller.on_mtu_changed(1_400);
        assert_eq!(controller.window(), 14_000);
    }
}

#[test]
fn all_grow_when_acknowledged_and_not_when_application_limited() {
    for algorithm in ALL {
        for app_limited in [false, true] {
            let t = Instant::now();
            let mut controller = algorithm.build(&PathParameters::new(MTU as u16, 0));
            let initial = controller.window();
            let sent = Sent::new(SpaceId::Data, 0, MTU);
            let acked = [Packet::new(&sent, t, controller.on_packet_sent(t, &sent))];
            let rtt = rtt_of(t, 50 * MS);
            controller.on_packets_acked(t + 50 * MS, &acked, &rtt, 0, app_limited);
            // BBR's window is a bound from its model, and it is the model that respects the limit.
            let grows = !app_limited || algorithm == Algorithm::BBR;
            assert_eq!(controller.window() > initial, grows, "{algorithm}, {app_limited}");
        }
    }
}

#[test]
fn persistent_congestion_leaves_the_minimum_window() {
    for algorithm in ALL {
        let t = Instant::now();
        let mut controller = algorithm.build(&PathParameters::new(MTU as u16, 0));
        controller.on_packets_lost(t + MS, &[packet(0, t)], true, 0);
        assert_eq!(controller.window(), 2 * MTU, "{algorithm}");
    }
}

#[test]
fn discarded_packets_say_nothing_about_the_path() {
    for algorithm in ALL {
        let t = Instant::now();
        let mut controller = algorithm.build(&PathParameters::new(MTU as u16, 0));
        let window = controller.window();
        controller.on_packet_sent(t, &Sent::new(SpaceId::Initial, 0, MTU));
        controller.on_discarded(SpaceId::Initial, MTU);
        controller.on_discarded(SpaceId::Handshake, u64::MAX);
        assert_eq!(controller.window(), window, "{algorithm}");
    }
}

#[test]
fn the_maximum_holds() {
    for algorithm in ALL {
        let controller = algorithm
            .build(&PathParameters { max_window: 100_000, ..PathParameters::new(MTU as u16, 0) });
        let mut simulation = Simulation::new(controller, BottleneckPath::new(100, 100, 100));
        simulation.run(3.0);
        let largest = simulation.moments.iter().map(|m| m.window.max(m.in_flight)).max();
        assert!(largest <= Some(100_000), "{algorithm}: {largest:?}");
        assert!(simulation.goodput(1.0, 3.0) > 800_000, "{algorithm} uses the window it has");
    }
}

#[test]
fn newreno_halves_once_a_round_trip() {
    let (t, mut reno) = (Instant::now(), NewReno::new(limits()));
    reno.on_packets_acked(
        t + 50 * MS,
        &[Packet { bytes: 88_000, ..packet(0, t) }],
        &rtt_of(t, 50 * MS),
        0,
        false,
    );
    assert_eq!(reno.window(), 100_000, "slow start adds what was acknowledged");
    reno.on_packets_lost(t + 100 * MS, &[packet(1, t + 50 * MS)], false, 0);
    assert_eq!((reno.window(), reno.slow_start_threshold()), (50_000, Some(50_000)));
    reno.on_packets_lost(t + 110 * MS, &[packet(2, t + 100 * MS)], false, 0);
    reno.on_ecn_ce(t + 110 * MS, t + 90 * MS, 1, 0);
    assert_eq!(reno.window(), 50_000, "sent before the reaction");
    reno.on_ecn_ce(t + 160 * MS, t + 101 * MS, 1, 0);
    assert_eq!(reno.window(), 25_000, "a mark of the next flight");
}

#[test]
fn newreno_gains_a_datagram_per_window() {
    let (t, mut reno) = (Instant::now(), NewReno::new(limits()));
    let rtt = rtt_of(t, 50 * MS);
    reno.on_packets_lost(t, &[packet(0, t - 50 * MS)], false, 0);
    assert_eq!(reno.window(), 6_000);
    let later = t + 60 * MS;
    for pn in 1..=4 {
        reno.on_packets_acked(later, &[packet(pn, t + MS)], &rtt, 0, false);
        assert_eq!(reno.window(), 6_000);
    }
    reno.on_packets_acked(later, &[packet(5, t + MS)], &rtt, 0, false);
    assert_eq!(reno.window(), 7_200);
    reno.on_packets_acked(later, &[packet(6, t - MS)], &rtt, 0, false);
    assert_eq!(reno.acked_since_growth(), 0, "no growth for packets from before the reaction");
}

#[test]
fn newreno_takes_a_spurious_reduction_back() {
    let (t, mut reno) = (Instant::now(), NewReno::new(limits()));
    let lost = [packet(1, t), packet(2, t)];
    reno.on_packets_lost(t + 50 * MS, &lost, false, 0);
    reno.on_spurious_loss(t + 60 * MS, &lost[..1]);
    assert_eq!(reno.window(), 6_000);
    reno.on_spurious_loss(t + 70 * MS, &lost[1..]);
    assert_eq!((reno.window(), reno.slow_start_threshold()), (12_000, None));
}

#[test]
fn newreno_takes_back_reductions_that_overlap() {
    let t = Instant::now();
    let mut reno = NewReno::new(limits());
    let grown = Packet { bytes: 88_000, ..packet(9, t) };
    reno.on_packets_acked(t, &[grown], &rtt_of(t, 50 * MS), 0, false);
    // Each packet is sent after the loss of the packet before it was declared.
    let lost = [0, 1, 2].map(|i| packet(i, t + i as u32 * 100 * MS));
    for packet in &lost {
        reno.on_packets_lost(packet.sent + 50 * MS, &[*packet], false, 0);
    }
    assert_eq!(reno.window(), 12_500);
    let mut windows = Vec::new();
    for packet in &lost {
        reno.on_spurious_loss(t + 300 * MS, &[*packet]);
        windows.push((reno.window(), reno.slow_start_threshold()));
    }
    let expected = [(25_000, Some(25_000)), (50_000, Some(50_000)), (100_000, None)];
    assert_eq!(windows, expected);
}

#[test]
fn window_based_algorithms_fill_the_link() {
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let controller = algorithm.build(&PathParameters::new(MTU as u16, 0));
        let mut simulation = Simulation::new(controller, BottleneckPath::new(20, 40, 100));
        simulation.run(20.0);
        let utilisation = simulation.utilisation(3.0, 20.0);
        assert!(utilisation >= 95, "{algorithm}: {utilisation} %");
        assert!(simulation.lost > 0, "{algorithm} finds the end of the queue");
    }
}

#[test]
fn window_based_algorithms_cut_by_their_factor() {
    for (algorithm, percent) in [(Algorithm::NEW_RENO, 50), (Algorithm::CUBIC, 70)] {
        let controller = algorithm.build(&PathParameters::new(MTU as u16, 0));
        let mut simulation = Simulation::new(controller, BottleneckPath::new(20, 40, 100));
        simulation.run(20.0);
        let windows: Vec<u64> = simulation.moments.iter().map(|moment| moment.window).collect();
        let cuts = windows.windows(2).filter(|pair| pair[1] < pair[0]);
        let mut seen = 0;
        for pair in cuts {
            let left = (pair[1] * 100).div_ceil(pair[0]);
            assert!(left.abs_diff(percent) <= 1, "{algorithm}: {} to {}", pair[0], pair[1]);
            seen += 1;
        }
        assert!(seen >= 3, "{algorithm} saw {seen} losses");
    }
}

#[test]
fn window_based_algorithms_answer_marks_without_losses() {
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC, Algorithm::BBR] {
        let mut path = BottleneckPath::new(20, 40, 400);
        path.mark_above = Some(path.bdp() / 2);
        let mut simulation =
            Simulation::new(algorithm.build(&PathParameters::new(MTU as u16, 0)), path);
        simulation.run(10.0);
        assert_eq!(simulation.lost, 0, "{algorithm}");
        let utilisation = simulation.utilisation(2.0, 10.0);
        assert!(utilisation >= 85, "{algorithm}: {utilisation} %");
        let backlog = simulation.between(2.0, 10.0).map(|m| m.backlog).max().unwrap();
        assert!(backlog < 2 * simulation.path.bdp(), "{algorithm}: {backlog}");
    }
}

#[test]
fn hystart_spares_the_queue_of_a_deep_buffer() {
    let path = BottleneckPath::new(50, 40, 1_000);
    let mut careless = Simulation::new(NewReno::new(limits()), path.clone());
    careless.run(2.0);
    assert!(careless.lost > 0, "slow start alone overflows this queue");
    let mut simulation = Simulation::new(Cubic::new(limits()), path);
    simulation.run(2.0);
    assert_eq!(simulation.lost, 0, "slow start ended before the queue overflowed");
    let threshold = simulation.controller.slow_start_threshold().expect("slow start is over");
    assert!(threshold >= simulation.path.bdp(), "{threshold}");
}

#[test]
fn an_application_that_sends_little_does_not_inflate_the_window() {
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let controller = algorithm.build(&PathParameters::new(MTU as u16, 0));
        let mut simulation = Simulation::new(controller, BottleneckPath::new(20, 40, 100));
        simulation.application = Application::Chunks(6_000, 20 * MS);
        simulation.run(10.0);
        // 300 kB/s over 40 ms is 12 000 bytes, which the initial window holds.
        let window = simulation.controller.window();
        assert!(window <= 30_000, "{algorithm}: {window}");
    }
}

#[test]
fn all_survive_a_path_that_swallows_everything_for_a_while() {
    for algorithm in ALL {
        let controller = algorithm.build(&PathParameters::new(MTU as u16, 0));
        let mut simulation = Simulation::new(controller, BottleneckPath::new(20, 40, 100));
        simulation.run(3.0);
        simulation.path.loss_ppm = 1_000_000;
        simulation.run(4.0);
        simulation.path.loss_ppm = 0;
        simulation.run(20.0);
        let utilisation = simulation.utilisation(12.0, 20.0);
        assert!(utilisation >= 90, "{algorithm}: {utilisation} %");
    }
}

/// One step of an arbitrary history.
#[derive(Debug, Clone)]
enum Step {
    Wait(u32),
    Send { bytes: u16, limited: bool },
    Ack { count: usize, limited: bool },
    Lose { count: usize, persistent: bool },
    Refute { count: usize },
    Mark { age: u32 },
    Discard { count: usize },
    Mtu(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..2_000_000u32).prop_map(Step::Wait),
        1 => any::<u32>().prop_map(Step::Wait),
        8 => (any::<u16>(), any::<bool>()).prop_map(|(bytes, limited)| Step::Send { bytes, limited }),
        5 => (1..20usize, any::<bool>()).prop_map(|(count, limited)| Step::Ack { count, limited }),
        2 => (1..8usize, prop::bool::weighted(0.1))
            .prop_map(|(count, persistent)| Step::Lose { count, persistent }),
        1 => (1..8usize).prop_map(|count| Step::Refute { count }),
        1 => (0..500_000u32).prop_map(|age| Step::Mark { age }),
        1 => (1..4usize).prop_map(|count| Step::Discard { count }),
        1 => any::<u16>().prop_map(Step::Mtu),
    ]
}

/// Plays a history, settling the packets in flight in arbitrary order, and checks every bound.
fn play(algorithm: Algorithm, max: u64, seed: u64, steps: &[Step]) {
    let mut controller = algorithm
        .build(&PathParameters { max_window: max, ..PathParameters::new(MTU as u16, seed) });
    let mut bounds = WindowLimits::new(MTU as u16, max);
    let (mut rtt, mut pacer, mut order) =
        (RttEstimator::default(), Pacer::new(MTU as u16), sutura_random::SplitMix64::new(seed));
    let (mut now, mut pn, mut in_flight) = (Instant::now(), 0, 0u64);
    let (mut flight, mut refutable) = (Vec::<Packet>::new(), Vec::<Packet>::new());
    let mut draw = |flight: &mut Vec<Packet>, count: usize| -> Vec<Packet> {
        let count = count.min(flight.len());
        (0..count).map(|_| flight.swap_remove(order.below(flight.len() as u64) as usize)).collect()
    };
    for step in steps {
        match *step {
            Step::Wait(micros) => now += Duration::from_micros(micros.into()),
            Step::Send { bytes, limited } => {
                let bytes = u64::from(bytes);
                let sent = Sent::new(SpaceId::Data, pn, bytes);
                let sent = Sent { in_flight, app_limited: limited, ..sent };
                flight.push(Packet::new(&sent, now, controller.on_packet_sent(now, &sent)));
                pacer.on_sent(now, bytes);
                pn += 1;
                in_flight += bytes;
            }
            Step::Ack { count, limited } => {
                let acked = draw(&mut flight, count);
                in_flight -= acked.iter().map(|packet| packet.bytes).sum::<u64>();
                if let Some(newest) = acked.iter().map(|packet| packet.sent).max() {
                    rtt.update(now, now - newest, Duration::ZERO);
                }
                controller.on_packets_acked(now, &acked, &rtt, in_flight, limited);
            }
            Step::Lose { count, persistent } => {
                let lost = draw(&mut flight, count);
                in_flight -= lost.iter().map(|packet| packet.bytes).sum::<u64>();
                controller.on_packets_lost(now, &lost, persistent, in_flight);
                refutable.extend(lost);
            }
            Step::Refute { count } => {
                let refuted = draw(&mut refutable, count);
                controller.on_spurious_loss(now, &refuted);
            }
            Step::Mark { age } => {
                let sent = now.checked_sub(Duration::from_micros(age.into())).unwrap_or(now);
                controller.on_ecn_ce(now, sent, 1, in_flight);
            }
            Step::Discard { count } => {
                let bytes = draw(&mut flight, count).iter().map(|packet| packet.bytes).sum();
                in_flight -= bytes;
                controller.on_discarded(SpaceId::Data, bytes);
            }
            Step::Mtu(mtu) => {
                let _ = bounds.change_mtu(mtu, 0);
                controller.on_mtu_changed(mtu);
                pacer.on_mtu_changed(mtu);
            }
        }
        let window = controller.window();
        assert!((bounds.min()..=bounds.max()).contains(&window), "{window} after {step:?}");
        pacer.update(now, &*controller, &rtt);
        if let Some(at) = pacer.delay_until(now, u64::from(u16::MAX)) {
            assert!(at >= now + Duration::from_micros(100), "a timer too soon after {step:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn windows_stay_within_their_bounds(
        max in prop_oneof![Just(0), 0..1_000_000u64, Just(u64::MAX)],
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 1..300),
    ) {
        for algorithm in ALL {
            play(algorithm, max, seed, &steps);
        }
    }
}
