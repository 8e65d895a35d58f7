mod vectors;

use super::*;
use crate::ids::SymbolRef;
use crate::wire::code_id::{CodeId, CodeSet};
use crate::wire::coding::{VARINT_MAX, put_varint, varint_size};
use crate::wire::range_set::RangeSet;
use crate::wire::transport_parameters::{FecParameters, TransportParameters};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::ops::Range;

/// Values to build any frame from.
#[derive(Debug, Clone)]
struct Parts {
    integers: [u64; 3],
    data: Vec<u8>,
    cid: Vec<u8>,
    token: [u8; 16],
    flag: bool,
    /// Encoded ACK and SYMBOL_ACK frames, which borrow their ranges.
    ack: Vec<u8>,
    symbol_ack: Vec<u8>,
}

/// Integers of every encoded size.
fn any_integer() -> impl Strategy<Value = u64> {
    (0u32..=62, any::<u64>()).prop_map(|(bits, value)| value & ((1 << bits) - 1))
}

fn any_set() -> impl Strategy<Value = RangeSet> {
    vec((any_integer(), 0u64..100), 0..12).prop_map(|ranges| {
        ranges.into_iter().map(|(start, len)| start..(start + len).min(VARINT_MAX)).collect()
    })
}

fn any_ecn() -> impl Strategy<Value = Option<EcnCounts>> {
    proptest::option::of([any_integer(), any_integer(), any_integer()])
        .prop_map(|counts| counts.map(|[ect0, ect1, ce]| EcnCounts { ect0, ect1, ce }))
}

prop_compose! {
    fn any_parts()(
        integers in [any_integer(), any_integer(), any_integer()],
        data in vec(any::<u8>(), 0..100),
        cid in vec(any::<u8>(), 1..=20),
        token: [u8; 16],
        flag: bool,
        received in any_set(),
        ecn in any_ecn(),
    ) -> Parts {
        let (mut ack, mut symbol_ack) = (Vec::new(), Vec::new());
        let mut nonempty = received.clone();
        nonempty.insert(integers[0]..integers[0] + 1);
        encode_ack(nonempty.iter().rev(), integers[1], ecn.as_ref(), usize::MAX, &mut ack).unwrap();
        let session = integers[2] as u16;
        let (bound, room) = (integers[0].min(VARINT_MAX - 1), usize::MAX);
        encode_symbol_ack(session, bound, &received, room, &mut symbol_ack).unwrap();
        Parts { integers, data, cid, token, flag, ack, symbol_ack }
    }
}

