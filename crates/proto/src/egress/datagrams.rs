//! How DATAGRAM frames (RFC 9221) are sent, bare or as source symbols.

use super::commit::SlotWriter;
use super::datagram_lanes::WaitingDatagram;
use super::look::SYMBOL_HEADER;
use super::{Egress, Wrote};
use crate::fec::redundancy::{Message, PathView, Terms};
use crate::fec::{DataKind, NewSymbol, Protection};
use crate::ids::{MessageId, SymbolRef};
use crate::recovery::token::Token;
use crate::streams::Streams;
use crate::wire::frame::{datagram_size, encode_datagram};
use bytes::Bytes;
use smallvec::SmallVec;
use std::time::Instant;
use sutura_schedule::Urgency;

/// The size of a DATAGRAM frame without Length field, apart from its data.
const TYPE_SIZE: usize = 1;

/// Most protections that datagrams of a connection have at once, each with a coding session. If another comes, the
/// session of the protection that was not used for longest is given up.
pub const MAX_DATAGRAM_PROTECTIONS: usize = 4;

/// How a datagram is protected by erasure coding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DatagramProtection {
    /// As [`Datagrams::protect`](crate::Datagrams::protect) says.
    #[default]
    AsSet,
    /// Not at all.
    Bare,
    /// By this policy, if the datagram fits in a source symbol. Datagrams with equal protections share a coding
    /// session.
    By(Protection),
}

/// How a datagram is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatagramOptions {
    /// When the datagram must be at the receiver: it is not sent if it would come later. `None` if it is never too
    /// late.
    pub deadline: Option<Instant>,
    /// More urgent datagrams are sent first, and where too many wait, the oldest of the least urgent ones are dropped.
    /// All are sent before new data of streams.
    pub urgency: Urgency,
    /// Its protection.
    pub protection: DatagramProtection,
}

impl DatagramOptions {
    sutura_schedule::setters! {
        with_deadline: deadline = Option<Instant>,
        with_urgency: urgency = Urgency,
        with_protection: protection = DatagramProtection,
    }
}

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
        let before = std::mem::replace(&mut self.datagram_protection, protection);
        let unused = self.datagram_sessions.iter().position(|(by, _)| Some(by) == before.as_ref());
        if let Some(unused) = unused {
            let (_, session) = self.datagram_sessions.remove(unused);
            self.sessions.detach_datagrams(session);
        }
    }

    /// Queues a datagram, dropping the oldest of the least urgent ones to make room.
    pub fn send_datagram(&mut self, data: Bytes, options: &DatagramOptions) -> MessageId {
        let DatagramOptions { deadline, urgency, protection } = options;
        let protection = match protection {
            DatagramProtection::AsSet => self.datagram_protection.clone(),
            DatagramProtection::Bare => None,
            DatagramProtection::By(protection) => Some(protection.clone()),
        };
        let id = self.messages.add_datagram(*deadline);
        for dropped in self.datagrams.push(*urgency, WaitingDatagram { id, data, protection }) {
            self.messages.give_up(dropped);
        }
        id
    }

    /// Whether a datagram of this length can be queued without dropping another.
    pub fn has_datagram_room(&self, length: usize) -> bool {
        self.datagrams.has_room(length)
    }

    /// The application waits for room for a datagram of this length.
    pub fn await_datagram_room(&mut self, length: usize) {
        self.datagrams.await_room(length);
    }

    /// Whether the application is to be told that there is room for datagrams.
    pub fn take_datagrams_writable(&mut self) -> bool {
        self.datagrams.take_writable()
    }

    /// How many protections datagrams have that have a session.
    #[cfg(test)]
    pub fn datagram_protections(&self) -> usize {
        self.datagram_sessions.len()
    }

    /// Whether a session protects datagrams.
    pub(super) fn is_of_datagrams(&self, session: u16) -> bool {
        self.datagram_sessions.iter().any(|(_, of)| *of == session)
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
        let protects = self.datagram_protection.is_some() && self.sessions.is_enabled();
        Some(if protects { bare.min(self.max_protected()) } else { bare })
    }

    /// Whether a datagram becomes part of a source symbol, if its protection sees a need.
    fn may_protect(&self, datagram: &WaitingDatagram) -> bool {
        let fits = datagram.data.len() <= self.max_protected();
        datagram.protection.is_some() && self.sessions.is_enabled() && fits
    }

    /// The room that the next datagram needs in a packet.
    pub(super) fn next_datagram_room(&self) -> Option<usize> {
        let next = self.datagrams.first()?;
        let len = next.data.len();
        let protected = SYMBOL_HEADER + TYPE_SIZE + len;
        Some(if self.may_protect(next) { protected } else { datagram_size(len) })
    }

    /// The session for the next datagram; `None` if it is sent bare.
    fn datagram_session(&mut self, streams: &Streams, path: &PathView) -> Option<u16> {
        let next = self.datagrams.first().filter(|next| self.may_protect(next))?;
        let protection = next.protection.clone()?;
        if protection.factory().sleeps(path, Terms::DATAGRAM).is_some() {
            return None;
        }
        let session = self.session_of_datagrams(streams, protection)?;
        self.protects(streams, session, path).then_some(session)
    }

    /// The session of datagrams with this protection, which was then used last.
    fn session_of_datagrams(&mut self, streams: &Streams, protection: Protection) -> Option<u16> {
        let known = self.datagram_sessions.iter().position(|(by, _)| *by == protection);
        if let Some(known) = known {
            self.datagram_sessions[known..].rotate_left(1);
            return self.datagram_sessions.last().map(|(_, session)| *session);
        }
        if self.datagram_sessions.len() >= MAX_DATAGRAM_PROTECTIONS {
            let (_, session) = self.datagram_sessions.remove(0);
            self.sessions.detach_datagrams(session);
        }
        let members = |session| streams.members(session);
        let session = self.sessions.attach(DataKind::Datagrams, &protection, members)?;
        self.datagram_sessions.push((protection, session));
        Some(session)
    }

    /// Appends the next datagram; several, if they are protected alike and fit in one symbol.
    pub(super) fn write_datagram(&mut self, to: &mut SlotWriter<'_>) -> Wrote {
        let Some(next) = self.datagrams.first() else { return Wrote::MORE };
        let size = datagram_size(next.data.len());
        if let Some(session) = self.datagram_session(to.streams, to.slot.path) {
            self.write_datagram_symbol(to, session);
            return Wrote::LAST;
        }
        if size > self.capacity {
            // Packets have become too small for the datagram since it was queued.
            self.datagrams.drop_first().into_iter().for_each(|id| self.messages.give_up(id));
        } else if let Some(WaitingDatagram { id, data, .. }) = self.datagrams.pop() {
            encode_datagram(&data, true, to.out);
            to.tokens.push(Token::Datagram { id, symbol: None });
        }
        Wrote::MORE
    }

    /// How many of the next datagrams, with the protection of the first, fit in a source symbol of `room` bytes. All but
    /// the last have a Length field.
    fn fitting(&self, room: usize) -> usize {
        let protection = self.datagrams.first().and_then(|first| first.protection.as_ref());
        let alike = self.datagrams.iter().take_while(|next| next.protection.as_ref() == protection);
        let mut used = 0;
        let fit = alike.map(|next| next.data.len()).take_while(|len| {
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
            let Some(WaitingDatagram { id, data, .. }) = self.datagrams.pop() else { break };
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
