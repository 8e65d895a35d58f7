//! `fifo`: one stream after the other, in the order in which they came.

use super::{Group, Place, Plan, Rank};
use crate::tree::Order;

pub(crate) const PLAN: Plan = Plan {
    groups: &[Group::page(Order::Sequence)],
    place: |_| Place::within(0),
    rank: Rank::Arrival,
    yields: None,
};
