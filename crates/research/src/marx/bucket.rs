//! `bucket`: Meenan's proposal for HTTP/3 of 2019 (Marx 2020, figure 10).
//!
//! Strict buckets, 63 first. Within a bucket the streams of concurrency 3 go first, one after the other.
//! Then packets alternate between the streams of concurrency 2, served one after the other, and the streams
//! of concurrency 1, which take turns; concurrency 2 begins. If one of the two kinds has nothing to send, the
//! other gets its packets.
//!
//! A [`Resource`] may have a byte of its own, which can be changed at any time with the priority of its
//! stream. Other resources have the byte of their kind in figure 10, where a page uses 63, 31 and 0.

use super::{Bucket, Concurrency, Group, Kind, Place, Plan, Rank, Resource, is_data, scheme};
use crate::tree::Order;

scheme!("bucket", "the buckets by kind that Meenan proposed");

pub(super) const PLAN: Plan =
    Plan { rank: Rank::Key, ..Plan::new(GROUPS, |resource| place(resource, by_kind)) };

const PAGE: usize = 0;
/// The groups of a bucket: the bucket itself, concurrency 3, and concurrency 1 and 2, together and alone.
const PER_BUCKET: usize = 5;
const BUCKETS: usize = Bucket::MAX_PRIORITY as usize + 1;

pub(super) const GROUPS: &[Group] = &groups();

/// The groups of all buckets, the first bucket first.
const fn groups() -> [Group; 1 + BUCKETS * PER_BUCKET] {
    let mut groups = [const { Group::page(Order::Sequence) }; 1 + BUCKETS * PER_BUCKET];
    let mut bucket = 1;
    while bucket < groups.len() {
        let shared = bucket + 2;
        groups[bucket] = Group::below(PAGE, Order::Sequence);
        groups[bucket + 1] = Group::below(bucket, Order::Sequence);
        groups[shared] = Group::below(bucket, Order::Turns);
        groups[bucket + 3] = Group::below(shared, Order::Sequence);
        groups[bucket + 4] = Group::below(shared, Order::Turns);
        bucket += PER_BUCKET;
    }
    groups
}

/// The place that the byte of a resource, or else the byte `by_kind`, stands for.
pub(super) fn place(resource: &Resource, by_kind: fn(&Resource) -> Bucket) -> Place {
    let bucket = resource.bucket.unwrap_or_else(|| by_kind(resource));
    let first = 1 + usize::from(Bucket::MAX_PRIORITY - bucket.priority()) * PER_BUCKET;
    Place::within(match bucket.concurrency() {
        Concurrency::ExclusiveSequential => first + 1,
        Concurrency::SharedSequential => first + 3,
        Concurrency::Shared => first + 4,
    })
}

const FIRST_EXCLUSIVE: Bucket = Bucket::at(63, Concurrency::ExclusiveSequential);
pub(super) const FIRST_SEQUENTIAL: Bucket = Bucket::at(63, Concurrency::SharedSequential);
const FIRST_SHARED: Bucket = Bucket::at(63, Concurrency::Shared);
const MIDDLE_EXCLUSIVE: Bucket = Bucket::at(31, Concurrency::ExclusiveSequential);
const MIDDLE_SEQUENTIAL: Bucket = Bucket::at(31, Concurrency::SharedSequential);
const MIDDLE_SHARED: Bucket = Bucket::at(31, Concurrency::Shared);
const LAST_SEQUENTIAL: Bucket = Bucket::at(0, Concurrency::SharedSequential);

/// The bucket and the concurrency of a resource in figure 10.
pub(super) fn by_kind(resource: &Resource) -> Bucket {
    let needed = resource.in_head || resource.critical;
    match resource.kind {
        _ if resource.deferred => MIDDLE_SEQUENTIAL,
        Kind::Js | Kind::Css if needed => FIRST_EXCLUSIVE,
        Kind::Js | Kind::Css => MIDDLE_EXCLUSIVE,
        _ if is_data(resource) => MIDDLE_EXCLUSIVE,
        Kind::Font if resource.preload => MIDDLE_SEQUENTIAL,
        Kind::Font => FIRST_SEQUENTIAL,
        Kind::Html => MIDDLE_SEQUENTIAL,
        Kind::Image if resource.above_the_fold => FIRST_SHARED,
        Kind::Image | Kind::Video => MIDDLE_SHARED,
        _ => LAST_SEQUENTIAL,
    }
}
