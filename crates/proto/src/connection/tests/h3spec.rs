//! The error cases of h3spec 0.1.14 for QUIC servers, played by a hostile client that uses TLS 1.3.
//! They have h3spec's names, so that its reports can be compared with this table. The cases for HTTP/3
//! servers are in `tests/h3spec.rs` of `sutura-h3`.

use super::hostile::{CLIENT_HELLO, FINISHED, Lies, extension, pair};
use super::pair::{Forgery, Pair};
use crate::wire::coding::put_varint;
use crate::wire::frame::{Carrier, FrameIter};
use crate::wire_format::{Frame, StreamFrame};
use crate::{ConnectionError, Dir, Side, SpaceId, StreamId, TransportErrorCode as Code};
use std::time::Duration;

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

/// A name of h3spec, the sections of the RFCs, the code with which the server closes, and the action of the
/// client.
type Case = (&'static str, &'static str, Code, Attack);

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

fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut payload = Vec::new();
    frame.encode(&mut payload);
    payload
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
                let mut pair = pair(Lies::default());
                pair.handshake();
                let forgery = Forgery { bits, ..Forgery::default() };
                let datagram = pair.forge(Side::Client, SpaceId::Data, &payload, forgery);
                pair.receive(Side::Server, datagram);
                pair
            }
        };
        pair.run_for(Duration::from_secs(1));
        match pair.loss(Side::Client)? {
            ConnectionError::ClosedByPeer(error) => Some(error.code),
            other => panic!("{other}"),
        }
    }
}

/// Sends a Handshake packet before the Finished arrives.
fn in_handshake(payload: &[u8], bits: u8) -> Pair {
    let mut pair = pair(Lies::default());
    let mut n = 0;
    pair.filter = Box::new(move |from, _| {
        n += usize::from(from == Side::Client);
        from == Side::Server || n == 1
    });
    while pair.client.conn().spaces[SpaceId::Data as usize].keys.is_none() {
        assert!(pair.step(pair.now + Duration::from_secs(1)));
    }
    let forgery = Forgery { bits, ..Forgery::default() };
    let datagram = pair.forge(Side::Client, SpaceId::Handshake, payload, forgery);
    pair.receive(Side::Server, datagram);
    pair
}

