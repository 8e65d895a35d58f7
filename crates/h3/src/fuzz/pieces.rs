//! A body that is read in the order of arrival, compared with a body that is read in stream order.

use std::ops::Range;

use sutura_proto::{Dir, Side, StreamId};

use super::Feed;
use crate::{BodyPiece, Code, Config, Connection, Event, Fields};

const REQUEST: StreamId = StreamId::new(Side::Client, Dir::Bi, 0);

/// Reads a message whose bytes arrive in any order. The first byte picks the side and the most bytes that a
/// read returns, the second is the number of following bytes that determine the order of arrival; the message
/// is the rest. The events and each byte of the body are the same as in stream order.
pub fn pieces(data: &[u8]) {
    let [first, split, rest @ ..] = data else { return };
    let side = if first & 1 == 0 { Side::Server } else { Side::Client };
    let step = usize::from(first >> 1) + 1;
    let (arrivals, message) = rest.split_at(usize::from(*split).min(rest.len()));
    let mut expected = Reader::new(side, step, message);
    expected.arrive(0..message.len());
    expected.work(|connection, feed, buffer| {
        connection.read_body(feed, REQUEST, buffer).map(|bytes| (None, bytes)).ok()
    });
    let mut scattered = Reader::new(side, step, message);
    // A pair of bytes is a place and a length, in 256ths of the message.
    let parts = arrivals.chunks_exact(2).map(|part| {
        let place = |byte: u8| usize::from(byte) * message.len() / 256;
        let start = place(part[0]);
        start..(start + place(part[1]) + 1).min(message.len())
    });
    for range in parts.chain(std::iter::once(0..message.len())) {
        scattered.arrive(range);
        scattered.work(|connection, feed, buffer| {
            let BodyPiece { offset, bytes } =
                connection.read_body_piece(feed, REQUEST, buffer).ok()?;
            Some((Some(offset), bytes))
        });
    }
    assert_eq!(scattered.error, expected.error);
    assert_eq!(scattered.events, expected.events);
    assert_eq!(scattered.body, expected.body);
}

/// One end of a connection that reads a message.
struct Reader {
    feed: Feed,
    connection: Connection,
    /// Events, which exclude the body.
    events: Vec<Event>,
    /// The bytes of the body that were read.
    body: Vec<Option<u8>>,
    error: Option<Code>,
}

impl Reader {
    fn new(side: Side, step: usize, message: &[u8]) -> Self {
        let mut feed = Feed::new(side, step);
        let mut connection = match side {
            Side::Client => Connection::client(Config::default()),
            Side::Server => Connection::server(Config::default()),
        };
        if side.is_client() {
            let fields = Fields::request("GET", "https", "example.com", "/");
            let _ = connection.send_request(&mut feed, &fields, None, true);
        }
        feed.promise(REQUEST, message);
        Self { feed, connection, events: Vec::new(), body: Vec::new(), error: None }
    }

    fn arrive(&mut self, range: Range<usize>) {
        self.feed.arrive(REQUEST, range);
        self.connection.readable(REQUEST);
    }

    /// Processes received data, and reads body with `read` as long as there is any. `read` returns the offset
    /// unless bytes come in stream order.
    fn work(
        &mut self,
        read: impl Fn(&mut Connection, &mut Feed, &mut [u8]) -> Option<(Option<u64>, usize)>,
    ) {
        // Each pass reads all that is available; the second one finds the end.
        for _ in 0..2 {
            if let Err(error) = self.connection.process(&mut self.feed) {
                self.error = Some(error.code);
            }
            let mut buffer = [0; 64];
            while let Some((offset, bytes @ 1..)) =
                read(&mut self.connection, &mut self.feed, &mut buffer)
            {
                let offset = offset.map_or(self.body.len(), |offset| offset as usize);
                self.keep(offset, &buffer[..bytes]);
            }
            while let Some(event) = self.connection.poll_event() {
                if !matches!(event, Event::Data { .. }) {
                    self.events.push(event);
                }
            }
            self.connection.readable(REQUEST);
        }
    }

    fn keep(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        self.body.resize(self.body.len().max(end), None);
        for (cell, byte) in self.body[offset..end].iter_mut().zip(bytes) {
            assert_eq!(cell.replace(*byte), None, "read twice");
        }
    }
}
