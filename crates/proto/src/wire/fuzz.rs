//! Entry points for fuzzing. Each decodes arbitrary bytes, encodes the result again, and panics if
//! that changes its meaning.

use super::coding::VARINT_MAX;
use super::frame::{
    Carrier, Frame, FrameIter, FrameKind, StreamHeader, encode_ack, encode_symbol_ack,
};
use super::packet::{
    Coalesced, DecodedPacket, HeaderRules, LongHeader, LongType, MAX_NUMBER_SIZE, PacketType,
    ProtectedPacket, SAMPLE_SIZE, ShortHeader, parse_invariants,
};
use super::range_set::RangeSet;
use super::transport_parameters::TransportParameters;
use crate::error::TransportErrorCode;
use crate::ids::Side;

/// Reads `data` as the payload of each packet type and as a source symbol.
pub fn frames(data: &[u8]) {
    let carriers = [
        Carrier::Initial,
        Carrier::ZeroRtt,
        Carrier::Handshake,
        Carrier::OneRtt,
        Carrier::SourceSymbol,
    ];
    for carrier in carriers {
        let mut failed = false;
        for frame in FrameIter::new(data, carrier) {
            assert!(!failed, "a frame after an error");
            match frame {
                Ok(frame) => reencode(&frame, carrier),
                Err(error) => {
                    failed = true;
                    let code = error.code;
                    assert!(
                        code == TransportErrorCode::FRAME_ENCODING_ERROR
                            || code == TransportErrorCode::PROTOCOL_VIOLATION
                    );
                }
            }
        }
    }
}

fn reencode(frame: &Frame<'_>, carrier: Carrier) {
    assert!(frame.kind().info().allowed_in(carrier));
    let mut out = Vec::new();
    frame.encode(&mut out);
    assert_eq!(out.len(), frame.size(), "{frame:?}");
    let mut again = FrameIter::new(&out, carrier);
    assert_eq!(again.next(), Some(Ok(*frame)));
    assert_eq!(again.next(), None);
    match frame {
        Frame::Ack(ack) => {
            let set: RangeSet = ack.ranges().collect();
            assert_eq!(set.max(), Some(ack.largest));
            assert!(set.iter().rev().eq(ack.ranges()));
            out.clear();
            encode_ack(set.iter().rev(), ack.delay, ack.ecn.as_ref(), usize::MAX, &mut out);
            assert_eq!(FrameIter::new(&out, carrier).next(), Some(Ok(*frame)));
        }
        Frame::SymbolAck(ack) => {
            // Encoded ranges never touch, so the set has the same ranges.
            let set: RangeSet = ack.ranges().collect();
            assert!(set.iter().eq(ack.ranges()));
            out.clear();
            encode_symbol_ack(ack.session, ack.lower_bound, &set, usize::MAX, &mut out);
            assert_eq!(FrameIter::new(&out, carrier).next(), Some(Ok(*frame)));
        }
        Frame::Stream(stream) => {
            assert!(stream.offset + stream.data.len() as u64 <= VARINT_MAX);
            let header: StreamHeader = stream.header();
            out.clear();
            header.encode(None, &mut out);
            assert_eq!(out.len(), header.size(None));
            out.extend_from_slice(stream.data);
            assert_eq!(FrameIter::new(&out, carrier).next(), Some(Ok(*frame)));
        }
        Frame::SourceSymbol(symbol) => {
            for inner in FrameIter::new(symbol.frames, Carrier::SourceSymbol).flatten() {
                assert!(matches!(inner.kind(), FrameKind::Stream | FrameKind::Datagram));
            }
        }
        _ => {}
    }
}

/// Reads `data` as a datagram of coalesced packets, with several connection identifier lengths.
pub fn packets(data: &[u8]) {
    for (local_cid_len, greased) in [(0, false), (8, true), (8, false), (20, true)] {
        let mut walk = Coalesced::new(HeaderRules { local_cid_len, greased });
        let mut end = 0;
        while let Some(packet) = walk.next(data) {
            let Ok(packet) = packet else { continue };
            assert!(packet.end() > end && packet.end() <= data.len());
            end = packet.end();
            match packet {
                DecodedPacket::Protected(packet) => rebuild(&packet, data),
                DecodedPacket::Retry(packet) => assert!(!packet.token.is_empty()),
                DecodedPacket::VersionNegotiation(packet) => {
                    assert_ne!(packet.versions(data).count(), 0);
                }
            }
        }
        if let Ok(invariants) = parse_invariants(data, local_cid_len) {
            assert!(invariants.is_long() || invariants.dcid.len() == local_cid_len);
        }
    }
}

/// The rules for packets that are encoded here.
const STRICT: HeaderRules = HeaderRules { local_cid_len: 0, greased: false };

/// Encodes a packet's header again, as if header protection had been removed already.
fn rebuild(packet: &ProtectedPacket, data: &[u8]) {
    assert!(packet.end - packet.number >= MAX_NUMBER_SIZE + SAMPLE_SIZE);
    let Ok(rest) = packet.unprotected(data) else {
        unreachable!("the packet is within the datagram")
    };
    let mut out = Vec::new();
    let (dcid, scid) = (packet.dcid, packet.scid);
    let ty = match packet.ty {
        PacketType::Initial => LongType::Initial { token: &data[packet.token.clone()] },
        PacketType::ZeroRtt => LongType::ZeroRtt,
        PacketType::Handshake => LongType::Handshake,
        PacketType::OneRtt => {
            ShortHeader { dcid, spin: rest.spin, key_phase: rest.key_phase }
                .encode(rest.number, &mut out);
            // Except for the reserved bits, there is only one encoding.
            assert_eq!(out[1..], data[rest.header.start + 1..rest.header.end]);
            return;
        }
    };
    let Some(version) = packet.version else { unreachable!("a long header has a version") };
    let layout = LongHeader { version, ty, dcid, scid }.encode(rest.number, &mut out);
    out.extend_from_slice(&data[rest.payload.clone()]);
    if layout.finish(0, &mut out).is_err() {
        assert!(packet.end - packet.number >= 1 << 14);
        return;
    }
    // Lengths may have been in longer encodings than ours, so compare the parsed packets.
    let Some(Ok(DecodedPacket::Protected(again))) = Coalesced::new(STRICT).next(&out) else {
        unreachable!("a packet that was just written")
    };
    assert_eq!((again.version, again.ty), (packet.version, packet.ty));
    assert_eq!((again.dcid, again.scid), (dcid, scid));
    assert_eq!(out[again.token.clone()], data[packet.token.clone()]);
    assert_eq!(out[again.number..again.end], data[packet.number..packet.end]);
}

/// Reads `data` as transport parameters of either end.
pub fn transport_parameters(data: &[u8]) {
    for from in [Side::Client, Side::Server] {
        match TransportParameters::decode(data, from) {
            Ok(parameters) => {
                let mut out = Vec::new();
                parameters.encode(from, &mut out);
                assert_eq!(TransportParameters::decode(&out, from), Ok(parameters));
            }
            Err(error) => assert_eq!(error.code, TransportErrorCode::TRANSPORT_PARAMETER_ERROR),
        }
    }
}
