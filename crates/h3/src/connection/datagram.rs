//! HTTP datagrams in QUIC datagrams (RFC 9297 section 2).

use std::collections::{BTreeMap, HashMap};

use bytes::{Buf, Bytes, BytesMut};
use sutura_proto::work;
use sutura_proto::{DatagramOptions, Dir, StreamId};
use sutura_schedule::KeyHash;

use super::Connection;
use crate::codec::{put_varint, take_varint};
use crate::error::{Code, Error, SendDatagramError};
use crate::event::Event;
use crate::transport::Transport;

/// Most received datagrams of an exchange that wait for the application, or for their request. The oldest are dropped.
pub const MAX_QUEUED_DATAGRAMS: usize = 256;

/// Most bytes of queued datagrams of an exchange.
pub const MAX_QUEUED_DATAGRAM_BYTES: usize = 256 << 10;

/// Most received datagrams of all exchanges of a connection that wait. The oldest are dropped, which most often are
/// those of exchanges that nobody reads.
pub const MAX_QUEUED_DATAGRAMS_IN_ALL: usize = 8192;

/// Most bytes of queued datagrams of all exchanges of a connection.
pub const MAX_QUEUED_DATAGRAM_BYTES_IN_ALL: usize = 1 << 20;

/// The largest Quarter Stream ID (section 2.1).
const MAX_QUARTER_STREAM_ID: u64 = (1 << 60) - 1;

/// What keeping a datagram takes beside its bytes.
const DATAGRAM_COST: usize = 128;

/// Received datagrams, oldest first.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    /// By number, in the order in which they came.
    queue: BTreeMap<u64, Queued>,
    /// The exchanges that have datagrams.
    exchanges: HashMap<StreamId, Waiting, KeyHash>,
    /// The number of the next one.
    next: u64,
    bytes: usize,
}

/// A datagram that waits.
#[derive(Debug)]
struct Queued {
    stream: StreamId,
    payload: Bytes,
    /// The number of the next one of the same exchange.
    next: Option<u64>,
}

/// The datagrams of an exchange that wait: at least one.
#[derive(Debug)]
struct Waiting {
    /// The numbers of the oldest and the newest.
    oldest: u64,
    newest: u64,
    count: usize,
    bytes: usize,
}

impl Datagrams {
    fn push(&mut self, stream: StreamId, payload: Bytes) {
        let number = self.next;
        self.next += 1;
        let new = Waiting { oldest: number, newest: number, count: 0, bytes: 0 };
        let waiting = self.exchanges.entry(stream).or_insert(new);
        waiting.count += 1;
        waiting.bytes += payload.len();
        self.bytes += payload.len();
        if let Some(before) = self.queue.get_mut(&waiting.newest) {
            before.next = Some(number);
        }
        waiting.newest = number;
        self.queue.insert(number, Queued { stream, payload, next: None });
        while self.exchanges.get(&stream).is_some_and(Waiting::are_too_many) {
            self.take(stream);
        }
        while self.are_too_many() {
            let Some((_, oldest)) = self.queue.first_key_value() else { return };
            self.take(oldest.stream);
        }
    }

    fn are_too_many(&self) -> bool {
        self.queue.len() > MAX_QUEUED_DATAGRAMS_IN_ALL
            || self.bytes > MAX_QUEUED_DATAGRAM_BYTES_IN_ALL
    }

    /// Takes the oldest datagram of an exchange.
    fn take(&mut self, stream: StreamId) -> Option<Bytes> {
        work::steps(1);
        let waiting = self.exchanges.get_mut(&stream)?;
        let Queued { payload, next, .. } = self.queue.remove(&waiting.oldest)?;
        self.bytes -= payload.len();
        waiting.bytes -= payload.len();
        waiting.count -= 1;
        match next {
            Some(next) => waiting.oldest = next,
            None => _ = self.exchanges.remove(&stream),
        }
        Some(payload)
    }

    /// Drops the datagrams of an exchange that is over.
    fn forget(&mut self, stream: StreamId) {
        while self.take(stream).is_some() {}
    }

    /// Bytes that they take.
    fn memory(&self) -> usize {
        self.bytes + self.queue.len() * DATAGRAM_COST
    }
}

impl Waiting {
    const fn are_too_many(&self) -> bool {
        self.count > MAX_QUEUED_DATAGRAMS || self.bytes > MAX_QUEUED_DATAGRAM_BYTES
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

    /// Bytes that datagrams take which wait for the application.
    #[must_use]
    pub fn datagram_memory(&self) -> usize {
        self.datagrams.as_ref().map_or(0, |datagrams| datagrams.memory())
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
    use proptest::prelude::*;
    use std::collections::VecDeque;

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
    fn a_flood_of_datagrams_keeps_the_newest_of_each_exchange() {
        let mut datagrams = Datagrams::default();
        for n in 0..10_000u64 {
            datagrams.push(StreamId(n % 2 * 4), Bytes::from(n.to_be_bytes().to_vec()));
        }
        assert_eq!(datagrams.queue.len(), 2 * MAX_QUEUED_DATAGRAMS);
        let oldest = 10_000 - 2 * MAX_QUEUED_DATAGRAMS as u64;
        assert_eq!(datagrams.take(StreamId(0)).unwrap(), oldest.to_be_bytes()[..]);
        for _ in 0..100 {
            datagrams.push(StreamId(0), Bytes::from(vec![0; 60_000]));
        }
        assert_eq!(datagrams.exchanges[&StreamId(0)].count, 4);
        assert_eq!(datagrams.exchanges[&StreamId(4)].count, MAX_QUEUED_DATAGRAMS);
        for stream in [0, 4] {
            datagrams.forget(StreamId(stream));
        }
        assert_eq!((datagrams.memory(), datagrams.exchanges.len()), (0, 0));
    }

    #[test]
    fn a_flood_over_many_exchanges_is_bounded_and_hits_those_that_nobody_reads() {
        for length in [0, 1000, 60_000] {
            let mut datagrams = Datagrams::default();
            let mut read = 0;
            for n in 0..100_000u64 {
                datagrams.push(StreamId(n % 2000 * 4), Bytes::from(vec![0; length]));
                // One of the exchanges has a reader.
                read += usize::from(datagrams.take(StreamId(400)).is_some());
                assert!(datagrams.queue.len() <= MAX_QUEUED_DATAGRAMS_IN_ALL);
                assert!(datagrams.bytes <= MAX_QUEUED_DATAGRAM_BYTES_IN_ALL);
            }
            assert_eq!(read, 50, "{length}");
        }
    }

    proptest! {
        #[test]
        fn each_exchange_has_its_datagrams_in_order(
            acts in prop::collection::vec((0u64..4, any::<bool>()), 0..200),
        ) {
            let mut datagrams = Datagrams::default();
            let mut model: BTreeMap<u64, VecDeque<u8>> = BTreeMap::new();
            for (number, (stream, is_push)) in (0u8..).zip(acts) {
                let all = model.entry(stream).or_default();
                if is_push {
                    datagrams.push(StreamId(stream * 4), Bytes::from(vec![number]));
                    all.push_back(number);
                } else {
                    let taken = datagrams.take(StreamId(stream * 4));
                    prop_assert_eq!(taken, all.pop_front().map(|number| vec![number].into()));
                }
                let waiting = model.values().filter(|all| !all.is_empty()).count();
                prop_assert_eq!(datagrams.exchanges.len(), waiting);
            }
            let left = model.values().map(VecDeque::len).sum();
            prop_assert_eq!((datagrams.queue.len(), datagrams.bytes), (left, left));
        }
    }
}
