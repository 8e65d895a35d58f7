//! Packets as the datagrams of an exchange (RFC 9484 section 6).

use std::time::Instant;

use sutura::Connection;
use sutura::http::{Datagrams, Error, RequestStream, SendDatagramError};

use crate::flow::Treatment;
use crate::masque::{CONTEXT_BYTES, read_datagram, write_datagram};

/// Carries the packets of one exchange.
#[derive(Debug)]
pub(super) struct PacketCarrier {
    connection: Connection,
    datagrams: Datagrams,
}

impl PacketCarrier {
    /// The carrier of an exchange, which it does not keep alive.
    pub(super) fn of(stream: &RequestStream) -> Self {
        Self { connection: stream.connection().clone(), datagrams: stream.datagrams() }
    }

    /// The longest packet that a datagram carries now, in bytes.
    pub(super) fn mtu(&self) -> usize {
        self.datagrams.max_size().unwrap_or_default().saturating_sub(CONTEXT_BYTES)
    }

    /// Sends a packet that came at `now`, with the deadline, urgency and protection of its flow.
    ///
    /// # Errors
    /// It is too long, or the exchange is over.
    pub(super) fn send(
        &self,
        now: Instant,
        packet: &[u8],
        treatment: &Treatment,
    ) -> Result<(), SendDatagramError> {
        let options = treatment.datagram_over(now, self.connection.rtt());
        let mut datagram = Vec::with_capacity(CONTEXT_BYTES + packet.len());
        write_datagram(&mut datagram);
        datagram.extend_from_slice(packet);
        self.datagrams.send(&datagram, &options)
    }

    /// The next packet; `None` once the exchange is over. Datagrams of contexts that are unknown are left out.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) async fn recv(&self) -> Result<Option<Vec<u8>>, Error> {
        loop {
            let Some(payload) = self.datagrams.recv().await? else { return Ok(None) };
            if let Some(packet) = read_datagram(payload) {
                return Ok(Some(packet.into()));
            }
        }
    }
}