/// Builds a valid frame of this kind. One match arm per kind, so that no kind is forgotten.
fn frame(kind: FrameKind, parts: &Parts) -> Frame<'_> {
    let [a, b, c] = parts.integers;
    let data = &parts.data[..];
    let (id, offset) = (StreamId(a), b.min(VARINT_MAX - data.len() as u64));
    let dir = if parts.flag { Dir::Uni } else { Dir::Bi };
    let session = c as u16;
    match kind {
        FrameKind::Padding => Frame::Padding,
        FrameKind::Ping => Frame::Ping,
        FrameKind::Ack => only(&parts.ack),
        FrameKind::ResetStream => Frame::ResetStream { id, code: b, final_size: c },
        FrameKind::ResetStreamAt => {
            Frame::ResetStreamAt { id, code: a, final_size: b.max(c), reliable_size: b.min(c) }
        }
        FrameKind::StopSending => Frame::StopSending { id, code: b },
        FrameKind::Crypto => Frame::Crypto { offset, data },
        FrameKind::NewToken => Frame::NewToken(&parts.cid),
        FrameKind::Stream => Frame::Stream(StreamFrame { id, offset, fin: parts.flag, data }),
        FrameKind::MaxData => Frame::MaxData(a),
        FrameKind::MaxStreamData => Frame::MaxStreamData { id, max: b },
        FrameKind::MaxStreams => Frame::MaxStreams { dir, max: a.min(MAX_STREAMS) },
        FrameKind::DataBlocked => Frame::DataBlocked(a),
        FrameKind::StreamDataBlocked => Frame::StreamDataBlocked { id, limit: b },
        FrameKind::StreamsBlocked => Frame::StreamsBlocked { dir, limit: a.min(MAX_STREAMS) },
        FrameKind::NewConnectionId => Frame::NewConnectionId(NewConnectionId {
            sequence: a.max(b),
            retire_prior_to: a.min(b),
            id: ConnectionId::new(&parts.cid).unwrap(),
            reset_token: parts.token,
        }),
        FrameKind::RetireConnectionId => Frame::RetireConnectionId(a),
        FrameKind::PathChallenge => Frame::PathChallenge(a.to_be_bytes()),
        FrameKind::PathResponse => Frame::PathResponse(a.to_be_bytes()),
        FrameKind::ConnectionClose => Frame::Close(Close::Transport {
            code: TransportErrorCode(a),
            frame: Some(b).filter(|&b| b != 0),
            reason: data,
        }),
        FrameKind::ApplicationClose => Frame::Close(Close::Application { code: a, reason: data }),
        FrameKind::HandshakeDone => Frame::HandshakeDone,
        FrameKind::AckFrequency => Frame::AckFrequency(AckFrequency {
            sequence: a,
            threshold: b,
            max_ack_delay: c,
            reordering_threshold: b,
        }),
        FrameKind::ImmediateAck => Frame::ImmediateAck,
        FrameKind::Datagram => Frame::Datagram(data),
        FrameKind::SourceSymbol => Frame::SourceSymbol(SourceSymbol {
            symbol: SymbolRef { session, id: a.min(VARINT_MAX - 1) },
            frames: &parts.cid,
        }),
        FrameKind::Repair | FrameKind::RepairCoded => {
            let first = a.min(VARINT_MAX - 1);
            let count = b.clamp(1, VARINT_MAX - first);
            let number = if kind == FrameKind::Repair { 0 } else { 1 + a % 61 };
            let code = CodeId::new(number).unwrap();
            let header = RepairHeader { session, code, first, count, key: c as u32 };
            Frame::Repair(Repair { header, payload: &parts.token })
        }
        FrameKind::SymbolAck => only(&parts.symbol_ack),
        FrameKind::SymbolWindow => Frame::SymbolWindow(SymbolWindow { session, lower_bound: a }),
    }
}

/// Decodes `bytes`, which must be a single frame.
fn only(bytes: &[u8]) -> Frame<'_> {
    let mut frames = FrameIter::new(bytes, Carrier::OneRtt);
    let frame = frames.next().unwrap().unwrap();
    assert!(frames.next().is_none());
    frame
}

fn error(bytes: &[u8], carrier: Carrier) -> TransportError {
    FrameIter::new(bytes, carrier).find_map(Result::err).expect("an error")
}

fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    frame.encode(&mut out);
    out
}

/// Encodes a frame type and integers.
fn integers(fields: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    for &field in fields {
        put_varint(&mut out, field);
    }
    out
}

fn reaches_to_the_end(kind: FrameKind) -> bool {
    matches!(kind, FrameKind::SourceSymbol | FrameKind::Repair | FrameKind::RepairCoded)
}

