//! `zeroweight`: the proposal of the paper (Marx 2020, figure 11). Weight 255 is served first, one
//! stream after the other by stream key; then weights 254 to 1 share; then weight 0, again one
//! after the other.
//!
//! A [`Resource`] may have a weight of its own, which can be changed at any time with the priority of its
//! stream: to 255 or 0 to promote or demote it. Other resources have the weight of their kind.

use super::{Group, Kind, Place, Plan, Rank, Resource, scheme};
use crate::tree::Order;

scheme!("zeroweight", "weight 255 in sequence, then shares, then weight 0");

pub(super) const PLAN: Plan =
    Plan { rank: Rank::Key, ..Plan::new(GROUPS, |resource| place(resource, by_kind)) };

const FIRST: usize = 1;
const SHARED: usize = 2;
const LAST: usize = 3;

pub(super) const GROUPS: &[Group] = &[
    Group::page(Order::Sequence),
    Group::below(0, Order::Sequence),
    Group::below(0, Order::Shares),
    Group::below(0, Order::Sequence),
];

/// The place that the weight of a resource, or else the weight `by_kind`, stands for.
pub(super) fn place(resource: &Resource, by_kind: fn(&Resource) -> u8) -> Place {
    match resource.weight.unwrap_or_else(|| by_kind(resource)) {
        255 => Place::within(FIRST),
        0 => Place::within(LAST),
        weight => Place::weighing(weight.into(), SHARED),
    }
}

fn by_kind(resource: &Resource) -> u8 {
    match resource.kind {
        _ if resource.main => 255,
        Kind::Html | Kind::Css => 254,
        Kind::Js => 24,
        Kind::Font => 16,
        Kind::Image | Kind::Svg if resource.above_the_fold => 8,
        Kind::Image | Kind::Svg => 1,
        Kind::Xhr | Kind::Video | Kind::Other => 0,
    }
}
