//! `rr`: what Edge did before it was Chromium. Every stream has the same share.

use super::{Group, Place, Plan, Rank};
use crate::tree::Order;

pub(crate) const PLAN: Plan = Plan {
    groups: &[Group::page(Order::Shares)],
    place: |_| Place::within(0),
    rank: Rank::Arrival,
    yields: None,
};
