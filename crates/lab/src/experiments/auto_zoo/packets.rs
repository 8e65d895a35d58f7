//! A record of the packets of a connection: what each carried, and when it arrived.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sutura_proto::wire_format::{Carrier, Frame, FrameIter};
use sutura_proto::{Observation, Observer, SpaceId};
use sutura_sim::Clock;

/// Data in a packet: bytes of a stream, or a whole datagram as a stream of its own. The end of a stream counts as
/// one more byte, since a message is complete only with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZooPiece {
    pub stream: u64,
    pub offset: u64,
    pub bytes: u64,
}

/// A packet with data or repair symbols.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// When it arrived, since the start; `None` if it did not.
    pub arrived: Option<Duration>,
    pub pieces: Vec<ZooPiece>,
    /// Repair symbols in it.
    pub repairs: u64,
}

/// The first bytes of a message, as the simulator makes it: its number and when it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub number: u64,
    /// Since the start.
    pub made: Duration,
}

/// The packets that a server sent, in their order, and the messages that their streams carry.
#[derive(Clone, Debug, Default)]
pub struct Transmissions {
    pub packets: Vec<Packet>,
    pub heads: HashMap<u64, Head>,
    /// The place of each packet number.
    places: HashMap<u64, usize>,
}

/// A record that both ends of a connection write. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Packets(Arc<Mutex<Transmissions>>);

impl Packets {
    /// Takes the record so far.
    pub fn take(&self) -> Transmissions {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The observer of the server, or of the client.
    pub fn observer(&self, server: bool, clock: Clock) -> PacketObserver {
        PacketObserver { packets: self.clone(), server, clock }
    }
}

/// Writes a record: what the server sends, and what of that arrives at the client.
#[derive(Debug)]
pub struct PacketObserver {
    packets: Packets,
    server: bool,
    clock: Clock,
}

impl Observer for PacketObserver {
    fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        let mut record = self.packets.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *observation {
            Observation::PacketSent { space: SpaceId::Data, pn, payload, .. } if self.server => {
                record.sent(pn, payload);
            }
            Observation::PacketReceived { space: SpaceId::Data, pn, .. } if !self.server => {
                let place = record.places.get(&pn).copied();
                if let Some(packet) = place.and_then(|place| record.packets.get_mut(place)) {
                    packet.arrived.get_or_insert(self.clock.since_start(now));
                }
            }
            _ => {}
        }
    }
}

impl Transmissions {
    fn sent(&mut self, number: u64, payload: &[u8]) {
        let mut packet = Packet::default();
        self.read(payload, Carrier::OneRtt, &mut packet);
        if !packet.pieces.is_empty() || packet.repairs > 0 {
            self.places.insert(number, self.packets.len());
            self.packets.push(packet);
        }
    }

    fn read(&mut self, frames: &[u8], carrier: Carrier, packet: &mut Packet) {
        for frame in FrameIter::new(frames, carrier).flatten() {
            match frame {
                Frame::Stream(frame) => {
                    if frame.offset == 0 {
                        self.head(frame.id.0, frame.data);
                    }
                    let bytes = frame.data.len() as u64 + u64::from(frame.fin);
                    packet.pieces.push(ZooPiece {
                        stream: frame.id.0,
                        offset: frame.offset,
                        bytes,
                    });
                }
                Frame::Datagram(data) => {
                    // The identifiers of streams are smaller.
                    let number = word(data, 0).unwrap_or_default();
                    let stream = u64::MAX - number;
                    self.head(stream, data);
                    packet.pieces.push(ZooPiece {
                        stream,
                        offset: 0,
                        bytes: data.len() as u64 + 1,
                    });
                }
                Frame::SourceSymbol(symbol) => {
                    self.read(symbol.frames, Carrier::SourceSymbol, packet);
                }
                Frame::Repair(_) => packet.repairs += 1,
                _ => {}
            }
        }
    }

    fn head(&mut self, stream: u64, data: &[u8]) {
        let Some((number, made)) = word(data, 0).zip(word(data, 8)) else { return };
        let head = Head { number, made: Duration::from_nanos(made) };
        self.heads.entry(stream).or_insert(head);
    }
}

fn word(data: &[u8], at: usize) -> Option<u64> {
    let bytes = data.get(at..at + 8)?;
    Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// When the bytes of data and repair symbols that arrived were as many as a file has: a client's observer.
/// Clones share the record.
#[derive(Clone, Debug)]
pub struct Volume(Arc<Mutex<Arriving>>);

#[derive(Clone, Debug)]
struct Arriving {
    clock: Clock,
    missing: u64,
    at: Option<Duration>,
}

impl Volume {
    pub fn of(bytes: u64, clock: Clock) -> Self {
        Self(Arc::new(Mutex::new(Arriving { clock, missing: bytes, at: None })))
    }

    /// When the last of the bytes arrived, since the start; `None` if too few did.
    pub fn at(&self) -> Option<Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).at
    }
}

impl Observer for Volume {
    fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        let Observation::PacketReceived { space: SpaceId::Data, payload, .. } = *observation else {
            return;
        };
        let mut arriving = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if arriving.at.is_some() {
            return;
        }
        let bytes = volume(payload, Carrier::OneRtt);
        arriving.missing = arriving.missing.saturating_sub(bytes);
        if arriving.missing == 0 {
            arriving.at = Some(arriving.clock.since_start(now));
        }
    }
}

fn volume(frames: &[u8], carrier: Carrier) -> u64 {
    let bytes = FrameIter::new(frames, carrier).flatten().map(|frame| match frame {
        Frame::Stream(frame) => frame.data.len() as u64,
        Frame::SourceSymbol(symbol) => volume(symbol.frames, Carrier::SourceSymbol),
        Frame::Repair(repair) => repair.payload.len() as u64,
        _ => 0,
    });
    bytes.sum()
}
