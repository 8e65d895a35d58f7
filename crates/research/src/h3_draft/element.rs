//! The elements that have a place in the tree.

use sutura_schedule::StreamKey;

/// Most placeholders of a connection: the number that a server of the drafts would announce.
pub const MAX_PLACEHOLDERS: u64 = 16;

/// The key of the first placeholder: beyond the keys of streams, which are below 2^62 (RFC 9000, section
/// 2.1).
const FIRST_PLACEHOLDER: StreamKey = 1 << 62;

/// A request, or a placeholder, in the tree of [`H3Draft`](super::H3Draft).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// The request on this stream.
    Request(StreamKey),
    /// The placeholder with this number, below [`MAX_PLACEHOLDERS`]; larger ones are never in the tree.
    Placeholder(u64),
}

impl Element {
    /// The key by which the scheduler knows it.
    #[must_use]
    pub const fn key(self) -> StreamKey {
        match self {
            Self::Request(stream) => stream,
            Self::Placeholder(number) => FIRST_PLACEHOLDER.saturating_add(number),
        }
    }

    /// Whether `key` is the key of a possible placeholder.
    pub(super) const fn is_placeholder(key: StreamKey) -> bool {
        FIRST_PLACEHOLDER <= key && key < FIRST_PLACEHOLDER + MAX_PLACEHOLDERS
    }

    /// Whether it may be in the tree.
    pub(super) const fn is_permitted(self) -> bool {
        match self {
            Self::Request(stream) => stream < FIRST_PLACEHOLDER,
            Self::Placeholder(number) => number < MAX_PLACEHOLDERS,
        }
    }
}
