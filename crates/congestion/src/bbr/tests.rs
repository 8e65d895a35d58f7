//! BBR on a bottleneck.

use super::*;
use crate::MAX_WINDOW;
use crate::bottleneck::{Application, BottleneckPath, MTU, Simulation};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn bbr() -> Bbr {
    Bbr::new(WindowLimits::new(MTU as u16, MAX_WINDOW), 1)
}

fn simulate(path: BottleneckPath) -> Simulation<Bbr> {
    Simulation::new(bbr(), path)
}

/// Runs the simulation and returns every change of state with its time in seconds.
fn trace(simulation: &mut Simulation<Bbr>, seconds: f64) -> Vec<(f64, State)> {
    let mut changes: Vec<(f64, State)> = Vec::new();
    simulation.run_with(seconds, |bbr, moment| {
        if changes.last().is_none_or(|&(_, state)| state != bbr.state) {
            changes.push((moment.at.as_secs_f64(), bbr.state));
        }
    });
    changes
}

fn bandwidth_percent(simulation: &Simulation<Bbr>) -> u64 {
    simulation.controller.model.max_bandwidth.get() * 100 / simulation.path.rate
}

/// Every connection has one. 1,024 is a size of allocations; the next one is 1,280.
#[test]
fn the_state_of_a_flow_is_small() {
    assert!(size_of::<Bbr>() <= 1024);
}

#[test]
fn reaches_the_rate_of_the_bottleneck() {
    for (mbit, rtt) in [(1, 100), (10, 20), (20, 40), (100, 20)] {
        let mut simulation = simulate(BottleneckPath::new(mbit, rtt, 300));
        simulation.run(12.0);
        let utilisation = simulation.utilisation(2.0, 12.0);
        assert!(utilisation >= 90, "{mbit} Mbit/s, {rtt} ms: {utilisation} %");
        let estimate = bandwidth_percent(&simulation);
        assert!((97..=105).contains(&estimate), "{mbit} Mbit/s: {estimate} % estimated");
    }
}

#[test]
fn leaves_startup_within_a_few_rounds_and_drains() {
    let mut simulation = simulate(BottleneckPath::new(50, 40, 300));
    let mut rounds = 0;
    let mut drained = None;
    simulation.run_with(3.0, |bbr, moment| {
        if bbr.state == State::Startup {
            rounds = bbr.rounds.count;
        }
        if bbr.state.is_probe_bw() && drained.is_none() {
            drained = Some((bbr.rounds.count, moment.in_flight));
        }
    });
    // The initial window doubles log2(BDP / window) = 4.4 times; then three rounds see no growth.
    assert!((6..=12).contains(&rounds), "{rounds} rounds in Startup");
    let (round, in_flight) = drained.expect("Drain ends");
    assert!(round <= rounds + 5, "drained in round {round}");
    assert!(in_flight <= simulation.path.bdp() * 11 / 10, "{in_flight} bytes after Drain");
    assert_eq!(simulation.lost, 0);
}

#[test]
fn holds_the_queue_down() {
    let mut simulation = simulate(BottleneckPath::new(20, 40, 1_000));
    simulation.run(20.0);
    let bdp = simulation.path.bdp();
    assert!(simulation.mean_backlog(3.0, 20.0) < bdp / 2);
    let most = simulation.between(3.0, 20.0).map(|moment| moment.in_flight).max().unwrap();
    assert!(most <= bdp * 5 / 2, "{most} of {bdp}");
    assert_eq!(simulation.lost, 0);
}

#[test]
fn cycles_through_the_phases_in_order() {
    let mut simulation = simulate(BottleneckPath::new(20, 40, 300));
    let changes = trace(&mut simulation, 20.0);
    let mut cycles = 0;
    for pair in changes.windows(2) {
        let expected: &[State] = match pair[0].1 {
            State::Startup => &[State::Drain],
            // DOWN may end with the acknowledgement that begins it.
            State::Drain | State::ProbeBw(Phase::Up) => {
                &[State::ProbeBw(Phase::Down), State::ProbeBw(Phase::Cruise)]
            }
            State::ProbeBw(Phase::Down) => {
                &[State::ProbeBw(Phase::Cruise), State::ProbeBw(Phase::Refill)]
            }
            State::ProbeBw(Phase::Cruise) => &[State::ProbeBw(Phase::Refill)],
            State::ProbeBw(Phase::Refill) => &[State::ProbeBw(Phase::Up)],
            State::ProbeRtt => &[State::ProbeBw(Phase::Cruise)],
        };
        let next = pair[1].1;
        assert!(expected.contains(&next) || next == State::ProbeRtt, "{pair:?}");
        cycles += u32::from(next == State::ProbeBw(Phase::Up));
    }
    // One probe every two to three seconds, or 63 rounds.
    assert!((3..=6).contains(&cycles), "{cycles} probes in 10 s: {changes:?}");
}

