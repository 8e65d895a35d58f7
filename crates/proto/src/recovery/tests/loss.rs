//! Losses, persistent congestion and spurious losses.

use super::*;

#[test]
fn packet_threshold() {
    let mut rig = Rig::confirmed();
    rig.send_all(Data, 1..6, 0);
    rig.ack_and_detect(Data, &[3..=3]);
    assert_eq!(rig.lost, [], "two packets are reordering");
    rig.ack(Data, &[4..=4]);
    assert!(rig.recovery.sent(Data).map(|p| p.pn).eq([1, 2, 5]), "losses are another call's");
    rig.detect(Data);
    assert_eq!(rig.lost, [1]);
    assert_eq!(rig.recovery.bytes_in_flight(), 2_000);
    rig.detect(Data);
    assert_eq!(rig.lost, []);
}

#[test]
fn time_threshold_and_its_timer() {
    let mut rig = Rig::confirmed();
    rig.send_all(Data, [1, 2, 3], 10);
    rig.wait(100);
    assert!(!rig.ack_and_detect(Data, &[3..=3]));
    // Packet 1 was sent 120 ms ago and packet 2 110 ms ago; 9/8 of 100 ms is 112.5 ms.
    assert_eq!(rig.lost, [1]);
    assert_eq!(rig.timeout(FREE), Some(2));
    assert_eq!(rig.recovery.on_timeout(rig.now, FREE, &mut Vec::new()), Timeout::Early);
    rig.expires_and_loses(2);
    assert_eq!(rig.timeout(FREE), None);
    assert_eq!(rig.recovery.bytes_in_flight(), 0);
}

#[test]
fn time_threshold_is_at_least_the_granularity() {
    let mut rig = Rig::new(Side::Server);
    rig.recovery.on_handshake_confirmed();
    rig.send_all(Data, 0..2, 0);
    rig.now += MS / 100;
    rig.loses(Data, &[1..=1], []);
    assert_eq!(rig.recovery.timeout(FREE), Some(rig.now - MS / 100 + MS));
}

#[test]
fn loss_timer_moves_on_when_the_round_trip_time_grows() {
    let mut rig = Rig::confirmed();
    rig.send_all(Data, [1, 2], 0);
    rig.wait(100);
    rig.ack_and_detect(Data, &[2..=2]);
    rig.send(Handshake, 0);
    rig.wait(400);
    rig.ack_and_detect(Handshake, &[0..=0]);
    // The timer is due by the old estimate. By the new one (9/8 of 400 ms) packet 1 is lost long
    // ago.
    rig.expires_and_loses(1);
    // With an even larger estimate it is not lost yet, but the timer must still make progress.
    rig.send_all(Data, [3, 4], 0);
    rig.send(Handshake, 1);
    rig.wait(100);
    rig.ack_and_detect(Data, &[4..=4]);
    rig.wait(300);
    let before = rig.recovery.timeout(FREE).unwrap();
    rig.ack_and_detect(Handshake, &[1..=1]);
    rig.now = rig.now.max(before);
    while rig.timeout(FREE) == Some(0) {
        rig.expire(FREE);
    }
    assert!(rig.recovery.timeout(FREE).is_none_or(|timeout| timeout > rig.now));
}

#[test]
fn packets_above_the_largest_acknowledged_are_never_lost() {
    let mut rig = Rig::confirmed();
    rig.send_all(Data, 1..10, 0);
    rig.wait(1_000_000);
    rig.detect(Data);
    assert_eq!(rig.lost, []);
    assert_eq!(rig.recovery.bytes_in_flight(), 9_000);
}

// Persistent congestion

/// The PTO is 100 ms + 4 x 50 ms; three of them are 900 ms.
#[test]
fn persistent_congestion_lasts_longer_than_three_timeouts() {
    for (interval, expected) in [(900, false), (901, true)] {
        let mut rig = Rig::confirmed();
        rig.send_all(Data, [1, 2], interval);
        rig.send_all(Data, [3, 4, 5], 0);
        rig.wait(1);
        // No sample may change the estimate before losses are judged.
        rig.send_as(Data, 6, Kind::Ack);
        assert_eq!(rig.loses(Data, &[6..=6], [1, 2, 3]), expected);
    }
}

#[test]
fn max_ack_delay_makes_persistent_congestion_longer() {
    let mut rig = Rig::confirmed();
    rig.recovery.set_max_ack_delay(50 * MS);
    rig.send_all(Data, [1, 2], 1_000);
    rig.send_as(Data, 3, Kind::Ack);
    rig.send_as(Data, 5, Kind::Ack);
    assert!(!rig.loses(Data, &[5..=5], [1, 2]));
}

#[test]
fn persistent_congestion_needs_an_earlier_sample() {
    let mut rig = Rig::new(Side::Client);
    rig.recovery.on_handshake_confirmed();
    rig.send_all(Data, 0..6, 10_000);
    rig.wait(1);
    rig.ack(Data, &[5..=5]);
    assert!(!rig.detect(Data));
    assert_eq!(rig.lost, [0, 1, 2, 3, 4]);
}

#[test]
fn persistent_congestion_needs_two_ack_eliciting_packets() {
    for (last, expected) in [(Kind::Data, true), (Kind::Padding, false)] {
        let mut rig = Rig::confirmed();
        rig.send(Data, 1);
        rig.wait(5_000);
        rig.send_as(Data, 2, last);
        rig.send_as(Data, 5, Kind::Ack);
        assert_eq!(rig.loses(Data, &[5..=5], [1, 2]), expected);
    }
}

