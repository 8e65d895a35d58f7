//! A connection and a peer that sends it any payload, for measurements of the cost of frames.

use crate::config::{ClientConfig, EndpointConfig, ServerConfig, TransportConfig};
use crate::connection::{Connection, Event};
use crate::crypto::null::{NullClientConfig, NullServerConfig};
use crate::endpoint::{DatagramEvent, Endpoint};
use crate::fec::FecConfig;
use crate::ids::{ConnectionHandle, Side};
use crate::streams::StreamEvent;
use crate::wire::code_id::CodeSet;
use crate::wire::frame::encode_ack;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two packets.
const STEP: Duration = Duration::from_micros(100);
/// How often the connection's packets are acknowledged, until nothing is left to acknowledge.
const MAX_ACKS: usize = 8;
/// Bytes of frames in a packet.
const ROOM: usize = 1150;

type TargetEnds = [(Endpoint, Option<(ConnectionHandle, Box<Connection>)>); 2];

/// A connection and its hostile peer.
pub struct Target {
    connection: Box<Connection>,
    peer: Box<Connection>,
    now: Instant,
    out: Vec<u8>,
    events: Vec<StreamEvent>,
}

const ADDRESSES: [([u8; 4], u16); 2] = [([192, 0, 2, 1], 1), ([192, 0, 2, 2], 2)];

fn address(side: Side) -> SocketAddr {
    ADDRESSES[side as usize].into()
}

impl Target {
    /// The connection at `side`, once the handshake is confirmed and nothing is left to say.
    /// `None` if the configuration does not allow for a connection.
    #[must_use]
    pub fn new(side: Side) -> Option<Self> {
        // Streams share their only session, so that code which visits its streams shows.
        let fec =
            Some(FecConfig { codes: CodeSet::all(), max_sessions: 1, ..FecConfig::default() });
        Self::with(side, TransportConfig { fec, ..TransportConfig::default() })
    }

    /// The same, where both ends have this configuration.
    #[must_use]
    pub fn with(side: Side, transport: TransportConfig) -> Option<Self> {
        let alpn = vec![b"target".to_vec()];
        let transport = Arc::new(transport);
        let crypto = Arc::new(NullServerConfig::new(alpn.clone()));
        let server = Arc::new(ServerConfig { crypto, transport: transport.clone() });
        let config = ClientConfig { crypto: Arc::new(NullClientConfig::new(alpn)), transport };
        let end =
            |server, seed| (Endpoint::new(Arc::<EndpointConfig>::default(), server, seed), None);
        let mut ends: TargetEnds = [end(None, [1; 32]), end(Some(server), [2; 32])];
        let mut now = Instant::now();
        let opened = ends[0].0.connect(now, config, address(Side::Server), "localhost");
        ends[0].1 = Some(opened.ok()?);
        for _ in 0..20 {
            deliver(&mut ends, Side::Client, now);
            deliver(&mut ends, Side::Server, now);
            now += Duration::from_millis(30);
        }
        let [(_, client), (_, server)] = ends;
        let ((_, client), (_, server)) = (client?, server?);
        let (connection, peer) = if side.is_client() { (client, server) } else { (server, client) };
        Some(Self { connection, peer, now, out: Vec::new(), events: Vec::new() })
    }

    /// The connection that receives.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// The peer's next 1-RTT packet, with this payload.
    ///
    /// # Panics
    /// The peer has no keys, because the connection is over.
    pub fn seal(&mut self, payload: &[u8]) -> Vec<u8> {
        let sealed = self.peer.forge(payload);
        assert!(sealed.is_some(), "a packet cannot be sealed");
        sealed.unwrap_or_default()
    }

    /// Lets the connection process a datagram, answer it, and do its due work. Returns whether the connection
    /// goes on.
    pub fn receive(&mut self, datagram: &mut [u8]) -> bool {
        self.now += STEP;
        let remote = address(self.connection.side().peer());
        self.connection.handle_datagram(self.now, remote, None, datagram);
        self.respond()
    }

