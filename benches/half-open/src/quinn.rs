//! quinn, without its async layer.

use crate::clients::Client;
use crate::server::Server;
use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, DatagramEvent, Endpoint, EndpointConfig, Incoming, ServerConfig, TransportConfig,
};
use std::sync::Arc;
use std::time::Instant;
use sutura_benches::Error;
use sutura_benches::tls::{Identity, aes_128_gcm};

/// The endpoint, its connections, and the clients that wait.
pub struct Quinn {
    endpoint: Endpoint,
    waiting: Vec<Incoming>,
    connections: Vec<Box<Connection>>,
    out: Vec<u8>,
    now: Instant,
}

impl Quinn {
    pub fn new(identity: &Identity, clients: usize) -> Result<Self, Error> {
        let tls = identity.server_tls(aes_128_gcm())?;
        let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
        config
            .transport_config(Arc::new(TransportConfig::default()))
            .max_incoming(clients + 1)
            .incoming_buffer_size_total(1 << 30);
        let endpoint = EndpointConfig::default();
        Ok(Self {
            endpoint: Endpoint::new(Arc::new(endpoint), Some(Arc::new(config)), true, None),
            waiting: Vec::with_capacity(clients),
            connections: Vec::with_capacity(clients),
            out: Vec::new(),
            now: Instant::now(),
        })
    }
}

impl Server for Quinn {
    fn receive(&mut self, clients: &[Client]) -> Result<bool, Error> {
        for Client { address, datagram } in clients {
            self.out.clear();
            let datagram = BytesMut::from(&datagram[..]);
            let Some(DatagramEvent::NewConnection(incoming)) =
                self.endpoint.handle(self.now, *address, None, None, datagram, &mut self.out)
            else {
                return Err("a client was not let in".into());
            };
            self.waiting.push(incoming);
        }
        Ok(true)
    }

    fn answer(&mut self, _clients: &[Client]) -> Result<usize, Error> {
        let now = self.now;
        for incoming in std::mem::take(&mut self.waiting) {
            self.out.clear();
            let accepted = self.endpoint.accept(incoming, now, &mut self.out, None);
            let (handle, mut connection) = accepted.map_err(|error| error.cause)?;
            let mut out = Vec::new();
            while connection.poll_transmit(now, 10, &mut out).is_some() {
                out.clear();
            }
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(handle, event) {
                    connection.handle_event(event);
                }
            }
            while connection.poll().is_some() {}
            if !connection.is_closed() {
                self.connections.push(Box::new(connection));
            }
        }
        Ok(self.connections.len())
    }
}
