//! Streams that the receiver stops because repair symbols completed them, as the client of Eghbal and Lu
//! 2025, section 4.2, does: the lost data need not be sent again.

use crate::ids::StreamId;
use std::collections::VecDeque;

/// The most streams that wait for their STOP_SENDING frame. The frame only saves bytes, so beyond this number
/// the oldest streams go without it.
pub(super) const MAX_WHOLE: usize = 64;

/// The streams to be stopped.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// The application error code, upon which the two ends agree; `None` to stop no stream.
    code: Option<u64>,
    due: VecDeque<StreamId>,
}

impl Whole {
    pub(super) fn new(code: Option<u64>) -> Self {
        Self { code, due: VecDeque::new() }
    }

    /// Whether the peer's STOP_SENDING with `code` says that the peer has the whole stream.
    pub(super) fn is_meant(&self, code: u64) -> bool {
        self.code == Some(code)
    }

    /// Repair completed a stream.
    pub(super) fn add(&mut self, id: StreamId) {
        if self.code.is_none() || self.due.contains(&id) {
            return;
        }
        if self.due.len() == MAX_WHOLE {
            self.due.pop_front();
        }
        self.due.push_back(id);
    }

    /// Whether no stream waits.
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// The next stream to be stopped, and the code.
    pub(super) fn next(&self) -> Option<(StreamId, u64)> {
        self.due.front().copied().zip(self.code)
    }

    /// The frame for the [next](Self::next) stream was written.
    pub(super) fn written(&mut self) {
        self.due.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Dir, Side};

    #[test]
    fn a_flood_of_streams_is_remembered_within_bounds() {
        let mut whole = Whole::new(Some(7));
        let id = |n| StreamId::new(Side::Server, Dir::Uni, n);
        for n in 0..1000 {
            whole.add(id(n));
            whole.add(id(n));
        }
        assert_eq!(whole.due.len(), MAX_WHOLE);
        assert_eq!(whole.next(), Some((id(1000 - MAX_WHOLE as u64), 7)));
        let mut never = Whole::new(None);
        never.add(id(0));
        assert!(never.is_empty());
    }
}
