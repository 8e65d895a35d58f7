//! Decides what to send next: the only place that defines the order of precedence.

use super::Egress;
use crate::fec::RepairBid;
use crate::fec::redundancy::{PathView, Turn};
use crate::ids::StreamId;
use crate::streams::{Pending, Streams};
use crate::work;
use std::time::Instant;
use sutura_schedule::Rank;

/// The least room in which a STREAM frame is worth starting.
const MIN_STREAM_ROOM: usize = 24;
/// The size of the shortest frame worth looking for: an empty datagram.
pub const MIN_ROOM: usize = 2;
/// The most bytes that a SOURCE_SYMBOL adds to a STREAM frame: type 2, session 2, identifier 8.
pub(super) const SYMBOL_HEADER: usize = 12;

/// Free space in a packet.
#[derive(Debug, Clone, Copy)]
pub struct Slot<'a> {
    /// The current time.
    pub now: Instant,
    /// Bytes left in the packet.
    pub room: usize,
    /// If the packet is empty, and will be padded in front to the full size because no more than this many
    /// bytes are missing, that number; otherwise 0.
    pub padding: usize,
    /// The stream whose data is already in the packet. Data that may share a packet with any stream
    /// does not count.
    pub stream: Option<StreamId>,
    /// The state of the path.
    pub path: &'a PathView,
}

/// The next item to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Lost stream data, as bytes or as a source symbol.
    Lost(Pending),
    /// The first datagram of the queue.
    Datagram,
    /// A repair symbol.
    Repair {
        /// The repair symbol.
        bid: RepairBid,
        /// Whether nothing else is waiting in the whole connection.
        idle: bool,
    },
    /// New stream data.
    New(Pending),
    /// A frame that does not fit in this packet.
    Later,
    /// No data waits, or flow control blocks all data that waits.
    Nothing,
}

impl Next {
    /// Whether it is redundancy that is sent only because nothing else is waiting.
    pub fn is_idle(&self) -> bool {
        match self {
            Self::Repair { idle, .. } => *idle,
            Self::Lost(_) | Self::Datagram | Self::New(_) | Self::Later | Self::Nothing => false,
        }
    }
}

impl Egress {
    /// Decides what to put into a packet next.
    ///
    /// Lost data goes first if the resend order says so, then datagrams, then the more urgent of a repair
    /// symbol and the new data that the scheduler chose. A repair symbol is as urgent as the most urgent
    /// stream that it protects, unless its policy asks for more. It goes before equally urgent new data:
    /// whether the session's own new data should precede it was already up to its policy.
    pub fn look(&self, streams: &Streams, slot: &Slot<'_>) -> Next {
        if let Some(lost) = self.lost.look(streams) {
            return if self.fits(streams, slot, &lost) { Next::Lost(lost) } else { Next::Later };
        }
        let datagram = self.next_datagram_room();
        if datagram.is_some_and(|size| size <= slot.room || size > self.capacity) {
            return Next::Datagram;
        }
        let new = self.look_new(streams, slot.room);
        let idle = new.is_none() && datagram.is_none();
        if let Some(bid) = self.best_bid(streams, slot, idle, new.as_ref()) {
            let fits = bid.size <= slot.room;
            return if fits { Next::Repair { bid, idle } } else { Next::Later };
        }
        match new {
            Some(new) if self.fits(streams, slot, &new) => Next::New(new),
            Some(_) => Next::Later,
            None if datagram.is_some() => Next::Later,
            None => Next::Nothing,
        }
    }

    /// The stream data that goes next in turn; see [`Streams::look_new`](crate::streams::Streams::look_new).
    pub(super) fn look_new(&self, streams: &Streams, room: usize) -> Option<Pending> {
        streams.look_new(room, |id| self.lost.next(streams, id))
    }

    /// The size of the frame that `next` stands for if it cannot be split; otherwise 0.
    pub fn whole_size(&self, next: &Next) -> usize {
        match next {
            Next::Lost(pending) | Next::New(pending) => {
                pending.symbol().and_then(|s| self.sessions.resend_size(s)).unwrap_or(0)
            }
            Next::Datagram => self.next_datagram_room().unwrap_or(0),
            Next::Repair { bid, .. } => bid.size,
            Next::Later | Next::Nothing => 0,
        }
    }

    /// The most urgent repair symbol that a policy wants to send, unless new data is more urgent.
    fn best_bid(
        &self,
        streams: &Streams,
        slot: &Slot<'_>,
        idle: bool,
        new: Option<&Pending>,
    ) -> Option<RepairBid> {
        if !self.sessions.is_enabled() {
            return None;
        }
        let around = |session| self.surroundings_if(streams, idle, session, slot.path);
        let bids = || self.sessions.bids(slot.now, self.capacity, around);
        if idle && self.is_resting(streams, slot.now, slot.path) {
            debug_assert_eq!(bids().next(), None, "a policy changes its mind without an event");
            return None;
        }
        work::steps(self.sessions.used());
        let ranked = bids().map(|bid| (self.rank(streams, &bid), bid));
        let (rank, bid) = ranked.min_by_key(|(rank, _)| *rank)?;
        let new = new.map(|new| streams.rank(new.id).unwrap_or(Rank::LAST));
        new.is_none_or(|new| rank <= Some(new)).then_some(bid)
    }

    /// The rank of the new data that a repair symbol precedes; `None` if it precedes all new data, as a
    /// repair symbol for datagrams does, because datagrams precede all new data themselves.
    fn rank(&self, streams: &Streams, bid: &RepairBid) -> Option<Rank> {
        match bid.plan.turn {
            Turn::First => None,
            Turn::Protected if self.is_of_datagrams(bid.session) => None,
            Turn::Protected => {
                let protected = self.sessions.protected_by(bid.session);
                let ranks = protected.filter_map(|id| streams.rank(id));
                Some(ranks.min().unwrap_or(Rank::LAST))
            }
        }
    }

    /// Whether at least part of a stream's next data fits in the packet. A symbol that is too large for any
    /// packet counts as fitting, because it is sent as bare data.
    fn fits(&self, streams: &Streams, slot: &Slot<'_>, pending: &Pending) -> bool {
        if self.is_crowded(streams, slot, pending) {
            return false;
        }
        match pending.symbol() {
            Some(symbol) => {
                let size = self.sessions.resend_size(symbol);
                size.is_none_or(|size| size <= slot.room || size > self.capacity)
            }
            None => {
                let header = if pending.is_protected { SYMBOL_HEADER } else { 0 };
                slot.room >= MIN_STREAM_ROOM + header
            }
        }
    }

    /// Whether the packet already carries data of another stream and should not also carry data of
    /// `pending`.
    fn is_crowded(&self, streams: &Streams, slot: &Slot<'_>, pending: &Pending) -> bool {
        let other = slot.stream.is_some_and(|stream| stream != pending.id);
        other && !pending.goes_along && !self.mix_streams && !streams.share_packets()
    }
}
