//! What goes next: the one place where the order of precedence stands.

use super::Egress;
use crate::fec::RepairBid;
use crate::fec::redundancy::{PathView, Turn};
use crate::ids::StreamId;
use crate::streams::Pending;
use crate::wire::frame::datagram_size;
use std::time::Instant;
use sutura_schedule::Rank;

/// A STREAM frame is not worth starting with less room than this.
const MIN_STREAM_ROOM: usize = 24;
/// The shortest frame that is worth looking for: an empty datagram.
pub const MIN_ROOM: usize = 2;
/// The most that a SOURCE_SYMBOL adds to a STREAM frame: type 2, session 2, identifier 8.
const SYMBOL_HEADER: usize = 12;

/// A free place in a packet.
#[derive(Debug, Clone, Copy)]
pub struct Slot<'a> {
    /// The time.
    pub now: Instant,
    /// Bytes of the packet that are left.
    pub room: usize,
    /// The stream whose bytes the packet carries already, those apart that may go along with any.
    pub stream: Option<StreamId>,
    /// What the path is like.
    pub path: &'a PathView,
}

/// What goes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Lost stream data, as bytes or as a source symbol.
    Lost(Pending),
    /// The oldest datagram of the queue.
    Datagram,
    /// A repair symbol.
    Repair {
        /// Which.
        bid: RepairBid,
        /// Whether nothing else waits in the whole connection.
        idle: bool,
    },
    /// New stream data.
    New(Pending),
    /// Something that this packet has no room for.
    Later,
    /// There is nothing to send, or flow control lets none of it go.
    Nothing,
}

impl Egress {
    /// What goes next into a packet.
    ///
    /// Lost data goes first if the order of resending says so; then datagrams; then what is most
    /// urgent of repair symbols and of what the scheduler names. A repair symbol is as urgent as the
    /// most urgent stream that it protects, unless its policy asks for more, and goes before new data
    /// that is as urgent: whether the session's own new data should precede it is for its policy to
    /// say, which was asked.
    pub fn look(&self, slot: &Slot<'_>) -> Next {
        if let Some(lost) = self.streams.look_lost() {
            return if self.fits(slot, &lost) { Next::Lost(lost) } else { Next::Later };
        }
        let datagram = self.datagrams.peek_size().map(datagram_size);
        if datagram.is_some_and(|size| size <= slot.room || size > self.capacity) {
            return Next::Datagram;
        }
        let new = self.streams.look_new(slot.room);
        let idle = new.is_none() && datagram.is_none();
        if let Some(bid) = self.best_bid(slot, idle, new.as_ref()) {
            let fits = bid.size <= slot.room;
            return if fits { Next::Repair { bid, idle } } else { Next::Later };
        }
        match new {
            Some(new) if self.fits(slot, &new) => Next::New(new),
            Some(_) => Next::Later,
            None if datagram.is_some() => Next::Later,
            None => Next::Nothing,
        }
    }

    /// Bytes of the frame that `next` stands for, if it goes whole or not at all; otherwise 0.
    pub fn whole_size(&self, next: &Next) -> usize {
        match next {
            Next::Lost(pending) | Next::New(pending) => {
                pending.symbol().and_then(|s| self.sessions.resend_size(s)).unwrap_or(0)
            }
            Next::Datagram => self.datagrams.peek_size().map_or(0, datagram_size),
            Next::Repair { bid, .. } => bid.size,
            Next::Later | Next::Nothing => 0,
        }
    }

    /// The most urgent repair symbol that a policy wants to be sent, unless new data is more urgent.
    fn best_bid(&self, slot: &Slot<'_>, idle: bool, new: Option<&Pending>) -> Option<RepairBid> {
        if !self.sessions.is_enabled() {
            return None;
        }
        let around = |session| self.surroundings_if(idle, session, slot.path);
        let bids = self.sessions.bids(slot.now, self.capacity, around);
        let ranked = bids.map(|bid| (self.rank(&bid), bid));
        let (rank, bid) = ranked.min_by_key(|(rank, _)| *rank)?;
        let new = new.map(|new| self.streams.rank(new.id).unwrap_or(Rank::LAST));
        new.is_none_or(|new| rank <= Some(new)).then_some(bid)
    }

    /// What a repair symbol goes strictly before; `None` goes before all new data.
    fn rank(&self, bid: &RepairBid) -> Option<Rank> {
        match bid.plan.turn {
            Turn::First => None,
            Turn::Protected => {
                let streams = self.sessions.protected_by(bid.session);
                let ranks = streams.filter_map(|id| self.streams.rank(id));
                Some(ranks.min().unwrap_or(Rank::LAST))
            }
        }
    }

    /// Whether something of what a stream sends next can go into the packet. A symbol that no packet
    /// has room for can: it goes as bare data.
    fn fits(&self, slot: &Slot<'_>, pending: &Pending) -> bool {
        if self.is_crowded(slot, pending) {
            return false;
        }
        match pending.symbol() {
            Some(symbol) => {
                let size = self.sessions.resend_size(symbol);
                size.is_none_or(|size| size <= slot.room || size > self.capacity)
            }
            None => {
                let header = if self.streams.is_protected(pending.id) { SYMBOL_HEADER } else { 0 };
                slot.room >= MIN_STREAM_ROOM + header
            }
        }
    }

    /// Whether the packet carries bytes of another stream already, and should not carry `pending`'s
    /// too.
    fn is_crowded(&self, slot: &Slot<'_>, pending: &Pending) -> bool {
        let other = slot.stream.is_some_and(|stream| stream != pending.id);
        other && !pending.goes_along && !self.mix_streams
    }
}
