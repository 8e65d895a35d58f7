//! How much work each type of frame makes, in steps, for any state that the connection holds: over few and
//! many streams, sessions, pending equations and messages.

use super::*;
use crate::config::AckFrequencyConfig;
use crate::fec::{FecConfig, MAX_SEND_SESSIONS};
use crate::policy::{Code, FixedRate, ReedSolomon, SlidingWindow};
use crate::recovery::token::StreamToken;
use crate::wire::code_id::CodeSet;
use crate::wire_format::{AckFrequency, FrameKind, SymbolWindow};
use sutura_erasure::{Encoder, WindowLimits};

/// Bytes of frames in a packet.
const ROOM: usize = 1150;
/// Packets of each kind.
const PACKETS: u64 = 5;
/// Bytes of an IPv4 and a UDP header.
const HEADERS: u64 = 28;
/// The most steps for each byte.
const MAX_STEPS_PER_BYTE: u64 = 12;
/// How many more steps a thousand bytes may make with an unbounded amount of held state: the number of
/// acknowledgements differs.
const SLACK: u64 = 20;
/// How many more steps are allowed with the most sessions. A packet that is answered looks at each of them.
const SESSIONS_SLACK: u64 = 400;
/// How many more steps are allowed with as many pending equations as a decoder keeps.
const EQUATIONS_SLACK: u64 = 5000;
/// Datagrams that are not known to be lost.
const LAST: u64 = 8;
/// Source symbols that a repair symbol is about.
const SPAN: u64 = 200;

/// Makes the payload of packet `n`.
type Payloads = Box<dyn FnMut(u64) -> Vec<u8>>;

/// The state that a server's connection holds.
#[derive(Debug, Clone, Copy)]
enum Held {
    /// Protected streams in one session, and the same number of the peer's.
    Streams(u64),
    /// Sessions with a stream each.
    Sessions(u16),
    /// Messages on their way, in one session.
    Messages(u64),
    /// Repair symbols that recover nothing.
    Equations(u64),
    /// Lost source symbols of datagrams that wait for repair symbols.
    Lost(u64),
    /// Lost frames that wait for their time.
    Frames(u64),
}

fn tail() -> Protection {
    Protection::tail(1, Duration::ZERO)
}

fn uni(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Uni, index)
}

fn bidi(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, index)
}

fn config(max_sessions: u16) -> TransportConfig {
    let fec = Some(FecConfig {
        max_sessions,
        max_window_symbols: 1024,
        codes: CodeSet::all(),
        ..FecConfig::default()
    });
    TransportConfig {
        fec,
        congestion: Arc::new(FixedRate::new(1 << 30).unwrap()),
        ack_frequency: Some(AckFrequencyConfig::default()),
        max_concurrent_uni_streams: 4000,
        max_concurrent_bidi_streams: 4000,
        ..TransportConfig::default()
    }
}

/// The server opens streams that stay open, and protects them.
fn open(pair: &mut Pair, count: u64) {
    for _ in 0..count {
        let id = pair.open(Side::Server, Some(tail()));
        pair.write(Side::Server, id, 3);
    }
    pair.run_for(10 * SECOND);
}

/// A symbol that holds an empty datagram.
const SYMBOL: &[u8] = &[0x31, 0];

fn repair(code: &dyn Code, encoder: &Encoder, key: u32, out: &mut Vec<u8>) {
    let header = RepairHeader::new(0, code.id(), &(0..SPAN), key);
    let mut payload = Vec::new();
    code.encode(encoder, 0..SPAN, key, &mut payload).unwrap();
    Frame::Repair(Repair { header, payload: &payload }).encode(out);
}

fn encoder() -> Encoder {
    let mut encoder = Encoder::new(WindowLimits::default());
    for _ in 0..SPAN {
        encoder.push(SYMBOL).unwrap();
    }
    encoder
}

fn holding(held: Held) -> Pair {
    // Datagrams have a session of their own.
    let sessions = match held {
        Held::Sessions(count) => count,
        Held::Lost(_) => 2,
        Held::Streams(_) | Held::Messages(_) | Held::Equations(_) | Held::Frames(_) => 1,
    };
    let mut pair = Pair::with(config(sessions), config(16)).ready();
    match held {
        Held::Streams(count) => {
            open(&mut pair, count);
            assert_eq!(pair.server.conn().streams.session_members() as u64, count);
            let id = uni(2 * count - 1);
            pair.inject(Side::Client, &[Frame::StreamDataBlocked { id, limit: 0 }]);
        }
        Held::Sessions(count) => open(&mut pair, count.into()),
        Held::Messages(count) => {
            open(&mut pair, 1);
            for _ in 0..count {
                let message = Bytes::from_static(b"message");
                pair.server.conn().send_message(message, MessageOptions::default()).unwrap();
            }
            pair.flush(Side::Server);
        }
        Held::Equations(count) => {
            open(&mut pair, 1);
            for key in 0..count {
                let mut payload = Vec::new();
                repair(&SlidingWindow, &encoder(), key as u32, &mut payload);
                receive(&mut pair, Side::Server, &payload);
            }
        }
        Held::Lost(count) => lose_datagrams(&mut pair, count),
        Held::Frames(count) => hold_frames(&mut pair, count),
    }
    // The steps for the first frame of each stream are not of interest.
    for id in [uni(0), uni(1), bidi(0)] {
        pair.inject(Side::Client, &[stream(id, 0, b"x")]);
    }
    pair
}

