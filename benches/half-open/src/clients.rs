//! Clients and the first datagrams of their handshakes.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;
use sutura_benches::Error;
use sutura_benches::tls::{Identity, aes_128_gcm};
use sutura_proto::crypto::rustls::RustlsClientConfig;
use sutura_proto::{ClientConfig, Endpoint, EndpointConfig, TransportConfig};

/// A client as the server sees it.
pub struct Client {
    pub address: SocketAddr,
    pub datagram: Vec<u8>,
}

/// `clients` clients at as many addresses of the loopback device.
pub fn first_datagrams(
    identity: &Identity,
    clients: usize,
    now: Instant,
) -> Result<Vec<Client>, Error> {
    let crypto = Arc::new(RustlsClientConfig::new(identity.client_tls(aes_128_gcm())?)?);
    let transport = Arc::new(TransportConfig::default().with_fec(None));
    let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, [7; 32]);
    let server = (Ipv4Addr::LOCALHOST, 443).into();
    let mut all = Vec::with_capacity(clients);
    for n in 0..clients {
        let config = ClientConfig::new(crypto.clone(), transport.clone());
        let (_, mut client) = endpoint.connect(now, config, server, "localhost")?;
        let mut datagram = Vec::new();
        client.poll_transmit(now, 1, &mut datagram).ok_or("a client says nothing")?;
        datagram.shrink_to_fit();
        let [_, a, b, c] = u32::try_from(n + 1)?.to_be_bytes();
        let address = (Ipv4Addr::new(127, a.wrapping_add(1), b, c), 4433).into();
        all.push(Client { address, datagram });
    }
    Ok(all)
}
