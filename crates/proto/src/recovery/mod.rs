//! Loss recovery (RFC 9002).

pub mod ack;
pub mod loss;
pub mod rtt;
pub mod sent;
pub mod token;
