//! Repeats the encoder's and the decoder's part of a transfer without the transfer.

use crate::trace::{Event, Trace};
use serde::Serialize;
use std::collections::HashMap;
use std::hint::black_box;
use std::ops::Range;
use sutura::FecConfig;
use sutura_benches::{Error, cpu};
use sutura_erasure::kernel::Kernel;
use sutura_erasure::{Decoder, DecoderLimits, Encoder, PushError, WindowLimits};
use sutura_random::Rng;

/// The most that the replayed encoder keeps, even if the receiver allows more.
const MAX_WINDOW_SYMBOLS: u32 = 1024;
const MAX_WINDOW_BYTES: u32 = 1536 * 1024;
/// The longest source symbol that a connection's receiver takes.
const SYMBOL_SIZE: usize = 1472;
/// Repair symbols that a connection's receiver keeps until they can be used.
const PENDING_REPAIRS: usize = 64;

/// Number of places in the noise at which symbols begin. A symbol's identifier times an odd number gives each
/// symbol of a window another place.
const PLACES: usize = 1 << 16;
const STRIDE: u64 = 61;

/// Random bytes, of which every symbol is a piece.
#[derive(Debug)]
struct Noise(Vec<u8>);

impl Noise {
    fn new() -> Self {
        Self(Rng::new(1).bytes(PLACES + SYMBOL_SIZE))
    }

    /// The bytes of a symbol. In a connection, they belong to a packet that was just built or opened, and are
    /// likely in the nearest cache.
    fn symbol(&self, id: u64, len: usize) -> &[u8] {
        let place = (id.wrapping_mul(STRIDE) % PLACES as u64) as usize;
        &self.0[place..place + len]
    }
}

/// A frame that the decoder is given.
#[derive(Debug)]
enum Arrival {
    Source { id: u64, len: usize },
    Repair { span: Range<u64>, key: u32, payload: Range<usize> },
    Window { lower_bound: u64 },
}

/// Seconds of CPU time.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Cost {
    /// The cost of the encoder.
    pub server: f64,
    /// The cost of the decoder.
    pub client: f64,
}

/// The symbols of one transfer.
#[derive(Debug)]
pub struct Replay {
    encoder: WindowLimits,
    decoder: DecoderLimits,
    noise: Noise,
    sent: Vec<Event>,
    arrivals: Vec<Arrival>,
    /// The bytes of all repair symbols that arrive, one after the other.
    payloads: Vec<u8>,
    /// Lengths of all source symbols.
    lens: Vec<usize>,
    /// Symbols that the decoder recovers.
    recovered: u64,
}

fn encoder_limits(fec: &FecConfig) -> WindowLimits {
    WindowLimits {
        symbols: fec.max_window_symbols.min(MAX_WINDOW_SYMBOLS) as usize,
        bytes: fec.max_window_bytes.min(MAX_WINDOW_BYTES) as usize,
        symbol_size: SYMBOL_SIZE,
    }
}

fn decoder_limits(fec: &FecConfig) -> DecoderLimits {
    DecoderLimits {
        symbols: fec.max_window_symbols as usize,
        bytes: fec.max_window_bytes as usize,
        symbol_size: SYMBOL_SIZE,
        repairs: PENDING_REPAIRS,
    }
}

