//! Frames of the extension for erasure coding.

use super::crew::Crew;
use super::floods::{Flood, single};
use super::{Attack, Pace, Tactic, attack, generous};
use crate::fleet::Fleet;
use crate::puppet::ROOM;
use crate::request::{bidi, control_stream, headers, uni, whole};
use crate::target::LARGE;
use std::time::Instant;
use sutura_benches::Error;
use sutura_proto::CodeSet;
use sutura_proto::fuzz::encode_symbol_ack;
use sutura_proto::fuzz::range_set::RangeSet;
use sutura_proto::policy::{Code, SlidingWindow};
use sutura_proto::wire_format::{
    FecParameters, Frame, Repair, RepairHeader, SourceSymbol, StreamFrame, SymbolRef,
    TransportParameters,
};

/// Bits in a second of a flood of frames.
const RATE: Pace = Pace::Bits(40_000_000);

/// A client with one coding session. Streams end after their first bytes, so that all stay open.
fn one_session() -> TransportParameters {
    TransportParameters {
        initial_max_stream_data_bidi_local: 16,
        fec: Some(FecParameters {
            max_sessions: 1,
            max_window_symbols: 1024,
            max_window_bytes: 1 << 20,
            max_symbol_size: 1200,
            codes: CodeSet::default(),
        }),
        ..generous()
    }
}

pub fn acks() -> Vec<Attack> {
    let acks = |name, about, start| Attack {
        parameters: one_session,
        plain: false,
        ..attack(name, about, "SYMBOL_ACK", RATE, start)
    };
    vec![
        acks("symbol-acks", "SYMBOL_ACKs of a session with one stream", || Acks::start(1)),
        acks("symbol-acks-10", "the same with 10 streams", || Acks::start(10)),
        acks("symbol-acks-100", "the same with 100 streams", || Acks::start(100)),
    ]
}

pub fn repairs() -> Vec<Attack> {
    let repairs =
        |name, about, start| Attack { plain: false, ..attack(name, about, "symbol", RATE, start) };
    vec![
        repairs("repairs", "repair symbols that are never enough to solve for anything", || {
            Flood::start(4, single(|_, rng, _, payload| repair(rng.next_u64() as u32, 32, payload)))
        }),
        repairs("repairs-large", "the same, of 1,000 bytes", || {
            Flood::start(
                4,
                single(|_, rng, _, payload| repair(rng.next_u64() as u32, 1000, payload)),
            )
        }),
        repairs("sources", "source symbols of a byte, after 64 repair symbols", || {
            Flood::start(
                4,
                single(|puppet, rng, _, payload| {
                    puppet.counter += 1;
                    if puppet.counter <= 64 {
                        repair(rng.next_u64() as u32, 1000, payload);
                    } else {
                        source(puppet.counter - 65, payload);
                    }
                }),
            )
        }),
    ]
}

/// A repair symbol over 200 source symbols that nobody has.
fn repair(key: u32, size: usize, payload: &mut Vec<u8>) {
    let span = 0..200;
    let header = RepairHeader::new(0, SlidingWindow.id(), &span, key);
    Frame::Repair(Repair { header, payload: &vec![7; size] }).encode(payload);
}

/// A source symbol with an empty STREAM frame.
fn source(id: u64, payload: &mut Vec<u8>) {
    let mut frames = Vec::new();
    Frame::Stream(StreamFrame { id: uni(0), offset: 0, fin: false, data: b"" }).encode(&mut frames);
    let symbol = SymbolRef { session: 0, id };
    Frame::SourceSymbol(SourceSymbol { symbol, frames: &frames }).encode(payload);
}

/// Acknowledges symbols that were acknowledged before.
struct Acks {
    crew: Crew,
    streams: u64,
}

impl Acks {
    fn start(streams: u64) -> Box<dyn Tactic> {
        Box::new(Self { crew: Crew::new(1), streams })
    }

    fn ask(&self, fleet: &mut Fleet, now: Instant, at: usize) {
        let head = headers(LARGE, "exp_b=3");
        let mut payload = control_stream();
        for index in 0..self.streams {
            whole(bidi(index), &head, true, &mut payload);
            if payload.len() + 100 > ROOM {
                fleet.insist(now, at, std::mem::take(&mut payload));
            }
        }
        fleet.insist(now, at, payload);
    }
}

impl Tactic for Acks {
    fn step(&mut self, fleet: &mut Fleet, now: Instant, quota: u64) -> Result<(), Error> {
        // SYMBOL_ACK of session 0, nothing below symbol 0, no ranges.
        let mut frame = Vec::new();
        encode_symbol_ack(0, 0, &RangeSet::default(), ROOM, &mut frame);
        let frames = ROOM / frame.len();
        let payload = frame.repeat(frames);
        for at in self.crew.tend(fleet, now)? {
            let Some(puppet) = fleet.puppet(at) else { continue };
            if !puppet.is_established() {
                continue;
            }
            if puppet.streams == 0 {
                puppet.streams = self.streams;
                self.ask(fleet, now, at);
                continue;
            }
            // The session exists as soon as anything was answered.
            if puppet.heard_symbols == 0 {
                continue;
            }
            for _ in 0..quota.div_ceil(payload.len() as u64) {
                if fleet.say(at, &payload) {
                    fleet.tally.events += frames as u64;
                }
            }
        }
        Ok(())
    }
}
