//! `bucket-html`: [`bucket`], but documents go into the highest bucket.

use super::{Kind, Place, Plan, Resource, bucket, scheme};

scheme!("bucket-html", "bucket with documents in the highest one");

pub(super) const PLAN: Plan = Plan::new(bucket::GROUPS, |resource| Place::within(group(resource)));

fn group(resource: &Resource) -> usize {
    match resource.kind {
        Kind::Html if !resource.deferred => bucket::B63_2,
        _ => bucket::group(resource),
    }
}
