//! The receiving side apart from streams: the decoders of erasure coding, and the datagrams that the
//! application has not read. Frames that the decoders recover are processed as if they had arrived.

use crate::datagram_queue::DatagramQueue;
use crate::error::{TransportError, TransportErrorCode};
use crate::fec::{FecConfig, ReceiveSessions};
use crate::ids::MAX_UDP_PAYLOAD;
use bytes::Bytes;

/// See the [module](self).
#[derive(Debug)]
pub struct Ingress {
    /// One decoder for each coding session of the peer.
    pub decoders: ReceiveSessions,
    /// A buffer for the frames of one recovered symbol, used again for each.
    pub recovered: Vec<u8>,
    /// `None` if the peer was not told that it may send datagrams.
    datagrams: Option<DatagramQueue>,
    /// Whether the application is going to be told of datagrams.
    announced: bool,
}

impl Ingress {
    /// Decoders as announced by `fec`, and a buffer of `datagram_buffer` bytes for datagrams; `None` for
    /// none.
    pub fn new(fec: Option<FecConfig>, datagram_buffer: Option<usize>) -> Self {
        Self {
            decoders: ReceiveSessions::new(fec),
            recovered: Vec::new(),
            datagrams: datagram_buffer.map(DatagramQueue::new),
            announced: false,
        }
    }

    /// Queues a received datagram, and drops the oldest datagrams to make room. Returns whether to tell the
    /// application that there are datagrams.
    ///
    /// # Errors
    /// Datagrams were not negotiated, or the datagram is longer than announced (RFC 9221 section 3).
    pub fn on_datagram(&mut self, data: &[u8]) -> Result<bool, TransportError> {
        let violation =
            |reason| TransportError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason);
        let queue = self.datagrams.as_mut();
        let queue = queue.ok_or_else(|| violation("DATAGRAM was not negotiated"))?;
        if data.len() >= usize::from(MAX_UDP_PAYLOAD) {
            return Err(violation("DATAGRAM longer than announced"));
        }
        queue.push(Bytes::copy_from_slice(data));
        Ok(queue.cost() > 0 && !std::mem::replace(&mut self.announced, true))
    }

    /// The application was told that there are datagrams: it is told again of later datagrams.
    pub fn on_told(&mut self) {
        self.announced = false;
    }

    /// Takes the oldest datagram.
    pub fn pop_datagram(&mut self) -> Option<Bytes> {
        self.datagrams.as_mut()?.pop()
    }

    /// Bytes of datagrams that were not read, with their overhead.
    pub fn datagram_cost(&self) -> usize {
        self.datagrams.as_ref().map_or(0, DatagramQueue::cost)
    }

    /// Bytes of datagrams that the application has read.
    pub fn datagrams_taken(&self) -> u64 {
        self.datagrams.as_ref().map_or(0, DatagramQueue::taken)
    }

    /// How many datagrams were dropped because they were not read in time.
    pub fn datagrams_dropped(&self) -> u64 {
        self.datagrams.as_ref().map_or(0, DatagramQueue::dropped)
    }
}
