//! The wire format: integers, packet headers, frames, transport parameters.
//!
//! Everything here converts between bytes and values, independent of any connection's state.
//! Decoding borrows from the input, does not allocate, and is total: any input results in a value
//! or an error.

pub mod code_id;
pub mod coding;
pub mod frame;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod fuzz;
pub mod packet;
pub mod range_set;
pub mod transport_parameters;
pub mod version;
