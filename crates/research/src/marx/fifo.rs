//! `fifo`: one stream after the other, in the order in which they came.

use super::{Group, Place, Plan, Rank, scheme};
use crate::tree::Order;

scheme!("fifo", "one stream after the other, the oldest first");

pub(super) const PLAN: Plan = Plan {
    groups: &[Group::page(Order::Sequence)],
    place: |_| Place::within(0),
    rank: Rank::Arrival,
    yields: None,
};
