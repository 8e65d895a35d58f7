//! Paths that reorder.

use super::*;

/// Sends packets a millisecond apart and acknowledges each 100 ms later, packets with a number divisible by
/// three `late` ms later still. Returns how many losses were declared and how many of them were refuted.
fn reorder(rig: &mut Rig, pns: std::ops::Range<u64>, late: u64) -> (usize, usize) {
    let start = rig.now;
    let mut events = Vec::new();
    for (i, pn) in (0..).zip(pns) {
        events.push((i, false, pn));
        let extra = if pn % 3 == 0 { late } else { 0 };
        events.push((i + 100 + extra, true, pn));
    }
    // Events at the same time: packets are sent first.
    events.sort_unstable();
    let (mut lost, mut refuted) = (0, 0);
    for (at, arrives, pn) in events {
        let at = start + at as u32 * MS;
        while rig.recovery.timeout(FREE).is_some_and(|timeout| timeout < at) {
            assert!(matches!(rig.expire(FREE), Timeout::Loss { .. }), "no probe is due");
            lost += rig.lost.len();
        }
        rig.now = at;
        if arrives {
            let largest = rig.recovery.largest_acked(Data).filter(|largest| pn < *largest);
            match largest {
                Some(largest) => rig.ack_and_detect(Data, &[largest..=largest, pn..=pn]),
                None => rig.ack_and_detect(Data, &[pn..=pn]),
            };
            (lost, refuted) = (lost + rig.lost.len(), refuted + rig.late.len());
        } else {
            rig.send(Data, pn);
        }
    }
    (lost, refuted)
}

#[test]
fn a_path_without_reordering_keeps_the_thresholds() {
    let mut rig = Rig::confirmed();
    assert_eq!(reorder(&mut rig, 1..500, 0), (0, 0));
    rig.send_all(Data, 500..504, 1);
    let pto = rig.recovery.rtt().pto_base();
    assert_eq!(rig.recovery.pto(Data), pto);
    rig.loses(Data, &[503..=503], [500]);
}

#[test]
fn one_overtaken_packet_is_enough_to_stop_counting_packets() {
    let mut rig = Rig::confirmed();
    rig.send_all(Data, [1, 2, 3, 4, 5, 6, 7, 8], 1);
    rig.wait(99);
    rig.ack_and_detect(Data, &[2..=2]);
    rig.ack_and_detect(Data, &[1..=2]);
    rig.ack_and_detect(Data, &[8..=8, 1..=2]);
    assert_eq!(rig.lost, [], "3, 4 and 5 are far behind 8 and yet not lost");
}

#[test]
fn after_one_round_trip_nothing_is_taken_for_lost() {
    for late in [10, 25, 50, 90] {
        let mut rig = Rig::confirmed();
        let (lost, refuted) = reorder(&mut rig, 1..400, late);
        assert!(lost > 0 && lost == refuted, "{late} ms: {lost} lost, {refuted} refuted");
        let again = reorder(&mut rig, 400..3_000, late);
        assert_eq!(again, (0, 0), "{late} ms, after {lost} losses");
    }
}

#[test]
fn a_loss_is_found_within_the_bound_however_late_acknowledgements_come() {
    let mut rig = Rig::confirmed();
    for late in [50, 500, 5_000] {
        let pn = rig.recovery.spaces[Data].sent.next_pn();
        rig.send_all(Data, [pn, pn + 1], 0);
        rig.wait(100);
        rig.ack_and_detect(Data, &[pn + 1..=pn + 1]);
        rig.wait(late);
        rig.ack(Data, &[pn..=pn + 1]);
        rig.send_all(Data, [pn + 2, pn + 3], 0);
        let sent = rig.now;
        rig.wait(100);
        rig.ack_and_detect(Data, &[pn + 3..=pn + 3]);
        let rtt = rig.recovery.rtt();
        let longest = loss_delay(rtt) + max_window(rtt);
        let at = rig.recovery.timeout(FREE).unwrap();
        assert!(at <= sent + longest, "{late} ms: {:?} of {longest:?}", at - sent);
        rig.expires_and_loses(pn + 2);
    }
}

#[test]
fn the_probe_timeout_is_no_shorter_than_the_time_threshold() {
    let mut rig = Rig::confirmed();
    // A steady round-trip time has a short probe timeout.
    assert_eq!(reorder(&mut rig, 1..300, 0), (0, 0));
    assert!(rig.recovery.pto(Data) < 110 * MS);
    reorder(&mut rig, 300..600, 80);
    let longest = rig.recovery.reordering.loss_delay(rig.recovery.rtt());
    assert!(longest > 190 * MS && rig.recovery.pto(Data) >= longest, "{longest:?}");
}

#[test]
fn a_flight_that_is_never_acknowledged_is_lost_by_numbers_in_the_end() {
    let mut rig = Rig::confirmed();
    rig.send_all(Data, [1, 2], 1);
    rig.ack_and_detect(Data, &[2..=2]);
    rig.ack_and_detect(Data, &[1..=2]);
    let last = 2 * MAX_PACKET_THRESHOLD;
    rig.send_all(Data, 3..=last, 0);
    rig.ack_and_detect(Data, &[last..=last]);
    let expected = 3..=last - MAX_PACKET_THRESHOLD;
    assert!(rig.lost.iter().copied().eq(expected), "{}", rig.lost.len());
}

#[test]
fn after_enough_recoveries_without_reordering_packets_count_again() {
    let mut rig = Rig::confirmed();
    reorder(&mut rig, 1..300, 50);
    let mut pn = 300;
    let mut recoveries = 0;
    while rig.recovery.reordering.is_seen() {
        rig.wait(1);
        rig.send_all(Data, [pn, pn + 1], 1);
        rig.wait(99);
        rig.ack_and_detect(Data, &[pn + 1..=pn + 1]);
        rig.expire(FREE);
        assert_eq!(rig.lost, [pn]);
        pn += 2;
        recoveries += 1;
        assert!(recoveries <= RECOVERIES_REMEMBERED, "it is kept forever");
    }
    assert_eq!(recoveries, RECOVERIES_REMEMBERED);
    rig.send_all(Data, pn..pn + 4, 1);
    rig.loses(Data, &[pn + 3..=pn + 3], [pn]);
}

#[test]
fn a_new_path_is_not_known_to_reorder() {
    let mut rig = Rig::confirmed();
    reorder(&mut rig, 1..300, 50);
    assert!(rig.recovery.reordering.is_seen());
    rig.recovery.change_path(RttEstimator::new(INITIAL_RTT));
    assert!(!rig.recovery.reordering.is_seen());
}

#[test]
fn packet_numbers_are_long_enough_to_be_decoded_late() {
    let mut rig = Rig::confirmed();
    rig.send_all(Data, 1..10_000, 0);
    rig.ack(Data, &[9_999..=9_999]);
    assert_eq!(rig.recovery.decoded_from(Data), Some(9_999));
    rig.ack(Data, &[9_990..=9_999]);
    assert_eq!(rig.recovery.decoded_from(Data), Some(9_999 - MAX_PACKET_THRESHOLD));
    assert_eq!(rig.recovery.decoded_from(Handshake), None);
}
