//! The end of the handshake's work. Its packets and events come in a burst that many connections never see
//! again, so the memory for them is given back. Later buffers stay, for the next burst.

use super::Connection;

impl Connection {
    /// Gives back the memory that the handshake needed, once the peer has acknowledged all of it.
    pub(super) fn rest_after_handshake(&mut self) {
        let under_way = !self.handshake.confirmed || self.handshake.done_due;
        if self.rested || under_way || self.path.recovery.bytes_in_flight() > 0 {
            return;
        }
        self.rested = true;
        self.settled = None;
        self.path.rest();
        self.events.shrink_to_fit();
        self.endpoint_events.shrink_to_fit();
        self.identity.cids.shrink();
    }
}
