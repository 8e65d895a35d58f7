//! How DATAGRAM frames (RFC 9221) are sent, bare or as source symbols.

use super::commit::SlotWriter;
use super::look::SYMBOL_HEADER;
use super::{Egress, Wrote};
use crate::fec::redundancy::{Message, PathView, Terms};
use crate::fec::{DataKind, NewSymbol, Protection};
use crate::ids::{MessageId, SymbolRef};
use crate::recovery::token::Token;
use crate::streams::Streams;
use crate::wire::frame::{datagram_size, encode_datagram};
use smallvec::SmallVec;

/// The size of a DATAGRAM frame without Length field, apart from its data.
const TYPE_SIZE: usize = 1;

/// Why a datagram could not be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendDatagramError {
    /// The peer does not support datagrams.
    #[error("datagrams not supported by peer")]
    UnsupportedByPeer,
    /// The datagram does not fit in a packet, or exceeds the peer's limit.
    #[error("datagram too large")]
    TooLarge,
    /// The connection is over.
    #[error("connection closed")]
    Closed,
}

impl Egress {
    /// Sets how datagrams are protected from now on.
    pub fn protect_datagrams(&mut self, protection: Option<Protection>) {
        if self.datagram_protection == protection {
            return;
        }
        self.datagram_protection = protection;
        self.datagram_session.take().into_iter().for_each(|s| self.sessions.detach_datagrams(s));
    }

    /// Whether datagrams are protected, as far as they fit in a source symbol.
    fn protects_datagrams(&self) -> bool {
        self.datagram_protection.is_some() && self.sessions.is_enabled()
    }

    /// The longest datagram for which a source symbol has room, and a full-size packet for the symbol.
    fn max_protected(&self) -> usize {
        let packet = self.capacity.saturating_sub(SYMBOL_HEADER);
        self.sessions.symbol_size().min(packet).saturating_sub(TYPE_SIZE)
    }

    /// The longest datagram that can be sent with the protection that is set for datagrams, or without if
    /// none is set, where the peer takes DATAGRAM frames of `peer_frame_size` bytes.
    pub fn max_datagram(&self, peer_frame_size: usize) -> Option<usize> {
        let frame = self.capacity.min(peer_frame_size);
        let overhead = datagram_size(frame).checked_sub(frame)?;
        let bare = frame.checked_sub(overhead)?;
        Some(if self.protects_datagrams() { bare.min(self.max_protected()) } else { bare })
    }

    /// The room that a datagram of `len` bytes needs in a packet.
    fn datagram_room(&self, len: usize) -> usize {
        if self.protects_datagrams() && len <= self.max_protected() {
            SYMBOL_HEADER + TYPE_SIZE + len
        } else {
            datagram_size(len)
        }
    }

    /// The room that the oldest datagram needs in a packet.
    pub(super) fn next_datagram_room(&self) -> Option<usize> {
        self.datagrams.peek_size().map(|len| self.datagram_room(len))
    }

    /// The session for a datagram of `len` bytes; `None` if it is sent bare.
    fn datagram_session(&mut self, streams: &Streams, len: usize, path: &PathView) -> Option<u16> {
        if !self.protects_datagrams() || len > self.max_protected() {
            return None;
        }
        let protection = self.datagram_protection.as_ref()?;
        if protection.factory().sleeps(path, Terms::DATAGRAM).is_some() {
            return None;
        }
        if self.datagram_session.is_none() {
            let members = |session| streams.members(session);
            self.datagram_session = self.sessions.attach(DataKind::Datagrams, protection, members);
        }
        self.datagram_session.filter(|session| self.protects(streams, *session, path))
    }

    /// Appends the oldest datagram; several, if they are protected and fit in one symbol.
    pub(super) fn write_datagram(&mut self, to: &mut SlotWriter<'_>) -> Wrote {
        let Some(len) = self.datagrams.peek_size() else { return Wrote::MORE };
        if let Some(session) = self.datagram_session(to.streams, len, to.slot.path) {
            self.write_datagram_symbol(to, session);
            return Wrote::LAST;
        }
        if datagram_size(len) > self.capacity {
            // Packets have become too small for the datagram since it was queued.
            self.datagrams.drop_oldest().into_iter().for_each(|id| self.messages.give_up(id));
        } else if let Some((id, data)) = self.datagrams.pop() {
            encode_datagram(&data, true, to.out);
            to.tokens.push(Token::Datagram { id, symbol: None });
        }
        Wrote::MORE
    }

    /// How many of the oldest datagrams fit in a source symbol of `room` bytes. All but the last
    /// have a Length field.
    fn fitting(&self, room: usize) -> usize {
        let mut used = 0;
        let fit = self.datagrams.sizes().take_while(|len| {
            let fits = used + TYPE_SIZE + len <= room;
            used += datagram_size(*len);
            fits
        });
        fit.count()
    }

    /// Appends a SOURCE_SYMBOL with as many datagrams as fit. It extends to the end of the packet.
    fn write_datagram_symbol(&mut self, to: &mut SlotWriter<'_>, session: u16) {
        let count = self.fitting(self.sessions.symbol_fit(session, to.slot.room).room);
        if count == 0 {
            return;
        }
        self.sessions.write_symbol_header(session, to.out);
        let start = to.out.len();
        let mut ids: SmallVec<[MessageId; 4]> = SmallVec::new();
        for last in (0..count).rev() {
            let Some((id, data)) = self.datagrams.pop() else { break };
            encode_datagram(&data, last > 0, to.out);
            ids.push(id);
        }
        let deadline = ids.iter().filter_map(|id| self.messages.datagram_deadline(*id)).min();
        let size = (to.out.len() - start) as u64;
        let message = Some(Message { deadline, size, ..Message::default() });
        let new = NewSymbol { bytes: &to.out[start..], frame: None, datagrams: &ids, message };
        let flushed = self.datagrams.is_empty().then_some(false);
        let symbol = self.commit_symbol(to.streams, session, to.slot, &new, flushed);
        to.tokens.extend(ids.into_iter().map(|id| Token::Datagram { id, symbol }));
    }

    /// Gives up a symbol that is not sent again, and the datagrams in it.
    pub(super) fn give_up_symbol(&mut self, symbol: SymbolRef) {
        for id in self.sessions.finish(symbol) {
            self.messages.give_up(id);
        }
    }
}
