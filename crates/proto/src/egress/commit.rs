//! Writes the chosen frame into the packet.

use super::{Egress, Next, Slot};
use crate::fec::redundancy::{Message, Stage};
use crate::fec::{Evicted, Frames, NewSymbol, RepairBid, SymbolFit};
use crate::ids::{StreamId, SymbolRef};
use crate::recovery::token::{StreamToken, Token, Tokens};
use crate::streams::{Length, Pending, Streams, Written};
use smallvec::SmallVec;

/// Small frames that wait to be sent again share packets from this number on.
const MANY_LOST: usize = 4;

/// The effect of a commit on the packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wrote {
    /// Whether another frame may follow.
    pub more: bool,
    /// The stream whose data was written. `None` if the data may share a packet with any stream.
    pub stream: Option<StreamId>,
    /// Whether the frame is redundancy that was sent only because no other data was waiting.
    pub idle: bool,
}

impl Wrote {
    /// Another frame may follow.
    pub(super) const MORE: Self = Self { more: true, stream: None, idle: false };
    /// No frame may follow: the packet ends here.
    pub(super) const LAST: Self = Self { more: false, stream: None, idle: false };
}

/// A packet in which a slot is filled.
pub(super) struct SlotWriter<'a> {
    pub(super) streams: &'a mut Streams,
    pub(super) slot: &'a Slot<'a>,
    /// The frames of the packet.
    pub(super) out: &'a mut Vec<u8>,
    pub(super) tokens: &'a mut Tokens,
}

impl Egress {
    /// Appends the frame that [`look`](Self::look) chose for `slot`, and its tokens.
    pub fn commit(
        &mut self,
        streams: &mut Streams,
        next: &Next,
        slot: &Slot<'_>,
        out: &mut Vec<u8>,
        tokens: &mut Tokens,
    ) -> Wrote {
        let to = &mut SlotWriter { streams, slot, out, tokens };
        match next {
            Next::Lost(pending) | Next::New(pending) => {
                let wrote = if pending.symbol().is_some() {
                    self.write_resend(to, pending)
                } else {
                    self.write_stream(to, pending)
                };
                Wrote { stream: (!pending.goes_along).then_some(pending.id), ..wrote }
            }
            Next::Datagram => self.write_datagram(to),
            Next::Repair { bid, idle } => {
                let wrote = self.write_repair(to, bid);
                Wrote { idle: *idle, ..wrote }
            }
            Next::Later | Next::Nothing => Wrote::LAST,
        }
    }

    /// Appends a STREAM frame, as a source symbol if its stream is protected.
    fn write_stream(&mut self, to: &mut SlotWriter<'_>, pending: &Pending) -> Wrote {
        let sleeps = self.sleeps(to.streams, pending, to.slot);
        let session = self.session_of(to.streams, pending, sleeps);
        let message = pending.message;
        // A session counts the bytes of its streams itself: from now on the message must not count as fresh
        // too.
        message.into_iter().for_each(|id| self.messages.begun(id));
        let protects = |session: &u16| {
            !sleeps
                && !self.shares_packets(pending)
                && self.protects(to.streams, *session, to.slot.path)
        };
        let protecting = session.filter(protects);
        let wrote = match protecting {
            Some(session) => {
                self.write_symbol(to, session, pending);
                Wrote::LAST
            }
            None => self.write_bare(to, pending),
        };
        if let Some(message) = message.filter(|_| session.is_some()) {
            self.leave_if_sent(to.streams, pending.id, message);
        }
        if sleeps && !pending.is_retransmission() {
            self.flushed_asleep(to.streams, pending, session, to.slot);
        }
        wrote
    }

    /// Whether lost data is small and waits with much other lost data, as after an outage. It is then sent again
    /// in as few packets as possible: source symbols take a packet each, and the congestion window is small.
    fn shares_packets(&self, pending: &Pending) -> bool {
        let is_small = pending.is_retransmission() && pending.goes_along;
        is_small && self.lost.has_many(pending.id, MANY_LOST)
    }

    /// Data that goes out unprotected, because its protection sleeps, may be the last data before a pause.
    /// The policy of the session is told of the pause then: earlier data, with closer deadlines, may still
    /// need repair symbols.
    fn flushed_asleep(
        &mut self,
        streams: &Streams,
        pending: &Pending,
        session: Option<u16>,
        slot: &Slot<'_>,
    ) {
        if session.is_some() && streams.has_unsent(pending.id) {
            return;
        }
        let of_messages = || {
            let wanted = streams.protection(pending.id).filter(|_| pending.message.is_some())?;
            self.sessions.of_messages(wanted)
        };
        let Some(session) = session.or_else(of_messages) else { return };
        let around = self.surroundings(streams, session, slot.path);
        if around.left == 0 {
            self.sessions.on_flushed(slot.now, session, false, &around);
        }
    }

    /// Appends a STREAM frame that is not protected.
    fn write_bare(&mut self, to: &mut SlotWriter<'_>, pending: &Pending) -> Wrote {
        match self.write_frame(to, pending, to.slot.room, Length::Explicit) {
            Some(written) => {
                to.tokens.push(Token::Stream(written.token));
                Wrote::MORE
            }
            None => Wrote::LAST,
        }
    }

    /// Appends one STREAM frame of at most `room` bytes.
    #[inline]
    fn write_frame(
        &mut self,
        to: &mut SlotWriter<'_>,
        pending: &Pending,
        room: usize,
        length: Length,
    ) -> Option<Written> {
        let written = to.streams.write_stream(pending, to.out, room, length)?;
        if pending.is_retransmission() {
            let unqueued = self.lost.sent(to.streams, &written.token);
            self.settle(to.streams, unqueued);
        }
        Some(written)
    }