#[test]
fn keeps_the_rate_with_random_loss() {
    for (mbit, rtt) in [(20, 40), (50, 20), (50, 80)] {
        let mut sum = 0;
        for seed in 0..4 {
            let mut path = BottleneckPath::new(mbit, rtt, 300);
            path.loss_ppm = 10_000;
            let mut simulation = simulate(path);
            simulation.reseed(seed);
            simulation.run(15.0);
            sum += simulation.utilisation(2.0, 15.0);
        }
        assert!(sum / 4 >= 85, "{mbit} Mbit/s, {rtt} ms: {} %", sum / 4);
    }
}

#[test]
fn a_shallow_queue_is_learnt() {
    let mut simulation = simulate(BottleneckPath::new(20, 40, 20));
    simulation.run(20.0);
    let utilisation = simulation.utilisation(3.0, 20.0);
    assert!(utilisation >= 80, "{utilisation} %");
    assert!(simulation.lost * 100 < simulation.sent * 3, "{} lost", simulation.lost);
    let longterm = simulation.controller.model.inflight_longterm;
    assert!(longterm < simulation.path.bdp() * 2, "{longterm}");
}

#[test]
fn heavy_loss_ends_startup() {
    let mut simulation = simulate(BottleneckPath::new(50, 40, 10));
    let changes = trace(&mut simulation, 3.0);
    assert_eq!(changes[0].1, State::Startup);
    assert_eq!(changes[1].1, State::Drain);
    assert!(changes[1].0 < 1.0, "{changes:?}");
    assert_ne!(simulation.controller.model.inflight_longterm, UNBOUNDED);
}

#[test]
fn a_mark_ends_startup() {
    let mut path = BottleneckPath::new(50, 40, 1_000);
    path.mark_above = Some(path.bdp() / 10);
    let mut simulation = simulate(path);
    let changes = trace(&mut simulation, 3.0);
    assert_eq!(changes[1].1, State::Drain);
    assert_ne!(simulation.controller.model.inflight_longterm, UNBOUNDED);
    let most = simulation.moments.iter().map(|moment| moment.backlog).max().unwrap();
    assert!(most < 2 * simulation.path.bdp(), "{most}");
}

#[test]
fn probes_the_round_trip_time_every_five_seconds() {
    let mut simulation = simulate(BottleneckPath::new(20, 40, 300));
    let changes = trace(&mut simulation, 32.0);
    let probes: Vec<(f64, f64)> = changes
        .windows(2)
        .filter(|pair| pair[0].1 == State::ProbeRtt)
        .map(|pair| (pair[0].0, pair[1].0))
        .collect();
    assert!((5..=6).contains(&probes.len()), "{probes:?}");
    for &(from, to) in &probes {
        assert!((0.2..0.4).contains(&(to - from)), "{from} to {to}");
    }
    for pair in probes.windows(2) {
        let apart = pair[1].0 - pair[0].1;
        assert!((4.9..5.6).contains(&apart), "{apart} s between probes");
    }
    // In the second half of a probe the path is almost empty.
    let (from, to) = probes[0];
    let backlog = simulation.between((from + to) / 2.0, to).map(|m| m.backlog).max().unwrap();
    assert!(backlog <= 4 * MTU, "{backlog}");
    let measured = simulation.controller.min_rtt.get().unwrap();
    assert!((40 * MS..43 * MS).contains(&measured), "{measured:?}");
}

#[test]
fn a_longer_path_is_noticed() {
    let mut simulation = simulate(BottleneckPath::new(20, 40, 300));
    simulation.run(4.0);
    simulation.path.rtt = 80 * MS;
    simulation.run(30.0);
    let measured = simulation.controller.min_rtt.get().unwrap();
    assert!((80 * MS..90 * MS).contains(&measured), "{measured:?}");
    let utilisation = simulation.utilisation(20.0, 30.0);
    assert!(utilisation >= 90, "{utilisation} %");
}

#[test]
fn little_data_does_not_lower_the_estimate() {
    let mut simulation = simulate(BottleneckPath::new(20, 40, 300));
    simulation.run(4.0);
    assert!(bandwidth_percent(&simulation) >= 97);
    // A tenth of the rate (240 kB/s) for half a minute.
    simulation.application = Application::Chunks(4_800, 20 * MS);
    simulation.ready_is_nothing();
    simulation.run(34.0);
    let estimate = bandwidth_percent(&simulation);
    assert!(estimate >= 90, "{estimate} % after application-limited sending");
    simulation.application = Application::Bulk;
    simulation.run(35.0);
    let utilisation = simulation.utilisation(34.1, 35.0);
    assert!(utilisation >= 85, "{utilisation} % right after");
}

