//! The packets of a hostile peer: full of frames of one type, each as small as possible and as costly to
//! receive as possible.

use std::collections::VecDeque;
use sutura_benches::Error;
use sutura_erasure::{Encoder, WindowLimits};
use sutura_proto::fuzz::Target;
use sutura_proto::fuzz::coding::put_varint;
use sutura_proto::policy::{Code, ReedSolomon, SlidingWindow};
use sutura_proto::wire_format::{
    Frame, FrameKind, NewConnectionId, Repair, RepairHeader, SourceSymbol, StreamFrame, SymbolRef,
    SymbolWindow,
};
use sutura_proto::{ConnectionId, Dir, Protection, Side, StreamId};
use sutura_random::Rng;

/// Bytes of frames in a packet of 1200 bytes.
const ROOM: usize = 1150;
/// Source symbols that a repair symbol covers.
const SYMBOLS: u64 = 200;

/// Frames of one type.
pub struct Attack {
    pub kind: FrameKind,
    /// The special property of these frames.
    pub how: &'static str,
    /// The side that receives the frames.
    pub side: Side,
    /// Number of packets that are received before the application has its turn.
    pub batch: usize,
    /// Makes the generator of payloads for a new target.
    pub start: fn(&mut Target) -> Result<Payloads, Error>,
}

/// Makes the payload of the next packet, and says how many frames it has.
pub type Payloads = Box<dyn FnMut() -> (Vec<u8>, usize)>;

/// Packets full of the frames that `frame` writes.
fn full(mut frame: impl FnMut(&mut Vec<u8>) + 'static) -> Result<Payloads, Error> {
    Ok(Box::new(move || {
        let (mut payload, mut frames) = (Vec::with_capacity(ROOM + 100), 0);
        while payload.len() < ROOM {
            frame(&mut payload);
            frames += 1;
        }
        (payload, frames)
    }))
}

/// Packets of `count` times `frames` frames each; `write` writes the frames of the next number.
fn numbered(
    count: usize,
    frames: usize,
    mut write: impl FnMut(u64, &mut Vec<u8>) + 'static,
) -> Result<Payloads, Error> {
    let mut numbers = 0..;
    Ok(Box::new(move || {
        let mut payload = Vec::new();
        let mut written = 0;
        for number in numbers.by_ref().take(count) {
            write(number, &mut payload);
            written += frames;
        }
        (payload, written)
    }))
}

/// Packets full of copies of a frame.
fn copies(frame: &Frame<'_>) -> Result<Payloads, Error> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    full(move |out| out.extend_from_slice(&bytes))
}

/// Packets with one frame each, which must be the last frame of its packet.
fn single(mut frame: impl FnMut(&mut Vec<u8>) + 'static) -> Result<Payloads, Error> {
    Ok(Box::new(move || {
        let mut payload = Vec::new();
        frame(&mut payload);
        (payload, 1)
    }))
}

pub fn send(target: &mut Target, payload: &[u8]) -> Result<(), Error> {
    let mut packet = target.seal(payload);
    if target.receive(&mut packet) { Ok(()) } else { Err("the connection is over".into()) }
}

/// Appends a message of an ordered group, which need not wait for the `free` messages directly before it. The
/// message has no data.
pub fn message(group: u64, number: u64, free: u64, out: &mut Vec<u8>) {
    for value in [group * 2, number, free, 0] {
        put_varint(out, value);
    }
}

const fn uni(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Uni, index)
}

const fn bidi(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, index)
}

const fn stream(id: StreamId, offset: u64, data: &[u8]) -> Frame<'_> {
    Frame::Stream(StreamFrame { id, offset, fin: false, data })
}

/// The numbers below `n` in a random order.
fn shuffled(n: u64) -> VecDeque<u64> {
    let mut rng = Rng::new(7);
    let mut numbers: Vec<u64> = (0..n).collect();
    for at in 1..numbers.len() {
        numbers.swap(at, rng.index(at + 1));
    }
    numbers.into()
}

fn next(numbers: &mut VecDeque<u64>) -> u64 {
    numbers.rotate_left(1);
    numbers.front().copied().unwrap_or(0)
}

