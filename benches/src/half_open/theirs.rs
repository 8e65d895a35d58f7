//! quinn, without its async layer.

use crate::Server;
use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, DatagramEvent, Endpoint, EndpointConfig, Incoming, ServerConfig, TransportConfig,
};
use std::net::SocketAddr;
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
        })
    }
}

impl Server for Quinn {
    fn name(&self) -> &'static str {
        "quinn"
    }

    fn receive(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Result<(), Error> {
        self.out.clear();
        match self.endpoint.handle(now, from, None, None, BytesMut::from(datagram), &mut self.out) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.waiting.push(incoming);
                Ok(())
            }
            _ => Err("a client was not let in".into()),
        }
    }

    fn answer(&mut self, now: Instant) -> Result<usize, Error> {
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