fn play(cases: Vec<Case>, count: usize) {
    assert_eq!(cases.len(), count);
    let mut wrong = Vec::new();
    for (name, section, code, attack) in cases {
        let verdict = attack.verdict();
        if verdict != Some(code) {
            wrong.push(format!("{name} [{section}]: {verdict:?} instead of {code}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn transport_parameters() {
    let code = Code::TRANSPORT_PARAMETER_ERROR;
    let without_source =
        Lies { parameter: Some((id::INITIAL_SOURCE_CONNECTION_ID, None)), ..Lies::default() };
    let mut address = [1; 4 + 2 + 16 + 2 + 1 + 8 + 16];
    address[24] = 8;
    let parameters: [(_, _, Attack); 11] = [
        ("initial_source_connection_id is missing", "Transport 7.3", Attack::Lie(without_source)),
        (
            "original_destination_connection_id is received",
            "Transport 18.2",
            parameter(id::ORIGINAL_DESTINATION_CONNECTION_ID, b"DUMMY"),
        ),
        (
            "preferred_address, is received",
            "Transport 18.2",
            parameter(id::PREFERRED_ADDRESS, &address),
        ),
        (
            "retry_source_connection_id is received",
            "Transport 18.2",
            parameter(id::RETRY_SOURCE_CONNECTION_ID, b"DUMMY"),
        ),
        (
            "stateless_reset_token is received",
            "Transport 18.2",
            parameter(id::STATELESS_RESET_TOKEN, &[1; 16]),
        ),
        (
            "max_udp_payload_size < 1200",
            "Transport 7.4 and 18.2",
            number(id::MAX_UDP_PAYLOAD_SIZE, 1090),
        ),
        ("ack_delay_exponen > 20", "Transport 7.4 and 18.2", number(id::ACK_DELAY_EXPONENT, 30)),
        ("max_ack_delay >= 2^14", "Transport 7.4 and 18.2", number(id::MAX_ACK_DELAY, 1 << 15)),
        ("a value is malformed", "Transport 7.4", parameter(id::INITIAL_MAX_DATA, &[0x80, 0])),
        (
            "initial_max_streams_bidi > 2^60",
            "Transport 4.6",
            number(id::INITIAL_MAX_STREAMS_BIDI, (1 << 60) + 1),
        ),
        (
            "initial_max_streams_uni > 2^60",
            "Transport 4.6",
            number(id::INITIAL_MAX_STREAMS_UNI, (1 << 60) + 1),
        ),
    ];
    play(parameters.into_iter().map(|(name, rfc, attack)| (name, rfc, code, attack)).collect(), 11);
}

#[test]
fn packets_and_handshake() {
    let ping = || encoded(&Frame::Ping);
    let blocked = Frame::StreamDataBlocked { id: StreamId(0), limit: 0 };
    let crypto = Frame::Crypto { offset: 1 << 20, data: b"x" };
    play(
        vec![
            ("no frames", "Transport 12.4", Code::PROTOCOL_VIOLATION, Attack::OneRtt(vec![], 0)),
            (
                "reserved bits in Handshake are non-zero",
                "Transport 17.2",
                Code::PROTOCOL_VIOLATION,
                Attack::Handshake(ping(), 0x08),
            ),
            (
                "PATH_CHALLENGE in Handshake is received",
                "Transport 17.2.4",
                Code::PROTOCOL_VIOLATION,
                Attack::Handshake(encoded(&Frame::PathChallenge(*b"01234567")), 0),
            ),
            (
                "STREAM_DATA_BLOCKED in Handshake is received",
                "Transport 17.2.4",
                Code::PROTOCOL_VIOLATION,
                Attack::Handshake(encoded(&blocked), 0),
            ),
            (
                "DATA_BLOCKED in Handshake is received",
                "Transport 17.2.4",
                Code::PROTOCOL_VIOLATION,
                Attack::Handshake(encoded(&Frame::DataBlocked(0)), 0),
            ),
            (
                "reserved bits in Short are non-zero",
                "Transport 17.2",
                Code::PROTOCOL_VIOLATION,
                Attack::OneRtt(ping(), 0x08),
            ),
            (
                "CRYPTO data is buffered beyond the limit",
                "Transport 7.5",
                Code::CRYPTO_BUFFER_EXCEEDED,
                frame(&crypto),
            ),
        ],
        7,
    );
}

#[test]
fn tls() {
    let protocol = Lies { protocol: Some(b"dummy"), ..Lies::default() };
    play(
        vec![
            (
                "KeyUpdate in Handshake is received",
                "TLS 6",
                UNEXPECTED_MESSAGE,
                messages(|flight| {
                    if flight[0] == FINISHED {
                        flight.extend_from_slice(&KEY_UPDATE);
                    }
                }),
            ),
            (
                "KeyUpdate in 1-RTT is received",
                "TLS 6",
                UNEXPECTED_MESSAGE,
                frame(&Frame::Crypto { offset: 0, data: &KEY_UPDATE }),
            ),
            (
                "no application protocols are supported",
                "TLS 8.1",
                NO_APPLICATION_PROTOCOL,
                Attack::Lie(protocol),
            ),
            (
                "the quic_transport_parameters extension does not included",
                "TLS 8.2",
                MISSING_EXTENSION,
                messages(without_transport_parameters),
            ),
            (
                "the quic_transport_parameters extension does not included (another type)",
                "TLS 8.2",
                MISSING_EXTENSION,
                messages(|flight| {
                    if flight[0] == CLIENT_HELLO {
                        let (_, range) = extension(flight, TRANSPORT_PARAMETERS);
                        flight[range.start..range.start + 2].copy_from_slice(&[0xff, 0xa5]);
                    }
                }),
            ),
            (
                "EndOfEarlyData is received",
                "TLS 8.3",
                UNEXPECTED_MESSAGE,
                messages(|flight| {
                    if flight[0] == FINISHED {
                        flight.splice(..0, END_OF_EARLY_DATA);
                    }
                }),
            ),
        ],
        6,
    );
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
    use Code as C;
    let stop = Frame::StopSending { id: StreamId(101), code: 0 };
    let reset = Frame::ResetStream { id: StreamId(3), code: 0, final_size: 0 };
    let of_server = StreamId::new(Side::Server, Dir::Bi, 0).0;
    play(
        vec![
            (
                "a STREAM frame with a large offset is received",
                "Transport 4.1",
                C::FLOW_CONTROL_ERROR,
                stream(0, 100_000_000),
            ),
            (
                "a stream ID exceeding the limit",
                "Transport 4.6",
                C::STREAM_LIMIT_ERROR,
                stream(1_000_000_000, 0),
            ),
            (
                "RESET_STREAM is received for a send-only stream",
                "Transport 19.4",
                C::STREAM_STATE_ERROR,
                frame(&reset),
            ),
            (
                "STOP_SENDING is received for a non-existing stream",
                "Transport 19.5",
                C::STREAM_STATE_ERROR,
                frame(&stop),
            ),
            (
                "it receives a STREAM frame for a locally-initiated stream that has not yet been \
                 created",
                "Transport 19.8",
                C::STREAM_STATE_ERROR,
                stream(of_server, 0),
            ),
            (
                "it receives a STREAM frame for a send-only stream",
                "Transport 19.8",
                C::STREAM_STATE_ERROR,
                stream(3, 0),
            ),
        ],
        6,
    );
}

#[test]
fn limits_of_streams() {
    use Code as C;
    let allow = |id| frame(&Frame::MaxStreamData { id: StreamId(id), max: 1_000_000 });
    let too_many = (1 << 60) + 1;
    play(
        vec![
            (
                "MAX_STREAM_DATA is received for a stream that has not yet been created",
                "Transport 19.10",
                C::STREAM_STATE_ERROR,
                allow(101),
            ),
            (
                "MAX_STREAM_DATA is received for a receive-only stream",
                "Transport 19.10",
                C::STREAM_STATE_ERROR,
                allow(2),
            ),
            (
                "invalid MAX_STREAMS is received",
                "Transport 19.11",
                C::FRAME_ENCODING_ERROR,
                raw(0x12, &[too_many], &[]),
            ),
            (
                "invalid STREAMS_BLOCKED is received",
                "Transport 19.14",
                C::FRAME_ENCODING_ERROR,
                raw(0x16, &[too_many], &[]),
            ),
        ],
        4,
    );
}

#[test]
fn other_frames() {
    use Code as C;
    let done = frame(&Frame::HandshakeDone);
    let token = frame(&Frame::NewToken(b"DUMMY"));
    play(
        vec![
            (
                "a frame of unknown type is received",
                "Transport 12.4",
                C::FRAME_ENCODING_ERROR,
                raw(0x20, &[], &[0; 3]),
            ),
            ("NEW_TOKEN is received", "Transport 19.7", C::PROTOCOL_VIOLATION, token),
            (
                "NEW_CONNECTION_ID with invalid Retire_Prior_To is received",
                "Transport 19.15",
                C::FRAME_ENCODING_ERROR,
                raw(0x18, &[4, 14, 8], &[5; 8 + 16]),
            ),
            (
                "NEW_CONNECTION_ID with 0-byte CID is received",
                "Transport 19.15",
                C::FRAME_ENCODING_ERROR,
                raw(0x18, &[4, 0, 0], &[5; 16]),
            ),
            ("HANDSHAKE_DONE is received", "Transport 19.20", C::PROTOCOL_VIOLATION, done),
            (
                "an ACK range is below zero",
                "Transport 19.3.1",
                C::FRAME_ENCODING_ERROR,
                raw(0x02, &[0, 0, 0, 1], &[]),
            ),
            (
                "an ACK of a packet never sent is received",
                "Transport 13.1",
                C::PROTOCOL_VIOLATION,
                raw(0x02, &[1_000_000, 0, 0, 0], &[]),
            ),
            (
                "a RETIRE_CONNECTION_ID never issued is received",
                "Transport 19.16",
                C::PROTOCOL_VIOLATION,
                frame(&Frame::RetireConnectionId(1_000_000)),
            ),
        ],
        8,
    );
}
