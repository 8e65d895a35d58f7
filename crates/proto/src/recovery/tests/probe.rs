//! The loss detection timer.

use super::*;
use crate::recovery::pto::MAX_PROBE_TIMEOUT;

#[test]
fn first_timeout_assumes_the_initial_round_trip_time() {
    let mut rig = Rig::new(Side::Client);
    assert_eq!(rig.timeout(EARLY), None);
    rig.send(Initial, 0);
    // 333 + 4 x 166.5
    assert_eq!(rig.timeout(EARLY), Some(999));
    rig.wait(998);
    assert_eq!(rig.recovery.on_timeout(rig.now, EARLY, &mut Vec::new()), Timeout::Early);
    assert_eq!(rig.expire(EARLY), probe(Initial));
    assert_eq!(rig.lost, [], "a timeout loses nothing");
    assert_eq!(rig.recovery.bytes_in_flight(), 1_000);
}

#[test]
fn backoff_doubles_and_an_acknowledgement_ends_it() {
    let mut rig = Rig::confirmed();
    rig.send(Data, 1);
    let base = rig.timeout(FREE).unwrap();
    for i in 1..6_u64 {
        assert_eq!(rig.expire(FREE), probe(Data));
        rig.send(Data, 1 + i);
        let longest = (2 * base).max(MAX_PROBE_TIMEOUT.as_millis());
        assert_eq!(rig.timeout(FREE), Some((base << i).min(longest)));
    }
    assert_eq!(rig.recovery.pto_count(), 5);
    rig.ack_and_detect(Data, &[6..=6]);
    assert_eq!(rig.recovery.pto_count(), 0);
}

#[test]
fn backoff_is_finite() {
    let mut rig = Rig::confirmed();
    rig.send(Data, 1);
    for _ in 0..100 {
        assert_eq!(rig.expire(FREE), probe(Data));
    }
    let longest = MAX_PROBE_TIMEOUT.as_millis();
    assert!(rig.timeout(FREE).is_some_and(|timeout| timeout > 0 && timeout <= longest));
}

#[test]
fn slow_paths_are_probed_more_slowly_too() {
    let mut rig = Rig::confirmed();
    rig.recovery.change_path(RttEstimator::new(5_000 * MS));
    rig.send(Data, 1);
    let base = rig.timeout(FREE).unwrap();
    for (pn, times) in [(2, 2), (3, 2), (4, 2)] {
        assert_eq!(rig.expire(FREE), probe(Data));
        rig.send(Data, pn);
        assert_eq!(rig.timeout(FREE), Some(base * times));
    }
}

#[test]
fn only_acknowledgements_of_something_new_end_the_backoff() {
    let mut rig = Rig::confirmed();
    rig.send(Data, 1);
    rig.expire(FREE);
    rig.ack_and_detect(Data, &[0..=0]);
    assert_eq!(rig.recovery.pto_count(), 1);
    assert!(rig.timeout(FREE).is_some_and(|timeout| timeout > 0));
}

#[test]
fn peers_delay_acknowledgements_in_the_data_space_only() {
    let mut rig = Rig::new(Side::Server);
    rig.recovery.set_max_ack_delay(25 * MS);
    let base = rig.recovery.rtt().pto_base();
    assert_eq!(SpaceId::ALL.map(|space| rig.recovery.pto(space)), [base, base, base + 25 * MS]);
    rig.recovery.on_handshake_confirmed();
    rig.send(Data, 0);
    assert_eq!(rig.timeout(FREE), Some((base + 25 * MS).as_millis()));
    rig.send(Handshake, 0);
    assert_eq!(rig.timeout(FREE), Some(base.as_millis()));
    assert_eq!(rig.expire(FREE), probe(Handshake));
}

#[test]
fn data_space_waits_for_confirmation() {
    let mut rig = Rig::new(Side::Server);
    rig.send(Data, 0);
    assert_eq!(rig.timeout(FREE), None);
    assert_eq!(rig.expire(FREE), Timeout::Early);
    rig.wait(10);
    rig.send(Handshake, 0);
    assert_eq!(rig.expire(FREE), probe(Handshake));
    rig.recovery.on_handshake_confirmed();
    drop(rig.recovery.discard_space(rig.now, Handshake));
    assert_eq!(rig.expire(FREE), probe(Data));
}

#[test]
fn packets_that_elicit_no_acknowledgement_are_not_probed_for() {
    let mut rig = Rig::confirmed();
    rig.send_as(Data, 1, Kind::Ack);
    rig.send_as(Data, 2, Kind::Padding);
    assert_eq!(rig.timeout(FREE), None);
}

#[test]
fn losses_beat_probes() {
    let mut rig = Rig::confirmed();
    rig.send(Handshake, 0);
    rig.wait(290);
    rig.send_all(Data, [1, 2], 0);
    rig.ack_and_detect(Data, &[2..=2]);
    // The probe is due within 10 ms and the loss only later, but only the loss timer is set.
    let loss = rig.now + loss_delay(rig.recovery.rtt());
    assert_eq!(rig.recovery.timeout(FREE), Some(loss));
    // The amplification limit does not stop it.
    assert_eq!(rig.recovery.timeout(LIMITED), Some(loss));
    assert_eq!(rig.expire(FREE), Timeout::Loss { space: Data, persistent_congestion: false });
    assert_eq!(rig.recovery.pto_count(), 0);
    assert_eq!(rig.expire(FREE), probe(Handshake));
}

