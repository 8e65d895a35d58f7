//! What a connection holds of the memory of the process, and what it may hold.

use super::State;
use std::time::Instant;

impl State {
    /// Bytes that the requests over HTTP/3 take.
    pub(crate) fn memory_of_requests(&self) -> usize {
        self.http.as_ref().map_or(0, |http| http.memory())
    }

    /// Sets how many bytes the connection may hold, and how many of them the application may write until
    /// this is called again.
    pub(crate) fn set_allowance(&mut self, bytes: usize, burst: usize) {
        self.allowance = bytes;
        let of_requests = self.memory_of_requests();
        self.quic.set_allowance(bytes.saturating_sub(of_requests), burst);
        let held_back = self.holds_requests_back();
        if let Some(http) = self.http.as_mut().filter(|_| !held_back) {
            http.wake_for_requests();
        }
    }

    /// Whether the application is to accept no further request for now.
    pub(crate) fn holds_requests_back(&self) -> bool {
        let held = self.quic.memory().total() + self.memory_of_requests();
        let left = self.allowance.saturating_sub(held);
        self.http.as_ref().is_some_and(|http| http.holds_back(left))
    }

    /// Ends the connection because this process cannot go on holding what the peer makes it hold.
    pub(crate) fn close_for_memory(&mut self, now: Instant) {
        match self.http {
            Some(_) => self.close(now, sutura_h3::Code::EXCESSIVE_LOAD.0, b"out of memory"),
            None => {
                self.quic.give_up_for_memory(now);
                self.learn_of_end(now);
            }
        }
    }
}
