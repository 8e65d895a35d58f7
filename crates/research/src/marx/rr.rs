//! `rr`: the scheme of Edge before it was based on Chromium. Every stream has the same share.

use super::{Group, Place, Plan, scheme};
use crate::tree::Order;

scheme!("rr", "the same share for every stream, as in old Edge");

pub(super) const PLAN: Plan = Plan::new(&[Group::page(Order::Shares)], |_| Place::within(0));
