//! Who may go where, and how much of it.
//!
//! A proxy connects to whatever its clients name, so an open one lends them its place in the network: what
//! only trusts its neighbours ([`Special`] addresses: the machine itself, private networks) would trust them.
//! So nothing is allowed but what a rule of an [`AllowList`] allows, and special addresses only by rules that
//! name them. [`Limits`] say how much a client may use of what is allowed; a [`Meter`] counts it.

mod identity;
mod limits;
mod list;
mod name;
mod place;
mod rule;
mod special;
mod target;

pub use identity::Identity;
pub use limits::{Allowance, Limits, Meter, TooManyFlows};
pub use list::{AllowList, Denied};
pub use name::{InvalidName, MAX_NAME, Name};
pub use place::{Hosts, InvalidPlace, Place, Ports};
pub use rule::{AllowRule, InvalidRule};
pub use special::{Special, special};
pub use target::{Host, InvalidTarget, Target, Transport};
