//! The eleven schemes of Marx 2020, "Resource Multiplexing and Prioritization in HTTP/2 over TCP
//! versus HTTP/3 over QUIC", section 5.
//!
//! Each scheme is a plan in a file of its own: groups in a tree, and a rule that puts a [`Resource`], the
//! extension of a priority, into one of them. One scheduler runs them all.

mod goes_by;
mod place_byte;
mod plan;
mod planned;
mod resource;
#[cfg(test)]
mod tests;

pub use place_byte::{Bucket, Concurrency};
pub use resource::{Aspect, Kind, Resource};

pub use goes_by::GoesBy;
use plan::{Group, Place, Plan, Rank, Yield, is_data, scheme};
use planned::Planned;
use sutura_schedule::{SchedulerFactory, policies};

/// Declares the schemes, and lists the factory and the plan of each.
macro_rules! schemes {
    ($(#[$meta:meta])* [$($module:ident),* $(,)?]) => {
        policies! {
            $(#[$meta])*
            pub const SCHEDULERS: dyn SchedulerFactory = [$(pub $module),*];
        }

        const PLANS: &[(&str, &Plan)] = &[$(($module::SCHEME.name(), &$module::PLAN)),*];
    };
}

schemes! {
    /// The schemes of the paper, in its order.
    [
        rr,
        wrr,
        wrr_critical,
        fifo,
        dfifo,
        firefox,
        firefox_measured,
        pplus,
        splus,
        spdyrr,
        bucket,
        bucket_html,
        zeroweight,
        zeroweight_atf,
    ]
}

/// The properties of a resource that matter to the scheme `name`. `None` if there is no such scheme.
#[must_use]
pub fn goes_by(name: &str) -> Option<GoesBy> {
    let (_, plan) = PLANS.iter().find(|(known, _)| *known == name)?;
    Some(GoesBy::of(plan))
}
