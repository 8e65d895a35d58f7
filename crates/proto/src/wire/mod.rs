//! The wire: integers, packet headers, frames, transport parameters.

pub mod coding;
pub mod frame;
pub mod packet;
pub mod range_set;
pub mod transport_parameters;