#[test]
fn acknowledgement_in_between_ends_the_run() {
    for acked_early in [false, true] {
        let mut rig = Rig::confirmed();
        rig.send_all(Data, 1..5, 500);
        if acked_early {
            rig.ack(Data, &[3..=3]);
        }
        rig.send_as(Data, 9, Kind::Ack);
        let ranges: &[_] = if acked_early { &[9..=9] } else { &[9..=9, 3..=3] };
        assert!(!rig.loses(Data, ranges, [1, 2, 4]));
    }
}

#[test]
fn skipped_numbers_do_not_end_the_run_and_calls_neither() {
    let mut rig = Rig::confirmed();
    rig.send(Data, 1);
    rig.wait(600);
    rig.send(Data, 3);
    rig.send_as(Data, 4, Kind::Ack);
    rig.send_as(Data, 6, Kind::Ack);
    assert!(!rig.loses(Data, &[6..=6], [1, 3]));
    let mut rig = Rig::confirmed();
    rig.send(Data, 1);
    rig.send_as(Data, 2, Kind::Ack);
    rig.wait(950);
    rig.send(Data, 4);
    rig.send_as(Data, 5, Kind::Ack);
    assert!(!rig.loses(Data, &[5..=5], [1, 2]));
    rig.send_as(Data, 7, Kind::Ack);
    assert!(rig.loses(Data, &[7..=7, 5..=5], [4]));
}

#[test]
fn acknowledgement_in_another_space_prevents_persistent_congestion() {
    for elsewhere in [false, true] {
        let mut rig = Rig::confirmed();
        rig.send(Data, 1);
        rig.wait(500);
        rig.send_as(Handshake, 0, Kind::Ack);
        rig.wait(500);
        rig.send(Data, 2);
        if elsewhere {
            rig.ack(Handshake, &[0..=0]);
        }
        rig.send_as(Data, 5, Kind::Ack);
        assert_eq!(rig.ack_and_detect(Data, &[5..=5]), !elsewhere);
    }
}

#[test]
fn persistent_congestion_is_established_once_per_period() {
    let mut rig = Rig::confirmed();
    rig.send_all(Data, 1..6, 1_000);
    rig.send_as(Data, 8, Kind::Ack);
    assert!(rig.loses(Data, &[8..=8], [1, 2, 3, 4, 5]));
    rig.send(Data, 9);
    rig.send_as(Data, 12, Kind::Ack);
    assert!(!rig.loses(Data, &[12..=12], [9]));
}

// Spurious losses

#[test]
fn late_acknowledgement_reveals_a_spurious_loss() {
    let mut rig = Rig::confirmed();
    rig.send_all(Data, 1..6, 1);
    rig.wait(100);
    rig.loses(Data, &[5..=5], [1, 2]);
    let declared = rig.now;
    rig.wait(5);
    let outcome = rig.ack(Data, &[5..=5, 1..=3]);
    assert_eq!(rig.acked, [3], "lost packets are not acknowledged a second time");
    assert!(outcome.newly_acked);
    assert_eq!(
        rig.late.iter().map(|lost| (lost.pn, lost.cc)).collect::<Vec<_>>(),
        [(1, 1), (2, 2)]
    );
    assert!(rig.late.iter().all(|lost| lost.declared == declared && lost.size == 1_000));
    rig.ack(Data, &[5..=5, 1..=3]);
    assert_eq!(rig.late, [], "reported once");
}

#[test]
fn old_losses_are_forgotten() {
    let mut rig = Rig::confirmed();
    rig.send_all(Data, 1..6, 1);
    rig.loses(Data, &[5..=5], [1, 2]);
    let pto = rig.recovery.pto(Data);
    rig.now += LOST_RETENTION * pto + MS;
    assert_eq!(rig.ack(Data, &[1..=2]), AckOutcome::default());
    assert_eq!(rig.late, []);
}

#[test]
fn late_acknowledgement_ends_a_run_of_losses() {
    for late in [false, true] {
        let mut rig = Rig::confirmed();
        rig.send_all(Data, [1, 2], 500);
        rig.send(Data, 3);
        rig.wait(500);
        rig.send(Data, 4);
        rig.send_as(Data, 5, Kind::Ack);
        rig.loses(Data, &[5..=5], [1, 2, 3]);
        if late {
            rig.ack(Data, &[5..=5, 2..=2]);
            assert_eq!(rig.late.len(), 1);
        }
        // Longer than the time threshold together with the largest reordering window.
        rig.wait(220);
        assert_eq!(rig.detect(Data), !late);
        assert_eq!(rig.lost, [4]);
    }
}

#[test]
fn flood_of_losses_is_remembered_within_bounds() {
    let mut rig = Rig::confirmed();
    let count = 20 * MAX_LOST_REMEMBERED as u64;
    rig.send_all(Data, 1..count, 0);
    rig.ack_and_detect(Data, &[count - 1..=count - 1]);
    assert_eq!(rig.lost.len() as u64, count - 1 - PACKET_THRESHOLD);
    rig.ack(Data, &[0..=count - 1]);
    assert_eq!(rig.late.len(), MAX_LOST_REMEMBERED);
    assert_eq!(rig.late.last().map(|lost| lost.pn), Some(count - 1 - PACKET_THRESHOLD));
}
