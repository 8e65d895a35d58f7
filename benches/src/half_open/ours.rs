//! Sutura.

use crate::Server;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use sutura_benches::Error;
use sutura_benches::tls::{Identity, aes_128_gcm};
use sutura_proto::crypto::rustls::RustlsServerConfig;
use sutura_proto::{
    Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, ServerConfig,
    TransportConfig,
};

/// The endpoint, its connections, and the datagrams of clients that wait, as `sutura` keeps them.
pub struct Sutura {
    endpoint: Endpoint,
    waiting: VecDeque<(SocketAddr, ConnectionHandle, Box<Connection>, Vec<u8>)>,
    connections: Vec<Box<Connection>>,
}

impl Sutura {
    pub fn new(identity: &Identity, clients: usize) -> Result<Self, Error> {
        let crypto = Arc::new(RustlsServerConfig::new(identity.server_tls(aes_128_gcm())?)?);
        let config = EndpointConfig {
            max_handshakes: clients,
            retry_above: None,
            ..EndpointConfig::default()
        };
        let server = ServerConfig { crypto, transport: Arc::new(TransportConfig::default()) };
        Ok(Self {
            endpoint: Endpoint::new(Arc::new(config), Some(Arc::new(server)), [9; 32]),
            waiting: VecDeque::with_capacity(clients),
            connections: Vec::with_capacity(clients),
        })
    }
}

impl Server for Sutura {
    fn name(&self) -> &'static str {
        "sutura"
    }

    fn receive(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Result<(), Error> {
        match self.endpoint.handle(now, from, datagram) {
            DatagramEvent::NewConnection(handle, connection) => {
                self.waiting.push_back((from, handle, connection, datagram.to_vec()));
                Ok(())
            }
            _ => Err("a client was not let in".into()),
        }
    }

    fn answer(&mut self, now: Instant) -> Result<usize, Error> {
        while let Some((from, handle, mut connection, mut datagram)) = self.waiting.pop_front() {
            connection.handle_datagram(now, from, None, &mut datagram);
            let mut out = Vec::new();
            while connection.poll_transmit(now, 10, &mut out).is_some() {
                out.clear();
            }
            while let Some(event) = connection.poll_endpoint_event() {
                self.endpoint.handle_event(handle, event);
            }
            while connection.poll_event().is_some() {}
            if !connection.is_closed() {
                self.connections.push(connection);
            }
        }
        Ok(self.connections.len())
    }
}
