//! `firefox`: the tree that Firefox builds over HTTP/2 (Marx 2020, figure 6).

use super::{Group, Kind, Place, Plan, Resource, is_data, scheme};
use crate::tree::Order;

scheme!("firefox", "weighted groups by kind, as in Firefox");

pub(super) const PLAN: Plan =
    Plan::new(GROUPS, |resource| Place::weighing(weight(resource), group(resource)));

const PAGE: usize = 0;
const LEADERS: usize = 1;
const FOLLOWERS: usize = 2;
const UNBLOCKED: usize = 3;
const BACKGROUND: usize = 4;
const SPECULATIVE: usize = 5;

pub(super) const GROUPS: &[Group] = &[
    Group::page(Order::Shares),
    Group::weighing(201, PAGE, Order::Shares),
    // A further group among the leaders' streams, with little weight.
    Group::weighing(1, LEADERS, Order::Shares),
    Group::weighing(101, PAGE, Order::Shares),
    Group::weighing(1, PAGE, Order::Shares),
    Group::weighing(1, BACKGROUND, Order::Shares),
];

pub(super) fn group(resource: &Resource) -> usize {
    match resource.kind {
        Kind::Js if resource.deferred && !resource.in_head => UNBLOCKED,
        Kind::Js => LEADERS,
        _ if resource.preload => SPECULATIVE,
        Kind::Html => FOLLOWERS,
        _ if is_data(resource) => UNBLOCKED,
        Kind::Image | Kind::Font => FOLLOWERS,
        Kind::Css => LEADERS,
        _ => BACKGROUND,
    }
}

/// Pictures are looked for first here, so that SVG, which is data to [`group`], is one.
fn weight(resource: &Resource) -> u16 {
    match resource.kind {
        Kind::Image | Kind::Svg => 22,
        Kind::Js | Kind::Html | Kind::Css | Kind::Xhr => 32,
        Kind::Font => 42,
        Kind::Video | Kind::Other => 16,
    }
}
