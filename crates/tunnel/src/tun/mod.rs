//! Whole machines in a tunnel: IP packets between a TUN device at each end (RFC 9484). Linux only.
//!
//! A packet that the device gives is classed by what its flow carries ([`flow`](crate::flow)), and becomes a datagram
//! with the deadline, the urgency and the protection of its class. A packet that the tunnel gives is
//! checked ([`PacketGate`]) and handed to the device. The kernels at both ends do the routing.

mod carrier;
mod connect;
mod device;
mod flows;
mod gate;
mod pool;
mod routes;
mod serve;

pub use connect::{Attached, IpClient, IpError};
pub use device::{Device, MAX_DEVICE_MTU};
pub use flows::MAX_TRACKED;
pub use gate::{Dropped, PacketGate};
pub use pool::{AddressPool, Full};
pub use serve::{IpNetwork, IpServed};