proptest! {
    #[test]
    fn every_frame_round_trips(parts in any_parts()) {
        for &kind in FrameKind::ALL {
            let frame = frame(kind, &parts);
            prop_assert_eq!(frame.kind(), kind);
            let bytes = encoded(&frame);
            prop_assert_eq!(bytes.len(), frame.size(), "size of {:?}", frame);
            prop_assert_eq!(only(&bytes), frame);
            prop_assert_eq!(encoded(&only(&bytes)), bytes);
        }
    }

    #[test]
    fn frames_follow_each_other(
        parts in any_parts(), kinds in vec(select(FrameKind::ALL), 0..8),
    ) {
        let mut bytes = Vec::new();
        let mut expected: Vec<Frame<'_>> = Vec::new();
        for kind in kinds {
            let frame = frame(kind, &parts);
            frame.encode(&mut bytes);
            if !(kind == FrameKind::Padding && expected.last() == Some(&Frame::Padding)) {
                expected.push(frame);
            }
            if reaches_to_the_end(kind) {
                break;
            }
        }
        let decoded: Result<Vec<_>, _> = FrameIter::new(&bytes, Carrier::OneRtt).collect();
        prop_assert_eq!(decoded, Ok(expected));
    }

    #[test]
    fn truncations_are_errors_or_shorter_frames(parts in any_parts()) {
        for &kind in FrameKind::ALL {
            let whole = frame(kind, &parts);
            let bytes = encoded(&whole);
            for cut in 1..bytes.len() {
                let cut = &bytes[..cut];
                let first = FrameIter::new(cut, Carrier::OneRtt).next().unwrap();
                match first {
                    Ok(frame) => prop_assert!(reaches_to_the_end(kind) && frame != whole),
                    Err(e) => prop_assert_eq!(e.code, TransportErrorCode::FRAME_ENCODING_ERROR),
                }
                crate::wire::fuzz::frames(cut);
            }
        }
    }

    #[test]
    fn any_bytes_are_frames_or_an_error(bytes in vec(any::<u8>(), 0..200), kind in select(FrameKind::ALL)) {
        crate::wire::fuzz::frames(&bytes);
        let typed = [integers(&[kind.wire_type()]), bytes].concat();
        crate::wire::fuzz::frames(&typed);
    }

    #[test]
    fn stream_capacity_is_exact(
        id in any_integer(), offset in any_integer(), fin: bool, room in 0usize..20_000,
    ) {
        let header = StreamHeader { id: StreamId(id), offset, fin };
        match header.capacity(room, true) {
            None => prop_assert!(header.size(Some(0)) > room),
            Some(n) => {
                prop_assert!(header.size(Some(n)) + n <= room);
                prop_assert!(header.size(Some(n + 1)) + n + 1 > room);
            }
        }
        match header.capacity(room, false) {
            None => prop_assert!(header.size(None) > room),
            Some(n) => prop_assert_eq!(header.size(None) + n, room),
        }
    }

    #[test]
    fn crypto_capacities_and_datagram_sizes_are_exact(offset in any_integer(), room in 0usize..20_000) {
        let data = vec![7; room + 1];
        let crypto = |n: usize| Frame::Crypto { offset, data: &data[..n] }.size();
        match crypto_capacity(offset, room) {
            None => prop_assert!(crypto(0) > room),
            Some(n) => prop_assert!(crypto(n) <= room && crypto(n + 1) > room),
        }
        let datagram = |n: usize| Frame::Datagram(&data[..n]).size();
        prop_assert_eq!(datagram_size(room), datagram(room));
    }

    #[test]
    fn stream_frames_at_the_end_need_no_length(
        id in any_integer(), offset in any_integer(), fin: bool, data in vec(any::<u8>(), 0..100),
    ) {
        let offset = offset.min(VARINT_MAX - 100);
        let header = StreamHeader { id: StreamId(id), offset, fin };
        let mut out = Vec::new();
        header.encode(None, &mut out);
        prop_assert_eq!(out.len(), header.size(None));
        out.extend_from_slice(&data);
        let frame = StreamFrame { id: StreamId(id), offset, fin, data: &data };
        prop_assert_eq!(only(&out), Frame::Stream(frame));

        out.clear();
        encode_datagram(&data, false, &mut out);
        prop_assert_eq!(only(&out), Frame::Datagram(&data));
    }

    #[test]
    fn ack_reports_the_newest_ranges_that_fit(
        received in any_set(), delay in any_integer(), ecn in any_ecn(), room in 0usize..200,
    ) {
        let mut out = vec![0xff];
        let Some(size) = encode_ack(received.iter().rev(), delay, ecn.as_ref(), room, &mut out) else {
            prop_assert_eq!(&out, &[0xff]);
            let newest: RangeSet = received.iter().next_back().into_iter().collect();
            let mut minimum = Vec::new();
            let needed = encode_ack(newest.iter().rev(), delay, ecn.as_ref(), usize::MAX, &mut minimum);
            prop_assert!(needed.is_none_or(|needed| needed > room));
            return Ok(());
        };
        prop_assert_eq!(out.len(), 1 + size);
        prop_assert!(size <= room);
        let Frame::Ack(ack) = only(&out[1..]) else { panic!("not an ACK") };
        prop_assert_eq!((Some(ack.largest), ack.delay, ack.ecn), (received.max(), delay, ecn));
        let reported: Vec<_> = ack.ranges().collect();
        let expected: Vec<_> = received.iter().rev().take(reported.len()).collect();
        prop_assert_eq!(&reported, &expected);
    }

    #[test]
    fn symbol_ack_reports_the_oldest_ranges_that_fit(
        held in any_set(), bound in any_integer(), session: u16, room in 0usize..150,
    ) {
        let above: Vec<Range<u64>> = held
            .iter()
            .map(|r| r.start.max(bound + 1)..r.end)
            .filter(|r| !r.is_empty())
            .collect();
        let mut out = Vec::new();
        let Some(size) = encode_symbol_ack(session, bound, &held, room, &mut out) else {
            prop_assert!(out.is_empty());
            prop_assert!(room < 2 + varint_size(session.into()) + varint_size(bound) + 1);
            return Ok(());
        };
        prop_assert!(size == out.len() && size <= room);
        let Frame::SymbolAck(ack) = only(&out) else { panic!("not a SYMBOL_ACK") };
        prop_assert_eq!((ack.session, ack.lower_bound), (session, bound));
        let reported: Vec<_> = ack.ranges().collect();
        prop_assert_eq!(&reported[..], &above[..reported.len()]);
    }

    #[test]
    fn close_cuts_its_reason_to_the_room(reason in ".{0,60}", room in 0usize..120, code in any_integer()) {
        let close = Close::Application { code, reason: reason.as_bytes() };
        let mut out = Vec::new();
        let Some(size) = close.encode_within(room, &mut out) else {
            prop_assert!(room < 1 + varint_size(code) + 1);
            return Ok(());
        };
        prop_assert!(size == out.len() && size <= room);
        let Frame::Close(cut) = only(&out) else { panic!("not a CONNECTION_CLOSE") };
        let cut = std::str::from_utf8(cut.reason()).expect("cut between characters");
        prop_assert!(reason.starts_with(cut));
        let whole = Frame::Close(close).size();
        prop_assert_eq!(cut.len() == reason.len(), whole <= room);
        prop_assert!(cut.len() + 4 + 2 + varint_size(code) >= room.min(reason.len()));
    }
}

