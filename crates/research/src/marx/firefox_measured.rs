//! `firefox-measured`: [`firefox`] with the weights that the paper's figures were measured with: its
//! test for scripts held for everything but pictures.

use super::{Kind, Place, Plan, Resource, firefox, scheme};

scheme!("firefox-measured", "firefox with the weights of a published measurement");

pub(super) const PLAN: Plan = Plan::new(firefox::GROUPS, |resource| {
    Place::weighing(weight(resource), firefox::group(resource))
});

fn weight(resource: &Resource) -> u16 {
    match resource.kind {
        Kind::Image | Kind::Svg => 22,
        Kind::Js | Kind::Html | Kind::Css | Kind::Xhr | Kind::Font | Kind::Video | Kind::Other => {
            32
        }
    }
}
