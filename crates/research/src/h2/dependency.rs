//! A place in the dependency tree of HTTP/2.

use sutura_schedule::StreamKey;

/// The extension of a priority that [`H2`](super::H2) reads: a place in a dependency tree (RFC 7540,
/// section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dependency {
    /// The stream that this one depends on; `None` for the root. If it is the stream itself or not
    /// in the tree, all of the dependency counts as [`Dependency::DEFAULT`] (section 5.3.1).
    pub parent: Option<StreamKey>,
    /// 1 to 256; a weight of 0 counts as 1.
    pub weight: u16,
    /// Whether the parent's other dependants become dependants of this stream.
    pub exclusive: bool,
}

impl Dependency {
    /// On the root with weight 16 (RFC 7540, section 5.3.5).
    pub const DEFAULT: Self = Self { parent: None, weight: 16, exclusive: false };
}