#[test]
fn a_reason_that_is_not_text_is_cut_too() {
    let code = TransportErrorCode::INTERNAL_ERROR;
    let close = Close::Transport { code, frame: None, reason: &[0x80; 100] };
    let mut out = Vec::new();
    assert_eq!(close.encode_within(50, &mut out), Some(50));
}

#[test]
fn unknown_types_are_encoding_errors() {
    for wire_type in [0x20, 0x21, 0x2f, 0x32, 0x3f, 0x40, 0x3f52, 0x3f57, 0xae, 1 << 40, VARINT_MAX]
    {
        let error = error(&integers(&[wire_type, 0, 0, 0]), Carrier::OneRtt);
        assert_eq!(error.code, TransportErrorCode::FRAME_ENCODING_ERROR);
        assert_eq!(error.frame, Some(wire_type));
    }
    // A prefix of a longer type is not PADDING.
    assert_eq!(error(&[0x40], Carrier::OneRtt).code, TransportErrorCode::FRAME_ENCODING_ERROR);
}

#[test]
fn types_are_in_their_shortest_encoding() {
    for bytes in [&[0x40, 0x01][..], &[0x80, 0, 0, 0x01], &[0xc0, 0, 0, 0, 0, 0, 0, 0x01]] {
        assert_eq!(error(bytes, Carrier::OneRtt).code, TransportErrorCode::PROTOCOL_VIOLATION);
    }
    let error = error(&[0x80, 0, 0x3f, 0x56, 0, 0], Carrier::OneRtt);
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn frames_stay_in_their_carriers() {
    let parts = Parts {
        integers: [1, 1, 1],
        data: vec![1],
        cid: vec![1],
        token: [1; 16],
        flag: false,
        ack: vec![2, 0, 0, 0, 0],
        symbol_ack: vec![0x7f, 0x55, 0, 0, 0],
    };
    use Carrier::{Handshake, Initial, OneRtt, SourceSymbol, ZeroRtt};
    for &kind in FrameKind::ALL {
        let bytes = encoded(&frame(kind, &parts));
        for carrier in [Initial, ZeroRtt, Handshake, OneRtt, SourceSymbol] {
            let first = FrameIter::new(&bytes, carrier).next().unwrap();
            match first {
                Ok(frame) => assert_eq!(frame.kind(), kind),
                Err(ref e) => assert_eq!(e.code, TransportErrorCode::PROTOCOL_VIOLATION),
            }
            assert_eq!(first.is_ok(), kind.info().allowed_in(carrier), "{kind:?} in {carrier:?}");
        }
    }
}

#[test]
fn nothing_follows_an_error() {
    let bytes = [integers(&[0x01, 0x2f]), integers(&[0x01, 0x01])].concat();
    let mut frames = FrameIter::new(&bytes, Carrier::OneRtt);
    assert_eq!(frames.next(), Some(Ok(Frame::Ping)));
    assert!(matches!(frames.next(), Some(Err(_))));
    assert_eq!(frames.next(), None);
}

#[test]
fn a_run_of_padding_is_one_frame() {
    let mut payload = vec![0; 1100];
    payload.push(0x01);
    payload.extend([0; 50]);
    let frames: Result<Vec<_>, _> = FrameIter::new(&payload, Carrier::Initial).collect();
    assert_eq!(frames, Ok(vec![Frame::Padding, Frame::Ping, Frame::Padding]));
}

#[test]
fn padding_of_any_length_is_one_item() {
    for len in 1..200 {
        let mut payload = vec![0; len];
        payload.push(1);
        let frames: Result<Vec<_>, _> = FrameIter::new(&payload, Carrier::OneRtt).collect();
        assert_eq!(frames, Ok(vec![Frame::Padding, Frame::Ping]), "{len}");
    }
}

#[test]
fn malformed_frames_are_encoding_errors() {
    let ack = FrameKind::Ack.wire_type();
    let cid = |len: u8| {
        let head = [0x18, 2, 1, len];
        [&head[..], &vec![9; usize::from(len) + 16]].concat()
    };
    for (bytes, why) in [
        (integers(&[ack, 5, 0, 0, 6]), "first range below zero"),
        (integers(&[ack, 5, 0, 1, 1, 3, 0]), "gap below zero"),
        (integers(&[ack, 5, 0, 1, 1, 2, 1]), "second range below zero"),
        (integers(&[ack, 5, 0, 1, 1, VARINT_MAX, 0]), "huge gap"),
        (integers(&[ack, VARINT_MAX, 0, 1, 0, 0, VARINT_MAX]), "huge range"),
        (integers(&[ack, 5, 0, VARINT_MAX, 0]), "more ranges than bytes"),
        (integers(&[ack | 1, 5, 0, 0, 0, 1, 1]), "a missing ECN count"),
        (integers(&[0x06, VARINT_MAX, 1, 0]), "CRYPTO past the last offset"),
        (integers(&[0x0e, 0, VARINT_MAX, 1, 0]), "STREAM past the last offset"),
        (integers(&[0x0c, 0, VARINT_MAX, 0]), "STREAM past the last offset, no length"),
        (integers(&[0x07, 0]), "empty token"),
        (integers(&[0x12, MAX_STREAMS + 1]), "too many streams"),
        (integers(&[0x13, MAX_STREAMS + 1]), "too many streams"),
        (integers(&[0x16, MAX_STREAMS + 1]), "blocked at too many streams"),
        (integers(&[0x17, MAX_STREAMS + 1]), "blocked at too many streams"),
        (cid(0), "empty connection id"),
        (cid(21), "connection id of 21 bytes"),
        ([&[0x18, 1, 2, 1][..], &[9; 17]].concat(), "retires itself"),
        (integers(&[0x31, 5]), "DATAGRAM longer than the packet"),
        (integers(&[0x31, VARINT_MAX]), "DATAGRAM much longer than the packet"),
    ] {
        let error = error(&bytes, Carrier::OneRtt);
        assert_eq!(error.code, TransportErrorCode::FRAME_ENCODING_ERROR, "{why}");
        assert!(error.frame.is_some(), "{why}");
    }
    // The same, but just within the bounds.
    only(&integers(&[ack, 5, 0, 1, 1, 2, 0]));
    only(&integers(&[0x06, VARINT_MAX, 0]));
    only(&integers(&[0x0e, 0, VARINT_MAX, 0]));
    only(&integers(&[0x12, MAX_STREAMS]));
    only(&cid(20));
}

#[test]
fn ack_ranges_of_the_rfc() {
    // Received: 9, 8, 5, 4, 3, 0.
    let bytes = integers(&[0x03, 9, 100, 2, 1, 1, 2, 1, 0, 7, 8, 9]);
    let Frame::Ack(ack) = only(&bytes) else { panic!("not an ACK") };
    assert_eq!((ack.largest, ack.delay), (9, 100));
    assert_eq!(ack.ecn, Some(EcnCounts { ect0: 7, ect1: 8, ce: 9 }));
    assert_eq!(ack.ranges().collect::<Vec<_>>(), [8..10, 3..6, 0..1]);
    let received: RangeSet = ack.ranges().collect();
    let mut out = Vec::new();
    encode_ack(received.iter().rev(), 100, ack.ecn.as_ref(), 1200, &mut out).unwrap();
    assert_eq!(out, bytes);
}

/// Encodes a set of ranges into at most that many bytes.
type EncodeWithin<'a> = &'a dyn Fn(&RangeSet, usize, &mut Vec<u8>) -> Option<usize>;

/// More ranges than a one-byte count can express, with every possible room.
#[test]
fn acks_fill_their_room() {
    let set: RangeSet = (0..150).map(|i| i * 1000..i * 1000 + 1 + i).collect();
    // The frame grows with the number of ranges, so the room determines how many fit.
    let check = |encode: EncodeWithin<'_>, smaller: &dyn Fn(usize) -> RangeSet| {
        let sizes: Vec<usize> = (1..=set.len())
            .map(|n| encode(&smaller(n), usize::MAX, &mut Vec::new()).unwrap())
            .collect();
        for room in 0..=sizes[sizes.len() - 1] {
            let mut out = Vec::new();
            let fitting = sizes.iter().rposition(|&size| size <= room);
            let size = encode(&set, room, &mut out);
            assert_eq!(size, fitting.map(|at| sizes[at]), "in {room} bytes");
            assert_eq!(size.unwrap_or(0), out.len());
            if size.is_some() {
                only(&out);
            }
        }
    };
    check(&|set, room, out| encode_ack(set.iter().rev(), 25, None, room, out), &|n| {
        set.iter().rev().take(n).collect()
    });
    // The lower bound covers the first range, so that the smallest frame has none.
    check(&|set, room, out| encode_symbol_ack(0, 0, set, room, out), &|n| {
        set.iter().take(n).collect()
    });
}

#[test]
fn ack_of_nothing_is_not_encoded() {
    let mut out = Vec::new();
    assert_eq!(encode_ack(RangeSet::default().iter().rev(), 0, None, 1200, &mut out), None);
    assert!(out.is_empty());
}

#[test]
fn reliable_size_is_no_more_than_the_final_size() {
    let frame = |reliable| integers(&[0x24, 2, 5, 10, reliable]);
    only(&frame(10));
    assert_eq!(error(&frame(11), Carrier::OneRtt).code, TransportErrorCode::FRAME_ENCODING_ERROR);
}

#[test]
fn protectable_frames_are_stream_and_datagram() {
    let kinds: Vec<_> = FrameKind::ALL.iter().filter(|k| k.info().protectable()).collect();
    assert_eq!(kinds, [&FrameKind::Stream, &FrameKind::Datagram]);
}