#[test]
fn restarts_from_idle_at_the_rate_it_knew() {
    let mut simulation = simulate(BottleneckPath::new(20, 40, 300));
    simulation.run(4.0);
    // A second's worth of data every six seconds: longer than the ProbeRTT interval.
    simulation.application = Application::Chunks(2_500_000, Duration::from_secs(6));
    simulation.ready_is_nothing();
    let changes = trace(&mut simulation, 19.5);
    for start in [6.0, 12.0, 18.0] {
        let utilisation = simulation.utilisation(start + 0.1, start + 0.9);
        assert!(utilisation >= 90, "{utilisation} % after {start} s");
    }
    let probed = changes.iter().any(|&(_, state)| state == State::ProbeRtt);
    assert!(!probed, "idling is as good as a probe");
}

#[test]
fn a_steady_stream_below_the_rate_is_never_stalled_to_probe() {
    let mut simulation = simulate(BottleneckPath::new(20, 40, 300));
    // An eighth of the rate, sixty times a second.
    simulation.application = Application::Chunks(5_200, Duration::from_micros(16_667));
    simulation.ready_is_nothing();
    let changes = trace(&mut simulation, 30.0);
    let probed = changes.iter().any(|&(_, state)| state == State::ProbeRtt);
    assert!(!probed, "the path is seen empty all the time");
}

#[test]
fn follows_the_bandwidth_up_and_down() {
    for (to, within) in [(40, 10.0), (10, 10.0)] {
        let mut simulation = simulate(BottleneckPath::new(20, 40, 300));
        simulation.run(5.0);
        simulation.path.rate = to * 125_000;
        simulation.run(5.0 + within + 6.0);
        let utilisation = simulation.utilisation(5.0 + within, 11.0 + within);
        assert!(utilisation >= 90, "{to} Mbit/s: {utilisation} %");
        let estimate = bandwidth_percent(&simulation);
        assert!((90..=110).contains(&estimate), "{to} Mbit/s: {estimate} % estimated");
        let backlog = simulation.mean_backlog(5.0 + within, 11.0 + within);
        assert!(backlog < simulation.path.bdp(), "{to} Mbit/s: {backlog} waiting");
    }
}

#[test]
fn bunched_acknowledgements_do_not_stall_it() {
    let mut path = BottleneckPath::new(50, 20, 300);
    path.aggregation = 15 * MS;
    let mut simulation = simulate(path);
    simulation.run(10.0);
    let utilisation = simulation.utilisation(2.0, 10.0);
    assert!(utilisation >= 90, "{utilisation} %");
    assert!(bandwidth_percent(&simulation) <= 130, "{}", bandwidth_percent(&simulation));
}

#[test]
fn a_spurious_exit_from_startup_is_undone() {
    let t = Instant::now();
    let mut bbr = bbr();
    let lost: Vec<Lost> = (0..4)
        .map(|pn| {
            let sent = Sent { in_flight: pn * MTU, ..Sent::new(SpaceId::Data, pn, MTU) };
            Lost::new(&sent, t, bbr.on_packet_sent(t, &sent))
        })
        .collect();
    bbr.on_packets_lost(t + 50 * MS, &lost, false, 0);
    let window = bbr.window();
    // The end of the round would do this after enough runs of losses.
    bbr.note_too_high(4 * MTU, 4 * MTU);
    bbr.full_pipe.reached = true;
    bbr.state = State::Drain;
    bbr.model.inflight_longterm = 5_000;
    bbr.on_spurious_loss(t + 60 * MS, &lost[..3]);
    assert_eq!(bbr.state, State::Drain, "one loss is still too many");
    bbr.on_spurious_loss(t + 60 * MS, &lost[3..]);
    assert_eq!((bbr.state, bbr.full_pipe.reached), (State::Startup, false));
    assert_eq!((bbr.model.inflight_longterm, bbr.window()), (UNBOUNDED, window));
}

/// A flow over a path of 100 ms that has ended Startup because 4 of 40 packets were lost, when a packet took `rtt`.
fn lossy_startup(rtt: Duration) -> Bbr {
    let mut bbr = bbr();
    bbr.sample.rtt = 100 * MS;
    bbr.update_min_rtt(Instant::now());
    bbr.sample.rtt = rtt;
    bbr.note_too_high(4 * MTU, 40 * MTU);
    bbr.full_pipe.reached = true;
    bbr.state = State::Drain;
    bbr
}

