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
use sutura_erasure::{Encoder, WindowLimits};
use sutura_proto::CodeSet;
use sutura_proto::fuzz::encode_symbol_ack;
use sutura_proto::fuzz::range_set::RangeSet;
use sutura_proto::policy::{Code, SlidingWindow};
use sutura_proto::wire_format::{
    FecParameters, Frame, Repair, RepairHeader, SourceSymbol, SymbolRef, TransportParameters,
};

/// The rate of a flood of frames.
const RATE: Pace = Pace::Bits(40_000_000);

/// A client with one coding session. The server may send only the first bytes of each answer, so that all
/// streams stay open.
fn one_session() -> TransportParameters {
    let mut parameters = generous();
    parameters.initial_max_stream_data_bidi_local = 16;
    parameters.fec = Some(FecParameters {
        max_sessions: 1,
        max_window_symbols: 1024,
        max_window_bytes: 1 << 20,
        max_symbol_size: 1200,
        codes: CodeSet::default(),
    });
    parameters
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
        repairs("late-sources", "source symbols of three bytes into 64 equations of 1,000", || {
            let mut symbols = Late::new();
            Flood::start(
                4,
                single(move |puppet, _, _, out| {
                    symbols.write(puppet.counter as usize, out);
                    puppet.counter += 1;
                }),
            )
        }),
    ]
}

/// A repair symbol over 200 source symbols that were never sent.
fn repair(key: u32, size: usize, payload: &mut Vec<u8>) {
    let span = 0..200;
    let header = RepairHeader::new(0, SlidingWindow.id(), &span, key);
    Frame::Repair(Repair { header, payload: &vec![7; size] }).encode(payload);
}

/// Repair symbols that fill a decoder's matrix, then most of the source symbols that they cover, and so on.
/// Each source symbol has to be taken out of all equations, and no equation is ever solved.
struct Late {
    encoder: Encoder,
    /// The payloads that were made so far.
    payloads: Vec<Vec<u8>>,
}

impl Late {
    /// Source symbols that an equation covers.
    const SPAN: u64 = 200;
    /// Equations that a decoder keeps.
    const EQUATIONS: u32 = 64;
    /// Source symbols that are sent: the remaining symbols are so many that no equation can be solved.
    const SENT: u64 = 130;

    fn new() -> Self {
        Self { encoder: Encoder::new(WindowLimits::default()), payloads: Vec::new() }
    }

    /// Appends payload number `at`; all connections get the same payloads.
    fn write(&mut self, at: usize, out: &mut Vec<u8>) {
        if at >= self.payloads.len() {
            self.more();
        }
        out.extend_from_slice(self.payloads.get(at).map_or(&[], Vec::as_slice));
    }

    fn more(&mut self) {
        let span = self.encoder.next_id()..self.encoder.next_id() + Self::SPAN;
        self.encoder.release_below(span.start);
        let frames = |data: &[u8]| {
            let mut out = Vec::new();
            whole(uni(0), data, false, &mut out);
            out
        };
        // The short symbol repeats the beginning of the control stream; the long symbol is never sent.
        let (short, long) = (frames(&[0, 4, 0]), frames(&[0; 1000]));
        for id in span.clone() {
            // The window has room for more than a span.
            let _ = self.encoder.push(if id == span.start { &long } else { &short });
        }
        for key in 0..Self::EQUATIONS {
            let (mut payload, mut symbol) = (Vec::new(), Vec::new());
            let header = RepairHeader::new(0, SlidingWindow.id(), &span, key);
            if SlidingWindow.encode(&self.encoder, span.clone(), key, &mut symbol).is_ok() {
                Frame::Repair(Repair { header, payload: &symbol }).encode(&mut payload);
            }
            self.payloads.push(payload);
        }
        for id in span.start + 1..=span.start + Self::SENT {
            let symbol = SymbolRef { session: 0, id };
            let mut payload = Vec::new();
            Frame::SourceSymbol(SourceSymbol { symbol, frames: &short }).encode(&mut payload);
            self.payloads.push(payload);
        }
    }
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
        // A SYMBOL_ACK of session 0 that acknowledges no symbol: lower bound 0, no ranges.
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
            // The session exists once the server has sent a source symbol.
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

#[cfg(test)]
mod tests {
    use super::*;
    use sutura_proto::wire_format::{Carrier, FrameIter};

    #[test]
    fn late_symbols_are_frames_and_never_enough() {
        let mut late = Late::new();
        let mut repairs = 0;
        let all = Late::EQUATIONS as usize + Late::SENT as usize;
        for at in 0..2 * all {
            let mut payload = Vec::new();
            late.write(at, &mut payload);
            let frames: Vec<_> = FrameIter::new(&payload, Carrier::OneRtt).collect();
            match frames.as_slice() {
                [Ok(Frame::Repair(repair))] => {
                    repairs += 1;
                    assert!(repair.payload.len() > 1000);
                }
                [Ok(Frame::SourceSymbol(symbol))] => assert_ne!(symbol.symbol.id % Late::SPAN, 0),
                other => unreachable!("{other:?}"),
            }
        }
        assert_eq!(repairs, 2 * Late::EQUATIONS);
        assert!(Late::SPAN - Late::SENT > Late::EQUATIONS.into());
    }
}
