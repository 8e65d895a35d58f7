//! Acknowledgements, honest and dishonest, and probes.

use super::*;
use crate::EcnCodepoint;
use crate::recovery::ack::LONG_ACK_RANGES;

/// Acknowledges these packets of the server on behalf of the client, with one ACK frame per range.
pub(super) fn acknowledge(pair: &mut Pair, ranges: &[(u64, u64)]) {
    let mut payload = Vec::new();
    for &(first, end) in ranges {
        encode_ack(std::iter::once(first..end), 0, None, 1000, &mut payload).unwrap();
    }
    pair.inject_packet(Side::Client, SpaceId::Data, &payload, Forgery::default());
}

#[test]
fn packets_that_were_never_sent_cannot_be_acknowledged() {
    let mut pair = Pair::connected();
    let next = pair.server.space().peek_pn();
    acknowledge(&mut pair, &[(0, next)]);
    assert_eq!(pair.loss(Side::Server), None);
    acknowledge(&mut pair, &[(0, next + 2)]);
    assert_eq!(pair.error(Side::Server), Some(TransportErrorCode::PROTOCOL_VIOLATION));
}

/// No claimed delay, in no unit, reduces the round-trip time below the measured minimum.
#[test]
fn an_absurd_delay_is_not_believed() {
    for exponent in [0, 3, 20] {
        for delay in [1 << 43, 1 << 61, (1 << 62) - 1] {
            let mut pair = Pair::connected();
            let rtt = pair.server.stats().rtt;
            pair.server.conn().peer.ack_delay_exponent = exponent;
            let pn = pair.server.space().peek_pn();
            pair.server.space().ping = true;
            pair.cut();
            pair.flush(Side::Server);
            pair.run_for(2 * pair.latency);
            let mut payload = Vec::new();
            encode_ack(std::iter::once(pn..pn + 1), delay, None, 1000, &mut payload).unwrap();
            pair.inject_packet(Side::Client, SpaceId::Data, &payload, Forgery::default());
            let after = pair.server.stats().rtt;
            assert!(after.abs_diff(rtt) < 10 * MS, "{rtt:?} {after:?}");
            assert_eq!(pair.loss(Side::Server), None);
        }
    }
}

#[test]
fn skipped_packet_numbers_unmask_a_liar() {
    let mut pair = Pair::connected();
    let id = pair.open(Side::Server, None);
    pair.pour(id, 2_500_000);
    assert_eq!(pair.loss(Side::Server), None);
    let largest = pair.server.conn().path.recovery.largest_acked(SpaceId::Data).unwrap();
    acknowledge(&mut pair, &[(0, largest + 1)]);
    assert_eq!(pair.error(Side::Server), Some(TransportErrorCode::PROTOCOL_VIOLATION));
}

#[test]
fn several_ack_frames_in_a_packet_all_count() {
    let mut pair = Pair::connected();
    let first = pair.server.space().peek_pn();
    pair.cut();
    let id = pair.send(Side::Server, Dir::Uni, &pattern(3_000));
    pair.flush(Side::Server);
    assert!(pair.server.conn().path.recovery.bytes_in_flight() > 3_000);
    acknowledge(&mut pair, &[(first, first + 1), (first + 1, first + 2), (first, first + 3)]);
    assert_eq!(pair.server.conn().path.recovery.bytes_in_flight(), 0);
    assert_eq!(pair.server.stats().packets_lost, 0);
    assert!(pair.server.conn().send_stream(id).outcome().is_some());
}

#[test]
fn idle_ends_do_not_answer_each_other() {
    let mut pair = Pair::connected();
    pair.carry(Side::Client, 100_000);
    pair.run_for(SECOND);
    let before = pair.datagrams.clone();
    pair.run_for(20 * SECOND);
    assert_eq!(pair.datagrams, before);
}

#[test]
fn acknowledgements_are_acknowledged_so_that_ranges_are_forgotten() {
    let mut pair = Pair::connected();
    pair.lose_larger(Side::Server, 1000, |n| n.is_multiple_of(9));
    pair.carry(Side::Server, 900_000);
    // 700 packets with 80 gaps, and nothing ack-eliciting of its own to send.
    let ranges = pair.client.space().acks.ranges().len();
    assert!(ranges <= LONG_ACK_RANGES + 8, "{ranges}");
}

#[test]
fn a_lost_tail_is_probed_for_with_what_was_lost() {
    let mut pair = Pair::connected();
    pair.lose(Side::Client, |n| n <= 1);
    let start = pair.now;
    pair.send(Side::Client, Dir::Uni, b"all there is");
    assert_eq!(pair.accept_and_read(Side::Server, Dir::Uni), b"all there is");
    assert_eq!(pair.client.stats().probe_timeouts, 1);
    assert!(pair.now - start < 500 * MS);
}

#[test]
fn probes_back_off_and_end_with_the_connection() {
    let mut pair = Pair::connected();
    pair.cut();
    let before = pair.sent(Side::Client);
    pair.send(Side::Client, Dir::Uni, b"into the void");
    pair.run_for(60 * SECOND);
    assert!(pair.client.conn().is_drained());
    let probes = pair.sent(Side::Client) - before;
    // Two every two seconds at most, for the 30 seconds of the idle timeout.
    assert!((20..40).contains(&probes), "{probes}");
}

#[test]
fn marks_are_reported() {
    let mut pair = Pair::connected();
    let counts = pair.watch_frames(Side::Client, |frame| match frame {
        Frame::Ack(ack) => Some(ack.ecn),
        _ => None,
    });
    pair.carry(Side::Client, 5_000);
    pair.run_for(SECOND);
    assert_eq!(counts.lock().unwrap().pop(), Some(None), "no mark, no counts");
    pair.remark = Box::new(|_| Some(Some(EcnCodepoint::Ect0)));
    pair.carry(Side::Client, 5_000);
    pair.run_for(SECOND);
    let counts = counts.lock().unwrap().pop().flatten().unwrap();
    assert!(counts.ect0 >= 5 && counts.ect1 == 0 && counts.ce == 0, "{counts:?}");
    assert!(!pair.client.stats().ecn_capable, "it did not mark them");
}
