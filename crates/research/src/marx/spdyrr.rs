//! `spdyrr`: the levels of `dfifo` as strict priorities of SPDY, with turns of one packet in each.

use super::{Group, Place, Plan, Rank, dfifo, scheme};
use crate::tree::Order;

scheme!("spdyrr", "the levels of dfifo, in turns of one packet");

pub(super) const PLAN: Plan = Plan {
    groups: &[
        Group::page(Order::Sequence),
        Group::below(0, Order::Turns),
        Group::below(0, Order::Turns),
        Group::below(0, Order::Turns),
        Group::below(0, Order::Turns),
        Group::below(0, Order::Turns),
    ],
    place: |resource| Place::within(dfifo::level(resource)),
    rank: Rank::Arrival,
    yields: None,
};