/// Repair symbols over a window of source symbols of this size, half of which are missing, so that each
/// repair symbol is worth solving for and none is enough. They are valid repair symbols, because repair
/// symbols that contradict known symbols end the connection.
fn repairs(target: &mut Target, code: &'static dyn Code, size: usize) -> Result<Payloads, Error> {
    let mut symbol = Vec::new();
    stream(uni(90), 0, &vec![7; size]).encode(&mut symbol);
    let mut encoder = Encoder::new(WindowLimits::default());
    for id in 0..SYMBOLS {
        encoder.push(&symbol)?;
        if id % 2 == 0 {
            let symbol = SourceSymbol { symbol: SymbolRef { session: 0, id }, frames: &symbol };
            let mut payload = Vec::new();
            Frame::SourceSymbol(symbol).encode(&mut payload);
            send(target, &payload)?;
        }
    }
    let admitted = (0..256).filter(|key| code.admits(&(0..SYMBOLS), *key));
    let mut keys = admitted.collect::<Vec<u32>>().into_iter().cycle();
    single(move |out| {
        let key = keys.next().unwrap_or(0);
        let header = RepairHeader::new(0, code.id(), &(0..SYMBOLS), key);
        let mut payload = Vec::new();
        if code.encode(&encoder, 0..SYMBOLS, key, &mut payload).is_ok() {
            Frame::Repair(Repair { header, payload: &payload }).encode(out);
        }
    })
}

/// Lets the connection open `streams` streams. They stay open, and share one coding session.
pub fn open(target: &mut Target, streams: u64) -> Result<(), Error> {
    let tail = Protection::tail(1, std::time::Duration::ZERO);
    let mut opened = 0;
    while opened < streams {
        while opened < streams
            && let Some(id) = target.connection().open(Dir::Uni)
        {
            target.connection().send_stream(id).protect(Some(tail.clone()))?;
            target.connection().send_stream(id).write(&[7; 50])?;
            opened += 1;
        }
        let mut payload = Vec::new();
        Frame::MaxStreams { dir: Dir::Uni, max: opened + 100 }.encode(&mut payload);
        send(target, &payload)?;
        // The data goes out one congestion window after the other.
        for _ in 0..100 {
            if target.connection().stats().bytes_in_flight == 0 {
                break;
            }
            target.settle();
        }
    }
    Ok(())
}

/// The costliest mix: 64 pending equations, made long by one of them, and then the smallest possible symbols,
/// each of which is the first unknown of one equation.
fn tiny_symbols() -> Result<Payloads, Error> {
    let (mut first, mut queue) = (0, VecDeque::new());
    Ok(Box::new(move || {
        let mut payload = Vec::new();
        if queue.is_empty() {
            queue = equations_and_symbols(first);
            first += SYMBOLS;
        }
        if let Some(next) = queue.pop_front() {
            payload = next;
        }
        (payload, 1)
    }))
}

/// Packets with a repair symbol over small symbols and a long symbol that is never sent, then packets with 63
/// repair symbols over the small symbols alone, and then packets with the small symbols, of which 64 remain
/// missing.
fn equations_and_symbols(first: u64) -> VecDeque<Vec<u8>> {
    let mut encoder = Encoder::new(WindowLimits::default());
    let mut packets = VecDeque::new();
    let mut long = Vec::new();
    stream(uni(90), 0, &[7; 1200]).encode(&mut long);
    for id in 0..first + SYMBOLS {
        let symbol = if id + 1 == first + SYMBOLS { &long[..] } else { &[0x31, 0][..] };
        encoder.release_below((id + 1).saturating_sub(SYMBOLS));
        if encoder.push(symbol).is_err() {
            return packets;
        }
    }
    for key in 0..64 {
        let span = first..first + SYMBOLS - u64::from(key > 0);
        let header = RepairHeader::new(0, SlidingWindow.id(), &span, key);
        let (mut repair, mut payload) = (Vec::new(), Vec::new());
        if SlidingWindow.encode(&encoder, span.clone(), key, &mut repair).is_ok() {
            Frame::Repair(Repair { header, payload: &repair }).encode(&mut payload);
            packets.push_back(payload);
        }
    }
    for id in first..first + SYMBOLS - 65 {
        let symbol = SymbolRef { session: 0, id };
        let mut payload = Vec::new();
        Frame::SourceSymbol(SourceSymbol { symbol, frames: &[0x31, 0] }).encode(&mut payload);
        packets.push_back(payload);
    }
    packets
}

