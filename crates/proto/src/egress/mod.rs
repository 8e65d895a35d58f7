//! The sending side: chooses the next frame of a packet, and handles the fate of sent frames.
//!
//! [`Egress`] owns the coding sessions, the datagram queue, the messages, the loss reaction and the [ledger
//! of lost data](lost); the streams are lent to it. It works in two steps: [`look`](Egress::look) chooses the
//! next frame, changes nothing and may be called any number of times; [`commit`](Egress::commit) writes that
//! frame and updates the state. The methods of `outcome.rs` are told which frames arrived and which were
//! lost. Egress knows neither packets nor the handshake, and sees the path only through a [`PathView`].

#[cfg(feature = "testing")]
mod check;
mod commit;
mod datagram_lanes;
mod datagrams;
mod look;
pub mod lost;
mod messages;
mod outcome;

use commit::Wrote;
pub use datagrams::{
    DatagramOptions, DatagramProtection, MAX_DATAGRAM_PROTECTIONS, SendDatagramError,
};
pub use look::{MIN_ROOM, Next, Slot};
#[cfg(test)]
pub use messages::{MAX_OPEN_MESSAGES, MAX_OUTCOMES, MAX_WAITING_BYTES};
pub use messages::{MessageOptions, MessageOutcome, MessageStats, SendMessageError};
pub use outcome::PacketOutcome;

use crate::error::TransportError;
use crate::fec::redundancy::PathView;
use crate::fec::redundancy::{Reason, Terms};
use crate::fec::{
    CodingCounts, Contents, DataKind, FecConfig, FecStats, Protection, ProtectionStats,
    SendSessions, Surroundings,
};
use crate::ids::{MessageId, StreamId};
use crate::loss_reaction::LossReaction;
use crate::rare::Rare;
use crate::recovery::token::Tokens;
use crate::streams::{Backlog, ClosedStream, Pending, Streams};
use crate::wire::frame::SymbolAck;
use datagram_lanes::DatagramLanes;
use lost::{LossLedger, Unqueued};
use messages::MessageTable;
use std::time::Instant;

/// Sends the data of streams, datagrams and repair symbols.
#[derive(Debug)]
pub struct Egress {
    sessions: SendSessions,
    datagrams: DatagramLanes,
    /// How datagrams are protected that do not say so themselves.
    datagram_protection: Option<Protection>,
    /// The sessions that protect datagrams, each chosen when the first datagram with its protection is sent, the one that
    /// was not used for longest first; at most [`MAX_DATAGRAM_PROTECTIONS`](datagrams::MAX_DATAGRAM_PROTECTIONS).
    datagram_sessions: Vec<(Protection, u16)>,
    messages: Rare<MessageTable>,
    reaction: Box<dyn LossReaction>,
    lost: LossLedger,
    /// Bytes of frames that fit in a full-size packet.
    capacity: usize,
    /// Whether a packet may carry data of several streams.
    mix_streams: bool,
    resent_bytes: u64,
    /// The state of the connection when the policies were last asked and none wanted to send a repair symbol.
    asked: Option<Box<Asked>>,
}

/// The least number of sessions for which [`Egress::rest`] remembers that no policy wants to send: to ask
/// fewer policies again is cheaper than to compare the state. Debug builds always remember, so that every
/// test checks that policies name the times at which they change their minds.
const MANY_SESSIONS: usize = if cfg!(debug_assertions) { 1 } else { 5 };

/// The state of an idle connection that policies can see, apart from their own session.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Asked {
    path: PathView,
    /// The version of the unsent data of streams: equal versions mean equal data.
    unsent: u64,
    credit: u64,
    is_blocked: bool,
    fresh: Option<u64>,
    sent_buffer: u64,
}

impl Egress {
    /// Creates an egress with nothing to send. `datagram_buffer` is the size of the datagram queue
    /// in bytes.
    pub fn new(reaction: Box<dyn LossReaction>, datagram_buffer: usize, mix_streams: bool) -> Self {
        Self {
            sessions: SendSessions::default(),
            datagrams: DatagramLanes::new(datagram_buffer),
            datagram_protection: None,
            datagram_sessions: Vec::new(),
            messages: Rare::default(),
            reaction,
            lost: LossLedger::default(),
            capacity: 0,
            mix_streams,
            resent_bytes: 0,
            asked: None,
        }
    }

    /// Starts over on fresh streams, because the peer has taken none of the data sent until now. Messages and
    /// datagrams are given up. Coding must not be enabled yet.
    pub fn start_over(&mut self) {
        self.lost = LossLedger::default();
        self.datagrams.retain(|_| false);
        self.messages.get_mut().into_iter().for_each(MessageTable::give_up_all);
    }

