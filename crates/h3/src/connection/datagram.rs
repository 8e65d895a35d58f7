//! HTTP datagrams in QUIC datagrams (RFC 9297 section 2).

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Buf, Bytes, BytesMut};
use sutura_proto::work;
use sutura_proto::{DatagramOptions, Dir, StreamId};

use super::Connection;
use crate::codec::{put_varint, take_varint};
use crate::error::{Code, Error, SendDatagramError};
use crate::event::Event;
use crate::transport::Transport;

/// Most received datagrams that wait for the application or for their request. The oldest are dropped.
pub const MAX_QUEUED_DATAGRAMS: usize = 64;

/// The most bytes of queued datagrams.
pub const MAX_QUEUED_DATAGRAM_BYTES: usize = 256 << 10;

/// The largest Quarter Stream ID (section 2.1).
const MAX_QUARTER_STREAM_ID: u64 = (1 << 60) - 1;

/// Received datagrams, oldest first.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    /// By number, in the order in which they came.
    queue: BTreeMap<u64, (StreamId, Bytes)>,
    /// The numbers of each stream's datagrams.
    numbers: BTreeSet<(StreamId, u64)>,
    /// The number of the next one.
    next: u64,
    bytes: usize,
}

impl Datagrams {
    fn push(&mut self, stream: StreamId, payload: Bytes) {
        self.bytes += payload.len();
        self.queue.insert(self.next, (stream, payload));
        self.numbers.insert((stream, self.next));
        self.next += 1;
        while self.queue.len() > MAX_QUEUED_DATAGRAMS || self.bytes > MAX_QUEUED_DATAGRAM_BYTES {
            let Some((&oldest, _)) = self.queue.first_key_value() else { return };
            self.remove(oldest);
        }
    }

    fn remove(&mut self, number: u64) -> Option<Bytes> {
        work::steps(1);
        let (stream, payload) = self.queue.remove(&number)?;
        self.numbers.remove(&(stream, number));
        self.bytes -= payload.len();
        Some(payload)
    }

    fn take(&mut self, stream: StreamId) -> Option<Bytes> {
        let (_, number) = *self.numbers.range((stream, 0)..=(stream, u64::MAX)).next()?;
        self.remove(number)
    }

    /// Drops the datagrams of an exchange that is over.
    fn forget(&mut self, stream: StreamId) {
        while self.take(stream).is_some() {}
    }
}

/// Splits a QUIC datagram into stream and payload.
fn parse(mut datagram: Bytes) -> Option<(StreamId, Bytes)> {
    let mut rest = datagram.as_ref();
    let quarter = take_varint(&mut rest).filter(|quarter| *quarter <= MAX_QUARTER_STREAM_ID)?;
    let header = datagram.len() - rest.len();
    datagram.advance(header);
    Some((StreamId(quarter * 4), datagram))
}

