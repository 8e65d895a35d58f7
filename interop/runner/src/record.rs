//! The datagrams that passed the network.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sutura_link::DropCause;
use sutura_relay::{Seen, Tap, Way};

use crate::header::{self, Kind, Packet};

/// A datagram.
#[derive(Debug, Clone)]
pub struct Datagram {
    pub at: Duration,
    pub way: Way,
    pub door: usize,
    /// The port from which the server sees the client.
    pub port: u16,
    pub ecn: u8,
    pub size: usize,
    pub dropped: Option<DropCause>,
    pub packets: Vec<Packet>,
}

/// All datagrams that were sent, in order.
#[derive(Debug, Clone, Default)]
pub struct Record(pub Vec<Datagram>);

/// Writes the record.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    pub record: Arc<Mutex<Record>>,
    /// How many of the relay's first doors are recorded; `None` for all doors.
    pub doors: Option<usize>,
}

impl Recorder {
    /// The datagrams that were recorded up to now.
    pub fn record(&self) -> Record {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Tap for Recorder {
    fn see(&mut self, seen: &Seen<'_>) {
        if self.doors.is_some_and(|doors| seen.door >= doors) {
            return;
        }
        let Seen { at, way, door, port, ecn, dropped, data, .. } = *seen;
        let packets = header::packets(data);
        let datagram = Datagram { at, way, door, port, ecn, size: data.len(), dropped, packets };
        self.record.lock().unwrap_or_else(PoisonError::into_inner).0.push(datagram);
    }
}

impl Record {
    /// The datagrams that go this way.
    pub fn way(&self, way: Way) -> impl Iterator<Item = &Datagram> {
        self.0.iter().filter(move |datagram| datagram.way == way)
    }

    /// The packets of a kind that go this way.
    pub fn packets(&self, way: Way, kind: Kind) -> impl Iterator<Item = &Packet> {
        let packets = self.way(way).flat_map(|datagram| &datagram.packets);
        packets.filter(move |packet| packet.kind == kind)
    }

    /// The identifiers that the server chose, in order. There is one identifier for each handshake.
    pub fn handshakes(&self) -> Vec<&[u8]> {
        let mut found: Vec<&[u8]> = Vec::new();
        for packet in self.packets(Way::Down, Kind::Handshake) {
            if !found.contains(&&packet.scid[..]) {
                found.push(&packet.scid);
            }
        }
        found
    }

    /// The ports from which the server saw the client.
    pub fn ports(&self) -> BTreeSet<u16> {
        self.0.iter().map(|datagram| datagram.port).collect()
    }

    /// The bytes of the packets of a kind that go this way.
    pub fn bytes(&self, way: Way, kind: Kind) -> usize {
        self.packets(way, kind).map(|packet| packet.size).sum()
    }
}
