//! Floods of frames of one type over connections that otherwise follow the protocol.

use super::crew::Crew;
use super::{Attack, Pace, Tactic, attack};
use crate::fleet::Fleet;
use crate::puppet::{Puppet, ROOM};
use crate::request::{bidi, control_stream, headers, uni, whole};
use crate::target::LARGE;
use std::time::Instant;
use sutura_benches::Error;
use sutura_proto::wire_format::{Frame, NewConnectionId, StreamFrame};
use sutura_proto::{ConnectionId, StreamId};
use sutura_random::Rng;

/// The rate of a flood.
const RATE: Pace = Pace::Bits(40_000_000);
/// Gaps that are left in a stream: fewer than a server accepts.
const GAPS: u64 = 1000;

/// Writes the frames of the next packet; the number is the number of the connection's packets so far. Returns
/// how many frames there are; with 0, no packet is sent.
type Payload = Box<dyn FnMut(&mut Puppet, &mut Rng, u64, &mut Vec<u8>) -> u64>;

/// The frames that a connection sends first.
type Opening = fn() -> Vec<u8>;

/// Connections on which one packet after another is sent.
pub struct Flood {
    crew: Crew,
    opening: Opening,
    payload: Payload,
    /// Whether lost packets are sent again, because later packets build on them.
    reliable: bool,
}

/// One frame to a packet.
pub fn single(
    mut frame: impl FnMut(&mut Puppet, &mut Rng, u64, &mut Vec<u8>) + 'static,
) -> Payload {
    Box::new(move |puppet, rng, n, payload| {
        frame(puppet, rng, n, payload);
        1
    })
}

/// Packets full of frames.
fn full(mut frame: impl FnMut(&mut Puppet, &mut Rng, &mut Vec<u8>) + 'static) -> Payload {
    Box::new(move |puppet, rng, _, payload| {
        let mut frames = 0;
        while payload.len() + 40 < ROOM {
            frame(puppet, rng, payload);
            frames += 1;
        }
        frames
    })
}

impl Flood {
    pub fn start(connections: usize, payload: Payload) -> Box<dyn Tactic> {
        let opening = control_stream;
        Box::new(Self { crew: Crew::new(connections), opening, payload, reliable: false })
    }

    fn building(connections: usize, opening: Opening, payload: Payload) -> Box<dyn Tactic> {
        Box::new(Self { crew: Crew::new(connections), opening, payload, reliable: true })
    }
}

impl Tactic for Flood {
    fn step(&mut self, fleet: &mut Fleet, now: Instant, quota: u64) -> Result<(), Error> {
        let members = self.crew.tend(fleet, now)?;
        let mut left = quota;
        for at in members {
            let mut rng = fleet.rng.clone();
            fleet.rng.next_u64();
            let Some(puppet) = fleet.puppet(at) else { continue };
            if !puppet.is_established() {
                continue;
            }
            let mut payload = Vec::new();
            if puppet.packets == 0 {
                payload = (self.opening)();
                puppet.packets += 1;
                fleet.insist(now, at, payload);
                continue;
            }
            let frames = (self.payload)(puppet, &mut rng, puppet.packets, &mut payload);
            if frames == 0 {
                continue;
            }
            puppet.packets += 1;
            left = left.saturating_sub(payload.len() as u64);
            let said = if self.reliable {
                fleet.insist(now, at, payload)
            } else {
                fleet.say(at, &payload)
            };
            fleet.tally.events += if said { frames } else { 0 };
            if left == 0 {
                break;
            }
        }
        Ok(())
    }
}

fn stream(id: StreamId, offset: u64, data: &[u8], payload: &mut Vec<u8>) {
    Frame::Stream(StreamFrame { id, offset, fin: false, data }).encode(payload);
}

/// A request whose answer is under way, so that the server has a stream to which the frames can refer.
fn asking() -> Vec<u8> {
    let mut payload = control_stream();
    whole(bidi(0), &headers(LARGE, ""), true, &mut payload);
    payload
}

/// A control stream and the encoder stream of QPACK, with a table of 4,096 bytes and one entry.
fn encoding() -> Vec<u8> {
    let mut payload = control_stream();
    // The type; a capacity of 4,096; an entry with the name `a` and the value `b`.
    whole(uni(1), &[0x02, 0x3f, 0xe1, 0x1f, 0x41, b'a', 0x01, b'b'], false, &mut payload);
    payload
}

pub fn all() -> Vec<Attack> {
    let flood = |name, about, start| attack(name, about, "frame", RATE, start);
    let mut all = vec![
        flood(
            "confetti",
            "STREAM frames of a byte at random places with gaps between them",
            || {
                Flood::start(
                    4,
                    full(|_, rng, out| stream(bidi(0), 2 * rng.below(GAPS) + 1, b"x", out)),
                )
            },
        ),
        flood("crypto-gaps", "CRYPTO frames of a byte at random places", || {
            Flood::start(
                4,
                full(|_, rng, out| {
                    Frame::Crypto { offset: 8000 + 2 * rng.below(100), data: b"x" }.encode(out);
                }),
            )
        }),
        flood("qpack", "instructions of a byte that each insert into the dynamic table", || {
            Flood::building(4, encoding, Box::new(duplicates))
        }),
        flood("priority-updates", "PRIORITY_UPDATE frames", || {
            Flood::building(4, control_stream, Box::new(priority_updates))
        }),
    ];
    all.extend(identifiers());
    all.extend(small());
    all.extend(acknowledgements());
    all
}

