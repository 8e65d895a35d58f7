//! The error cases of h3spec 0.1.14 for QUIC servers, played by a hostile client that uses TLS 1.3.
//! They have h3spec's names, so that its reports can be compared with this table. The cases for HTTP/3
//! servers are in `tests/h3spec.rs` of `sutura-h3`.

use super::hostile::{CLIENT_HELLO, FINISHED, Lies, extension, pair};
use super::*;
use crate::TransportErrorCode as Code;

/// TLS alerts (RFC 8446 section 6).
const UNEXPECTED_MESSAGE: Code = Code::crypto(10);
const MISSING_EXTENSION: Code = Code::crypto(109);
const NO_APPLICATION_PROTOCOL: Code = Code::crypto(120);

/// Identifiers of transport parameters (RFC 9000 section 18.2).
mod id {
    pub(super) const ORIGINAL_DESTINATION_CONNECTION_ID: u64 = 0x00;
    pub(super) const STATELESS_RESET_TOKEN: u64 = 0x02;
    pub(super) const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
    pub(super) const INITIAL_MAX_DATA: u64 = 0x04;
    pub(super) const INITIAL_MAX_STREAMS_BIDI: u64 = 0x08;
    pub(super) const INITIAL_MAX_STREAMS_UNI: u64 = 0x09;
    pub(super) const ACK_DELAY_EXPONENT: u64 = 0x0a;
    pub(super) const MAX_ACK_DELAY: u64 = 0x0b;
    pub(super) const PREFERRED_ADDRESS: u64 = 0x0d;
    pub(super) const INITIAL_SOURCE_CONNECTION_ID: u64 = 0x0f;
    pub(super) const RETRY_SOURCE_CONNECTION_ID: u64 = 0x10;
}

/// The type of the TLS extension with the transport parameters (RFC 9001 section 8.2).
const TRANSPORT_PARAMETERS: u16 = 0x39;

/// A TLS KeyUpdate and an EndOfEarlyData, which QUIC forbids (RFC 9001 sections 6 and 8.3).
const KEY_UPDATE: [u8; 5] = [24, 0, 0, 1, 1];
const END_OF_EARLY_DATA: [u8; 4] = [5, 0, 0, 0];

/// A name of h3spec, the sections of the RFCs (of RFC 9001 if it says so, otherwise of RFC 9000), and the action
/// of the client.
type Case = (&'static str, &'static str, Attack);

/// An action of the client.
enum Attack {
    /// Lies during the handshake.
    Lie(Lies),
    /// Sends a Handshake packet with this payload, and these bits set in its first byte.
    Handshake(Vec<u8>, u8),
    /// Sends a 1-RTT packet with this payload, and these bits set in its first byte.
    OneRtt(Vec<u8>, u8),
}

/// Sends a 1-RTT packet with this frame.
fn frame(frame: &Frame<'_>) -> Attack {
    Attack::OneRtt(encoded(frame), 0)
}

/// Sends a 1-RTT packet with a frame of this type and these integers, and then these bytes.
fn raw(ty: u8, integers: &[u64], rest: &[u8]) -> Attack {
    let mut payload = vec![ty];
    integers.iter().for_each(|integer| put_varint(&mut payload, *integer));
    payload.extend_from_slice(rest);
    Attack::OneRtt(payload, 0)
}

fn stream(id: u64, offset: u64) -> Attack {
    frame(&Frame::Stream(StreamFrame { id: StreamId(id), offset, fin: false, data: b"GET /" }))
}

fn parameter(id: u64, value: &[u8]) -> Attack {
    Attack::Lie(Lies { parameter: Some((id, Some(value.to_vec()))), ..Lies::default() })
}

fn number(id: u64, number: u64) -> Attack {
    let mut value = Vec::new();
    put_varint(&mut value, number);
    parameter(id, &value)
}

fn messages(messages: fn(&mut Vec<u8>)) -> Attack {
    Attack::Lie(Lies { messages: Some(messages), ..Lies::default() })
}

impl Attack {
    /// The code with which the server closes the connection, as the client hears it.
    fn verdict(self) -> Option<Code> {
        let mut pair = match self {
            Self::Lie(lies) => pair(lies),
            Self::Handshake(payload, bits) => in_handshake(&payload, bits),
            Self::OneRtt(payload, bits) => {
                let mut pair = pair(Lies::default()).ready();
                let forgery = Forgery { bits, ..Forgery::default() };
                pair.inject_packet(Side::Client, SpaceId::Data, &payload, forgery);
                pair
            }
        };
        pair.run_for(SECOND);
        pair.refusal(Side::Client).map(|error| error.code)
    }
}

/// Sends a Handshake packet before the Finished arrives.
fn in_handshake(payload: &[u8], bits: u8) -> Pair {
    let mut pair = pair(Lies::default());
    pair.lose(Side::Client, |n| n != 1);
    pair.run_until(|pair| pair.client.space().keys.is_some());
    let forgery = Forgery { bits, ..Forgery::default() };
    pair.inject_packet(Side::Client, SpaceId::Handshake, payload, forgery);
    pair
}

