//! `spdyrr`: the levels of `dfifo` as strict priorities of SPDY, with turns of one packet in each.

use super::{Group, Place, Plan, dfifo, scheme};
use crate::tree::Order;

scheme!("spdyrr", "the levels of dfifo, in turns of one packet");

pub(super) const PLAN: Plan = Plan::new(
    &[
        Group::page(Order::Sequence),
        Group::below(0, Order::Turns),
        Group::below(0, Order::Turns),
        Group::below(0, Order::Turns),
        Group::below(0, Order::Turns),
        Group::below(0, Order::Turns),
    ],
    |resource| Place::within(dfifo::level(resource)),
);
