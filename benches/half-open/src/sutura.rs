//! Sutura.

use crate::clients::Client;
use crate::server::Server;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use sutura_benches::Error;
use sutura_benches::tls::{Identity, aes_128_gcm};
use sutura_proto::crypto::rustls::RustlsServerConfig;
use sutura_proto::{
    Connection, DatagramEvent, Endpoint, EndpointConfig, Incoming, ServerConfig, TransportConfig,
};

/// The endpoint, its connections, and the datagrams of clients that wait, as `sutura` keeps them.
pub struct Sutura {
    endpoint: Endpoint,
    waiting: VecDeque<(Incoming, Vec<u8>)>,
    connections: Vec<Box<Connection>>,
    now: Instant,
}

impl Sutura {
    pub fn new(identity: &Identity, clients: usize) -> Result<Self, Error> {
        let crypto = Arc::new(RustlsServerConfig::new(identity.server_tls(aes_128_gcm())?)?);
        let config = EndpointConfig::default().with_max_handshakes(clients).with_retry_above(None);
        let server = ServerConfig::new(crypto, Arc::new(TransportConfig::default()));
        Ok(Self {
            endpoint: Endpoint::new(Arc::new(config), Some(Arc::new(server)), [9; 32]),
            waiting: VecDeque::with_capacity(clients),
            connections: Vec::with_capacity(clients),
            now: Instant::now(),
        })
    }
}

impl Server for Sutura {
    fn receive(&mut self, clients: &[Client]) -> Result<bool, Error> {
        for Client { address, datagram } in clients {
            let DatagramEvent::NewConnection(client) =
                self.endpoint.handle(self.now, *address, datagram)
            else {
                return Err("a client was not let in".into());
            };
            self.waiting.push_back((client, datagram.clone()));
        }
        Ok(true)
    }

    fn answer(&mut self, _clients: &[Client]) -> Result<usize, Error> {
        let now = self.now;
        while let Some((client, mut datagram)) = self.waiting.pop_front() {
            let (from, handle) = (client.remote_address(), client.handle());
            let Some(mut connection) = self.endpoint.accept(now, client) else { continue };
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
