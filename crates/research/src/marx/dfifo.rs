//! `dfifo`, dynamic FIFO: the scheme of Chrome over HTTP/2. Five levels, one stream after the other in each;
//! a stream of a higher level interrupts streams of lower levels.
//!
//! Chrome expresses the scheme by exclusive dependencies: each stream is inserted behind the last one of its
//! level or above. The weights that go with the levels then mean nothing.

use super::{Group, Kind, Place, Plan, Resource, is_data, scheme};
use crate::tree::Order;

scheme!("dfifo", "five levels by kind, in sequence, as in Chrome");

pub(super) const PLAN: Plan = Plan::new(
    &[
        Group::page(Order::Sequence),
        Group::below(0, Order::Sequence),
        Group::below(0, Order::Sequence),
        Group::below(0, Order::Sequence),
        Group::below(0, Order::Sequence),
        Group::below(0, Order::Sequence),
    ],
    |resource| Place::within(level(resource)),
);

const HIGHEST: usize = 1;
const HIGH: usize = 2;
const NORMAL: usize = 3;
const LOW: usize = 4;
const LOWEST: usize = 5;

/// The group of a resource.
pub(super) fn level(resource: &Resource) -> usize {
    match resource.kind {
        Kind::Js if resource.deferred => LOW,
        Kind::Js if resource.after_first_image => NORMAL,
        Kind::Js => HIGH,
        Kind::Html | Kind::Css | Kind::Font => HIGHEST,
        _ if is_data(resource) => HIGH,
        Kind::Image => LOW,
        _ => LOWEST,
    }
}
