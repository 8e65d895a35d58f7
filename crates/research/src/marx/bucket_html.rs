//! `bucket-html`: [`bucket`], but documents go into the highest bucket.

use super::{Bucket, Kind, Plan, Rank, Resource, bucket, scheme};

scheme!("bucket-html", "bucket with documents in the highest one");

pub(super) const PLAN: Plan = Plan {
    rank: Rank::Key,
    ..Plan::new(bucket::GROUPS, |resource| bucket::place(resource, by_kind))
};

fn by_kind(resource: &Resource) -> Bucket {
    match resource.kind {
        Kind::Html if !resource.deferred => bucket::FIRST_SEQUENTIAL,
        _ => bucket::by_kind(resource),
    }
}
