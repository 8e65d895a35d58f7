//! Acknowledgements, honest and dishonest, and probes.

use super::pair::{Forgery, Pair, pattern};
use crate::recovery::ack::LONG_ACK_RANGES;
use crate::wire::frame::encode_ack;
use crate::wire_format::{Carrier, EcnCounts, Frame, FrameIter};
use crate::{Dir, EcnCodepoint, Observation, Observer, Side, SpaceId, TransportErrorCode};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Acknowledges these packets of the server on behalf of the client, with one ACK frame per range.
pub(super) fn acknowledge(pair: &mut Pair, ranges: &[(u64, u64)]) {
    let mut payload = Vec::new();
    for &(first, end) in ranges {
        encode_ack(std::iter::once(first..end), 0, None, 1000, &mut payload).unwrap();
    }
    let datagram = pair.forge(Side::Client, SpaceId::Data, &payload, Forgery::default());
    pair.receive(Side::Server, datagram);
}

#[test]
fn packets_that_were_never_sent_cannot_be_acknowledged() {
    let mut pair = Pair::connected();
    let next = pair.server.conn().spaces[SpaceId::Data as usize].peek_pn();
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
            let rtt = pair.server.conn().stats().rtt;
            pair.server.conn().peer.ack_delay_exponent = exponent;
            let pn = pair.server.conn().spaces[SpaceId::Data as usize].peek_pn();
            pair.server.conn().spaces[SpaceId::Data as usize].ping = true;
            pair.filter = Box::new(|_, _| false);
            pair.flush(Side::Server);
            pair.run_for(2 * pair.latency);
            let mut payload = Vec::new();
            encode_ack(std::iter::once(pn..pn + 1), delay, None, 1000, &mut payload).unwrap();
            let ack = pair.forge(Side::Client, SpaceId::Data, &payload, Forgery::default());
            pair.receive(Side::Server, ack);
            let after = pair.server.conn().stats().rtt;
            assert!(after.abs_diff(rtt) < Duration::from_millis(10), "{rtt:?} {after:?}");
            assert_eq!(pair.loss(Side::Server), None);
        }
    }
}

#[test]
fn skipped_packet_numbers_unmask_a_liar() {
    let mut pair = Pair::connected();
    let data = pattern(2_500_000);
    let id = pair.server.conn().open(Dir::Uni).unwrap();
    let (mut rest, mut got) = (&data[..], 0);
    let mut client_id = None;
    while got < data.len() {
        if let Ok(n) = pair.server.conn().send_stream(id).write(rest) {
            rest = &rest[n..];
        }
        pair.step(pair.now + Duration::from_secs(1));
        client_id = client_id.or_else(|| pair.client.conn().accept(Dir::Uni));
        let Some(id) = client_id else { continue };
        while let Ok(Some(chunk)) = pair.client.conn().recv_stream(id).read_chunk(usize::MAX, true)
        {
            got += chunk.bytes.len();
        }
    }
    assert_eq!(pair.loss(Side::Server), None);
    let largest = pair.server.conn().path.recovery.largest_acked(SpaceId::Data).unwrap();
    acknowledge(&mut pair, &[(0, largest + 1)]);
    assert_eq!(pair.error(Side::Server), Some(TransportErrorCode::PROTOCOL_VIOLATION));
}

#[test]
fn several_ack_frames_in_a_packet_all_count() {
    let mut pair = Pair::connected();
    let first = pair.server.conn().spaces[SpaceId::Data as usize].peek_pn();
    pair.filter = Box::new(|_, _| false);
    let id = pair.send(Side::Server, Dir::Uni, &pattern(3_000));
    pair.flush(Side::Server);
    assert!(pair.server.conn().path.recovery.bytes_in_flight() > 3_000);
    acknowledge(&mut pair, &[(first, first + 1), (first + 1, first + 2), (first, first + 3)]);
    assert_eq!(pair.server.conn().path.recovery.bytes_in_flight(), 0);
    assert_eq!(pair.server.conn().stats().packets_lost, 0);
    assert!(pair.server.conn().send_stream(id).outcome().is_some());
}

