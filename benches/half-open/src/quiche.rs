//! quiche.

use crate::clients::Client;
use crate::server::Server;
use boring::pkey::PKey;
use boring::ssl::{SslContextBuilder, SslMethod};
use boring::x509::X509;
use quiche::{Config, Connection, ConnectionId, PROTOCOL_VERSION, RecvInfo};
use std::net::{Ipv4Addr, SocketAddr};
use sutura_benches::Error;
use sutura_benches::tls::{ALPN, Identity};

/// More bytes than a datagram has.
const BUFFER: usize = 65_536;

/// The configuration and the connections. The map in which applications keep the connections is not counted.
pub struct Quiche {
    config: Config,
    connections: Vec<Box<Connection>>,
}

impl Quiche {
    pub fn new(identity: &Identity, clients: usize) -> Result<Self, Error> {
        let mut tls = SslContextBuilder::new(SslMethod::tls())?;
        tls.set_certificate(&*X509::from_der(identity.certificate())?)?;
        tls.set_private_key(&*PKey::private_key_from_der(identity.key())?)?;
        let mut config = Config::with_boring_ssl_ctx_builder(PROTOCOL_VERSION, tls)?;
        config.set_application_protos(&[ALPN])?;
        config.set_initial_max_data(1 << 20);
        config.set_initial_max_stream_data_bidi_remote(1 << 20);
        config.set_initial_max_streams_bidi(100);
        Ok(Self { config, connections: Vec::with_capacity(clients) })
    }
}

impl Server for Quiche {
    fn receive(&mut self, _clients: &[Client]) -> Result<bool, Error> {
        Ok(false)
    }

    fn answer(&mut self, clients: &[Client]) -> Result<usize, Error> {
        let to: SocketAddr = (Ipv4Addr::LOCALHOST, 443).into();
        let mut buffer = vec![0; BUFFER];
        for (n, Client { address, datagram }) in clients.iter().enumerate() {
            let id = (n as u128).to_be_bytes();
            let id = ConnectionId::from_ref(&id);
            let connection = quiche::accept(&id, None, to, *address, &mut self.config)?;
            let mut connection = Box::new(connection);
            let incoming = &mut buffer[..datagram.len()];
            incoming.copy_from_slice(datagram);
            connection.recv(incoming, RecvInfo { from: *address, to })?;
            while connection.send(&mut buffer).is_ok() {}
            if !connection.is_closed() && connection.local_error().is_none() {
                self.connections.push(connection);
            }
        }
        Ok(self.connections.len())
    }
}
