//! `bucket`: Meenan's proposal for HTTP/3 of 2019 (Marx 2020, figure 10).
//!
//! Strict buckets, of which a page uses 63, 31 and 0. Within a bucket the streams of concurrency 3
//! go first, one after the other. Then one packet each: a stream of concurrency 2, which are served
//! one after the other, and a stream of concurrency 1, which take turns. Whichever of the two kinds
//! has nothing to send leaves its packet to the other, and concurrency 2 begins.

use super::{Group, Kind, Place, Plan, Resource, is_data, scheme};
use crate::tree::Order;

scheme!("bucket", "the buckets by kind that Meenan proposed");

pub(super) const PLAN: Plan = Plan::new(GROUPS, |resource| Place::within(group(resource)));

const PAGE: usize = 0;
const B63: usize = 1;
const B63_3: usize = 2;
const B63_SHARED: usize = 3;
pub(super) const B63_2: usize = 4;
const B63_1: usize = 5;
const B31: usize = 6;
const B31_3: usize = 7;
const B31_SHARED: usize = 8;
const B31_2: usize = 9;
const B31_1: usize = 10;
const B0_2: usize = 11;

pub(super) const GROUPS: &[Group] = &[
    Group::page(Order::Sequence),
    Group::below(PAGE, Order::Sequence),
    Group::below(B63, Order::Sequence),
    Group::below(B63, Order::Turns),
    Group::below(B63_SHARED, Order::Sequence),
    Group::below(B63_SHARED, Order::Turns),
    Group::below(PAGE, Order::Sequence),
    Group::below(B31, Order::Sequence),
    Group::below(B31, Order::Turns),
    Group::below(B31_SHARED, Order::Sequence),
    Group::below(B31_SHARED, Order::Turns),
    Group::below(PAGE, Order::Sequence),
];

/// The bucket and the concurrency of a resource.
pub(super) fn group(resource: &Resource) -> usize {
    let needed = resource.in_head || resource.critical;
    match resource.kind {
        _ if resource.deferred => B31_2,
        Kind::Js | Kind::Css if needed => B63_3,
        Kind::Js | Kind::Css => B31_3,
        _ if is_data(resource) => B31_3,
        Kind::Font if resource.preload => B31_2,
        Kind::Font => B63_2,
        Kind::Html => B31_2,
        Kind::Image if resource.above_the_fold => B63_1,
        Kind::Image | Kind::Video => B31_1,
        _ => B0_2,
    }
}