#[test]
fn startup_goes_on_once_the_floor_explains_its_losses() {
    let mut bbr = lossy_startup(105 * MS);
    bbr.on_loss_floor(&LossFloor::default().with_rate(0.01));
    assert_eq!(bbr.state, State::Drain);
    bbr.on_loss_floor(&LossFloor::default().with_rate(0.08));
    assert_eq!((bbr.state, bbr.full_pipe.reached), (State::Startup, false));
}

#[test]
fn no_floor_explains_losses_at_a_queue() {
    let mut bbr = lossy_startup(120 * MS);
    bbr.on_loss_floor(&LossFloor::default().with_rate(0.08));
    assert_eq!(bbr.state, State::Drain);
}

#[test]
fn losses_that_come_after_a_decision_support_it() {
    let t = Instant::now();
    let mut bbr = bbr();
    let lost: Vec<Lost> = (0..9)
        .map(|pn| {
            let sent = Sent { in_flight: pn * MTU, ..Sent::new(SpaceId::Data, pn, MTU) };
            Lost::new(&sent, t, bbr.on_packet_sent(t, &sent))
        })
        .collect();
    bbr.on_packets_lost(t + 50 * MS, &lost[..4], false, 0);
    bbr.note_too_high(4 * MTU, 4 * MTU);
    bbr.state = State::Drain;
    bbr.on_packets_lost(t + 51 * MS, &lost[4..], false, 0);
    bbr.on_spurious_loss(t + 60 * MS, &lost[..8]);
    assert_eq!(bbr.state, State::Drain);
    bbr.on_spurious_loss(t + 60 * MS, &lost[8..]);
    assert_eq!(bbr.state, State::Startup);
}

#[test]
fn a_spurious_end_of_a_probe_is_undone() {
    let mut simulation = simulate(BottleneckPath::new(20, 40, 300));
    simulation.run(2.0);
    let bbr = &mut simulation.controller;
    let t = Instant::now() + Duration::from_secs(100);
    bbr.state = State::ProbeBw(Phase::Up);
    bbr.probe.is_sample = true;
    let lost: Vec<Lost> = (0..10)
        .map(|pn| {
            let sent = Sent::new(SpaceId::Data, 1_000_000 + pn, MTU);
            let sent = Sent { in_flight: 90_000, ..sent };
            Lost::new(&sent, t, bbr.on_packet_sent(t, &sent))
        })
        .collect();
    bbr.on_packets_lost(t + 40 * MS, &lost, false, 90_000);
    assert_eq!(bbr.state, State::ProbeBw(Phase::Down));
    // Two packets exceed 2 %; the volume that was in flight before them remains.
    assert!(bbr.model.inflight_longterm <= 91_200, "{}", bbr.model.inflight_longterm);
    bbr.on_spurious_loss(t + 41 * MS, &lost);
    assert_eq!(bbr.state, State::ProbeBw(Phase::Refill));
    assert_eq!(bbr.model.inflight_longterm, UNBOUNDED);
}

#[test]
fn a_bound_learnt_from_losses_is_raised_again() {
    let mut simulation = simulate(BottleneckPath::new(20, 40, 10));
    simulation.run(6.0);
    let bound = simulation.controller.model.inflight_longterm;
    assert!(bound < 2 * simulation.path.bdp(), "{bound}");
    simulation.path = BottleneckPath::new(80, 40, 300);
    simulation.run(26.0);
    let utilisation = simulation.utilisation(20.0, 26.0);
    assert!(utilisation >= 90, "{utilisation} %");
}

#[test]
fn persistent_congestion_lasts_until_recovery_ends() {
    let mut simulation = simulate(BottleneckPath::new(20, 40, 300));
    simulation.run(3.0);
    let before = simulation.controller.window();
    simulation.lose_all(true);
    assert_eq!(simulation.controller.window(), 2 * MTU);
    simulation.run(3.2);
    let after = simulation.controller.window();
    assert!(after >= before / 10 * 9, "{before} before, {after} after");
    simulation.run(6.0);
    let utilisation = simulation.utilisation(3.2, 6.0);
    assert!(utilisation >= 90, "{utilisation} %");
}

#[test]
fn probe_times_depend_on_the_seed_alone() {
    let probes = |seed| {
        let limits = WindowLimits::new(MTU as u16, MAX_WINDOW);
        let mut simulation =
            Simulation::new(Bbr::new(limits, seed), BottleneckPath::new(5, 100, 300));
        trace(&mut simulation, 12.0)
    };
    assert_eq!(probes(1), probes(1));
    assert_ne!(probes(1), probes(2));
}
