//! Whole machines in a tunnel: IP packets between a TUN device at each end (RFC 9484). Only Linux
//! has the devices: elsewhere they cannot be made.
//!
//! A packet that the device gives is classed by what its flow carries ([`flow`](crate::flow)), and becomes a datagram
//! with the deadline, the urgency and the protection of its class. A packet that the tunnel gives is
//! checked ([`PacketGate`]) and handed to the device. The kernels at both ends do the routing.

mod agree;
mod carrier;
mod command;
mod connect;
mod device;
mod flows;
mod gate;
mod permit;
mod pool;
mod routes;
mod serve;
mod ways;

pub(crate) use connect::PacketCounts;
pub use connect::{Attached, IpClient, IpError};
pub use device::{Device, MAX_DEVICE_MTU};
pub use flows::MAX_TRACKED;
pub use gate::{Dropped, PacketGate};
pub use permit::Permit;
pub use pool::{AddressPool, Full};
pub use serve::IpNetwork;
pub(crate) use serve::Lease;