fn identifiers() -> Vec<Attack> {
    let flood = |name, about, start| attack(name, about, "frame", RATE, start);
    vec![
        flood("new-connection-ids", "NEW_CONNECTION_IDs that each retire the one before", || {
            Flood::start(
                4,
                full(|puppet, rng, out| {
                    puppet.counter += 1;
                    let sequence = puppet.counter;
                    let id = ConnectionId::new(&rng.next_u64().to_be_bytes()).unwrap_or_default();
                    let mut reset_token = [0; 16];
                    rng.fill(&mut reset_token);
                    let new =
                        NewConnectionId { sequence, retire_prior_to: sequence, id, reset_token };
                    Frame::NewConnectionId(new).encode(out);
                }),
            )
        }),
        flood(
            "retired-connection-ids",
            "RETIRE_CONNECTION_ID of each that the server issues",
            || {
                Flood::start(
                    64,
                    Box::new(|puppet, _, _, out| {
                        let mut frames = 0;
                        while puppet.counter < puppet.newest_cid {
                            puppet.counter += 1;
                            frames += 1;
                            Frame::RetireConnectionId(puppet.counter).encode(out);
                        }
                        frames
                    }),
                )
            },
        ),
    ]
}

fn small() -> Vec<Attack> {
    let flood = |name, about, start| attack(name, about, "frame", RATE, start);
    vec![
        flood("path-challenges", "packets full of PATH_CHALLENGEs", || {
            Flood::start(
                4,
                full(|_, rng, out| {
                    Frame::PathChallenge(rng.next_u64().to_be_bytes()).encode(out);
                }),
            )
        }),
        flood("pings", "packets full of PINGs", || {
            Flood::start(4, full(|_, _, out| Frame::Ping.encode(out)))
        }),
        Attack {
            pace: Pace::Events(20_000),
            ..flood("small-pings", "packets with one PING each", || {
                Flood::start(4, single(|_, _, _, out| Frame::Ping.encode(out)))
            })
        },
        flood("max-data", "MAX_DATA and MAX_STREAM_DATA, a byte more each time", || {
            Flood::building(
                4,
                asking,
                full(|puppet, _, out| {
                    puppet.counter += 1;
                    Frame::MaxData((1 << 41) + puppet.counter).encode(out);
                    let max = (1 << 41) + puppet.counter;
                    Frame::MaxStreamData { id: bidi(0), max }.encode(out);
                }),
            )
        }),
        flood("empty-streams", "STREAM frames without a byte", || {
            Flood::start(4, full(|_, _, out| stream(bidi(0), 0, b"", out)))
        }),
    ]
}

fn acknowledgements() -> Vec<Attack> {
    let flood = |name, about, start| attack(name, about, "frame", RATE, start);
    vec![
        flood("acks", "packets full of the same ACK", || {
            Flood::start(4, full(|puppet, _, out| puppet.ack_again(1, out)))
        }),
        flood("ack-ranges", "ACKs of every second packet", || {
            Flood::start(
                4,
                Box::new(|puppet, _, n, out| {
                    puppet.acknowledges = false;
                    if n < 300 {
                        // A PING makes the server send packets that can be acknowledged.
                        Frame::Ping.encode(out);
                        return 1;
                    }
                    let mut frames = 0;
                    while out.len() + 200 < ROOM {
                        puppet.ack_again(60, out);
                        frames += 1;
                    }
                    frames
                }),
            )
        }),
        Attack {
            event: "connection",
            pace: Pace::Events(500),
            ..flood("optimistic-acks", "ACKs of packets that were not sent yet", || {
                Flood::start(32, single(|puppet, _, _, out| puppet.ack_unsent(out)))
            })
        },
    ]
}

/// Fills the encoder stream with instructions that copy the newest entry (RFC 9204 section 4.3.4).
fn duplicates(puppet: &mut Puppet, _: &mut Rng, _: u64, out: &mut Vec<u8>) -> u64 {
    const BEGINNING: u64 = 8;
    let offset = BEGINNING + puppet.counter;
    let room = puppet.credit(uni(1)).saturating_sub(offset).min(1000);
    stream(uni(1), offset, &vec![0; room as usize], out);
    puppet.counter += room;
    room
}

/// Fills the control stream with PRIORITY_UPDATE frames (RFC 9218 section 7.2).
fn priority_updates(puppet: &mut Puppet, _: &mut Rng, n: u64, out: &mut Vec<u8>) -> u64 {
    const BEGINNING: u64 = 3;
    // Type, length, stream, priority.
    let stream_id = 4 * (n % 16) as u8;
    let frame = [0x80, 0x0f, 0x07, 0x00, 4, stream_id, b'u', b'=', b'0' + (n % 8) as u8];
    let offset = BEGINNING + puppet.counter;
    let room = puppet.credit(uni(0)).saturating_sub(offset) / frame.len() as u64;
    let frames = room.min(ROOM as u64 / frame.len() as u64 - 6);
    if frames > 0 {
        stream(uni(0), offset, &frame.repeat(frames as usize), out);
    }
    puppet.counter += frames * frame.len() as u64;
    frames
}