/// The server sends protected datagrams that are all lost, and will send a repair symbol much later.
fn lose_datagrams(pair: &mut Pair, count: u64) {
    open(pair, 1);
    let late = Protection::tail(1, 10 * SECOND);
    pair.server.conn().datagrams().protect(Some(late));
    // The datagrams do not arrive, but their newest packet is acknowledged all the same.
    pair.mute(Side::Server);
    for _ in 0..count + LAST {
        pair.server.conn().datagrams().send(Bytes::from_static(&[7; 300])).unwrap();
        pair.flush(Side::Server);
        pair.now += Duration::from_micros(10);
    }
    let sent = pair.server.conn().path.recovery.sent(SpaceId::Data).map(|packet| packet.pn).max();
    let mut payload = Vec::new();
    encode_ack(sent.into_iter().map(|pn| pn..pn + 1), 0, None, ROOM, &mut payload).unwrap();
    receive(pair, Side::Server, &payload);
    let held = pair.server.conn().egress.held_symbols() as u64;
    assert!(held >= count, "{held} of {count}");
}

/// A loss reaction holds frames of a stream back that were lost.
fn hold_frames(pair: &mut Pair, count: u64) {
    open(pair, 1);
    pair.mute(Side::Server);
    let id = pair.open(Side::Server, None);
    pair.write(Side::Server, id, 10 * count as usize);
    pair.flush(Side::Server);
    let until = pair.now + 100 * SECOND;
    for n in 0..count {
        let frame = StreamToken { id, offset: 10 * n, len: 10, fin: false, symbol: None };
        pair.server.conn().egress.hold(until, frame);
    }
}

fn stream(id: StreamId, offset: u64, data: &[u8]) -> Frame<'_> {
    Frame::Stream(StreamFrame { id, offset, fin: false, data })
}

/// Lets one side receive a packet, answer it and do its due work; returns bytes and steps.
fn receive(pair: &mut Pair, side: Side, payload: &[u8]) -> (u64, u64) {
    let datagram = pair.forge(side.peer(), SpaceId::Data, payload, Forgery::default());
    let bytes = datagram.len() as u64 + HEADERS;
    take_steps();
    pair.receive(side, datagram);
    pair.flush(side);
    let steps = take_steps();
    assert_eq!(pair.loss(side), None);
    (bytes, steps)
}

/// Packets full of such frames.
fn full(mut frame: impl FnMut(u64) -> Frame<'static> + 'static) -> Option<Payloads> {
    let mut n = 0;
    Some(Box::new(move |_| {
        let mut payload = Vec::new();
        while payload.len() < ROOM {
            frame(n).encode(&mut payload);
            n += 1;
        }
        payload
    }))
}

fn copies(bytes: &'static [u8]) -> Option<Payloads> {
    Some(Box::new(move |_| bytes.iter().copied().cycle().take(bytes.len() * 200).collect()))
}

/// Repair symbols, from this key on.
fn repairs(code: &'static dyn Code, key: u32) -> Option<Payloads> {
    let encoder = encoder();
    Some(Box::new(move |n| {
        let mut payload = Vec::new();
        repair(code, &encoder, key + n as u32, &mut payload);
        payload
    }))
}