/// Pushes a symbol; the oldest symbols make room for it, as in a connection.
fn push(encoder: &mut Encoder, bytes: &[u8]) -> Result<(), Error> {
    loop {
        match encoder.push(bytes) {
            Ok(_) => return Ok(()),
            Err(PushError::Full) if !encoder.window().is_empty() => {
                encoder.release_below(encoder.window().start + 1);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Encodes the sent symbols, and gives each repair symbol to `sink`.
fn encode(
    limits: WindowLimits,
    kernel: Kernel,
    noise: &Noise,
    sent: &[Event],
    mut sink: impl FnMut(&Event, &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut encoder = Encoder::with_kernel(limits, kernel);
    let mut out = Vec::new();
    for event in sent {
        match *event {
            // A symbol that is sent again is copied from the window and not coded again.
            Event::Source { id, .. } if id < encoder.next_id() => {}
            Event::Source { id, len } if id == encoder.next_id() => {
                push(&mut encoder, noise.symbol(id, len))?;
            }
            Event::Source { .. } => return Err("a source symbol was left out".into()),
            Event::Repair { first, count, key, .. } => {
                encoder.release_below(first);
                let span = first..first + count;
                // A connection asks for the size before it makes a packet.
                black_box(encoder.repair_size(span.clone())?);
                out.clear();
                encoder.repair(span, key, &mut out)?;
                sink(event, &out)?;
            }
            Event::Window { .. } => {}
        }
    }
    Ok(())
}

impl Replay {
    /// Makes the symbols of `trace`, and checks that the decoder recovers the right bytes.
    pub fn new(trace: &Trace, fec: &FecConfig) -> Result<Self, Error> {
        let (encoder, decoder) = (encoder_limits(fec), decoder_limits(fec));
        let noise = Noise::new();
        let mut payloads = Vec::new();
        let mut places = HashMap::new();
        encode(encoder, Kernel::best(), &noise, &trace.sent, |event, bytes| match *event {
            Event::Repair { len, .. } if len != bytes.len() => {
                Err("a repair symbol has another length than the one sent".into())
            }
            _ => {
                places.insert(*event, payloads.len()..payloads.len() + bytes.len());
                payloads.extend_from_slice(bytes);
                Ok(())
            }
        })?;
        let mut lens = Vec::new();
        for event in &trace.sent {
            if let Event::Source { id, len } = *event
                && id == lens.len() as u64
            {
                lens.push(len);
            }
        }
        let arrivals = trace.received.iter().map(|event| {
            Ok(match *event {
                Event::Source { id, len } => Arrival::Source { id, len },
                Event::Repair { first, count, key, .. } => {
                    let payload = places.get(event).ok_or("a repair symbol that was not sent")?;
                    Arrival::Repair { span: first..first + count, key, payload: payload.clone() }
                }
                Event::Window { lower_bound } => Arrival::Window { lower_bound },
            })
        });
        let arrivals = arrivals.collect::<Result<_, Error>>()?;
        let sent = trace.sent.clone();
        let mut replay =
            Self { encoder, decoder, noise, sent, arrivals, payloads, lens, recovered: 0 };
        replay.recovered = replay.check()?;
        Ok(replay)
    }

    /// Decodes the symbols that arrived, and gives each recovered symbol to `sink`.
    fn decode(
        &self,
        kernel: Kernel,
        mut sink: impl FnMut(u64, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut decoder = Decoder::with_kernel(self.decoder, kernel);
        let mut frames = Vec::new();
        for arrival in &self.arrivals {
            match arrival {
                Arrival::Source { id, len } => {
                    black_box(decoder.source(*id, self.noise.symbol(*id, *len))?);
                }
                Arrival::Repair { span, key, payload } => {
                    let payload = &self.payloads[payload.clone()];
                    black_box(decoder.repair(span.clone(), *key, payload)?);
                }
                Arrival::Window { lower_bound } => decoder.release_below(*lower_bound),
            }
            while let Some(id) = decoder.pop_recovered() {
                // A connection copies the frames to process them.
                frames.clear();
                frames.extend_from_slice(decoder.symbol(id).unwrap_or_default());
                sink(id, &frames)?;
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<u64, Error> {
        let mut recovered = 0;
        self.decode(Kernel::best(), |id, bytes| {
            let len = usize::try_from(id).ok().and_then(|index| self.lens.get(index));
            let len = *len.ok_or("recovered a symbol that was not sent")?;
            if bytes != self.noise.symbol(id, len) {
                return Err("recovered something else than was sent".into());
            }
            recovered += 1;
            Ok(())
        })?;
        Ok(recovered)
    }

    /// Symbols that the decoder recovers.
    pub fn recovered(&self) -> u64 {
        self.recovered
    }

    /// The cost of encoding and decoding with `kernel`: the best of `repeats` replays, after a replay that
    /// does not count.
    pub fn cost(&self, kernel: Kernel, repeats: usize) -> Result<Cost, Error> {
        let mut best = Cost { server: f64::INFINITY, client: f64::INFINITY };
        for repeat in 0..=repeats {
            let begin = cpu::now();
            encode(self.encoder, kernel, &self.noise, &self.sent, |_, bytes| {
                black_box(bytes);
                Ok(())
            })?;
            let middle = cpu::now();
            self.decode(kernel, |_, bytes| {
                black_box(bytes);
                Ok(())
            })?;
            let end = cpu::now();
            if repeat > 0 {
                best.server = best.server.min((middle - begin).as_secs_f64());
                best.client = best.client.min((end - middle).as_secs_f64());
            }
        }
        Ok(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(id: u64) -> Event {
        Event::Source { id, len: 100 + id as usize }
    }

    fn repair(first: u64, count: u64, key: u32) -> Event {
        // A repair symbol has the longest symbol's length, and two bytes for the length itself.
        Event::Repair { first, count, key, len: 102 + (first + count - 1) as usize }
    }

    /// Symbol 1 is lost and recovered, symbol 3 is lost and sent again.
    fn trace() -> Trace {
        let sent = vec![
            source(0),
            source(1),
            source(2),
            repair(0, 3, 0),
            source(3),
            Event::Window { lower_bound: 2 },
            source(3),
            source(4),
            repair(3, 2, 1),
        ];
        let lost = [1, 4];
        let received = sent.iter().enumerate().filter(|(at, _)| !lost.contains(at));
        let received = received.map(|(_, event)| *event).collect();
        Trace { sent, received }
    }

    #[test]
    fn what_a_connection_recovers_is_recovered_again() {
        let replay = Replay::new(&trace(), &FecConfig::default()).unwrap();
        assert_eq!(replay.recovered(), 1);
        for kernel in Kernel::available() {
            let cost = replay.cost(kernel, 1).unwrap();
            assert!(cost.server.is_finite() && cost.client.is_finite());
        }
    }

    #[test]
    fn a_small_window_lets_go_of_old_symbols() {
        let fec = FecConfig::default().with_max_window_symbols(2);
        let sent: Vec<_> = (0..9).map(source).chain([repair(7, 2, 3)]).collect();
        let received = sent[..8].iter().chain(&sent[9..]).copied().collect();
        assert_eq!(Replay::new(&Trace { sent, received }, &fec).unwrap().recovered(), 1);
    }

    #[test]
    fn traces_that_make_no_sense_are_refused() {
        let mut gap = trace();
        gap.sent.remove(0);
        let mut len = trace();
        len.sent[3] = Event::Repair { first: 0, count: 3, key: 0, len: 9 };
        let mut unknown = trace();
        unknown.received.push(repair(0, 3, 9));
        for trace in [gap, len, unknown] {
            assert!(Replay::new(&trace, &FecConfig::default()).is_err());
        }
    }
}
