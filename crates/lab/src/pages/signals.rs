//! The priority that a browser signals for a resource (RFC 9218).

use sutura_research::marx::{Kind, Resource};

/// Urgency and incremental flag as Chrome 115 signals them.
#[must_use]
pub const fn chrome(resource: &Resource) -> (u8, bool) {
    match resource.kind {
        Kind::Html => (0, true),
        Kind::Css if resource.in_head => (0, false),
        Kind::Css => (2, false),
        Kind::Js if resource.deferred => (3, false),
        Kind::Js if resource.after_first_image => (2, false),
        Kind::Js => (1, false),
        Kind::Font if resource.preload => (1, false),
        Kind::Font => (0, false),
        Kind::Xhr => (1, true),
        Kind::Image | Kind::Svg | Kind::Video => (3, true),
        Kind::Other => (3, false),
    }
}