/// Plays cases in which the server closes with this code.
fn play<const N: usize>(code: Code, cases: [Case; N]) {
    let mut wrong = Vec::new();
    for (name, section, attack) in cases {
        let verdict = attack.verdict();
        if verdict != Some(code) {
            wrong.push(format!("{name} [{section}]: {verdict:?} instead of {code}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn transport_parameters() {
    let without_source =
        Lies { parameter: Some((id::INITIAL_SOURCE_CONNECTION_ID, None)), ..Lies::default() };
    let original = parameter(id::ORIGINAL_DESTINATION_CONNECTION_ID, b"DUMMY");
    let retry = parameter(id::RETRY_SOURCE_CONNECTION_ID, b"DUMMY");
    let reset_token = parameter(id::STATELESS_RESET_TOKEN, &[1; 16]);
    let mut address = [1; 4 + 2 + 16 + 2 + 1 + 8 + 16];
    address[24] = 8;
    let address = parameter(id::PREFERRED_ADDRESS, &address);
    let small = number(id::MAX_UDP_PAYLOAD_SIZE, 1090);
    let bidi = number(id::INITIAL_MAX_STREAMS_BIDI, (1 << 60) + 1);
    let uni = number(id::INITIAL_MAX_STREAMS_UNI, (1 << 60) + 1);
    let cases = [
        ("initial_source_connection_id is missing", "7.3", Attack::Lie(without_source)),
        ("original_destination_connection_id is received", "18.2", original),
        ("preferred_address, is received", "18.2", address),
        ("retry_source_connection_id is received", "18.2", retry),
        ("stateless_reset_token is received", "18.2", reset_token),
        ("max_udp_payload_size < 1200", "7.4 and 18.2", small),
        ("ack_delay_exponen > 20", "7.4 and 18.2", number(id::ACK_DELAY_EXPONENT, 30)),
        ("max_ack_delay >= 2^14", "7.4 and 18.2", number(id::MAX_ACK_DELAY, 1 << 15)),
        ("a value is malformed", "7.4", parameter(id::INITIAL_MAX_DATA, &[0x80, 0])),
        ("initial_max_streams_bidi > 2^60", "4.6", bidi),
        ("initial_max_streams_uni > 2^60", "4.6", uni),
    ];
    play(Code::TRANSPORT_PARAMETER_ERROR, cases);
}

#[test]
fn packets_and_handshake() {
    let ping = || encoded(&Frame::Ping);
    let handshake = |frame: Frame<'_>| Attack::Handshake(encoded(&frame), 0);
    let challenge = Frame::PathChallenge(*b"01234567");
    let blocked = Frame::StreamDataBlocked { id: StreamId(0), limit: 0 };
    let cases = [
        ("no frames", "12.4", Attack::OneRtt(vec![], 0)),
        ("reserved bits in Handshake are non-zero", "17.2", Attack::Handshake(ping(), 0x08)),
        ("PATH_CHALLENGE in Handshake is received", "17.2.4", handshake(challenge)),
        ("STREAM_DATA_BLOCKED in Handshake is received", "17.2.4", handshake(blocked)),
        ("DATA_BLOCKED in Handshake is received", "17.2.4", handshake(Frame::DataBlocked(0))),
        ("reserved bits in Short are non-zero", "17.2", Attack::OneRtt(ping(), 0x08)),
    ];
    play(Code::PROTOCOL_VIOLATION, cases);
    let crypto = frame(&Frame::Crypto { offset: 1 << 20, data: b"x" });
    let case = ("CRYPTO data is buffered beyond the limit", "7.5", crypto);
    play(Code::CRYPTO_BUFFER_EXCEEDED, [case]);
}

#[test]
fn tls() {
    let early = messages(|flight| {
        if flight[0] == FINISHED {
            flight.extend_from_slice(&KEY_UPDATE);
        }
    });
    let late = frame(&Frame::Crypto { offset: 0, data: &KEY_UPDATE });
    let end_of_early_data = messages(|flight| {
        if flight[0] == FINISHED {
            flight.splice(..0, END_OF_EARLY_DATA);
        }
    });
    let cases = [
        ("KeyUpdate in Handshake is received", "RFC 9001 6", early),
        ("KeyUpdate in 1-RTT is received", "RFC 9001 6", late),
        ("EndOfEarlyData is received", "RFC 9001 8.3", end_of_early_data),
    ];
    play(UNEXPECTED_MESSAGE, cases);
    let protocol = Attack::Lie(Lies { protocol: Some(b"dummy"), ..Lies::default() });
    let case = ("no application protocols are supported", "RFC 9001 8.1", protocol);
    play(NO_APPLICATION_PROTOCOL, [case]);
    let absent = messages(without_transport_parameters);
    let another_type = messages(|flight| {
        if flight[0] == CLIENT_HELLO {
            let (_, range) = extension(flight, TRANSPORT_PARAMETERS);
            flight[range.start..range.start + 2].copy_from_slice(&[0xff, 0xa5]);
        }
    });
    let name = "the quic_transport_parameters extension does not included";
    play(MISSING_EXTENSION, [(name, "RFC 9001 8.2", absent), (name, "another type", another_type)]);
}

/// Takes the extension with the transport parameters out of a ClientHello.
fn without_transport_parameters(flight: &mut Vec<u8>) {
    if flight[0] != CLIENT_HELLO {
        return;
    }
    let (lengths, range) = extension(flight, TRANSPORT_PARAMETERS);
    let gone = range.len();
    let message = u32::from_be_bytes([0, flight[1], flight[2], flight[3]]) - gone as u32;
    let extensions = u16::from_be_bytes([flight[lengths], flight[lengths + 1]]) - gone as u16;
    flight[1..4].copy_from_slice(&message.to_be_bytes()[1..]);
    flight[lengths..lengths + 2].copy_from_slice(&extensions.to_be_bytes());
    flight.drain(range);
}

/// "PROTOCOL_VIOLATION if CRYPTO in 0-RTT is received" (TLS 8.3).
#[test]
fn crypto_in_0rtt() {
    let crypto = encoded(&Frame::Crypto { offset: 0, data: &[8, 0, 0, 2, 0, 0] });
    let error = FrameIter::new(&crypto, Carrier::ZeroRtt).next().unwrap().unwrap_err();
    assert_eq!(error.code, Code::PROTOCOL_VIOLATION);
}

#[test]
fn streams() {
    let stop = frame(&Frame::StopSending { id: StreamId(101), code: 0 });
    let reset = frame(&Frame::ResetStream { id: StreamId(3), code: 0, final_size: 0 });
    let local = stream(StreamId::new(Side::Server, Dir::Bi, 0).0, 0);
    let uncreated = "it receives a STREAM frame for a locally-initiated stream that has not yet been \
                     created";
    let cases = [
        ("RESET_STREAM is received for a send-only stream", "19.4", reset),
        ("STOP_SENDING is received for a non-existing stream", "19.5", stop),
        (uncreated, "19.8", local),
        ("it receives a STREAM frame for a send-only stream", "19.8", stream(3, 0)),
    ];
    play(Code::STREAM_STATE_ERROR, cases);
    let far = stream(0, 100_000_000);
    let case = ("a STREAM frame with a large offset is received", "4.1", far);
    play(Code::FLOW_CONTROL_ERROR, [case]);
    let case = ("a stream ID exceeding the limit", "4.6", stream(1_000_000_000, 0));
    play(Code::STREAM_LIMIT_ERROR, [case]);
}

#[test]
fn limits_of_streams() {
    let allow = |id| frame(&Frame::MaxStreamData { id: StreamId(id), max: 1_000_000 });
    let uncreated = "MAX_STREAM_DATA is received for a stream that has not yet been created";
    let receive_only = "MAX_STREAM_DATA is received for a receive-only stream";
    let cases = [(uncreated, "19.10", allow(101)), (receive_only, "19.10", allow(2))];
    play(Code::STREAM_STATE_ERROR, cases);
    let too_many = (1 << 60) + 1;
    let cases = [
        ("invalid MAX_STREAMS is received", "19.11", raw(0x12, &[too_many], &[])),
        ("invalid STREAMS_BLOCKED is received", "19.14", raw(0x16, &[too_many], &[])),
    ];
    play(Code::FRAME_ENCODING_ERROR, cases);
}

#[test]
fn other_frames() {
    let new_id = |retire_prior_to, len, rest: &[u8]| raw(0x18, &[4, retire_prior_to, len], rest);
    let retired = "NEW_CONNECTION_ID with invalid Retire_Prior_To is received";
    let empty = "NEW_CONNECTION_ID with 0-byte CID is received";
    let cases = [
        ("a frame of unknown type is received", "12.4", raw(0x20, &[], &[0; 3])),
        (retired, "19.15", new_id(14, 8, &[5; 8 + 16])),
        (empty, "19.15", new_id(0, 0, &[5; 16])),
        ("an ACK range is below zero", "19.3.1", raw(0x02, &[0, 0, 0, 1], &[])),
    ];
    play(Code::FRAME_ENCODING_ERROR, cases);
    let never_issued = frame(&Frame::RetireConnectionId(1_000_000));
    let never_sent = raw(0x02, &[1_000_000, 0, 0, 0], &[]);
    let cases = [
        ("NEW_TOKEN is received", "19.7", frame(&Frame::NewToken(b"DUMMY"))),
        ("HANDSHAKE_DONE is received", "19.20", frame(&Frame::HandshakeDone)),
        ("an ACK of a packet never sent is received", "13.1", never_sent),
        ("a RETIRE_CONNECTION_ID never issued is received", "19.16", never_issued),
    ];
    play(Code::PROTOCOL_VIOLATION, cases);
}
