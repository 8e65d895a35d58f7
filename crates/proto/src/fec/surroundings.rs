//! What a coding session is told of the rest of its connection.

use super::redundancy::{Message, PathView};
use crate::wire::code_id::CodeSet;
use std::time::Instant;

/// The state of the connection that a session passes to its policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    /// Whether the session has new data that can be sent.
    pub(crate) has_source: bool,
    /// Bytes that were written to streams of the session and never sent.
    pub(crate) left: u64,
    /// Bytes that the peer buffers for the session's streams.
    pub(crate) buffer: u64,
    /// Whether nothing but redundancy waits to be sent on the whole connection.
    pub(crate) idle: bool,
    /// Number of new bytes that the connection's flow control allows.
    pub(crate) credit: u64,
    /// The last message announced on a stream of the session.
    pub(crate) message: Option<Message>,
    /// When the application will write its next message, if it said so.
    pub(crate) next_message: Option<Instant>,
    /// The codes that the peer accepts.
    pub(crate) codes: CodeSet,
    /// The state of the path.
    pub(crate) path: &'a PathView,
}

#[cfg(test)]
impl Default for Surroundings<'_> {
    /// A path before the first measurement, and nothing to send.
    fn default() -> Self {
        static PATH: std::sync::LazyLock<PathView> = std::sync::LazyLock::new(PathView::default);
        Self {
            has_source: false,
            left: 0,
            buffer: 0,
            idle: false,
            credit: 0,
            message: None,
            next_message: None,
            codes: CodeSet::default(),
            path: &PATH,
        }
    }
}