    /// Lets the connection do its due work. Its peer does not listen.
    fn respond(&mut self) -> bool {
        let (now, connection) = (self.now, &mut self.connection);
        while connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        self.out.clear();
        while connection.poll_transmit(now, 10, &mut self.out).is_some() {
            self.out.clear();
        }
        while connection.poll_endpoint_event().is_some() {}
        while let Some(event) = connection.poll_event() {
            if let Event::Stream(event) = event {
                self.events.push(event);
            }
        }
        !connection.is_closed()
    }

    /// Events of streams since the last call.
    pub fn take_events(&mut self) -> Vec<StreamEvent> {
        std::mem::take(&mut self.events)
    }

    /// The time of the connection.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Lets time pass, in which the peer says nothing.
    pub fn wait(&mut self, duration: Duration) {
        let until = self.now + duration;
        while self.now < until {
            self.respond();
            self.now += STEP;
        }
    }

    /// Acknowledges the newest packet alone, so that much older packets count as lost.
    pub fn acknowledge_newest(&mut self) {
        let newest = self.connection.outstanding().max();
        let mut payload = Vec::new();
        let ranges = newest.into_iter().map(|pn| pn..pn + 1);
        if encode_ack(ranges, 0, None, ROOM, &mut payload).is_some() {
            let mut packet = self.seal(&payload);
            self.receive(&mut packet);
        }
    }

    /// Acknowledges everything that the connection has sent, so that it may send on.
    pub fn settle(&mut self) {
        for _ in 0..MAX_ACKS {
            self.respond();
            let mut ranges: Vec<Range<u64>> = Vec::new();
            for pn in self.connection.outstanding() {
                match ranges.last_mut() {
                    Some(last) if last.end == pn => last.end += 1,
                    _ => ranges.push(pn..pn + 1),
                }
            }
            let mut payload = Vec::new();
            if encode_ack(ranges.into_iter().rev(), 0, None, ROOM, &mut payload).is_none() {
                return;
            }
            let mut packet = self.seal(&payload);
            self.receive(&mut packet);
        }
    }
}

/// Passes on everything that one end has to say.
fn deliver(ends: &mut TargetEnds, from: Side, now: Instant) {
    let (endpoint, connection) = &mut ends[from as usize];
    let Some((handle, connection)) = connection else { return };
    if connection.poll_timeout().is_some_and(|at| at <= now) {
        connection.handle_timeout(now);
    }
    let mut datagrams = Vec::new();
    let mut out = Vec::new();
    while let Some(transmit) = connection.poll_transmit(now, 1, &mut out) {
        datagrams.push(out.split_off(out.len() - transmit.size));
        out.clear();
    }
    while let Some(event) = connection.poll_endpoint_event() {
        endpoint.handle_event(*handle, event);
    }
    let (endpoint, connection) = &mut ends[from.peer() as usize];
    for mut datagram in datagrams {
        if let DatagramEvent::NewConnection(incoming) =
            endpoint.handle(now, address(from), &datagram)
        {
            let handle = incoming.handle();
            *connection = endpoint.accept(now, incoming).map(|new| (handle, new));
        }
        if let Some((_, connection)) = connection {
            connection.handle_datagram(now, address(from), None, &mut datagram);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_takes_proper_packets_and_refuses_others() {
        for side in [Side::Client, Side::Server] {
            let mut target = Target::new(side).unwrap();
            for _ in 0..100 {
                let mut packet = target.seal(&[1; 1000]);
                assert!(target.receive(&mut packet));
            }
            target.settle();
            assert_eq!(target.connection().stats().bytes_in_flight, 0);
            assert!(!target.connection().is_closed());
            let mut packet = target.seal(&[0x3f; 30]);
            assert!(!target.receive(&mut packet));
        }
    }
}
