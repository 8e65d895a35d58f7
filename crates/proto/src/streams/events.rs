//! What the application is told.

use crate::ids::{Dir, StreamId};
use std::collections::VecDeque;

/// Something happened to a stream that an application acts on.
///
/// Each stands in the queue at most once for its stream or direction, so that the queue is bounded
/// by the number of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer opened streams; accept until there are no more.
    Opened {
        /// Of this direction.
        dir: Dir,
    },
    /// Streams can be opened again, after an attempt failed.
    Available {
        /// Of this direction.
        dir: Dir,
    },
    /// There are bytes, an end or a reset to read; read until blocked.
    Readable {
        /// On this stream.
        id: StreamId,
    },
    /// There is room in the send buffer again, after a write found none.
    Writable {
        /// Of this stream.
        id: StreamId,
    },
    /// The peer holds everything that was written, and knows that it is all.
    Finished {
        /// On this stream.
        id: StreamId,
    },
    /// The peer does not want the rest of the stream, which was reset.
    Stopped {
        /// This stream.
        id: StreamId,
        /// The code that the peer's application gave.
        code: u64,
    },
}

/// The queue of events. Who pushes an event of a stream checks the stream's own flag first.
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

    /// Queues that the peer opened streams, once.
    pub(super) fn opened(&mut self, dir: Dir) {
        if !std::mem::replace(&mut self.opened[dir.index()], true) {
            self.queue.push_back(StreamEvent::Opened { dir });
        }
    }

    /// Queues that streams can be opened, once.
    pub(super) fn available(&mut self, dir: Dir) {
        if !std::mem::replace(&mut self.available[dir.index()], true) {
            self.queue.push_back(StreamEvent::Available { dir });
        }
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
