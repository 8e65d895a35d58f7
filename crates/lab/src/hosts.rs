//! Ends of connections in a simulated network: their addresses, and their settings without encryption.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use sutura_proto::crypto::null::{NullClientConfig, NullServerConfig};
use sutura_proto::{ClientConfig, ServerConfig, TransportConfig};
use sutura_sim::Host;

/// The name of servers.
pub const NAME: &str = "server.example";

/// A client's address.
pub fn client_at(host: u8, port: u16) -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, host), port).into()
}

/// A server's address.
pub fn server_at(host: u8) -> SocketAddr {
    (Ipv4Addr::new(198, 51, 100, host), 4433).into()
}

/// The configuration of a client.
pub fn client_config(alpn: &[u8], transport: Arc<TransportConfig>) -> ClientConfig {
    ClientConfig::new(Arc::new(NullClientConfig::new(vec![alpn.to_vec()])), transport)
}

/// The configuration of a server.
pub fn server_config(alpn: &[u8], transport: Arc<TransportConfig>) -> Arc<ServerConfig> {
    let crypto = Arc::new(NullServerConfig::new(vec![alpn.to_vec()]));
    Arc::new(ServerConfig::new(crypto, transport))
}

/// Why an application or a connection of a host failed.
pub fn error(host: &Host) -> Option<String> {
    let failed = host.app_error().map(ToString::to_string);
    failed.or_else(|| Some(host.connection_error()?.to_string()))
}
