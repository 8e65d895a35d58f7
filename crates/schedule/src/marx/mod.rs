//! The eleven schemes of Marx 2020, "Resource Multiplexing and Prioritization in HTTP/2 over TCP
//! versus HTTP/3 over QUIC", section 5.
//!
//! Each is a [`Plan`] in a file of its own: groups in a tree, and a rule that puts a
//! [`Resource`](crate::Resource) into one of them. [`Planned`] runs them all.

pub(crate) mod bucket;
pub(crate) mod bucket_html;
pub(crate) mod dfifo;
pub(crate) mod fifo;
pub(crate) mod firefox;
mod plan;
mod planned;
pub(crate) mod pplus;
pub(crate) mod rr;
pub(crate) mod spdyrr;
pub(crate) mod splus;
#[cfg(test)]
mod tests;
pub(crate) mod wrr;
pub(crate) mod zeroweight;

use plan::{Group, Place, Plan, Rank, Yield, is_data};
pub(crate) use planned::Planned;
