//! `zeroweight-atf`: [`zeroweight`] with weights for the resources that a page needs above the fold: 255 for
//! critical ones, 0 for those that can wait.

use super::{Kind, Plan, Rank, Resource, scheme, zeroweight};

scheme!("zeroweight-atf", "zeroweight, with what is above the fold first");

pub(super) const PLAN: Plan = Plan {
    rank: Rank::Key,
    ..Plan::new(zeroweight::GROUPS, |resource| zeroweight::place(resource, by_kind))
};

fn by_kind(resource: &Resource) -> u8 {
    match resource.kind {
        _ if resource.main => 255,
        Kind::Css | Kind::Js if resource.critical => 255,
        Kind::Font => 255,
        Kind::Image | Kind::Svg if resource.above_the_fold => 255,
        Kind::Html | Kind::Css => 254,
        Kind::Js if resource.deferred => 0,
        Kind::Js | Kind::Xhr => 24,
        Kind::Image | Kind::Svg | Kind::Video | Kind::Other => 0,
    }
}
