//! Memory that is given back in silence. The packets and events of the handshake come in a burst that many
//! connections never see again. Later buffers stay for the next burst, unless the application knows better.

use super::Connection;

impl Connection {
    /// Gives back the memory that the handshake needed, once the peer has acknowledged all of it.
    pub(super) fn rest_after_handshake(&mut self) {
        let under_way = !self.handshake.confirmed || self.handshake.done_due;
        if self.rested || under_way || self.path.recovery.bytes_in_flight() > 0 {
            return;
        }
        self.rested = true;
        self.end_burst();
    }

    /// Gives back the memory that is kept for the next burst, unless something is in flight. For
    /// applications that know that a connection will be silent for a while; otherwise the same memory is soon
    /// allocated again. Returns whether nothing was in flight.
    pub fn rest(&mut self) -> bool {
        let rests = self.path.recovery.bytes_in_flight() == 0;
        if rests {
            self.end_burst();
            self.streams.rest();
        }
        rests
    }

    /// Gives back the memory that packets and their events have needed.
    fn end_burst(&mut self) {
        self.settled = None;
        self.path.rest();
        self.events.shrink_to_fit();
        self.endpoint_events.shrink_to_fit();
        self.identity.cids.shrink();
    }
}