    /// Sets how many bytes of frames fit in a full-size packet. Items that cannot be split and are now too
    /// large are sent in another form or not at all: symbols become bare data, datagrams are dropped.
    pub fn set_capacity(&mut self, bytes: usize) {
        self.capacity = bytes;
        self.sessions.set_packet_room(bytes);
    }

    /// Enables coding, because the peer announced a decoder, with source symbols of `symbol_size` bytes.
    /// `largest` is the largest capacity that packets may come to have.
    pub fn enable_coding(&mut self, peer: &FecConfig, symbol_size: usize, largest: usize) {
        self.sessions.enable(peer, symbol_size, largest);
    }

    /// Counters of erasure coding.
    pub fn fec_stats(&self) -> FecStats {
        self.sessions.stats()
    }

    /// The counters and the policy of each coding session, and the protection of new streams if it sleeps on
    /// this path.
    pub fn protections(&self, streams: &Streams, path: &PathView) -> Vec<ProtectionStats> {
        let mut all: Vec<_> = self.sessions.protections().collect();
        let default = streams.default_protection().filter(|_| self.sessions.is_enabled());
        let asleep = default
            .and_then(|wanted| Some((wanted, wanted.factory().sleeps(path, Terms::STREAM)?)));
        all.extend(asleep.map(|(protection, reason)| ProtectionStats {
            session: None,
            protection: protection.clone(),
            reason: Some(reason),
            counts: CodingCounts::default(),
        }));
        all
    }

    /// Calls `tell` for each coding session whose policy or its reason has changed since the last
    /// call.
    pub fn take_coding_news(&mut self, tell: impl FnMut(u16, &Protection, Option<Reason>)) {
        self.sessions.take_news(tell);
    }

    /// Bytes of stream data that were queued for retransmission.
    pub fn resent_bytes(&self) -> u64 {
        self.resent_bytes
    }

    /// Whether datagrams are waiting to be sent.
    pub fn has_datagrams(&self) -> bool {
        !self.datagrams.is_empty()
    }

    /// Datagrams that were dropped because they could not be sent in time or at all.
    pub fn datagrams_dropped(&self) -> u64 {
        self.datagrams.dropped()
    }

    /// Sets how a stream is protected from now on.
    ///
    /// # Errors
    /// The stream does not exist or cannot be sent on.
    pub fn protect(
        &mut self,
        streams: &mut Streams,
        id: StreamId,
        protection: Option<Protection>,
    ) -> Result<(), ClosedStream> {
        let changed = streams.protection(id) != protection.as_ref();
        streams.protect(id, protection)?;
        if changed {
            streams.set_session(id, None);
        }
        Ok(())
    }

    /// Resets the sending half of a stream.
    ///
    /// # Errors
    /// The stream does not exist or cannot be sent on.
    pub fn reset(
        &mut self,
        streams: &mut Streams,
        id: StreamId,
        code: u64,
    ) -> Result<(), ClosedStream> {
        streams.reset(id, code)?;
        self.withdraw(streams, id);
        Ok(())
    }

    /// Resets the sending half of a stream beyond its first `reliable` bytes.
    ///
    /// # Errors
    /// The stream does not exist or cannot be sent on.
    pub fn reset_at(
        &mut self,
        streams: &mut Streams,
        id: StreamId,
        code: u64,
        reliable: u64,
    ) -> Result<(), ClosedStream> {
        streams.reset_at(id, code, reliable)?;
        self.withdraw(streams, id);
        Ok(())
    }

    /// Handles STOP_SENDING.
    ///
    /// # Errors
    /// See [`Streams::received_stop_sending`].
    pub fn received_stop_sending(
        &mut self,
        streams: &mut Streams,
        now: Instant,
        id: StreamId,
        code: u64,
        path: &PathView,
    ) -> Result<(), TransportError> {
        if let Some(ended) = streams.received_stop_sending(id, code)? {
            self.on_message_ended(now, ended, path);
        }
        self.withdraw(streams, id);
        Ok(())
    }

    /// Stops resending lost data that a stream no longer has to deliver. Does nothing if the stream was not
    /// reset.
    fn withdraw(&mut self, streams: &mut Streams, id: StreamId) {
        let unqueued = self.lost.withdraw(streams, id);
        self.settle(streams, unqueued);
    }

