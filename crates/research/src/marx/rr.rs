//! `rr`: what Edge did before it was Chromium. Every stream has the same share.

use super::{Group, Place, Plan, Rank, scheme};
use crate::tree::Order;

scheme!("rr", "the same share for every stream, as in old Edge");

pub(super) const PLAN: Plan = Plan {
    groups: &[Group::page(Order::Shares)],
    place: |_| Place::within(0),
    rank: Rank::Arrival,
    yields: None,
};