    /// Appends a SOURCE_SYMBOL with one STREAM frame. It extends to the end of the packet.
    fn write_symbol(&mut self, to: &mut SlotWriter<'_>, session: u16, pending: &Pending) {
        let SymbolFit { room, left } = self.sessions.symbol_fit(session, to.slot.room);
        let before = to.out.len();
        // Padding that is written now does not move the symbol later.
        let padding = if left <= to.slot.padding { left } else { 0 };
        if padding > 0 {
            to.out.resize(before + padding, 0);
        }
        self.sessions.write_symbol_header(session, to.out);
        let mut start = to.out.len();
        let Some(written) = self.write_frame(to, pending, room, Length::ToEnd) else {
            to.out.truncate(before);
            return;
        };
        if padding > 0 && to.out.len() - before < to.slot.room {
            // The stream has less data, so that the packet remains short.
            to.out.drain(before..before + padding);
            start -= padding;
        }
        let token = written.token;
        let message = pending.announces.then(|| to.streams.message_of(&token)).flatten();
        let message = message.map(|message| match message.stage {
            Stage::First if token.offset > 0 => Message { stage: Stage::Within, ..message },
            Stage::Apart | Stage::Within | Stage::First => message,
        });
        let ended = written.flushed.then_some(token.fin);
        let frame = Some(&token);
        let new = NewSymbol { bytes: &to.out[start..], frame, datagrams: &[], message };
        let symbol = self.commit_symbol(to.streams, session, to.slot, &new, ended);
        to.tokens.push(Token::Stream(StreamToken { symbol, ..token }));
    }

    /// Puts a source symbol that was just written into its coding window. `flushed` if the symbol was the last
    /// data that waited in its stream or in the queue of datagrams: then whether there will be no more.
    pub(super) fn commit_symbol(
        &mut self,
        streams: &mut Streams,
        session: u16,
        slot: &Slot<'_>,
        new: &NewSymbol<'_>,
        flushed: Option<bool>,
    ) -> Option<SymbolRef> {
        let around = self.surroundings(streams, session, slot.path);
        let mut evicted = SmallVec::new();
        let symbol = self.sessions.commit_symbol(slot.now, session, new, &around, &mut evicted);
        if let Some(ended) = flushed {
            self.sessions.on_flushed(slot.now, session, ended, &around);
        }
        evicted.iter().for_each(|evicted| self.on_evicted(streams, session, evicted));
        if self.sessions.take_growth() {
            self.enforce_budget(streams);
        }
        symbol
    }

    /// Limits the total memory of all coding windows.
    pub(super) fn enforce_budget(&mut self, streams: &mut Streams) {
        if !self.sessions.is_over_budget() {
            return;
        }
        let mut evicted: SmallVec<[(u16, Evicted); 1]> = SmallVec::new();
        self.sessions.enforce_budget(|session, symbol| evicted.push((session, symbol)));
        evicted.iter().for_each(|(session, symbol)| self.on_evicted(streams, *session, symbol));
    }

    /// Handles a symbol that left its window before it was known to have arrived: from now on its
    /// frames are bare data.
    fn on_evicted(&mut self, streams: &mut Streams, session: u16, evicted: &Evicted) {
        let symbol = SymbolRef { session, id: evicted.id };
        if !evicted.in_flight {
            evicted.contents.datagrams.iter().for_each(|id| self.messages.give_up(*id));
        }
        for frame in &evicted.contents.frames {
            if evicted.queued {
                self.unbind(streams, frame.id, symbol);
            } else if !evicted.in_flight {
                self.resend(streams, frame);
            }
        }
    }

    /// Sends a lost source symbol again, byte for byte, so that it takes the same place in the
    /// peer's decoder.
    fn write_resend(&mut self, to: &mut SlotWriter<'_>, pending: &Pending) -> Wrote {
        let Some(symbol) = pending.symbol() else { return Wrote::LAST };
        if self.shares_packets(pending) && !self.sessions.may_mend(symbol) {
            self.give_up_symbol(symbol);
            self.unbind(to.streams, pending.id, symbol);
            return Wrote::MORE;
        }
        let fits = self.sessions.resend_size(symbol).is_some_and(|size| size <= to.slot.room);
        let streams = &*to.streams;
        let rewrite = |frame: &StreamToken, out: &mut Vec<u8>| streams.rewrite(frame, out);
        let frames = if fits {
            self.sessions.write_resend(to.slot.now, symbol, to.out, rewrite)
        } else {
            Frames::new()
        };
        if !frames.is_empty() {
            to.streams.charge_symbol(&frames);
            let unqueued = self.lost.sent_symbol(to.streams, pending.id, symbol);
            self.settle(to.streams, unqueued);
            self.resent_bytes += frames.iter().map(|f| u64::from(f.len)).sum::<u64>();
            to.tokens.extend(frames.into_iter().map(Token::Stream));
            return Wrote::LAST;
        }
        // Packets have become too small for the symbol, or some of its data is no longer held.
        self.give_up_symbol(symbol);
        self.unbind(to.streams, pending.id, symbol);
        Wrote::MORE
    }

    fn write_repair(&mut self, to: &mut SlotWriter<'_>, bid: &RepairBid) -> Wrote {
        let around = self.surroundings(to.streams, bid.session, to.slot.path);
        let start = to.out.len();
        if let Some(token) = self.sessions.write_repair(to.slot.now, bid, &around, to.out) {
            // The protected streams pay for their redundancy.
            let size = to.out.len() - start;
            self.sessions.share_repair(bid.session, size, |id, n| to.streams.charge(id, n));
            to.tokens.push(token);
        }
        Wrote::LAST
    }
}
