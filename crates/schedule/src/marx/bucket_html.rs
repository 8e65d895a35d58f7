//! `bucket-html`: [`bucket`], but documents go into the highest bucket.

use super::{Place, Plan, Rank, bucket};
use crate::{Kind, Resource};

pub(crate) const PLAN: Plan = Plan {
    groups: bucket::GROUPS,
    place: |resource| Place::within(group(resource)),
    rank: Rank::Arrival,
    yields: None,
};

fn group(resource: &Resource) -> usize {
    match resource.kind {
        Kind::Html if !resource.deferred => bucket::B63_2,
        _ => bucket::group(resource),
    }
}