#[test]
fn client_probes_until_the_server_has_validated_its_address() {
    let mut rig = Rig::new(Side::Client);
    rig.send(Initial, 0);
    rig.expire(EARLY);
    rig.send(Initial, 1);
    rig.wait(50);
    rig.ack_and_detect(Initial, &[0..=1]);
    assert_eq!(rig.recovery.bytes_in_flight(), 0);
    assert_eq!(rig.recovery.pto_count(), 1, "the server may be blocked still");
    let pto = rig.recovery.rtt().pto_base().as_millis();
    assert_eq!(rig.timeout(EARLY), Some(2 * pto));
    rig.wait(10);
    assert_eq!(rig.timeout(EARLY), Some(2 * pto - 10), "it does not run away");
    assert_eq!(rig.expire(EARLY), Timeout::Probe { space: Initial, count: 1 });
    assert_eq!(rig.expire(FREE), Timeout::Probe { space: Handshake, count: 1 });
    rig.send(Handshake, 0);
    drop(rig.recovery.discard_space(rig.now, Initial));
    assert_eq!(rig.recovery.pto_count(), 0);
    assert_eq!(rig.expire(FREE), probe(Handshake));
    rig.ack_and_detect(Handshake, &[0..=0]);
    assert_eq!(rig.recovery.pto_count(), 0);
    assert_eq!(rig.timeout(FREE), None, "a Handshake packet arrived");
}

#[test]
fn early_data_in_flight_does_not_stop_the_anti_deadlock_timer() {
    let mut rig = Rig::new(Side::Client);
    rig.send(Initial, 0);
    rig.send(Data, 0);
    rig.wait(50);
    rig.ack_and_detect(Initial, &[0..=0]);
    assert!(rig.recovery.has_ack_eliciting_in_flight(Data));
    assert_eq!(rig.expire(EARLY), Timeout::Probe { space: Initial, count: 1 });
    // Nor does an acknowledgement of early data show that the server can proceed.
    rig.ack_and_detect(Data, &[0..=0]);
    assert_eq!(rig.recovery.pto_count(), 1);
    assert!(rig.timeout(EARLY).is_some());
    rig.recovery.on_handshake_confirmed();
    assert_eq!(rig.timeout(EARLY), None);
}

#[test]
fn server_at_the_amplification_limit_sets_no_timer() {
    let mut rig = Rig::new(Side::Server);
    rig.send(Initial, 0);
    rig.wait(5_000);
    assert_eq!(rig.recovery.timeout(LIMITED), None);
    assert_eq!(rig.recovery.on_timeout(rig.now, LIMITED, &mut Vec::new()), Timeout::Early);
    assert_eq!(rig.recovery.pto_count(), 0);
    // Once a datagram arrives, the probe is due at once.
    assert_eq!(rig.timeout(FREE), Some(0));
    assert_eq!(rig.expire(FREE), probe(Initial));
    rig.wait(10);
    rig.ack(Initial, &[0..=0]);
    assert_eq!(rig.recovery.pto_count(), 0, "a server's Initial ends the backoff");
    assert_eq!(rig.timeout(FREE), None);
}

#[test]
fn timers_in_the_past_never_spin() {
    let mut rig = Rig::confirmed();
    rig.send(Handshake, 0);
    rig.send_all(Data, [1, 2], 0);
    rig.ack(Data, &[2..=2]);
    rig.wait(1_000_000);
    rig.detect(Data);
    rig.send_all(Data, [3, 4], 0);
    rig.wait(1_000_000);
    // Nothing is sent when the timer asks for it.
    let mut calls = 0;
    while rig.timeout(FREE) == Some(0) {
        rig.expire(FREE);
        calls += 1;
        assert!(calls <= 4);
    }
    assert!(calls >= 1);
    assert!(rig.recovery.timeout(FREE).is_some_and(|timeout| timeout > rig.now));
}

#[test]
fn discarding_a_space_is_no_loss() {
    let mut rig = Rig::new(Side::Client);
    rig.send_all(Initial, 0..4, 0);
    rig.send(Handshake, 0);
    rig.wait(1);
    rig.ack_and_detect(Initial, &[1..=1]);
    rig.expire(FREE);
    rig.expire(FREE);
    assert!(rig.recovery.pto_count() > 0);
    let dropped: Vec<_> =
        rig.recovery.discard_space(rig.now, Initial).iter().map(|p| p.pn).collect();
    assert_eq!(dropped, [2, 3], "0 was lost by time");
    assert_eq!(rig.recovery.bytes_in_flight(), 1_000);
    assert_eq!(rig.recovery.pto_count(), 0);
    assert!(!rig.recovery.has_ack_eliciting_in_flight(Initial));
    assert_eq!(rig.expire(FREE), probe(Handshake));
    // After a Retry the space continues: packet numbers are not reused.
    rig.send(Initial, 4);
    assert!(rig.try_ack(Initial, &[5..=5], MS).is_err());
    rig.ack(Initial, &[4..=4]);
    assert_eq!(rig.acked, [4]);
    assert_eq!(rig.late, []);
}

#[test]
fn new_path_forgets_the_round_trip_time() {
    let mut rig = Rig::confirmed();
    rig.recovery.change_path(RttEstimator::new(INITIAL_RTT));
    assert_eq!(rig.recovery.rtt().first_sample(), None);
    assert_eq!(rig.recovery.rtt().smoothed(), INITIAL_RTT);
}
