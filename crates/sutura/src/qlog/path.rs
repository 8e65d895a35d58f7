//! Events about the path.

use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use sutura_proto::EcnState;

/// The path has another remote end.
#[derive(Debug, Serialize)]
pub struct PathAssigned {
    path_remote: PathEndpoint,
}

impl PathAssigned {
    pub fn new(remote: SocketAddr) -> Self {
        let port = remote.port();
        let path_remote = match remote.ip().to_canonical() {
            IpAddr::V4(ip_v4) => PathEndpoint::V4 { ip_v4, port_v4: port },
            IpAddr::V6(ip_v6) => PathEndpoint::V6 { ip_v6, port_v6: port },
        };
        Self { path_remote }
    }
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum PathEndpoint {
    V4 { ip_v4: Ipv4Addr, port_v4: u16 },
    V6 { ip_v6: Ipv6Addr, port_v6: u16 },
}

/// The datagram size has changed.
#[derive(Debug, Serialize)]
pub struct MtuUpdated {
    pub old: u16,
    pub new: u16,
}

/// More is known about ECN.
#[derive(Debug, Serialize)]
pub struct EcnStateUpdated {
    new: &'static str,
}

impl EcnStateUpdated {
    pub fn new(state: EcnState) -> Self {
        let new = match state {
            EcnState::Testing => "testing",
            EcnState::Capable => "capable",
            EcnState::Failed => "failed",
        };
        Self { new }
    }
}
