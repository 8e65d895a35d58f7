//! What the ends of a pair send each other, and what is lost of it.

use super::pair::{Pair, SECOND, pattern};
use crate::ids::SpaceId;
use crate::{Dir, Protection, Side, StreamId};
use std::net::SocketAddr;
use std::time::Duration;

/// A protection that sends three repair symbols at the end.
pub(super) fn tail() -> Protection {
    Protection::tail(3, Duration::ZERO)
}

impl Pair {
    /// Opens a unidirectional stream with this protection.
    pub(super) fn open(&mut self, side: Side, protection: Option<Protection>) -> StreamId {
        let id = self.end(side).conn().open(Dir::Uni).unwrap();
        self.end(side).conn().send_stream(id).protect(protection).unwrap();
        id
    }

    /// Writes so many bytes to a stream, which has room for them.
    pub(super) fn write(&mut self, side: Side, id: StreamId, len: usize) {
        assert_eq!(self.end(side).conn().send_stream(id).write(&pattern(len)), Ok(len));
    }

    /// Opens a stream with this protection, sends so many bytes on it and finishes it.
    pub(super) fn send_protected(
        &mut self,
        side: Side,
        len: usize,
        protection: Option<Protection>,
    ) -> StreamId {
        let id = self.open(side, protection);
        self.write(side, id, len);
        self.end(side).conn().send_stream(id).finish().unwrap();
        id
    }

    /// Carries so many bytes to the other end on a stream of their own; returns how long that takes.
    pub(super) fn carry(&mut self, from: Side, len: usize) -> Duration {
        let start = self.now;
        self.send(from, Dir::Uni, &pattern(len));
        self.takes(from.peer(), len);
        self.now - start
    }

    /// Writes so many bytes to a stream of the server whenever it has room, until the client has them all.
    pub(super) fn pour(&mut self, id: StreamId, len: usize) {
        let data = pattern(len);
        let (mut rest, mut got) = (&data[..], 0);
        while got < len {
            let written = self.server.conn().send_stream(id).write(rest).unwrap_or(0);
            rest = &rest[written..];
            assert!(self.step(self.now + 5 * SECOND), "stalled at {got}");
            got += self.drain(id);
        }
    }

    /// Reads all that has arrived of a stream of the server; returns how many bytes that is.
    pub(super) fn drain(&mut self, id: StreamId) -> usize {
        let client = self.client.conn();
        while client.accept(Dir::Uni).is_some() {}
        let chunks =
            std::iter::from_fn(|| client.recv_stream(id).read_chunk(usize::MAX, true).ok()?);
        chunks.map(|chunk| chunk.bytes.len()).sum()
    }

    /// Reads the next stream of the peer, which has so many bytes.
    pub(super) fn takes(&mut self, side: Side, len: usize) {
        assert!(self.accept_and_read(side, Dir::Uni) == pattern(len), "other bytes arrived");
    }

    /// Loses the datagrams that are longer than `size` if `lost` says so of their number. Only such
    /// datagrams of this end count, from 1 for the next.
    pub(super) fn lose_larger(
        &mut self,
        from: Side,
        size: usize,
        mut lost: impl FnMut(usize) -> bool + 'static,
    ) {
        let mut n = 0;
        self.filter = Box::new(move |side, bytes| {
            let counts = side == from && bytes.len() > size;
            n += usize::from(counts);
            !counts || !lost(n)
        });
    }

    /// Loses the datagrams of one end that `lost` names. The next has number 1.
    pub(super) fn lose(&mut self, from: Side, lost: impl FnMut(usize) -> bool + 'static) {
        self.lose_larger(from, 0, lost);
    }

    /// Loses the datagrams of both ends that `lost` names. The next has number 1.
    pub(super) fn lose_any(&mut self, mut lost: impl FnMut(usize) -> bool + 'static) {
        let mut n = 0;
        self.filter = Box::new(move |_, _| {
            n += 1;
            !lost(n)
        });
    }

    /// Loses all that one end sends from now on, and nothing else.
    pub(super) fn mute(&mut self, side: Side) {
        self.filter = Box::new(move |from, _| from != side);
    }

    /// Loses everything from now on.
    pub(super) fn cut(&mut self) {
        self.filter = Box::new(|_, _| false);
    }

    /// Loses nothing from now on.
    pub(super) fn mend(&mut self) {
        self.filter = Box::new(|_, _| true);
    }

    /// How many datagrams an end has sent.
    pub(super) fn sent(&self, side: Side) -> usize {
        self.datagrams[side as usize].len()
    }

    /// Lets an end close the connection.
    pub(super) fn close(&mut self, side: Side, code: u64, reason: &[u8]) {
        let now = self.now;
        self.end(side).conn().close(now, code, reason);
    }

    /// Gives the client another address, of which it knows.
    pub(super) fn move_client(&mut self, address: SocketAddr) {
        self.client.address = address;
        let now = self.now;
        self.client.conn().local_address_changed(now);
    }

    /// Says whether an end is to keep the connection alive.
    pub(super) fn keep_alive(&mut self, side: Side, wanted: bool) {
        let now = self.now;
        self.end(side).conn().set_kept_alive(now, wanted);
    }

    /// Checks that neither end has lost the connection.
    pub(super) fn lives(&mut self) {
        assert_eq!((self.loss(Side::Client), self.loss(Side::Server)), (None, None));
    }

    /// Lets the handshake complete, and checks that it leaves nothing behind.
    pub(super) fn complete(&mut self) {
        self.run_until(|pair| pair.client.conn().handshake.confirmed);
        self.run_for(5 * SECOND);
        self.lives();
        assert_eq!(self.server.endpoint.len(), 1, "no datagram opens a connection twice");
        for end in [&mut self.client, &mut self.server] {
            let connection = end.conn();
            assert!(connection.spaces.in_use() == [SpaceId::Data]);
            assert_eq!(connection.path.recovery.bytes_in_flight(), 0);
            let early = &connection.zero_rtt;
            assert!(early.opener().is_none() && early.sealer().is_none());
            assert_eq!(connection.early.len(), 0);
        }
    }

    /// Checks that nothing is left of the connection.
    pub(super) fn is_over(&mut self) {
        for end in [&mut self.client, &mut self.server] {
            assert!(end.conn().is_drained() && end.endpoint.is_empty());
        }
    }

    /// Lets time pass until something is so.
    pub(super) fn run_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let until = self.now + Duration::from_secs(60);
        while !done(self) {
            assert!(self.step(until), "it never comes to that");
        }
    }
}
