//! Events for the application.

use crate::ids::{Dir, StreamId};
use std::collections::VecDeque;

/// A stream event that the application should handle.
///
/// Each event is queued at most once per stream or direction, so the number of streams bounds the
/// queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamEvent {
    /// The peer opened streams. Accept streams until none is left.
    Opened {
        /// The direction.
        dir: Dir,
    },
    /// Streams can be opened again, after an attempt failed.
    Available {
        /// The direction.
        dir: Dir,
    },
    /// Bytes, the end of the stream, or a reset can be read. Read until blocked.
    Readable {
        /// The stream.
        id: StreamId,
    },
    /// There is room in the send buffer again, after a write was blocked.
    Writable {
        /// The stream.
        id: StreamId,
    },
    /// The peer has received all bytes and the end of the stream.
    Finished {
        /// The stream.
        id: StreamId,
    },
    /// The peer stopped the stream, which was reset.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The peer's application error code.
        code: u64,
    },
}

/// The queue of events. For stream events, the caller checks the stream's own flag before pushing.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: VecDeque<StreamEvent>,
    opened: [bool; 2],
    available: [bool; 2],
}

impl Events {
    /// Queues an event of one stream.
    pub(super) fn push(&mut self, event: StreamEvent) {
        self.queue.push_back(event);
    }

    /// Queues an [`Opened`](StreamEvent::Opened) event, once.
    pub(super) fn opened(&mut self, dir: Dir) {
        if !std::mem::replace(&mut self.opened[dir.index()], true) {
            self.queue.push_back(StreamEvent::Opened { dir });
        }
    }

    /// Queues an [`Available`](StreamEvent::Available) event, once.
    pub(super) fn available(&mut self, dir: Dir) {
        if !std::mem::replace(&mut self.available[dir.index()], true) {
            self.queue.push_back(StreamEvent::Available { dir });
        }
    }

    /// Gives back the room for events beyond those that there are.
    pub(super) fn shrink(&mut self) {
        self.queue.shrink_to_fit();
    }

    /// The oldest event.
    pub(super) fn pop(&mut self) -> Option<StreamEvent> {
        let event = self.queue.pop_front()?;
        match event {
            StreamEvent::Opened { dir } => self.opened[dir.index()] = false,
            StreamEvent::Available { dir } => self.available[dir.index()] = false,
            _ => {}
        }
        Some(event)
    }

    /// Number of queued events.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }
}
