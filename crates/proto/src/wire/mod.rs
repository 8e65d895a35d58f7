//! The wire: integers, packet headers, frames, transport parameters.
//!
//! Everything here turns bytes into values and back and knows nothing of a connection's state.
//! Decoding borrows from the input, allocates nothing, and is total: any input is a value or an
//! error.

pub mod code_id;
pub mod coding;
pub mod frame;
#[doc(hidden)]
pub mod fuzz;
pub mod packet;
pub mod range_set;
pub mod transport_parameters;
