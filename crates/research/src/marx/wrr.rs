//! `wrr`: the scheme of Safari. Every stream shares, by weights for kinds.

use super::{Group, Kind, Place, Plan, Resource, scheme};
use crate::tree::Order;

scheme!("wrr", "shares by the kind of resource, as in Safari");

pub(super) const PLAN: Plan =
    Plan::new(&[Group::page(Order::Shares)], |resource| Place::weighing(weight(resource), 0));

fn weight(resource: &Resource) -> u16 {
    match resource.kind {
        Kind::Html | Kind::Css => 256,
        Kind::Js => 24,
        Kind::Font => 16,
        Kind::Image | Kind::Svg | Kind::Xhr | Kind::Video | Kind::Other => 8,
    }
}