/// A frame of an attack on a server.
const fn server(
    kind: FrameKind,
    how: &'static str,
    start: fn(&mut Target) -> Result<Payloads, Error>,
) -> Attack {
    Attack { kind, how, side: Side::Server, batch: 20, start }
}

/// All attacks. Only CONNECTION_CLOSE is missing, because nothing follows it.
pub fn all() -> Vec<Attack> {
    let mut all = plain();
    all.extend(streams());
    all.extend(limits());
    all.extend(paths());
    all.extend(coding());
    all
}

fn plain() -> Vec<Attack> {
    vec![
        server(FrameKind::Padding, "", |_| full(|out| out.push(0))),
        server(FrameKind::Ping, "", |_| full(|out| out.push(1))),
        server(FrameKind::Ping, "alone in its packet", |_| {
            single(|out| out.extend_from_slice(&[1, 0, 0, 0]))
        }),
        server(FrameKind::Ack, "of what is known", |_| full(|out| out.extend([2, 0, 0, 0, 0]))),
        server(FrameKind::Ack, "with counts", |_| full(|out| out.extend([3, 0, 0, 0, 0, 0, 0, 0]))),
        server(FrameKind::Crypto, "empty", |_| full(|out| out.extend([6, 0, 0]))),
        server(FrameKind::Crypto, "with gaps", |_| {
            let mut places = shuffled(100);
            full(move |out| {
                Frame::Crypto { offset: 2 * next(&mut places) + 1, data: b"x" }.encode(out);
            })
        }),
        Attack {
            side: Side::Client,
            ..server(FrameKind::NewToken, "", |_| full(|out| out.extend([7, 1, 9])))
        },
        Attack {
            side: Side::Client,
            ..server(FrameKind::HandshakeDone, "", |_| full(|out| out.push(0x1e)))
        },
        server(FrameKind::Datagram, "empty", |_| full(|out| out.extend([0x31, 0]))),
        server(FrameKind::Datagram, "of a byte", |_| full(|out| out.extend([0x31, 1, 7]))),
    ]
}

fn streams() -> Vec<Attack> {
    vec![
        server(FrameKind::Stream, "empty", |_| full(|out| out.extend([0x0a, 2, 0]))),
        server(FrameKind::Stream, "of a byte each, in order", |_| {
            let mut offset = 0;
            full(move |out| {
                stream(uni(0), offset, b"x").encode(out);
                offset += 1;
            })
        }),
        server(FrameKind::Stream, "of a byte each, with gaps", |_| {
            let mut places = shuffled(1000);
            full(move |out| stream(uni(0), 2 * next(&mut places) + 1, b"x").encode(out))
        }),
        Attack {
            batch: 1,
            ..server(FrameKind::Stream, "each opens a stream", |_| {
                numbered(90, 1, |index, out| {
                    let id = uni(index);
                    Frame::Stream(StreamFrame { id, offset: 0, fin: true, data: b"x" }).encode(out);
                })
            })
        },
        Attack {
            batch: 1,
            ..server(FrameKind::Stream, "each a message of a group", |_| {
                numbered(80, 1, |index, out| {
                    let (id, number) = (uni(index), 10_000 + index);
                    let mut data = Vec::new();
                    message(0, number, number, &mut data);
                    Frame::Stream(StreamFrame { id, offset: 0, fin: true, data: &data })
                        .encode(out);
                })
            })
        },
        server(FrameKind::ResetStream, "of one stream", |_| {
            copies(&Frame::ResetStream { id: uni(0), code: 0, final_size: 0 })
        }),
        Attack {
            batch: 1,
            ..server(FrameKind::ResetStream, "each opens a stream", |_| {
                numbered(90, 1, |index, out| {
                    Frame::ResetStream { id: uni(index), code: 0, final_size: 0 }.encode(out);
                })
            })
        },
        server(FrameKind::StopSending, "of one stream", |_| {
            copies(&Frame::StopSending { id: bidi(0), code: 0 })
        }),
        Attack {
            batch: 1,
            ..server(FrameKind::StopSending, "each opens a stream", |_| {
                numbered(45, 2, |index, out| {
                    let id = bidi(index);
                    Frame::StopSending { id, code: 0 }.encode(out);
                    Frame::ResetStream { id, code: 0, final_size: 0 }.encode(out);
                })
            })
        },
    ]
}

