//! `wrr-critical`: [`wrr`](super::wrr) with the weight of documents for all resources that a page cannot be
//! shown without, and the weight of images for scripts which nothing waits for.
//!
//! The published code goes by the kind alone, so that a script of the head shares with any other script.
//! With these weights the figures of the paper's Table 2 come out, see `docs/experiments-pages.md`.

use super::{Group, Kind, Place, Plan, Resource, scheme};
use crate::tree::Order;

scheme!("wrr-critical", "wrr, with scripts of the head and fonts as heavy as documents");

pub(super) const PLAN: Plan =
    Plan::new(&[Group::page(Order::Shares)], |resource| Place::weighing(weight(resource), 0));

fn weight(resource: &Resource) -> u16 {
    match resource.kind {
        Kind::Html | Kind::Css | Kind::Font => 256,
        Kind::Js if resource.in_head || resource.critical => 256,
        Kind::Js if !resource.deferred => 24,
        _ => 8,
    }
}
