//! IP packets in a tunnel (RFC 9484): what is read of them and changed in them, the ICMP messages that answer
//! them, and the capsules by which the ends agree on addresses and routes.

mod capsules;
pub(crate) mod checksum;
mod icmp;
mod mss;
mod packet;
mod path;

use std::net::IpAddr;

pub use capsules::{
    AddressRequest, AddressedCapsule, AssignedAddress, InvalidCapsule, IpRange, MAX_ADDRESSES,
    MAX_ROUTES, everywhere,
};
pub use icmp::{Answer, answer};
pub use mss::clamp_mss;
#[cfg(test)]
pub(crate) use packet::tests;
pub use packet::{
    Expired, Header, InvalidPacket, Part, TCP, UDP, decrement_hops, ecn, ports, set_ecn,
};
pub use path::{InvalidScope, SCOPE_PATH, Scope, ScopeTarget};

/// The smallest MTU of IPv6 (RFC 8200 section 5), in bytes.
pub const MIN_MTU: usize = 1280;

/// 4 or 6.
fn version(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 4 } else { 6 }
}
