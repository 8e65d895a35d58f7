//! `fifo`: one stream after the other, in the order in which they came.

use super::{Group, Place, Plan, scheme};
use crate::tree::Order;

scheme!("fifo", "one stream after the other, the oldest first");

pub(super) const PLAN: Plan = Plan::new(&[Group::page(Order::Sequence)], |_| Place::within(0));
