//! `p+`, parallel plus (Wijnants 2018): important streams one after the other, and beside them a trickle of
//! the rest.

use super::{Group, Kind, Place, Plan, Rank, Resource, Yield, is_data, scheme};
use crate::tree::Order;

scheme!("pplus", "what is important in sequence, beside a trickle of the rest");

pub(super) const PLAN: Plan = Plan {
    groups: &[
        Group::page(Order::Shares),
        Group::weighing(256, PAGE, Order::Sequence),
        Group::weighing(256, PAGE, Order::Shares),
        Group::weighing(1, PAGE, Order::Shares),
    ],
    place,
    rank: Rank::Arrival,
    yields: Some(Yield { group: NORMAL, to: HIGH, weight: 1 }),
};

const PAGE: usize = 0;
const HIGH: usize = 1;
const NORMAL: usize = 2;
const LOW: usize = 3;

fn place(resource: &Resource) -> Place {
    let low = Place::weighing(110, LOW);
    match resource.kind {
        Kind::Js if resource.deferred => low,
        Kind::Js if resource.after_first_image => Place::weighing(183, NORMAL),
        Kind::Js | Kind::Html | Kind::Css | Kind::Font => Place::weighing(256, HIGH),
        _ if is_data(resource) => Place::weighing(256, HIGH),
        _ => low,
    }
}