impl Connection {
    /// Takes the datagrams that arrived.
    pub(super) fn receive_datagrams<T: Transport>(&mut self, quic: &mut T) -> Result<(), Error> {
        if !self.config.enable_datagrams {
            return Ok(());
        }
        while let Some(datagram) = quic.recv_datagram() {
            const MALFORMED: Error = Error::new(Code::DATAGRAM_ERROR, "no Quarter Stream ID");
            let (stream, payload) = parse(datagram).ok_or(MALFORMED)?;
            if self.side.is_server() && stream.index() >= quic.stream_limit(Dir::Bi) {
                let reason = "datagram of a stream that cannot be";
                return Err(Error::new(Code::ID_ERROR, reason));
            }
            match self.exchanges.get_mut(stream) {
                Some(exchange) if exchange.receive.is_done() => {}
                Some(exchange) => {
                    self.datagrams.get_or_insert_default().push(stream, payload);
                    if !std::mem::replace(&mut exchange.told_datagram, true) {
                        self.events.push_back(Event::Datagram { stream });
                    }
                }
                // The datagram overtook its request.
                None if self.side.is_server() && stream.index() >= self.next_request => {
                    self.datagrams.get_or_insert_default().push(stream, payload);
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Whether both ends accept HTTP datagrams.
    #[must_use]
    pub fn has_datagrams(&self) -> bool {
        self.config.enable_datagrams && self.peer.is_some_and(|peer| peer.h3_datagram)
    }

    /// The longest payload of a datagram for `stream` that can be sent, in bytes; `None` if none can.
    #[must_use]
    pub fn max_datagram_size<T: Transport>(&self, quic: &mut T, stream: StreamId) -> Option<usize> {
        let mut header = Vec::new();
        put_varint(&mut header, stream.0 / 4);
        let room = quic.max_datagram_size().filter(|_| self.has_datagrams())?;
        room.checked_sub(header.len())
    }

    /// Whether a datagram for `stream` with so many bytes of payload can be sent without dropping another that waits to
    /// be sent. If not, the transport tells when it can.
    pub fn want_datagram_room<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        payload: usize,
    ) -> bool {
        let mut header = Vec::new();
        put_varint(&mut header, stream.0 / 4);
        quic.want_datagram_room(header.len() + payload)
    }

    /// Sends a datagram that belongs to an exchange. Like its packet, it may be lost.
    ///
    /// # Errors
    /// Nothing was sent.
    pub fn send_datagram<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        payload: &[u8],
        options: &DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        self.check().map_err(|_| SendDatagramError::Closed)?;
        if !self.has_datagrams() {
            return Err(SendDatagramError::Unsupported);
        }
        // Section 2.1: not after this end has ended its message.
        let open = self.exchanges.get(stream).filter(|exchange| !exchange.send.is_ended());
        open.ok_or(SendDatagramError::UnknownStream)?;
        let mut header = Vec::new();
        put_varint(&mut header, stream.0 / 4);
        let mut datagram = BytesMut::with_capacity(header.len() + payload.len());
        datagram.extend_from_slice(&header);
        datagram.extend_from_slice(payload);
        quic.send_datagram(datagram.freeze(), options)
    }

    /// Takes the next datagram of an exchange.
    pub fn recv_datagram(&mut self, stream: StreamId) -> Option<Bytes> {
        let exchange = self.exchanges.get_mut(stream)?;
        exchange.told_datagram = false;
        self.datagrams.as_mut()?.take(stream)
    }

    /// Drops the datagrams of an exchange that is over.
    pub(super) fn forget_datagrams(&mut self, stream: StreamId) {
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.forget(stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarter_stream_identifiers() {
        let stream = |bytes: &'static [u8]| parse(Bytes::from_static(bytes));
        assert_eq!(stream(b"\x03hi"), Some((StreamId(12), Bytes::from_static(b"hi"))));
        assert_eq!(stream(b"\x00"), Some((StreamId(0), Bytes::new())));
        assert_eq!(stream(b""), None);
        assert_eq!(stream(b"\x40"), None);
        assert!(stream(b"\xcf\xff\xff\xff\xff\xff\xff\xff").is_some());
        assert_eq!(stream(b"\xd0\x00\x00\x00\x00\x00\x00\x00"), None);
    }

    #[test]
    fn a_flood_of_datagrams_keeps_the_newest() {
        let mut datagrams = Datagrams::default();
        for n in 0..10_000u64 {
            datagrams.push(StreamId(n % 2 * 4), Bytes::from(vec![0; (n % 3) as usize]));
        }
        assert_eq!(datagrams.queue.len(), MAX_QUEUED_DATAGRAMS);
        for _ in 0..100 {
            datagrams.push(StreamId(0), Bytes::from(vec![0; 60_000]));
        }
        assert!(datagrams.bytes <= MAX_QUEUED_DATAGRAM_BYTES && datagrams.queue.len() == 4);
        datagrams.forget(StreamId(0));
        assert_eq!((datagrams.bytes, datagrams.queue.len()), (0, 0));
    }
}
