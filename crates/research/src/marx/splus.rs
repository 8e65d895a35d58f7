//! `s+`, serial plus (Wijnants 2018): two sequences, and Firefox's tree for the rest.

use super::{Group, Kind, Place, Plan, Rank, Resource, Yield, is_data, scheme};
use crate::tree::Order;

scheme!("splus", "two sequences, then the groups of firefox");

pub(super) const PLAN: Plan = Plan {
    // The groups of Firefox that a resource can get into, and the leaders above the followers.
    groups: &[
        Group::page(Order::Shares),
        Group::weighing(256, PAGE, Order::Sequence),
        Group::weighing(256, PAGE, Order::Sequence),
        Group::weighing(1, PAGE, Order::Shares),
        Group::weighing(201, LOW, Order::Shares),
        Group::weighing(1, LEADERS, Order::Shares),
        Group::weighing(1, LOW, Order::Shares),
        Group::weighing(1, BACKGROUND, Order::Shares),
    ],
    place: |resource| Place::within(group(resource)),
    rank: Rank::Arrival,
    yields: Some(Yield { group: MEDIUM, to: HIGH, weight: 1 }),
};

const PAGE: usize = 0;
const HIGH: usize = 1;
const MEDIUM: usize = 2;
const LOW: usize = 3;
const LEADERS: usize = 4;
const FOLLOWERS: usize = 5;
const BACKGROUND: usize = 6;
const SPECULATIVE: usize = 7;

fn group(resource: &Resource) -> usize {
    match resource.kind {
        Kind::Js if resource.deferred || !resource.in_head => MEDIUM,
        Kind::Js => HIGH,
        _ if resource.preload => SPECULATIVE,
        Kind::Html => FOLLOWERS,
        _ if is_data(resource) => MEDIUM,
        Kind::Image | Kind::Font => FOLLOWERS,
        Kind::Css => HIGH,
        _ => BACKGROUND,
    }
}
