//! The eleven schemes of Marx 2020, "Resource Multiplexing and Prioritization in HTTP/2 over TCP
//! versus HTTP/3 over QUIC", section 5.
//!
//! Each is a plan in a file of its own: groups in a tree, and a rule that puts a [`Resource`], the
//! extension of a priority, into one of them. One scheduler runs them all.

mod plan;
mod planned;
mod resource;
#[cfg(test)]
mod tests;

pub use resource::{Kind, Resource};

use plan::{Group, Place, Plan, Rank, Yield, is_data, scheme};
use planned::Planned;
use sutura_schedule::{SchedulerFactory, policies};

policies! {
    /// The schemes of the paper, in its order.
    pub const SCHEDULERS: dyn SchedulerFactory = [
        pub rr,
        pub wrr,
        pub fifo,
        pub dfifo,
        pub firefox,
        pub firefox_measured,
        pub pplus,
        pub splus,
        pub spdyrr,
        pub bucket,
        pub bucket_html,
        pub zeroweight,
        pub zeroweight_atf,
    ];
}
