//! What is known of a flow before it has carried anything.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::dscp::Dscp;
use crate::access::{Host, Name, Target, Transport};

/// What is known of a flow before it has carried anything. Both directions of a flow have the same: source and
/// destination are those of its first packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowInfo {
    /// TCP, UDP, or IP packets with anything else in them.
    pub transport: Transport,
    /// Who sent the first packet, if that is known.
    pub source: Option<IpAddr>,
    /// Where it went. Port 0 where there are none.
    pub destination: SocketAddr,
    /// The name that was asked for, if it was one.
    pub name: Option<Name>,
    /// How the first packet was marked.
    pub dscp: Dscp,
}

impl FlowInfo {
    /// A flow of which only this is known.
    #[must_use]
    pub fn to(transport: Transport, destination: SocketAddr) -> Self {
        Self { transport, source: None, destination, name: None, dscp: Dscp::default() }
    }

    /// A flow that a client asked for, whose target has this address, if that is known.
    #[must_use]
    pub fn asked(transport: Transport, target: &Target, resolved: Option<SocketAddr>) -> Self {
        let (ip, name) = match &target.host {
            Host::Ip(ip) => (*ip, None),
            Host::Name(name) => (Ipv6Addr::UNSPECIFIED.into(), Some(name.clone())),
        };
        let destination = resolved.unwrap_or((ip, target.port).into());
        Self { name, ..Self::to(transport, destination) }
    }
}