/// `None` for frames that end a connection.
fn payloads(kind: FrameKind) -> Option<Payloads> {
    match kind {
        FrameKind::Padding => copies(&[0]),
        FrameKind::Ping => copies(&[1]),
        FrameKind::Ack => copies(&[2, 0, 0, 0, 0]),
        FrameKind::ResetStream => {
            full(|n| Frame::ResetStream { id: uni(2 + n % 900), code: 0, final_size: 1 })
        }
        FrameKind::StopSending => full(|n| Frame::StopSending { id: bidi(n % 1000), code: 0 }),
        FrameKind::Crypto => full(|n| Frame::Crypto { offset: 3 * (n * 37 % 100) + 2, data: b"x" }),
        FrameKind::NewToken => copies(&[7, 1, 9]),
        FrameKind::Stream => full(|n| stream(uni(1), 2 * (n * 337 % 1000) + 1, b"x")),
        FrameKind::MaxData => full(|n| Frame::MaxData(n + (1 << 40))),
        FrameKind::MaxStreamData => {
            full(|n| Frame::MaxStreamData { id: bidi(0), max: n + (1 << 40) })
        }
        FrameKind::MaxStreams => full(|n| Frame::MaxStreams { dir: Dir::Uni, max: n + 9000 }),
        FrameKind::DataBlocked => full(|_| Frame::DataBlocked(0)),
        FrameKind::StreamDataBlocked => {
            full(|n| Frame::StreamDataBlocked { id: uni(n * 337 % 500 * 2 + 1), limit: 0 })
        }
        FrameKind::StreamsBlocked => full(|_| Frame::StreamsBlocked { dir: Dir::Uni, limit: 0 }),
        FrameKind::NewConnectionId => full(|_| new_id(4, 1)),
        FrameKind::RetireConnectionId => full(|_| Frame::RetireConnectionId(1)),
        FrameKind::PathChallenge => full(|n| Frame::PathChallenge(n.to_be_bytes())),
        FrameKind::PathResponse => full(|n| Frame::PathResponse(n.to_be_bytes())),
        FrameKind::ConnectionClose | FrameKind::ApplicationClose => None,
        FrameKind::HandshakeDone => copies(&[0x1e]),
        FrameKind::ImmediateAck => copies(&[0x1f]),
        FrameKind::ResetStreamAt => full(|n| Frame::ResetStreamAt {
            id: uni(2 + n % 900),
            code: 0,
            final_size: 1,
            reliable_size: 1,
        }),
        FrameKind::Datagram => copies(&[0x31, 1, 7]),
        FrameKind::AckFrequency => full(|n| {
            Frame::AckFrequency(AckFrequency {
                sequence: n + 100,
                threshold: 2,
                max_ack_delay: 25_000,
                reordering_threshold: 1,
            })
        }),
        FrameKind::SourceSymbol => Some(Box::new(|n| {
            let mut payload = Vec::new();
            let symbol = SymbolRef { session: 0, id: n };
            Frame::SourceSymbol(SourceSymbol { symbol, frames: SYMBOL }).encode(&mut payload);
            payload
        })),
        FrameKind::Repair => repairs(&SlidingWindow, 100),
        FrameKind::RepairCoded => repairs(&ReedSolomon, 0),
        FrameKind::SymbolAck => copies(&[0x7f, 0x55, 0, 0, 0]),
        FrameKind::SymbolWindow => {
            full(|_| Frame::SymbolWindow(SymbolWindow { session: 0, lower_bound: 0 }))
        }
    }
}

/// Steps for each thousand bytes of such frames.
fn steps(pair: &mut Pair, kind: FrameKind) -> Option<u64> {
    let mut payloads = payloads(kind)?;
    let side = match kind {
        FrameKind::NewToken | FrameKind::HandshakeDone => Side::Client,
        _ => Side::Server,
    };
    let (mut bytes, mut steps) = (0, 0);
    for n in 0..PACKETS {
        let (more_bytes, more_steps) = receive(pair, side, &payloads(n));
        bytes += more_bytes;
        steps += more_steps;
    }
    Some(steps * 1000 / bytes)
}

/// For any state that the connection holds, a byte of a frame makes no more work than in a connection that
/// holds next to nothing, up to `slack` steps for each thousand bytes.
fn compare(few: Held, many: &[Held], slack: u64) {
    let mut pair = holding(few);
    let least: Vec<_> = FrameKind::ALL.iter().map(|kind| steps(&mut pair, *kind)).collect();
    let mut excessive = Vec::new();
    for held in many {
        let mut pair = holding(*held);
        for (kind, least) in FrameKind::ALL.iter().zip(&least) {
            let (Some(most), Some(least)) = (steps(&mut pair, *kind), least) else { continue };
            println!("{kind:?} over {held:?}: {most} steps for a thousand bytes, not {least}");
            let fine = most.max(*least) <= 1000 * MAX_STEPS_PER_BYTE && most <= least + slack;
            if !fine {
                excessive.push((*kind, *held, most, *least));
            }
        }
    }
    assert!(excessive.is_empty(), "{excessive:?}");
}

#[test]
fn no_frame_makes_more_work_where_there_are_many_streams() {
    compare(Held::Streams(1), &[Held::Streams(100), Held::Streams(1000)], SLACK);
}

#[test]
fn no_frame_makes_more_work_where_there_are_many_sessions() {
    compare(Held::Sessions(1), &[Held::Sessions(MAX_SEND_SESSIONS)], SESSIONS_SLACK);
}

#[test]
fn no_frame_makes_more_work_where_there_are_many_messages() {
    compare(Held::Messages(1), &[Held::Messages(100), Held::Messages(1000)], SLACK);
}

#[test]
fn no_frame_makes_more_work_where_many_equations_are_pending() {
    compare(Held::Equations(1), &[Held::Equations(64)], EQUATIONS_SLACK);
}

#[test]
fn no_frame_makes_more_work_where_many_lost_symbols_wait() {
    compare(Held::Lost(1), &[Held::Lost(100), Held::Lost(1000)], SLACK);
}

#[test]
fn no_frame_makes_more_work_where_many_lost_frames_wait() {
    compare(Held::Frames(4), &[Held::Frames(100), Held::Frames(1000)], SLACK);
}
