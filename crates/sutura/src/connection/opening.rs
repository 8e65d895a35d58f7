//! Waiting until the peer allows one more stream.

use super::turns::Ticket;
use super::{Shared, State};
use std::task::Context;
use sutura_proto::Dir;

/// A task that opens a stream, or waits until it can.
#[derive(Debug)]
pub(crate) struct Opening<'a> {
    shared: &'a Shared,
    dir: Dir,
    ticket: Ticket,
}

impl<'a> Opening<'a> {
    pub(crate) fn new(shared: &'a Shared, dir: Dir) -> Self {
        Self { shared, dir, ticket: Ticket::default() }
    }

    /// The task has opened a stream: the others take their turns.
    pub(crate) fn done(&mut self, state: &mut State) {
        state.waiters.open[self.dir.index()].leave(&mut self.ticket);
        state.serve_openers(self.dir);
    }

    /// The peer allows no stream now: the task waits for its turn.
    pub(crate) fn wait(&mut self, state: &mut State, cx: &Context<'_>) {
        state.waiters.open[self.dir.index()].wait(&mut self.ticket, cx);
    }
}

impl Drop for Opening<'_> {
    /// A task that gives up leaves its turn to the next.
    fn drop(&mut self) {
        if self.ticket.is_issued() {
            let mut state = self.shared.lock();
            if state.waiters.open[self.dir.index()].leave(&mut self.ticket) {
                state.serve_openers(self.dir);
            }
        }
    }
}

impl State {
    /// Wakes as many of the tasks that wait to open a stream as there are streams to open. If none is left,
    /// the peer is told that one more is wanted.
    pub(super) fn serve_openers(&mut self, dir: Dir) {
        let openers = &mut self.waiters.open[dir.index()];
        if openers.is_empty() {
            return;
        }
        match self.quic.streams_left(dir) {
            0 => self.quic.want_stream(dir),
            left => openers.call(left),
        }
    }
}
