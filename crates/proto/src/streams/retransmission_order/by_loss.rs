//! First lost, first sent again.

use super::{Precedence, RetransmissionOrder};
use std::collections::VecDeque;
use sutura_schedule::{Priority, StreamKey};

/// Lost data goes before new data, in the order of loss.
#[derive(Debug, Default)]
pub struct ByLoss {
    /// The stream of each frame. A stream whose frames were all dropped at once stays in here until
    /// its turn comes.
    queue: VecDeque<StreamKey>,
}

impl RetransmissionOrder for ByLoss {
    fn precedence(&self) -> Precedence {
        Precedence::First
    }

    fn insert(&mut self, _stream: StreamKey, _priority: &Priority) {}

    fn remove(&mut self, _stream: StreamKey) {}

    fn reprioritize(&mut self, _stream: StreamKey, _priority: &Priority) {}

    fn queued(&mut self, stream: StreamKey) {
        self.queue.push_back(stream);
    }

    fn dequeued(&mut self, stream: StreamKey, _left: usize) {
        self.queue.pop_front_if(|front| *front == stream);
    }

    fn charge(&mut self, _stream: StreamKey, _bytes: usize) {}

    fn next(&mut self) -> Option<StreamKey> {
        self.queue.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_come_as_often_as_they_lost_frames_and_in_that_order() {
        let mut order = ByLoss::default();
        [1, 2, 1, 3].into_iter().for_each(|stream| order.queued(stream));
        let mut served = Vec::new();
        while let Some(stream) = order.next() {
            served.push(stream);
            order.dequeued(stream, 1);
        }
        assert_eq!(served, [1, 2, 1, 3]);
    }

    #[test]
    fn a_stream_that_was_cleared_out_of_turn_gives_up_no_turn_of_another() {
        let mut order = ByLoss::default();
        [1, 2].into_iter().for_each(|stream| order.queued(stream));
        order.dequeued(2, 0);
        assert_eq!(order.next(), Some(1));
        order.dequeued(1, 0);
        assert_eq!(order.next(), Some(2), "to be told that nothing is left");
        order.dequeued(2, 0);
        assert_eq!(order.next(), None);
    }
}
