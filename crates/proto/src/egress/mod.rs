//! The way out: what goes next into a packet, and what becomes of it.
//!
//! [`Egress`] owns the streams with their scheduler and order of resending, the coding sessions,
//! the queue of datagrams and the loss reaction. It is asked in two steps: [`look`](Egress::look)
//! says what goes next, changes nothing and may be asked any number of times;
//! [`commit`](Egress::commit) writes it and moves on. What became of a packet's frames comes back
//! by the methods of `outcome.rs`. It knows no packets and no handshake, and only a [`PathView`] of
//! the path.

mod commit;
mod datagrams;
mod held;
mod look;
mod outcome;

pub use datagrams::{DatagramQueue, SendDatagramError};
pub use look::{MIN_ROOM, Next, Slot};
pub use outcome::Outcome;

use crate::config::FecConfig;
use crate::fec::redundancy::PathView;
use crate::fec::{FecStats, Protection, SendSessions, Surroundings};
use crate::ids::StreamId;
use crate::loss_reaction::LossReaction;
use crate::recovery::token::Token;
use crate::streams::{ClosedStream, Streams, Withdrawn};
use crate::wire::frame::{SymbolAck, datagram_size};
use bytes::Bytes;
use held::HeldFrames;
use smallvec::SmallVec;
use std::time::Instant;

/// What this end sends of streams, datagrams and repair symbols, with the frames of flow control.
#[derive(Debug)]
pub struct Egress {
    /// The streams of the connection. Their receiving halves share the table, and nothing else here
    /// looks at them.
    pub streams: Streams,
    sessions: SendSessions,
    datagrams: DatagramQueue,
    reaction: Box<dyn LossReaction>,
    held: HeldFrames,
    /// Bytes of frames that a packet of full size has room for.
    capacity: usize,
    /// Whether a packet may carry bytes of several streams.
    mix_streams: bool,
    resent_bytes: u64,
}

impl Egress {
    /// Nothing to send. `datagram_buffer` is what the queue of datagrams holds, bytes.
    pub fn new(
        streams: Streams,
        reaction: Box<dyn LossReaction>,
        datagram_buffer: usize,
        mix_streams: bool,
    ) -> Self {
        Self {
            streams,
            sessions: SendSessions::default(),
            datagrams: DatagramQueue::new(datagram_buffer),
            reaction,
            held: HeldFrames::default(),
            capacity: 0,
            mix_streams,
            resent_bytes: 0,
        }
    }

    /// A packet of full size has room for `bytes` of frames from now on. What must go whole and is
    /// longer goes in another form, or not at all: symbols as bare data, datagrams not.
    pub fn set_capacity(&mut self, bytes: usize) {
        self.capacity = bytes;
    }

    /// The peer announced a decoder, which takes source symbols of `symbol_size` bytes.
    pub fn enable_coding(&mut self, peer: &FecConfig, symbol_size: usize) {
        self.sessions.enable(peer, symbol_size, self.capacity);
    }

    /// Counters of erasure coding.
    pub fn fec_stats(&self) -> FecStats {
        self.sessions.stats()
    }

    /// Bytes of stream data that were queued to be sent again.
    pub fn resent_bytes(&self) -> u64 {
        self.resent_bytes
    }

    /// Queues a datagram; the oldest ones make room for it.
    pub fn push_datagram(&mut self, data: Bytes) {
        self.datagrams.push(data);
    }

    /// Whether datagrams wait to be sent.
    pub fn has_datagrams(&self) -> bool {
        !self.datagrams.is_empty()
    }

    /// Datagrams that were dropped because they could not be sent in time, or not at all.
    pub fn datagrams_dropped(&self) -> u64 {
        self.datagrams.dropped()
    }

    /// The longest datagram whose frame a packet of full size has room for.
    pub fn max_datagram(&self, peer_frame_size: usize) -> Option<usize> {
        let frame = self.capacity.min(peer_frame_size);
        let overhead = datagram_size(frame).checked_sub(frame)?;
        frame.checked_sub(overhead)
    }

    /// How a stream is protected from now on.
    ///
    /// # Errors
    /// There is no such stream, or not to send on.
    pub fn protect(
        &mut self,
        id: StreamId,
        protection: Option<Protection>,
    ) -> Result<(), ClosedStream> {
        let changed = self.streams.protection(id) != protection.as_ref();
        self.streams.protect(id, protection)?;
        if let Some(session) = self.streams.session(id).filter(|_| changed) {
            self.streams.set_session(id, None);
            self.sessions.detach(session, id);
        }
        Ok(())
    }

