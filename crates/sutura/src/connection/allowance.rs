//! How much of the process's memory a connection holds and may hold.

use super::{State, Upper};
use std::time::Instant;

impl State {
    /// Bytes that the protocols over the connection take, such as HTTP/3 for its requests.
    pub(crate) fn memory_above(&self) -> usize {
        self.uppers.iter().map(Upper::memory).sum()
    }

    /// Sets how many bytes the connection may hold, and how many of them the application may write until
    /// this is called again.
    pub(crate) fn set_allowance(&mut self, bytes: usize, burst: usize) {
        self.allowance = bytes;
        let above = self.memory_above();
        self.quic.set_allowance(bytes.saturating_sub(above), burst);
        if !self.holds_back() {
            self.uppers.iter_mut().for_each(Upper::wake_held_back);
        }
    }

    /// Whether the application is to accept no further request for now.
    pub(crate) fn holds_back(&self) -> bool {
        let held = self.quic.memory().total() + self.memory_above();
        let left = self.allowance.saturating_sub(held);
        self.uppers.iter().any(|upper| upper.holds_back(left))
    }

    /// Ends the connection because this process cannot go on holding its data.
    pub(crate) fn close_for_memory(&mut self, now: Instant) {
        let code = self.uppers.iter().find_map(Upper::out_of_memory);
        match code {
            Some(code) => self.close(now, code, b"out of memory"),
            None => {
                self.quic.give_up_for_memory(now);
                self.learn_of_end(now);
            }
        }
    }
}
