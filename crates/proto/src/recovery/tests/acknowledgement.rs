//! Effects of ACK frames.

use super::*;

#[test]
fn acknowledgement_removes_from_flight_once() {
    let mut rig = Rig::new(Side::Server);
    rig.send_all(Data, 0..4, 1);
    rig.send_as(Data, 4, Kind::Padding);
    rig.send_as(Data, 5, Kind::Ack);
    assert_eq!(rig.recovery.bytes_in_flight(), 5_000);
    let outcome = rig.ack(Data, &[4..=5, 0..=1]);
    assert_eq!(rig.acked, [0, 1, 4, 5]);
    assert!(outcome.newly_acked && outcome.ack_eliciting && outcome.largest_raised);
    assert_eq!(rig.recovery.bytes_in_flight(), 2_000);
    assert!(rig.recovery.has_ack_eliciting_in_flight(Data));
    assert_eq!(rig.ack(Data, &[4..=5, 0..=1]), AckOutcome::default());
    assert_eq!(rig.recovery.bytes_in_flight(), 2_000);
    assert!(rig.recovery.sent(Data).map(|p| p.pn).eq([2, 3]));
}

#[test]
fn unsent_packet_numbers_are_violations_and_change_nothing() {
    let mut rig = Rig::new(Side::Server);
    let empty: [RangeInclusive<u64>; 0] = [];
    assert_eq!(rig.ack(Data, &empty), AckOutcome::default());
    assert!(rig.try_ack(Data, &[0..=0], MS).is_err(), "nothing was sent");
    rig.send_all(Data, [0, 1, 3, 4], 1);
    for ranges in [
        &[5..=5][..],
        &[0..=(1 << 62) - 1],
        &[u64::MAX..=u64::MAX, 0..=1],
        &[2..=2],
        &[0..=4],
        &[4..=4, 1..=2],
    ] {
        let error = rig.try_ack(Data, ranges, MS).unwrap_err();
        assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
        assert_eq!(
            (rig.recovery.bytes_in_flight(), rig.recovery.largest_acked(Data)),
            (4_000, None)
        );
    }
    assert!(rig.try_ack(Handshake, &[0..=0], MS).is_err(), "another space");
    rig.ack(Data, &[3..=4, 0..=1]);
    assert_eq!(rig.acked, [0, 1, 3, 4]);
    // A skipped number stays forbidden once everything around it is settled.
    assert!(rig.try_ack(Data, &[0..=4], MS).is_err());
}

#[test]
fn round_trip_time_needs_the_largest_and_something_ack_eliciting() {
    let mut rig = Rig::new(Side::Server);
    for (pn, kind) in
        [(0, Kind::Data), (1, Kind::Data), (2, Kind::Ack), (3, Kind::Data), (4, Kind::Ack)]
    {
        rig.send_as(Data, pn, kind);
        rig.wait(10);
    }
    assert_eq!(rig.ack(Data, &[2..=2]).rtt_sample, None, "nothing ack-eliciting");
    assert_eq!(rig.recovery.rtt().first_sample(), None);
    assert_eq!(rig.ack(Data, &[2..=2, 1..=1]).rtt_sample, None, "the largest is not new");
    let outcome = rig.ack(Data, &[4..=4, 3..=3]);
    assert_eq!(outcome.rtt_sample, Some(10 * MS), "the largest is ACK only, but 3 is not");
    assert_eq!(rig.recovery.rtt().latest(), 10 * MS);
    rig.send(Data, 5);
    rig.wait(10);
    assert_eq!(rig.ack(Data, &[5..=5]).rtt_sample, Some(10 * MS));
    let old = rig.ack(Data, &[0..=0]);
    assert_eq!(
        (old.rtt_sample, old.largest_raised, old.newly_acked),
        (Some(60 * MS), false, true),
        "an ACK frame that was overtaken"
    );
}

#[test]
fn absurd_ack_delay_is_not_believed() {
    let mut rig = Rig::confirmed();
    rig.send(Data, 1);
    rig.wait(100);
    rig.try_ack(Data, &[1..=1], Duration::MAX).unwrap();
    assert_eq!(rig.recovery.rtt().smoothed(), 100 * MS);
    rig.send(Data, 2);
    rig.wait(140);
    rig.try_ack(Data, &[2..=2], 40 * MS).unwrap();
    assert_eq!(rig.recovery.rtt().smoothed(), 100 * MS);
}