fn limits() -> Vec<Attack> {
    vec![
        server(FrameKind::MaxData, "", |_| copies(&Frame::MaxData(0))),
        server(FrameKind::MaxStreamData, "", |_| {
            copies(&Frame::MaxStreamData { id: bidi(0), max: 0 })
        }),
        server(FrameKind::MaxStreams, "", |_| copies(&Frame::MaxStreams { dir: Dir::Uni, max: 0 })),
        server(FrameKind::DataBlocked, "", |_| copies(&Frame::DataBlocked(0))),
        server(FrameKind::StreamDataBlocked, "of one stream", |_| {
            copies(&Frame::StreamDataBlocked { id: uni(0), limit: 0 })
        }),
        server(FrameKind::StreamDataBlocked, "of streams here and there", |_| {
            let mut places = shuffled(50);
            full(move |out| {
                let id = uni(2 * next(&mut places) + 1);
                Frame::StreamDataBlocked { id, limit: 0 }.encode(out);
            })
        }),
        server(FrameKind::StreamsBlocked, "", |_| {
            copies(&Frame::StreamsBlocked { dir: Dir::Uni, limit: 0 })
        }),
    ]
}

fn paths() -> Vec<Attack> {
    vec![
        server(FrameKind::NewConnectionId, "the same again", |_| {
            let id = ConnectionId::new(&[7; 8]).ok_or("no identifier")?;
            let new = NewConnectionId { sequence: 4, retire_prior_to: 1, id, reset_token: [7; 16] };
            copies(&Frame::NewConnectionId(new))
        }),
        server(FrameKind::RetireConnectionId, "the same again", |_| {
            copies(&Frame::RetireConnectionId(1))
        }),
        server(FrameKind::PathChallenge, "", |_| {
            let mut n = 0u64;
            full(move |out| {
                n += 1;
                Frame::PathChallenge(n.to_be_bytes()).encode(out);
            })
        }),
        server(FrameKind::PathResponse, "", |_| copies(&Frame::PathResponse([7; 8]))),
    ]
}

fn coding() -> Vec<Attack> {
    vec![
        server(FrameKind::SourceSymbol, "as small as can be", |_| {
            let mut id = 0;
            single(move |out| {
                let symbol = SymbolRef { session: 0, id };
                id += 1;
                Frame::SourceSymbol(SourceSymbol { symbol, frames: &[0x31, 0] }).encode(out);
            })
        }),
        server(FrameKind::SourceSymbol, "into 64 long equations, with these", |_| tiny_symbols()),
        server(FrameKind::Repair, "of large symbols", |target| {
            repairs(target, &SlidingWindow, 1200)
        }),
        server(FrameKind::Repair, "of small symbols", |target| repairs(target, &SlidingWindow, 30)),
        server(FrameKind::RepairCoded, "of large symbols", |target| {
            repairs(target, &ReedSolomon, 1200)
        }),
        server(FrameKind::RepairCoded, "of small symbols", |target| {
            repairs(target, &ReedSolomon, 30)
        }),
        server(FrameKind::SymbolWindow, "", |_| {
            copies(&Frame::SymbolWindow(SymbolWindow { session: 0, lower_bound: 0 }))
        }),
        server(FrameKind::SymbolAck, "of what is known", |_| {
            full(|out| out.extend([0x7f, 0x55, 0, 0, 0]))
        }),
    ]
}