    /// The session that protects a stream's data, if the stream asks for protection, the peer decodes and a
    /// session is free. The session is chosen when the stream first sends, because the stream may have asked
    /// before the peer's parameters were known. While the protection of the stream sleeps, the choice waits.
    fn session_of(
        &mut self,
        streams: &mut Streams,
        pending: &Pending,
        sleeps: bool,
    ) -> Option<u16> {
        if !self.sessions.is_enabled() || !pending.is_protected {
            return None;
        }
        if pending.session.is_some() {
            return pending.session;
        }
        let id = pending.id;
        let wanted = streams.protection(id).filter(|_| !sleeps)?;
        let kind =
            if streams.message_id(id).is_some() { DataKind::Messages } else { DataKind::Streams };
        let session = self.sessions.attach(kind, wanted, |session| streams.members(session));
        let with_it = match kind {
            DataKind::Streams if wanted.factory().shares_session() => {
                // The other waiting streams join at once, so that the policy sees all that the session has to
                // send.
                streams.unsent_without_session(wanted)
            }
            DataKind::Streams | DataKind::Messages | DataKind::Datagrams => Vec::new(),
        };
        streams.set_session(id, session);
        with_it.into_iter().for_each(|id| streams.set_session(id, session));
        session
    }

    /// Whether the protection of a stream sees no need to protect the stream's next data.
    fn sleeps(&self, streams: &Streams, pending: &Pending, slot: &Slot<'_>) -> bool {
        if !self.sessions.is_enabled() || !pending.may_sleep {
            return false;
        }
        let terms = streams.terms(pending, slot.now);
        terms.is_some_and(|(wanted, terms)| wanted.factory().sleeps(slot.path, terms).is_some())
    }

    /// Whether data of a stream waits to be sent, for the first time or again.
    fn owes(&self, streams: &Streams, id: StreamId) -> bool {
        streams.has_unsent(id) || self.lost.owes(streams, id)
    }

    /// Whether there is stream data that can be sent.
    pub fn has_stream_data(&self, streams: &Streams) -> bool {
        let is_new = || {
            let by_count = streams.has_sendable();
            debug_assert!(!by_count || self.look_new(streams, usize::MAX).is_some());
            by_count || self.look_new(streams, usize::MAX).is_some()
        };
        is_new() || self.lost.look(streams).is_some()
    }

    /// The stream data that waits to be sent, computed by visiting every stream.
    pub fn backlog(&self, streams: &Streams) -> Backlog {
        if self.lost.owes_any(streams) { Backlog::Sendable } else { streams.backlog() }
    }

    /// A message of which no data waits to be sent leaves its session, so that no decision visits all
    /// messages on their way. The message joins a session again if a part of it is sent again as bare data.
    fn leave_if_sent(&mut self, streams: &mut Streams, id: StreamId, message: MessageId) {
        if self.owes(streams, id) {
            return;
        }
        self.messages.sent(message, streams.unsent(id).peer_buffer);
        streams.set_session(id, None);
    }

    /// Whether the data that is about to be sent becomes a source symbol of `session`.
    fn protects(&self, streams: &Streams, session: u16, path: &PathView) -> bool {
        // The data itself waits.
        let idle = false;
        self.sessions.protects(session, || self.surroundings_if(streams, idle, session, path))
    }