#[test]
fn idle_ends_do_not_answer_each_other() {
    let mut pair = Pair::connected();
    pair.send(Side::Client, Dir::Uni, &pattern(100_000));
    pair.accept_and_read(Side::Server, Dir::Uni);
    pair.run_for(Duration::from_secs(1));
    let before = pair.datagrams.clone();
    pair.run_for(Duration::from_secs(20));
    assert_eq!(pair.datagrams, before);
}

#[test]
fn acknowledgements_are_acknowledged_so_that_ranges_are_forgotten() {
    let mut pair = Pair::connected();
    let mut n = 0u32;
    pair.filter = Box::new(move |from, bytes| {
        n += u32::from(from == Side::Server && bytes.len() > 1000);
        from == Side::Client || !n.is_multiple_of(9)
    });
    let data = pattern(900_000);
    pair.send(Side::Server, Dir::Uni, &data);
    assert_eq!(pair.accept_and_read(Side::Client, Dir::Uni), data);
    // 700 packets with 80 gaps, and nothing ack-eliciting of its own to send.
    let ranges = pair.client.conn().spaces[SpaceId::Data as usize].acks.ranges().len();
    assert!(ranges <= LONG_ACK_RANGES + 8, "{ranges}");
}

#[test]
fn a_lost_tail_is_probed_for_with_what_was_lost() {
    let mut pair = Pair::connected();
    let mut n = 0;
    pair.filter = Box::new(move |from, _| {
        n += usize::from(from == Side::Client);
        from == Side::Server || n > 1
    });
    let start = pair.now;
    pair.send(Side::Client, Dir::Uni, b"all there is");
    assert_eq!(pair.accept_and_read(Side::Server, Dir::Uni), b"all there is");
    assert_eq!(pair.client.conn().stats().probe_timeouts, 1);
    assert!(pair.now - start < Duration::from_millis(500));
}

#[test]
fn probes_back_off_and_end_with_the_connection() {
    let mut pair = Pair::connected();
    pair.filter = Box::new(|_, _| false);
    let before = pair.datagrams[0].len();
    pair.send(Side::Client, Dir::Uni, b"into the void");
    pair.run_for(Duration::from_secs(60));
    assert!(pair.client.conn().is_drained());
    let probes = pair.datagrams[0].len() - before;
    // Two every two seconds at most, for the 30 seconds of the idle timeout.
    assert!((20..40).contains(&probes), "{probes}");
}

/// Records the ECN counts of ACK frames.
struct Counts(Arc<Mutex<Option<EcnCounts>>>);

impl Observer for Counts {
    fn observe(&mut self, _: Instant, observation: &Observation<'_>) {
        if let Observation::PacketReceived { space: SpaceId::Data, payload, .. } = observation {
            for frame in FrameIter::new(payload, Carrier::OneRtt) {
                if let Ok(Frame::Ack(ack)) = frame {
                    *self.0.lock().unwrap() = ack.ecn;
                }
            }
        }
    }
}

#[test]
fn marks_are_reported() {
    let mut pair = Pair::connected();
    let counts = Arc::new(Mutex::new(None));
    let now = pair.now;
    pair.client.conn().set_observer(now, Box::new(Counts(counts.clone())));
    pair.send(Side::Client, Dir::Uni, &pattern(5_000));
    pair.accept_and_read(Side::Server, Dir::Uni);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(*counts.lock().unwrap(), None, "no mark, no counts");
    pair.remark = Box::new(|_| Some(Some(EcnCodepoint::Ect0)));
    pair.send(Side::Client, Dir::Uni, &pattern(5_000));
    pair.accept_and_read(Side::Server, Dir::Uni);
    pair.run_for(Duration::from_secs(1));
    let counts = counts.lock().unwrap().unwrap();
    assert!(counts.ect0 >= 5 && counts.ect1 == 0 && counts.ce == 0, "{counts:?}");
    assert!(!pair.client.conn().stats().ecn_capable, "it did not mark them");
}
