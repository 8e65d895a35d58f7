//! This stack against quinn and h3, in both roles, over loopback and over a lossy link.

mod early;
mod http;
mod lossy;
mod migration;
mod peers;
mod quic;
mod transport;