    /// The facts that a session may know about the rest of the connection. They hold for all that is done for
    /// one frame.
    fn surroundings<'a>(
        &self,
        streams: &Streams,
        session: u16,
        path: &'a PathView,
    ) -> Surroundings<'a> {
        let idle = self.datagrams.is_empty() && !self.has_stream_data(streams);
        self.surroundings_if(streams, idle, session, path)
    }

    /// The surroundings of a session where it is known whether nothing but redundancy waits (`idle`).
    fn surroundings_if<'a>(
        &self,
        streams: &Streams,
        idle: bool,
        session: u16,
        path: &'a PathView,
    ) -> Surroundings<'a> {
        let all = streams.unsent_of(session);
        // A message joins its session when its first bytes are sent, and leaves it when all of them were.
        // Messages before and after this time count separately.
        let (fresh, sent_buffer) = match self.sessions.kind(session) {
            Some(DataKind::Messages) => (self.messages.fresh_bytes(), self.messages.sent_buffer()),
            Some(DataKind::Streams | DataKind::Datagrams) | None => (None, 0),
        };
        let has_source = if self.is_of_datagrams(session) {
            !self.datagrams.is_empty()
        } else {
            let is_sendable = all.is_sendable || fresh.is_some();
            is_sendable && !streams.is_connection_blocked()
        };
        Surroundings {
            has_source,
            left: all.bytes + fresh.unwrap_or(0),
            buffer: all.peer_buffer.saturating_add(sent_buffer),
            idle,
            credit: streams.credit(),
            message: all.message,
            next_message: self.messages.next_at,
            codes: self.sessions.codes(),
            path,
        }
    }

    /// The state that policies see while the connection has nothing else to send.
    fn asked(&self, streams: &Streams, path: &PathView) -> Asked {
        Asked {
            path: *path,
            unsent: streams.unsent_version(),
            credit: streams.credit(),
            is_blocked: streams.is_connection_blocked(),
            fresh: self.messages.fresh_bytes(),
            sent_buffer: self.messages.sent_buffer(),
        }
    }

    /// Call this after a [look](Self::look) at `now` found nothing to send. Until that state changes or the
    /// time comes that a policy has named, no policy is asked again.
    #[inline]
    pub fn rest(&mut self, streams: &Streams, now: Instant, path: &PathView) {
        if self.sessions.used() < MANY_SESSIONS {
            return;
        }
        // Policies compare the time of the next message with the present.
        let timeless = self.messages.next_at.is_none();
        if timeless && !self.is_resting(streams, now, path) {
            self.sessions.rest(now);
            let asked = self.asked(streams, path);
            match &mut self.asked {
                Some(before) => **before = asked,
                None => self.asked = Some(Box::new(asked)),
            }
        }
    }

    /// Whether every policy has been asked and would again answer that it sends no repair symbol. Holds only
    /// while the connection has nothing else to send.
    fn is_resting(&self, streams: &Streams, now: Instant, path: &PathView) -> bool {
        self.sessions.is_resting(now)
            && self.messages.next_at.is_none()
            && self.asked.as_deref() == Some(&self.asked(streams, path))
    }

    /// When a policy wants to be asked again, held data is released, or the time of a message is
    /// over.
    pub fn timeout(&self, now: Instant) -> Option<Instant> {
        let messages = self.messages_timeout(now);
        self.sessions.timeout(now).into_iter().chain(self.lost.held_until()).chain(messages).min()
    }

    /// When an idle coding session releases its memory.
    pub fn idle_timeout(&self) -> Option<Instant> {
        self.sessions.idle_timeout()
    }

    /// Releases the memory of idle coding sessions.
    pub fn release_idle(&mut self, now: Instant) {
        self.sessions.release_idle(now);
    }

    /// Bytes of datagrams that were sent.
    pub fn datagrams_taken(&self) -> u64 {
        self.datagrams.taken()
    }

    /// Bytes of datagrams that wait to be sent, with their overhead.
    pub fn datagram_cost(&self) -> usize {
        self.datagrams.cost()
    }

    /// Sets how many bytes all coding windows may hold together, and releases the excess.
    pub fn set_coding_allowance(&mut self, streams: &mut Streams, bytes: usize) {
        if self.sessions.set_allowance(bytes) {
            self.enforce_budget(streams);
        }
    }

    /// Bytes of memory of coding windows and of the symbols that left them.
    pub fn coding_bytes(&self) -> usize {
        self.sessions.memory()
    }

    /// Appends SYMBOL_WINDOW frames for the sessions in which they let the peer free a good part of its
    /// memory.
    pub fn write_windows(&mut self, out: &mut Vec<u8>, room: usize, tokens: &mut Tokens) {
        self.sessions.write_windows(out, room, tokens);
    }

    /// Handles a SYMBOL_ACK. Returns how many symbols the peer recovered that were not known to
    /// have arrived.
    ///
    /// # Errors
    /// The frame names a session or symbol that was never sent.
    pub fn on_symbol_ack(
        &mut self,
        streams: &mut Streams,
        now: Instant,
        ack: &SymbolAck<'_>,
        path: &PathView,
    ) -> Result<u32, TransportError> {
        let around = self.surroundings(streams, ack.session, path);
        let mut delivered = Contents::default();
        let count = self.sessions.on_symbol_ack(now, ack, &around, &mut delivered)?;
        let mut unqueued = Unqueued::new();
        for frame in &delivered.frames {
            streams.message_id(frame.id).into_iter().for_each(|id| self.messages.recovered(id));
            unqueued.extend(self.delivered(streams, now, frame, path));
        }
        let earlier = path.heard_from(now);
        delivered.datagrams.iter().for_each(|id| self.messages.arrived(*id, earlier, true));
        self.settle(streams, unqueued);
        Ok(count)
    }

    /// Queues a symbol again, as a probe would.
    #[cfg(test)]
    pub fn probe_symbol(&mut self, streams: &mut Streams, symbol: crate::ids::SymbolRef) {
        self.resend_symbol(streams, symbol);
    }

    /// Holds a frame back, as a loss reaction may.
    #[cfg(test)]
    pub fn hold(&mut self, until: Instant, frame: crate::recovery::token::StreamToken) {
        self.lost.hold(until, frame);
    }

    /// How many symbols are held back.
    #[cfg(test)]
    pub fn held_symbols(&self) -> usize {
        self.sessions.held_symbols()
    }

    /// How many frames of a symbol are queued to be sent again.
    #[cfg(test)]
    pub fn queued_frames(&self, symbol: crate::ids::SymbolRef) -> usize {
        self.sessions.resend_frames(symbol).len()
    }

    /// Whether every coded symbol is known to have arrived or is no longer needed.
    #[cfg(test)]
    pub fn is_coding_quiet(&self) -> bool {
        self.sessions.is_quiet()
    }
}