    /// Gives up the sending part of a stream.
    ///
    /// # Errors
    /// There is no such stream, or not to send on.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), ClosedStream> {
        let withdrawn = self.streams.reset(id, code)?;
        self.withdraw(&withdrawn);
        Ok(())
    }

    /// Symbols that will not be sent again, because their stream was given up.
    pub fn withdraw(&mut self, symbols: &Withdrawn) {
        symbols.iter().for_each(|symbol| self.sessions.finish(*symbol));
    }

    /// The session that protects what a stream sends, if it asks for protection, the peer decodes
    /// and a session is free. Chosen when the stream first sends, as it may have asked before the
    /// peer was known.
    fn session_of(&mut self, id: StreamId) -> Option<u16> {
        if !self.sessions.is_enabled() {
            return None;
        }
        if let Some(session) = self.streams.session(id) {
            return Some(session);
        }
        let streams = &self.streams;
        let wanted = streams.protection(id)?;
        let session = self.sessions.attach(id, wanted, |id| streams.session(id).is_some());
        self.streams.set_session(id, session);
        session
    }

    /// What a session may know of everything around it.
    fn surroundings(&self, session: u16, path: &PathView) -> Surroundings {
        let idle = self.datagrams.is_empty() && !self.streams.has_data();
        self.surroundings_if(idle, session, path)
    }

    fn surroundings_if(&self, idle: bool, session: u16, path: &PathView) -> Surroundings {
        let streams = self.sessions.streams_of(session);
        let blocked = self.streams.is_connection_blocked();
        let has_source = !blocked && streams.iter().any(|id| self.streams.has_sendable(*id));
        Surroundings {
            has_source,
            idle,
            credit: self.streams.credit(),
            message: streams.iter().filter_map(|id| self.streams.message(*id)).next_back(),
            codes: self.sessions.codes(),
            path: *path,
        }
    }

    /// When a policy wants to be asked again, or something that is held is released.
    pub fn timeout(&self, now: Instant) -> Option<Instant> {
        self.sessions.timeout(now).into_iter().chain(self.held.next()).min()
    }

    /// When a coding session that fell idle gives its memory back.
    pub fn idle_timeout(&self) -> Option<Instant> {
        self.sessions.idle_timeout()
    }

    /// Has coding sessions that fell idle give their memory back.
    pub fn release_idle(&mut self, now: Instant) {
        self.sessions.release_idle(now);
    }

    /// Bytes that coding windows hold.
    #[cfg(test)]
    pub fn coding_bytes(&self) -> usize {
        self.sessions.allocated()
    }

    /// Appends SYMBOL_WINDOW frames where the peer could free a good part of its memory.
    pub fn write_windows(&mut self, out: &mut Vec<u8>, room: usize) -> SmallVec<[Token; 1]> {
        self.sessions.write_windows(out, room)
    }

    /// A SYMBOL_ACK came. Returns how many symbols the peer recovered that were not known to have
    /// arrived.
    ///
    /// # Errors
    /// The peer names a session or a symbol that was never sent.
    pub fn on_symbol_ack(
        &mut self,
        now: Instant,
        ack: &SymbolAck<'_>,
        path: &PathView,
    ) -> Result<u32, crate::error::TransportError> {
        let around = self.surroundings(ack.session, path);
        let mut delivered = SmallVec::new();
        let count = self.sessions.on_symbol_ack(now, ack, &around, &mut delivered)?;
        delivered.iter().for_each(|frame| self.streams.delivered(frame));
        Ok(count)
    }

    /// Sends a symbol again as a probe would.
    #[cfg(test)]
    pub fn probe_symbol(&mut self, symbol: crate::ids::SymbolRef) {
        self.resend_symbol(symbol);
    }

    /// Frames of a symbol that waits to be sent again.
    #[cfg(test)]
    pub fn queued_frames(&self, symbol: crate::ids::SymbolRef) -> usize {
        self.sessions.resend_frames(symbol).len()
    }

    /// Whether every coded symbol is known to have arrived, or not wanted any more.
    #[cfg(test)]
    pub fn is_coding_quiet(&self) -> bool {
        self.sessions.is_quiet()
    }
}
